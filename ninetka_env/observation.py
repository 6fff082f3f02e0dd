"""From a game and a viewer to the numpy observation: the table of planes, and the compiled code that draws them.

Planes are 11 x 11, int8, 0 or 1. Seats are *relative* to the viewer: relative seat r is seat `(viewer + r) % n`, so the
viewer is always relative seat 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env._jit import jit, lowest
from ninetka_env.geometry import (
    NEUTRAL_STONE,
    NUM_SQUARES,
    SECTION,
    SIZE,
    SLOT_SQUARE,
    frozen,
)
from ninetka_env.rules import MOVEMENT, Record, landing_square, movable_slots


class Planes(NamedTuple):
    """One row of the table of planes: planes `first .. first + count - 1` hold `meaning`."""

    name: str
    first: int
    count: int
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

NUM_PLANES = PLANES[-1].first + PLANES[-1].count
SHAPE = (NUM_PLANES, SIZE, SIZE)
"""Shape of an observation, (C, 11, 11)."""

_NEUTRAL, _PHASE, _NUM_PLAYERS, _TO_MOVE, _VIEWER, _MOVABLE, _LANDING, _OWNED, _LOST = (p.first for p in PLANES[1:])
_OWNED_ROWS = frozen(
    [[SECTION[s] >= 0 and owned >> SECTION[s] & 1 for s in range(SIZE + 1, 4 * SIZE)] for owned in range(8)], np.int8
)
"""(8, 32) int8: the owned ones among three neighbouring sections, drawn in three board rows from column B on."""

Tensor = npt.NDArray[np.int8]


@jit
def write_observation(game: Record, viewer: int, planes: Tensor) -> None:
    """Draw all planes of `game` as seen by seat `viewer` into `planes`, (C * 121,) int8."""
    write_slow_planes(game, viewer, planes)
    write_fast_planes(game, viewer, planes)


@jit
def write_slow_planes(game: Record, viewer: int, planes: Tensor) -> None:
    """Draw the planes that `write_fast_planes` leaves alone.

    While a phase lasts they stay as they are for a viewer who is to move, but for new neutral stones.
    """
    _fill(planes, game.num_players, _NEUTRAL, 0)
    _write_stones(game, NEUTRAL_STONE, planes, _NEUTRAL)
    _fill(planes, _PHASE, _VIEWER, 0)
    for plane in (
        _PHASE + game.phase,
        _NUM_PLAYERS + game.num_players - 2,
        _TO_MOVE + _relative(game, game.to_move, viewer),
    ):
        _fill(planes, plane, plane + 1, 1)
    _fill(planes, _OWNED, NUM_PLANES, 0)


@jit
def write_fast_planes(game: Record, viewer: int, planes: Tensor) -> None:
    """Draw the planes that may change with every ply: stones, viewer, movable, landing and, in movement, owners."""
    for seat in range(game.num_players):
        _write_stones(game, seat + 1, planes, _relative(game, seat, viewer))
    _fill(planes, _VIEWER, _OWNED, 0)
    _fill(planes, _VIEWER + viewer, _VIEWER + viewer + 1, 1)
    bits = movable_slots(game)
    while bits:
        planes[_MOVABLE * NUM_SQUARES + SLOT_SQUARE[lowest(bits)]] = 1
        bits &= bits - 1
    bits = game.movable[viewer]
    while bits:
        planes[_LANDING * NUM_SQUARES + landing_square(game, lowest(bits))] = 1
        bits &= bits - 1
    if game.phase == MOVEMENT:
        _write_owners(game, viewer, planes)


@jit
def _relative(game: Record, seat: int, viewer: int) -> int:
    return seat - viewer if seat >= viewer else seat - viewer + game.num_players


@jit
def _fill(planes: Tensor, first: int, stop: int, value: int) -> None:
    """Fill the planes first..stop-1."""
    planes[first * NUM_SQUARES : stop * NUM_SQUARES] = value


@jit
def _write_stones(game: Record, code: int, planes: Tensor, plane: int) -> None:
    """Mark the squares with cell code `code` (comparing int8 with int8 is what lets this loop vectorise)."""
    cell, squares = np.int8(code), planes[plane * NUM_SQUARES : (plane + 1) * NUM_SQUARES]
    for square in range(NUM_SQUARES):
        squares[square] = game.board[square] == cell


@jit
def _write_owners(game: Record, viewer: int, planes: Tensor) -> None:
    """Draw the planes `owned` and `lost`."""
    owned, lost = game.owned[viewer], 0
    for seat in range(game.num_players):
        lost |= game.owned[seat]
    lost &= ~owned
    for band in range(3):
        first = (3 * band + 1) * SIZE + 1
        _copy_rows(_OWNED_ROWS[owned >> 3 * band & 7], planes, _OWNED * NUM_SQUARES + first)
        _copy_rows(_OWNED_ROWS[lost >> 3 * band & 7], planes, _LOST * NUM_SQUARES + first)


@jit
def _copy_rows(rows: Tensor, planes: Tensor, first: int) -> None:
    target = planes[first : first + 32]
    for place in range(32):  # a plain loop: numba's slice assignment checks for overlap, which takes longer than this
        target[place] = rows[place]
