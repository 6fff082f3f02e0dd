"""Scratch arrays of bytes for compiled functions. They are on the stack, so that no memory is allocated.

`scoring.py` and `observation.py` use these arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import lower_builtin

Bytes = npt.NDArray[np.uint8]

LENGTH = 448
"""The length in bytes: the 361 points of the largest board, rounded up to a multiple of 32, and 32 more at each end."""
_BYTES = types.Array(types.uint8, 1, "C")


def scratch() -> Bytes:
    """Return an uninitialised array, (448,) uint8, that is valid until the calling function returns."""
    return np.zeros(LENGTH, np.uint8)


@infer_global(scratch)
class _Template(ConcreteTemplate):
    cases = [signature(_BYTES)]  # noqa: RUF012 (numba requires a class attribute)


@lower_builtin(scratch)
def _lower(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
    data = cgutils.alloca_once(builder, ir.ArrayType(ir.IntType(8), LENGTH))
    view = context.make_array(_BYTES)(context, builder)
    context.populate_array(
        view,
        data=builder.bitcast(data, view.data.type),
        shape=[context.get_constant(types.intp, LENGTH)],
        strides=[context.get_constant(types.intp, 1)],
        itemsize=context.get_constant(types.intp, 1),
        meminfo=None,
    )
    return view._getvalue()
