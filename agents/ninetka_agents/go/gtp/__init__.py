"""The Go Text Protocol, version 2, in both directions: our agents as an engine, outside engines as agents."""
