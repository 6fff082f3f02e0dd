"""Print boards with the colours that the terminal supports.

`ninetka replay` calls `print_boards`. The boards themselves are drawn by `render.py` of each game.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable

import typer
from rich.color import Color, ColorSystem
from rich.console import Console

_RGB = re.compile(r"([34]8);2;(\d+);(\d+);(\d+)")
"""Escape codes of 24-bit colours: foreground (38) and background (48)."""
_COLOR_SYSTEMS = {"standard": ColorSystem.STANDARD, "256": ColorSystem.EIGHT_BIT}


def print_boards(draw: Callable[[bool], Iterable[str]]) -> None:
    """Print boards, with an empty line after each.

    Args:
        draw: called with whether to use 24-bit colours; returns the texts of the boards. Colours are off if stdout is
            not a terminal, the terminal has no colours (`TERM`) or `NO_COLOR` is set. On terminals with 16 or 256
            colours (`TERM`, `COLORTERM`) the nearest colours are used.
    """
    console = Console()
    system = None if console.no_color or not console.is_terminal else console.color_system
    for text in draw(system is not None):
        if system in _COLOR_SYSTEMS:
            text = _RGB.sub(lambda match: _nearest_color(_COLOR_SYSTEMS[system], *match.groups()), text)
        typer.echo(f"{text}\n", color=system is not None)


@functools.lru_cache(maxsize=1024)
def _nearest_color(system: ColorSystem, kind: str, red: str, green: str, blue: str) -> str:
    """Return the escape codes of the nearest colour of a terminal."""
    color = Color.from_rgb(int(red), int(green), int(blue)).downgrade(system)
    return ";".join(color.get_ansi_codes(foreground=kind == "38"))
