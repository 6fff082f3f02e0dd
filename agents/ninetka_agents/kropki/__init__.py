"""Agents for Kropki: exact and greedy play, heuristics for searches, and the network.

Start with `greedy.py` for agents, with `heuristics.py` for searches. The rules are in `ninetka_env.games.kropki`.
"""
