"""Agents for Kropki: exact and greedy play, heuristics for searches, and the network."""
