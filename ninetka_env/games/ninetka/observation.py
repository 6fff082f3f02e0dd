"""Observations of 9tka: the table of planes, and the compiled code that writes them.

Planes are 11 x 11, int8, 0 or 1. Seats are *relative* to the viewer: relative seat r is seat `(viewer + r) % n`, so the
viewer is always relative seat 0. Networks do not read these planes; see `ninetka_agents.ninetka.features`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import frozen, jit, lowest
from ninetka_env.core.verbs import Record, relative_seat
from ninetka_env.games.ninetka.geometry import (
    EDGE,
    NEUTRAL_STONE,
    NUM_SQUARES,
    SECTION,
    SIZE,
    SLOT_SQUARE,
)
from ninetka_env.games.ninetka.rules import MOVEMENT, NEUTRAL, PLACEMENT, landing_square, movable_slots


class Planes(NamedTuple):
    """One row of the table of planes: planes `first .. first + number - 1` hold `meaning`."""

    name: str
    first: int
    number: int
    meaning: str


PLANES = (
    Planes("stones", 0, 4, "stones of relative seats 0..3, on the edge or settled"),
    Planes("neutral", 4, 1, "neutral stones"),
    Planes("phase", 5, 3, "the phase, one-hot: neutral, placement, movement (filled planes)"),
    Planes("num_players", 8, 3, "the number of players, one-hot: 2, 3, 4 (filled planes)"),
    Planes("to_move", 11, 4, "the relative seat to move, one-hot (filled planes)"),
    Planes("viewer", 15, 4, "the viewer's own seat, one-hot: the later seat wins ties (filled planes)"),
    Planes("movable", 19, 1, "edge stones, of all seats, that can still slide"),
    Planes("landing", 20, 1, "squares where the viewer's movable stones would come to rest"),
    Planes("owned", 21, 1, "sections that the viewer owns"),
    Planes("lost", 22, 1, "sections that another seat owns"),
)
"""The table of planes, in order."""

NUM_PLANES = PLANES[-1].first + PLANES[-1].number
SHAPE = (NUM_PLANES, SIZE, SIZE)
"""Shape of an observation, (C, 11, 11)."""

_NEUTRAL, _PHASE, _NUM_PLAYERS, _TO_MOVE, _VIEWER, _MOVABLE, _LANDING, _OWNED, _LOST = (p.first for p in PLANES[1:])
_OWNED_ROWS = frozen(
    [[SECTION[s] >= 0 and owned >> SECTION[s] & 1 for s in range(SIZE + 1, 4 * SIZE)] for owned in range(8)], np.int8
)
"""(8, 32) int8: by bit set of owned sections among three neighbours in a row: their squares in three board rows, from
column B of the first row on."""

Tensor = npt.NDArray[np.int8]


@jit(inline=True)
def write_observation(game: Record, viewer: int, planes: Tensor) -> None:
    """Write all planes of `game` as seen by seat `viewer` into `planes`, (C * 121,) int8."""
    write_slow_planes(game, viewer, planes)
    write_fast_planes(game, viewer, planes)


@jit(inline=True)
def write_slow_planes(game: Record, viewer: int, planes: Tensor) -> None:
    """Clear all planes, and write the planes that `write_fast_planes` does not write.

    For a viewer who is to move, these planes do not change during a phase.
    """
    for plane in range(NUM_PLANES):
        _fill(planes, plane, 0)
    if game.phase != NEUTRAL:
        _write_stones(game, NEUTRAL_STONE, planes, _NEUTRAL)
    _fill(planes, _PHASE + game.phase, 1)
    _fill(planes, _NUM_PLAYERS + game.num_players - 2, 1)
    _fill(planes, _TO_MOVE + relative_seat(game.to_move, viewer, game.num_players), 1)


@jit(inline=True)
def write_fast_planes(game: Record, viewer: int, planes: Tensor) -> None:
    """Write the planes that may change with every ply of a phase: stones, viewer, movable, landing, owned and lost."""
    for seat in range(game.num_players):
        _write_stones(game, seat + 1, planes, relative_seat(seat, viewer, game.num_players))
        _fill(planes, _VIEWER + seat, seat == viewer)
    if game.phase == NEUTRAL:
        _write_stones(game, NEUTRAL_STONE, planes, _NEUTRAL)
        return
    _write_movable(game, planes)
    _write_landing(game, viewer, planes)
    if game.phase == MOVEMENT:
        _write_owners(game, viewer, planes)


@jit(inline=True)
def _write_movable(game: Record, planes: Tensor) -> None:
    movable = planes[_MOVABLE * NUM_SQUARES : _LANDING * NUM_SQUARES]
    if game.phase == PLACEMENT:  # every edge stone can slide, and a loop over the whole board is faster
        for square in range(NUM_SQUARES):
            movable[square] = EDGE[square] & (game.board[square] != 0)
        return
    movable[:] = 0
    bits = movable_slots(game)
    while bits:
        movable[SLOT_SQUARE[lowest(bits)]] = 1
        bits &= bits - 1


@jit(inline=True)
def _write_landing(game: Record, viewer: int, planes: Tensor) -> None:
    landing = planes[_LANDING * NUM_SQUARES : _OWNED * NUM_SQUARES]
    landing[:] = 0
    bits = game.movable[viewer]
    while bits:
        landing[landing_square(game, lowest(bits))] = 1
        bits &= bits - 1


@jit(inline=True)
def _fill(planes: Tensor, plane: int, value: int) -> None:
    """Fill one plane."""
    first = int(plane) * NUM_SQUARES
    squares = planes[first : first + NUM_SQUARES]
    for square in range(NUM_SQUARES):  # a loop of fixed length compiles to a few wide stores
        squares[square] = value


@jit(inline=True)
def _write_stones(game: Record, code: int, planes: Tensor, plane: int) -> None:
    """Mark the squares with cell code `code`."""
    cell, first = np.int8(code), int(plane) * NUM_SQUARES
    squares = planes[first : first + NUM_SQUARES]
    for square in range(NUM_SQUARES):
        squares[square] = game.board[square] == cell  # comparing int8 with int8 lets this loop vectorise


@jit(inline=True)
def _write_owners(game: Record, viewer: int, planes: Tensor) -> None:
    """Write the planes `owned` and `lost`."""
    owned, lost = game.owned[viewer], 0
    for seat in range(game.num_players):
        lost |= game.owned[seat]
    lost &= ~owned
    for band in range(3):
        first = (3 * band + 1) * SIZE + 1
        _copy_rows(_OWNED_ROWS[owned >> 3 * band & 7], planes, _OWNED * NUM_SQUARES + first)
        _copy_rows(_OWNED_ROWS[lost >> 3 * band & 7], planes, _LOST * NUM_SQUARES + first)


@jit(inline=True)
def _copy_rows(rows: Tensor, planes: Tensor, first: int) -> None:
    target = planes[first : first + 32]
    for place in range(32):  # numba's slice assignment is slower, because it checks for overlap
        target[place] = rows[place]
