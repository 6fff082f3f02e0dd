"""From a game and a viewer to the numpy observation: the table of planes, and the compiled code that draws them.

Planes are height x width, int8, 0 or 1. "Own" and "opposing" are the viewer's words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit
from ninetka_env.core.tables import frozen
from ninetka_env.core.verbs import Record
from ninetka_env.games.kropki.geometry import ENCLOSED, LIVE, POINT, REGION
from ninetka_env.games.kropki.regions import count_drawable, drawable_node
from ninetka_env.games.kropki.rules import IMMEDIATE, mover, num_nodes


class Plane(NamedTuple):
    """One row of the table of planes."""

    name: str
    meaning: str


PLANES = (
    Plane("own", "own live points"),
    Plane("opposing", "opposing live points"),
    Plane("own_inert", "own points in anybody's region"),
    Plane("opposing_inert", "opposing points in anybody's region"),
    Plane("own_region", "nodes in an own region"),
    Plane("opposing_region", "nodes in an opposing region"),
    Plane("free", "free nodes: no point, and in no region"),
    Plane("own_enclosed", "cores that the viewer encloses and has not drawn"),
    Plane("opposing_enclosed", "cores that the opponent encloses and has not drawn"),
    Plane("drawable", "cores that the seat to move may draw now; empty if the rules draw"),
    Plane("last", "the point placed last"),
    Plane("drawing", "the seat to move has placed its point and may draw (filled); empty if the rules draw"),
    Plane("black", "the viewer is Black (filled)"),
    Plane("to_move", "the viewer is to move (filled)"),
)
"""The table of planes, in order."""

NUM_PLANES = len(PLANES)
_DRAWABLE, _LAST, _DRAWING, _BLACK, _TO_MOVE = range(9, NUM_PLANES)
"""The planes that do not follow from each node's own byte."""

Tensor = npt.NDArray[np.int8]
Cells = npt.NDArray[np.uint8]


def _tests(viewer: int) -> list[tuple[int, int, int, int]]:
    """Return the test that a node's byte passes for each plane: some bits have a value, others another one than told.

    No bits of a byte are never 1: so the planes that are not told by nodes alone are empty here, or filled.
    """
    own, opposing = viewer + 1, 2 - viewer
    own_bit, opposing_bit = ENCLOSED << viewer, ENCLOSED << (1 - viewer)
    empty, filled = (0, 1, 0, 1), (0, 0, 0, 1)
    return [
        (LIVE, own, 0, 1), (LIVE, opposing, 0, 1),
        (POINT, own, REGION, 0), (POINT, opposing, REGION, 0),
        (REGION, own << 2, 0, 1), (REGION, opposing << 2, 0, 1),
        (LIVE, 0, 0, 1),
        (own_bit, own_bit, REGION, own << 2), (opposing_bit, opposing_bit, REGION, opposing << 2),
        empty, empty, empty, filled if viewer == 0 else empty, empty,
    ]  # fmt: skip


_TESTS = frozen([_tests(viewer) for viewer in range(2)], np.uint8)
"""(2, 14, 4) uint8: by viewer and plane: bits, their value, other bits, and the value that these do not have."""


@jit(counted=False)
def write_observation(game: Record, viewer: int, planes: Tensor) -> None:
    """Draw all planes of `game` as seen by seat `viewer` into `planes`, (14 * N,) int8."""
    write_slow_planes(game, viewer, planes)
    write_fast_planes(game, viewer, planes)


@jit(counted=False)
def write_slow_planes(game: Record, viewer: int, planes: Tensor) -> None:
    """Draw the planes that never change for a viewer who is to move: that it is, and what the rule leaves empty."""
    nodes = num_nodes(game)
    planes[_TO_MOVE * nodes : (_TO_MOVE + 1) * nodes] = viewer == game.to_move
    if game.territory == IMMEDIATE:
        planes[_DRAWABLE * nodes : (_DRAWABLE + 1) * nodes] = 0
        planes[_DRAWING * nodes : (_DRAWING + 1) * nodes] = 0


@jit(counted=False)
def write_fast_planes(game: Record, viewer: int, planes: Tensor) -> None:
    """Draw all other planes."""
    nodes, first = num_nodes(game), int(game.width) + 1
    cell = game.cell[first : first + nodes]
    for plane in range(NUM_PLANES):
        if plane < _DRAWABLE or plane in (_BLACK, _LAST):
            _mark(cell, _TESTS[viewer, plane], planes[plane * nodes : (plane + 1) * nodes])
    if game.last >= 0:
        planes[_LAST * nodes + int(game.last)] = 1
    if game.territory != IMMEDIATE:
        planes[_DRAWING * nodes : (_DRAWING + 1) * nodes] = game.placed
        planes[_DRAWABLE * nodes : (_DRAWABLE + 1) * nodes] = 0
        if game.placed:
            _write_drawable(game, planes[_DRAWABLE * nodes : (_DRAWABLE + 1) * nodes])


@jit(counted=False)
def _mark(cell: Cells, test: Cells, plane: Tensor) -> None:
    """Mark the nodes that pass a test of `_TESTS`."""
    bits, value, others, but = test
    for node in range(len(cell)):  # bytes compared with bytes: that is what lets this loop vectorise
        plane[node] = ((cell[node] & bits) == value) & ((cell[node] & others) != but)


@jit(counted=False)
def _write_drawable(game: Record, plane: Tensor) -> None:
    """Mark the cores that may be drawn: all that is enclosed and joined to the nodes that tell them."""
    for number in range(count_drawable(game)):
        plane[drawable_node(game, number)] = 1
    nodes, grown = len(plane), True
    while grown:
        grown = False
        for node in range(nodes):
            grown |= _grow(game, plane, node)
        for node in range(nodes):
            grown |= _grow(game, plane, nodes - 1 - node)


@jit(counted=False)
def _grow(game: Record, plane: Tensor, node: int) -> bool:
    """Mark a node that is enclosed, thus not on the edge, and beside one that is marked; tell whether it is new."""
    w = int(game.width)
    if plane[node] or game.cell[node + w + 1] & (ENCLOSED << mover(game)) == 0:
        return False
    plane[node] = plane[node - w] | plane[node - 1] | plane[node + 1] | plane[node + w]
    return plane[node] != 0
