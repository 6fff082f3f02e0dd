"""PettingZoo AEC environment for any game: seats are the agents `player_0` .. `player_{n-1}`.

Create it with `env` or `raw_env` of a game's module, such as `ninetka_env.ninetka_v0`.
"""

from __future__ import annotations

from contextlib import suppress
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Dict, Discrete
from pettingzoo import AECEnv
from pettingzoo.utils.env_logger import EnvLogger
from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper, OrderEnforcingWrapper, TerminateIllegalWrapper

from ninetka_env.api.positions import check_states, starting_game
from ninetka_env.api.rendering import RENDER_MODES, Renderer
from ninetka_env.api.reset_options import ResetOptions
from ninetka_env.core.batch import option_codes, restart_games
from ninetka_env.core.game import Game, check_game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import as_action, check_choice, short_repr
from ninetka_env.core.outcome import REWARDS
from ninetka_env.core.random_streams import make_streams
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import StateArray, is_over, write_legal_mask, write_observation

Observation = dict[str, npt.NDArray[np.int8]]
LastStep = tuple[Observation | None, float, bool, bool, dict[str, Any]]

ALL_REMOVED = "the game is over and all agents have been removed: call reset first"


class NoGameError(ResetNeeded, AttributeError):
    """An attribute that `reset` sets was read before the first `reset`.

    It is an `AttributeError`, too, so that `hasattr` and PettingZoo's wrappers find that the attribute does not exist.
    """


def observation_space(variant: Variant) -> Dict:
    """Return the observation space of a seat: `observation`, (C, H, W) int8; `action_mask`, (num_actions,) int8."""
    planes, mask = Box(0, 1, variant.sizes.planes, np.int8), Box(0, 1, (variant.num_actions,), np.int8)
    return Dict({"observation": planes, "action_mask": mask})


class _SetByReset:
    """Placeholder in a class for an attribute that `reset` sets in the object; to read it raises `NoGameError`."""

    def __get__(self, env: Any, owner: Any) -> Any:
        if env is None:
            return self
        raise NoGameError("there is no game yet: call reset first")


class _LastMethod:
    """Mixin with PettingZoo's method `last`; after the end of an episode, its error says what to do."""

    def last(self: Any, observe: bool = True) -> LastStep:
        """Return observation, cumulative reward, termination, truncation and info of `agent_selection`.

        Raises:
            ResetNeeded: if all agents have been removed.
        """
        agent = self.agent_selection
        observation = self.observe(agent) if observe else None
        try:
            reward, terminated = self._cumulative_rewards[agent], self.terminations[agent]
            return observation, reward, terminated, self.truncations[agent], self.infos[agent]
        except KeyError:
            raise ResetNeeded(ALL_REMOVED) from None


class GameAEC(_LastMethod, AECEnv[str, Observation, int]):
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
        self.state_space = self.observation_spaces[self.possible_agents[0]]["observation"]
        self._planes_shape, self._num_actions = variant.sizes.planes, variant.num_actions
        self._codes = option_codes(variant, 1)
        self._streams = make_streams(None)
        self._reset_options = ResetOptions("position")

    @property
    def game(self) -> Game:
        """The current game; it stays available after its end.

        To change the position, assign a game: all agents then take part again, and the rewards are zero, unless the
        game is over: then all agents are terminated and rewarded, as if the last step had ended it. The environment
        plays in the assigned object. Do not call `game.play`: the environment cannot notice it, so `observe` and `last`
        raise `RuntimeError` if `agent_selection` is not to move any more. `game.resign` and `game.forfeit` are allowed.

        Raises:
            TypeError: if the assigned object is not a game of this kind.
            ValueError: if the assigned game has other options.
            NoGameError: if the attribute is read before `reset`.
        """
        return self._game

    @game.setter
    def game(self, game: Game) -> None:
        check_game(game, self.variant.game_class)
        check_states(game.records, self.variant)
        self._begin(game)

    def observation_space(self, agent: str) -> Dict:
        """Return the agent's observation space, the same object on each call."""
        if agent not in self.possible_agents:
            raise self._unknown_agent(agent)
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete:
        """Return the agent's action space, `Discrete(num_actions)`, the same object on each call."""
        if agent not in self.possible_agents:
            raise self._unknown_agent(agent)
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a new game.

        Args:
            seed: seed of the random stream, which is used for random starts; None continues the stream.
            options: `{"position": position}` starts from a given position: a text of `str(game)`, a state, or a `Game`,
                which is copied; see `ninetka_env.api.positions.starting_game`. Other options are ignored, with one
                warning.

        Raises:
            ValueError: if the seed or the position is not valid; the environment does not change.
        """
        given = self._reset_options.read(options).get("position")
        game = None if given is None else starting_game(given, self.variant)
        if seed is not None:
            self._streams = make_streams(seed)
        if game is None:
            game = self.variant.game_class(np.zeros(1, self.variant.dtype))
            restart_games(game.records, _FIRST, self._codes, self._streams)
        self._begin(game)

    def _begin(self, game: Game) -> None:
        """Continue with `game`, in which all agents take part."""
        self._game = game
        self.agents = self.possible_agents.copy()
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self.agent_selection = self.agents[game.to_move]
        self._skip_agent_selection = None
        if game.is_over:
            self._finish()
        if self.render_mode == "human":
            self.render()

    def observe(self, agent: str) -> Observation:
        """Return the current observation of `agent` in new arrays; also available after the end of the game.

        Raises:
            KeyError: if there is no such agent.
            RuntimeError: if `agent` is `agent_selection` but not to move, because the game was changed by `game.play`.
        """
        game = self._game
        try:
            seat = self._seats[agent]
        except (KeyError, TypeError):  # `TypeError` if it cannot be hashed
            raise self._unknown_agent(agent) from None
        planes, mask = np.empty(self._planes_shape, np.int8), np.empty(self._num_actions, np.int8)
        can_act = _observe(game.records, seat, game.event is None, planes.reshape(-1), mask)
        if not can_act and agent == self.agent_selection:
            self._check_unchanged(agent)
        return {"observation": planes, "action_mask": mask}

    def _unknown_agent(self, agent: Any) -> KeyError:
        known = ", ".join(self.possible_agents)
        return KeyError(f"unknown agent {short_repr(agent)}: expected one of {known}")

    def _check_unchanged(self, agent: str) -> None:
        """Raise `RuntimeError` if the game is not over for `agent`, which is selected but cannot act."""
        if self._game.event is None and not self.terminations.get(agent, True):
            raise RuntimeError(
                "the game was changed outside the environment: play with step, or assign env.unwrapped.game = game"
            )

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
            ResetNeeded: if all agents have been removed.
        """
        agent = self.agent_selection
        try:
            is_dead = self.terminations[agent] or self.truncations[agent]
        except KeyError:
            raise ResetNeeded(ALL_REMOVED) from None
        if is_dead:
            self._was_dead_step(action)
            return
        game = self._game
        if game.event is None:
            game.play(action)  # type: ignore[arg-type]
        self._cumulative_rewards[agent] = 0.0
        self.agent_selection = self.possible_agents[game.to_move]
        if game.is_over:
            self._finish()
        if self.render_mode == "human":
            self.render()

    def _finish(self) -> None:
        """Set the rewards and terminate all agents."""
        rewards = self._game.returns(REWARDS[self._reward])
        self.rewards = dict(zip(self.agents, rewards.tolist(), strict=True))
        self.terminations = dict.fromkeys(self.agents, True)
        self._accumulate_rewards()

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """Return the board as text (`ansi`) or as an (H, W, 3) uint8 picture (`rgb_array`), or show it (`human`)."""
        return self._renderer.render(self._game)

    def close(self) -> None:
        """Close the window, if there is one."""
        self._renderer.close()


_FIRST = np.zeros(1, np.int64)

for _name in ("agent_selection", "agents", "infos", "rewards", "terminations", "truncations", "_game"):
    setattr(GameAEC, _name, _SetByReset())  # `__getattr__` would make each access to any attribute slower


@jit
def _observe(
    games: StateArray, viewer: int, is_running: bool, planes: npt.NDArray[np.int8], mask: npt.NDArray[np.int8]
) -> bool:
    """Write planes and mask of game 0 for `viewer`, and return whether `viewer` can act; if not, the mask is zero."""
    game = games[0]
    write_observation(game, viewer, planes)
    if viewer == game.to_move and is_running and not is_over(game):
        write_legal_mask(game, mask)
        return True
    mask[:] = 0
    return False


# The wrapped environment


def wrapped(bare: GameAEC) -> OrderEnforcingWrapper[str, Observation, int]:
    """Wrap an environment in PettingZoo's standard wrappers.

    An illegal action ends the game with reward -1 for the agent that played it. An action outside the action space
    raises `AssertionError`. Methods that are called in the wrong order raise an error.
    """
    return _OrderEnforcing(_AssertOutOfBounds(_TerminateIllegal(bare, illegal_reward=-1)))


class _DirectAttributes:
    """Mixin with properties for the attributes that every step reads from the wrapped environment, and for `game`.

    PettingZoo's wrappers forward attributes by `__getattr__` after a failed look-up in each wrapper. This takes longer
    than a step of the game.
    """

    env: Any
    agent_selection = property(attrgetter("env.agent_selection"))
    agents = property(attrgetter("env.agents"))
    terminations = property(attrgetter("env.terminations"))
    truncations = property(attrgetter("env.truncations"))
    rewards = property(attrgetter("env.rewards"))
    infos = property(attrgetter("env.infos"))
    _cumulative_rewards = property(attrgetter("env._cumulative_rewards"))

    @property
    def game(self) -> Game:
        """The current game; to change it, assign another game. See `GameAEC.game`."""
        game: Game = self.env.game
        return game

    @game.setter
    def game(self, game: Game) -> None:
        self.env.game = game


class _TerminateIllegal(_DirectAttributes, TerminateIllegalWrapper[str, Observation, int]):
    """PettingZoo's wrapper, which is called for illegal actions only.

    PettingZoo compares each action with the mask of the last observation. The game checks the action itself, which is
    faster, and also right if the game was changed since that observation.
    """

    def observe(self, agent: str) -> Observation:
        """Return the observation of `agent`; PettingZoo's method stores it for the next step."""
        observation: Observation = self.env.observe(agent)
        return observation

    def step(self, action: int | None) -> None:
        """Play `action`; if it is illegal, the game ends with a loss for `agent_selection`.

        PettingZoo appends its warning to `EnvLogger.mqueue`, which is never emptied; remove it again.
        """
        try:
            self.env.step(action)
        except ValueError:
            super().observe(self.agent_selection)
            messages = len(EnvLogger.mqueue)
            super().step(action)
            del EnvLogger.mqueue[messages:]


class _AssertOutOfBounds(_DirectAttributes, AssertOutOfBoundsWrapper[str, Observation, int]):
    """PettingZoo's wrapper; it also accepts integers of types that `Discrete.contains` does not know."""

    def step(self, action: int | None) -> None:
        """Play `action`; raise `AssertionError` if it is outside the action space."""
        if action is not None:
            with suppress(TypeError):  # PettingZoo refuses it in its own words
                action = as_action(action, 0)
        super().step(action)


class _OrderEnforcing(_LastMethod, _DirectAttributes, OrderEnforcingWrapper[str, Observation, int]):
    def __str__(self) -> str:
        """Return the name of the environment."""
        return str(self.env)
