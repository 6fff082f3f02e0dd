"""Agents and the network for 9tka alone: the paper's MaxN, the exact solver, the network and its features."""
