"""Compiled code on disk: never stale, never in the way.

numba's disk cache is keyed by the file of the cached function alone, so a change in a helper of another file would go
unnoticed and stale machine code would be served. Here a function's code is kept in a folder named after a hash of every
source file that it can reach: all files of its own package, however deep, and of the packages that these import.

A cache that is damaged, full, read-only or half-written costs time, nothing else: what cannot be read is compiled
again and written anew, what cannot be written is left out.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import pickle
import re
import shutil
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.serialize import dumps

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_WEEK = 7 * 24 * 3600.0
_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+(\w+)|import[ \t]+([\w., \t]+))", re.MULTILINE)
_FAMILY = __name__.partition("_")[0]
"""How the names of this project's packages begin."""


def keep_on_disk(compiled: Any) -> None:
    """Give a compiled function (numba's dispatcher) a disk cache; where nothing can be written it does without."""
    folder = cache_folder(_top_of(Path(compiled.py_func.__code__.co_filename)))
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        compiled._cache = _Cache(compiled.py_func, folder)
    except (RuntimeError, OSError):  # no place to write to
        return
    finally:
        numba.config.CACHE_DIR = before  # other people's functions keep their own cache


class _Cache(FunctionCache):
    """numba's cache of one function, which never raises and which one process at a time reads or writes.

    Two processes that save at once could mix up its files.
    """

    def __init__(self, function: Any, folder: Path) -> None:
        super().__init__(function)
        self._folder = folder
        file = self._cache_file
        self._cache_file = _SealedFile(self._cache_path, self._impl.filename_base, file._source_stamp)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        try:
            with _locked(self._folder):
                return super().load_overload(signature, target_context)
        except Exception:  # whatever the damage: compile, and write the entry anew
            self._drop()
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        try:
            with _locked(self._folder):
                super().save_overload(signature, data)
        except Exception:  # a full disk, a folder that is gone: the function is compiled, which is what matters
            self._drop()

    def _drop(self) -> None:
        """Remove this function's files, so that the next process finds them whole or not at all."""
        with contextlib.suppress(OSError):
            for path in Path(self._cache_path).glob(f"{self._impl.filename_base}.*"):
                _remove(path)


class _SealedFile(IndexDataCacheFile):
    """The files of a function's cache, each behind a digest, so that a damaged one is noticed before it is run."""

    def _dump(self, content: Any) -> bytes:
        blob: bytes = dumps(content)
        return hashlib.sha256(blob).digest() + blob

    def _load_index(self) -> dict[Any, str]:
        try:
            with Path(self._index_path).open("rb") as file:
                version = pickle.load(file)
                sealed = file.read()
        except FileNotFoundError:
            return {}
        stamp, overloads = _opened(sealed) if version == self._version else (None, {})
        return overloads if stamp == self._source_stamp else {}

    def _load_data(self, name: str) -> Any:
        return _opened(Path(self._data_path(name)).read_bytes())


def _opened(sealed: bytes) -> Any:
    """Return what `_SealedFile._dump` wrote; `ValueError` if it is damaged."""
    digest, blob = sealed[:32], sealed[32:]
    if hashlib.sha256(blob).digest() != digest:
        raise ValueError("the cache is damaged")
    return pickle.loads(blob)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, where there can be one."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            lock = stack.enter_context((folder / "lock").open("w"))  # closing it unlocks it
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@functools.cache
def cache_folder(top: Path) -> Path:
    """Return the folder for the compiled functions of a package or a single file; drop folders unused for a week."""
    digest = hashlib.sha256(numba.__version__.encode() + bytes([numba.config.BOUNDSCHECK or 0]))
    read, installed = _reach(top)
    for root in sorted(read):
        for source in _sources(root):
            digest.update(str(source.relative_to(root.parent)).encode() + b"\0" + source.read_bytes() + b"\0")
    for root in sorted(installed):
        status = (root / "__init__.py" if root.is_dir() else root).stat()
        digest.update(f"{root.name} {status.st_size} {status.st_mtime_ns}\0".encode())
    name = f"{top.stem}-{digest.hexdigest()[:16]}"
    for home in (_home(), Path(tempfile.gettempdir()) / f"ninetka-{_user()}"):
        try:
            if not (home / name).exists():
                _drop_unused(home)
            (home / name).mkdir(parents=True, exist_ok=True)
            os.utime(home / name)
            _check_writable(home / name)
        except OSError:  # read-only, full, or a file where a folder should be
            continue
        return home / name
    return top.parent / "__pycache__"


def _check_writable(folder: Path) -> None:
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"x")


def _home() -> Path:
    """Return the folder of all caches: where numba is told to keep its own, else the user's."""
    for variable in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        if os.environ.get(variable):
            return Path(os.environ[variable]) / "ninetka"
    try:
        return Path.home() / ".cache" / "ninetka"
    except RuntimeError:  # a user without a home
        return Path(tempfile.gettempdir()) / f"ninetka-{_user()}"


def _user() -> str:
    """Return what tells users apart who share a folder for temporary files."""
    return str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "")


def _top_of(source: Path) -> Path:
    """Return the folder of the outermost package that a source file belongs to; the file itself if to none."""
    top = source
    while (top.parent / "__init__.py").exists():
        top = top.parent
    return top


def _sources(root: Path) -> list[Path]:
    """Return the source files of a package, or of a module that is a single file."""
    return sorted(root.rglob("*.py")) if root.is_dir() else [root]


def _reach(top: Path) -> tuple[set[Path], set[Path]]:
    """Return what `top` can be compiled together with: itself, what it imports, what that imports, and so on.

    Returns:
        The packages and files to read whole; and those that others installed, which change as a whole if at all, and
        are not followed any further.
    """
    read: set[Path] = set()
    installed: set[Path] = set()
    waiting = [top]
    while waiting:
        root = waiting.pop()
        if root in read or root in installed:
            continue
        if root != top and _is_installed(root) and not root.name.startswith(_FAMILY):
            installed.add(root)
            continue
        read.add(root)
        waiting += filter(None, (_find(name, root) for name in _imported_names(root)))
    return read, installed


def _imported_names(root: Path) -> set[str]:
    """Return the top-level names that the sources of a package import, inside functions too."""
    names: set[str] = set()
    for source in _sources(root):
        for one, several in _IMPORT.findall(source.read_text(encoding="utf-8", errors="replace")):
            names |= {one} if one else {part.split(".")[0].split()[0] for part in several.split(",") if part.strip()}
    return names - sys.stdlib_module_names


@functools.cache
def _find(name: str, importer: Path) -> Path | None:
    """Return the package folder, or the file, that a name stands for; None if it is no source that can be found."""
    for beside in (importer.parent / name, importer.parent / f"{name}.py"):
        if (beside / "__init__.py").exists() or (beside.suffix and beside.exists()):
            return beside
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    if found is None or not found.origin or not found.origin.endswith(".py"):
        return None
    origin = Path(found.origin)
    return origin.parent if found.submodule_search_locations else origin


def _is_installed(root: Path) -> bool:
    """Tell whether a package lies among those that were installed, or in a folder such as those."""
    places = {Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")}
    return root.parent in places or root.parent.name in ("site-packages", "dist-packages")


def _drop_unused(home: Path) -> None:
    for folder in home.glob("*-????????????????"):
        try:
            if folder.stat().st_mtime < time.time() - _WEEK:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # another process was faster
            continue
