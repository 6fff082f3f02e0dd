"""A lock on a run's folder, so that two processes never write there at the same time.

`ninetka_train.run` locks the folder of a run with `locked`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from ninetka_env.core.files import printable_path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK_FILE = ".lock"
"""Name of the lock file. It contains the name of the process that locked it last."""


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder. The operating system releases it when this process ends, even if it crashes.

    Warns if the folder cannot be locked, for example because the file system has no locks.

    Raises:
        ValueError: if another process holds the lock; the message names that process.
    """
    path = folder / LOCK_FILE
    try:
        file = _open(path)
    except OSError as error:
        warnings.warn(f"{folder}: cannot be locked: {error.strerror}; only one process may train there", stacklevel=3)
        yield
        return
    try:
        with contextlib.suppress(OSError):  # a full disk, or a read-only file of another user
            os.ftruncate(file, 0)
            os.write(file, f"process {os.getpid()} on {socket.gethostname()}".encode())
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows cannot remove an open file
            path.unlink()
        os.close(file)


def _open(path: Path) -> int:
    """Open and lock a file; return its descriptor.

    Raises:
        ValueError: if another process holds the lock.
        OSError: if the file cannot be opened or locked.
    """
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
        except (BlockingIOError, PermissionError):  # PermissionError on Windows
            os.close(file)
            what = f"{_owner(path)} is training there: wait until it has ended, or stop it"
            raise ValueError(f"{path.parent}: {what}") from None
        except OSError:
            os.close(file)
            raise
        os.close(file)  # the previous owner has removed the file after this process opened it


def _owner(path: Path) -> str:
    """Return the name of the process that holds a lock."""
    with contextlib.suppress(OSError):
        return printable_path(path.read_bytes()[:200].decode(errors="replace")) or "another process"
    return "another process"


def _lock(file: int) -> None:
    """Lock a file. Raises `BlockingIOError` or `PermissionError` if another process holds the lock."""
    if sys.platform == "win32":
        os.lseek(file, 1 << 20, os.SEEK_SET)  # away from the text, because other processes cannot read a locked range
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        os.lseek(file, 0, os.SEEK_SET)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
