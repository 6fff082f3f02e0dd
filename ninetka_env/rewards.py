"""What a finished game pays to each seat."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_env._jit import jit, popcount
from ninetka_env.geometry import NUM_SECTIONS
from ninetka_env.rules import Record, Records, winner_of

REWARDS = ("win", "score")
"""`"win"`: +1 for the winner, -1 / (n - 1) for each other seat. `"score"`: (own score - mean of all scores) / 9.
Both sum to zero. Compiled code knows a kind by its index in this tuple."""


@jit
def write_rewards(game: Record, kind: int, rewards: npt.NDArray[np.float32]) -> None:
    """Write what the finished `game` pays into `rewards`, (n,) float32."""
    n = game.num_players
    if kind == 0:
        rewards[:n] = -1.0 / (n - 1)
        rewards[winner_of(game)] = 1.0
        return
    total = 0
    for seat in range(n):
        total += popcount(game.owned[seat])
    for seat in range(n):
        rewards[seat] = (popcount(game.owned[seat]) - total / n) / NUM_SECTIONS


@jit
def write_rewards_of(games: Records, index: int, kind: int, rewards: npt.NDArray[np.float32]) -> None:
    """Write the rewards of game `index`; the entry from Python."""
    write_rewards(games[index], kind, rewards)
