"""How commands end: in success, or in one line that says what was wrong, and a status."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

UsageError: Any = typer.BadParameter.__base__
"""What is wrong on a command line; typer brings a click of its own or takes the one installed."""


@contextmanager
def _ending_in_a_line() -> Iterator[None]:
    """End the command in a line where it was stopped, cannot print, or was given overlong arguments."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except UsageError as error:
        error.message = "\n".join(map(_shortened, str(error.message).split("\n")))
        raise
    except KeyboardInterrupt:
        fail("stopped", code=130)
    except OSError as error:
        _end_output()
        if error.errno == errno.EPIPE:  # the reader has seen enough
            raise typer.Exit(1) from None
        fail(error if error.filename is not None else f"standard output: {error.strerror}", code=1)


def _shortened(line: str) -> str:
    return line if len(line) <= 300 else f"{line[:300]} ..."


def _end_output() -> None:
    """Let what still waits to be printed go nowhere, since Python would fail to print it at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Commands(TyperGroup):
    """All commands, whatever they do."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read the arguments before the command's name."""
        with _ending_in_a_line():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        """Read the command's own arguments and run it."""
        with _ending_in_a_line():
            return super().invoke(ctx)


def fail(message: object, code: int = 2) -> NoReturn:
    """End the command with an error message; what printing raised is told by `_ending_in_a_line`."""
    if isinstance(message, OSError) and message.errno is not None and message.filename is None:
        raise message
    typer.echo(f"error: {explain(message)}", err=True)
    raise typer.Exit(code)


def explain(message: object) -> str:
    """Say what is wrong, first the file if it is one."""
    if isinstance(message, OSError) and message.filename is not None:
        from ninetka_env.core.files import shown

        return f"{shown(os.fsdecode(message.filename))}: {message.strerror}"
    return str(message)


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether memory ran out; torch says so by errors of its own."""
    told = type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and told)


@contextmanager
def failing(what: str, extras: str = "train") -> Iterator[None]:
    """End the command with an error message if `what` lacks a package, is given something wrong or cannot write."""
    try:
        yield
    except ImportError as error:
        fail(f"{what} need {error.name}: pip install 'ninetka-env[{extras}]'")
    except (ValueError, OSError) as error:
        fail(error)
