"""Atomic replacement of files, with errors that name the path that the caller gave."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

StrPath = str | os.PathLike[str]


def replace_file(path: StrPath, pieces: Iterable[bytes]) -> int:
    """Write pieces to a new file and rename it to `path` once all of them are on the disk.

    On any error, also one raised by `pieces`, the old file is left unchanged. A link stays a link, and a file keeps its
    mode. A path that is not a regular file, such as /dev/stdout or a pipe, is written to directly.

    Returns:
        The number of pieces.

    Raises:
        OSError: if the path cannot be written; the error names the path.
    """
    return replace_files({path: pieces})[0]


def replace_files(contents: Mapping[StrPath, Iterable[bytes]]) -> list[int]:
    """Replace files that belong together; all are on the disk before the first is renamed, in order.

    See `replace_file`. Returns the number of pieces of each file.
    """
    parts: dict[Path, Path] = {}
    counts = []
    try:
        for path, pieces in contents.items():
            target = Path(path)
            if not is_special(target):
                with naming(target):
                    parts[target] = _part(target)
            counts.append(_write(target, parts.get(target), pieces))
        for path, part in parts.items():
            with naming(path):
                part.replace(_goal(path))
        for folder in {part.parent for part in parts.values()}:
            with naming(folder):
                _sync_folder(folder)
    finally:
        for part in parts.values():
            with suppress(OSError):
                part.unlink()
    return counts


def check_writable(path: StrPath) -> None:
    """Raise `OSError` if `path` cannot be written; for use before a long computation."""
    target = Path(path)
    with naming(target):
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        _check_mode(target)
        if not is_special(target):
            part = _part(target)
            part.open("x", encoding="utf-8").close()
            part.unlink()


def with_ending(path: Path, ending: str) -> Path:
    """Return the path with another extension; of the old ones, only .png, .json and .md are removed."""
    return path.with_name(re.sub(r"\.(png|json|md)$", "", path.name) + ending)


def shown(path: StrPath) -> str:
    """Return a path as text for an error message: one line, cut off after 300 characters."""
    text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in os.fspath(path))
    return text if len(text) <= 300 else f"{text[:300]} ..."


def is_special(path: Path) -> bool:
    """Return whether a path exists and is not a regular file, such as /dev/stdout or a pipe."""
    return path.exists() and not path.is_file()


@contextmanager
def naming(path: StrPath) -> Iterator[None]:
    """Raise errors of the file system again as `OSError` with the path that was to be written."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"cannot write: {error.strerror}", os.fspath(path)) from error
    except ValueError as error:  # a null character in it
        raise OSError(errno.EINVAL, f"cannot write: {error}", os.fspath(path)) from error


def _write(path: Path, part: Path | None, pieces: Iterable[bytes]) -> int:
    """Write pieces to the temporary file `part`, or to `path` itself if that is None; return the number of pieces."""
    count = 0
    with naming(path):
        _check_mode(path)
        file = (part or path).open("wb")
    try:
        for piece in pieces:
            with naming(path):
                file.write(piece)
            count += 1
        with naming(path):
            file.flush()
            if part:
                os.fsync(file.fileno())
                if path.exists():
                    part.chmod(path.stat().st_mode)
    finally:
        with naming(path):
            file.close()
    return count


def is_closed_pipe(error: OSError) -> bool:
    """Return whether an error means that a pipe has no reader; on Windows that is EINVAL without a filename."""
    is_invalid = sys.platform == "win32" and error.errno == errno.EINVAL
    return error.errno == errno.EPIPE or (is_invalid and error.filename is None)


def _check_mode(path: Path) -> None:
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is read-only")


def _goal(path: Path) -> Path:
    """Return the path with all links resolved."""
    return Path(os.path.realpath(path))


def _part(path: Path) -> Path:
    """Return the path of the temporary file, in the same folder as the file that it will replace."""
    goal = _goal(path)
    return goal.with_name(f".{goal.name[-40:]}.{os.getpid()}.part")  # cut, so that the new name is not too long


_UNKNOWN_TO_SHARES = {errno.EACCES, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
"""Errors of file systems that cannot synchronise a folder or do not allow to read it."""


def _sync_folder(folder: Path) -> None:
    """Write a folder to the disk so that a rename survives a crash."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows
        return
    try:
        descriptor = os.open(folder, os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _UNKNOWN_TO_SHARES:  # with these errors, the file is replaced nevertheless
            raise
