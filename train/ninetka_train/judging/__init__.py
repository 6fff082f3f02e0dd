"""How well agents play: games between them, figures, intervals, ratings, reports."""
