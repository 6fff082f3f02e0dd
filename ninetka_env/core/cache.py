"""Disk cache of compiled code, keyed by a hash of all source files that a function can reach.

Start reading at `keep_on_disk`; `jit.py` calls it for each compiled function.

numba's disk cache is keyed by the file of the cached function alone, so a change in a helper of another file would go
unnoticed and stale machine code would be loaded. Here a function's code is cached in a folder named after a hash of
every source file that it can reach: all files of its own package, and of the packages that this package imports,
directly or indirectly.

Errors of the cache cost only time: code that cannot be read is compiled and written again, and code that cannot be
written is not cached.
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
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

try:
    from numba.core.caching import FunctionCache
    from numba.core.serialize import dumps
except ImportError:  # undocumented in numba; without them, numba's own cache is used
    FunctionCache, dumps = object, None

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_WEEK = 7 * 24 * 3600.0
_LOCK_TIMEOUT_S = 1.0
"""Seconds to wait for a lock; other processes hold it for milliseconds, unless they hang."""
_IMPORT = re.compile(
    r"(?:^|[:;])[ \t]*(?:from[ \t]+(\w+)|import[ \t]+([\w., \t]+))|\b(?:import_module|__import__)\(\s*['\"](\w+)",
    re.MULTILINE,
)
_IN_LIST = re.compile(r"(?:^|,)\s*(\w+)")
_OWN_PREFIX = __name__.partition("_")[0]
"""Prefix of the names of this project's packages."""

_SETTING_NUMBA = threading.Lock()
_GAVE_UP = threading.Event()
"""Set when a lock was not acquired in time; after that, this process does not wait for locks."""
_EDITED: set[Path] = set()
"""The packages and files that changed after they were hashed. Their loaded modules may be older or newer, so this
process does not use the cache of functions that reach them."""
_TOPS: set[Path] = set()
"""The loaded packages and files with cached functions."""
_OWNERS: dict[str, set[Path]] = {}
"""Maps numba's name of a state dtype to packages and files. Code for states of this dtype can contain their functions;
see `found_by_type`."""


def keep_on_disk(compiled: Any) -> None:
    """Give a compiled function (numba's dispatcher) a disk cache, if there is a writable folder for it.

    A function without a source file, for example in a notebook, is not cached, because its dependencies are unknown.
    """
    try:
        source = Path(compiled.py_func.__code__.co_filename).absolute()
        top = _top_of(source)
        folder = cache_folder(top) if source.is_file() else None
        if folder is None:
            return
        if _read(top).files.get(source) != _stamp(source):
            _EDITED.add(top)
        _TOPS.add(top)
        with _numba_writes_to(folder):
            _give_cache(compiled, folder, top)
    except (RuntimeError, OSError):  # there is no writable folder
        return


def found_by_type(dtypes: Iterable[np.dtype[Any]], functions: Iterable[Callable[..., Any]]) -> None:
    """Declare that code for states of these dtypes can contain these functions.

    Imports do not show this, because compiled code finds these functions by the dtype of the state.
    """
    tops = {_top_of(Path(getattr(each, "py_func", each).__code__.co_filename).absolute()) for each in functions}
    for kind in map(numba.from_dtype, dtypes):
        for name in (str(kind), repr(kind)):
            _OWNERS.setdefault(name, set()).update(tops)


def _give_cache(compiled: Any, folder: Path, top: Path) -> None:
    try:
        cache = _Cache(compiled.py_func, folder, top)
    except (AttributeError, TypeError):  # another version of numba
        cache = None
    if cache is not None and hasattr(compiled, "_cache"):
        compiled._cache = cache
    else:
        compiled.enable_caching()


@contextlib.contextmanager
def _numba_writes_to(folder: Path) -> Iterator[None]:
    """Make numba use `folder` in a `with` block; functions of other packages keep their own cache."""
    wanted = {"CACHE_DIR": str(folder), "CACHE_LOCATOR_CLASSES": ""}
    with _SETTING_NUMBA:
        before = {name: getattr(numba.config, name) for name in wanted if hasattr(numba.config, name)}
        try:
            for name in before:
                setattr(numba.config, name, wanted[name])
            yield
        finally:
            for name, value in before.items():
                setattr(numba.config, name, value)


class _Cache(FunctionCache):
    """numba's cache of one function; it never raises because of files on the disk."""

    def __init__(self, function: Any, folder: Path, top: Path) -> None:
        super().__init__(function)
        self._top = top
        self._cache_file = _File(Path(self._cache_path) / f"{self._impl.filename_base}.code", folder / "lock")

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        try:
            if _are_doubtful(_roots(signature, self._top)):
                return None
            return super().load_overload(signature, target_context)
        except Exception:  # a damaged file can raise anything; without the file, numba compiles again
            with contextlib.suppress(OSError):
                self._cache_file.flush()
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        try:
            roots = _roots(signature, self._top)
            _EDITED.update(filter(_is_edited, roots))
            if not _are_doubtful(roots):
                super().save_overload(signature, data)
        except Warning:  # numba's reason why the function cannot be cached, if warnings are errors
            raise
        except Exception:  # such as a full disk or a removed folder; the function is compiled anyway
            return

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        hashes = sorted(_reach(package).hash for package in _packages_of_types(signature, self._top))
        return super()._index_key(signature, codegen), tuple(hashes)


class _File:
    """The file with a function's code for all signatures, preceded by a digest that reveals damage.

    The file is replaced atomically. Processes that write without a lock can only lose entries of each other.
    """

    def __init__(self, path: Path, lock: Path) -> None:
        self._path = path
        self._lock = lock

    def load(self, key: Any) -> Any:
        """Return the entry saved with `key`, or None; raises if the file is damaged."""
        blob = self._entries().get(key)
        return None if blob is None else pickle.loads(blob)

    def save(self, key: Any, data: Any) -> None:
        """Add or replace an entry."""
        blob = dumps(data)
        with _locked(self._lock):
            try:
                entries = self._entries()
            except Exception:  # a damaged file can raise anything
                self.flush()
                entries = {}
            _replace(self._path, _sealed(dumps({**entries, key: blob})))

    def flush(self) -> None:
        """Remove all entries."""
        if self._path.is_dir() and not self._path.is_symlink():
            shutil.rmtree(self._path)
        else:
            self._path.unlink(missing_ok=True)

    def _entries(self) -> dict[Any, bytes]:
        try:
            sealed = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        if _sealed(sealed[32:]) != sealed:
            raise ValueError("the cache is damaged")
        entries: dict[Any, bytes] = pickle.loads(sealed[32:])
        return entries


def _sealed(blob: bytes) -> bytes:
    """Return a digest of numba's version and the blob, followed by the blob."""
    return hashlib.sha256(numba.__version__.encode() + blob).digest() + blob


def _replace(path: Path, content: bytes) -> None:
    """Replace a file atomically."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix="new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a file lock in a `with` block, so that entries of other processes are not lost; on a timeout, hold none."""
    with contextlib.ExitStack() as stack:
        if fcntl is not None:
            with contextlib.suppress(OSError):
                file = stack.enter_context(path.open("wb"))
                _lock(file)
                stack.callback(fcntl.flock, file, fcntl.LOCK_UN)  # also for child processes forked in the meantime
        yield


def _lock(file: Any) -> None:
    """Lock a file; `BlockingIOError` if another process holds the lock too long."""
    end = time.perf_counter() + (0 if _GAVE_UP.is_set() else _LOCK_TIMEOUT_S)
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.perf_counter() >= end:
                _GAVE_UP.set()
                raise
        time.sleep(0.005)


def source_digest(package: str) -> str:
    """Return a hexadecimal digest of all sources of an installed package; it does not depend on their location."""
    return _read(_on_path(package)[0]).hash.hex()


# Location of the cache


@functools.cache
def cache_folder(top: Path) -> Path | None:
    """Return the cache folder of a package or a single file; None if no folder can be written.

    Folders unused for a week are deleted.
    """
    name = f"{top.stem[:40]}-{_reach(top).hash[:16]}"
    for home in _homes():
        try:
            if not (home / name).exists():
                _drop_unused(home)
            (home / name).mkdir(parents=True, exist_ok=True)
            os.utime(home / name)
            _check_writable(home / name)
        except OSError:  # read-only, full, or a file where a folder should be
            continue
        return home / name
    return None


def _check_writable(folder: Path) -> None:
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"x")


def _homes() -> Iterator[Path]:
    """Yield two folders that can contain caches, the preferred folder first, then a temporary folder.

    The preferred folder is in `NUMBA_CACHE_DIR` or `XDG_CACHE_HOME` if one of them is set, else in `~/.cache`.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    with contextlib.suppress(RuntimeError, OSError):  # a user without a home
        yield (Path(chosen) if chosen else Path.home() / ".cache").absolute() / "ninetka"
    with contextlib.suppress(OSError):  # there is no writable temporary folder
        user = str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
        shared = Path(tempfile.gettempdir()).absolute() / f"ninetka-{user}"
        shared.mkdir(mode=0o700, exist_ok=True)
        if not hasattr(os, "getuid") or shared.lstat().st_uid == os.getuid():  # never run code that other users wrote
            yield shared


def _drop_unused(home: Path) -> None:
    for folder in home.glob("*-????????????????"):
        try:
            if folder.stat().st_mtime < time.time() - _WEEK:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # another process has deleted it
            continue


# Dependencies of a function

Stamp = tuple[int, int] | None
"""Modification time and size of a file, None if there is no file."""


class _Root(NamedTuple):
    """The sources of a package or a single file; read only once per process, as modules are imported only once."""

    hash: bytes
    names: frozenset[str]
    """The top-level names that its sources import, inside functions too."""
    files: dict[Path, Stamp]


class _Reach(NamedTuple):
    """All sources that can be compiled into a function."""

    hash: str
    roots: frozenset[Path]
    """The packages and files that are read completely."""


def _top_of(source: Path) -> Path:
    """Return the folder of the outermost package of a source file, or the file itself if it is in no package."""
    top = source
    while (top.parent / "__init__.py").exists() and top.parent != top:
        top = top.parent
    return top


@functools.cache
def _reach(top: Path) -> _Reach:
    """Return `top`, `ninetka_env`, and the packages and files that they import, directly or indirectly.

    An installed package of another project is not read: the hash contains only the stamp of one of its files, because
    the package changes as a whole. Its imports are not followed.
    """
    read: dict[Path, _Root] = {}
    installed: dict[Path, Stamp] = {}
    waiting = [top, _top_of(Path(__file__).absolute())]
    while waiting:
        root = waiting.pop()
        if root in read or root in installed:
            continue
        if root != top and not root.name.startswith(_OWN_PREFIX) and _is_installed(root.parent):
            inside = root / "__init__.py"
            installed[root] = _stamp(inside if inside.exists() else root)
            continue
        read[root] = _read(root)
        for name in read[root].names:
            waiting += _find(name, root.parent)
    parts: list[Any] = [numba.__version__, numba.config.BOUNDSCHECK or 0]
    parts += sorted((root.name, found.hash) for root, found in read.items())
    parts += sorted(repr((root.name, stamp)) for root, stamp in installed.items())
    return _Reach(hashlib.sha256(repr(parts).encode()).hexdigest(), frozenset(read))


@functools.cache
def _read(root: Path) -> _Root:
    """Read all sources of a package or of a single file."""
    digest, names, files = hashlib.sha256(), set[str](), {}
    for source in _sources(root):
        files[source] = _stamp(source)
        try:
            content = source.read_bytes()
        except OSError:  # an editor's dangling link
            continue
        digest.update(repr((source.relative_to(root.parent).as_posix(), len(content))).encode() + content)
        names |= _imported_names(content.decode(errors="replace"))
    return _Root(digest.digest(), frozenset(names), files)


def _sources(root: Path) -> list[Path]:
    """Return all source files of a package, following links, or a single file."""
    if not root.is_dir():
        return [root]
    found, seen = [], set()
    for folder, inner, names in os.walk(root, followlinks=True):
        real = os.path.realpath(folder)
        inner[:] = [name for name in inner if not name.startswith(("__pycache__", ".")) and real not in seen]
        seen.add(real)
        found += [Path(folder, name) for name in names if name.endswith(".py")]
    return sorted(found)


def _imported_names(text: str) -> set[str]:
    names: set[str] = set()
    lines = (line for line in text.replace("\\\n", " ").splitlines() if "import" in line)
    for one, several, called in _IMPORT.findall("\n".join(lines)):
        names |= {one, called, *_IN_LIST.findall(several)}
    return {name for name in names if name.isidentifier()}


def _find(name: str, folder: Path) -> list[Path]:
    """Return the packages and files that `import name` can load in a package or file that lies in `folder`."""
    neighbours = (folder / name, folder / f"{name}.py")
    found = [path for path in neighbours if (path if path.suffix else path / "__init__.py").exists()]
    return found + _on_path(name)


@functools.cache
def _on_path(name: str) -> list[Path]:
    """Return the sources that Python finds for a top-level name; a package can have several folders."""
    if name in sys.stdlib_module_names:
        return []
    try:
        found = importlib.util.find_spec(name)
    except Exception:  # import finders of other packages can raise anything
        return []
    if found is None:
        return []
    if found.submodule_search_locations is not None:
        return [Path(place).absolute() for place in found.submodule_search_locations]
    return [Path(found.origin).absolute()] if found.origin and found.origin.endswith(".py") else []


@functools.cache
def _is_installed(folder: Path) -> bool:
    """Return whether packages are installed in a folder."""
    known = {Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")}
    return folder in known or folder.name in ("site-packages", "dist-packages") or any(folder.glob("*.dist-info"))


def _stamp(path: Path) -> Stamp:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _is_edited(root: Path) -> bool:
    return any(_stamp(path) != stamp for path, stamp in _read(root).files.items())


def _are_doubtful(roots: set[Path]) -> bool:
    """Return whether sources have changed or are missing, as for a game that was defined interactively."""
    return bool(_EDITED & roots) or not all(root.exists() for root in roots)


def _roots(signature: Any, top: Path) -> set[Path]:
    """Return the packages and files that a function of `top` depends on when it is called with these arguments."""
    return {root for each in {top} | _packages_of_types(signature, top) for root in _reach(each).roots}


def _packages_of_types(signature: Any, top: Path) -> set[Path]:
    """Return the packages and files that code for these arguments can contain although `top` does not import them.

    They are declared by `found_by_type`, or they have cached functions and import a declared package or file.
    """
    text = repr(signature) if _OWNERS else ""
    owners = {owner for name, tops in _OWNERS.items() if name in text for owner in tops} - _reach(top).roots
    return owners | {other for other in _TOPS if owners & _reach(other).roots}
