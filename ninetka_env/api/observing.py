"""What a network of your own reads of positions at hand: planes and legal actions, as environments show them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.batch import as_records, new_games
from ninetka_env.core.chance import make_streams
from ninetka_env.core.jit import jit
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import Records, write_legal_mask, write_observation

Int8s = npt.NDArray[np.int8]


class Observed(NamedTuple):
    """N positions as their seats to move see them."""

    observations: Int8s
    """(N, C, H, W) int8: as of `vector_env(...).observations`."""
    action_mask: Int8s
    """(N, num_actions) int8: the legal actions, all 0 where a game is over."""


def observe(games: Records, variant: Variant) -> Observed:
    """Return what the seats to move see of positions, in fresh arrays: what an agent of yours asks its network about.

    Args:
        games: (N,) records, such as an agent is given by `act`.
        variant: the game with its options, as of `ninetka_env.core.registry.load_variant` or `vector_env(...).variant`;
            it says how large observations are.

    Raises:
        ValueError: if this is no (N,) array, or the records are not those of games of this variant, naming the first
            option that differs.
    """
    games = _checked(games, variant)
    observations = np.empty((len(games), *variant.sizes.planes), np.int8)
    action_mask = np.zeros((len(games), variant.num_actions), np.int8)
    _observe_all(games, observations.reshape(len(games), int(np.prod(variant.sizes.planes))), action_mask)
    return Observed(observations, action_mask)


def _checked(games: Records, variant: Variant) -> Records:
    """Return records for compiled code; `ValueError` if they differ from the variant in an option that they hold."""
    games = as_records(games)
    if games.dtype != variant.dtype:
        raise ValueError(f"records of another game, or of another size of board: expected those of {variant}")
    expected = new_games(variant, make_streams(0))
    for name in sorted({"num_players", *variant.options}.intersection(games.dtype.names or ())):
        if (games[name] != expected[name]).any():
            raise ValueError(f"records of games of another {name}: expected those of {variant}")
    return games


@jit
def _observe_all(games: Records, observations: Int8s, action_mask: Int8s) -> None:
    for index in range(len(games)):
        write_observation(games[index], games[index].to_move, observations[index])
        write_legal_mask(games[index], action_mask[index])
