"""Describe what a new point in a game of Kropki would enclose, for players and analysis.

The web app calls `find_enclosures` in `ninetka_web/games/kropki.py`. The rules about enclosures are in `regions.py`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.kropki.game import Game
from ninetka_env.games.kropki.geometry import ENCLOSED, LIVE_MASK, NUM_SECTORS
from ninetka_env.games.kropki.regions import ring_of
from ninetka_env.games.kropki.rules import mover, num_nodes, play


def find_enclosures(game: Game) -> dict[int, list[int]]:
    """Return the nodes that a new point of the seat to move would enclose, for each free node.

    Nodes that the seat already encloses are left out. Nodes count as enclosed even if none has an opposing point.

    Returns:
        A dict from the node of the new point to the nodes that the point encloses, both ascending. New points that
        enclose nothing are left out. The dict is empty if the game is over or the seat to move is drawing.
    """
    found: dict[int, list[int]] = {}
    if game.is_over or game.drawing:
        return found
    pairs = np.zeros((4 * game.width * game.height, 2), np.int64)
    for node, enclosed in pairs[: _write_enclosures(game.records, game.records.copy(), pairs)].tolist():
        found.setdefault(node, []).append(enclosed)
    return found


@jit
def _write_enclosures(games: StateArray, scratch: StateArray, pairs: npt.NDArray[np.int64]) -> int:
    """Write pairs (node of the new point, enclosed node) until `pairs` is full, and return the number of pairs.

    Only a point with at least two sectors (see `geometry`) can enclose anything new. `scratch`, (1,), is overwritten.
    """
    game, count, first = games[0], 0, int(games[0].width) + 1
    live, bit = mover(game) + 1, ENCLOSED << mover(game)
    for node in range(num_nodes(game)):
        if game.cell[first + node] & LIVE_MASK or NUM_SECTORS[ring_of(game, first + node, LIVE_MASK, live)] < 2:
            continue
        scratch[0] = game
        play(scratch[0], node)
        for other in range(num_nodes(game)):
            if scratch[0].cell[first + other] & ~game.cell[first + other] & bit and count < len(pairs):
                pairs[count, 0], pairs[count, 1] = node, other
                count += 1
    return count
