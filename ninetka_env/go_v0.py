"""Environments of Go, version 0: PettingZoo (`env`, `raw_env`) and batches for self-play (`vector_env`).

The classes are in `ninetka_env.api.aec` and `ninetka_env.api.vector`, the options in `ninetka_env.games.go.definition`,
the rules in `ninetka_env.games.go.rules`.

Any change of rules, actions, masks, observation planes or rewards requires a new version.

History:
    v0: first version.
"""

from __future__ import annotations

from typing import Unpack

from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from ninetka_env.api.aec import GameAEC, Observation, wrapped
from ninetka_env.api.vector import GameVectorEnv
from ninetka_env.core.options import takes_options
from ninetka_env.games.go.definition import GO, OPTIONS, GoOptions
from ninetka_env.games.go.game import Game

__all__ = ["Game", "env", "raw_env", "vector_env"]


@takes_options(OPTIONS)
def env(
    *, reward: str = "win", render_mode: str | None = None, **options: Unpack[GoOptions]
) -> OrderEnforcingWrapper[str, Observation, int]:
    """Make the PettingZoo environment with standard wrappers; the parameters are the same as in `raw_env`.

    An illegal action ends the game with reward -1 for the agent that played it. An action outside the action space
    raises `AssertionError`. Methods that are called in the wrong order raise an error.
    """
    return wrapped(raw_env(reward=reward, render_mode=render_mode, **options))


@takes_options(OPTIONS)
def raw_env(*, reward: str = "win", render_mode: str | None = None, **options: Unpack[GoOptions]) -> GameAEC:
    """Make the PettingZoo environment without wrappers; see `ninetka_env.api.aec.GameAEC`.

    Args:
        reward: `"win"`: +1 and -1, or 0 for both if drawn; `"score"`: (own score - other score) / number of points,
            limited to -1..1.
        render_mode: None, `"human"`, `"rgb_array"` or `"ansi"`.
        **options: see `ninetka_env.games.go.definition.GoOptions`.

    Raises:
        ValueError: if an option is wrong; the message gives its name and the allowed values.
    """
    return GameAEC(GO.variant(**options), reward, render_mode)


@takes_options(OPTIONS)
def vector_env(
    num_envs: int,
    *,
    reward: str = "win",
    num_threads: int | None = None,
    copy: bool = False,
    **options: Unpack[GoOptions],
) -> GameVectorEnv:
    """Make an environment of N games for self-play; see `ninetka_env.api.vector.GameVectorEnv`.

    Args:
        num_envs: N, the number of games, at least 1.
        reward: `"win"`: +1 and -1, or 0 for both if drawn; `"score"`: (own score - other score) / number of points,
            limited to -1..1.
        num_threads: maximum number of threads that step the games; None for one per core.
        copy: whether `reset` and `step` give new arrays, instead of arrays that the next step overwrites.
        **options: see `ninetka_env.games.go.definition.GoOptions`.

    Raises:
        ValueError: if an option is wrong; the message gives its name and the allowed values.
    """
    return GameVectorEnv(num_envs, GO.variant(**options), reward, num_threads, copy)
