"""Tools for 9tka that use the exact solver: self-play targets, blunder rates, game analysis and a study."""
