"""Files that are replaced whole or not at all, and errors that name the file that was asked for."""

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
    """Write pieces into a new file that takes the place of `path` once all of it is on the disk.

    If anything fails, the source of the pieces included, a file that was there stays as it was. A link stays a link, a
    file keeps its mode; what is no file, such as /dev/stdout or a pipe, is written to directly.

    Returns:
        How many pieces there were.

    Raises:
        OSError: if the path cannot be written, naming it.
    """
    return replace_files({path: pieces})[0]


def replace_files(contents: Mapping[StrPath, Iterable[bytes]]) -> list[int]:
    """Do the same for files that belong together: all are on the disk before the first takes its place, in order."""
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
    """Raise `OSError` now if a result could not be written to `path` later."""
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
    """Return the path of one of several files that differ in their endings; a dot in the name is no ending."""
    return path.with_name(re.sub(r"\.(png|json|md)$", "", path.name) + ending)


def shown(path: StrPath) -> str:
    """Return a path as errors tell it: in one line, cut off where it is absurdly long."""
    text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in os.fspath(path))
    return text if len(text) <= 300 else f"{text[:300]} ..."


def is_special(path: Path) -> bool:
    """Tell whether a path is no file and must not be replaced by one, such as /dev/stdout or a pipe."""
    return path.exists() and not path.is_file()


@contextmanager
def naming(path: StrPath) -> Iterator[None]:
    """Make errors of the file system name the file that was to be written."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"cannot write: {error.strerror}", os.fspath(path)) from error
    except ValueError as error:  # a null character in it
        raise OSError(errno.EINVAL, f"cannot write: {error}", os.fspath(path)) from error


def _write(path: Path, part: Path | None, pieces: Iterable[bytes]) -> int:
    """Write pieces into the file that is to replace `path`, or into `path` itself, and count them."""
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
    """Return whether an error means that a pipe has no reader any more; on Windows it is EINVAL, without a filename."""
    is_invalid = sys.platform == "win32" and error.errno == errno.EINVAL
    return error.errno == errno.EPIPE or (is_invalid and error.filename is None)


def _check_mode(path: Path) -> None:
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is read-only")


def _goal(path: Path) -> Path:
    """Return the file that a path stands for: a link's, where it points to."""
    return Path(os.path.realpath(path))


def _part(path: Path) -> Path:
    """Return the name of the file, beside the one asked for, that is written first."""
    goal = _goal(path)
    return goal.with_name(f".{goal.name[-40:]}.{os.getpid()}.part")  # no name is too long for it that is not itself


_UNKNOWN_TO_SHARES = {errno.EACCES, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
"""How systems of files answer that have no way to synchronise a folder, or let nobody read it."""


def _sync_folder(folder: Path) -> None:
    """Make the new name last, where folders can be synchronised: not on Windows, nor on some network shares."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        descriptor = os.open(folder, os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _UNKNOWN_TO_SHARES:  # else the file is in place, and nothing more can be done
            raise
