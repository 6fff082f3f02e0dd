"""Tables that compiled code indexes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def frozen(values: Any, dtype: Any) -> npt.NDArray[Any]:
    """Make a read-only table."""
    table = np.ascontiguousarray(values, dtype=dtype)
    table.setflags(write=False)
    return table
