"""PettingZoo AEC environment for any game: seats are the agents `player_0` .. `player_{n-1}`.

Create it with `env` or `raw_env` of a game's module, such as `ninetka_env.ninetka_v0`.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete
from pettingzoo import AECEnv
from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper, OrderEnforcingWrapper, TerminateIllegalWrapper

from ninetka_env.api.rendering import RENDER_MODES, Renderer
from ninetka_env.core.batch import option_codes, restart_games
from ninetka_env.core.game import Game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_choice
from ninetka_env.core.outcome import REWARDS
from ninetka_env.core.random_streams import make_streams
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import StateArray, write_legal_mask, write_observation

Observation = dict[str, npt.NDArray[np.int8]]


def observation_space(variant: Variant) -> Dict:
    """Return the observation space of a seat: `observation`, (C, H, W) int8; `action_mask`, (num_actions,) int8."""
    planes, mask = Box(0, 1, variant.sizes.planes, np.int8), Box(0, 1, (variant.num_actions,), np.int8)
    return Dict({"observation": planes, "action_mask": mask})


class GameAEC(AECEnv[str, Observation, int]):
    """A game as a PettingZoo AEC environment.

    An observation is a dict of `"observation"`, (C, H, W) int8 planes as the agent's seat sees the game, and
    `"action_mask"`, (num_actions,) int8. The mask is all zero for agents that are not to move, and for all agents when
    the game is over. Rewards are nonzero only on the last step. An illegal action raises `ValueError`, an action that
    is not an integer raises `TypeError`; in both cases the game does not change.
    """

    def __init__(self, variant: Variant, reward: str = "win", render_mode: str | None = None) -> None:
        """Make an environment; `reset` starts a game.

        Args:
            variant: the game with its options.
            reward: `"win"` or `"score"`; see `ninetka_env.core.outcome.REWARDS`.
            render_mode: None, `"human"`, `"rgb_array"` or `"ansi"`.

        Raises:
            ValueError: if an option is wrong; the message gives its name and the allowed values.
        """
        super().__init__()
        self.variant = variant
        self._reward = check_choice("reward", reward, REWARDS)
        self._renderer = Renderer(render_mode)
        self.render_mode = render_mode
        self.metadata = {
            "name": variant.definition.version,
            "render_modes": list(RENDER_MODES),
            "render_fps": 2,
            "is_parallelizable": False,
        }
        self.possible_agents = [f"player_{seat}" for seat in range(variant.num_players)]
        self._seats = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        self.observation_spaces = {agent: observation_space(variant) for agent in self.possible_agents}
        self.action_spaces = {agent: Discrete(variant.num_actions) for agent in self.possible_agents}
        self._codes = option_codes(variant, 1)
        self._streams = make_streams(None)

    game: Game
    """The current game; it stays available after its end."""

    def observation_space(self, agent: str) -> Dict:
        """Return the agent's observation space, the same object on each call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete:
        """Return the agent's action space, `Discrete(num_actions)`, the same object on each call."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a new game.

        Args:
            seed: seed of the random stream, which is used for random starts; None continues the stream.
            options: ignored.
        """
        if seed is not None:
            self._streams = make_streams(seed)
        self.game = self.variant.game_class(np.zeros(1, self.variant.dtype))
        restart_games(self.game.records, _FIRST, self._codes, self._streams)
        self.agents = self.possible_agents.copy()
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self.agent_selection = self.agents[self.game.to_move]
        self._skip_agent_selection = None
        if self.render_mode == "human":
            self.render()

    def observe(self, agent: str) -> Observation:
        """Return the current observation of `agent` in new arrays; also available after the end of the game."""
        planes, mask = np.empty(self.variant.sizes.planes, np.int8), np.empty(self.variant.num_actions, np.int8)
        _observe(self.game.records, self._seats[agent], self.game.event is None, planes.reshape(-1), mask)
        return {"observation": planes, "action_mask": mask}

    def state(self) -> npt.NDArray[np.int8]:
        """Return the planes as seat 0 sees the game, (C, H, W) int8."""
        return self.observe(self.possible_agents[0])["observation"]

    def step(self, action: int | None) -> None:
        """Play `action` for `agent_selection`.

        When the game is over, each agent must step once with None and is then removed from `agents`. If `game.resign`
        or `game.forfeit` has ended the game, the action is not played and all agents are terminated.

        Raises:
            ValueError: if the action is illegal; the game does not change.
            TypeError: if the action is not an integer.
        """
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        if self.game.event is None:
            self.game.play(action)  # type: ignore[arg-type]
        self._cumulative_rewards[agent] = 0.0
        self.agent_selection = self.possible_agents[self.game.to_move]
        if self.game.is_over:
            self._finish()
        if self.render_mode == "human":
            self.render()

    def _finish(self) -> None:
        """Set the rewards and terminate all agents."""
        rewards = self.game.returns(REWARDS[self._reward])
        self.rewards = dict(zip(self.agents, rewards.tolist(), strict=True))
        self.terminations = dict.fromkeys(self.agents, True)
        self._accumulate_rewards()

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """Return the board as text (`ansi`) or as an (H, W, 3) uint8 picture (`rgb_array`), or show it (`human`)."""
        return self._renderer.render(self.game)

    def close(self) -> None:
        """Close the window, if there is one."""
        self._renderer.close()


_FIRST = np.zeros(1, np.int64)


@jit
def _observe(
    games: StateArray, viewer: int, is_running: bool, planes: npt.NDArray[np.int8], mask: npt.NDArray[np.int8]
) -> None:
    """Write planes and mask of game 0 for `viewer`; the mask is zero unless `viewer` is to move."""
    game = games[0]
    write_observation(game, viewer, planes)
    if viewer == game.to_move and is_running:
        write_legal_mask(game, mask)
    else:
        mask[:] = 0


# The wrapped environment


def wrapped(bare: GameAEC) -> OrderEnforcingWrapper[str, Observation, int]:
    """Wrap an environment in PettingZoo's standard wrappers.

    An illegal action ends the game with reward -1 for the agent that played it. An action outside the action space
    raises `AssertionError`. Methods that are called in the wrong order raise an error.
    """
    return OrderEnforcingWrapper(_AssertOutOfBounds(_TerminateIllegal(bare, illegal_reward=-1)))


class _DirectAttributes:
    """Mixin with properties for the attributes that every step reads from the wrapped environment.

    PettingZoo's wrappers forward attributes by `__getattr__` after a failed look-up in each wrapper. This takes longer
    than a step of the game.
    """

    agent_selection = property(attrgetter("env.agent_selection"))
    agents = property(attrgetter("env.agents"))
    terminations = property(attrgetter("env.terminations"))
    truncations = property(attrgetter("env.truncations"))
    rewards = property(attrgetter("env.rewards"))
    infos = property(attrgetter("env.infos"))
    _cumulative_rewards = property(attrgetter("env._cumulative_rewards"))


class _TerminateIllegal(_DirectAttributes, TerminateIllegalWrapper[str, Observation, int]):
    def step(self, action: int | None) -> None:
        """Play `action`; after `resign` or `forfeit`, do not check it, because no action is legal."""
        if self.env.game.event is None:
            super().step(action)
        else:
            self.env.step(action)


class _AssertOutOfBounds(_DirectAttributes, AssertOutOfBoundsWrapper[str, Observation, int]):
    pass
