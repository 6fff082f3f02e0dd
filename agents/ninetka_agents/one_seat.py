"""Entry points of `gymnasium.make` and `make_vec`: one-seat environments with opponents given as specs.

The environments are in `ninetka_env.api.one_seat`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gymnasium.vector import AutoresetMode

from ninetka_agents.agent import check_agent_game, make_agent
from ninetka_agents.plugins import plugins_of
from ninetka_env.api.one_seat import OneSeatEnv, OneSeatVectorEnv
from ninetka_env.api.one_seat_games import check_opponent
from ninetka_env.core.registry import Variant, load_variant


def one_seat(
    game: str = "ninetka",
    seat: int | str = "random",
    opponents: Any = None,
    reward: str = "win",
    render_mode: str | None = None,
    illegal: str = "raise",
    **options: Any,
) -> OneSeatEnv:
    """Make a Gymnasium environment for a learner in one seat; see `ninetka_env.api.one_seat.OneSeatEnv`.

    Args:
        game: the game's spec, such as `"ninetka"`.
        seat: the learner's seat, or `"random"` to draw a seat for each game.
        opponents: one spec for `make_agent`, or one agent, for all other seats; or a sequence of n - 1 specs or agents
            for the seats after the learner's, in turn order; None for the game's default opponent.
        reward: `"win"` or `"score"`.
        render_mode: None, `"human"`, `"rgb_array"` or `"ansi"`.
        illegal: `"raise"` or `"lose"`: what an illegal action does.
        options: options of the game.

    Raises:
        ValueError: if an option is wrong; names the option and the allowed values.
    """
    variant = _variant(game, options)
    return OneSeatEnv(variant, seat, make_opponents(opponents, variant), reward, render_mode, illegal)


def one_seat_vector(
    num_envs: int,
    game: str = "ninetka",
    seat: int | str = "random",
    opponents: Any = None,
    reward: str = "win",
    render_mode: str | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
    max_episode_steps: int | None = None,
    illegal: str = "raise",
    **options: Any,
) -> OneSeatVectorEnv:
    """Make a vector environment of N one-seat games; see `ninetka_env.api.one_seat.OneSeatVectorEnv`.

    Args:
        num_envs: N, the number of games, at least 1.
        game: the game's spec.
        seat: the learner's seat in every game, or `"random"`.
        opponents: a spec or an agent, or n - 1 specs or agents, as in `one_seat`.
        reward: `"win"` or `"score"`.
        render_mode: None, `"rgb_array"` or `"ansi"`.
        autoreset_mode: when finished games restart. A member of `gymnasium.vector.AutoresetMode` or its name, such as
            `"NEXT_STEP"`, which Gymnasium's vector observation wrappers require.
        max_episode_steps: the number of the learner's steps after which a game is truncated; None for no limit.
        illegal: `"raise"` or `"lose"`, as in `one_seat`.
        options: options of the game.

    Raises:
        ValueError: if an option is wrong; names the option and the allowed values.
    """
    variant = _variant(game, options, "autoreset_mode", "max_episode_steps")
    agents = make_opponents(opponents, variant)
    return OneSeatVectorEnv(
        num_envs, variant, seat, agents, reward, render_mode, autoreset_mode, max_episode_steps, illegal
    )


def _variant(game: str, options: dict[str, Any], *others: str) -> Variant:
    """Return the variant; the error for an unknown option also lists `others` and what all environments accept."""
    definition = load_variant(game).definition
    for name in options:
        definition.option(name, others=("seat", "opponents", "reward", "render_mode", "illegal", *others))
    return load_variant(game, **options)


def make_opponents(opponents: Any, variant: Variant) -> Any:
    """Convert specs to agents; equal specs give one agent. Other objects are returned unchanged.

    Raises:
        ValueError: if a spec is wrong, an object is no agent, or an agent plays another game.
    """
    name = variant.definition.name
    if opponents is None:
        opponents = plugins_of(name).default_opponent
    if isinstance(opponents, str):
        return make_agent(opponents, name)
    for one in opponents if isinstance(opponents, Sequence) else [opponents]:
        if not isinstance(one, str):
            check_opponent(one)
            check_agent_game(one, name)
    if not isinstance(opponents, Sequence):
        return opponents
    made = {one: make_agent(one, name) for one in opponents if isinstance(one, str)}
    return [made[one] if isinstance(one, str) else one for one in opponents]
