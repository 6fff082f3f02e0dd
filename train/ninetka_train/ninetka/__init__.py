"""Tools for 9tka that use the exact solver: self-play targets, blunder rates, game analysis and a study.

Start with `selfplay_hooks.py` for training, with `blunders.py` for evaluation, with `analyze.py` for single games.
"""
