"""Animations of saved games as GIF files, with Pillow, an optional dependency.

Start reading at `save_gif`. `ninetka_env.api.rendering` draws the pictures.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np

from ninetka_env.api.rendering import render_rgb
from ninetka_env.core.files import StrPath, replace_file
from ninetka_env.core.game import Game
from ninetka_env.core.imports import install_command
from ninetka_env.core.options import check_count
from ninetka_env.core.record import GameRecord

PLY_MS, LAST_MS = 600, 3000
"""The time for which a position and the last position are shown, in milliseconds."""
_NUM_COLOURS = 255
"""A GIF has at most 256 colours; the remaining one means that a pixel has not changed since the previous frame."""
_NUM_SAMPLES = 6
"""The number of positions from which the colours are chosen. More take longer and hardly change the colours."""


def load_pillow() -> ModuleType:
    """Import and return `PIL.Image` of Pillow, an optional dependency.

    Raises:
        ImportError: if Pillow is missing; the message says what to install.
    """
    try:
        import PIL.Image
    except ImportError as error:
        raise ImportError(f"animations need Pillow: {install_command('render')}") from error
    return PIL.Image


def save_gif(record: GameRecord, path: StrPath, *, theme: str = "light", height: int = 480) -> None:
    """Write an animation of a game, which starts again after the last position.

    There is one frame for each position of `record.replay()`. It is shown for 0.6 s, the last one for 3 s. A game of
    9tka takes about 1 MB with the default height. The file is replaced atomically: on an error an existing file is left
    unchanged.

    Args:
        record: the game.
        path: the file.
        theme: the colours around the board, `"light"` or `"dark"`.
        height: the maximum height in pixels, at least 100. Pictures that are less high are not enlarged.

    Raises:
        ValueError: if the height or the theme is not valid, the game has no such pictures, or the record has an illegal
            action.
        ImportError: if Pillow or pygame is missing; the message names the extra to install.
        OSError: if the file cannot be written; the message names it.
    """
    check_count("height", height, 100, 4000)
    load_pillow()
    positions = list(record.replay())
    picked = np.linspace(0, len(positions) - 1, min(_NUM_SAMPLES, len(positions))).round().astype(int)
    palette = _shared_palette([_picture(positions[ply], theme, height) for ply in picked.tolist()])
    frames = [_picture(game, theme, height).quantize(palette=palette, dither=0) for game in positions]
    replace_file(path, [_encode(frames)])


def _picture(game: Game, theme: str, height: int) -> Any:
    """Return the picture of a position as an RGB image of Pillow, at most `height` pixels high."""
    pillow = load_pillow()
    picture = pillow.fromarray(render_rgb(game, theme))
    width = round(picture.width * height / picture.height)
    return picture.resize((width, height), pillow.Resampling.LANCZOS) if picture.height > height else picture


def _shared_palette(pictures: Iterable[Any]) -> Any:
    """Return an image of Pillow whose palette fits all pictures. One palette for all frames avoids flicker.

    An octree keeps the colours of small things, such as the stones of a seat, which the median cut merges with others.
    """
    pillow = load_pillow()
    pixels = np.concatenate([np.asarray(picture).reshape(-1, 3) for picture in pictures])
    return pillow.fromarray(pixels[None]).quantize(_NUM_COLOURS, method=pillow.Quantize.FASTOCTREE)


def _encode(frames: list[Any]) -> bytes:
    """Return frames with the same palette as a GIF."""
    encoded = io.BytesIO()
    durations = [PLY_MS] * (len(frames) - 1) + [LAST_MS]
    frames[0].save(encoded, "GIF", save_all=True, append_images=frames[1:], duration=durations, loop=0, disposal=1)
    return encoded.getvalue()
