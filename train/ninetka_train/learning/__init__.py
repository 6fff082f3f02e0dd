"""Training of networks: self-play, losses, checkpoints and logs.

Start with `alphazero.py` or `ppo.py`. `ninetka_train.run` is a whole run with its report.
"""
