"""Observations of 9tka: the table of planes, and the compiled code that writes them.

Planes are 11 x 11, int8, 0 or 1. Seats are *relative* to the viewer: relative seat r is seat `(viewer + r) % n`, so the
viewer is always relative seat 0. Networks do not read these planes; see `ninetka_agents.ninetka.features`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.bits import Words, clear_words, fill_bits, or_bits, set_bit
from ninetka_env.core.jit import jit, lowest_bit, readonly_array
from ninetka_env.core.verbs import State, relative_seat
from ninetka_env.games.ninetka.geometry import (
    EDGE,
    NEUTRAL_STONE,
    NUM_SQUARES,
    SECTION,
    SIZE,
    SLOT_SQUARE,
)
from ninetka_env.games.ninetka.rules import MOVEMENT, NEUTRAL, PLACEMENT, landing_square, movable_slots


class PlaneGroup(NamedTuple):
    """A row in the table of planes: the planes `first .. first + number - 1` and their meaning."""

    name: str
    first: int
    number: int
    meaning: str


PLANES = (
    PlaneGroup("stones", 0, 4, "stones of relative seats 0..3, on the edge or settled"),
    PlaneGroup("neutral", 4, 1, "neutral stones"),
    PlaneGroup("phase", 5, 3, "the phase, one-hot: neutral, placement, movement (filled planes)"),
    PlaneGroup("num_players", 8, 3, "the number of players, one-hot: 2, 3, 4 (filled planes)"),
    PlaneGroup("to_move", 11, 4, "the relative seat to move, one-hot (filled planes)"),
    PlaneGroup("viewer", 15, 4, "the viewer's own seat, one-hot: the later seat wins ties (filled planes)"),
    PlaneGroup("movable", 19, 1, "edge stones, of all seats, that can still slide"),
    PlaneGroup("landing", 20, 1, "squares where the viewer's movable stones would come to rest"),
    PlaneGroup("owned", 21, 1, "sections that the viewer owns"),
    PlaneGroup("lost", 22, 1, "sections that another seat owns"),
)
"""The table of planes, in order."""

NUM_PLANES = PLANES[-1].first + PLANES[-1].number
SHAPE = (NUM_PLANES, SIZE, SIZE)
"""Shape of an observation, (C, 11, 11)."""

_NEUTRAL, _PHASE, _NUM_PLAYERS, _TO_MOVE, _VIEWER, _MOVABLE, _LANDING, _OWNED, _LOST = (p.first for p in PLANES[1:])
_OWNED_ROWS = readonly_array(
    [[SECTION[s] >= 0 and owned >> SECTION[s] & 1 for s in range(SIZE + 1, 4 * SIZE)] for owned in range(8)], np.int8
)
"""(8, 32) int8: a plane's values in one band of three sections: 1 on the squares of owned sections, else 0.

The first index is the bit set of the band's owned sections. The second index counts squares from column B of the
band's first row on."""
_OWNED_BITS = readonly_array([sum(int(value) << k for k, value in enumerate(rows)) for rows in _OWNED_ROWS], np.int64)
"""(8,) int64: the rows of `_OWNED_ROWS` as bits."""

Int8Array = npt.NDArray[np.int8]


@jit(inline=True)
def write_observation(game: State, viewer: int, planes: Int8Array) -> None:
    """Write all planes of `game` as seen by seat `viewer` into `planes`, (C * 121,) int8."""
    write_slow_planes(game, viewer, planes)
    write_fast_planes(game, viewer, planes)


@jit(inline=True)
def write_slow_planes(game: State, viewer: int, planes: Int8Array) -> None:
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
def write_fast_planes(game: State, viewer: int, planes: Int8Array) -> None:
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
def _write_movable(game: State, planes: Int8Array) -> None:
    movable = planes[_MOVABLE * NUM_SQUARES : _LANDING * NUM_SQUARES]
    if game.phase == PLACEMENT:  # every edge stone can slide, and this loop is faster than one over the bits
        for square in range(NUM_SQUARES):
            movable[square] = EDGE[square] & (game.board[square] != 0)
        return
    movable[:] = 0
    bits = movable_slots(game)
    while bits:
        movable[SLOT_SQUARE[lowest_bit(bits)]] = 1
        bits &= bits - 1


@jit(inline=True)
def _write_landing(game: State, viewer: int, planes: Int8Array) -> None:
    landing = planes[_LANDING * NUM_SQUARES : _OWNED * NUM_SQUARES]
    landing[:] = 0
    bits = game.movable[viewer]
    while bits:
        landing[landing_square(game, lowest_bit(bits))] = 1
        bits &= bits - 1


@jit(inline=True)
def _fill(planes: Int8Array, plane: int, value: int) -> None:
    """Fill one plane."""
    first = int(plane) * NUM_SQUARES
    squares = planes[first : first + NUM_SQUARES]
    for square in range(NUM_SQUARES):  # a loop of fixed length compiles to a few wide stores
        squares[square] = value


@jit(inline=True)
def _write_stones(game: State, code: int, planes: Int8Array, plane: int) -> None:
    """Mark the squares with cell code `code`."""
    cell, first = np.int8(code), int(plane) * NUM_SQUARES
    squares = planes[first : first + NUM_SQUARES]
    for square in range(NUM_SQUARES):
        squares[square] = game.board[square] == cell  # comparing int8 with int8 lets this loop vectorise


@jit(inline=True)
def _write_owners(game: State, viewer: int, planes: Int8Array) -> None:
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
def _copy_rows(rows: Int8Array, planes: Int8Array, first: int) -> None:
    target = planes[first : first + 32]
    for place in range(32):  # numba's slice assignment is slower, because it checks for overlap
        target[place] = rows[place]


# Bits


@jit(refcount=False)
def write_observation_bits(game: State, viewer: int, words: Words) -> None:
    """Write the numbers of `write_observation` as bits, (87,) uint32."""
    players = int(game.num_players)
    clear_words(words)
    _write_stone_bits(game, viewer, words)
    _fill_bits(words, _PHASE + int(game.phase))
    _fill_bits(words, _NUM_PLAYERS + players - 2)
    _fill_bits(words, _TO_MOVE + relative_seat(game.to_move, viewer, players))
    _fill_bits(words, _VIEWER + int(viewer))
    if game.phase == NEUTRAL:
        return
    bits = movable_slots(game)
    while bits:
        set_bit(words, _MOVABLE * NUM_SQUARES + int(SLOT_SQUARE[lowest_bit(bits)]))
        bits &= bits - 1
    bits = game.movable[viewer]
    while bits:
        set_bit(words, _LANDING * NUM_SQUARES + landing_square(game, lowest_bit(bits)))
        bits &= bits - 1
    if game.phase == MOVEMENT:
        _write_owner_bits(game, viewer, words)


@jit(refcount=False)
def _fill_bits(words: Words, plane: int) -> None:
    """Fill one plane."""
    fill_bits(words, plane * NUM_SQUARES, NUM_SQUARES)


@jit(refcount=False)
def _write_stone_bits(game: State, viewer: int, words: Words) -> None:
    """Write the planes of all stones."""
    for square in range(NUM_SQUARES):
        code = int(game.board[square])
        if code == NEUTRAL_STONE:
            set_bit(words, _NEUTRAL * NUM_SQUARES + square)
        elif code:
            set_bit(words, relative_seat(code - 1, viewer, int(game.num_players)) * NUM_SQUARES + square)


@jit(refcount=False)
def _write_owner_bits(game: State, viewer: int, words: Words) -> None:
    """Write the planes `owned` and `lost`."""
    owned, lost = int(game.owned[viewer]), 0
    for seat in range(game.num_players):
        lost |= int(game.owned[seat])
    lost &= ~owned
    for band in range(3):
        first = (3 * band + 1) * SIZE + 1
        or_bits(words, _OWNED * NUM_SQUARES + first, _OWNED_BITS[owned >> 3 * band & 7])
        or_bits(words, _LOST * NUM_SQUARES + first, _OWNED_BITS[lost >> 3 * band & 7])
