"""Where the project touches numba, beside `_lanes` (four numbers at once): the `jit` decorator and some bit operations.

numba's disk cache is keyed by the file of the cached function alone, so a change in a helper of another file would
go unnoticed and stale machine code would be served. `jit` therefore keeps its cache in a folder named after a hash
of every source file that the function's package can reach. Two more rules follow from numba's ways: compiled functions
never call themselves (recursive ones crash when loaded from the cache), and module globals are constants (they freeze
when compiled).
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

F = TypeVar("F", bound=Callable[..., Any])

_HERE = Path(__file__).parent
_WEEK = 7 * 24 * 3600.0


def jit(function: F | None = None, *, inline: bool = False, counted: bool = True) -> Any:
    """Compile a function with numba: no Python objects, no GIL, cached on disk by a hash of the sources.

    `inline=True` merges a function into its callers before they are compiled: faster where it is called with views.
    `counted=False` counts no references to arrays: faster in short functions with loops, where numba does not see that
    what it counts up it counts down again, by atomic instructions. Such a function, and what is merged into it, must
    make no arrays; its callers hold those that it is given.
    """
    if function is None:
        return functools.partial(jit, inline=inline, counted=counted)
    if numba.config.DISABLE_JIT:
        return function
    merging = "always" if inline else "never"
    compiled = numba.njit(nogil=True, error_model="numpy", inline=merging, _nrt=counted)(function)
    _keep_on_disk(compiled, Path(function.__code__.co_filename).parent)
    return compiled


def _keep_on_disk(compiled: Any, package: Path) -> None:
    """Give a function a disk cache in the folder of its sources; without a writable folder it does without."""
    before = numba.config.CACHE_DIR
    folder = _cache_folder(package)
    numba.config.CACHE_DIR = str(folder)
    try:
        compiled.enable_caching()
    except RuntimeError:  # numba found no place to write to
        return
    finally:
        numba.config.CACHE_DIR = before  # other people's functions keep their own cache
    for name in ("load_overload", "save_overload"):
        setattr(compiled._cache, name, _one_at_a_time(getattr(compiled._cache, name), folder))


def _one_at_a_time(method: Callable[..., Any], folder: Path) -> Callable[..., Any]:
    """Let one process at a time into numba's cache: two that save at once can mix up its files."""

    def call(*arguments: Any) -> Any:
        try:
            lock = (folder / "lock").open("w")  # closed below, which also unlocks it
        except OSError:
            return method(*arguments)
        with lock:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            return method(*arguments)

    return call


@functools.cache
def _cache_folder(package: Path) -> Path:
    """Return the cache folder for the functions of a package; drop folders unused for a week."""
    digest = hashlib.sha256(numba.__version__.encode() + bytes([numba.config.BOUNDSCHECK or 0]))
    for folder in sorted(_reach(package, {_HERE})):
        for source in sorted(folder.glob("*.py")):
            digest.update(source.name.encode() + source.read_bytes())
    name = f"{package.name}-{digest.hexdigest()[:16]}"
    for home in (_home(), Path(tempfile.gettempdir()) / "ninetka"):
        try:
            if not (home / name).exists():
                _drop_unused(home)
            (home / name).mkdir(parents=True, exist_ok=True)
            os.utime(home / name)
        except OSError:  # read-only
            continue
        return home / name
    return package / "__pycache__"


def _home() -> Path:
    """Return the folder of all caches: where numba is told to keep its own, else the user's."""
    for variable in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        if os.environ.get(variable):
            return Path(os.environ[variable]) / "ninetka"
    try:
        return Path.home() / ".cache" / "ninetka"
    except RuntimeError:  # a user without a home
        return Path(tempfile.gettempdir()) / "ninetka"


def _reach(package: Path, known: set[Path]) -> set[Path]:
    """Return `known`, the package and the packages beside it that its modules import, and so on."""
    if package in known:
        return known
    known = known | {package}
    text = "\n".join(source.read_text() for source in package.glob("*.py"))
    for name in set(re.findall(r"^(?:from|import) (\w+)", text, re.MULTILINE)):
        if (package.parent / name / "__init__.py").exists():
            known = _reach(package.parent / name, known)
    return known


def _drop_unused(home: Path) -> None:
    for folder in home.glob("*-????????????????"):
        try:
            if folder.stat().st_mtime < time.time() - _WEEK:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # another process was faster
            continue


def popcount(bits: int) -> int:
    """Count the ones among the 64 bits of `bits`."""
    return int(bits).bit_count()


def lowest(bits: int) -> int:
    """Return the index of the lowest one in `bits`, which must not be 0."""
    return (int(bits) & -int(bits)).bit_length() - 1


def prefetch(array: Any, row: np.int64) -> None:
    """Have the processor fetch the start of a row, which is needed soon; it does not wait for it."""


def _llvm_bits(name: str, zero_flag: bool) -> Callable[..., Any]:
    """Make the numba intrinsic that calls LLVM's `name` on 64 bits."""

    @intrinsic
    def call(typing_context: Any, bits: Any) -> Any:
        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            word = ir.IntType(64)
            kinds = [word, ir.IntType(1)] if zero_flag else [word]
            callee = builder.module.declare_intrinsic(name, (word,), ir.FunctionType(word, kinds))
            flags = [ir.Constant(ir.IntType(1), 1)] if zero_flag else []
            return builder.call(callee, [arguments[0], *flags])

        return types.int64(types.int64), lower

    return cast(Callable[..., Any], call)


_ctpop = _llvm_bits("llvm.ctpop", zero_flag=False)
_cttz = _llvm_bits("llvm.cttz", zero_flag=True)


@overload(popcount)
def _popcount(bits: Any) -> Any:
    def call(bits: Any) -> Any:
        return _ctpop(bits)

    return call


@overload(lowest)
def _lowest(bits: Any) -> Any:
    def call(bits: Any) -> Any:
        return _cttz(bits)

    return call


@intrinsic
def _prefetch(typing_context: Any, array: Any, row: Any) -> Any:
    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(array)(context, builder, arguments[0])
        start = cgutils.get_item_pointer(context, builder, array, view, [arguments[1], arguments[1].type(0)])
        kinds = [ir.IntType(8).as_pointer(), *3 * [ir.IntType(32)]]
        callee = builder.module.declare_intrinsic("llvm.prefetch", kinds[:1], ir.FunctionType(ir.VoidType(), kinds))
        reading, most_local, data = (ir.Constant(kinds[1], x) for x in (0, 3, 1))
        builder.call(callee, [builder.bitcast(start, kinds[0]), reading, most_local, data])

    return types.void(array, types.int64), lower


@overload(prefetch)
def _fetch(array: Any, row: Any) -> Any:
    def call(array: Any, row: Any) -> Any:
        _prefetch(array, row)

    return call
