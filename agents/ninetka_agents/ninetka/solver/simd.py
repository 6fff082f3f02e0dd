"""A SIMD vector type for numba: four int64 on which the processor computes at once.

numba has no vector types. This module adds a type of four int64 with the operators below, which compiles to LLVM's
`<4 x i64>`: one AVX2 register, or the processor's equivalent. A scalar operand is broadcast to all four lanes. All
functions and operators give the same results in plain Python, where the type is a (4,) numpy array. Right shifts and
`count_ones` require numbers that are not negative.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, overload, register_model

Lanes: TypeAlias = npt.NDArray[np.int64]
"""Four int64; in plain Python a (4,) array."""
Rows: TypeAlias = npt.NDArray[np.int64]
"""(rows, words) int64."""

NUM_LANES = 4


def load(rows: Rows, row: int, word: int) -> tuple[Lanes, Lanes, Lanes, Lanes]:
    """Return four vectors, one per word from `word` on; lane i is the word of row `row + i`."""
    first, second, third, fourth = rows[row : row + NUM_LANES, word : word + NUM_LANES].T.copy()
    return first, second, third, fourth


def store(rows: Rows, row: int, word: int, first: Lanes, second: Lanes, third: Lanes, fourth: Lanes) -> None:
    """Write four vectors to four words of four rows; the inverse of `load`."""
    rows[row : row + NUM_LANES, word : word + NUM_LANES] = np.array([first, second, third, fourth]).T


def lane(lanes: Lanes, index: int) -> int:
    """Return the number in one lane."""
    return int(lanes[index])


def gather(table: npt.NDArray[np.int64], index: Lanes) -> Lanes:
    """Return the four entries of a one-dimensional table at `index`."""
    return table[index]


def any_nonzero(lanes: Lanes) -> bool:
    """Return whether any lane is not 0."""
    return bool(lanes.any())


def positive_mask(lanes: Lanes) -> Lanes:
    """Return -1, with all bits set, in lanes above 0, and 0 in the other lanes."""
    return -(lanes > 0).astype(np.int64)


def minimum(one: Lanes, other: Lanes) -> Lanes:
    """Return the element-wise minimum."""
    return np.minimum(one, other)


def count_ones(lanes: Lanes) -> Lanes:
    """Return the number of set bits in each lane."""
    return np.array([int(bits).bit_count() for bits in lanes], np.int64)


# --- the functions in compiled code -----------------------------------------------------------------------------------

_WORD, _INDEX = ir.IntType(64), ir.IntType(32)
_VECTOR = ir.VectorType(_WORD, NUM_LANES)
_NONE = ir.Constant(_VECTOR, ir.Undefined)
Lower: TypeAlias = Callable[..., Any]


class _LanesType(types.Type):
    """The numba type of `Lanes`."""

    def __init__(self) -> None:
        super().__init__("Lanes")


_LANES_TYPE = _LanesType()


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):
    """The data model of `Lanes`: an LLVM vector."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _register(function: Any, result: Any, *arguments: Any) -> Callable[[Lower], Lower]:
    """Return a decorator for the lowering of `function` with the given result and argument types."""

    class Template(ConcreteTemplate):
        cases = [signature(result, *arguments)]  # noqa: RUF012 (numba requires this form)

    infer_global(function)(Template)
    return lambda lower: lower_builtin(function, *arguments)(lower)


def _broadcast(builder: Any, value: Any) -> Any:
    """Return a vector: a scalar is broadcast, a vector is returned unchanged."""
    if value.type == _VECTOR:
        return value
    zeros = ir.Constant(ir.VectorType(_INDEX, NUM_LANES), [0] * NUM_LANES)
    return builder.shuffle_vector(builder.insert_element(_NONE, value, _INDEX(0)), _NONE, zeros)


def _register_operator(function: Any, instruction: str) -> None:
    """Define an operator in compiled code for two `Lanes`, and for `Lanes` and an int64."""

    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return getattr(builder, instruction)(*(_broadcast(builder, value) for value in arguments))

    for kinds in ((_LANES_TYPE, _LANES_TYPE), (_LANES_TYPE, types.int64), (types.int64, _LANES_TYPE)):
        _register(function, _LANES_TYPE, *kinds)(lower)


for _operator, _instruction in (
    (operator.add, "add"), (operator.sub, "sub"), (operator.mul, "mul"), (operator.and_, "and_"),
    (operator.or_, "or_"), (operator.xor, "xor"), (operator.lshift, "shl"), (operator.rshift, "lshr"),
):  # fmt: skip
    _register_operator(_operator, _instruction)


@_register(operator.invert, _LANES_TYPE, _LANES_TYPE)
def _invert(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.not_(arguments[0])


@_register(lane, types.int64, _LANES_TYPE, types.int64)
def _lane(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.extract_element(*arguments)


@_register(any_nonzero, types.boolean, _LANES_TYPE)
def _any_nonzero(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    whole = ir.IntType(64 * NUM_LANES)
    return builder.icmp_unsigned("!=", builder.bitcast(arguments[0], whole), whole(0))


@_register(positive_mask, _LANES_TYPE, _LANES_TYPE)
def _positive_mask(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.sext(builder.icmp_signed(">", arguments[0], _broadcast(builder, _WORD(0))), _VECTOR)


@_register(minimum, _LANES_TYPE, _LANES_TYPE, _LANES_TYPE)
def _minimum(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.select(builder.icmp_signed("<", *arguments), *arguments)


@_register(count_ones, _LANES_TYPE, _LANES_TYPE)
def _count_ones(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kind = ir.FunctionType(_VECTOR, [_VECTOR])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.ctpop.v4i64"), arguments)


@intrinsic
def _pack(typing_context: Any, first: Any, second: Any, third: Any, fourth: Any) -> Any:
    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = _NONE
        for index, value in enumerate(arguments):
            vector = builder.insert_element(vector, value, _INDEX(index))
        return vector

    return _LANES_TYPE(*NUM_LANES * [types.int64]), lower


@overload(gather, inline="always")
def _gather(table: Any, index: Any) -> Any:
    def call(table: Any, index: Any) -> Any:
        return _pack(table[lane(index, 0)], table[lane(index, 1)], table[lane(index, 2)], table[lane(index, 3)])

    return call


def _address(context: Any, builder: Any, kind: Any, array: Any, row: Any, word: Any) -> Any:
    """Return a pointer to four words of a row, starting at `word`."""
    view = context.make_array(kind)(context, builder, array)
    return builder.bitcast(cgutils.get_item_pointer(context, builder, kind, view, [row, word]), _VECTOR.as_pointer())


def _transpose(builder: Any, vectors: Any) -> list[Any]:
    """Transpose four vectors: lane i of vector j becomes lane j of vector i."""

    def mixed(one: Any, other: Any, *chosen: int) -> Any:
        return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(_INDEX, NUM_LANES), list(chosen)))

    even = [mixed(vectors[i], vectors[i + 1], 0, 4, 2, 6) for i in (0, 2)]
    odd = [mixed(vectors[i], vectors[i + 1], 1, 5, 3, 7) for i in (0, 2)]
    low, high = (0, 1, 4, 5), (2, 3, 6, 7)
    return [mixed(*even, *low), mixed(*odd, *low), mixed(*even, *high), mixed(*odd, *high)]


@intrinsic
def _load(typing_context: Any, rows: Any, row: Any, word: Any) -> Any:
    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, row, word = arguments
        vectors = []
        for index in range(NUM_LANES):
            here = builder.add(row, row.type(index))
            vectors.append(builder.load(_address(context, builder, rows, array, here, word), align=8))
        return context.make_tuple(builder, signature.return_type, _transpose(builder, vectors))

    return types.UniTuple(_LANES_TYPE, NUM_LANES)(rows, types.int64, types.int64), lower


@overload(load, inline="always")
def _load_four(rows: Any, row: Any, word: Any) -> Any:
    def call(rows: Any, row: Any, word: Any) -> Any:
        return _load(rows, row, word)

    return call


@intrinsic
def _store(
    typing_context: Any, rows: Any, row: Any, word: Any, first: Any, second: Any, third: Any, fourth: Any
) -> Any:
    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, row, word, *vectors = arguments
        for index, vector in enumerate(_transpose(builder, vectors)):
            here = builder.add(row, row.type(index))
            builder.store(vector, _address(context, builder, rows, array, here, word), align=8)
        return context.get_dummy_value()

    return types.void(rows, types.int64, types.int64, *NUM_LANES * [_LANES_TYPE]), lower


@overload(store, inline="always")
def _store_four(rows: Any, row: Any, word: Any, first: Any, second: Any, third: Any, fourth: Any) -> Any:
    def call(rows: Any, row: Any, word: Any, first: Any, second: Any, third: Any, fourth: Any) -> Any:
        _store(rows, row, word, first, second, third, fourth)

    return call
