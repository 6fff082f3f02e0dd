"""The benchmark of 9tka: one frozen protocol, so that figures of different people can be compared.

Start reading at `protocol.py`. `matches.py` plays, `card.py` collects the figures of an agent, and `leaderboard.py`
compares the figures of several agents.
"""
