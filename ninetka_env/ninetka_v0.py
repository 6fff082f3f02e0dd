"""Version 0 of the environment. Its version changes with any change of rules, actions, masks, planes or rewards.

History:
    v0: first version.
"""

from __future__ import annotations

from operator import attrgetter

from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper, OrderEnforcingWrapper, TerminateIllegalWrapper

from ninetka_env.api.aec import NinetkaAEC as raw_env
from ninetka_env.api.aec import Observation
from ninetka_env.api.vector import NinetkaVectorEnv as vector_env

__all__ = ["env", "raw_env", "vector_env"]


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
    bare = raw_env(num_players, neutral_placement, turn_order, auto_pass, reward, render_mode)
    return OrderEnforcingWrapper(_AssertOutOfBounds(_TerminateIllegal(bare, illegal_reward=-1)))


class _ShortWay:
    """Hands the attributes that every step reads straight on to the wrapped environment.

    PettingZoo's wrappers find them by failing look-ups, one per wrapper, which would take longer than the game.
    """

    agent_selection = property(attrgetter("env.agent_selection"))
    agents = property(attrgetter("env.agents"))
    terminations = property(attrgetter("env.terminations"))
    truncations = property(attrgetter("env.truncations"))
    rewards = property(attrgetter("env.rewards"))
    infos = property(attrgetter("env.infos"))
    _cumulative_rewards = property(attrgetter("env._cumulative_rewards"))


class _TerminateIllegal(_ShortWay, TerminateIllegalWrapper[str, Observation, int]):
    pass


class _AssertOutOfBounds(_ShortWay, AssertOutOfBoundsWrapper[str, Observation, int]):
    pass
