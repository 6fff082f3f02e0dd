"""What a game of Kropki is worth: scores, what they pay, and in whose region each node lies."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import Record
from ninetka_env.games.kropki.geometry import REGION
from ninetka_env.games.kropki.rules import num_nodes


@jit
def write_scores(game: Record, scores: npt.NDArray[Any]) -> None:
    """Write the number of opposing points in each seat's regions, (2,)."""
    for seat in range(2):
        scores[seat] = game.score[seat]


@jit
def write_score_rewards(game: Record, rewards: npt.NDArray[np.float32]) -> None:
    """Write (own score - the other's) / N for each seat, (2,) float32; N is the number of nodes."""
    lead = (int(game.score[0]) - int(game.score[1])) / num_nodes(game)
    rewards[0], rewards[1] = lead, -lead


@jit
def write_targets(game: Record, targets: npt.NDArray[np.int8]) -> None:
    """Write the seat in whose region each node lies, int8; -1 for none, and beyond the nodes of the board."""
    nodes, first = num_nodes(game), int(game.width) + 1
    for node in range(nodes):
        targets[node] = ((int(game.cell[first + node]) & REGION) >> 2) - 1
    for node in range(nodes, len(targets)):
        targets[node] = -1
