"""Code that all games share; it depends on no single game."""
