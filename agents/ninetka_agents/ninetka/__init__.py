"""What plays 9tka and no other game: the paper's MaxN, the exact solver, the network and what it reads."""
