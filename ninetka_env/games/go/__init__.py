"""Go: rules, options, observations, text."""
