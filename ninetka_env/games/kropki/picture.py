"""Draw a position of Kropki in pixels: squared paper, points, chains and hatched regions, and the score.

The picture is drawn at `_OVERSAMPLE` times the requested size and then scaled down, so that all edges are smooth.
pygame is imported by the functions that draw, not with this module.

Regions and chains are drawn one square of the paper at a time, and only `Game.region` is needed: if one corner of a
square is in a region, each of its two neighbouring corners is in the region or a link of the region's chain.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from ninetka_env.core.drawing import LIGHT, Theme, find_theme, load_pygame
from ninetka_env.core.outcome import DRAWN
from ninetka_env.games.kropki.game import Game
from ninetka_env.games.kropki.geometry import column_name
from ninetka_env.games.kropki.text import SEATS

Colour = tuple[int, int, int]
Corner = tuple[int, int]
"""Row and column of a node."""

_PAPER, _GRID, _BORDER, _NAMES = (252, 250, 243), (196, 214, 230), (150, 176, 200), (132, 138, 146)
_LIGHT = LIGHT._replace(
    page=_PAPER, card=(244, 240, 230), active=(226, 234, 242), text=(52, 54, 60), faint=(132, 138, 146)
)
"""The light theme: the paper of the board is also the page."""
INKS: tuple[Colour, ...] = ((32, 38, 56), (205, 72, 52))
"""RGB colour of each seat. Black's points are dark and filled, White's points are red and open."""
_DRAWABLE_COLOUR = (245, 200, 80)
_OVERSAMPLE = 2
_MARGIN = 1.1
"""Margin beyond the outer nodes, in squares of the paper."""
_PAPER_MARGIN = 0.98
"""The part of the margin that is paper."""
_PANEL_WIDTH, _PANEL_LINES = 0.42, 12.0
"""Width of the panel as a share of the picture's height, and the number of text lines that fill the panel's height."""
_MAX_ASPECT = 1.7
"""Maximum width of the board as a multiple of the picture's height."""


def draw(game: Game, size: int = 720, theme: str = "light") -> Any:
    """Return the picture as a `pygame.Surface`; see `render_rgb`. Needs no display."""
    if not 100 <= size <= 4000:
        raise ValueError(f"size={size}: expected a height of 100..4000 pixels")
    sheet = _Sheet(game, size, find_theme(theme, _LIGHT))
    _draw_paper(sheet)
    for seat in range(2):
        _draw_regions(sheet, seat)
    _draw_points(sheet)
    _draw_panel(sheet)
    return sheet.downscaled()


class _Sheet:
    """A surface of `_OVERSAMPLE` times the requested size, with methods that draw in coordinates of nodes."""

    def __init__(self, game: Game, size: int, theme: Theme) -> None:
        self.pygame, self.game, self.theme = load_pygame(), game, theme
        self.board, self.region = game.board, game.region
        columns, rows = game.width - 1 + 2 * _MARGIN, game.height - 1 + 2 * _MARGIN
        height = _OVERSAMPLE * size
        self.square_size = min(height / rows, _MAX_ASPECT * height / columns)
        """Pixels from node to node."""
        self.line_height = height / _PANEL_LINES
        """Pixels from one text line of the panel to the next."""
        self.panel_left = columns * self.square_size
        self.board_top = (height - rows * self.square_size) / 2
        width = -(-round(self.panel_left + _PANEL_WIDTH * height) // _OVERSAMPLE)
        self._finished_size = (width, size)
        self.surface = self.pygame.Surface((_OVERSAMPLE * width, height))
        self.surface.fill(theme.page)

    def downscaled(self) -> Any:
        return self.pygame.transform.smoothscale(self.surface, self._finished_size)

    def node_position(self, row: float, column: float) -> tuple[float, float]:
        """Return the position of a node in pixels."""
        return (column + _MARGIN) * self.square_size, self.board_top + (row + _MARGIN) * self.square_size

    def stroke(self, start: Corner, end: Corner, colour: Colour, width: float) -> None:
        """Draw a line with round ends between two nodes; `width` is in squares."""
        (x, y), (to_x, to_y) = self.node_position(*start), self.node_position(*end)
        half = max(1.0, width * self.square_size / 2)
        length = np.hypot(to_x - x, to_y - y) or 1.0
        across, down = half * (to_y - y) / length, half * (x - to_x) / length
        corners = [(x + across, y + down), (to_x + across, to_y + down), (to_x - across, to_y - down),
                   (x - across, y - down)]  # fmt: skip
        self.pygame.draw.polygon(self.surface, colour, corners)
        for point in ((x, y), (to_x, to_y)):
            self.pygame.draw.circle(self.surface, colour, point, half)

    def disc(self, row: int, column: int, radius: float, colour: Colour, width: float = 0.0) -> None:
        """Draw a circle round a node, filled or with a line of `width`; lengths are in squares."""
        thickness = max(2, round(width * self.square_size)) if width else 0
        self.pygame.draw.circle(
            self.surface, colour, self.node_position(row, column), radius * self.square_size, thickness
        )

    def text(self, text: str, x: float, y: float, height: float, colour: Colour, align: float = 0.0) -> None:
        """Write a line of text centred on height y, in pixels; x is its start (`align=0`), middle (0.5) or end (1)."""
        drawn, box = _font(round(height)).render(text, colour)
        self.surface.blit(drawn, (round(x - align * box.width), round(y - box.height / 2)))


@functools.lru_cache(maxsize=32)
def _font(height: int) -> Any:
    return load_pygame().freetype.Font(None, max(4, 0.72 * height))


def _draw_paper(sheet: _Sheet) -> None:
    """Draw the paper, the grid, a little beyond the outer nodes, and the names of columns and rows."""
    game = sheet.game
    last_row, last_column = game.height - 1, game.width - 1
    left, top = sheet.node_position(-_PAPER_MARGIN, -_PAPER_MARGIN)
    right, bottom = sheet.node_position(last_row + _PAPER_MARGIN, last_column + _PAPER_MARGIN)
    paper = (round(left), round(top), round(right - left), round(bottom - top))
    sheet.pygame.draw.rect(sheet.surface, _PAPER, paper, border_radius=round(0.3 * sheet.line_height))
    size, thin = min(0.46 * sheet.square_size, 0.55 * sheet.line_height), max(1, round(0.03 * sheet.square_size))
    for row in range(game.height):
        colour = _BORDER if row in (0, last_row) else _GRID
        sheet.pygame.draw.line(
            sheet.surface, colour, sheet.node_position(row, -0.3), sheet.node_position(row, last_column + 0.3), thin
        )
        sheet.text(str(game.height - row), *sheet.node_position(row, -0.68), size, _NAMES, 0.5)
    for column in range(game.width):
        colour = _BORDER if column in (0, last_column) else _GRID
        sheet.pygame.draw.line(
            sheet.surface, colour, sheet.node_position(-0.3, column), sheet.node_position(last_row + 0.3, column), thin
        )
        sheet.text(column_name(column), *sheet.node_position(last_row + 0.68, column), size, _NAMES, 0.5)


# Regions


def _draw_regions(sheet: _Sheet, seat: int) -> None:
    """Hatch the regions of a seat and draw its chains round them."""
    if not (sheet.region == seat + 1).any():
        return
    mask = sheet.pygame.Surface(sheet.surface.get_size(), depth=8)
    links = []
    for corners in _region_polygons(sheet.region == seat + 1):
        sheet.pygame.draw.polygon(mask, 1, [sheet.node_position(*corner) for corner in corners])
        chain = [corner for corner in corners if sheet.region[corner] != seat + 1]
        if len(chain) == 2:  # a piece of the chain; two regions may share it
            links.append(chain)
    _hatch(sheet, mask, seat)
    for start, end in links:
        sheet.stroke(start, end, INKS[seat], 0.1)


def _region_polygons(inside: Any) -> Iterator[list[Corner]]:
    """Yield the part of each square that lies in a region, as a polygon of three or four corners."""
    for row, column in np.argwhere(inside[:-1, :-1] | inside[1:, :-1] | inside[:-1, 1:] | inside[1:, 1:]).tolist():
        square = [(row, column), (row, column + 1), (row + 1, column + 1), (row + 1, column)]
        yield [corner for i, corner in enumerate(square)
               if inside[corner] or inside[square[i - 1]] or inside[square[(i + 1) % 4]]]  # fmt: skip


def _hatch(sheet: _Sheet, mask: Any, seat: int) -> None:
    """Hatch the pixels that a mask covers, with strokes that rise for Black and fall for White."""
    pixels, covered = sheet.pygame.surfarray.pixels3d(sheet.surface), sheet.pygame.surfarray.array2d(mask) != 0
    x, y = np.nonzero(covered)
    period = max(6.0, sheet.square_size / 2.5)
    stroke = (x + (y if seat == 0 else -y)) % period < 0.22 * period
    share = np.where(stroke, 0.42, 0.13)[:, None]
    pixels[x, y] = (pixels[x, y] * (1 - share) + np.array(INKS[seat]) * share).astype(np.uint8)


# Points


def _draw_points(sheet: _Sheet) -> None:
    """Draw all points: inert points small, the last point with a ring, nodes of drawable cores highlighted."""
    game = sheet.game
    for row, column in np.argwhere(game.drawable() >= 0).tolist():
        sheet.disc(row, column, 0.42, _DRAWABLE_COLOUR)
    for row, column in np.argwhere(sheet.board).tolist():
        seat, live = int(sheet.board[row, column]) - 1, sheet.region[row, column] == 0
        radius = 0.3 if live else 0.2
        sheet.disc(row, column, radius, INKS[seat])
        if seat:
            sheet.disc(row, column, radius * 0.62, _PAPER)
    if game.last_point is not None:
        sheet.disc(*divmod(game.last_point, game.width), 0.44, INKS[int(sheet.board.flat[game.last_point]) - 1], 0.06)


# The panel next to the board


def _draw_panel(sheet: _Sheet) -> None:
    """Draw the name of the game, its status, and the seats with their scores."""
    game, theme, line_height = sheet.game, sheet.theme, sheet.line_height
    left, right = sheet.panel_left + 0.2 * line_height, sheet.surface.get_width() - 0.4 * line_height
    sheet.text("Kropki", left, 1.0 * line_height, 1.3 * line_height, theme.text)
    rules = f"{game.width} x {game.height}, {game.territory}"
    sheet.text(rules, left, 1.9 * line_height, 0.5 * line_height, theme.faint)
    sheet.text(headline(game), left, 2.6 * line_height, 0.55 * line_height, theme.text)
    active = game.winner() if game.is_over else game.to_move
    for seat, score in enumerate(game.scores().tolist()):
        top = (3.3 + 1.7 * seat) * line_height
        card = (left, top, right - left, 1.45 * line_height)
        colour = theme.active if seat == active else theme.card
        behind = colour if theme is _LIGHT else _PAPER  # the inks are made for paper
        sheet.pygame.draw.rect(sheet.surface, colour, card, border_radius=round(0.2 * line_height))
        middle, radius = (left + 0.7 * line_height, top + 0.72 * line_height), 0.34 * line_height
        sheet.pygame.draw.circle(sheet.surface, behind, middle, 1.4 * radius)
        sheet.pygame.draw.circle(sheet.surface, INKS[seat], middle, radius)
        if seat:
            sheet.pygame.draw.circle(sheet.surface, behind, middle, 0.62 * radius)
        sheet.text(SEATS[seat], left + 1.4 * line_height, middle[1], 0.62 * line_height, theme.text)
        sheet.text(str(score), right - 0.35 * line_height, middle[1], 1.1 * line_height, theme.text, 1)
    if game.last_action is not None:
        last = f"last: {game.action_name(game.last_action)}"
        sheet.text(last, left, 7.2 * line_height, 0.5 * line_height, theme.faint)


def headline(game: Game) -> str:
    """Return the status of the game as text: the ply and the seat to move, or the winner."""
    if game.is_over:
        winner = game.winner()
        return "drawn" if winner == DRAWN else f"{SEATS[winner]} wins"
    return f"ply {game.ply}: {SEATS[game.to_move]} {'may draw' if game.drawing else 'to place'}"
