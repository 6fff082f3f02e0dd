"""A lock on the folder of a run, so that two processes never write there at the same time."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK = ".lock"
"""Name of the file that is locked. It holds the name of the process that locked it last."""


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder. The operating system frees it when this process ends, in whatever way.

    Where no lock can be had, in a folder that is read-only or on a file system without locks, there is none.

    Raises:
        ValueError: if another process holds it, naming that process.
    """
    path = folder / LOCK
    file = _open(path)
    if file is None:
        yield
        return
    with file:
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}")
        file.flush()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # Windows removes no file that is open
                path.unlink()


def _open(path: Path) -> IO[str] | None:
    """Open and lock a file; None if that is not possible here."""
    while True:
        try:
            file = path.open("a+", encoding="utf-8")
        except OSError:
            return None
        with contextlib.ExitStack() as stack:
            stack.callback(file.close)
            try:
                _lock(file)
            except (BlockingIOError, PermissionError):  # the latter on Windows
                owner = path.read_text(encoding="utf-8") or "another process"
                what = f"{owner} is training there: wait until it has ended, or stop it"
                raise ValueError(f"{path.parent}: {what}") from None
            except OSError:  # a file system without locks
                return None
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                stack.pop_all()
                return file
            # else the process that had locked the file before has removed it meanwhile


def _lock(file: IO[str]) -> None:
    """Lock a file; `BlockingIOError` or `PermissionError` if another process has."""
    if sys.platform == "win32":
        file.seek(1 << 20)  # away from the text, since nobody else can read what is locked
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
