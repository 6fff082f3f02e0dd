"""Boards on a terminal, in the colours that it has."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable

import typer
from rich.color import Color, ColorSystem
from rich.console import Console

_RGB = re.compile(r"([34]8);2;(\d+);(\d+);(\d+)")
"""What a text in 24-bit colours has for the ink (38) and the ground (48) of what follows."""
_SYSTEMS = {"standard": ColorSystem.STANDARD, "256": ColorSystem.EIGHT_BIT}


def show_boards(draw: Callable[[bool], Iterable[str]]) -> None:
    """Print boards, with an empty line after each.

    Args:
        draw: takes whether to draw in 24-bit colours, and returns the boards' texts. There are none where stdout is no
            terminal, where the terminal has none (`TERM`), or where `NO_COLOR` is set; terminals of 16 or 256 colours
            (`TERM`, `COLORTERM`) get the nearest of theirs.
    """
    console = Console()
    system = None if console.no_color or not console.is_terminal else console.color_system
    for text in draw(system is not None):
        if system in _SYSTEMS:
            text = _RGB.sub(lambda match: _nearest(_SYSTEMS[system], *match.groups()), text)
        typer.echo(f"{text}\n", color=system is not None)


@functools.lru_cache(maxsize=1024)
def _nearest(system: ColorSystem, kind: str, red: str, green: str, blue: str) -> str:
    """Return the codes of the nearest colour of a terminal."""
    color = Color.from_rgb(int(red), int(green), int(blue)).downgrade(system)
    return ";".join(color.get_ansi_codes(foreground=kind == "38"))
