"""Agents (`agents.py`) and analyses (`analysts.py`), on threads; `warm.py` compiles their code in the background."""
