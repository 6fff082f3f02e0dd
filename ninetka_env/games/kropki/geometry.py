"""The board of Kropki: sizes, numbers and names of nodes, symmetries, and tables of a node's eight neighbours.

Node n = row * width + column, row 0 on top. A state stores the nodes in a flat array of *cells*: cell n + width + 1
holds node n. There are `width + 1` unused cells before the first and after the last node, so that all eight neighbours
of a node are in the array. In compiled code `place` is the index of a cell.

    NW -w-1   N -w   NE -w+1        7  0  1
     W -1      .      E +1          6  .  2      steps and numbers of the *directions*, clockwise
    SW +w-1   S +w   SE +w+1        5  4  3

Rows follow one another without a gap, so the west neighbour of a node in the first column is the last node of the row
above. Code that looks at the neighbours of an edge node must skip such directions; see `DIRECTIONS_IN_ROW`.

The *ring* of a node is the bit set of the directions in which its neighbour is a point of one seat, an *own* point.
A *sector* of the ring is a run of neighbours between own points. At least one of these neighbours is orthogonal.

Next, read `rules.py`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import readonly_array

MIN_SIDE, MAX_WIDTH, MAX_HEIGHT = 3, 39, 32
"""Bounds of width and height. 39 x 32 is the size of the board in matches."""

# Cells: the bits of one byte

POINT_MASK = 3
"""Mask of the bits for the point on a node: 0 none, 1 Black's, 2 White's."""
REGION_MASK = 3 << 2
"""Mask of the bits for the region that a node lies in: 0 none, 1 << 2 Black's, 2 << 2 White's."""
LIVE_MASK = POINT_MASK | REGION_MASK
"""Mask for live points: the masked value is seat + 1 for a live point of that seat, and 0 for a free node."""
ENCLOSED = 1 << 4
"""Set if Black encloses the node; `ENCLOSED << 1` is set if White does."""
EDGE = 1 << 6
"""Set on the nodes of the edge, and on the unused cells."""
MARKED = 1 << 7
"""Set temporarily on visited nodes; never set between actions."""

# Directions

SOUTH = 4
STEP_ROWS = readonly_array([-1, -1, 0, 1, 1, 1, 0, -1], np.int64)
STEP_COLUMNS = readonly_array([0, 1, 1, 1, 0, -1, -1, -1], np.int64)
"""(8,) int64: the step in each direction, in cells, is `STEP_ROWS * width + STEP_COLUMNS`."""
NOT_WEST, NOT_EAST = 0b00011111, 0b11110001
"""Bit sets of the directions that do not lead west, and that do not lead east."""


def _directions_in_row(width: int) -> list[int]:
    """Return, for each cell of boards of this width, the bit set of directions that do not wrap round a row's end."""
    cells = range(MAX_WIDTH * MAX_HEIGHT + 2 * (MAX_WIDTH + 1))
    row = [NOT_WEST, *[255] * (width - 2), NOT_EAST]
    return [row[(place - 1) % width] for place in cells] if width >= MIN_SIDE else [0 for _ in cells]


DIRECTIONS_IN_ROW = readonly_array([_directions_in_row(width) for width in range(MAX_WIDTH + 1)], np.uint8)
"""(40, 1328) uint8: by width and cell, the bit set of directions that do not wrap round the end of a row.

Directions beyond the first and the last row are included, because the cells there hold no points.
"""


# Rings


class _Sector(NamedTuple):
    """A sector of a ring. Different sectors may lie in different cores."""

    entry: int
    """An orthogonal direction in the sector."""
    after: int
    """The direction of the own point that follows the sector clockwise."""


def _sectors(ring: int) -> list[_Sector]:
    """Return the sectors of a ring, a bit set of directions, shortest first; a ring without own points has none.

    An enclosed core is usually small, and a short sector usually leads to it, so short sectors are searched first.
    """
    found: list[tuple[int, _Sector]] = []
    for before in range(8):
        if not ring >> before & 1 or ring >> (before + 1) % 8 & 1:
            continue
        run = [before + 1]
        while not ring >> (run[-1] + 1) % 8 & 1:
            run.append(run[-1] + 1)
        orthogonal = [d % 8 for d in run if d % 2 == 0]
        if orthogonal:
            found.append((len(run), _Sector(orthogonal[len(orthogonal) // 2], (run[-1] + 1) % 8)))
    return [sector for _, sector in sorted(found)]


def _arcs(ring: int) -> list[int]:
    """Return one direction for each arc of a ring: that of one of the arc's points. `NUM_ARCS` defines arcs."""
    sectors = _sectors(ring)
    return [one.after for one in sectors] if sectors else [d for d in range(8) if ring >> d & 1][:1]


def _padded(rows: list[list[int]]) -> list[list[int]]:
    return [[*row, *[0] * (4 - len(row))] for row in rows]


NUM_SECTORS = readonly_array([len(_sectors(ring)) for ring in range(256)], np.int64)
"""(256,) int64: number of sectors of each ring, at most 4."""
SECTOR_ENTRY = readonly_array(_padded([[s.entry for s in _sectors(ring)] for ring in range(256)]), np.int64)
"""(256, 4) int64: an orthogonal direction in each sector."""
NUM_ARCS = readonly_array([len(_arcs(ring)) for ring in range(256)], np.int64)
ARC_DIRECTION = readonly_array(_padded([_arcs(ring) for ring in range(256)]), np.int64)
"""(256,) and (256, 4) int64: the number of arcs of each ring, and the direction of one own point of each arc.

An arc is a set of own points in the ring that are connected with each other without the node itself.
"""


# Symmetries


def node_symmetries(width: int, height: int) -> npt.NDArray[np.int64]:
    """Return the image of each node under each symmetry of the board, (8, N) int64 if it is a square, else (4, N).

    Symmetry k: transpose if `k & 4`, then mirror rows if `k & 2`, then columns if `k & 1`. Symmetry 0 is the identity.
    """
    rows, columns = np.divmod(np.arange(width * height), width)
    found = []
    for k in range(8 if width == height else 4):
        row, column = (columns, rows) if k & 4 else (rows, columns)
        row = height - 1 - row if k & 2 else row
        column = width - 1 - column if k & 1 else column
        found.append(row * width + column)
    return np.array(found, np.int64)


# Names


def column_name(column: int) -> str:
    """Return the name of a column: A..Z, then AA, AB and so on."""
    letters = ""
    while column >= 0:
        column, letter = column // 26 - 1, column % 26
        letters = chr(ord("A") + letter) + letters
    return letters


def node_name(node: int, width: int, height: int) -> str:
    """Return the name of a node: its column, then the row counted from the bottom, such as `"C4"`."""
    row, column = divmod(int(node), width)
    return f"{column_name(column)}{height - row}"


def node_index(name: str, width: int, height: int) -> int:
    """Return the node with a name; case does not matter.

    Raises:
        ValueError: if the board has no such node.
    """
    match = re.fullmatch(r"([A-Z]{1,2})([1-9][0-9]?)", name.upper()) if name.isascii() else None
    column = _column_index(match[1]) if match else width
    if match is None or column >= width or int(match[2]) > height:
        last = node_name(width - 1, width, height)
        raise ValueError(f"no node {name!r}: expected a column and a row, from A1 to {last}")
    return (height - int(match[2])) * width + column


def _column_index(letters: str) -> int:
    column = -1
    for letter in letters:
        column = (column + 1) * 26 + ord(letter) - ord("A")
    return column
