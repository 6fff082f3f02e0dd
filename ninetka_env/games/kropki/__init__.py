"""Kropki: the rules, positions, observations, pictures and SGF of the game. Start with `geometry`, then `rules`."""
