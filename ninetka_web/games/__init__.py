"""What the table knows of each game beyond its rules: one adapter a game, which none of the others knows."""
