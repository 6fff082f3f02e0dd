"""Read and write positions of 9tka as text.

`str(game)` writes, and `Game.from_text` reads:

    9tka  players=2  turn_order=restart  auto_pass=True  to_move=1 (yellow)

          A   B C D   E F G   H I J   K
    11        2 2 .   2 . 1   . 1 1
            +-------+-------+-------+
    10    . | . . . | . . . | 1 . . | 2
     9    1 | . # . | . 2 . | . # . | .
    ..      ..

`1`..`4` are the stones of the seats, numbered by their cell codes (seat 0 is `1`, yellow), also in the header. `#` is a
neutral stone, `.` an empty square. Blank lines are ignored, and spaces between signs may vary. The last action, the
seats passed over and the way the neutral stones were placed are not written, because a state does not store them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.text import quote
from ninetka_env.games.ninetka.geometry import (
    COLUMN_NAMES,
    NEUTRAL_STONE,
    NUM_SQUARES,
    SIZE,
)

SEATS = ("yellow", "blue", "orange", "green")
"""Names of the seats: the colours of their stones."""

CELL_SIGNS = ".1234#"
"""The sign of each cell code."""


def seat_label(seat: int) -> str:
    """Return the seat to move as it is written in the header."""
    return f"to_move={seat + 1} ({SEATS[seat]})"


def write_position(
    board: npt.NDArray[np.int8], to_move: int, num_players: int, turn_order: str, auto_pass: bool
) -> str:
    """Return a position as text that `read_position` reads back; the module docstring describes the format."""
    header = f"9tka  players={num_players}  turn_order={turn_order}  auto_pass={auto_pass}  {seat_label(to_move)}"
    signs = iter(CELL_SIGNS[code] for code in board.ravel()[_SIGN_SQUARES])
    drawn = [re.sub(r"\?", lambda _: next(signs), line) for line in _board_lines()]
    return "\n".join([header, "", *drawn])


def _board_lines() -> list[str]:
    """Return the lines of the drawing of a board, with `?` for each of the 117 squares that are not corners."""
    border = 8 * " " + "+-------" * 3 + "+"
    lines = [6 * " " + "   ".join(" ".join(COLUMN_NAMES[a:b]) for a, b in ((0, 1), (1, 4), (4, 7), (7, 10), (10, 11)))]
    for row in range(SIZE):
        if row in (0, 10):
            lines.append(f"{SIZE - row:2}" + 8 * " " + "   ".join(["? ? ?"] * 3))
        else:
            lines.append(f"{SIZE - row:2}    ? | ? ? ? | ? ? ? | ? ? ? | ?")
        if row % 3 == 0 and row <= 9:
            lines.append(border)
    return lines


_SIGN_SQUARES = np.setdiff1d(np.arange(NUM_SQUARES), [0, 10, 110, 120])
"""The squares in the order of the signs: all but the corners."""

_HEADER = re.compile(
    r"9tka players=([234]) turn_order=(restart|continue) auto_pass=(True|False) to_move=([1-4]) \((\w+)\)"
)
_HEADER_HELP = "9tka  players=2|3|4  turn_order=restart|continue  auto_pass=True|False  to_move=1 (yellow)"


class Position(NamedTuple):
    """The content of the text of a position."""

    board: npt.NDArray[np.int8]
    """(11, 11) cell codes."""
    to_move: int
    num_players: int
    turn_order: str
    auto_pass: bool
    source_lines: str
    """Text for error messages: which lines of the text have the position."""


def read_position(text: str) -> Position:
    """Parse a text that `write_position` returned.

    Raises:
        ValueError: if the text is not valid; the message gives the line and what was expected there.
    """
    lines = [(number, " ".join(line.split())) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    number, header = lines[0] if lines else (1, "")
    match = _HEADER.fullmatch(header)
    if not match:
        raise ValueError(f"line {number}: expected {_HEADER_HELP!r}, found {quote(header)}")
    players, turn_order, auto_pass, to_move, colour = match.groups()
    num_players, seat = int(players), int(to_move) - 1
    if seat >= num_players or colour != SEATS[seat]:
        allowed = ", ".join(f"{n + 1} ({SEATS[n]})" for n in range(num_players))
        raise ValueError(f"line {number}: to_move={to_move} ({quote(colour)}): expected one of {allowed}")
    board = _read_board(lines[1:], number, num_players)
    where = f"line {number} with the board in lines {lines[1][0]} to {lines[-1][0]}"
    return Position(board, seat, num_players, turn_order, auto_pass == "True", where)


def _read_board(lines: list[tuple[int, str]], last: int, num_players: int) -> npt.NDArray[np.int8]:
    """Return the (11, 11) board from the numbered lines of text that follow line `last`."""
    signs = CELL_SIGNS[: num_players + 1] + CELL_SIGNS[NEUTRAL_STONE]
    codes: list[int] = []
    for index, drawn in enumerate(_board_lines()):
        expected = f"{' '.join(drawn.split())!r}" + (f" with each ? one of {' '.join(signs)}" if "?" in drawn else "")
        if index >= len(lines):
            raise ValueError(f"line {last + 1}: expected {expected}, found the end of the text")
        last, line = lines[index]
        words, wanted = line.split(), drawn.split()
        if len(words) != len(wanted) or any(
            word != want if want != "?" else len(word) != 1 or word not in signs
            for word, want in zip(words, wanted, strict=True)
        ):
            raise ValueError(f"line {last}: expected {expected}, found {quote(line)}")
        codes.extend(CELL_SIGNS.index(word) for word, want in zip(words, wanted, strict=True) if want == "?")
    for number, line in lines[index + 1 :]:
        raise ValueError(f"line {number}: expected the end of the text, found {quote(line)}")
    board = np.zeros(NUM_SQUARES, np.int8)
    board[_SIGN_SQUARES] = codes
    return board.reshape(SIZE, SIZE)
