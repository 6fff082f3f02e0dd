"""Observations and action masks of given states, for agents with a network; the same as in the environments.

Start reading at `observe`. `observation.py` of each game writes the planes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.api.positions import check_states
from ninetka_env.core.jit import jit
from ninetka_env.core.options import short_repr
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import StateArray, write_legal_mask, write_observation

Int8s = npt.NDArray[np.int8]


class Observations(NamedTuple):
    """Observations and masks of N positions, each as seen by one seat."""

    observations: Int8s
    """(N, C, H, W) int8, in the format of `vector_env(...).observations`."""
    action_mask: Int8s
    """(N, num_actions) int8: 1 for legal actions; all 0 where a game is over or another seat is to move."""


def observe(games: StateArray, variant: Variant, seats: npt.ArrayLike | None = None) -> Observations:
    """Return observations and masks of the seats to move, or of other seats, in new arrays.

    An agent can call this in `act` to get the input of its network. A learner that needs the values of seats that are
    not to move, such as at the end of a rollout, observes the games as these seats.

    Args:
        games: (N,) states, such as the argument of `Agent.act`.
        variant: the game with its options, from `ninetka_env.core.registry.load_variant` or `vector_env(...).variant`.
            It determines the shape of the observations.
        seats: the seats that see the games: an integer, or (N,) integers, one seat per game; None for the seats to
            move.

    Raises:
        ValueError: if `games` is not an (N,) state array, or the states belong to another variant; the message names
            the first option that differs. If the shape of `seats` is wrong or a seat does not exist.
        TypeError: if the seats are not integers.
    """
    games = check_states(games, variant)
    viewers = games["to_move"] if seats is None else _check_seats(seats, len(games), variant.num_players)
    observations = np.empty((len(games), *variant.sizes.planes), np.int8)
    action_mask = np.zeros((len(games), variant.num_actions), np.int8)
    flat = observations.reshape(len(games), int(np.prod(variant.sizes.planes)))
    _observe_all(games, np.ascontiguousarray(viewers, np.int64), flat, action_mask)
    return Observations(observations, action_mask)


def _check_seats(seats: npt.ArrayLike, count: int, num_players: int) -> npt.NDArray[Any]:
    """Return one seat per game, (count,) integers, each of them below `num_players`."""
    try:
        given = np.asarray(seats)
    except ValueError:  # sequences of different lengths
        given = np.empty(0, object)
    if given.dtype.kind not in "iu":
        raise TypeError(f"seats={short_repr(seats)}: expected an integer or ({count},) integers")
    if given.shape not in ((), (count,)):
        raise ValueError(f"seats: expected an integer or shape ({count},), got shape {given.shape}")
    viewers = np.broadcast_to(given, count)
    unknown = np.flatnonzero((viewers < 0) | (viewers >= num_players))
    if len(unknown):
        raise ValueError(f"seats: game {unknown[0]} has no seat {viewers[unknown[0]]}: expected 0..{num_players - 1}")
    return viewers


@jit
def _observe_all(games: StateArray, viewers: npt.NDArray[np.int64], observations: Int8s, action_mask: Int8s) -> None:
    """Write the observation of `viewers[i]` in game i, and the mask if this seat is to move."""
    for index in range(len(games)):
        write_observation(games[index], viewers[index], observations[index])
        if viewers[index] == games[index].to_move:
            write_legal_mask(games[index], action_mask[index])
