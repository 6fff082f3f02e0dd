"""Find writes of users into the arrays of a vector environment, which are a mistake in their loop.

`GameVectorEnv` checks its arrays if the environment variable `NINETKA_CHECK_BUFFERS` is set to a value other than 0.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

VARIABLE = "NINETKA_CHECK_BUFFERS"


def is_enabled() -> bool:
    """Return whether the environment variable asks for checks."""
    return os.environ.get(VARIABLE, "0") not in ("", "0")


class BufferCheck:
    """Copies of arrays, with which their contents are compared later."""

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Watch contiguous arrays with one row per game, by name."""
        self._arrays = dict(arrays)
        self._saved = {name: array.copy() for name, array in arrays.items()}

    def save(self) -> None:
        """Save the contents, with which `check` compares."""
        for name, array in self._arrays.items():
            self._saved[name][:] = array

    def check(self) -> None:
        """Compare the contents with the saved ones; restore them before an error is raised.

        Raises:
            RuntimeError: if an array differs; the message names the array and the first game.
        """
        changed = {name: rows for name, array in self._arrays.items() if len(rows := self._changed_rows(name, array))}
        for name in changed:
            self._arrays[name][:] = self._saved[name]
        for name, rows in changed.items():
            raise RuntimeError(
                f"{name} of game {rows[0]} has changed since the last reset or step: the array belongs to the "
                f"environment; write to a copy, or make the environment with copy=True"
            )

    def _changed_rows(self, name: str, array: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        now, before = (
            np.ascontiguousarray(one).view(np.uint8).reshape(len(one), -1) for one in (array, self._saved[name])
        )
        return np.flatnonzero((now != before).any(axis=1))
