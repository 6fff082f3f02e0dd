"""Describe what a new point in a game of Kropki would enclose, for players and analysis."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import Records
from ninetka_env.games.kropki.game import Game
from ninetka_env.games.kropki.geometry import ENCLOSED, LIVE, NUM_SECTORS
from ninetka_env.games.kropki.regions import ring_of
from ninetka_env.games.kropki.rules import mover, num_nodes, play


def find_enclosures(game: Game) -> dict[int, list[int]]:
    """Return which nodes the seat to move would newly enclose by a point on each free node.

    Nodes count as enclosed whether or not there are opposing points among them.

    Returns:
        Maps the node of the point to the nodes that it encloses, both ascending. Nodes that enclose nothing are left
        out; the result is empty if the game is over or the seat to move is drawing.
    """
    found: dict[int, list[int]] = {}
    if game.is_over or game.drawing:
        return found
    pairs = np.zeros((4 * game.width * game.height, 2), np.int64)
    for node, enclosed in pairs[: _write_enclosures(game.records, game.records.copy(), pairs)].tolist():
        found.setdefault(node, []).append(enclosed)
    return found


@jit
def _write_enclosures(games: Records, room: Records, pairs: npt.NDArray[np.int64]) -> int:
    """Write pairs (node, enclosed node) until `pairs` is full, and return their number.

    Only a point whose ring has at least two sectors can enclose anything new. `room` is scratch for one state.
    """
    game, count, first = games[0], 0, int(games[0].width) + 1
    live, bit = mover(game) + 1, ENCLOSED << mover(game)
    for node in range(num_nodes(game)):
        if game.cell[first + node] & LIVE or NUM_SECTORS[ring_of(game, first + node, LIVE, live)] < 2:
            continue
        room[0] = game
        play(room[0], node)
        for other in range(num_nodes(game)):
            if room[0].cell[first + other] & ~game.cell[first + other] & bit and count < len(pairs):
                pairs[count, 0], pairs[count, 1] = node, other
                count += 1
    return count
