"""Agents and the network for 9tka alone: the paper's MaxN, alpha-beta, the exact solver, the network and its features.

Start with `maxn.py` and `alpha_beta.py` for agents, with `solver/solver.py` for exact play, with `network.py` for the
network. The rules are in `ninetka_env.games.ninetka`.
"""
