"""How games end: who won, and what that pays to each seat."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import Record, write_score_rewards, write_win_rewards

DRAWN = -1
"""Stands for a seat where a game is drawn."""
UNFINISHED = -2
"""Stands for a seat where the winner is open, not told or not proven."""

REWARDS = ("win", "score")
"""`"win"`: +1 for the winner, -1 / (n - 1) for each other seat, 0 for all if drawn. `"score"`: each game's own measure
of by how much. Both sum to zero. Compiled code knows a kind by its index in this tuple."""


@jit
def write_rewards(game: Record, kind: int, rewards: npt.NDArray[np.float32]) -> None:
    """Write what the finished `game` pays into `rewards`, (n,) float32."""
    if kind == 1:
        write_score_rewards(game, rewards)
    else:
        write_win_rewards(game, rewards)
