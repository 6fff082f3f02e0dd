"""Code shared by all games; it does not depend on any particular game.

Start with `verbs.py`, `registry.py` and `game.py`; `batch.py` plays many games at once.
"""
