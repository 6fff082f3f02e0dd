"""Drawing with pygame, an optional dependency: a canvas, shaded stones, themes, and a window on the screen.

Start reading at `Canvas`. `render.py` and `picture.py` of each game use this module; `ninetka_env.api.rendering` shows
the pictures.
"""

from __future__ import annotations

import functools
import os
import time
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ninetka_env.core.imports import install_command
from ninetka_env.core.options import check_choice


def load_pygame() -> ModuleType:
    """Import pygame, an optional dependency.

    Raises:
        ImportError: if pygame is missing; the message says what to install.
    """
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
        import pygame.freetype
    except ImportError as error:
        raise ImportError(f"pictures need pygame: {install_command('render')}") from error
    pygame.freetype.init()
    return pygame


@functools.lru_cache(maxsize=32)
def load_font(size: float) -> Any:
    """Return pygame's default font; raises `ImportError` as `load_pygame` does."""
    pygame = load_pygame()
    pygame.register_quit(load_font.cache_clear)  # pygame.quit(), which other code may call, destroys fonts
    return pygame.freetype.Font(None, size)


Colour: TypeAlias = tuple[int, int, int]
"""RGB."""
Floats: TypeAlias = npt.NDArray[np.float64]


class Theme(NamedTuple):
    """The colours around a board: the page, the cards of the seats, and the text. Boards look the same on all pages."""

    page: Colour
    card: Colour
    """The card of a seat in the panel next to the board."""
    active: Colour
    """The card of the seat to move or of the winner, in games that do not tint it."""
    tint: float
    """The share of the seat's colour in the card of the seat to move or of the winner, in games that tint it."""
    text: Colour
    faint: Colour
    """Text of less importance."""
    done: Colour
    """The filled part of a progress bar."""


LIGHT = Theme((244, 239, 230), (253, 250, 244), (239, 220, 189), 0.3, (58, 48, 42), (150, 137, 124), (118, 82, 56))
DARK = Theme((30, 28, 26), (47, 44, 41), (74, 64, 52), 0.2, (238, 232, 222), (170, 161, 150), (190, 142, 100))
THEMES = ("light", "dark")
"""Names of the themes, for the parameter `theme` of functions that draw."""


def find_theme(name: str, light: Theme = LIGHT) -> Theme:
    """Return the theme with a name of `THEMES`.

    Args:
        name: `"light"` or `"dark"`.
        light: the light theme, for a game that has its own.

    Raises:
        ValueError: if there is no such theme.
    """
    return (light, DARK)[check_choice("theme", name, THEMES)]


_OVERSAMPLE = 2


class Canvas:
    """A drawing surface whose coordinates and lengths are measured in board cells.

    The canvas is drawn at twice the requested resolution and then scaled down, which makes all edges smooth.
    """

    def __init__(self, size: tuple[int, int], cells: float, background: Any = None) -> None:
        """Create a canvas.

        Args:
            size: (width, height) of the finished surface in pixels.
            cells: height of the surface in cells.
            background: the `surface` of another canvas of this size, which is copied as the background.
        """
        self.pygame = load_pygame()
        self._finished_size = size
        self.cell = _OVERSAMPLE * size[1] / cells
        whole = [_OVERSAMPLE * length for length in size]
        self.surface = self.pygame.Surface(whole) if background is None else background.copy()

    def finished(self) -> Any:
        """Return the surface in the requested size."""
        return self.pygame.transform.smoothscale(self.surface, self._finished_size)

    def box(self, x: float, y: float, width: float, height: float, colour: Colour, corner: float = 0.0) -> None:
        """Fill a rectangle with rounded corners."""
        left, top = round(x * self.cell), round(y * self.cell)
        right, bottom = round((x + width) * self.cell), round((y + height) * self.cell)
        rect = (left, top, right - left, bottom - top)
        self.pygame.draw.rect(self.surface, colour, rect, border_radius=round(corner * self.cell))

    def disc(self, x: float, y: float, radius: float, colour: Colour, width: float = 0.0) -> None:
        """Fill a circle, or draw a ring if `width` is not 0."""
        place, thickness = (x * self.cell, y * self.cell), max(1, round(width * self.cell)) if width else 0
        self.pygame.draw.circle(self.surface, colour, place, radius * self.cell, thickness)

    def polygon(self, points: list[tuple[float, float]], colour: Colour) -> None:
        """Fill a polygon."""
        self.pygame.draw.polygon(self.surface, colour, [(x * self.cell, y * self.cell) for x, y in points])

    def sprite(self, sprite: Any, x: float, y: float) -> None:
        """Draw a small surface centred at (x, y)."""
        self.surface.blit(sprite, sprite.get_rect(center=(round(x * self.cell), round(y * self.cell))))

    def text(self, text: str, x: float, y: float, height: float, colour: Colour, align: float = 0.0) -> None:
        """Write a line of text, vertically centred at y; x is its left end (`align=0`), centre (0.5) or right end."""
        line, place = load_font(max(4, 0.72 * height * self.cell)).render(text, colour)
        left = x * self.cell - align * line.get_width() + (place.x if align == 0 else 0)
        self.surface.blit(line, (round(left), round((y + 0.26 * height) * self.cell) - place.y))

    def add_wood_grain(self, colour: Colour) -> None:
        """Add a wood grain to all pixels of colour `colour` in the largest square at the left of the surface."""
        pixels = self.pygame.surfarray.pixels3d(self.surface)
        length = min(self.surface.get_size())
        place = np.arange(length, dtype=np.float32) / self.cell
        x, y = place[:, None], place[None, :]
        rings = y + 0.25 * np.sin(0.5 * x + 0.3 * y) + 0.06 * np.sin(1.7 * x + 2.1 * y)
        grain = np.sin(9 * rings) + 0.6 * np.sin(23 * rings + 0.8 * np.sin(0.9 * x)) + 0.4 * np.sin(61 * rings)
        wood = (pixels[:length, :length] == colour).all(axis=2)
        shaded = np.array(colour) * (1 + 0.035 * grain[wood])[:, None]
        pixels[:length, :length][wood] = np.clip(shaded, 0, 255).astype(np.uint8)


def sprite_coordinates(diameter: int) -> tuple[Floats, Floats]:
    """Return two (side, side) arrays, x and y of each pixel of a stone's sprite.

    The origin is the centre of the stone, the unit is its radius.
    """
    side = round(1.4 * diameter)
    y, x = (np.mgrid[:side, :side] - (side - 1) / 2) / (diameter / 2)
    return x, y


def shaded_lens(colour: Colour, x: Floats, y: Floats) -> Floats:
    """Return the RGB values, (side, side, 3), of a lens-shaped stone that is lit from the top left."""
    base, rho = np.array(colour, np.float64), np.hypot(x, y)
    height = np.sqrt(np.maximum(0, 1 - 0.82 * rho**2))
    normal = np.stack([0.62 * x, 0.62 * y, height])
    normal /= np.linalg.norm(normal, axis=0)
    light = np.tensordot(np.array([-0.42, -0.56, 0.714]), normal, 1)
    rgb = base * (0.62 + 0.46 * np.maximum(light, 0))[..., None]
    gleam = 0.34 * np.exp(-((x + 0.36) ** 2 + (y + 0.44) ** 2) / 0.09)[..., None]
    rgb = rgb + (255 - rgb) * gleam
    return rgb * (1 - 0.3 * np.clip((rho - 0.86) / 0.14, 0, 1) ** 2)[..., None]


def stone_sprite(rgb: Floats, diameter: int, shadow: float = 1.0) -> Any:
    """Return a transparent surface with a stone and its shadow; `rgb` is (side, side, 3), see `sprite_coordinates`."""
    x, y = sprite_coordinates(diameter)
    body = np.clip(0.5 + (1 - np.hypot(x, y)) * diameter / 2, 0, 1)
    around = 0.42 * np.clip((1.16 - np.hypot(x - 0.07, y - 0.12)) / 0.28, 0, 1) ** 1.5 * shadow
    alpha = body + (1 - body) * around
    rgba = np.dstack([rgb * (body / np.maximum(alpha, 1e-6))[..., None], 255 * alpha])
    return load_pygame().image.frombytes(np.clip(rgba, 0, 255).astype(np.uint8).tobytes(), x.shape, "RGBA")


def mix(one: Colour, other: Colour, share: float) -> Colour:
    """Mix two colours; `share` is the weight of `other`, 0 to 1."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def ansi_text(text: str, foreground: Colour, background: Colour | None, color: bool) -> str:
    """Return text in 24-bit terminal colours, or unchanged if `color` is False."""
    if not color:
        return text
    behind = "" if background is None else f"\x1b[48;2;{background[0]};{background[1]};{background[2]}m"
    return f"{behind}\x1b[38;2;{foreground[0]};{foreground[1]};{foreground[2]}m{text}\x1b[0m"


def pixels_of(surface: Any) -> npt.NDArray[np.uint8]:
    """Return the pixels of a surface, (H, W, 3) uint8."""
    return np.ascontiguousarray(load_pygame().surfarray.array3d(surface).swapaxes(0, 1))


class Window:
    """A window on the screen that shows one picture after another."""

    def __init__(self, title: str, fps: float = 2.0) -> None:
        """Prepare a window; it opens when the first picture is shown.

        Args:
            title: title of the window.
            fps: maximum number of pictures per second; `show` waits until the previous picture was shown for 1 / fps.
        """
        self._pause, self._title = 1 / fps, title
        self._surface: Any = None
        self._next_at = 0.0
        self.is_closed = False
        """Whether the user or `close` has closed the window; a closed window cannot be opened again."""

    def show(self, pixels: npt.NDArray[np.uint8]) -> None:
        """Show a picture, (H, W, 3) uint8, and handle the window's events; do nothing if the window is closed.

        Raises:
            ImportError: if pygame is missing; the message names the extra to install.
            RuntimeError: if no window can be opened, for example because there is no screen.
        """
        while not self.is_closed and (wait := self._next_at - time.perf_counter()) > 0:
            time.sleep(min(wait, 0.02))
            self.pump()
        if self.is_closed:
            return
        picture = load_pygame().surfarray.make_surface(pixels.swapaxes(0, 1))
        if self._surface is None:
            self._surface = self._open(picture.get_size())
        self._surface.blit(picture, (0, 0))
        load_pygame().display.flip()
        self._next_at = time.perf_counter() + self._pause
        self.pump()

    def pump(self) -> None:
        """Handle the window's events so that it stays responsive; close the window if the user asks for it."""
        if self._surface is not None:
            pygame = load_pygame()
            if not pygame.display.get_init() or any(event.type == pygame.QUIT for event in pygame.event.get()):
                self.close()

    def close(self) -> None:
        """Close the window permanently."""
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
