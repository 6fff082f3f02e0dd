"""Observations of Kropki: the table of planes, and the compiled code that writes them.

Planes are height x width, int8, 0 or 1. "Own" and "opposing" are relative to the viewer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import frozen, inner, jit
from ninetka_env.core.verbs import Record
from ninetka_env.games.kropki.geometry import ENCLOSED, LIVE, POINT, REGION
from ninetka_env.games.kropki.regions import beside, count_drawable, drawable_node
from ninetka_env.games.kropki.rules import mover, num_nodes


class Plane(NamedTuple):
    """One row of the table of planes."""

    name: str
    meaning: str


PLANES = (
    Plane("own", "own live points"),
    Plane("opposing", "opposing live points"),
    Plane("own_inert", "own points in a region of either seat"),
    Plane("opposing_inert", "opposing points in a region of either seat"),
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
_OWN_INERT, _OPPOSING_REGION = 2, 5
"""The first and the last plane that are empty as long as there are no regions."""
_DRAWABLE, _LAST, _DRAWING, _BLACK, _TO_MOVE = range(9, NUM_PLANES)
"""The planes that do not follow from each node's cell alone."""

Tensor = npt.NDArray[np.int8]
Cells = npt.NDArray[np.uint8]


def _tests(viewer: int) -> list[tuple[int, int, int, int]]:
    """Return a test of a node's cell for each of the first planes, as (bits, value, other bits, excluded value).

    A cell passes if `cell & bits == value` and `cell & other_bits != excluded`. With (0, 1) the second part is true.
    """
    own, opposing = viewer + 1, 2 - viewer
    own_bit, opposing_bit = ENCLOSED << viewer, ENCLOSED << (1 - viewer)
    return [
        (LIVE, own, 0, 1), (LIVE, opposing, 0, 1),
        (POINT, own, REGION, 0), (POINT, opposing, REGION, 0),
        (REGION, own << 2, 0, 1), (REGION, opposing << 2, 0, 1),
        (LIVE, 0, 0, 1),
        (own_bit, own_bit, REGION, own << 2), (opposing_bit, opposing_bit, REGION, opposing << 2),
    ]  # fmt: skip


_TESTS = frozen([_tests(viewer) for viewer in range(2)], np.uint8)
"""(2, 9, 4) uint8: by viewer and plane: bits, value, other bits, excluded value; see `_tests`."""


@jit(counted=False)
def write_observation(game: Record, viewer: int, planes: Tensor) -> None:
    """Write all planes of `game` as seen by seat `viewer` into `planes`, (14 * N,) int8."""
    write_slow_planes(game, viewer, planes)
    write_fast_planes(game, viewer, planes)


@jit(counted=False)
def write_slow_planes(game: Record, viewer: int, planes: Tensor) -> None:
    """Write the plane that never changes for a viewer who is to move, and clear the others."""
    nodes = num_nodes(game)
    planes[:] = 0
    planes[_TO_MOVE * nodes : (_TO_MOVE + 1) * nodes] = viewer == game.to_move


@jit(counted=False)
def write_fast_planes(game: Record, viewer: int, planes: Tensor) -> None:
    """Write all other planes that may differ from the earlier position of the game in `planes`.

    Regions never disappear, so the planes of regions are still empty as long as there are no regions.
    """
    nodes, first = num_nodes(game), int(game.width) + 1
    cell, regions = game.cell[first : first + nodes], game.score[0] + game.score[1] > 0
    for plane in range(_DRAWABLE):
        if regions or not _OWN_INERT <= plane <= _OPPOSING_REGION:
            _mark(cell, _TESTS[viewer, plane], planes[plane * nodes : (plane + 1) * nodes])
    planes[_LAST * nodes : (_LAST + 1) * nodes] = 0
    if game.last >= 0:
        planes[_LAST * nodes + int(game.last)] = 1
    planes[_BLACK * nodes : (_BLACK + 1) * nodes] = viewer == 0
    if game.placed or planes[_DRAWING * nodes]:
        planes[_DRAWING * nodes : (_DRAWING + 1) * nodes] = game.placed
        planes[_DRAWABLE * nodes : (_DRAWABLE + 1) * nodes] = 0
        if game.placed:
            _write_drawable(game, planes[_DRAWABLE * nodes : (_DRAWABLE + 1) * nodes])


@inner
def _mark(cell: Cells, test: Cells, plane: Tensor) -> None:
    """Write a plane: 1 for the nodes that pass a test of `_TESTS`, else 0."""
    bits, value, others, but = test
    for node in range(len(cell)):  # comparing bytes with bytes lets this loop vectorise
        plane[node] = ((cell[node] & bits) == value) & ((cell[node] & others) != but)


@inner
def _write_drawable(game: Record, plane: Tensor) -> None:
    """Mark the cores that may be drawn: the enclosed nodes that are connected to the nodes that name them."""
    for number in range(count_drawable(game)):
        node = drawable_node(game, number)
        plane[node] = 1
        if beside(game, node + int(game.width) + 1, ENCLOSED << mover(game)):
            _fill_core(game, plane, node)


@inner
def _fill_core(game: Record, plane: Tensor, node: int) -> None:
    """Mark the core of a marked node: sweep down and up over the marked nodes and one row beyond until nothing changes.

    This needs no queue in the state, because writing an observation must not change the state.
    """
    w, low, high, grown = int(game.width), node, node, True
    while grown:
        grown, here = False, low - w
        while here <= high + w:
            if _grow(game, plane, here):
                grown, low, high = True, min(low, here), max(high, here)
            here += 1
        while here >= low - w:
            if _grow(game, plane, here):
                grown, low, high = True, min(low, here), max(high, here)
            here -= 1


@inner
def _grow(game: Record, plane: Tensor, node: int) -> bool:
    """Mark an enclosed node if a neighbour is marked; return whether it is newly marked.

    Enclosed nodes are never on the edge, so all four neighbours exist.
    """
    w = int(game.width)
    if plane[node] or game.cell[node + w + 1] & (ENCLOSED << mover(game)) == 0:
        return False
    plane[node] = plane[node - w] | plane[node - 1] | plane[node + 1] | plane[node + w]
    return plane[node] != 0
