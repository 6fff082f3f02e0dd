"""Observations and action masks of given states, for agents with a network; the same as in the environments.

Start reading at `observe`. `observation.py` of each game writes the planes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.api.positions import check_states
from ninetka_env.core.jit import jit
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import StateArray, write_legal_mask, write_observation

Int8s = npt.NDArray[np.int8]


class Observations(NamedTuple):
    """Observations and masks of N positions, as seen by the seats to move."""

    observations: Int8s
    """(N, C, H, W) int8, in the format of `vector_env(...).observations`."""
    action_mask: Int8s
    """(N, num_actions) int8: 1 for legal actions; all 0 where a game is over."""


def observe(games: StateArray, variant: Variant) -> Observations:
    """Return observations and masks of the seats to move, in new arrays.

    An agent can call this in `act` to get the input of its network.

    Args:
        games: (N,) states, such as the argument of `Agent.act`.
        variant: the game with its options, from `ninetka_env.core.registry.load_variant` or `vector_env(...).variant`.
            It determines the shape of the observations.

    Raises:
        ValueError: if `games` is not an (N,) state array, or the states belong to another variant; the message names
            the first option that differs.
    """
    games = check_states(games, variant)
    observations = np.empty((len(games), *variant.sizes.planes), np.int8)
    action_mask = np.zeros((len(games), variant.num_actions), np.int8)
    _observe_all(games, observations.reshape(len(games), int(np.prod(variant.sizes.planes))), action_mask)
    return Observations(observations, action_mask)


@jit
def _observe_all(games: StateArray, observations: Int8s, action_mask: Int8s) -> None:
    for index in range(len(games)):
        write_observation(games[index], games[index].to_move, observations[index])
        write_legal_mask(games[index], action_mask[index])
