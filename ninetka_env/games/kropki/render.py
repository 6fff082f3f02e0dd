"""Render positions of Kropki as text for a terminal, and as an RGB array. Only `render_rgb` imports pygame."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_env.core.drawing import load_pygame
from ninetka_env.games.kropki.game import Game
from ninetka_env.games.kropki.geometry import column_name
from ninetka_env.games.kropki.picture import INKS, draw, headline
from ninetka_env.games.kropki.text import SEATS

TERMINAL_SIGNS = {(0, 0): "·", (1, 0): "●", (2, 0): "○", (1, 2): "x", (2, 1): "o", (1, 1): "#", (2, 2): "@",
                  (0, 1): "/", (0, 2): "\\"}  # fmt: skip
"""The sign of each (point, region), 0 for none, else seat + 1.

In order: free, live points, captured points, points inside own regions, empty nodes inside regions.
"""
_PAPER = (252, 250, 243)


def render_ansi(game: Game, color: bool = True) -> str:
    """Return the board as text for a terminal. The widest board, 39 columns, needs lines of 110 characters.

    The last point is in brackets. While a seat is drawing, the text next to the board lists the legal actions.

    Args:
        game: the position.
        color: use 24-bit colours (ANSI escapes); without them the text has the same content.
    """
    names = "".join(f"{column_name(column):>2}"[-2:] for column in range(game.width))
    lines = [f"    {names}", *(_row(game, row, color) for row in range(game.height))]
    side = [
        f"Kropki {game.width} x {game.height}, {game.territory}",
        headline(game),
        "",
        *_scores(game),
        *_drawable(game),
    ]
    lines += [""] * (len(side) - len(lines))
    side += [""] * (len(lines) - len(side))
    width = 2 * game.width + 6
    return "\n".join(
        f"{line}{' ' * (width - _visible_length(line))}{note}".rstrip() for line, note in zip(lines, side, strict=True)
    )


def _row(game: Game, row: int, color: bool) -> str:
    """Return a row of the board as text, with its number."""
    codes = list(zip(game.board[row].tolist(), game.region[row].tolist(), strict=True))
    last = game.last_point if game.last_point is not None else -1
    last_column = last % game.width if last // game.width == row else -2
    words = [f"{game.height - row:3} "]
    for column, code in enumerate(codes):
        before = "[" if column == last_column else "]" if column == last_column + 1 else " "
        words.append(_paint(before, (0, 0), color) + _paint(TERMINAL_SIGNS[code], code, color))
    return "".join(words) + _paint("]" if last_column == game.width - 1 else " ", (0, 0), color)


def _paint(text: str, code: tuple[int, int], color: bool) -> str:
    """Colour text in the ink of the point's seat, on paper that is tinted with the ink of the region's seat."""
    if not color:
        return text
    point, region = code
    ink = INKS[(point or region) - 1] if point or region else (150, 160, 170)
    paper = _PAPER if not region else tuple((2 * p + i) // 3 for p, i in zip(_PAPER, INKS[region - 1], strict=True))
    return f"\x1b[38;2;{ink[0]};{ink[1]};{ink[2]};48;2;{paper[0]};{paper[1]};{paper[2]}m{text}\x1b[0m"


def _visible_length(line: str) -> int:
    """Return the length of a line of text without its escape sequences."""
    return sum(part.partition("m")[2] != "" and len(part.partition("m")[2]) for part in line.split("\x1b")[1:]) + len(
        line.split("\x1b")[0]
    )


def _scores(game: Game) -> list[str]:
    return [f"{'●○'[seat]} {SEATS[seat]} {score}" for seat, score in enumerate(game.scores().tolist())]


def _drawable(game: Game) -> list[str]:
    """Return the lines of text with the names of the legal actions while a seat is drawing."""
    if not game.drawing or game.is_over:
        return []
    return ["", *(game.action_name(int(action)) for action in game.legal_actions())]


def render_rgb(game: Game, size: int = 720, theme: str = "light") -> npt.NDArray[np.uint8]:
    """Return a picture, (size, W, 3) uint8; W follows from the shape of the board. Needs no display.

    Args:
        game: the position.
        size: height in pixels, 100 to 4000.
        theme: the colours around the board, `"light"` or `"dark"`.

    Raises:
        ValueError: if the size is out of range or there is no such theme.
        ImportError: if pygame is missing; the message names the extra to install.
    """
    return np.ascontiguousarray(load_pygame().surfarray.array3d(draw(game, size, theme)).swapaxes(0, 1))
