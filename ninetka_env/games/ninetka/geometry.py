"""The board as read-only tables: squares, edge slots, lines, sections, neighbours, symmetries, names.

The numbering, for square = 11 * row + col:

    row     A  B  C  D  E  F  G  H  I  J  K
     0      .  0  1  2  3  4  5  6  7  8  .   11    the 36 edge squares carry the *slots* 0..35,
     1      9 [s  s  s][s  s  s][s  s  s] 10  10    numbered in the order of their squares
     2     11 [s  0  s][s  1  s][s  2  s] 12   9
     3     13 [s  s  s][s  s  s][s  s  s] 14   8    sections 0..8 are the nine 3 x 3 blocks
     4     15 [s  s  s][s  s  s][s  s  s] 16   7
     5     17 [s  3  s][s  4  s][s  5  s] 18   6    line 0..8: the nine inner squares of rows 1..9,
     6     19 [s  s  s][s  s  s][s  s  s] 20   5    left to right; line 9..17: those of columns
     7     21 [s  s  s][s  s  s][s  s  s] 22   4    1..9, top to bottom
     8     23 [s  6  s][s  7  s][s  8  s] 24   3
     9     25 [s  s  s][s  s  s][s  s  s] 26   2
    10      . 27 28 29 30 31 32 33 34 35  .    1

Next, read `rules.py`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import readonly_array
from ninetka_env.core.text import quote

SIZE = 11
NUM_SQUARES = SIZE * SIZE
NUM_SECTIONS = 9
NUM_SLOTS = 36
NUM_LINES = 18
NUM_NEUTRALS = 9
LINE_LENGTH = 9
MAX_PLAYERS = 4

PASS = NUM_SQUARES
"""The action to pass. Actions 0..120 are the squares."""
NUM_ACTIONS = NUM_SQUARES + 1

EMPTY = 0
NEUTRAL_STONE = 5
"""Cell codes: 0 empty, `seat + 1` a stone of that seat, 5 a neutral stone."""

COLUMN_NAMES = "ABCDEFGHIJK"


_rows, _cols = np.divmod(np.arange(NUM_SQUARES), SIZE)
_row_inside, _col_inside = (_rows % 10 != 0), (_cols % 10 != 0)

INNER = readonly_array(_row_inside & _col_inside, np.bool_)
"""(121,) bool: the 81 squares that belong to sections."""
EDGE = readonly_array(_row_inside ^ _col_inside, np.bool_)
"""(121,) bool: the 36 squares where stones start; the corners are neither inner nor edge."""
SECTION = readonly_array(np.where(INNER, 3 * ((_rows - 1) // 3) + (_cols - 1) // 3, -1), np.int8)
"""(121,) int8: the section of each square, -1 outside the inner region."""
SLOT_SQUARE = readonly_array(np.flatnonzero(EDGE), np.uint8)
"""(36,) uint8: the edge square of each slot."""
SQUARE_SLOT = readonly_array(
    [int(np.searchsorted(SLOT_SQUARE, s)) if EDGE[s] else -1 for s in range(NUM_SQUARES)], np.int8
)
"""(121,) int8: the slot of each edge square, -1 elsewhere."""
ALL_SLOTS = (1 << NUM_SLOTS) - 1
"""The bit set of all 36 slots. Bit sets of slots are int64 throughout."""

LINE_SQUARES = readonly_array(
    [[SIZE * r + c for c in range(1, 10)] for r in range(1, 10)]
    + [[SIZE * r + c for r in range(1, 10)] for c in range(1, 10)],
    np.uint8,
)
"""(18, 9) uint8: the squares of each line."""
ROW_LINE = readonly_array(np.where(INNER, _rows - 1, -1), np.int8)
COLUMN_LINE = readonly_array(np.where(INNER, 9 + _cols - 1, -1), np.int8)
"""(121,) int8: the row line (0..8) and the column line (9..17) of each inner square, -1 elsewhere. The square has the
place `COLUMN_LINE - 9` in its row line, and the place `ROW_LINE` in its column line; places are 0..8."""

_slot_row, _slot_col = _rows[SLOT_SQUARE], _cols[SLOT_SQUARE]
SLOT_LINE = readonly_array(np.where(_slot_row % 10 != 0, _slot_row - 1, 9 + _slot_col - 1), np.uint8)
"""(36,) uint8: the line along which a slot's stone slides."""
SLOT_END = readonly_array((_slot_row == 10) | (_slot_col == 10), np.uint8)
"""(36,) uint8: 0 for slots at the start of their line (left, top), 1 for those at its end (right, bottom)."""


def _landing_place(occupied: int, end: int) -> int:
    """Return the place where a stone from one end of a line stops, by the line's occupancy bits; -1 if blocked."""
    order = range(LINE_LENGTH) if end == 0 else range(LINE_LENGTH - 1, -1, -1)
    landing = -1
    for place in order:
        if occupied >> place & 1:
            break
        landing = place
    return landing


LANDING_PLACE = readonly_array([[_landing_place(o, e) for o in range(1 << LINE_LENGTH)] for e in (0, 1)], np.int8)
"""(2, 512) int8: by end of a line and the line's occupancy bits, the place (0..8) where a stone comes to rest; -1 if
the stone is blocked."""

ADJACENT_SLOTS = readonly_array(
    [
        sum(1 << int(SQUARE_SLOT[n]) for n in (s - SIZE, s - 1, s + 1, s + SIZE) if EDGE[n]) if INNER[s] else 0
        for s in range(NUM_SQUARES)
    ],
    np.int64,
)
"""(121,) int64: for each inner square, the bit set of the slots next to it, which a stone on it blocks; else 0."""
ENTRY_SQUARE = readonly_array(
    [int(LINE_SQUARES[line, 8 * end]) for line, end in zip(SLOT_LINE, SLOT_END, strict=True)], np.uint8
)
"""(36,) uint8: the inner square next to each slot."""

_in_ring = (_rows >= 2) & (_rows <= 8) & (_cols >= 2) & (_cols <= 8)
NEUTRAL_SQUARE = readonly_array(np.flatnonzero(_in_ring), np.uint8)
"""(49,) uint8: the squares where neutral stones may be placed."""
SQUARE_NEUTRAL = readonly_array(np.where(_in_ring, np.cumsum(_in_ring) - 1, -1), np.int8)
"""(121,) int8: index of a square in `NEUTRAL_SQUARE`, -1 elsewhere."""
SECTION_NEUTRALS = readonly_array(
    [sum(1 << i for i, s in enumerate(NEUTRAL_SQUARE) if SECTION[s] == k) for k in range(NUM_SECTIONS)], np.int64
)
"""(9,) int64: for each section, the bit set (over `NEUTRAL_SQUARE`) of its squares that a neutral stone may take."""
ALL_NEUTRALS = (1 << len(NEUTRAL_SQUARE)) - 1


def _symmetry(k: int) -> npt.NDArray[np.int64]:
    """Return symmetry `k`: transpose if `k & 4`, then mirror rows if `k & 2`, then columns if `k & 1`."""
    row, col = (_cols, _rows) if k & 4 else (_rows, _cols)
    row = 10 - row if k & 2 else row
    col = 10 - col if k & 1 else col
    return np.asarray(SIZE * row + col)


SYMMETRIES = readonly_array([_symmetry(k) for k in range(8)], np.int16)
"""(8, 121) int16: `SYMMETRIES[k, s]` is the square to which symmetry k maps square s; symmetry 0 is the identity. To
map a board: `new[SYMMETRIES[k]] = old`."""
INVERSE_SYMMETRY = readonly_array(
    [next(j for j in range(8) if (SYMMETRIES[j][SYMMETRIES[k]] == np.arange(NUM_SQUARES)).all()) for k in range(8)],
    np.int8,
)
"""(8,) int8: the inverse of each symmetry."""
ACTION_SYMMETRIES = readonly_array(np.hstack([SYMMETRIES, np.full((8, 1), PASS)]), np.int16)
"""(8, 122) int16: `SYMMETRIES` for actions; the action to pass is mapped to itself."""


def square_name(square: int) -> str:
    """Return the name of a square: column letter A..K, then the row counted from the bottom, 1..11."""
    row, col = divmod(int(square), SIZE)
    return f"{COLUMN_NAMES[col]}{SIZE - row}"


def square_index(name: str) -> int:
    """Return the index 0..120 of a square from its name, such as `"A10"` for row 1, column 0.

    Raises:
        ValueError: if `name` is not a square from A1 to K11.
    """
    letter, number = name[:1].upper(), name[1:]
    if not name.isascii() or not letter or letter not in COLUMN_NAMES or not number.isdigit():
        raise ValueError(f"no square {quote(name)}: expected a column A..K and a row 1..11, such as 'C11'")
    if number.startswith("0") or len(number) > 2 or not 1 <= int(number) <= SIZE:
        raise ValueError(f"no square {quote(name)}: rows run from 1 to 11")
    return SIZE * (SIZE - int(number)) + COLUMN_NAMES.index(letter)


def action_name(action: int) -> str:
    """Return the name of an action: its square, or `"pass"`."""
    return "pass" if action == PASS else square_name(action)


def action_index(name: str) -> int:
    """Return the action with a name that `action_name` returns; raise `ValueError` for other text."""
    return PASS if name == "pass" else square_index(name)
