"""Draw a position of 9tka in pixels, with pygame on a surface that needs no display.

Start reading at `draw`. `render.py` calls it, and has text and SVG.

Lengths are in squares of the board. The background is drawn once for each size. pygame is imported by the functions
that draw, not with this module.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ninetka_env.core.drawing import (
    Canvas,
    Colour,
    Floats,
    Theme,
    find_theme,
    load_pygame,
    mix,
    shaded_lens,
    sprite_coordinates,
    stone_sprite,
)
from ninetka_env.games.ninetka.describe import describe_last_action, last_landing
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import COLUMN_NAMES, EDGE, NEUTRAL_STONE, NUM_SLOTS, SIZE
from ninetka_env.games.ninetka.rules import Phase
from ninetka_env.games.ninetka.text import SEATS

STONE_COLOURS: tuple[Colour, ...] = ((246, 198, 55), (62, 126, 206), (236, 118, 42), (64, 168, 96), (150, 40, 52))
"""RGB of the stones: seats 0..3, then neutral."""

_WOOD, _WELL, _FELT, _LINE = (118, 82, 56), (90, 60, 41), (230, 216, 190), (200, 181, 149)
_NAMES, _PATH, _BAR = (214, 191, 160), (58, 48, 42), (196, 74, 58)
HEIGHT_IN_SQUARES, _BOARD_OFFSET = 12.6, 0.8
"""The height of the picture, and the distance of the squares from its top and left edge, in squares."""


def draw(game: Game, size: int = 720, theme: str = "light") -> Any:
    """Return the picture as a `pygame.Surface`; see `render_rgb`. Needs no display."""
    if not 100 <= size <= 4000:
        raise ValueError(f"size={size}: expected a height of 100..4000 pixels")
    canvas = _Canvas(size, find_theme(theme))
    _draw_sections(canvas, game)
    _draw_slide(canvas, game)
    _draw_stones(canvas, game)
    _draw_panel(canvas, game)
    return canvas.finished()


def centre(square: int) -> tuple[float, float]:
    """Return the centre of a square as (x, y), in squares from the left and the top of the picture."""
    row, col = divmod(square, SIZE)
    return _BOARD_OFFSET + col + 0.5, _BOARD_OFFSET + row + 0.5


class _Canvas(Canvas):
    """A canvas in units of board squares that starts with the background."""

    def __init__(self, size: int, theme: Theme, background: bool = True) -> None:
        super().__init__((7 * size // 5, size), HEIGHT_IN_SQUARES, _background(size, theme) if background else None)
        self.theme = theme

    def stone(self, x: float, y: float, code: int, diameter: float = 0.82, dimmed: bool = False) -> None:
        """Draw a stone with its shadow."""
        self.sprite(_stone_sprite(code, round(diameter * self.cell), dimmed), x, y)

    def mark(self, x: float, y: float, code: int, colour: Colour, radius: float = 2.8) -> None:
        """Draw only the mark of a cell code, in the size that it has on a stone of this radius."""
        self.sprite(_mark_sprite(code, round(2 * radius * self.cell), colour), x, y)


@functools.lru_cache(maxsize=64)
def _stone_sprite(code: int, diameter: int, dimmed: bool) -> Any:
    """Return a stone with light from the top left and its shadow, on a transparent surface."""
    x, y = sprite_coordinates(diameter)
    rgb = shaded_lens(STONE_COLOURS[code - 1], x, y)
    ink = mix(STONE_COLOURS[code - 1], *((255, 255, 255), 0.72) if code in (2, 5) else ((40, 20, 0), 0.62))
    inside = np.clip(0.5 - _mark_distance(code, x, y) * diameter / 2, 0, 1)[..., None]
    rgb = rgb * (1 - inside) + np.array(ink) * inside
    if dimmed:
        rgb = rgb * 0.42 + np.array(_WELL) * 0.58
    return stone_sprite(rgb, diameter, 0.4 if dimmed else 1)


@functools.lru_cache(maxsize=16)
def _mark_sprite(code: int, diameter: int, colour: Colour) -> Any:
    """Return the mark of a cell code on a transparent surface, in the size that it has on a stone of this diameter."""
    side = diameter // 2
    y, x = (np.mgrid[:side, :side] - (side - 1) / 2) / (diameter / 2)
    alpha = 255 * np.clip(0.5 - _mark_distance(code, x, y) * diameter / 2, 0, 1)
    rgba = np.dstack([np.broadcast_to(np.array(colour), (side, side, 3)), alpha])
    return load_pygame().image.frombytes(rgba.astype(np.uint8).tobytes(), (side, side), "RGBA")


def _mark_distance(code: int, x: Floats, y: Floats) -> Floats:
    """Return the distance to the mark of a cell code, negative inside it, in units of the stone's radius."""
    if code == 1:
        return np.hypot(x, y) - 0.3
    if code == 2:
        return np.maximum(0.866 * np.abs(x) - 0.5 * y, y) - 0.2
    if code == 3:
        return np.maximum(np.abs(x), np.abs(y)) - 0.28
    if code == 4:
        return (np.abs(x) + np.abs(y) - 0.46) * 0.707
    u, v = np.abs(x + y) * 0.707, np.abs(x - y) * 0.707
    return np.minimum(np.maximum(u - 0.42, v - 0.11), np.maximum(v - 0.42, u - 0.11))


@functools.lru_cache(maxsize=2)
def _background(size: int, theme: Theme) -> Any:
    """Return a surface with the unchanging background: page, wooden frame with wells, names of rows and columns."""
    canvas = _Canvas(size, theme, background=False)
    canvas.surface.fill(theme.page)
    length = HEIGHT_IN_SQUARES - 0.4
    canvas.box(0.24, 0.27, length, length, mix(theme.page, (0, 0, 0), 0.2), 0.35)
    canvas.box(0.2, 0.2, length, length, _WOOD, 0.35)
    canvas.add_wood_grain(_WOOD)
    for square in np.flatnonzero(EDGE).tolist():
        x, y = centre(square)
        canvas.disc(x, y + 0.025, 0.4, mix(_WOOD, (255, 235, 200), 0.18))
        canvas.disc(x, y, 0.4, _WELL)
        canvas.disc(x, y + 0.03, 0.37, mix(_WELL, _WOOD, 0.25))
    for place in range(SIZE):
        middle = _BOARD_OFFSET + place + 0.5
        for far in (0.5, HEIGHT_IN_SQUARES - 0.5):
            canvas.text(COLUMN_NAMES[place], middle, far, 0.42, _NAMES, 0.5)
            canvas.text(str(SIZE - place), far, middle, 0.42, _NAMES, 0.5)
    return canvas.surface


def _draw_sections(canvas: _Canvas, game: Game) -> None:
    """Draw the nine sections, in the colours of their owners."""
    start = _BOARD_OFFSET + 1
    canvas.box(start - 0.06, start - 0.06, 9.12, 9.12, mix(_WELL, (0, 0, 0), 0.35), 0.1)
    for section, owner in enumerate(game.section_owners().tolist()):
        x, y = start + 3 * (section % 3), start + 3 * (section // 3)
        back = _FELT if owner < 0 else mix(_FELT, STONE_COLOURS[owner], 0.42)
        line = _LINE if owner < 0 else mix(_LINE, STONE_COLOURS[owner], 0.55)
        canvas.box(x + 0.03, y + 0.03, 2.94, 2.94, back, 0.08)
        if owner >= 0:
            canvas.mark(x + 1.5, y + 1.5, owner + 1, mix(back, STONE_COLOURS[owner], 0.3))
        for place in (1, 2):
            canvas.box(x + place - 0.015, y + 0.03, 0.03, 2.94, line)
            canvas.box(x + 0.03, y + place - 0.015, 2.94, 0.03, line)
    if game.phase == Phase.NEUTRAL:
        for square in game.legal_actions().tolist():
            canvas.disc(*centre(square), 0.07, mix(_FELT, STONE_COLOURS[NEUTRAL_STONE - 1], 0.45))


def _draw_slide(canvas: _Canvas, game: Game) -> None:
    """Draw the path of the last slide."""
    origin, landing = game.last_action, last_landing(game)
    if origin is None or landing is None or origin == landing:
        return
    (x0, y0), (x1, y1) = centre(origin), centre(landing)
    colour = STONE_COLOURS[int(game.board.flat[landing]) - 1]
    canvas.disc(x0, y0, 0.40, mix(_WELL, colour, 0.85), 0.05)
    steps = round(max(abs(x1 - x0), abs(y1 - y0)) * 4)
    for step in range(2, steps):
        share = step / steps
        canvas.disc(x0 + (x1 - x0) * share, y0 + (y1 - y0) * share, 0.04 + 0.06 * share, mix(_PATH, _FELT, 0.2))


def _draw_stones(canvas: _Canvas, game: Game) -> None:
    """Draw all stones, bars and arrows for blocked and movable edge stones, and a ring around the last stone."""
    movable, landing = game.movable().ravel(), last_landing(game)
    for square in np.flatnonzero(game.board.ravel()).tolist():
        x, y = centre(square)
        code = int(game.board.flat[square])
        on_edge = game.phase == Phase.MOVEMENT and bool(EDGE[square])
        canvas.stone(x, y, code, dimmed=on_edge and not movable[square])
        if square == landing:
            canvas.disc(x, y, 0.46, (255, 255, 255), 0.07)
        if on_edge and not movable[square]:
            _draw_slide_marker(canvas, square, blocked=True)
        elif on_edge and code == game.to_move + 1 and not game.is_over:
            _draw_slide_marker(canvas, square, blocked=False)


def _draw_slide_marker(canvas: _Canvas, square: int, blocked: bool) -> None:
    """Draw a bar between a blocked edge stone and the board, or an arrow in front of a movable edge stone."""
    row, col = divmod(square, SIZE)
    inward = (int(col == 0) - int(col == 10), int(row == 0) - int(row == 10))
    x, y = centre(square)
    x, y = x + 0.5 * inward[0], y + 0.5 * inward[1]
    if blocked:
        width, height = (0.11, 0.6) if inward[0] else (0.6, 0.11)
        canvas.box(x - width / 2, y - height / 2, width, height, _BAR, 0.05)
        return
    tip = (x + 0.16 * inward[0], y + 0.16 * inward[1])
    sides = [(x - 0.04 * inward[0] + k * inward[1], y - 0.04 * inward[1] + k * inward[0]) for k in (0.16, -0.16)]
    canvas.polygon([tip, *sides], (255, 252, 244))


def _draw_panel(canvas: _Canvas, game: Game) -> None:
    """Draw the panel next to the board: phase, seats with their scores, the last move."""
    theme, left, width = canvas.theme, HEIGHT_IN_SQUARES + 0.2, HEIGHT_IN_SQUARES * 0.4 - 0.5
    canvas.text("9tka", left, 0.95, 1.5, theme.text)
    canvas.text(headline(game), left, 1.85, 0.52, theme.text if game.is_over else theme.faint)
    _draw_progress(canvas, game, left, width)
    active = active_seat(game)
    for seat, score in enumerate(game.scores().tolist()):
        top = 2.95 + 1.8 * seat
        colour = STONE_COLOURS[seat]
        canvas.box(left + 0.03, top + 0.06, width, 1.6, mix(theme.page, (0, 0, 0), 0.1), 0.2)
        canvas.box(left, top, width, 1.6, mix(theme.card, colour, theme.tint) if seat == active else theme.card, 0.2)
        if seat == active:
            canvas.box(left, top + 0.25, 0.13, 1.1, colour, 0.06)
        canvas.stone(left + 0.85, top + 0.8, seat + 1, 0.95)
        canvas.text(SEATS[seat], left + 1.55, top + 0.58, 0.62, theme.text)
        canvas.text(seat_note(game, seat), left + 1.55, top + 1.1, 0.4, mix(theme.faint, theme.text, 0.4))
        canvas.text(str(score), left + width - 0.3, top + 0.82, 1.15, theme.text, 1)
    canvas.text(describe_last_action(game).split(";")[0], left, 11.9, 0.46, theme.faint)


def _draw_progress(canvas: _Canvas, game: Game, left: float, width: float) -> None:
    """Draw progress bars for the three phases of 9, 36 and at most 36 plies."""
    for first, plies in ((0, 9), (9, 36), (45, 36)):
        x, length = left + first / 81 * width, plies / 81 * width - 0.08
        done = 1.0 if game.is_over else min(1.0, max(0.0, (game.ply - first) / plies))
        canvas.box(x, 2.3, length, 0.14, mix(canvas.theme.page, canvas.theme.faint, 0.35), 0.07)
        if done:
            canvas.box(x, 2.3, max(0.14, length * done), 0.14, canvas.theme.done, 0.07)


# Texts for pictures, shared with `render`


def headline(game: Game) -> str:
    """Return the status of the game as text: the phase and ply, or the winner."""
    if game.is_over:
        return f"{SEATS[game.winner()]} wins"
    return f"{game.phase.name.lower()} phase, ply {game.ply}"


def active_seat(game: Game) -> int:
    """Return the seat to highlight: the winner of a finished game, else the seat to move."""
    return game.winner() if game.is_over else game.to_move


def seat_note(game: Game, seat: int) -> str:
    """Return a short text on what a seat can still do, or how it won."""
    if game.is_over:
        tied = game.event is None and np.count_nonzero(game.scores() == game.scores().max()) > 1
        return "" if seat != game.winner() else "wins the tie" if tied else "wins"
    if game.phase == Phase.NEUTRAL:
        return "places neutral" if seat == game.to_move else ""
    mine = game.board.ravel()[EDGE] == seat + 1
    if game.phase == Phase.PLACEMENT:
        left = NUM_SLOTS // game.num_players - int(np.count_nonzero(mine))
        return f"{left} stones left" if left != 1 else "1 stone left"
    movable = int(np.count_nonzero(mine & game.movable().ravel()[EDGE]))
    if movable:
        return f"{movable} can slide"
    return "passed over" if seat in game.passed else "cannot slide"
