"""What was played in a simulated game, for whoever learns from it: one number per turn in an array of fixed length."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit

Trace = npt.NDArray[np.int32]
"""(1 + T,) int32: how many turns are noted, then each of them, as action * 8 + seat."""

SEATS = 8
"""More than any game has."""


@jit(counted=False)
def note(trace: Trace, seat: int, action: int) -> None:
    """Add a turn; those that there is no room for are left out."""
    count = trace[0] + 1
    if count < len(trace):
        trace[count] = action * SEATS + seat
        trace[0] = count


@jit(counted=False)
def noted_seat(trace: Trace, turn: int) -> int:
    """Return who played in turn `turn`, counted from 0."""
    return np.int64(trace[turn + 1] & (SEATS - 1))  # type: ignore[return-value]


@jit(counted=False)
def noted_action(trace: Trace, turn: int) -> int:
    """Return what was played in turn `turn`, counted from 0."""
    return np.int64(trace[turn + 1] // SEATS)  # type: ignore[return-value]
