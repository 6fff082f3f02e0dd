"""Training and evaluation of agents, and the command `ninetka`.

Start with `cli.py` for the command, with `run.py` for training, with `judging/evaluate.py` for evaluation.
"""
