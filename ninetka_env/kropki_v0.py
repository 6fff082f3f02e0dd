"""Version 0 of the environment of Kropki.

Its version changes with any change of rules, actions, masks, planes or rewards.

History:
    v0: first version.
"""

from __future__ import annotations

from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from ninetka_env.api.aec import GameAEC, Observation, wrapped
from ninetka_env.api.vector import GameVectorEnv
from ninetka_env.games.kropki.definition import KROPKI
from ninetka_env.games.kropki.game import Game

__all__ = ["Game", "env", "raw_env", "vector_env"]


def env(
    width: int = 10,
    height: int = 10,
    territory: str = "declared",
    start: str = "empty",
    reward: str = "win",
    render_mode: str | None = None,
) -> OrderEnforcingWrapper[str, Observation, int]:
    """Make the environment with PettingZoo's usual wrappers; the options are those of `raw_env`.

    An illegal action ends the game with reward -1 for whoever played it, an action out of bounds fails an assertion,
    and methods called in the wrong order are reported.
    """
    return wrapped(raw_env(width, height, territory, start, reward, render_mode))


def raw_env(
    width: int = 10,
    height: int = 10,
    territory: str = "declared",
    start: str = "empty",
    reward: str = "win",
    render_mode: str | None = None,
) -> GameAEC:
    """Make the bare PettingZoo environment; see `ninetka_env.api.aec.GameAEC`.

    Args:
        width: columns of the board, 3..39.
        height: rows of the board, 3..32.
        territory: `"declared"` (players draw their regions after placing a point) or `"immediate"`.
        start: `"empty"`, or `"cross"` of four points in the middle.
        reward: `"win"`: +1 and -1, 0 each if drawn; `"score"`: the difference of the captured points over the nodes.
        render_mode: None, `"human"`, `"rgb_array"` or `"ansi"`.

    Raises:
        ValueError: naming the option that is wrong and the values it may have.
    """
    variant = KROPKI.variant(width=width, height=height, territory=territory, start=start)
    return GameAEC(variant, reward, render_mode)


def vector_env(
    num_envs: int,
    width: int = 10,
    height: int = 10,
    territory: str = "declared",
    start: str = "empty",
    reward: str = "win",
    num_threads: int | None = None,
) -> GameVectorEnv:
    """Make N games that are stepped at once, for self-play; see `ninetka_env.api.vector.GameVectorEnv`.

    Args:
        num_envs: N, the number of games, at least 1.
        width: columns of the board, 3..39.
        height: rows of the board, 3..32.
        territory: `"declared"` (players draw their regions after placing a point) or `"immediate"`.
        start: `"empty"`, or `"cross"` of four points in the middle.
        reward: `"win"`: +1 and -1, 0 each if drawn; `"score"`: the difference of the captured points over the nodes.
        num_threads: at most this many threads step the games; None for one per core.

    Raises:
        ValueError: naming the option that is wrong and the values it may have.
    """
    variant = KROPKI.variant(width=width, height=height, territory=territory, start=start)
    return GameVectorEnv(num_envs, variant, reward, num_threads)
