"""Outcomes of games: constants for games without a winner, and the rewards of each seat.

`winner_of` in `verbs.py` returns the winner of a game.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import State, write_score_rewards, write_win_rewards

DRAWN = -1
"""Used instead of a winning seat if a game is drawn."""
UNFINISHED = -2
"""Used instead of a winning seat if no seat has won, or the winner is not stated or not proven."""

REWARDS = ("win", "score")
"""`"win"`: of n seats, the winner gets +1 and each other seat -1 / (n - 1); if the game is drawn, all get 0. `"score"`:
depends on the scores; each game defines how. Both sum to zero. Compiled code receives the index in this tuple."""


@jit
def write_rewards(game: State, kind: int, rewards: npt.NDArray[np.float32]) -> None:
    """Write the rewards of a finished game to `rewards`, (n,) float32; `kind` is an index into `REWARDS`."""
    if kind == 1:
        write_score_rewards(game, rewards)
    else:
        write_win_rewards(game, rewards)
