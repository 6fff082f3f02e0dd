"""Rendering in all environments. `Definition.renderer` names the module that draws the pictures of a game."""

from __future__ import annotations

import importlib
import inspect
import io
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_env.core.drawing import THEMES, Window, load_pygame
from ninetka_env.core.files import StrPath, replace_file
from ninetka_env.core.game import Game
from ninetka_env.core.options import check_choice

RENDER_MODES = ("human", "rgb_array", "ansi")


class Renderer:
    """Renders games in one render mode; manages the window of mode `"human"`."""

    def __init__(self, render_mode: str | None) -> None:
        """Set the mode: None, `"human"`, `"rgb_array"` or `"ansi"`; raise `ValueError` for any other."""
        check_choice("render_mode", render_mode, (None, *RENDER_MODES))
        self.mode = render_mode
        self._window: Window | None = None

    def check_mode(self) -> None:
        """Raise `ValueError` if the environment was made without a render mode."""
        if self.mode is None:
            raise ValueError(f"render_mode=None: nothing to render; make the environment with one of {RENDER_MODES}")

    def render(self, game: Game) -> str | npt.NDArray[np.uint8] | None:
        """Return the board as text (`ansi`) or as an (H, W, 3) uint8 picture (`rgb_array`), or show it (`human`).

        After the user has closed the window, nothing is rendered.

        Raises:
            ValueError: if the environment was made without a render mode, or the game has no pictures.
            ImportError: if pygame is missing; the message names the extra to install.
        """
        self.check_mode()
        if self._window is not None and self._window.is_closed:
            return None
        if self.mode == "ansi":
            return render_ansi(game)
        pixels = render_rgb(game)
        if self.mode == "rgb_array":
            return pixels
        if self._window is None:
            self._window = Window(game.definition().title)
        self._window.show(pixels)
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies and pickles, without the window."""
        return self.__dict__ | {"_window": None}


def render_ansi(game: Game, color: bool = True) -> str:
    """Return the board as text for a terminal, by default with colours (ANSI escapes).

    For a game without a drawing module, return `str(game)`.
    """
    pictures = _drawing_module(game)
    return str(pictures.render_ansi(game, color)) if pictures else str(game)


def render_rgb(game: Game, theme: str = "light") -> npt.NDArray[np.uint8]:
    """Return a picture, (H, W, 3) uint8.

    Args:
        game: the position.
        theme: the colours around the board, `"light"` or `"dark"`.

    Raises:
        ValueError: if there is no such theme, or the game has no pictures or no dark ones.
        ImportError: if pygame is missing; the message names the extra to install.
    """
    check_choice("theme", theme, THEMES)
    pictures = _drawing_module(game)
    if pictures is None:
        raise ValueError(f"{game.definition().title} has no pictures: use render_mode='ansi'")
    if theme == "light":
        return np.asarray(pictures.render_rgb(game), np.uint8)
    if "theme" not in inspect.signature(pictures.render_rgb).parameters:  # a game of another package may have none
        raise ValueError(f"{game.definition().title} has no dark pictures: use theme='light'")
    return np.asarray(pictures.render_rgb(game, theme=theme), np.uint8)


def render_svg(game: Game) -> str:
    """Return the position as an `<svg>` element, which needs the style sheet `svg_style(game)`.

    For a game that cannot draw SVG, return its text in a `<pre>` element.
    """
    draw = getattr(_drawing_module(game), "render_svg", None)
    return str(draw(game)) if draw else f"<pre>{escape(render_ansi(game, color=False))}</pre>"


def svg_style(game: Game) -> str:
    """Return the CSS style sheet for the output of `render_svg`; empty if the game has none."""
    return str(getattr(_drawing_module(game), "SVG_STYLE", ""))


def save_png(game: Game, path: StrPath, theme: str = "light") -> None:
    """Write the picture of `render_rgb` to a PNG file; raises as `render_rgb`, and `OSError` with the path."""
    pixels, encoded = render_rgb(game, theme), io.BytesIO()
    pygame = load_pygame()
    pygame.image.save(pygame.surfarray.make_surface(pixels.swapaxes(0, 1)), encoded, "board.png")
    replace_file(path, [encoded.getvalue()])


def _drawing_module(game: Game) -> Any:
    """Import on first use and return the module that draws a game; None if the game has none."""
    module = game.definition().renderer
    return importlib.import_module(module) if module else None
