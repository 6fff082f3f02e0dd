"""What a game of 9tka is worth: scores, what they pay, and who owns which section."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit, popcount
from ninetka_env.core.verbs import Record
from ninetka_env.games.ninetka.geometry import NUM_SECTIONS


@jit
def write_scores(game: Record, scores: npt.NDArray[Any]) -> None:
    """Write the number of sections that each seat owns, (n,)."""
    for seat in range(game.num_players):
        scores[seat] = popcount(game.owned[seat])


@jit
def write_score_rewards(game: Record, rewards: npt.NDArray[np.float32]) -> None:
    """Write (own score - mean of all scores) / 9 for each seat, (n,) float32."""
    n, total = game.num_players, 0
    for seat in range(n):
        total += popcount(game.owned[seat])
    for seat in range(n):
        rewards[seat] = (popcount(game.owned[seat]) - total / n) / NUM_SECTIONS


@jit
def write_targets(game: Record, targets: npt.NDArray[np.int8]) -> None:
    """Write the seat that owns each section, (9,) int8; -1 where nobody has strictly most stones."""
    for section in range(NUM_SECTIONS):
        targets[section] = -1
        for seat in range(game.num_players):
            if (game.owned[seat] >> section) & 1:
                targets[section] = seat
