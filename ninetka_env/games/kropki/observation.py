"""From a game and a viewer to the numpy observation: the table of planes, and the compiled code that draws them.

Planes are height x width, int8, 0 or 1. "Own" and "opposing" are the viewer's words.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import Record
from ninetka_env.games.kropki.geometry import ENCLOSED, LIVE, MARK, POINT, REGION
from ninetka_env.games.kropki.rules import IMMEDIATE, forget_drawable, mark_drawable, next_drawable, num_nodes


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
(
    _OWN, _OPPOSING, _OWN_INERT, _OPPOSING_INERT, _OWN_REGION, _OPPOSING_REGION, _FREE, _OWN_ENCLOSED,
    _OPPOSING_ENCLOSED, _DRAWABLE, _LAST, _DRAWING, _BLACK, _TO_MOVE,
) = range(NUM_PLANES)  # fmt: skip

Tensor = npt.NDArray[np.int8]
Cells = npt.NDArray[np.uint8]


@jit(counted=False)
def write_observation(game: Record, viewer: int, planes: Tensor) -> None:
    """Draw all planes of `game` as seen by seat `viewer` into `planes`, (14 * N,) int8."""
    write_slow_planes(game, viewer, planes)
    write_fast_planes(game, viewer, planes)


@jit(counted=False)
def write_slow_planes(game: Record, viewer: int, planes: Tensor) -> None:
    """Draw the planes that never change for a viewer who is to move: that it is, and what the rule leaves empty."""
    _fill(game, planes, _TO_MOVE, viewer == game.to_move)
    if game.territory == IMMEDIATE:
        _fill(game, planes, _DRAWABLE, 0)
        _fill(game, planes, _DRAWING, 0)


@jit(counted=False)
def write_fast_planes(game: Record, viewer: int, planes: Tensor) -> None:
    """Draw all other planes."""
    nodes, first = num_nodes(game), int(game.width) + 1
    cell, own, opposing = game.cell[first : first + nodes], viewer + 1, 2 - viewer
    own_bit, opposing_bit = ENCLOSED << viewer, ENCLOSED << (1 - viewer)
    _mark(cell, LIVE, own, planes, _OWN)
    _mark(cell, LIVE, opposing, planes, _OPPOSING)
    _mark_but(cell, POINT, own, REGION, 0, planes, _OWN_INERT)
    _mark_but(cell, POINT, opposing, REGION, 0, planes, _OPPOSING_INERT)
    _mark(cell, REGION, own << 2, planes, _OWN_REGION)
    _mark(cell, REGION, opposing << 2, planes, _OPPOSING_REGION)
    _mark(cell, LIVE, 0, planes, _FREE)
    _mark_but(cell, own_bit, own_bit, REGION, own << 2, planes, _OWN_ENCLOSED)
    _mark_but(cell, opposing_bit, opposing_bit, REGION, opposing << 2, planes, _OPPOSING_ENCLOSED)
    _fill(game, planes, _LAST, 0)
    if game.last >= 0:
        planes[_LAST * nodes + int(game.last)] = 1
    _fill(game, planes, _BLACK, viewer == 0)
    if game.territory != IMMEDIATE:
        _write_drawable(game, planes)
        _fill(game, planes, _DRAWING, game.placed)


@jit(counted=False)
def _write_drawable(game: Record, planes: Tensor) -> None:
    if game.placed == 0:
        _fill(game, planes, _DRAWABLE, 0)
        return
    point, left = -1, int(game.held[game.to_move])
    while left:
        point = next_drawable(game, point)
        left -= mark_drawable(game, point)
    nodes, first = num_nodes(game), int(game.width) + 1
    _mark(game.cell[first : first + nodes], MARK, MARK, planes, _DRAWABLE)
    forget_drawable(game)


@jit(counted=False)
def _fill(game: Record, planes: Tensor, plane: int, value: int) -> None:
    """Fill one plane."""
    nodes = num_nodes(game)
    planes[plane * nodes : (plane + 1) * nodes] = value


@jit(counted=False)
def _mark(cell: Cells, bits: int, value: int, planes: Tensor, plane: int) -> None:
    """Mark the nodes some bits of which have a value."""
    _mark_but(cell, bits, value, 0, 1, planes, plane)


@jit(counted=False)
def _mark_but(cell: Cells, bits: int, value: int, others: int, but: int, planes: Tensor, plane: int) -> None:
    """Mark the nodes some bits of which have a value, but for those other bits of which have another one."""
    target = planes[plane * len(cell) : (plane + 1) * len(cell)]
    bits_, value_, others_, but_ = np.uint8(bits), np.uint8(value), np.uint8(others), np.uint8(but)
    for node in range(len(cell)):  # bytes compared with bytes: that is what lets this loop vectorise
        target[node] = ((cell[node] & bits_) == value_) & ((cell[node] & others_) != but_)
