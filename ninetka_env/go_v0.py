"""Version 0 of the environment of Go.

Its version changes with any change of rules, actions, masks, planes or rewards.

History:
    v0: first version.
"""

from __future__ import annotations

from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from ninetka_env.api.aec import GameAEC, Observation, wrapped
from ninetka_env.api.vector import GameVectorEnv
from ninetka_env.games.go.definition import GO
from ninetka_env.games.go.game import Game

__all__ = ["Game", "env", "raw_env", "vector_env"]


def env(
    komi: float = 7.0,
    ko: str = "simple",
    scoring: str = "area",
    handicap: int = 0,
    max_plies: int | None = None,
    size: int = 9,
    allow_resign: bool = False,
    planes: str = "standard",
    reward: str = "win",
    render_mode: str | None = None,
) -> OrderEnforcingWrapper[str, Observation, int]:
    """Make the environment with PettingZoo's usual wrappers; the options are those of `raw_env`.

    An illegal action ends the game with reward -1 for whoever played it, an action out of bounds fails an assertion,
    and methods called in the wrong order are reported.
    """
    return wrapped(raw_env(komi, ko, scoring, handicap, max_plies, size, allow_resign, planes, reward, render_mode))


def raw_env(
    komi: float = 7.0,
    ko: str = "simple",
    scoring: str = "area",
    handicap: int = 0,
    max_plies: int | None = None,
    size: int = 9,
    allow_resign: bool = False,
    planes: str = "standard",
    reward: str = "win",
    render_mode: str | None = None,
) -> GameAEC:
    """Make the bare PettingZoo environment; see `ninetka_env.api.aec.GameAEC`.

    Args:
        komi: points added to White's score, a multiple of 0.5.
        ko: `"simple"`, `"positional"` or `"situational"` superko.
        scoring: `"area"`, `"document"` (stones, territory and captured stones) or `"territory"`.
        handicap: black stones at the start, 0 or 2 to 5, on 9 x 9 only; White then moves first.
        max_plies: the game ends after so many plies, 1..1024; None for twice the number of points.
        size: of the board, 2..19.
        allow_resign: whether resigning is an action, the one after the pass.
        planes: `"standard"` or `"alphazero"`; see `ninetka_env.games.go.observation`.
        reward: `"win"`: +1 and -1, 0 each if drawn; `"score"`: the difference of the scores over the points, in -1..1.
        render_mode: None, `"human"`, `"rgb_array"` or `"ansi"`.

    Raises:
        ValueError: naming the option that is wrong and the values it may have.
    """
    variant = GO.variant(
        komi=komi,
        ko=ko,
        scoring=scoring,
        handicap=handicap,
        max_plies=max_plies,
        size=size,
        allow_resign=allow_resign,
        planes=planes,
    )
    return GameAEC(variant, reward, render_mode)


def vector_env(
    num_envs: int,
    komi: float = 7.0,
    ko: str = "simple",
    scoring: str = "area",
    handicap: int = 0,
    max_plies: int | None = None,
    size: int = 9,
    allow_resign: bool = False,
    planes: str = "standard",
    reward: str = "win",
    num_threads: int | None = None,
) -> GameVectorEnv:
    """Make N games that are stepped at once, for self-play; see `ninetka_env.api.vector.GameVectorEnv`.

    Args:
        num_envs: N, the number of games, at least 1.
        komi: points added to White's score, a multiple of 0.5.
        ko: `"simple"`, `"positional"` or `"situational"` superko.
        scoring: `"area"`, `"document"` (stones, territory and captured stones) or `"territory"`.
        handicap: black stones at the start, 0 or 2 to 5, on 9 x 9 only; White then moves first.
        max_plies: the game ends after so many plies, 1..1024; None for twice the number of points.
        size: of the board, 2..19.
        allow_resign: whether resigning is an action, the one after the pass.
        planes: `"standard"` or `"alphazero"`; see `ninetka_env.games.go.observation`.
        reward: `"win"`: +1 and -1, 0 each if drawn; `"score"`: the difference of the scores over the points, in -1..1.
        num_threads: at most this many threads step the games; None for one per core.

    Raises:
        ValueError: naming the option that is wrong and the values it may have.
    """
    variant = GO.variant(
        komi=komi,
        ko=ko,
        scoring=scoring,
        handicap=handicap,
        max_plies=max_plies,
        size=size,
        allow_resign=allow_resign,
        planes=planes,
    )
    return GameVectorEnv(num_envs, variant, reward, num_threads)
