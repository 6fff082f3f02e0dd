"""The inner board as bits: 81 squares in two words, and what shifts and masks tell about rows, columns and sections.

A bit board is a pair of int64; the square (row, column) of the inner board, both 0..8, stands in bit 9 * row + column:
`lo` holds rows 0 to 5 (54 bits), `hi` rows 6 to 8 (27 bits). So no section is divided between the words.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from ninetka_env._jit import jit, popcount
from ninetka_env.geometry import (
    ADJACENT_SLOTS,
    NUM_SLOTS,
    SECTION,
    SIZE,
    SLOT_END,
    SLOT_LINE,
    frozen,
)

RIGHT, LEFT, DOWN, UP = 0, 2, 4, 6
"""The ways that stones slide; also where their boards stand among four, `lo` there and `hi` in the next word."""
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
_ROW036 = _bits((r, c) for r in (0, 3) for c in _NINE)[0]
ROW = 511
THREE_ROWS = 1 | 1 << 9 | 1 << 18
SIX_ROWS = THREE_ROWS | THREE_ROWS << 27
"""Masks of one word; those of columns serve `hi` as well, whose upper bits are never set."""


def _direction(slot: int) -> int:
    return (RIGHT, LEFT, DOWN, UP)[2 * int(SLOT_LINE[slot] >= 9) + int(SLOT_END[slot])]


DIRECTION = frozen([_direction(slot) for slot in range(NUM_SLOTS)], np.int64)
"""(36,) int64: which way the stone of a slot slides."""
SLOT_AT = frozen(
    [
        [next(s for s in range(NUM_SLOTS) if DIRECTION[s] == d and SLOT_LINE[s] % 9 == i) for i in _NINE]
        for d in range(0, 8, 2)
    ],
    np.int64,
)
"""(4, 9) int64: the slot by half the direction and the row or column."""
LINE_SLOTS = frozen(
    [[sum(1 << int(SLOT_AT[way, i]) for i in _NINE if lines >> i & 1) for lines in range(512)] for way in range(4)],
    np.int64,
)
"""(4, 512) int64: the slots of a set of rows or columns, as bits."""


def _line_board(slot: int) -> tuple[int, int]:
    line = int(SLOT_LINE[slot])
    return _bits((line, i) if line < 9 else (i, line - 9) for i in _NINE)


SLOT_BOARD = frozen([_line_board(slot) for slot in range(NUM_SLOTS)], np.int64)
"""(36, 2) int64: the line of a slot as a bit board."""


def _left_free(square: int) -> list[int]:
    """Return the four boards of what stays free in runs when a stone settles on a square, lo and hi of each."""
    row, col = divmod(square, 9)
    kept = []
    for beyond in (
        [(row, c) for c in range(col, 9)],
        [(row, c) for c in range(col + 1)],
        [(r, col) for r in range(row, 9)],
        [(r, col) for r in range(row + 1)],
    ):
        lo, hi = _bits(beyond)
        kept += [LOW & ~lo, HIGH & ~hi]
    return kept


STAYS_FREE = frozen([_left_free(square) for square in range(81)], np.int64)
"""(81, 8) int64: what a settled stone leaves of the runs of each direction."""
_WIDE = [SIZE * (square // 9 + 1) + square % 9 + 1 for square in range(81)]
SECTION_OF = frozen(SECTION[_WIDE], np.int64)
BLOCKED_BY = frozen(ADJACENT_SLOTS[_WIDE], np.int64)
"""(81,) int64: the section of an inner square, and the slots that a stone there blocks."""

SPREAD = frozen([(x & 7) | (x >> 3 & 7) << 7 | (x >> 6 & 7) << 14 for x in range(512)], np.int64)
"""(512,) int64: three counts of 3 bits moved to fields of 7 bits."""
SECTION_BOARD = frozen(
    [_bits((r, c) for r in _NINE for c in _NINE if o >> (3 * (r // 3) + c // 3) & 1) for o in range(512)], np.int64
)
"""(512, 2) int64: the squares of a set of sections."""


@jit
def highest(bits: int) -> int:
    """Return the index of the highest one in `bits`, which must not be 0."""
    bits |= bits >> 1
    bits |= bits >> 2
    bits |= bits >> 4
    bits |= bits >> 8
    bits |= bits >> 16
    bits |= bits >> 32
    return popcount(bits) - 1


@jit
def rows_up(lo: int, hi: int) -> tuple[int, int]:
    """Move a board one row up; row 0 must be empty."""
    return (lo >> 9) | ((hi & ROW) << 45), hi >> 9


@jit
def rows_down(lo: int, hi: int) -> tuple[int, int]:
    """Move a board one row down; row 8 must be empty."""
    return (lo << 9) & LOW, (hi << 9) | (lo >> 45)


@jit
def any_in_row(board: int) -> int:
    """Return bit 8 of each row that has a bit set."""
    return (((board & _LOW8) + _LOW8) | board) & COL8


@jit
def any_in_column(lo: int, hi: int) -> int:
    """Return the columns that have a bit set, 9 bits."""
    folded = lo | (lo >> 27) | hi
    return (folded | (folded >> 9) | (folded >> 18)) & ROW


@jit
def whole_rows(flags: int) -> int:
    """Return the whole rows of flags in bit 8."""
    return (flags << 1) - (flags >> 8)


@jit
def row_thirds(board: int) -> int:
    """Return, in bits 0, 3 and 6 of each row, which thirds of it have a bit set."""
    return (board | (board >> 1) | (board >> 2)) & _COL036


@jit
def several_in_row(thirds: int) -> int:
    """Return bit 8 of each row with more than one third."""
    pairs = (thirds & (thirds >> 3) & _COL03) | (thirds & (thirds >> 6) & COL0)
    return ((pairs | (pairs >> 3)) & COL0) << 8


@jit
def column_thirds(board: int) -> int:
    """Return, in rows 0 and 3 of a word, which thirds of the columns have a bit set."""
    return (board | (board >> 9) | (board >> 18)) & _ROW036


@jit
def several_in_column(lo: int, hi: int) -> int:
    """Return the columns with more than one third."""
    first, second = lo & ROW, lo >> 27
    return (first & second) | (first & hi) | (second & hi)


@jit
def _sum_rows(thirds: int) -> int:
    """Add up the rows of each section: counts of 3 bits in rows 0 and 3 of a word."""
    return (thirds + (thirds >> 9) + (thirds >> 18)) & _ROW036


@jit
def _sum_columns(thirds: int) -> int:
    """Add up the columns of each section: counts of 3 bits in rows 0 and 3 of a word."""
    mask = _COL036 & _ROW036
    return (thirds & mask) + ((thirds >> 1) & mask) + ((thirds >> 2) & mask)


@jit
def nine_bits(lo: int, hi: int) -> int:
    """Gather the flags in bit 8 of the rows: times 0x10101, bits 0, 9 and 18 meet in bits 16 to 18."""
    first, second, third = (lo >> 8) & THREE_ROWS, (lo >> 35) & THREE_ROWS, (hi >> 8) & THREE_ROWS
    first, second, third = first * 0x10101 >> 16, second * 0x10101 >> 16, third * 0x10101 >> 16
    return (first & 7) | (second & 7) << 3 | (third & 7) << 6


@jit
def count_arrivals(
    right_lo: int, right_hi: int, left_lo: int, left_hi: int, down_lo: int, down_hi: int, up_lo: int, up_hi: int
) -> int:
    """Count the stones with arrivals in each section, given the thirds of their lines, in fields of 7 bits."""
    row_lo, row_hi = _sum_rows(right_lo + left_lo), _sum_rows(right_hi + left_hi)
    column_lo, column_hi = _sum_columns(down_lo) + _sum_columns(up_lo), _sum_columns(down_hi) + _sum_columns(up_hi)
    first = SPREAD[row_lo & ROW] + SPREAD[column_lo & ROW]
    second = SPREAD[row_lo >> 27] + SPREAD[column_lo >> 27]
    third = SPREAD[row_hi] + SPREAD[column_hi]
    return first | second << 21 | third << 42
