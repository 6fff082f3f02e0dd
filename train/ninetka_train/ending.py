"""Exit handling for the command line: print one-line errors and set exit codes; stop on signals."""

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
"""Click's class of usage errors, from the click that typer uses: its own copy or the installed one."""


@contextmanager
def _ending_in_a_line() -> Iterator[None]:
    """End the command with one line if it is stopped, cannot print or runs out of memory; shorten usage errors."""
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
        if is_closed_pipe(error):  # the reader of the pipe has exited
            raise typer.Exit(1) from None
        fail(error if error.filename is not None else f"standard output: {error.strerror}", code=1)
    except BaseException as error:
        if not is_out_of_memory(error):
            raise
        fail("the command does not fit into memory", code=1)


def _shortened(line: str) -> str:
    return line if len(line) <= 300 else f"{line[:300]} ..."


def _end_output() -> None:
    """Discard buffered output, because flushing it at exit would raise another error."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


MOVED = {"evaluate": {"--neutral-placement": "neutral_placement", "--turn-order": "turn_order"}}
"""By command: former options that are now options of 9tka, with their names in a game's spec."""


def _check_moved(arguments: list[str]) -> None:
    """End the command with advice if the arguments have an option that has moved into `--game`."""
    following = zip(arguments, [*arguments[1:], "VALUE"], strict=True)
    parts = [(*one.partition("="), value) for one, value in following]
    given = {name: own if equals else value for name, equals, own, value in parts}
    known = MOVED.get(next(iter(arguments), ""), {})
    moved = {option: f"{name}={given[option]}" for option, name in known.items() if option in given}
    if not moved:
        return
    what, game = f"{' and '.join(moved)} {'are' if len(moved) > 1 else 'is'}", given.get("--game", "ninetka")
    if game.partition(":")[0] != "ninetka":
        fail(f"{what} only for 9tka: leave out what --game {game} does not have")
    fail(f"{what} now part of --game: write --game {game}{',' if ':' in game else ':'}{','.join(moved.values())}")


class Commands(TyperGroup):
    """Group of all commands, with one-line errors."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments before the command's name, and reject moved options after it."""
        _check_moved(args)
        return super().parse_args(ctx, args)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Parse the arguments before the command's name."""
        with _ending_in_a_line():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        """Parse the command's arguments and run it."""
        with _ending_in_a_line():
            return super().invoke(ctx)


def fail(message: object, code: int = 2) -> NoReturn:
    """Print an error message and exit; an `OSError` of printing is raised again for `_ending_in_a_line`."""
    if isinstance(message, OSError) and message.errno is not None and message.filename is None:
        raise message
    typer.echo(f"error: {explain(message)}", err=True)
    raise typer.Exit(code)


def fail_import(needing: str, error: ImportError, extras: str = "train") -> NoReturn:
    """Print that a package is not installed or does not fit into memory, and exit."""
    if is_out_of_memory(error):
        fail(f"{needing} more memory: {error}", code=1)
    fail(f"{needing} {error.name}: pip install 'ninetka-env[{extras}]'")


def explain(message: object) -> str:
    """Return the text of an error; the text of an `OSError` starts with its file."""
    if isinstance(message, OSError) and message.filename is not None:
        from ninetka_env.core.files import shown

        return f"{shown(os.fsdecode(message.filename))}: {message.strerror}"
    return str(message)


NO_MEMORY = (
    "allocate memory",  # torch, and the system while it loads a library
    "not enough memory",  # torch
    "std::bad_alloc",
    "failed to map segment",  # the dynamic loader
    "could not create a primitive",  # oneDNN, which torch uses for matrix products; also the next two
    "could not create a memory",
    "could not execute a primitive",
    "can't start new thread",  # no memory for the stack of a thread
    "out of memory",
    "pyobject pointer is null",  # safetensors
)
"""Parts of the messages with which libraries report that memory ran out, in lower case."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that memory ran out; libraries raise several types."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    text, is_panic = str(error).lower(), type(error).__name__ == "PanicException"  # a BaseException of Rust libraries
    return (isinstance(error, (RuntimeError, ImportError)) or is_panic) and any(reason in text for reason in NO_MEMORY)


class Stopped(KeyboardInterrupt):
    """Raised when SIGTERM or SIGUSR1 arrives; code that handles Ctrl-C handles this as well."""

    def __init__(self, number: int) -> None:
        """Store the name and the exit status of a signal."""
        super().__init__()
        self.name = signal.Signals(number).name
        self.status = _STATUS[number]


_STATUS = {signal.SIGTERM.value: 143} | ({signal.SIGUSR1.value: 75} if hasattr(signal, "SIGUSR1") else {})
"""Exit statuses by signal: shells report SIGTERM as 143; 75 is EX_TEMPFAIL, for schedulers that restart jobs."""


REPEATED = 1.0
"""Seconds after a signal during which further signals are ignored."""


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Raise `Stopped` when SIGTERM or SIGUSR1 arrives, and `KeyboardInterrupt` for Ctrl-C.

    Schedulers and users may send a signal several times. A signal within `REPEATED` seconds after another is ignored,
    so that the first can be handled. Only the main thread can handle signals; in other threads nothing is changed.
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
    if (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):  # background processes may be started with SIGINT ignored
        numbers.append(signal.SIGINT)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


LEAST_ADDRESS_SPACE = 2 << 30
"""Bytes of address space required to start training: the smallest network takes 1.6 GiB.

With less, LLVM, which compiles the rules, kills the process without an exception, and OpenBLAS tries to allocate
memory forever."""


def check_address_space() -> None:
    """Exit with an error if `ulimit -v` is too low for training."""
    if sys.platform == "win32":
        return
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESS_SPACE:
        there, least = limit >> 20, LEAST_ADDRESS_SPACE >> 20
        fail(f"training does not fit into memory: `ulimit -v` allows {there} MiB, expected at least {least}", code=1)


@contextmanager
def failing(what: str, extras: str = "train") -> Iterator[None]:
    """Exit with an error message on `ImportError` (a package that `what` needs), `ValueError` or `OSError`."""
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
    """Return a typer option that parses an integer."""
    return typer.Option(*names, help=help, parser=_integer, metavar="INTEGER")
