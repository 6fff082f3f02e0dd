"""The geometry of boards of all sizes: numbers and names of points, and read-only tables of neighbours and symmetries.

Point numbers are `size * (rank - 1) + file`, with files and ranks as Black sees them. For size 9:

    9   72 73 74 75 76 77 78 79 80
    8   63 64 65 66 67 68 69 70 71    The action `size * size` passes; `size * size + 1` resigns, with
    ..  ..                            `allow_resign`. The letter I is not used for files.
    2    9 10 11 12 13 14 15 16 17
    1    0  1  2  3  4  5  6  7  8    In tables, the number `size * size` means off the board.
         A  B  C  D  E  F  G  H  J

The tables of points contain the boards of all sizes, the smallest first. `table_offset` returns the first row of a
board.

Next, read `rules.py`.
"""

from __future__ import annotations

import functools
import math
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit, readonly_array

MIN_SIZE, MAX_SIZE = 2, 19
"""The range of board sizes."""
DEFAULT_SIZE = 9
"""The default size."""

EMPTY, BLACK, WHITE, WALL = 0, 1, 2, 3
"""Cell codes. The code of a stone is its seat plus 1. `WALL` is off the board and has the bits of both colours."""

FILE_NAMES = "ABCDEFGHJKLMNOPQRST"

_SIZES = range(MIN_SIZE, MAX_SIZE + 1)


@jit(refcount=False)
def i64(number: Any) -> int:
    """Convert a number of any integer type to int64, because numba compiles a function for each argument type."""
    return np.int64(number)  # type: ignore[return-value]  # in numba, int(..) does not change the type


@jit(refcount=False)
def table_offset(points: int) -> int:
    """Return the first row of the board with this number of points in the tables of points."""
    size = int(math.sqrt(points))  # evaluated by the compiler
    return (size - 1) * size * (2 * size - 1) // 6 - 1


def _around(size: int, steps: tuple[tuple[int, int], ...]) -> npt.NDArray[np.int16]:
    """Return the points at the given (rank, file) offsets of each point, (points, 4) int16; `size**2` off the board."""
    ranks, files = np.divmod(np.arange(size * size), size)
    rows = []
    for up, right in steps:
        rank, file = ranks + up, files + right
        inside = (rank >= 0) & (rank < size) & (file >= 0) & (file < size)
        rows.append(np.where(inside, size * rank + file, size * size))
    return np.array(rows, np.int16).T


NEIGHBOURS = readonly_array(np.vstack([_around(n, ((-1, 0), (0, -1), (0, 1), (1, 0))) for n in _SIZES]), np.uint16)
"""(2469, 4) uint16: the points below, to the left, to the right and above; `size**2` if off the board."""
DIAGONALS = readonly_array(np.vstack([_around(n, ((-1, -1), (-1, 1), (1, -1), (1, 1))) for n in _SIZES]), np.uint16)
"""(2469, 4) uint16: the points below left, below right, above left and above right; `size**2` if off the board."""
_PADDING = np.zeros(32, np.bool_)
NOT_FIRST_FILE = readonly_array(np.hstack([*(np.tile(np.arange(n) > 0, n) for n in _SIZES), _PADDING]) * 255, np.uint8)
NOT_LAST_FILE = readonly_array(
    np.hstack([*(np.tile(np.arange(n) < n - 1, n) for n in _SIZES), _PADDING]) * 255, np.uint8
)
"""(2501,) uint8: 0 on the first (`NOT_FIRST_FILE`) or the last file (`NOT_LAST_FILE`), else 255; padded by one vector
register, 32 bytes."""

HANDICAP_POINTS = readonly_array([20, 60, 56, 24, 40], np.int16)
"""(5,) int16: the handicap points on 9 x 9, C3 G7 C7 G3 E5, in the order of `fixed_handicap` in the Go Text Protocol,
version 2."""


@functools.cache
def symmetries(size: int) -> npt.NDArray[np.int16]:
    """Return the image of each point under the 8 symmetries, (8, points) int16; symmetry 0 is the identity.

    Symmetry k transposes if `k & 4`, then mirrors ranks if `k & 2`, then files if `k & 1`.
    """
    ranks, files = np.divmod(np.arange(size * size), size)
    rows = []
    for k in range(8):
        rank, file = (files, ranks) if k & 4 else (ranks, files)
        rank = size - 1 - rank if k & 2 else rank
        file = size - 1 - file if k & 1 else file
        rows.append(size * rank + file)
    return readonly_array(rows, np.int16)


def action_symmetries(size: int, num_actions: int) -> npt.NDArray[np.int64]:
    """Return the image of each action under the 8 symmetries, (8, num_actions) int64; pass and resign do not change."""
    others = np.tile(np.arange(size * size, num_actions), (8, 1))
    return readonly_array(np.hstack([symmetries(size), others]), np.int64)


def star_points(size: int) -> list[int]:
    """Return the star points (hoshi), ascending: on the third or fourth line from the edge, and the centre.

    Boards of even size have no centre. Boards smaller than 7 x 7 have no star points but the centre.
    """
    if size < 7:
        return [size * size // 2] if size % 2 else []
    near = 3 if size >= 13 else 2
    middle = [size // 2] if size % 2 and size >= 13 else []
    lines = [near, *middle, size - 1 - near]
    points = [size * rank + file for rank in lines for file in lines]
    return sorted({*points, size * size // 2} if size % 2 else points)


def point_name(point: int, size: int) -> str:
    """Return the name of a point: its file, then its rank, such as `"E5"`."""
    rank, file = divmod(int(point), size)
    return f"{FILE_NAMES[file]}{rank + 1}"


def point_index(name: str, size: int) -> int:
    """Return the point with a name; case does not matter.

    Raises:
        ValueError: if there is no such point on a board of this size.
    """
    match = re.fullmatch(r"([A-HJ-T])([1-9][0-9]?)", name.upper(), re.ASCII)
    if not match or FILE_NAMES.index(match[1]) >= size or int(match[2]) > size:
        last = FILE_NAMES[size - 1]
        raise ValueError(f"no point {name[:20]!r}: expected a file A..{last}, without I, and a rank 1..{size}")
    return size * (int(match[2]) - 1) + FILE_NAMES.index(match[1])


def action_name(action: int, size: int) -> str:
    """Return the name of an action: its point, `"pass"`, or `"resign"`."""
    return point_name(action, size) if action < size * size else ("pass", "resign")[action - size * size]


def action_index(name: str, size: int) -> int:
    """Return the action with a name that `action_name` returns; case does not matter.

    Raises:
        ValueError: as in `point_index`.
    """
    words = ("pass", "resign")
    return size * size + words.index(name.lower()) if name.lower() in words else point_index(name, size)
