"""The PettingZoo AEC environment of any game: seats become agents `player_0` .. `player_{n-1}`."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete
from pettingzoo import AECEnv
from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper, OrderEnforcingWrapper, TerminateIllegalWrapper

from ninetka_env.api.screen import RENDER_MODES, Screen
from ninetka_env.core.batch import begin, codes_of
from ninetka_env.core.chance import make_streams
from ninetka_env.core.game import Game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_choice
from ninetka_env.core.outcome import REWARDS
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import Records, write_legal_mask, write_observation

Observation = dict[str, npt.NDArray[np.int8]]


def observation_space(variant: Variant) -> Dict:
    """Return the space of one seat's observation: `observation` (C, H, W) int8, `action_mask` (num_actions,) int8."""
    planes, mask = Box(0, 1, variant.sizes.planes, np.int8), Box(0, 1, (variant.num_actions,), np.int8)
    return Dict({"observation": planes, "action_mask": mask})


class GameAEC(AECEnv[str, Observation, int]):
    """A game as a PettingZoo AEC environment.

    Observations are dicts of `"observation"`, (C, H, W) int8 planes from the agent's own eyes, and `"action_mask"`,
    (num_actions,) int8, all zero for everyone but the agent to move, and for everybody once the game is over. Rewards
    come once, on the last step. An illegal action raises `ValueError`, what is no integer `TypeError`; neither changes
    anything.
    """

    def __init__(self, variant: Variant, reward: str = "win", render_mode: str | None = None) -> None:
        """Keep the options; `reset` starts a game.

        Args:
            variant: the game with its options.
            reward: `"win"` or `"score"`; see `ninetka_env.core.outcome.REWARDS`.
            render_mode: None, `"human"`, `"rgb_array"` or `"ansi"`.

        Raises:
            ValueError: naming the option that is wrong and the values it may have.
        """
        super().__init__()
        self.variant = variant
        self._reward = check_choice("reward", reward, REWARDS)
        self._screen = Screen(render_mode)
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
        self._codes = codes_of(variant, 1)
        self._streams = make_streams(None)

    game: Game
    """The current game, also after its end."""

    def observation_space(self, agent: str) -> Dict:
        """Return the agent's observation space, the same object on each call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete:
        """Return the agent's action space, `Discrete(num_actions)`, the same object on each call."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a new game; `options` is ignored.

        `seed` starts the stream of what is drawn before the first turn; without one the stream goes on.
        """
        if seed is not None:
            self._streams = make_streams(seed)
        self.game = self.variant.game_class(np.zeros(1, self.variant.dtype))
        begin(self.game.records, _FIRST, self._codes, self._streams)
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
        """Return what `agent` sees now, in fresh arrays; possible at any time after `reset`, also after the end."""
        planes, mask = np.empty(self.variant.sizes.planes, np.int8), np.empty(self.variant.num_actions, np.int8)
        _observe(self.game.records, self._seats[agent], self.game.event is None, planes.reshape(-1), mask)
        return {"observation": planes, "action_mask": mask}

    def state(self) -> npt.NDArray[np.int8]:
        """Return the planes as seen by seat 0, (C, H, W) int8."""
        return self.observe(self.possible_agents[0])["observation"]

    def step(self, action: int | None) -> None:
        """Play `action` for `agent_selection`; once the game is over, each agent steps with None and leaves.

        If `game.resign` or `game.forfeit` has ended the game meanwhile, this ends it here too, and nothing is played.

        Raises:
            ValueError: if the action is illegal; the game stays as it is.
            TypeError: if it is no integer.
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
        """Pay the rewards and terminate every agent, all on the same step."""
        rewards = self.game.returns(REWARDS[self._reward])
        self.rewards = dict(zip(self.agents, rewards.tolist(), strict=True))
        self.terminations = dict.fromkeys(self.agents, True)
        self._accumulate_rewards()

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """Return the board as text (`ansi`) or (H, W, 3) uint8 picture (`rgb_array`), or show it (`human`)."""
        return self._screen.draw(self.game)

    def close(self) -> None:
        """Close the window, if there is one."""
        self._screen.close()


_FIRST = np.zeros(1, np.int64)


@jit
def _observe(
    games: Records, viewer: int, going_on: bool, planes: npt.NDArray[np.int8], mask: npt.NDArray[np.int8]
) -> None:
    """Draw planes and mask of game 0 for `viewer`; only the seat to move has anything legal."""
    game = games[0]
    write_observation(game, viewer, planes)
    if viewer == game.to_move and going_on:
        write_legal_mask(game, mask)
    else:
        mask[:] = 0


# The wrapped environment


def wrapped(bare: GameAEC) -> OrderEnforcingWrapper[str, Observation, int]:
    """Put PettingZoo's usual wrappers round an environment.

    An illegal action ends the game with reward -1 for whoever played it, an action out of bounds fails an assertion,
    and methods called in the wrong order are reported.
    """
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
    def step(self, action: int | None) -> None:
        """Let a game end that somebody has resigned: nothing is legal there, but whoever steps is not to blame."""
        if self.env.game.event is None:
            super().step(action)
        else:
            self.env.step(action)


class _AssertOutOfBounds(_ShortWay, AssertOutOfBoundsWrapper[str, Observation, int]):
    pass
