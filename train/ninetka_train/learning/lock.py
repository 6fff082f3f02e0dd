"""A lock on the folder of a run, so that two processes never write there at the same time."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from ninetka_env.core.files import shown

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK = ".lock"
"""Name of the file that is locked. It holds the name of the process that locked it last."""


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder. The operating system frees it when this process ends, in whatever way.

    Where no lock can be had, such as on a file system without locks, a warning says so.

    Raises:
        ValueError: if another process holds it, naming that process.
    """
    path = folder / LOCK
    try:
        file = _open(path)
    except OSError as error:
        warnings.warn(f"{folder}: cannot be locked: {error.strerror}; only one process may train there", stacklevel=3)
        yield
        return
    try:
        with contextlib.suppress(OSError):  # a full disk; or the file is that of another user, to be read only
            os.ftruncate(file, 0)
            os.write(file, f"process {os.getpid()} on {socket.gethostname()}".encode())
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows removes no file that is open
            path.unlink()
        os.close(file)


def _open(path: Path) -> int:
    """Open and lock a file, and return its descriptor; `OSError` if that is not possible here."""
    flags = getattr(os, "O_NOFOLLOW", 0)
    while True:
        try:
            file = os.open(path, flags | os.O_CREAT | os.O_RDWR, 0o666)
        except PermissionError:
            file = os.open(path, flags | os.O_RDONLY)
        try:
            _lock(file)
            if path.exists() and os.path.samestat(os.fstat(file), path.stat()):
                return file
        except (BlockingIOError, PermissionError):  # the latter on Windows
            os.close(file)
            what = f"{_owner(path)} is training there: wait until it has ended, or stop it"
            raise ValueError(f"{path.parent}: {what}") from None
        except OSError:
            os.close(file)
            raise
        os.close(file)  # the process that had locked it before has removed it meanwhile


def _owner(path: Path) -> str:
    """Return the name of the process that holds a lock."""
    with contextlib.suppress(OSError):
        return shown(path.read_bytes()[:200].decode(errors="replace")) or "another process"
    return "another process"


def _lock(file: int) -> None:
    """Lock a file; `BlockingIOError` or `PermissionError` if another process has."""
    if sys.platform == "win32":
        os.lseek(file, 1 << 20, os.SEEK_SET)  # away from the text, since nobody else can read what is locked
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        os.lseek(file, 0, os.SEEK_SET)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
