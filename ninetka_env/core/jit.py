"""Compilation by numba: `jit`, read-only tables, bit operations; `threads` and the solver's `lanes` compile otherwise.

Two rules follow from numba's ways: compiled functions never call themselves (recursive ones crash when loaded from the
cache), and module globals are constants (they freeze when compiled). What is compiled is kept on disk; see
`ninetka_env.core.cache`.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic, overload

from ninetka_env.core.cache import keep_on_disk

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
"""What numba is told for all compiled code. Nobody calls it by C's convention: that entry would only take time."""


def _mangling_args(record: types.Record) -> tuple[str, tuple[str]]:
    """Name a type of records in symbols by its fields.

    numba counts these types in each process. Code for two of them that two processes compiled and a third one loads
    could then have the same symbols, and be linked to each other.
    """
    return "Record", (hashlib.sha256(record.name.encode()).hexdigest()[:16],)


types.Record.mangling_args = property(_mangling_args)


def jit(function: F | None = None, *, inline: bool = False, counted: bool = True, entry: bool = True) -> Any:
    """Compile a function with numba: no Python objects, no GIL, cached on disk by a hash of the sources.

    `inline=True` merges a function into its callers before they are compiled: faster where it is called with views.
    `counted=False` counts no references to arrays: faster in short functions with loops, where numba does not see that
    what it counts up it counts down again, by atomic instructions. Such a function, and what is merged into it, must
    make no arrays; its callers hold those that it is given.
    `entry=False` makes no entry for Python, which takes longest to compile where a function is short: only compiled
    code can call it then.
    """
    if function is None:
        return functools.partial(jit, inline=inline, counted=counted, entry=entry)
    if numba.config.DISABLE_JIT:
        return function
    merging = "always" if inline else "never"
    compiled = numba.njit(**OPTIONS, inline=merging, _nrt=counted, no_cpython_wrapper=not entry)(function)
    if not entry:
        compiled.__class__ = _Inner
    keep_on_disk(compiled)
    return compiled


def inner(function: F) -> Any:
    """Compile a function that makes no arrays and that only compiled code calls: `jit(counted=False, entry=False)`."""
    return jit(function, counted=False, entry=False)


class _Inner(CPUDispatcher):
    """A compiled function without an entry for Python: numba would jump to where nothing is."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        raise TypeError(f"{self.py_func.__name__} has no entry for Python: only compiled code can call it")


def frozen(values: Any, dtype: Any) -> npt.NDArray[Any]:
    """Make a read-only table."""
    table = np.ascontiguousarray(values, dtype=dtype)
    table.setflags(write=False)
    return table


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
