"""Go: rules, options, observations, text and pictures. `ninetka_env.go_v0` is the public module."""
