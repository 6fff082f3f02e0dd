"""How commands end: in success, or in one line that says what was wrong, and a status.

Among that is what is wrong with an argument; `integer_option` makes options whose errors are such lines.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import time
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
    except Stopped as stopped:
        fail(f"stopped by {stopped.name}", code=stopped.status)
    except KeyboardInterrupt:
        fail("stopped", code=130)
    except OSError as error:
        from ninetka_env.core.files import is_closed_pipe

        _end_output()
        if is_closed_pipe(error):  # the reader has seen enough
            raise typer.Exit(1) from None
        fail(error if error.filename is not None else f"standard output: {error.strerror}", code=1)
    except BaseException as error:
        if not is_out_of_memory(error):
            raise
        fail("the command does not fit into memory", code=1)


def _shortened(line: str) -> str:
    return line if len(line) <= 300 else f"{line[:300]} ..."


def _end_output() -> None:
    """Let what still waits to be printed go nowhere, since Python would fail to print it at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


MOVED = {"evaluate": {"--neutral-placement": "neutral_placement", "--turn-order": "turn_order"}}
"""By command, options that are options of 9tka now, with their names there."""


def _check_moved(arguments: list[str]) -> None:
    """End the command if it is given an option that has moved into `--game`, and say what to write instead."""
    following = zip(arguments, [*arguments[1:], "VALUE"], strict=True)
    parts = [(*one.partition("="), value) for one, value in following]
    given = {name: own if equals else value for name, equals, own, value in parts}
    known = MOVED.get(next(iter(arguments), ""), {})
    moved = {option: f"{name}={given[option]}" for option, name in known.items() if option in given}
    if not moved:
        return
    what, game = f"{' and '.join(moved)} {'are' if len(moved) > 1 else 'is'}", given.get("--game", "ninetka")
    if game.partition(":")[0] != "ninetka":
        fail(f"{what} of 9tka alone: leave out what --game {game} does not have")
    fail(f"{what} now part of --game: write --game {game}{',' if ':' in game else ':'}{','.join(moved.values())}")


class Commands(TyperGroup):
    """All commands, whatever they do."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments before the command's name, and look for options that have moved after it."""
        _check_moved(args)
        return super().parse_args(ctx, args)

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


def fail_import(needing: str, error: ImportError, extras: str = "train") -> NoReturn:
    """End the command because a package cannot be imported: it is not installed, or does not fit into memory."""
    if is_out_of_memory(error):
        fail(f"{needing} more memory: {error}", code=1)
    fail(f"{needing} {error.name}: pip install 'ninetka-env[{extras}]'")


def explain(message: object) -> str:
    """Say what is wrong, first the file if it is one."""
    if isinstance(message, OSError) and message.filename is not None:
        from ninetka_env.core.files import shown

        return f"{shown(os.fsdecode(message.filename))}: {message.strerror}"
    return str(message)


NO_MEMORY = (
    "allocate memory",  # torch, and the system where it loads a library
    "not enough memory",  # torch
    "std::bad_alloc",
    "failed to map segment",  # the system's loader
    "could not create a primitive",  # oneDNN, by which torch multiplies, as the next two
    "could not create a memory",
    "could not execute a primitive",
    "can't start new thread",  # a thread needs room for its stack
    "out of memory",
    "pyobject pointer is null",  # safetensors
)
"""What libraries report when memory runs out, in lower case."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out; libraries report that by errors of several types."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    text, is_panic = str(error).lower(), type(error).__name__ == "PanicException"  # of a Rust library: a BaseException
    return (isinstance(error, (RuntimeError, ImportError)) or is_panic) and any(reason in text for reason in NO_MEMORY)


class Stopped(KeyboardInterrupt):
    """A signal asks the command to end, with an exit status of its own; what handles Ctrl-C handles this as well."""

    def __init__(self, number: int) -> None:
        """Say which signal it was."""
        super().__init__()
        self.name = signal.Signals(number).name
        self.status = _STATUS[number]


_STATUS = {signal.SIGTERM.value: 143} | ({signal.SIGUSR1.value: 75} if hasattr(signal, "SIGUSR1") else {})
"""Exit statuses by signal: shells report SIGTERM as 143; 75 is EX_TEMPFAIL, for schedulers that start jobs again."""


REPEATED = 1.0
"""Seconds after a signal in which others say the same."""


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Raise `Stopped` when SIGTERM or SIGUSR1 arrives, and `KeyboardInterrupt` for Ctrl-C as usual.

    Schedulers and impatient users repeat signals; one that follows another within `REPEATED` seconds is ignored, so
    that the first can be handled. Only the main thread can handle signals.
    """
    last = -REPEATED

    def stop(number: int, frame: object) -> None:
        nonlocal last
        now = time.perf_counter()
        if now - last < REPEATED:
            return
        last = now
        raise Stopped(number) if number in _STATUS else KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = list(_STATUS)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a process in the background may ignore it
        numbers.append(signal.SIGINT)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


LEAST_ADDRESS_SPACE = 2 << 30
"""Bytes of address space that training is not started without: the smallest network takes 1.6 GiB.

With less, LLVM, which compiles the rules, ends the process without an exception, and OpenBLAS tries to get memory
forever."""


def check_address_space() -> None:
    """End the command if `ulimit -v` leaves training too little."""
    if sys.platform == "win32":
        return
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESS_SPACE:
        there, least = limit >> 20, LEAST_ADDRESS_SPACE >> 20
        fail(f"training does not fit into memory: `ulimit -v` allows {there} MiB, expected at least {least}", code=1)


@contextmanager
def failing(what: str, extras: str = "train") -> Iterator[None]:
    """End the command with an error message if `what` lacks a package, is given something wrong or cannot write."""
    try:
        yield
    except ImportError as error:
        fail_import(f"{what} need", error, extras)
    except (ValueError, OSError) as error:
        fail(error)


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        from ninetka_env.core.text import quote

        raise typer.BadParameter(f"{quote(text)}: expected an integer") from None


def integer_option(*names: str, help: str) -> Any:  # typer's name
    """Return an option that is an integer."""
    return typer.Option(*names, help=help, parser=_integer, metavar="INTEGER")
