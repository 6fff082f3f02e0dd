"""The argument `options` of `reset`: check its keys, and the mask of the games that restart.

`positions.py` converts the entry `"position"`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_env.core.options import short_repr
from ninetka_env.core.text import did_you_mean


class ResetOptions:
    """Reader of the options of one environment's `reset`; it warns once of each unknown option.

    Unknown options are not refused, because callers that do not know the environment pass such options:
    PettingZoo's `api_test`, for example.
    """

    def __init__(self, *known: str) -> None:
        """Accept the options called `known`."""
        self._known = known
        self._warned: set[Any] = set()

    def read(self, options: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the known options that are given and not None.

        Raises:
            TypeError: if `options` is neither a mapping nor None.
        """
        if options is None:
            return {}
        if not isinstance(options, Mapping):
            raise TypeError(f"options of reset: expected a dict or None, got {short_repr(options)}")
        for name in [one for one in options if one not in self._known and one not in self._warned]:
            self._warned.add(name)
            known = ", ".join(self._known)
            meant = did_you_mean(name, self._known) if isinstance(name, str) else ""
            warnings.warn(
                f"unknown option {short_repr(name)} of reset is ignored: known are {known}{meant}", stacklevel=3
            )
        return {name: options[name] for name in self._known if options.get(name) is not None}


def check_reset_mask(mask: Any, num_envs: int) -> npt.NDArray[np.bool_]:
    """Return a copy of the games to restart, (N,) bool; raise `ValueError` for anything else."""
    try:
        where = np.array(mask)
    except ValueError:  # sequences of different lengths
        where = np.zeros(0)
    if where.dtype != np.bool_ or where.shape != (num_envs,):
        raise ValueError(f"reset_mask={short_repr(mask)}: expected ({num_envs},) bool")
    return where
