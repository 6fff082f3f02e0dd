"""Seats as one of them sees them: relative seat r of a viewer is seat `(viewer + r) % n`, so it is relative seat 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit


@jit(inline=True)
def relative_seat(seat: int, viewer: int, num_players: int) -> int:
    """Return a seat as the viewer counts; for compiled code."""
    relative = int(seat) - int(viewer)
    return relative if relative >= 0 else relative + num_players


def relative_seats(
    seats: npt.NDArray[Any], viewers: npt.NDArray[Any], num_players: npt.NDArray[Any]
) -> npt.NDArray[np.int64]:
    """Return seats as their viewers count, and the reverse with `-viewers`; the arrays broadcast."""
    relative = seats.astype(np.int64) - viewers.astype(np.int64)
    return np.asarray(relative % num_players.astype(np.int64))
