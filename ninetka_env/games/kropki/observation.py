"""Observations of Kropki: the table of planes, and the compiled code that writes them.

Start reading at `PLANES`. The network of Kropki reads these planes, too: see `ninetka_agents.kropki.network`.

Planes are height x width, int8, 0 or 1. "Own" and "opposing" are relative to the viewer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.bits import WORD_BITS, Words, clear_words, fill_bits, get_bit, or_bits, set_bit
from ninetka_env.core.jit import jit, lowest_bit, readonly_array
from ninetka_env.core.verbs import State
from ninetka_env.games.kropki.geometry import EDGE, ENCLOSED, LIVE_MASK, POINT_MASK, REGION_MASK
from ninetka_env.games.kropki.regions import any_neighbour_has, count_drawable, drawable_node
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
_OWN, _OPPOSING, _OWN_INERT = range(3)
_OPPOSING_REGION, _FREE = 5, 6
"""The planes from `_OWN_INERT` to `_OPPOSING_REGION` are empty as long as there are no regions."""
_DRAWABLE, _LAST, _DRAWING, _BLACK, _TO_MOVE = range(9, NUM_PLANES)
"""The planes that are not computed by a test of each node's cell."""

Int8Array = npt.NDArray[np.int8]
Cells = npt.NDArray[np.uint8]


def _plane_tests(viewer: int) -> list[tuple[int, int, int, int]]:
    """Return a test of a node's cell for each of the first planes, as (bits, value, other bits, excluded value).

    A cell passes if `cell & bits == value` and `cell & other_bits != excluded`. If the last two are 0 and 1, the second
    condition is always true.
    """
    own, opposing = viewer + 1, 2 - viewer
    own_bit, opposing_bit = ENCLOSED << viewer, ENCLOSED << (1 - viewer)
    return [
        (LIVE_MASK, own, 0, 1), (LIVE_MASK, opposing, 0, 1),
        (POINT_MASK, own, REGION_MASK, 0), (POINT_MASK, opposing, REGION_MASK, 0),
        (REGION_MASK, own << 2, 0, 1), (REGION_MASK, opposing << 2, 0, 1),
        (LIVE_MASK, 0, 0, 1),
        (own_bit, own_bit, REGION_MASK, own << 2), (opposing_bit, opposing_bit, REGION_MASK, opposing << 2),
    ]  # fmt: skip


_PLANE_TESTS = readonly_array([_plane_tests(viewer) for viewer in range(2)], np.uint8)
"""(2, 9, 4) uint8: by viewer and plane: bits, value, other bits, excluded value; see `_plane_tests`."""


@jit(refcount=False)
def write_observation(game: State, viewer: int, planes: Int8Array) -> None:
    """Write all planes of `game` as seen by seat `viewer` into `planes`, (14 * N,) int8."""
    write_slow_planes(game, viewer, planes)
    write_fast_planes(game, viewer, planes)


@jit(refcount=False)
def write_slow_planes(game: State, viewer: int, planes: Int8Array) -> None:
    """Clear all planes, and write `to_move`, the only plane that `write_fast_planes` does not write.

    Batches call this once per game: their viewer is always the seat to move, so `to_move` does not change.
    """
    nodes = num_nodes(game)
    planes[:] = 0
    planes[_TO_MOVE * nodes : (_TO_MOVE + 1) * nodes] = viewer == game.to_move


@jit(refcount=False)
def write_fast_planes(game: State, viewer: int, planes: Int8Array) -> None:
    """Write all planes except `to_move`. `planes` must be cleared, or contain an earlier position of the same game.

    Planes that are still empty are not written. For example, the planes of regions stay empty until the first region is
    drawn, because regions never disappear.
    """
    nodes, first = num_nodes(game), int(game.width) + 1
    cell, regions = game.cell[first : first + nodes], game.score[0] + game.score[1] > 0
    for plane in range(_DRAWABLE):
        if regions or not _OWN_INERT <= plane <= _OPPOSING_REGION:
            _write_tested_plane(cell, _PLANE_TESTS[viewer, plane], planes[plane * nodes : (plane + 1) * nodes])
    planes[_LAST * nodes : (_LAST + 1) * nodes] = 0
    if game.last >= 0:
        planes[_LAST * nodes + int(game.last)] = 1
    planes[_BLACK * nodes : (_BLACK + 1) * nodes] = viewer == 0
    if game.drawing or planes[_DRAWING * nodes]:
        planes[_DRAWING * nodes : (_DRAWING + 1) * nodes] = game.drawing
        planes[_DRAWABLE * nodes : (_DRAWABLE + 1) * nodes] = 0
        if game.drawing:
            _write_drawable(game, planes[_DRAWABLE * nodes : (_DRAWABLE + 1) * nodes])


@jit(refcount=False)
def _write_tested_plane(cell: Cells, test: Cells, plane: Int8Array) -> None:
    """Write a plane: 1 for the nodes that pass a test of `_PLANE_TESTS`, else 0."""
    bits, value, other_bits, excluded = test
    for node in range(len(cell)):  # comparing bytes with bytes lets this loop vectorise
        plane[node] = ((cell[node] & bits) == value) & ((cell[node] & other_bits) != excluded)


@jit(refcount=False)
def _write_drawable(game: State, plane: Int8Array) -> None:
    """Mark the drawable cores: the nodes that name them, and the enclosed nodes connected to these nodes."""
    for number in range(count_drawable(game)):
        node = drawable_node(game, number)
        plane[node] = 1
        if any_neighbour_has(game, node + int(game.width) + 1, ENCLOSED << mover(game)):
            _fill_core(game, plane, node)


@jit(refcount=False)
def _fill_core(game: State, plane: Int8Array, node: int) -> None:
    """Mark the core of a marked node: sweep down and up over the marked nodes and one row beyond until nothing changes.

    Unlike `flood_fill`, this does not write to the state, because an observation must not change it.
    """
    w, low, high, grown = int(game.width), node, node, True
    while grown:
        grown, here = False, low - w
        while here <= high + w:
            if _mark_neighbour(game, plane, here):
                grown, low, high = True, min(low, here), max(high, here)
            here += 1
        while here >= low - w:
            if _mark_neighbour(game, plane, here):
                grown, low, high = True, min(low, here), max(high, here)
            here -= 1


@jit(refcount=False)
def _mark_neighbour(game: State, plane: Int8Array, node: int) -> bool:
    """Mark an enclosed node if a neighbour is marked; return whether it is newly marked.

    Enclosed nodes are never on the edge, so all four neighbours exist.
    """
    w = int(game.width)
    if plane[node] or game.cell[node + w + 1] & (ENCLOSED << mover(game)) == 0:
        return False
    plane[node] = plane[node - w] | plane[node - 1] | plane[node + 1] | plane[node + w]
    return plane[node] != 0


# Bits


def _other_planes(viewer: int, cell: int) -> int:
    """Return the bit set of the first planes that mark a node with this cell, except the live points and free nodes."""
    tests = enumerate(_plane_tests(viewer))
    passed = sum(
        (cell & bits == value and cell & other != excluded) << k for k, (bits, value, other, excluded) in tests
    )
    return passed & ~(1 << _OWN | 1 << _OPPOSING | 1 << _FREE)


_OTHER_PLANES = readonly_array([[_other_planes(viewer, cell) for cell in range(EDGE)] for viewer in range(2)], np.int64)
"""(2, 64) int64: by viewer and cell without `EDGE`: the planes of regions, inert points and enclosed cores."""


@jit(refcount=False)
def write_observation_bits(game: State, viewer: int, words: Words) -> None:
    """Write the numbers of `write_observation` as bits, (ceil(14 * N / 32),) uint32."""
    nodes = num_nodes(game)
    clear_words(words)
    for first in range(0, nodes, WORD_BITS):
        _write_cell_bits(game, viewer, first, words)
    if game.last >= 0:
        set_bit(words, _LAST * nodes + int(game.last))
    if viewer == 0:
        fill_bits(words, _BLACK * nodes, nodes)
    if viewer == game.to_move:
        fill_bits(words, _TO_MOVE * nodes, nodes)
    if game.drawing:
        fill_bits(words, _DRAWING * nodes, nodes)
        for number in range(count_drawable(game)):
            set_bit(words, _DRAWABLE * nodes + drawable_node(game, number))
        _fill_core_bits(game, words, _DRAWABLE * nodes)


@jit(refcount=False)
def _write_cell_bits(game: State, viewer: int, first: int, words: Words) -> None:
    """Write the planes that are computed from each node's cell, for the 32 nodes from `first` on."""
    nodes, cells = num_nodes(game), int(game.width) + 1 + first
    own, opposing, free = 0, 0, 0
    for k in range(min(WORD_BITS, nodes - first)):
        cell = int(game.cell[cells + k])
        live = cell & LIVE_MASK
        own |= int(live == viewer + 1) << k
        opposing |= int(live == 2 - viewer) << k
        free |= int(live == 0) << k
        planes = int(_OTHER_PLANES[viewer, cell & EDGE - 1])
        while planes:
            set_bit(words, lowest_bit(planes) * nodes + first + k)
            planes &= planes - 1
    or_bits(words, _OWN * nodes + first, own)
    or_bits(words, _OPPOSING * nodes + first, opposing)
    or_bits(words, _FREE * nodes + first, free)


@jit(refcount=False)
def _fill_core_bits(game: State, words: Words, plane: int) -> None:
    """Mark the cores of marked nodes in the plane that begins at `plane`: sweep down and up until nothing changes.

    Enclosed nodes are never on the edge, so all four neighbours exist.
    """
    nodes, w, enclosed = num_nodes(game), int(game.width), ENCLOSED << mover(game)
    grown, down = True, False
    while grown:
        grown, down = False, not down
        for number in range(nodes):
            node = number if down else nodes - 1 - number
            if game.cell[node + w + 1] & enclosed:
                place = plane + node
                around = get_bit(words, place - w) | get_bit(words, place - 1)
                around |= get_bit(words, place + w) | get_bit(words, place + 1)
                if around > get_bit(words, place):
                    set_bit(words, place)
                    grown = True
