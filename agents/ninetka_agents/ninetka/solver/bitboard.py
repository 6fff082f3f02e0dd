"""Bit boards of the solver: the 81 inner squares in two words, and operations on their rows, columns and sections.

A bit board is a pair of int64. The square (row, column) of the inner board, both 0..8, is bit 9 * row + column: `lo`
holds rows 0 to 5 (54 bits), `hi` rows 6 to 8 (27 bits). So each section is within one word. The functions process four
boards at once; see `ninetka_agents.ninetka.solver.simd`.

The *run* of a stone on the edge is the empty squares that it would slide over; see
`ninetka_agents.ninetka.solver.states`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from ninetka_agents.ninetka.solver.simd import Lanes
from ninetka_env.core.jit import jit, popcount, readonly_array
from ninetka_env.games.ninetka.geometry import ADJACENT_SLOTS, NUM_SLOTS, SECTION, SIZE, SLOT_END, SLOT_LINE

RIGHT, LEFT, DOWN, UP = 0, 2, 4, 6
"""Directions of slides. Words d and d + 1 of a state are the board of the runs in direction d."""
Words = npt.NDArray[np.int64]

LOW, HIGH = (1 << 54) - 1, (1 << 27) - 1


def _bits(squares: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return the bit board of (row, column) squares."""
    places = [9 * row + column for row, column in squares]
    return sum(1 << p for p in places if p < 54), sum(1 << (p - 54) for p in places if p >= 54)


_NINE = range(9)
COL0 = _bits((r, 0) for r in _NINE)[0]
COL8 = _bits((r, 8) for r in _NINE)[0]
_COL036 = _bits((r, c) for r in _NINE for c in (0, 3, 6))[0]
_COL03 = _bits((r, c) for r in _NINE for c in (0, 3))[0]
_LOW8 = _bits((r, c) for r in _NINE for c in range(8))[0]
ROW = 511
"""Masks of one word. The masks of columns are also used for `hi`, whose upper bits are never set."""
THIRDS = 1 | 1 << 21 | 1 << 42
"""The bits of a `column_thirds` word for the three thirds of column 0."""
_SECOND, _THIRD = ROW << 21, ROW << 42
_COLUMNS036 = 0b1001001 * THIRDS
_EACH_THIRD = 7 * THIRDS


def _direction(slot: int) -> int:
    return (RIGHT, LEFT, DOWN, UP)[2 * int(SLOT_LINE[slot] >= 9) + int(SLOT_END[slot])]


DIRECTION = readonly_array([_direction(slot) for slot in range(NUM_SLOTS)], np.int64)
"""(36,) int64: the direction in which the stone of a slot slides."""
SLOT_AT = readonly_array(
    [
        [next(s for s in range(NUM_SLOTS) if DIRECTION[s] == d and SLOT_LINE[s] % 9 == i) for i in _NINE]
        for d in range(0, 8, 2)
    ],
    np.int64,
)
"""(4, 9) int64: the slot by direction // 2 and by row or column."""
SLOT_BITS_OF_LINES = readonly_array(
    [[sum(1 << int(SLOT_AT[way, i]) for i in _NINE if lines >> i & 1) for lines in range(512)] for way in range(4)],
    np.int64,
)
"""(4, 512) int64: entry [direction // 2, lines] is the bit set of the slots of `lines`.

`lines` is a bit set of rows or columns.
"""


def _line_board(slot: int) -> tuple[int, int]:
    line = int(SLOT_LINE[slot])
    return _bits((line, i) if line < 9 else (i, line - 9) for i in _NINE)


SLOT_BOARD = readonly_array([_line_board(slot) for slot in range(NUM_SLOTS)], np.int64)
"""(36, 2) int64: the line of a slot as a bit board."""


def _still_free(square: int) -> list[int]:
    """Return the entry of `STAYS_FREE` for a square."""
    row, col = divmod(square, 9)
    boards = []
    for beyond in (
        [(row, c) for c in range(col, 9)],
        [(row, c) for c in range(col + 1)],
        [(r, col) for r in range(row, 9)],
        [(r, col) for r in range(row + 1)],
    ):
        lo, hi = _bits(beyond)
        boards += [LOW & ~lo, HIGH & ~hi]
    return boards


STAYS_FREE = readonly_array([_still_free(square) for square in range(81)], np.int64)
"""(81, 8) int64: for each square, a mask of two words for the runs in each of the four directions. When a stone comes
to rest on the square, the masks remove this square, and the squares behind it on its row or column, from the runs."""
_BOARD_SQUARE = [SIZE * (square // 9 + 1) + square % 9 + 1 for square in range(81)]
SECTION_OF = readonly_array(SECTION[_BOARD_SQUARE], np.int64)
BLOCKED_BY = readonly_array(ADJACENT_SLOTS[_BOARD_SQUARE], np.int64)
"""(81,) int64 each: the section of an inner square; the slots, as bits, that a stone on it blocks."""

_SECTION_BOARD = [_bits((r, c) for r in _NINE for c in _NINE if o >> (3 * (r // 3) + c // 3) & 1) for o in range(512)]
SECTION_LO, SECTION_HI = (readonly_array([board[word] for board in _SECTION_BOARD], np.int64) for word in (0, 1))
"""(512,) int64 each: the words `lo` and `hi` of the board of a set of sections, by the set as 9 bits."""


@jit
def highest(bits: int) -> int:
    """Return the index of the highest set bit of `bits`, which must not be 0."""
    bits |= bits >> 1
    bits |= bits >> 2
    bits |= bits >> 4
    bits |= bits >> 8
    bits |= bits >> 16
    bits |= bits >> 32
    return popcount(bits) - 1


@jit
def rows_up(lo: Lanes, hi: Lanes) -> tuple[Lanes, Lanes]:
    """Move a board one row up; row 0 must be empty."""
    return (lo >> 9) | ((hi & ROW) << 45), hi >> 9


@jit
def rows_down(lo: Lanes, hi: Lanes) -> tuple[Lanes, Lanes]:
    """Move a board one row down; row 8 must be empty."""
    return (lo << 9) & LOW, (hi << 9) | (lo >> 45)


@jit
def any_in_row(board: Lanes) -> Lanes:
    """Return bit 8 of each row in which a bit is set."""
    return (((board & _LOW8) + _LOW8) | board) & COL8


@jit
def any_in_column(lo: Lanes, hi: Lanes) -> Lanes:
    """Return, as 9 bits, the columns in which a bit is set."""
    folded = lo | (lo >> 27) | hi
    return (folded | (folded >> 9) | (folded >> 18)) & ROW


@jit
def fill_rows(flags: Lanes) -> Lanes:
    """Return a word with all 9 bits set in each row whose bit 8 is set in `flags`."""
    return (flags << 1) - (flags >> 8)


@jit
def fill_columns(columns: Lanes) -> tuple[Lanes, Lanes]:
    """Return the board in which all squares of `columns`, 9 bits, are set."""
    hi = columns | (columns << 9) | (columns << 18)
    return hi | (hi << 27), hi


@jit
def gather_row_flags(lo: Lanes, hi: Lanes) -> Lanes:
    """Return bit 8 of each of the nine rows as 9 bits."""
    lo = (lo >> 8) | (lo >> 16) | (lo >> 24)  # rows 0 to 2 in bits 0 to 2, rows 3 to 5 from bit 27 on
    hi = (hi >> 8) | (hi >> 16) | (hi >> 24)
    return (lo & 7) | ((lo >> 24) & 56) | ((hi & 7) << 6)


@jit
def row_thirds(board: Lanes) -> Lanes:
    """Return a word with bit 0, 3 or 6 of a row set if a bit is set in the first, second or last third of the row."""
    return (board | (board >> 1) | (board >> 2)) & _COL036


@jit
def several_in_row(thirds: Lanes) -> Lanes:
    """Return bit 8 of each row in which `row_thirds` has set more than one bit."""
    pairs = (thirds & (thirds >> 3) & _COL03) | (thirds & (thirds >> 6) & COL0)
    return ((pairs | (pairs >> 3)) & COL0) << 8


@jit
def _pack_thirds(lo: Lanes, hi: Lanes) -> Lanes:
    """Pack rows 0, 3 and 6 of a board into one word, starting at bits 0, 21 and 42."""
    return (lo & ROW) | ((lo >> 6) & _SECOND) | ((hi << 42) & _THIRD)


@jit
def column_thirds(lo: Lanes, hi: Lanes) -> Lanes:
    """Return in which thirds of columns a bit is set: for each third, 9 bits (one per column) from bit 0, 21 or 42."""
    lo, hi = lo | (lo >> 9) | (lo >> 18), hi | (hi >> 9) | (hi >> 18)
    return _pack_thirds(lo, hi)


@jit
def several_in_column(thirds: Lanes) -> Lanes:
    """Return, as 9 bits, the columns for which `column_thirds` has set more than one bit."""
    first, second, third = thirds & ROW, (thirds >> 21) & ROW, thirds >> 42
    return (first & second) | (first & third) | (second & third)


@jit
def _sum_rows(lo: Lanes, hi: Lanes) -> Lanes:
    """Sum the bits of `row_thirds`, given as `lo` and `hi`, over the three rows of each section.

    The result has 3 bits per section: sections 0 to 2 from bit 0, 3 to 5 from bit 21, and 6 to 8 from bit 42.
    """
    lo, hi = lo + (lo >> 9) + (lo >> 18), hi + (hi >> 9) + (hi >> 18)
    return _pack_thirds(lo, hi)


@jit
def _sum_columns(thirds: Lanes) -> Lanes:
    """Sum the bits of `column_thirds` over the columns of each section, in the format of `_sum_rows`."""
    return (thirds & _COLUMNS036) + ((thirds >> 1) & _COLUMNS036) + ((thirds >> 2) & _COLUMNS036)


@jit
def count_arrivals(right_lo: Lanes, right_hi: Lanes, left_lo: Lanes, left_hi: Lanes, down: Lanes, up: Lanes) -> Lanes:
    """Return, for each section, the number of stones that can arrive there, in fields of 7 bits.

    The arguments are the stones' arrivals in the form of `row_thirds` and `column_thirds`.
    """
    rows, columns = _sum_rows(right_lo + left_lo, right_hi + left_hi), _sum_columns(down) + _sum_columns(up)
    first = (rows & _EACH_THIRD) + (columns & _EACH_THIRD)
    second = ((rows >> 3) & _EACH_THIRD) + ((columns >> 3) & _EACH_THIRD)
    third = ((rows >> 6) & _EACH_THIRD) + ((columns >> 6) & _EACH_THIRD)
    return first + (second << 7) + (third << 14)
