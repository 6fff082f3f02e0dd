"""Lookup tables for eyes, territory and 3 x 3 patterns, by the code of a point's eight neighbours (see `board`).

The patterns are from S. Gelly, Y. Wang, R. Munos and O. Teytaud, "Modification of UCT with patterns in Monte-Carlo
Go", INRIA research report 6062, 2006: hane, cuts, and moves on the edge.
"""

from __future__ import annotations

import itertools

import numpy as np

from ninetka_env.core.jit import jit, readonly_array

_PATTERNS = """
XOX XO. XO? .O. XO? XO? ?X? OX? X.? OX? ?X? ?XO ?OX
... ... X.. X.. O.o O.X O.O o.O O.? X.O x.O x.x X.O
??? ?.? x.? ... ?o? ??? ooo ??? ### ### ### ### ###
"""
"""The 3 x 3 patterns, side by side; the centre is the point to play on. X and O are the two colours, in either role;
x is a point without X, o a point without O, both on the board; # is off the board, ? anything."""
_MEANINGS = {".": (0,), "X": (1,), "O": (2,), "x": (0, 2), "o": (0, 1), "#": (3,), "?": (0, 1, 2, 3)}
_RING = ((0, 1), (1, 2), (2, 1), (1, 0), (0, 2), (2, 2), (2, 0), (0, 0))
"""(row, column) of the neighbours in the order of codes: up, right, down, left, then diagonally."""


def _codes_of(rows: list[str]) -> set[int]:
    """Return all codes that match a pattern, in all symmetries and with both colours."""
    found, square = set(), np.array([list(row) for row in rows])
    for turn in range(8):
        turned = np.rot90(square.T if turn & 4 else square, turn & 3)
        cells = [_MEANINGS[turned[place]] for place in _RING]
        for colours in itertools.product(*cells):
            swapped = [(0, 2, 1, 3)[one] for one in colours]
            found |= {sum(one << 2 * k for k, one in enumerate(each)) for each in (colours, swapped)}
    return found


def _pattern_table() -> np.ndarray:
    table, lines = np.zeros(1 << 16, np.bool_), [line.split() for line in _PATTERNS.strip().splitlines()]
    for rows in zip(*lines, strict=True):
        table[list(_codes_of(list(rows)))] = True
    return table


def _eye_table() -> np.ndarray:
    """Return the table `EYE_COLOUR`: by the code of a point's neighbours, the colour that has an eye there, 0 for none.

    All orthogonal neighbours must have this colour or be off the board. At most one diagonal neighbour may have the
    other colour, and none if the point is on the edge of the board.
    """
    codes = np.arange(1 << 16)
    ring = (codes[:, None] >> np.arange(0, 16, 2)) & 3
    eyes = np.zeros(1 << 16, np.int8)
    for colour in (1, 2):
        around = ((ring[:, :4] == colour) | (ring[:, :4] == 3)).all(axis=1)
        others, edge = (ring[:, 4:] == 3 - colour).sum(axis=1), (ring[:, 4:] == 3).any(axis=1)
        eyes[around & (others + edge <= 1)] = colour
    return eyes


def _territory_table() -> np.ndarray:
    """Return the table `TERRITORY_COLOUR`."""
    ring = (np.arange(256)[:, None] >> np.arange(0, 8, 2)) & 3
    black, white = (ring == 1).any(axis=1), (ring == 2).any(axis=1)
    return np.where(black & ~white, 1, np.where(white & ~black, 2, 0))


_PATTERN_BITS = readonly_array(np.packbits(_pattern_table(), bitorder="little").view("<u4"), np.uint32)
"""(2048,) uint32: one bit for each code, so that the table stays in the processor's cache."""
EYE_COLOUR = readonly_array(_eye_table(), np.int8)
"""(65536,) int8: by code, the colour (1 or 2) that has an eye on the point, else 0."""
EMPTY_NEIGHBOURS = readonly_array([sum(code >> k & 3 == 0 for k in (0, 2, 4, 6)) for code in range(256)], np.int8)
"""(256,) int8: by the lower byte of a code, the number of empty orthogonal neighbours."""
TERRITORY_COLOUR = readonly_array(_territory_table(), np.int8)
"""(256,) int8: by the lower byte of a code, the colour (1 or 2) of the adjacent stones if all have the same, else 0."""


@jit(refcount=False)
def matches_pattern(code: int) -> bool:
    """Return whether the neighbours of a point with this code match a pattern, for either colour."""
    return (_PATTERN_BITS[code >> 5] >> (code & 31)) & 1 == 1


@jit(refcount=False)
def is_eye(code: int, colour: int) -> bool:
    """Return whether a point with this code is an eye of a colour."""
    return EMPTY_NEIGHBOURS[code & 255] == 0 and EYE_COLOUR[code] == colour
