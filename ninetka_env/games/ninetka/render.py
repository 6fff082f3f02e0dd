"""Pictures of a game: text for a terminal, an rgb array, a window.

Every seat has a colour and a mark of its own (yellow disc, blue triangle, orange square, green diamond; a cross for
neutral stones), so that the colours alone never matter. pygame is imported only by what draws pixels.
"""

from __future__ import annotations

import io
import os
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_env.core.files import replace_file
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import COLUMN_NAMES, EDGE, INNER, NEUTRAL_STONE, SECTION, SIZE
from ninetka_env.games.ninetka.text import SEATS, describe_last, last_landing
from ninetka_env.games.ninetka.picture import STONE_COLOURS, Colour, active_seat, draw, headline, load_pygame, mix, seat_note
from ninetka_env.games.ninetka.rules import Phase

# Text for a terminal

_MARKS = "●▲■◆✖"
_HOLLOW_MARKS = "○△□◇"
_BORDERS = (("┌", "┬", "┐"), ("├", "┼", "┤"), ("├", "┼", "┤"), ("└", "┴", "┘"))
_BOARD_BACK, _FRAME_BACK, _INK = (48, 44, 42), (72, 58, 46), (150, 140, 130)


def render_ansi(game: Game, color: bool = True) -> str:
    """Return the board as text for a terminal of at least 80 columns.

    Stones are drawn by their marks, edge stones that can no longer slide by hollow ones, the last stone that was set
    or slid in brackets, and where it slid from as `( )`. Sections shine in the colour of their owner.

    Args:
        game: the position.
        color: use 24-bit colours (ANSI escapes); without them the text says the same.
    """
    side = _ansi_side(game, color)
    lines = [_ansi_columns(), *_ansi_rows(game, color)]
    side += [""] * (len(lines) - len(side))
    return "\n".join(f"{line}   {note}".rstrip() for line, note in zip(lines, side, strict=True))


def _ansi_columns() -> str:
    names = [f" {name} " for name in COLUMN_NAMES]
    return "    " + names[0] + " " + " ".join("".join(names[a : a + 3]) for a in (1, 4, 7)) + " " + names[10]


def _ansi_rows(game: Game, color: bool) -> list[str]:
    """Return the eleven rows with the borders of the sections between them."""
    cells = _ansi_cells(game, color)
    lines = []
    for row in range(SIZE):
        words = cells[SIZE * row : SIZE * row + SIZE]
        bar = _paint("│" if 1 <= row <= 9 else " ", _INK, _FRAME_BACK, color)
        parts = ["".join(words[a:b]) for a, b in ((0, 1), (1, 4), (4, 7), (7, 10), (10, 11))]
        lines.append(f"{SIZE - row:3} " + bar.join(parts))
        if row % 3 == 0 and row < 10:
            left, middle, right = _BORDERS[row // 3]
            border = left + middle.join(["─" * 9] * 3) + right
            lines.append("    " + _paint(f"   {border}   ", _INK, _FRAME_BACK, color))
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
        cells.append(_paint(left + mark + right, ink, back, color))
    return cells


def _ansi_side(game: Game, color: bool) -> list[str]:
    """Return what stands to the right of the board."""
    lines = ["", f"9tka  {headline(game)}", ""]
    scores = game.scores()
    for seat in range(game.num_players):
        arrow = "▶" if seat == active_seat(game) else " "
        name = _paint(f"{_MARKS[seat]} {SEATS[seat]:6}", STONE_COLOURS[seat], None, color)
        lines.append(f"{arrow} {name} {scores[seat]}   {seat_note(game, seat)}".rstrip())
    owners = [_MARKS[owner] if owner >= 0 else "·" for owner in game.section_owners()]
    lines += ["", "sections", *("  " + " ".join(owners[k : k + 3]) for k in (0, 3, 6)), ""]
    return [*lines, describe_last(game)]


def _paint(text: str, ink: Colour, back: Colour | None, color: bool) -> str:
    if not color:
        return text
    behind = "" if back is None else f"\x1b[48;2;{back[0]};{back[1]};{back[2]}m"
    return f"{behind}\x1b[38;2;{ink[0]};{ink[1]};{ink[2]}m{text}\x1b[0m"


# Pixels


def render_rgb(game: Game, size: int = 720) -> npt.NDArray[np.uint8]:
    """Return a picture of the position, (size, 7 * size // 5, 3) uint8.

    Args:
        game: the position.
        size: the height in pixels, 100..4000.

    Raises:
        ValueError: if `size` is out of range.
        ImportError: if pygame is missing, naming the extra to install.
    """
    pixels = load_pygame().surfarray.array3d(draw(game, size))
    return np.ascontiguousarray(pixels.swapaxes(0, 1))


def save_png(game: Game, path: str | os.PathLike[str], size: int = 720) -> None:
    """Write the picture of `render_rgb` to a PNG file; raises `OSError` naming the path if that fails."""
    encoded = io.BytesIO()
    load_pygame().image.save(draw(game, size), encoded, "board.png")
    replace_file(path, [encoded.getvalue()])


class Window:
    """A window on the screen that shows one position after another."""

    def __init__(self, size: int = 720, fps: float = 2.0, title: str = "9tka") -> None:
        """Prepare a window; it opens when the first position is shown.

        Args:
            size: the height of the picture in pixels.
            fps: how many positions to show in a second at most; `show` waits for the one before to be seen.
            title: what the window is called.
        """
        self._size, self._pause, self._title = size, 1 / fps, title
        self._surface: Any = None
        self._next_at = 0.0
        self.is_closed = False
        """Whether the window was closed, by its user or by `close`; it then stays closed and shows nothing."""

    def show(self, game: Game) -> None:
        """Show a position and let the system handle the window's events.

        Raises:
            ImportError: if pygame is missing, naming the extra to install.
            RuntimeError: if there is no screen.
        """
        while not self.is_closed and (wait := self._next_at - time.monotonic()) > 0:
            time.sleep(min(wait, 0.02))
            self.pump()
        if self.is_closed:
            return
        picture = draw(game, self._size)
        if self._surface is None:
            self._surface = self._open(picture.get_size())
        self._surface.blit(picture, (0, 0))
        load_pygame().display.flip()
        self._next_at = time.monotonic() + self._pause
        self.pump()

    def pump(self) -> None:
        """Handle the window's events, so that it stays alive; notices when its user closes it."""
        if self._surface is not None:
            pygame = load_pygame()
            if not pygame.display.get_init() or any(event.type == pygame.QUIT for event in pygame.event.get()):
                self.close()

    def close(self) -> None:
        """Close the window for good."""
        if self._surface is not None:
            load_pygame().display.quit()
        self._surface, self.is_closed = None, True

    def _open(self, size: tuple[int, int]) -> Any:
        pygame = load_pygame()
        try:
            pygame.display.init()
            surface = pygame.display.set_mode(size)
        except pygame.error as error:
            raise RuntimeError(f"no window can be opened ({error}); render_mode='rgb_array' needs none") from error
        pygame.display.set_caption(self._title)
        return surface
