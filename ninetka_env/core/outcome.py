"""Outcomes of games: constants for games without a winner, and the rewards of each seat."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import Record, write_score_rewards, write_win_rewards

DRAWN = -1
"""Used in place of a winning seat if a game is drawn."""
UNFINISHED = -2
"""Used in place of a winning seat if the winner is open, not stated or not proven."""

REWARDS = ("win", "score")
"""`"win"`: +1 for the winner, -1 / (n - 1) for each other seat, 0 for all if drawn. `"score"`: depends on the margin;
each game defines how. Both sum to zero. Compiled code receives a reward's index in this tuple."""


@jit
def write_rewards(game: Record, kind: int, rewards: npt.NDArray[np.float32]) -> None:
    """Write the rewards of a finished game to `rewards`, (n,) float32; `kind` is an index into `REWARDS`."""
    if kind == 1:
        write_score_rewards(game, rewards)
    else:
        write_win_rewards(game, rewards)
