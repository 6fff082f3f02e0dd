"""9tka: the rules, positions, observations and pictures of the game. Start with `geometry`, then `rules`."""
