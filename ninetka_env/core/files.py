"""Atomic replacement of files; errors name the path given by the caller.

Start reading at `replace_file`.
"""

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

    On any error, including an error raised by `pieces`, the old file is left unchanged. For a symbolic link, the file
    that it points to is replaced. A file keeps its mode. A path that is not a regular file, such as /dev/stdout or a
    pipe, is written to directly.

    Returns:
        The number of pieces.

    Raises:
        OSError: if the path cannot be written; the error names the path.
    """
    return replace_files({path: pieces})[0]


def replace_files(contents: Mapping[StrPath, Iterable[bytes]]) -> list[int]:
    """Replace several files as `replace_file` does; all new files are on the disk before the first is renamed.

    Files are written and renamed in the order of `contents`. Returns the number of pieces of each file.
    """
    temporary_paths: dict[Path, Path] = {}
    counts = []
    try:
        for path, pieces in contents.items():
            target = Path(path)
            if not is_special(target):
                with path_in_errors(target):
                    temporary_paths[target] = _temporary_path(target)
            counts.append(_write(target, temporary_paths.get(target), pieces))
        for path, temporary in temporary_paths.items():
            with path_in_errors(path):
                temporary.replace(_resolved(path))
        for folder in {part.parent for part in temporary_paths.values()}:
            with path_in_errors(folder):
                _sync_folder(folder)
    finally:
        for temporary in temporary_paths.values():
            with suppress(OSError):
                temporary.unlink()
    return counts


def check_writable(path: StrPath) -> None:
    """Raise `OSError` if `path` cannot be written; for use before a long computation."""
    target = Path(path)
    with path_in_errors(target):
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if not target.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, f"there is no folder {printable_path(target.parent)}")
        _check_mode(target)
        if not is_special(target):
            temporary = _temporary_path(target)
            temporary.open("x", encoding="utf-8").close()
            temporary.unlink()


def with_extension(path: Path, extension: str) -> Path:
    """Return the path with `extension` instead of .png, .json or .md; append `extension` to any other name."""
    return path.with_name(re.sub(r"\.(png|json|md)$", "", path.name) + extension)


def printable_path(path: StrPath) -> str:
    """Return a path as text for an error message: one line, cut off after 300 characters."""
    text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in os.fspath(path))
    return text if len(text) <= 300 else f"{text[:300]} ..."


def is_special(path: Path) -> bool:
    """Return whether a path exists and is not a regular file, such as /dev/stdout or a pipe."""
    return path.exists() and not path.is_file()


@contextmanager
def path_in_errors(path: StrPath) -> Iterator[None]:
    """Convert an `OSError` or `ValueError` that is raised in the `with` block to an `OSError` that names `path`."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"cannot write: {error.strerror}", os.fspath(path)) from error
    except ValueError as error:  # the path contains a null character
        raise OSError(errno.EINVAL, f"cannot write: {error}", os.fspath(path)) from error


def _write(path: Path, temporary: Path | None, pieces: Iterable[bytes]) -> int:
    """Write pieces to the file `temporary`, or to `path` itself if `temporary` is None; return their number."""
    count = 0
    with path_in_errors(path):
        _check_mode(path)
        file = (temporary or path).open("wb")
    try:
        for piece in pieces:
            with path_in_errors(path):
                file.write(piece)
            count += 1
        with path_in_errors(path):
            file.flush()
            if temporary:
                os.fsync(file.fileno())
                if path.exists():
                    temporary.chmod(path.stat().st_mode)
    finally:
        with path_in_errors(path):
            file.close()
    return count


def is_closed_pipe(error: OSError) -> bool:
    """Return whether an error means that a pipe has no reader; on Windows this error is EINVAL without a filename."""
    is_invalid = sys.platform == "win32" and error.errno == errno.EINVAL
    return error.errno == errno.EPIPE or (is_invalid and error.filename is None)


def _check_mode(path: Path) -> None:
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is read-only")


def _resolved(path: Path) -> Path:
    """Return the path with all links resolved."""
    return Path(os.path.realpath(path))


def _temporary_path(path: Path) -> Path:
    """Return the path of the temporary file, in the same folder as the file that it will replace."""
    goal = _resolved(path)
    return goal.with_name(f".{goal.name[-40:]}.{os.getpid()}.part")  # shortened, so that the new name is not too long


_FSYNC_UNSUPPORTED = {errno.EACCES, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
"""Error numbers of file systems that cannot synchronise a folder or do not allow it to be opened."""


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
        if error.errno not in _FSYNC_UNSUPPORTED:  # unsupported: ignore the error, the files are replaced already
            raise
