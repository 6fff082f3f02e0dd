"""Version 0 of the environment of 9tka.

Its version changes with any change of rules, actions, masks, planes or rewards.

History:
    v0: first version.
"""

from __future__ import annotations

from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from ninetka_env.api.aec import GameAEC, Observation, wrapped
from ninetka_env.api.vector import GameVectorEnv
from ninetka_env.games.ninetka.definition import NINETKA
from ninetka_env.games.ninetka.game import Game

__all__ = ["Game", "env", "raw_env", "vector_env"]


def env(
    num_players: int = 2,
    neutral_placement: str = "players",
    turn_order: str = "restart",
    auto_pass: bool = True,
    reward: str = "win",
    render_mode: str | None = None,
) -> OrderEnforcingWrapper[str, Observation, int]:
    """Make the environment with PettingZoo's usual wrappers; the options are those of `raw_env`.

    An illegal action ends the game with reward -1 for whoever played it, an action outside 0..121 fails an assertion,
    and methods called in the wrong order are reported.
    """
    return wrapped(raw_env(num_players, neutral_placement, turn_order, auto_pass, reward, render_mode))


def raw_env(
    num_players: int = 2,
    neutral_placement: str = "players",
    turn_order: str = "restart",
    auto_pass: bool = True,
    reward: str = "win",
    render_mode: str | None = None,
) -> GameAEC:
    """Make the bare PettingZoo environment; see `ninetka_env.api.aec.GameAEC`.

    Args:
        num_players: 2, 3 or 4.
        neutral_placement: `"players"` or `"random"` (drawn at reset; the game then starts with placement).
        turn_order: `"restart"` (seat 0 opens each phase) or `"continue"`.
        auto_pass: forced passes are played by the environment; if off, action 121 passes.
        reward: `"win"`: +1 for the winner, -1 / (n - 1) for the others; `"score"`: (own score - mean) / 9.
        render_mode: None, `"human"`, `"rgb_array"` or `"ansi"`.

    Raises:
        ValueError: naming the option that is wrong and the values it may have.
    """
    options = {"num_players": num_players, "neutral_placement": neutral_placement}
    variant = NINETKA.variant(**options, turn_order=turn_order, auto_pass=auto_pass)
    return GameAEC(variant, reward, render_mode)


def vector_env(
    num_envs: int,
    num_players: int = 2,
    neutral_placement: str = "players",
    turn_order: str = "restart",
    auto_pass: bool = True,
    reward: str = "win",
    num_threads: int | None = None,
) -> GameVectorEnv:
    """Make N games that are stepped at once, for self-play; see `ninetka_env.api.vector.GameVectorEnv`.

    Args:
        num_envs: N, the number of games, at least 1.
        num_players: as in `raw_env`, like the next four.
        neutral_placement: `"players"` or `"random"`.
        turn_order: `"restart"` or `"continue"`.
        auto_pass: forced passes are played by the environment.
        reward: `"win"` or `"score"`.
        num_threads: at most this many threads step the games; None for one per core.

    Raises:
        ValueError: naming the option that is wrong and the values it may have.
    """
    options = {"num_players": num_players, "neutral_placement": neutral_placement}
    variant = NINETKA.variant(**options, turn_order=turn_order, auto_pass=auto_pass)
    return GameVectorEnv(num_envs, variant, reward, num_threads)
