"""Agents (`agents.py`) and analyses (`analysis_service.py`) on threads; `warm.py` compiles code in the background."""
