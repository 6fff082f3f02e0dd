"""How agents learn games, and how they are judged."""
