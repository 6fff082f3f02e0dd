"""Read and write positions of Kropki as text.

`str(game)` writes, and `Game.from_text` reads:

    Kropki  width=5  height=4  territory=declared  start=empty  to_move=white  drawing=no  last=C3

         A B C D E
     4   . X X . .
     3   X o b X .
     2   . X X . O
     1   . . . . .

`X` and `O` are live points of Black and White. `x` and `o` are points of Black and White that the other seat has
captured. `#` and `@` are points of Black and White in an own region. `b` and `w` are empty nodes in a region of Black
and White. `.` is a free node. Blank lines are ignored, and spaces between signs may vary. The number of actions played
is not written.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.text import quote
from ninetka_env.games.kropki.geometry import (
    MAX_HEIGHT,
    MAX_WIDTH,
    MIN_SIDE,
    column_name,
    node_index,
    node_name,
)
from ninetka_env.games.kropki.rules import STARTS, TERRITORIES

SEATS = ("black", "white")
"""Names of the seats."""

SIGNS = {".": (0, 0), "X": (1, 0), "O": (2, 0), "x": (1, 2), "o": (2, 1), "#": (1, 1), "@": (2, 2), "b": (0, 1),
         "w": (0, 2)}  # fmt: skip
"""The sign of each (point, region): 0 for none, else seat + 1."""
_SIGN_OF = {codes: sign for sign, codes in SIGNS.items()}

_HEADER = re.compile(
    rf"Kropki width=(\d\d?) height=(\d\d?) territory=({'|'.join(TERRITORIES)}) start=({'|'.join(STARTS)}) "
    rf"to_move=({'|'.join(SEATS)}) drawing=(yes|no) last=(-|[A-Z]+\d+)"
)
_HEADER_HELP = (
    f"Kropki  width=10  height=10  territory={'|'.join(TERRITORIES)}  start={'|'.join(STARTS)}  "
    f"to_move={'|'.join(SEATS)}  drawing=yes|no  last=C4"
)


class Position(NamedTuple):
    """The content of the text of a position."""

    board: npt.NDArray[np.int8]
    region: npt.NDArray[np.int8]
    """`board` and `region`, both (H, W): the points and the regions of the nodes; 0 for none, else seat + 1."""
    to_move: int
    drawing: bool
    last: int | None
    territory: str
    start: str


def write_position(position: Position) -> str:
    """Return a position as text that `read_position` reads back; the module docstring describes the format."""
    height, width = position.board.shape
    last = position.last
    header = (
        f"Kropki  width={width}  height={height}  territory={position.territory}  start={position.start}  "
        f"to_move={SEATS[position.to_move]}  drawing={'yes' if position.drawing else 'no'}  "
        f"last={'-' if last is None else node_name(last, width, height)}"
    )
    lines = [header, "", _columns(width)]
    for row in range(height):
        codes = zip(position.board[row].tolist(), position.region[row].tolist(), strict=True)
        lines.append(
            f"{height - row:2}   " + " ".join(f"{_SIGN_OF[code]:>2}"[-_column_width(width) :] for code in codes)
        )
    return "\n".join(lines)


def _columns(width: int) -> str:
    return "     " + " ".join(f"{column_name(column):>2}"[-_column_width(width) :] for column in range(width))


def _column_width(width: int) -> int:
    """Return the number of characters of a column of the drawing."""
    return len(column_name(width - 1))


def read_position(text: str) -> Position:
    """Parse a text that `write_position` returned.

    Raises:
        ValueError: if the text is not valid; the message gives the line and what was expected there.
    """
    lines = [(number, line.split()) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    number, words = lines[0] if lines else (1, [])
    match = _HEADER.fullmatch(" ".join(words))
    if not match:
        raise ValueError(f"line {number}: expected {_HEADER_HELP!r}, found {quote(' '.join(words))}")
    width, height = int(match[1]), int(match[2])
    if not (MIN_SIDE <= width <= MAX_WIDTH and MIN_SIDE <= height <= MAX_HEIGHT):
        most = f"{MAX_WIDTH} x {MAX_HEIGHT}"
        raise ValueError(f"line {number}: {width} x {height}: expected {MIN_SIDE} x {MIN_SIDE} to {most}")
    try:
        last = None if match[7] == "-" else node_index(match[7], width, height)
    except ValueError as error:
        raise ValueError(f"line {number}: last={match[7]}: {error}") from None
    board, region = _read_board(lines[1:], number, width, height)
    return Position(board, region, SEATS.index(match[5]), match[6] == "yes", last, match[3], match[4])


def _read_board(
    lines: list[tuple[int, list[str]]], number: int, width: int, height: int
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    """Return points and regions, (H, W) each, from the numbered lines of text that follow line `number`."""
    expected = [[column_name(column) for column in range(width)], *([str(height - row)] for row in range(height))]
    codes = []
    for index, wanted in enumerate(expected):
        if index == len(lines):
            raise ValueError(f"line {number + 1}: expected a line {' '.join(wanted)}, found the end of the text")
        number, words = lines[index]
        signs = words[1:] if index else []
        length = len(wanted) + (width if index else 0)
        if words[: len(wanted)] != wanted or len(words) != length or any(sign not in SIGNS for sign in signs):
            each = f" and {width} signs of {' '.join(SIGNS)}" if index else ""
            raise ValueError(f"line {number}: expected {' '.join(wanted)}{each}, found {quote(' '.join(words))}")
        codes += [SIGNS[sign] for sign in signs]
    for number, words in lines[len(expected) :]:
        raise ValueError(f"line {number}: expected the end of the text, found {quote(' '.join(words))}")
    cells = np.array(codes, np.int8).reshape(height, width, 2)
    return cells[..., 0], cells[..., 1]
