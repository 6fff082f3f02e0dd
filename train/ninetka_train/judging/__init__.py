"""Evaluation of agents: matches, figures with intervals, ratings, reports. Start at `evaluate.py`."""
