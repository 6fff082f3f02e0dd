"""Agents for Go: heuristics for tree search, dead stones, network inputs, and the Go Text Protocol (`gtp`).

Start with `heuristics.py`, and for the protocol with `gtp/engine.py`. The rules are in `ninetka_env.games.go`.
"""
