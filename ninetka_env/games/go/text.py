"""Positions of Go as text: one line for programs and a drawing for people.

`str(game)` writes both. `Game.from_text` reads both, or the line alone:

    go5 ...../.XO../X.XO./.XO../..... W ko=- komi=7 caps=0,1 ply=7 rules=simple,area

    5 . . . . .
    4 . X O . .
    3 X . X O .
    2 . X O . .
    1 . . . . .
      A B C D E

`X` is a black stone, `O` a white stone. The line contains the size of the board, its ranks from the highest down, the
player to move, the point that the simple ko rule forbids, komi, the stones captured by Black and White, the plies
played, and the rules: ko and scoring. Values that differ from their defaults follow, in this order: the limit of plies
(`max=100`), the passes in a row (`passes=1`), and the other options (`handicap=2`, `planes=alphazero`, `resign`).
`resigned` replaces `resign` if the player to move has resigned. The history is not written: after reading, superko
knows only the current board, and the planes of earlier turns are empty.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.text import quote
from ninetka_env.games.go.geometry import FILE_NAMES, MAX_SIZE, MIN_SIZE, point_index, point_name
from ninetka_env.games.go.repetition import MAX_PLIES
from ninetka_env.games.go.rules import KO_RULES, PLANE_SETS, SCORINGS

SEAT_NAMES = ("Black", "White")
"""The names of the seats, by the colours of their stones."""
MAX_CAPTURED = 9999
"""The maximum number of captured stones that a text can contain."""
CELL_SIGNS = ".XO"
"""The sign of each cell code: empty, black, white."""


def draw(board: npt.NDArray[np.int8]) -> str:
    """Return the drawing of a (size, size) board of cell codes, rank 1 first; the drawing has rank 1 at the bottom."""
    size = len(board)
    width = len(str(size))
    ranks = [f"{rank + 1:{width}} {' '.join(CELL_SIGNS[cell] for cell in board[rank])}" for rank in range(size)]
    return "\n".join([*ranks[::-1], f"{'':{width}} {' '.join(FILE_NAMES[:size])}"])


def read_drawing(text: str) -> npt.NDArray[np.int8]:
    """Parse a drawing made by `draw`; return the (size, size) board of cell codes, rank 1 first. Spacing may vary.

    Raises:
        ValueError: if the drawing is not valid; the message names the line and what is expected there.
    """
    lines = [(number, line.split()) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    size = len(lines) - 1
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise ValueError(
            f"a board of {max(size, 0)} ranks: expected {MIN_SIZE} to {MAX_SIZE}, and a line of file names"
        )
    board = np.zeros((size, size), np.int8)
    for rank, (number, words) in zip(range(size - 1, -1, -1), lines, strict=False):
        if len(words) != size + 1 or words[0] != str(rank + 1) or not {*words[1:]} <= {*CELL_SIGNS}:
            raise ValueError(
                f"line {number}: expected {rank + 1} and {size} of {' '.join(CELL_SIGNS)}, "
                f"found {quote(' '.join(words))}"
            )
        board[rank] = [CELL_SIGNS.index(sign) for sign in words[1:]]
    number, words = lines[-1]
    if words != [*FILE_NAMES[:size]]:
        raise ValueError(f"line {number}: expected {' '.join(FILE_NAMES[:size])!r}, found {quote(' '.join(words))}")
    return board


class Position(NamedTuple):
    """The content of the text of a position."""

    board: npt.NDArray[np.int8]
    """(size, size) cell codes, rank 1 first."""
    to_move: int
    ko_point: int
    """-1 for none."""
    komi: float
    captured: tuple[int, int]
    plies: int
    ko: str
    scoring: str
    max_plies: int | None
    """None for twice the number of points."""
    passes: int
    handicap: int
    planes: str
    allow_resign: bool
    resigned: bool
    """Whether the seat to move has resigned by an action."""


def write_position(position: Position) -> str:
    """Return the text of a position, which `read_position` reads; the module docstring describes the format."""
    size = len(position.board)
    ranks = "/".join("".join(CELL_SIGNS[cell] for cell in rank) for rank in position.board[::-1])
    ko = "-" if position.ko_point < 0 else point_name(position.ko_point, size)
    black, white = position.captured
    line = f"go{size} {ranks} {SEAT_NAMES[position.to_move][0]} ko={ko} komi={position.komi:g} caps={black},{white}"
    line += f" ply={position.plies} rules={position.ko},{position.scoring}"
    optional_words = {
        "max": position.max_plies if position.max_plies != 2 * size**2 else None,
        "passes": position.passes or None,
        "handicap": position.handicap or None,
        "planes": position.planes if position.planes != PLANE_SETS[0] else None,
    }
    line += "".join(f" {name}={value}" for name, value in optional_words.items() if value is not None)
    line += " resigned" if position.resigned else " resign" if position.allow_resign else ""
    return f"{line}\n\n{draw(position.board)}"


_NUMBER = r"(0|[1-9][0-9]{0,3})"
_REQUIRED_WORDS = (
    ("go9, or another size", r"go([1-9][0-9]?)"),
    ("the ranks, highest first, with / between them", r"([.XO/]+)"),
    ("B or W", r"([BW])"),
    ("ko=- or a point", r"ko=(-|[A-HJ-T][1-9][0-9]?)"),
    ("komi=7 or another number", r"komi=(-?[0-9]{1,3}(?:\.[05])?)"),
    ("caps=0,0 or other numbers", rf"caps={_NUMBER},{_NUMBER}"),
    ("ply=0 or another number", rf"ply={_NUMBER}"),
    ("rules=simple,area or others", rf"rules=({'|'.join(KO_RULES)}),({'|'.join(SCORINGS)})"),
)
"""For each required word of the line: a description for error messages, and the pattern."""
_OPTIONAL_WORDS = re.compile(
    rf"(?: max={_NUMBER})?(?: passes=([12]))?(?: handicap=([2-5]))?(?: planes=({PLANE_SETS[1]}))?(?: (resign(?:ed)?))?"
)


def read_position(text: str) -> Position:
    """Parse a text that `write_position` returned, or only its first line.

    Raises:
        ValueError: if the text is not valid; the message names the wrong word and what is expected.
    """
    line, _, drawing = text.strip().partition("\n")
    words = line.split()
    found: list[str] = []
    for place, (expected, pattern) in enumerate(_REQUIRED_WORDS):
        word = words[place] if place < len(words) else ""
        match = re.fullmatch(pattern, word)
        if not match:
            raise ValueError(f"word {place + 1} of the position: expected {expected}, found {quote(word)}")
        found.extend(match.groups())
    optional_words = _OPTIONAL_WORDS.fullmatch("".join(f" {word}" for word in words[len(_REQUIRED_WORDS) :]))
    if not optional_words:
        raise ValueError(
            "after the rules: expected some of max=.. passes=.. handicap=.. planes=.. resign, in this order, "
            f"found {quote(' '.join(words[len(_REQUIRED_WORDS) :]))}"
        )
    size, ranks, colour, point, komi, black, white, plies, ko, scoring = found
    board = _read_ranks(ranks, int(size))
    _check_drawing(drawing, board)
    return Position(
        board,
        "BW".index(colour),
        -1 if point == "-" else point_index(point, int(size)),
        float(komi),
        (int(black), int(white)),
        _check_plies("ply", int(plies)),
        ko,
        scoring,
        None if optional_words[1] is None else _check_plies("max", int(optional_words[1])),
        int(optional_words[2] or 0),
        int(optional_words[3] or 0),
        optional_words[4] or PLANE_SETS[0],
        optional_words[5] is not None,
        optional_words[5] == "resigned",
    )


def _check_plies(name: str, number: int) -> int:
    if number > MAX_PLIES:
        raise ValueError(f"{name}={number}: expected at most {MAX_PLIES}")
    return number


def _read_ranks(text: str, size: int) -> npt.NDArray[np.int8]:
    """Parse the ranks, given from the highest down; return the (size, size) board, rank 1 first."""
    if not MIN_SIZE <= size <= MAX_SIZE:
        raise ValueError(f"go{size}: expected a size of {MIN_SIZE} to {MAX_SIZE}")
    ranks = text.split("/")
    if len(ranks) != size or any(len(rank) != size for rank in ranks):
        raise ValueError(f"expected {size} ranks of {size} signs, found {quote(text)}")
    return np.array([[CELL_SIGNS.index(sign) for sign in rank] for rank in ranks[::-1]], np.int8)


def _check_drawing(drawing: str, board: npt.NDArray[np.int8]) -> None:
    if drawing.strip() and not np.array_equal(read_drawing(f"\n{drawing}"), board):
        raise ValueError("the drawing of the board differs from the line above it")
