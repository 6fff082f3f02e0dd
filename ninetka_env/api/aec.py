"""The PettingZoo AEC environment: seats become agents `player_0` .. `player_{n-1}`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict, Discrete
from pettingzoo import AECEnv

from ninetka_env.core.jit import jit
from ninetka_env.core.chance import make_streams
from ninetka_env.games.ninetka.game import Game, begin, check_choice, check_options
from ninetka_env.games.ninetka.geometry import NUM_ACTIONS
from ninetka_env.games.ninetka.observation import SHAPE, write_observation
from ninetka_env.games.ninetka.rewards import REWARDS, write_rewards_of
from ninetka_env.games.ninetka.rules import GAME, Records, write_legal_mask
from ninetka_env.api.screen import RENDER_MODES, Screen

Observation = dict[str, npt.NDArray[np.int8]]


def observation_space() -> Dict:
    """Return the space of one seat's observation: `observation` (C, 11, 11) int8 and `action_mask` (122,) int8."""
    return Dict({"observation": Box(0, 1, SHAPE, np.int8), "action_mask": Box(0, 1, (NUM_ACTIONS,), np.int8)})


class NinetkaAEC(AECEnv[str, Observation, int]):
    """9tka for 2 to 4 players as a PettingZoo AEC environment.

    Observations are dicts of `"observation"`, (C, 11, 11) int8 planes from the agent's own eyes
    (`ninetka_env.games.ninetka.observation.PLANES` is their table), and `"action_mask"`, (122,) int8, all zero for everyone but the
    agent to move. Rewards come once, on the last step. An illegal action raises `ValueError` and changes nothing.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "ninetka_v0",
        "render_modes": list(RENDER_MODES),
        "render_fps": 2,
        "is_parallelizable": False,
    }

    def __init__(
        self,
        num_players: int = 2,
        neutral_placement: str = "players",
        turn_order: str = "restart",
        auto_pass: bool = True,
        reward: str = "win",
        render_mode: str | None = None,
    ) -> None:
        """Check and keep the options; `reset` starts a game.

        Args:
            num_players: 2, 3 or 4.
            neutral_placement: `"players"` or `"random"` (drawn at reset; the game then starts with placement).
            turn_order: `"restart"` (seat 0 opens each phase) or `"continue"`.
            auto_pass: forced passes are played by the environment; if off, action 121 passes.
            reward: `"win"` or `"score"`; see `ninetka_env.games.ninetka.rewards.REWARDS`.
            render_mode: None, `"human"`, `"rgb_array"` or `"ansi"`.

        Raises:
            ValueError: naming the option that is wrong and the values it may have.
        """
        super().__init__()
        self._options = check_options(num_players, neutral_placement, turn_order, auto_pass)
        self._reward = check_choice("reward", reward, REWARDS)
        self._screen = Screen(render_mode)
        self.render_mode = render_mode
        self.possible_agents = [f"player_{seat}" for seat in range(num_players)]
        self._seats = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        self.observation_spaces = {agent: observation_space() for agent in self.possible_agents}
        self.action_spaces = {agent: Discrete(NUM_ACTIONS) for agent in self.possible_agents}
        self._streams = make_streams(None)

    game: Game
    """The current game, also after its end."""

    def observation_space(self, agent: str) -> Dict:
        """Return the agent's observation space, the same object on each call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete:
        """Return the agent's action space, `Discrete(122)`, the same object on each call."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a new game; `options` is ignored.

        `seed` starts the stream that random neutral stones are drawn from; without one the stream goes on.
        """
        if seed is not None:
            self._streams = make_streams(seed)
        self.game = Game(np.zeros(1, GAME))
        begin(self.game.records, 0, *self._options, self._streams)
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
        planes, mask = np.empty(SHAPE, np.int8), np.empty(NUM_ACTIONS, np.int8)
        _observe(self.game.records, self._seats[agent], planes.reshape(-1), mask)
        return {"observation": planes, "action_mask": mask}

    def state(self) -> npt.NDArray[np.int8]:
        """Return the planes as seen by seat 0, (C, 11, 11) int8."""
        return self.observe(self.possible_agents[0])["observation"]

    def step(self, action: int | None) -> None:
        """Play `action` for `agent_selection`; once the game is over, each agent steps with None and leaves.

        Raises:
            ValueError: if the action is illegal; the game stays as it is.
        """
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self.game.play(action)  # type: ignore[arg-type]
        self._cumulative_rewards[agent] = 0.0
        self.agent_selection = self.possible_agents[self.game.to_move]
        if self.game.is_over:
            self._finish()
        if self.render_mode == "human":
            self.render()

    def _finish(self) -> None:
        """Pay the rewards and terminate every agent, all on the same step."""
        rewards = np.empty(len(self.agents), np.float32)
        write_rewards_of(self.game.records, 0, self._reward, rewards)
        self.rewards = dict(zip(self.agents, rewards.tolist(), strict=True))
        self.terminations = dict.fromkeys(self.agents, True)
        self._accumulate_rewards()

    def render(self) -> str | npt.NDArray[np.uint8] | None:
        """Return the board as text (`ansi`) or (H, W, 3) uint8 picture (`rgb_array`), or show it (`human`)."""
        return self._screen.draw(self.game)

    def close(self) -> None:
        """Close the window, if there is one."""
        self._screen.close()


@jit
def _observe(games: Records, viewer: int, planes: npt.NDArray[np.int8], mask: npt.NDArray[np.int8]) -> None:
    """Draw planes and mask of game 0 for `viewer`; only the seat to move has anything legal."""
    game = games[0]
    write_observation(game, viewer, planes)
    if viewer == game.to_move:
        write_legal_mask(game, mask)
    else:
        mask[:] = 0
