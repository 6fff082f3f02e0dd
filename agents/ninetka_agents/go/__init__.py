"""Agents of Go: heuristics for tree search, status of stones, network inputs, and the Go Text Protocol (`gtp`)."""
