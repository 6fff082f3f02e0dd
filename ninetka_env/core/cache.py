"""Disk cache of compiled code, on numba's plug-in points: code is loaded only if no source that it can reach changed.

Start reading at `keep_on_disk`; `jit.py` calls it for each compiled function.

numba's own disk cache is keyed by the file of the cached function alone, so a change in a helper of another file would
go unnoticed and stale machine code would be loaded. Here a function's code is in a folder named after a hash of every
source that it can reach; see `ninetka_env.core.sources`. The hash does not depend on locations and modification times,
so a copy of the folder is valid on other machines with the same versions.

Errors of the cache cost only time: code that cannot be read is compiled and written again, and code that cannot be
written is not cached.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import pickle
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import binding

try:
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
    from numba.core.runtime import rtsys
    from numba.core.serialize import dumps
except ImportError:  # undocumented in numba; without them, nothing is cached
    CompileResultCacheImpl = FunctionCache = _CacheLocator = object
    dumps = None

from ninetka_env.core.sources import dependencies, is_edited, is_edited_file, top_of

_WEEK = 7 * 24 * 3600.0
_DECLARED = re.compile(r'^(?:declare [^@\n]*@"?([^"(\n]+)"?\(|@"?([^" =\n]+)"? = external)', re.MULTILINE)
"""Functions and variables of other libraries, in the text of LLVM modules."""

_EDITED: set[Path] = set()
"""The packages and files that changed after they were hashed. Their loaded modules may be older or newer, so this
process does not use the cache of functions that reach them."""
_TOPS: set[Path] = set()
"""The loaded packages and files with cached functions."""
_OWNERS: dict[str, set[Path]] = {}
"""Maps numba's name of a state dtype to packages and files. Code for states of this dtype can contain their functions;
see `found_by_type`."""


def keep_on_disk(compiled: Any, form: Any = "", kind: type[SourceCache] | None = None) -> None:
    """Give a compiled function (numba's dispatcher) a disk cache.

    A function without a source file, for example in a notebook, is not cached, because its dependencies are unknown.

    Args:
        compiled: the function.
        form: what else the code depends on, such as options of the compiler; code in each form is kept separately.
        kind: the class of the cache; by default that of functions for the CPU.
    """
    kind = kind or _Cache
    try:
        compiled._cache = kind(compiled.py_func, form)
    except (RuntimeError, OSError):  # there is no source file, or it cannot be read
        return
    except (AttributeError, TypeError):  # another version of numba
        _warn_once(f"its cache does not support {kind.compiler}")


def found_by_type(dtypes: Iterable[np.dtype[Any]], functions: Iterable[Callable[..., Any]]) -> None:
    """Declare that code for states of these dtypes can contain these functions.

    Imports do not show this, because compiled code finds these functions by the dtype of the state.
    """
    tops = {top_of(Path(getattr(each, "py_func", each).__code__.co_filename).absolute()) for each in functions}
    for kind in map(numba.from_dtype, dtypes):
        for name in (str(kind), repr(kind)):
            _OWNERS.setdefault(name, set()).update(tops)


@functools.cache
def _warn_once(reason: str) -> None:
    """Log that compiled code is lost; once per process and reason."""
    logging.getLogger("ninetka").warning(
        "compiled code is not kept, so every process compiles again, which can take a minute: %s", reason
    )


# numba's plug-in points


class Locator(_CacheLocator):
    """Where numba finds the code of a function, and which sources it depends on. numba calls the methods."""

    def __init__(self, function: Any, source: Path, top: Path) -> None:
        """Find the folders for a function of the file `source`; `top` is its package, or the file itself."""
        inside = source.parent.relative_to(top if top.is_dir() else top.parent)
        folders = cache_folders(top)
        self.top = top
        self.writable = None if folders.writable is None else folders.writable / inside
        self.readable = tuple(folder / inside for folder in folders.readable)
        self._line = function.__code__.co_firstlineno
        self._py_file = str(source)  # numba's warnings name it

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Locator | None:
        """Return the locator of a function; None if it has no source file."""
        source = Path(py_file).absolute()
        if not source.is_file():
            return None
        top = top_of(source)
        if is_edited_file(source, top):
            _EDITED.add(top)
        _TOPS.add(top)
        return cls(py_func, source, top)

    def get_cache_path(self) -> str:
        """Return the folder of the code."""
        return str(self.writable or next(iter(self.readable), ""))

    def ensure_cache_path(self) -> None:
        """Do nothing: `_Files.save` creates the folder."""

    def get_source_stamp(self) -> str:
        """Return the hash of all sources that the function can reach."""
        return dependencies(self.top).hash

    def get_disambiguator(self) -> str:
        """Return a text in which functions of the same name and file differ."""
        return str(self._line)


class _Implementation(CompileResultCacheImpl):
    """Converts compiled code for storage and back, together with the names of the symbols that it uses."""

    _locator_classes = [Locator]  # noqa: RUF012  # numba's interface

    def __init__(self, py_func: Any) -> None:
        before = getattr(numba.config, "CACHE_LOCATOR_CLASSES", "")
        numba.config.CACHE_LOCATOR_CLASSES = ""  # a setting for the functions of other packages
        try:
            super().__init__(py_func)
        finally:
            numba.config.CACHE_LOCATOR_CLASSES = before

    def reduce(self, data: Any) -> Any:
        names = {first or second for first, second in _DECLARED.findall(data.library.get_llvm_str())}
        return sorted(name for name in names if not name.startswith("llvm.")), super().reduce(data)

    def rebuild(self, target_context: Any, reduced_data: Any) -> Any:
        """Load code, without numba's complete initialization if its own runtime defines all symbols.

        The initialization takes a quarter of a second if scipy is installed, because it imports scipy; else less.
        """
        symbols, payload = reduced_data
        rtsys.initialize(target_context)
        if any(binding.address_of_symbol(name) is None for name in symbols):
            target_context.refresh()
        return super().rebuild(target_context, payload)


class SourceCache:
    """The cache of one function, keyed by its sources; it never raises because of files on the disk.

    Its subclasses inherit from it first, then from numba's class of caches of functions or of kernels.
    """

    compiler = f"numba {numba.__version__}"

    _impl: Any  # numba's attributes
    _cache_path: str

    def __init__(self, py_func: Any, form: Any) -> None:
        """Create the cache; see `keep_on_disk`."""
        super().__init__(py_func)  # type: ignore[call-arg]
        self._form = form
        self._top: Path = self._impl.locator.top
        self._cache_file = _Files(self._impl.locator, self._impl.filename_base)

    @property
    def cache_path(self) -> str | None:
        """The folder of the code; None if there is none."""
        return self._cache_path or None

    def load_overload(self, sig: Any, *given: Any) -> Any:
        """Return the code for these types of arguments; None if it must be compiled."""
        with contextlib.suppress(Exception):  # a damaged file can raise anything
            if not _are_doubtful(self._roots(sig)):
                return self._load(sig, *given)
        return None

    def _load(self, *given: Any) -> Any:
        return super().load_overload(*given)  # type: ignore[misc]

    def save_overload(self, sig: Any, *given: Any) -> None:
        """Save the code for these types of arguments, unless a source has changed since it was read."""
        roots = self._roots(sig)
        _EDITED.update(filter(is_edited, roots))
        if _are_doubtful(roots):
            return
        try:
            super().save_overload(sig, *given)  # type: ignore[misc]
        except Warning:  # numba's reason why the function cannot be cached, if warnings are errors
            raise
        except Exception as error:  # such as a full disk; the function is compiled anyway
            _warn_once(str(getattr(error, "strerror", None) or error))

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        hashes = sorted(dependencies(package).hash for package in _packages_of_types(sig, self._top))
        return super()._index_key(sig, codegen), tuple(hashes), self._form  # type: ignore[misc]

    def _roots(self, sig: Any) -> set[Path]:
        """Return the packages and files that the function depends on when it is called with these arguments."""
        tops = {self._top} | _packages_of_types(sig, self._top)
        return {root for top in tops for root in dependencies(top).roots}


class _Cache(SourceCache, FunctionCache):
    """The cache of a function for the CPU."""

    _impl_class = _Implementation

    def _load(self, *given: Any) -> Any:
        return self._load_overload(*given)  # without numba's initialization; see `_Implementation.rebuild`


def _are_doubtful(roots: set[Path]) -> bool:
    """Return whether sources have changed or are missing, as for a game that was defined interactively."""
    return bool(_EDITED & roots) or not all(root.exists() for root in roots)


def _packages_of_types(signature: Any, top: Path) -> set[Path]:
    """Return the packages and files that code for these arguments can contain although `top` does not import them.

    They are declared by `found_by_type`, or they have cached functions and import a declared package or file.
    """
    text = repr(signature) if _OWNERS else ""
    owners = {owner for name, tops in _OWNERS.items() if name in text for owner in tops} - dependencies(top).roots
    return owners | {other for other in _TOPS if owners & dependencies(other).roots}


# Files


class _Files:
    """The files with a function's code, one per signature and processor.

    A file begins with a digest that reveals damage, and is replaced atomically. Two processes that write the same file
    write the same code.
    """

    def __init__(self, locator: Locator, base: str) -> None:
        self._locator, self._base = locator, base

    def load(self, key: Any) -> Any:
        """Return the code that was saved with `key`; None if there is none. Damaged files are removed."""
        for folder in self._locator.readable:
            path = folder / self._name(key)
            try:
                found, blob = _unsealed(path.read_bytes())
                if found == key:
                    return pickle.loads(blob)
            except FileNotFoundError:
                continue
            except Exception:  # a damaged file can raise anything
                _remove(path)
        return None

    def save(self, key: Any, data: Any) -> None:
        """Add or replace the code for `key`; `OSError` if it cannot be written."""
        folder = self._locator.writable
        if folder is None:
            raise OSError(
                f"set NUMBA_CACHE_DIR to a folder that can be written; tried {' and '.join(map(str, _homes()))}"
            )
        folder.mkdir(parents=True, exist_ok=True)
        _replace(folder / self._name(key), _sealed(dumps((key, dumps(data)))))

    def flush(self) -> None:
        """Remove all files of this function; numba calls this before it compiles a function again."""
        if self._locator.writable is not None:
            for path in self._locator.writable.glob(f"{self._base}-*.code"):
                _remove(path)

    def _name(self, key: Any) -> str:
        return f"{self._base}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.code"


def _sealed(blob: bytes) -> bytes:
    """Return a digest of numba's version and the blob, followed by the blob."""
    return hashlib.sha256(numba.__version__.encode() + blob).digest() + blob


def _unsealed(content: bytes) -> Any:
    """Return the object in a sealed file; `ValueError` if the file is damaged."""
    if _sealed(content[32:]) != content:
        raise ValueError("the cache is damaged")
    return pickle.loads(content[32:])


def _replace(path: Path, content: bytes) -> None:
    """Replace a file atomically."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix="new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        _remove(Path(name))
        raise


def _remove(path: Path) -> None:
    """Remove a file or a folder, if that is possible."""
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


# Folders


class CacheFolders(NamedTuple):
    """Where the compiled functions of a package, or of a single file, are cached."""

    writable: Path | None
    """The folder for new code; None if no folder can be written."""
    readable: tuple[Path, ...]
    """All folders that can have code; a cache that was built into a container image can be read-only."""


@functools.cache
def cache_folders(top: Path) -> CacheFolders:
    """Return the cache folders of a package or a single file.

    Folders of its earlier versions that were unused for a week are deleted.
    """
    readable = []
    stem = top.stem[:40]
    for home in _homes():
        folder = home / f"{stem}-{dependencies(top).hash[:16]}"
        try:
            if not folder.exists():
                _drop_unused(home, stem)
            folder.mkdir(parents=True, exist_ok=True)
            readable.append(folder)
            os.utime(folder)
            _check_writable(folder)
        except OSError:  # read-only, full, or a file where a folder should be
            continue
        return CacheFolders(folder, tuple(readable))
    return CacheFolders(None, tuple(readable))


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


def _drop_unused(home: Path, stem: str) -> None:
    for folder in home.glob(f"{stem}-????????????????"):
        try:
            if folder.stat().st_mtime < time.time() - _WEEK:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # another process has deleted it
            continue
