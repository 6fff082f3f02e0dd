"""Render positions of Go: text for a terminal, SVG for web pages; RGB pictures come from `picture`.

`ninetka_env.api.rendering` calls these functions for the environments.
"""

from __future__ import annotations

import numpy as np

from ninetka_env.core.drawing import ansi_text
from ninetka_env.games.go.game import Game
from ninetka_env.games.go.geometry import FILE_NAMES, star_points
from ninetka_env.games.go.picture import STONE_COLOURS, headline, last_turn, render_diagram, render_rgb
from ninetka_env.games.go.text import SEAT_NAMES

__all__ = ["SVG_STYLE", "render_ansi", "render_diagram", "render_rgb", "render_svg"]

_MARKS = "●○"
_WOOD, _INK, _LIGHT = (222, 184, 122), (96, 68, 40), (255, 255, 255)


def render_ansi(game: Game, color: bool = True) -> str:
    """Return the board as text for a terminal.

    The last stone is in brackets. `x` marks a point that the ko rule forbids.

    Args:
        game: the position.
        color: whether to use 24-bit colours (ANSI escapes).
    """
    names = "    " + "".join(f" {name} " for name in FILE_NAMES[: game.size])
    lines = [names, *_ansi_ranks(game, color), names]
    side = ["", f"Go  {headline(game)}", ""]
    captured, scores = game.captured().tolist(), game.scores().tolist()
    active = game.winner() if game.is_over else game.to_move
    for seat, name in enumerate(SEAT_NAMES):
        arrow = "▶" if seat == active else " "
        side.append(f"{arrow} {_MARKS[seat]} {name}  {scores[seat]:g}   took {captured[seat]}")
    side += ["", last_turn(game)]
    lines += [" " * len(names)] * (len(side) - len(lines))
    side += [""] * (len(lines) - len(side))
    return "\n".join(f"{line}   {note}".rstrip() for line, note in zip(lines, side, strict=True))


def _ansi_ranks(game: Game, color: bool) -> list[str]:
    """Return the ranks as lines of text, the highest rank first."""
    size, last, kos = game.size, int(game.records["last"][0]), set(game.ko_points().tolist())
    stars, lines = set(star_points(size)), []
    for rank in range(size - 1, -1, -1):
        words = []
        for file in range(size):
            point = size * rank + file
            code = int(game.board[rank, file])
            sign = _MARKS[code - 1] if code else "x" if point in kos else "+" if point in stars else "·"
            ink = _INK if not code else (0, 0, 0) if code == 1 else _LIGHT
            left, right = "[]" if point == last else "  "
            words.append(ansi_text(f"{left}{'●' if color and code else sign}{right}", ink, _WOOD, color))
        lines.append(f"{rank + 1:3} {''.join(words)}")
    return lines


SVG_STYLE = (
    ".wood{fill:rgb(222,184,122)}.line{stroke:rgb(96,68,40);stroke-width:.03}.star{fill:rgb(96,68,40)}"
    ".last{fill:none;stroke:rgb(214,72,52);stroke-width:.1}.board circle.stone{stroke:#0006;stroke-width:.03}"
    + "".join(f".seat{code}{{fill:rgb{colour};background:rgb{colour}}}" for code, colour in enumerate(STONE_COLOURS, 1))
)
"""The style sheet of `render_svg`."""


def render_svg(game: Game) -> str:
    """Return a position as an `<svg>` element: lines, stones, a ring on the last stone. Style it with `SVG_STYLE`."""
    size = game.size
    parts = [f'<rect class="wood" width="{size}" height="{size}" rx=".2"/>']
    for line in range(size):
        at, end = line + 0.5, size - 0.5
        parts.append(f'<path class="line" d="M.5 {at}H{end}M{at} .5V{end}"/>')
    for point in star_points(size):
        rank, file = divmod(point, size)
        parts.append(f'<circle class="star" cx="{file + 0.5}" cy="{size - rank - 0.5}" r=".09"/>')
    for rank, file in np.argwhere(game.board > 0).tolist():
        code = int(game.board[rank, file])
        parts.append(f'<circle class="stone seat{code}" cx="{file + 0.5}" cy="{size - rank - 0.5}" r=".46"/>')
    last = int(game.records["last"][0])
    if last >= 0:
        parts.append(f'<circle class="last" cx="{last % size + 0.5}" cy="{size - last // size - 0.5}" r=".22"/>')
    label = f"{headline(game)}, {' to '.join(f'{score:g}' for score in game.scores())} points"
    return f'<svg class="board" viewBox="0 0 {size} {size}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
