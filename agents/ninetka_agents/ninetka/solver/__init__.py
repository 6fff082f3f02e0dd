"""The exact solver of 9tka's two-player movement phase; start reading at `solver.py`."""
