"""Exit handling for the command line: print one-line errors and set exit codes; stop on signals.

Start reading at `fail` and `exit_on_error`; `ninetka_train.commands.group` handles the errors of all commands.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer


def fail(message: object, code: int = 2) -> NoReturn:
    """Print an error message and exit with status `code`.

    An `OSError` without a file name comes from writing to stdout. It is raised again, for `_one_line_errors`.
    """
    if isinstance(message, OSError) and message.errno is not None and message.filename is None:
        raise message
    typer.echo(f"error: {error_text(message)}", err=True)
    raise typer.Exit(code)


def fail_on_import_error(needing: str, error: ImportError, extras: str = "train") -> NoReturn:
    """Print that a package is not installed or does not fit into memory, and exit.

    Args:
        needing: start of the message, such as `"training needs"`.
        error: the error that was raised by the import.
        extras: the extras of `ninetka-env` that install the package.
    """
    if is_out_of_memory(error):
        fail(f"{needing} more memory: {error}", code=1)
    from ninetka_env.core.imports import install_command

    fail(f"{needing} {error.name}: {install_command(extras)}")


def error_text(message: object) -> str:
    """Return the message of an error; for an `OSError` with a file name, `"FILE: REASON"`."""
    if isinstance(message, OSError) and message.filename is not None:
        from ninetka_env.core.files import printable_path

        return f"{printable_path(os.fsdecode(message.filename))}: {message.strerror}"
    return str(message)


OUT_OF_MEMORY_TEXTS = (
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
    """Return whether an error means that memory ran out. Libraries raise different types of exceptions for this."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    try:
        text = str(error).lower()
    except Exception:  # `__str__` of an exception class of an agent may fail
        return False
    is_panic = type(error).__name__ == "PanicException"  # a panic in a Rust library
    return (isinstance(error, (RuntimeError, ImportError)) or is_panic) and any(
        reason in text for reason in OUT_OF_MEMORY_TEXTS
    )


class StoppedBySignal(KeyboardInterrupt):
    """Raised when SIGTERM or SIGUSR1 arrives; code that handles Ctrl-C handles this as well."""

    def __init__(self, number: int) -> None:
        """Store the name and the exit status of a signal."""
        super().__init__()
        self.name = signal.Signals(number).name
        self.status = _SIGNAL_STATUSES[number]


_SIGNAL_STATUSES = {signal.SIGTERM.value: 143} | ({signal.SIGUSR1.value: 75} if hasattr(signal, "SIGUSR1") else {})
"""Exit statuses by signal: shells report SIGTERM as 143; 75 is EX_TEMPFAIL, for schedulers that restart jobs."""


REPEATED_SIGNAL_S = 1.0
"""Seconds after a signal during which further signals are ignored."""


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Raise `StoppedBySignal` when SIGTERM or SIGUSR1 arrives, and `KeyboardInterrupt` for Ctrl-C.

    Schedulers and users may send a signal several times. A signal within `REPEATED_SIGNAL_S` seconds after another is
    ignored, so that the first can be handled. Only the main thread can handle signals; in other threads nothing is
    changed.
    """
    last = -REPEATED_SIGNAL_S

    def stop(number: int, frame: object) -> None:
        nonlocal last
        now = time.perf_counter()
        if now - last < REPEATED_SIGNAL_S:
            return
        last = now
        raise StoppedBySignal(number) if number in _SIGNAL_STATUSES else KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = list(_SIGNAL_STATUSES)
    # shells may start background processes with SIGINT ignored, which must stay so
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        numbers.append(signal.SIGINT)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


MIN_ADDRESS_SPACE = 2 << 30
"""Bytes of address space required to start training: the smallest network takes 1.6 GiB.

With less, LLVM, which compiles the rules, kills the process without an exception, and OpenBLAS tries to allocate
memory forever."""


def check_address_space() -> None:
    """Exit with an error if `ulimit -v` is too low for training."""
    if sys.platform == "win32":
        return
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < MIN_ADDRESS_SPACE:
        there, least = limit >> 20, MIN_ADDRESS_SPACE >> 20
        fail(f"training does not fit into memory: `ulimit -v` allows {there} MiB, expected at least {least}", code=1)


@contextmanager
def exit_on_error(what: str, extras: str = "train") -> Iterator[None]:
    """Exit with an error message on `ImportError`, `ValueError` or `OSError`.

    Args:
        what: plural noun for the feature that needs the package of an `ImportError`, such as `"reports"`.
        extras: the extras of `ninetka-env` that install the package.
    """
    try:
        yield
    except ImportError as error:
        fail_on_import_error(f"{what} need", error, extras)
    except (ValueError, OSError) as error:
        fail(error)


def _parse_integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        from ninetka_env.core.text import quote

        raise typer.BadParameter(f"{quote(text)}: expected an integer") from None


def integer_option(*names: str, help: str) -> Any:  # typer's name
    """Return a typer option that parses an integer."""
    return typer.Option(*names, help=help, parser=_parse_integer, metavar="INTEGER")
