"""RGB pictures of Go: positions, ownership of points, numbered diagrams.

Start reading at `render_rgb`.

The background is drawn once for each size and cached. pygame is imported only when a function draws. `render` has text
and SVG.
"""

from __future__ import annotations

import functools
import textwrap
from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_env.core.drawing import (
    DARK,
    LIGHT,
    Canvas,
    Colour,
    Theme,
    find_theme,
    mix,
    pixels_of,
    shaded_lens,
    sprite_coordinates,
    stone_sprite,
)
from ninetka_env.core.game import winner_text
from ninetka_env.core.record import GameRecord
from ninetka_env.games.go.diagram import make_diagram
from ninetka_env.games.go.game import Game
from ninetka_env.games.go.geometry import FILE_NAMES, star_points
from ninetka_env.games.go.text import SEAT_NAMES

STONE_COLOURS: tuple[Colour, ...] = ((52, 50, 54), (238, 235, 228))
"""RGB of the stones, by seat."""

_WOOD, _LINE, _NAMES, _LAST, _KO = (222, 184, 122), (96, 68, 40), (120, 88, 54), (214, 72, 52), (62, 106, 176)
_NAME_PLACE = 0.55
"""The distance from the edge of the picture to the centres of the names of files and ranks."""
_DIAMETER = 0.95
"""The diameter of a stone, as a share of the distance of two lines."""


def render_rgb(
    game: Game,
    size: int = 720,
    *,
    territory: bool = False,
    ownership: npt.ArrayLike | None = None,
    theme: str = "light",
) -> npt.NDArray[np.uint8]:
    """Return a picture of the position, (size, 7 * size // 5, 3) uint8, with a panel next to the board.

    Args:
        game: the position.
        size: the height in pixels, 100..4000.
        territory: whether to mark the empty points that are territory, with no stones counted as dead.
        ownership: (S, S) predicted ownership to draw, rank 1 first, from 1 (certainly Black) to -1 (certainly White).
        theme: the colours around the board, `"light"` or `"dark"`.

    Raises:
        ValueError: if `size`, `ownership` or `theme` is not valid.
        ImportError: if pygame is not installed; the message names the extra to install.
    """
    board = _Board(size, game.size, find_theme(theme))
    board.stones(game.board)
    if territory:
        owners = np.where(game.board == 0, game.owners(), -1)
        board.ownership(np.select([owners == 0, owners == 1], [1.0, -1.0]))
    if ownership is not None:
        board.ownership(_checked(ownership, game.size))
    board.marks(game)
    _draw_panel(board, game)
    return pixels_of(board.finished())


def render_diagram(
    record: GameRecord, first: int = 1, last: int | None = None, *, size: int = 720
) -> npt.NDArray[np.uint8]:
    """Return a numbered diagram, (size, 7 * size // 5, 3) uint8, with its captions next to the board.

    Args:
        record: a game record of Go.
        first: the first turn to show, counted from 1.
        last: the last turn to show; None for the last turn of the game.
        size: the height in pixels, 100..4000.

    Raises:
        ValueError: if the turns or the size are not valid.
    """
    diagram = make_diagram(record, first, last)
    board = _Board(size, len(diagram.cells), LIGHT)
    board.stones(diagram.cells)
    board.numbers(diagram.cells, diagram.numbers)
    lines = textwrap.wrap(", ".join(diagram.captions), 26)
    board.text(f"{diagram.first} to {diagram.last}", board.left, 0.9, 0.7, board.theme.text)
    for row, line in enumerate(lines[:24]):
        board.text(line, board.left, 1.9 + 0.5 * row, 0.4, board.theme.text)
    return pixels_of(board.finished())


def _checked(ownership: npt.ArrayLike, size: int) -> npt.NDArray[np.float64]:
    values = np.asarray(ownership, np.float64)
    if values.shape != (size, size) or not (abs(values) <= 1).all():
        raise ValueError(f"ownership: expected ({size}, {size}) numbers of -1 to 1, found shape {values.shape}")
    return values


def _margin(size: int) -> float:
    """Return the distance from the edge of the picture to the first line of the grid.

    On small boards it is larger, so that stones of the first line do not cover the names of files and ranks: from the
    line to the centre of a name are the radius of a stone, (11 - 2 * margin) * _DIAMETER / 2 / (size - 1), and 0.195.
    """
    return max(1.25, ((_NAME_PLACE + 0.195) * (size - 1) + 5.5 * _DIAMETER) / (size - 1 + _DIAMETER))


class _Board(Canvas):
    """A canvas with a board. Coordinates do not depend on the board size: the height of the picture is 11 units."""

    def __init__(self, height: int, size: int, theme: Theme, background: bool = True) -> None:
        if not 100 <= height <= 4000:
            raise ValueError(f"size={height}: expected a height of 100..4000 pixels")
        super().__init__((7 * height // 5, height), 11.0, _background(height, size, theme) if background else None)
        self.theme, self.size, self.margin = theme, size, _margin(size)
        self.step = (11 - 2 * self.margin) / (size - 1)
        self.left = 11.25
        """The left edge of the panel."""

    def place(self, point: int) -> tuple[float, float]:
        """Return the coordinates (x, y) of a point, from the top left."""
        rank, file = divmod(point, self.size)
        return self.margin + self.step * file, 11 - self.margin - self.step * rank

    def stones(self, cells: npt.NDArray[np.int8]) -> None:
        """Draw the stones of a board of cell codes, (size, size)."""
        for point in np.flatnonzero(cells).tolist():
            sprite = _stone_sprite(int(cells.flat[point]) - 1, round(_DIAMETER * self.step * self.cell))
            self.sprite(sprite, *self.place(point))

    def ownership(self, values: npt.NDArray[np.float64]) -> None:
        """Draw a square on each point, in the colour of its owner and with an area proportional to `abs(value)`."""
        for point, value in enumerate(values.ravel().tolist()):
            if abs(value) > 0.05:
                (x, y), side = self.place(point), 0.5 * self.step * abs(value) ** 0.5
                colour = STONE_COLOURS[int(value < 0)]
                self.box(x - side / 2, y - side / 2, side, side, mix(colour, _WOOD, 0.5), 0.04)
                self.box(x - 0.42 * side, y - 0.42 * side, 0.84 * side, 0.84 * side, colour, 0.03)

    def marks(self, game: Game) -> None:
        """Mark the last stone with a ring, and the points that the ko rule forbids with squares."""
        last = int(game.records["last"][0])
        if last >= 0:
            self.disc(*self.place(last), 0.24 * self.step, _LAST, 0.075 * self.step)
        for point in game.ko_points().tolist():
            (x, y), side = self.place(point), 0.42 * self.step
            self.box(x - side / 2, y - side / 2, side, side, _KO, 0.03)
            self.box(x - 0.3 * side, y - 0.3 * side, 0.6 * side, 0.6 * side, _WOOD)

    def numbers(self, cells: npt.NDArray[np.int8], numbers: npt.NDArray[np.int16]) -> None:
        """Write the numbers of the turns on the stones."""
        for point in np.flatnonzero(numbers).tolist():
            (x, y), text = self.place(point), str(numbers.flat[point])
            height = self.step * (0.56, 0.5, 0.4, 0.32)[len(text) - 1]
            self.text(text, x, y, height, STONE_COLOURS[2 - int(cells.flat[point])], 0.5)


@functools.lru_cache(maxsize=16)
def _stone_sprite(seat: int, diameter: int) -> Any:
    return stone_sprite(shaded_lens(STONE_COLOURS[seat], *sprite_coordinates(diameter)), diameter)


@functools.lru_cache(maxsize=4)
def _background(height: int, size: int, theme: Theme) -> Any:
    """Return a surface with the fixed part of the picture: page, wood, lines, star points, names of files and ranks."""
    board = _Board(height, size, theme, background=False)
    board.surface.fill(theme.page)
    board.box(0.22, 0.28, 10.6, 10.6, mix(theme.page, (0, 0, 0), 0.2), 0.2)
    board.box(0.2, 0.2, 10.6, 10.6, _WOOD, 0.2)
    board.add_wood_grain(_WOOD)
    low, high = board.margin, 11 - board.margin
    for line in range(size):
        x, y = board.place(line * size + line)
        width = 0.035 if line in (0, size - 1) else 0.02
        board.box(x - width / 2, low, width, high - low, _LINE)
        board.box(low - width / 2, y - width / 2, high - low + width, width, _LINE)
        for far in (_NAME_PLACE, 11 - _NAME_PLACE):
            board.text(FILE_NAMES[line], x, far, 0.36, _NAMES, 0.5)
            board.text(str(line + 1), far, y, 0.36, _NAMES, 0.5)
    for point in star_points(size):
        board.disc(*board.place(point), min(0.09, 0.12 * board.step), _LINE)
    return board.surface


def _draw_panel(board: _Board, game: Game) -> None:
    """Draw the panel next to the board: the state of the game, the seats with captures and scores, the last turn."""
    theme, left, width = board.theme, board.left, 3.85
    board.text("Go", left, 0.95, 1.3, theme.text)
    board.text(headline(game), left, 1.75, 0.42, theme.text if game.is_over else theme.faint)
    active = game.winner() if game.is_over else game.to_move
    captured, scores = game.captured().tolist(), game.scores().tolist()
    for seat, name in enumerate(SEAT_NAMES):
        top = 2.5 + 1.6 * seat
        board.box(left + 0.03, top + 0.05, width, 1.4, mix(theme.page, (0, 0, 0), 0.1), 0.18)
        board.box(left, top, width, 1.4, theme.active if seat == active else theme.card, 0.18)
        if seat == active:
            board.box(left, top + 0.2, 0.12, 1.0, _LAST, 0.05)
        if theme is DARK:  # a black stone would hardly be visible on a dark card
            board.disc(left + 0.75, top + 0.7, 0.52, _WOOD)
        board.sprite(_stone_sprite(seat, round(0.8 * board.cell)), left + 0.75, top + 0.7)
        board.text(name, left + 1.35, top + 0.5, 0.5, theme.text)
        board.text(f"took {captured[seat]}", left + 1.35, top + 0.98, 0.36, mix(theme.faint, theme.text, 0.4))
        board.text(f"{scores[seat]:g}", left + width - 0.25, top + 0.72, 0.8, theme.text, 1)
    board.text(f"komi {game.komi:g}, {game.scoring} scoring", left, 6.1, 0.36, theme.faint)
    board.text(f"{game.ko} ko", left, 6.6, 0.36, theme.faint)
    board.text(last_turn(game), left, 10.4, 0.42, theme.faint)


# Texts in pictures, shared with `render`


def headline(game: Game) -> str:
    """Return the ply and the player to move, or the result of a finished game."""
    if not game.is_over:
        return f"ply {game.ply}, {SEAT_NAMES[game.to_move]} to move"
    result = game.result()
    return "drawn (jigo)" if result == "0" else f"{winner_text(game)}, {result}"


def last_turn(game: Game) -> str:
    """Return a description of the last turn or event, `""` before the first turn."""
    last = int(game.records["last"][0])
    if game.event is not None:
        return f"{SEAT_NAMES[game.event.seat]}: {game.event.kind}"
    if game.passes:
        return f"{SEAT_NAMES[1 - game.to_move]} passed"
    return f"{SEAT_NAMES[1 - game.to_move]} at {game.action_name(last)}" if last >= 0 else ""
