"""Arguments of commands, read so that what is wrong with one is told in a sentence."""

from __future__ import annotations

from typing import Any

import typer


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        from ninetka_env.core.text import quote

        raise typer.BadParameter(f"{quote(text)}: expected an integer") from None


def integer_option(*names: str, help: str) -> Any:  # typer's name
    """Return an option that is an integer."""
    return typer.Option(*names, help=help, parser=_integer, metavar="INTEGER")
