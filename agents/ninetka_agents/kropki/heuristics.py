"""Heuristics of Kropki for searches; see `ninetka_agents.search.heuristics`.

On large boards most nodes are far from all points. As in the program oppai-rs (E. Kurnevsky), the tree and the playouts
consider only nodes near existing points.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_agents.search.choices import next_choice, remove_choice
from ninetka_agents.search.heuristics import Scratch
from ninetka_env.core.jit import jit
from ninetka_env.core.random_streams import Streams
from ninetka_env.core.verbs import BitSet, State, Trace, winner_of
from ninetka_env.games.kropki.choices import play_random_cells
from ninetka_env.games.kropki.geometry import LIVE_MASK, POINT_MASK
from ninetka_env.games.kropki.rules import draw_all, num_nodes

RADIUS = 1
"""A node is near a point if it is at most this many rows and columns away."""
PLAYOUT_RADIUS = 2
"""The radius in playouts."""

Rows = npt.NDArray[np.int64]
"""(height,) int64: a set of nodes as one bit set per row; the lowest bit is the first column."""


@jit
def keep_local(game: State, choices: BitSet) -> None:
    """Remove the choices of placing on a node that is not near an existing point.

    Nothing is removed if the board is empty, or while the seat to move is drawing regions.
    """
    if game.drawing:
        return
    rows, width = np.zeros(int(game.height), np.int64), int(game.width)
    _write_nodes_near_points(game, RADIUS, rows)
    choice = next_choice(choices, -1)
    while choice >= 0:
        if rows[choice // width] >> (choice % width) & 1 == 0:
            remove_choice(choices, choice)
        choice = next_choice(choices, choice)


@jit
def heavy_playout(game: State, streams: Streams, index: int, trace: Trace, scratch: Scratch) -> int:
    """Play at random on all nodes near the existing points, draw all regions, and return the winner or `DRAWN`.

    On a large board this is enough: the game is decided near its points long before the board is full.
    """
    rows, places = np.zeros(int(game.height), np.int64), np.empty(num_nodes(game), np.int16)
    _write_nodes_near_points(game, PLAYOUT_RADIUS, rows)
    count, width = 0, int(game.width)
    for row in range(len(rows)):
        first = (row + 1) * width + 1
        for column in range(width):
            places[count] = first + column
            count += (rows[row] >> column & 1) & (game.cell[first + column] & LIVE_MASK == 0)
    play_random_cells(game, streams, index, places[:count], trace)
    for seat in range(2):
        draw_all(game, seat)
    return winner_of(game)


@jit(refcount=False)
def _write_nodes_near_points(game: State, radius: int, rows: Rows) -> None:
    """Write the nodes near points, or all nodes if there is no point, to `rows`, which must be 0."""
    width, height = int(game.width), int(game.height)
    if game.free == width * height:
        rows[:] = -1
    for row in range(height):
        points, first = np.int64(0), (row + 1) * width + 1
        for column in range(width):
            points |= np.int64(game.cell[first + column] & POINT_MASK != 0) << column
        for _ in range(radius):
            points |= points << 1 | points >> 1
        for there in range(max(row - radius, 0), min(row + radius, height - 1) + 1):
            rows[there] |= points
