"""Render positions of 9tka as text for a terminal, as an RGB array, and as SVG.

The pixels are drawn in `picture.py`. `ninetka_env.api.rendering` calls the functions for the environments.

Every seat has its own colour and its own mark (yellow disc, blue triangle, orange square, green diamond; a cross for
neutral stones), so the colours are not needed to distinguish seats. Only drawing pixels imports pygame.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_env.core.drawing import ansi_text, mix, pixels_of
from ninetka_env.games.ninetka.describe import describe_last_action, last_landing
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import COLUMN_NAMES, EDGE, INNER, NEUTRAL_STONE, NUM_SECTIONS, SECTION, SIZE
from ninetka_env.games.ninetka.picture import STONE_COLOURS, active_seat, draw, headline, seat_note
from ninetka_env.games.ninetka.rules import Phase
from ninetka_env.games.ninetka.text import SEATS

# Text for a terminal

_MARKS = "●▲■◆✖"
_HOLLOW_MARKS = "○△□◇"
_BORDERS = (("┌", "┬", "┐"), ("├", "┼", "┤"), ("├", "┼", "┤"), ("└", "┴", "┘"))
_BOARD_BACK, _FRAME_BACK, _INK = (48, 44, 42), (72, 58, 46), (150, 140, 130)


def render_ansi(game: Game, color: bool = True) -> str:
    """Return the board as text for a terminal of at least 80 columns.

    Stones are drawn as their marks, and as hollow marks if they are on the edge and can no longer slide. The stone of
    the last action is in brackets, and the square from which it slid is `( )`. Sections have the colour of their owner.

    Args:
        game: the position.
        color: use 24-bit colours (ANSI escapes); without them the text has the same content.
    """
    side = _ansi_side(game, color)
    lines = [_ansi_columns(), *_ansi_rows(game, color)]
    side += [""] * (len(lines) - len(side))
    return "\n".join(f"{line}   {note}".rstrip() for line, note in zip(lines, side, strict=True))


def _ansi_columns() -> str:
    names = [f" {name} " for name in COLUMN_NAMES]
    return "    " + names[0] + " " + " ".join("".join(names[a : a + 3]) for a in (1, 4, 7)) + " " + names[10]


def _ansi_rows(game: Game, color: bool) -> list[str]:
    """Return lines of text: the eleven rows, with the borders of the sections between them."""
    cells = _ansi_cells(game, color)
    lines = []
    for row in range(SIZE):
        words = cells[SIZE * row : SIZE * row + SIZE]
        bar = ansi_text("│" if 1 <= row <= 9 else " ", _INK, _FRAME_BACK, color)
        parts = ["".join(words[a:b]) for a, b in ((0, 1), (1, 4), (4, 7), (7, 10), (10, 11))]
        lines.append(f"{SIZE - row:3} " + bar.join(parts))
        if row % 3 == 0 and row < 10:
            left, middle, right = _BORDERS[row // 3]
            border = left + middle.join(["─" * 9] * 3) + right
            lines.append("    " + ansi_text(f"   {border}   ", _INK, _FRAME_BACK, color))
    return lines


def _ansi_cells(game: Game, color: bool) -> list[str]:
    """Return the three characters of each of the 121 squares."""
    board, owners = game.board.ravel().tolist(), game.section_owners()
    blocked = EDGE & ~game.movable().ravel() & (game.phase == Phase.MOVEMENT)
    landing = last_landing(game)
    cells = []
    for square, code in enumerate(board):
        owner = owners[SECTION[square]] if INNER[square] else -1
        plain = _BOARD_BACK if INNER[square] else _FRAME_BACK
        back = plain if owner < 0 else mix(plain, STONE_COLOURS[owner], 0.28)
        ink, mark = _INK, "·" if INNER[square] or EDGE[square] else " "
        if code:
            mark = (_HOLLOW_MARKS if blocked[square] else _MARKS)[code - 1]
            colour = mix(STONE_COLOURS[code - 1], (255, 190, 190), 0.35 * (code == NEUTRAL_STONE))
            ink = mix(back, colour, 0.6 if blocked[square] else 1)
        left, right = "[]" if square == landing else "()" if square == game.last_action else "  "
        cells.append(ansi_text(left + mark + right, ink, back, color))
    return cells


def _ansi_side(game: Game, color: bool) -> list[str]:
    """Return the lines of text to the right of the board."""
    lines = ["", f"9tka  {headline(game)}", ""]
    scores = game.scores()
    for seat in range(game.num_players):
        arrow = "▶" if seat == active_seat(game) else " "
        name = ansi_text(f"{_MARKS[seat]} {SEATS[seat]:6}", STONE_COLOURS[seat], None, color)
        lines.append(f"{arrow} {name} {scores[seat]}   {seat_note(game, seat)}".rstrip())
    owners = [_MARKS[owner] if owner >= 0 else "·" for owner in game.section_owners()]
    lines += ["", "sections", *("  " + " ".join(owners[k : k + 3]) for k in (0, 3, 6)), ""]
    return [*lines, describe_last_action(game)]


# Pixels


def render_rgb(game: Game, size: int = 720, theme: str = "light") -> npt.NDArray[np.uint8]:
    """Return a picture of the position, (size, 7 * size // 5, 3) uint8.

    Args:
        game: the position.
        size: the height in pixels, 100..4000.
        theme: the colours around the board, `"light"` or `"dark"`.

    Raises:
        ValueError: if `size` is out of range or there is no such theme.
        ImportError: if pygame is missing; the message names the extra to install.
    """
    return pixels_of(draw(game, size, theme))


# SVG for web pages

SVG_STYLE = (
    ".section{fill:var(--grid,#e4e7ec)}.board circle{stroke:#0004;stroke-width:.04}"
    ".board text{font-size:.5px;font-weight:700;text-anchor:middle;fill:#0009}"
    + "".join(
        f".seat{code}{{fill:rgb{colour};background:rgb{colour}}}.owner{code}{{fill:rgb{colour};fill-opacity:.3}}"
        for code, colour in enumerate(STONE_COLOURS, 1)
    )
)
"""The style sheet of `render_svg`."""


def render_svg(game: Game) -> str:
    """Return a position as an `<svg>` element: sections in the colours of their owners, stones with their cell code."""
    parts = []
    owners = game.section_owners()
    for section in range(NUM_SECTIONS):
        left, top = 1.05 + 3 * (section % 3), 1.05 + 3 * (section // 3)
        owned = f" owner{owners[section] + 1}" if owners[section] >= 0 else ""
        parts.append(f'<rect class="section{owned}" x="{left}" y="{top}" width="2.9" height="2.9" rx=".15"/>')
    for row, col in np.argwhere(game.board > 0).tolist():
        code = int(game.board[row, col])
        x, y = col + 0.5, row + 0.5
        sign = "" if code == NEUTRAL_STONE else f'<text x="{x}" y="{y + 0.2}">{code}</text>'
        parts.append(f'<circle class="seat{code}" cx="{x}" cy="{y}" r=".4"/>{sign}')
    label = f"{headline(game)}, {' to '.join(map(str, game.scores()))} sections"
    return f'<svg class="board" viewBox="0 0 {SIZE} {SIZE}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
