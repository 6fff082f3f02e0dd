"""Version 0 of the environment of 9tka.

Its version changes with any change of rules, actions, masks, planes or rewards.

History:
    v0: first version.
"""

from __future__ import annotations

from typing import Unpack

from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from ninetka_env.api.aec import GameAEC, Observation, wrapped
from ninetka_env.api.vector import GameVectorEnv
from ninetka_env.core.options import takes_options
from ninetka_env.games.ninetka.definition import NINETKA, OPTIONS, NinetkaOptions
from ninetka_env.games.ninetka.game import Game

__all__ = ["Game", "env", "raw_env", "vector_env"]


@takes_options(OPTIONS)
def env(
    num_players: int = 2, *, reward: str = "win", render_mode: str | None = None, **options: Unpack[NinetkaOptions]
) -> OrderEnforcingWrapper[str, Observation, int]:
    """Make the environment with PettingZoo's usual wrappers; the parameters are those of `raw_env`.

    An illegal action ends the game with reward -1 for whoever played it, an action outside 0..121 fails an assertion,
    and methods called in the wrong order are reported.
    """
    return wrapped(raw_env(num_players, reward=reward, render_mode=render_mode, **options))


@takes_options(OPTIONS)
def raw_env(
    num_players: int = 2, *, reward: str = "win", render_mode: str | None = None, **options: Unpack[NinetkaOptions]
) -> GameAEC:
    """Make the bare PettingZoo environment; see `ninetka_env.api.aec.GameAEC`.

    Args:
        num_players: 2, 3 or 4.
        reward: `"win"`: +1 for the winner, -1 / (n - 1) for the others; `"score"`: (own score - mean) / 9.
        render_mode: None, `"human"`, `"rgb_array"` or `"ansi"`.
        **options: see `ninetka_env.games.ninetka.definition.NinetkaOptions`.

    Raises:
        ValueError: naming the option that is wrong and the values it may have.
    """
    return GameAEC(NINETKA.variant(num_players=num_players, **options), reward, render_mode)


@takes_options(OPTIONS)
def vector_env(
    num_envs: int,
    num_players: int = 2,
    *,
    reward: str = "win",
    num_threads: int | None = None,
    **options: Unpack[NinetkaOptions],
) -> GameVectorEnv:
    """Make N games that are stepped at once, for self-play; see `ninetka_env.api.vector.GameVectorEnv`.

    Args:
        num_envs: N, the number of games, at least 1.
        num_players: 2, 3 or 4.
        reward: `"win"`: +1 for the winner, -1 / (n - 1) for the others; `"score"`: (own score - mean) / 9.
        num_threads: at most this many threads step the games; None for one per core.
        **options: see `ninetka_env.games.ninetka.definition.NinetkaOptions`.

    Raises:
        ValueError: naming the option that is wrong and the values it may have.
    """
    return GameVectorEnv(num_envs, NINETKA.variant(num_players=num_players, **options), reward, num_threads)
