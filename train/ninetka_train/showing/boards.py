"""Boards on a terminal, in the colours that it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.console import Console
from rich.text import Text


def show_boards(draw: Callable[[bool], Iterable[str]]) -> None:
    """Print boards, with an empty line after each.

    Args:
        draw: takes whether to draw in colours, and returns the boards' texts. There are none where stdout is no
            terminal, where the terminal has none (`TERM`), or where `NO_COLOR` is set; terminals of 16 or 256 colours
            (`TERM`, `COLORTERM`) get the nearest of theirs.
    """
    console = Console(highlight=False)
    color = console.is_terminal and console.color_system is not None and not console.no_color
    for text in draw(color):
        if color:
            console.print(Text.from_ansi(text), soft_wrap=True)
            print()
        else:
            print(f"{text}\n")
