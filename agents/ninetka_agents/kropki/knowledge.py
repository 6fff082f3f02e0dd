"""What searches ask of Kropki's own knowledge; see `ninetka_agents.search.knowledge`.

On large boards most nodes are far from everything that matters: the program oppai-rs (E. Kurnevsky) searches only near
to existing points.
"""

from __future__ import annotations

from ninetka_agents.search.choices import next_choice, remove_choice
from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import Record, Words
from ninetka_env.games.kropki.geometry import POINT

RADIUS = 1
"""Nodes so many rows and columns away from a point are near to it: its neighbours, orthogonal and diagonal."""


@jit
def keep_local(game: Record, choices: Words) -> None:
    """Keep the free nodes that are near to a point; all of them if there is none, and all choices of drawing."""
    if game.placed or game.plies + 4 * game.crossed == 0:
        return
    choice = next_choice(choices, -1)
    while choice >= 0:
        if not _is_near(game, choice):
            remove_choice(choices, choice)
        choice = next_choice(choices, choice)


@jit(counted=False)
def _is_near(game: Record, node: int) -> bool:
    width, height = int(game.width), int(game.height)
    row, column = node // width, node % width
    left, right = max(column - RADIUS, 0), min(column + RADIUS, width - 1)
    for there in range(max(row - RADIUS, 0), min(row + RADIUS, height - 1) + 1):
        first = (there + 1) * width + 1
        for cell in range(first + left, first + right + 1):
            if game.cell[cell] & POINT:
                return True
    return False
