"""The Gymnasium view: the learner holds one seat, agents hold the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ninetka_env.core.jit import jit
from ninetka_env.games.ninetka.game import (
    Game,
    as_action,
    begin,
    check_actions,
    check_choice,
    check_count,
    check_options,
    describe_illegal,
)
from ninetka_env.games.ninetka.geometry import MAX_PLAYERS, NUM_ACTIONS
from ninetka_env.games.ninetka.observation import NUM_PLANES, SHAPE, write_observation
from ninetka_env.games.ninetka.rewards import REWARDS, write_rewards
from ninetka_env.games.ninetka.rules import GAME, Records, is_legal, is_over, play, write_legal_mask
from ninetka_env.api.screen import RENDER_MODES, Screen

if TYPE_CHECKING:
    from ninetka_agents.agent import Agent

SEATS = ("random", 0, 1, 2, 3)


class OneSeatGames:
    """N games in which one seat each is the learner's and opponents play the rest: what both environments share.

    Attributes:
        games: (N,) records.
        seats: (N,) int8, the learner's seat in each game.
        observations: (N, C, 11, 11) int8 as the learner sees them; masks: (N, 122) int8.
        rewards: (N,) float32, the learner's, of games that are over, else 0.
        over: (N,) bool.
    """

    def __init__(
        self,
        num_envs: int,
        num_players: int,
        seat: int | str,
        opponents: Any,
        neutral_placement: str,
        turn_order: str,
        reward: str,
    ) -> None:
        """Check the options and make the arrays; see `NinetkaOneSeat` for the arguments."""
        self._options = check_options(num_players, neutral_placement, turn_order, True)
        self._reward = check_choice("reward", reward, REWARDS)
        check_choice("seat", seat, SEATS[: num_players + 1])
        self._seat = seat
        self._opponents = _make_opponents(opponents, num_players)
        self.games = np.zeros(num_envs, GAME)
        self.seats = np.zeros(num_envs, np.int8)
        self.observations = np.zeros((num_envs, NUM_PLANES, *SHAPE[1:]), np.int8)
        self.masks = np.zeros((num_envs, NUM_ACTIONS), np.int8)
        self.rewards = np.zeros(num_envs, np.float32)
        self.over = np.zeros(num_envs, np.bool_)
        self.last_actions = np.full(num_envs, -1, np.int64)

    def restart(self, which: npt.NDArray[np.intp], rng: np.random.Generator) -> None:
        """Start the games `which` anew and let the opponents move until it is the learner's turn."""
        self.seats[which] = rng.integers(self._options[0], size=len(which)) if self._seat == "random" else self._seat
        streams = np.zeros(len(self.games), np.uint64)
        streams[which] = rng.integers(0, 2**64, size=len(which), dtype=np.uint64)
        self.last_actions[which] = -1
        _begin(self.games, which, self._options, streams)
        self._let_opponents_move(which, rng)

    def play(self, actions: npt.NDArray[np.int64], rng: np.random.Generator) -> None:
        """Play the learner's action in every game and let the opponents answer; `ValueError` if one is illegal."""
        if (illegal := _play_if_legal(self.games, actions)) >= 0:
            game = Game(self.games[illegal : illegal + 1])
            raise ValueError(f"game {illegal}: {describe_illegal(game, int(actions[illegal]))}")
        self.last_actions[:] = actions
        self._let_opponents_move(np.arange(len(self.games)), rng)

    def _let_opponents_move(self, which: npt.NDArray[np.intp], rng: np.random.Generator) -> None:
        """Move for the opponents in the games `which` until each is over or the learner's, then draw what it sees."""
        num_players = self._options[0]
        while True:
            relative = (self.games["to_move"][which] - self.seats[which]) % num_players
            relative[_over(self.games, which)] = 0
            if not relative.any():
                break
            for seats, agent in self._opponents:
                theirs = which[np.isin(relative, seats)]
                if len(theirs):
                    self._move(agent, theirs, rng)
        self._show(which)

    def _move(self, agent: Agent, which: npt.NDArray[np.intp], rng: np.random.Generator) -> None:
        """Let an opponent move in the games `which`; `ValueError` names it if one of its actions is illegal."""
        games = self.games[which]
        actions = check_actions(agent.act(games.copy(), rng), len(which))
        if (illegal := _play_if_legal(games, actions)) >= 0:
            game = Game(games[illegal : illegal + 1])
            raise ValueError(f"opponent {agent.name!r}: {describe_illegal(game, int(actions[illegal]))}")
        self.games[which] = games
        self.last_actions[which] = actions

    def _show(self, which: npt.NDArray[np.intp]) -> None:
        flat = self.observations.reshape(len(self.games), -1)
        _show(self.games, which, self.seats, self._reward, flat, self.masks, self.rewards, self.over)


class LegalActions(Discrete):
    """`Discrete(122)` whose samples, unless they are given a mask, are legal in the current position."""

    def __init__(self, table: OneSeatGames) -> None:
        """Look at the first game of `table`."""
        super().__init__(NUM_ACTIONS)
        self._table = table

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        """Draw an action; see `gymnasium.spaces.Discrete.sample`."""
        return super().sample(self._table.masks[0] if mask is None and probability is None else mask, probability)


class NinetkaOneSeat(gymnasium.Env[npt.NDArray[np.int8], np.int64]):
    """9tka as a Gymnasium environment for a learner in one seat.

    Observations are the planes alone, (C, 11, 11) int8, from the learner's eyes; the legal actions are in
    `info["action_mask"]`, (122,) int8, and come from the method `action_masks()`. Each step plays the learner's action
    and every opponent's up to the learner's next turn. The reward comes at the end. Passes are played by the rules.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": list(RENDER_MODES), "render_fps": 2}  # type: ignore[misc]

    def __init__(
        self,
        num_players: int = 2,
        seat: int | str = "random",
        opponents: Any = "maxn",
        neutral_placement: str = "players",
        turn_order: str = "restart",
        reward: str = "win",
        render_mode: str | None = None,
    ) -> None:
        """Check the options.

        Args:
            num_players: 2, 3 or 4.
            seat: the learner's seat, or `"random"` to draw it anew for each game.
            opponents: a spec for `agents.make_agent` or an agent, for all other seats; or a sequence of n - 1 of them
                for the seats after the learner's, in turn order.
            neutral_placement: `"players"` or `"random"`.
            turn_order: `"restart"` or `"continue"`.
            reward: `"win"` or `"score"`.
            render_mode: None, `"human"`, `"rgb_array"` or `"ansi"`.

        Raises:
            ValueError: naming the option that is wrong and the values it may have.
        """
        self._screen = Screen(render_mode)
        self.render_mode = render_mode
        self._table = OneSeatGames(1, num_players, seat, opponents, neutral_placement, turn_order, reward)
        self.observation_space = Box(0, 1, SHAPE, np.int8)
        self.action_space = LegalActions(self._table)

    @property
    def game(self) -> Game:
        """The current game; a view of it, so play through `step` only."""
        game, last = Game(self._table.games), int(self._table.last_actions[0])
        game.last_action = None if last < 0 else last
        return game

    @property
    def seat(self) -> int:
        """The learner's seat in the current game."""
        return int(self._table.seats[0])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.int8], dict[str, Any]]:
        """Start a game and play up to the learner's first turn; returns its observation and info."""
        super().reset(seed=seed)
        self._table.restart(np.arange(1), self.np_random)
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[npt.NDArray[np.int8], float, bool, bool, dict[str, Any]]:
        """Play the learner's action and the opponents' answers.

        Raises:
            ValueError: if the action is illegal; the game stays as it is.
        """
        self._table.play(np.array([as_action(action)], np.int64), self.np_random)
        return self._observation(), float(self._table.rewards[0]), bool(self._table.over[0]), False, self._info()

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return the legal actions as (122,) bool, the name and kind that SB3-contrib's MaskablePPO asks for."""
        return self._table.masks[0].astype(np.bool_)

    def render(self) -> Any:
        """Return or show the board; see `ninetka_env.api.screen.Screen.draw`."""
        return self._screen.draw(self.game)

    def close(self) -> None:
        """Close the window, if there is one."""
        self._screen.close()

    def _observation(self) -> npt.NDArray[np.int8]:
        if self.render_mode == "human":
            self._screen.draw(self.game)
        return self._table.observations[0].copy()

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self._table.masks[0].copy(), "seat": self.seat}


class NinetkaOneSeatVector(VectorEnv[npt.NDArray[np.int8], npt.NDArray[np.int64], npt.NDArray[Any]]):
    """The same for N games at once; opponents think about all games together.

    A game that ends restarts in the same step (`AutoresetMode.SAME_STEP`): `info["final_obs"]` and
    `info["final_info"]` then hold the last observation and info of the games marked in `info["_final_obs"]`.
    """

    metadata: ClassVar[dict[str, Any]] = {"autoreset_mode": AutoresetMode.SAME_STEP}  # type: ignore[misc]

    def __init__(
        self,
        num_envs: int,
        num_players: int = 2,
        seat: int | str = "random",
        opponents: Any = "maxn",
        neutral_placement: str = "players",
        turn_order: str = "restart",
        reward: str = "win",
    ) -> None:
        """Check the options; they are those of `NinetkaOneSeat`."""
        self.num_envs = check_count("num_envs", num_envs)
        self._table = OneSeatGames(num_envs, num_players, seat, opponents, neutral_placement, turn_order, reward)
        self._everywhere = np.ones(num_envs, np.bool_)
        self.single_observation_space = Box(0, 1, SHAPE, np.int8)
        self.single_action_space = Discrete(NUM_ACTIONS)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.int8], dict[str, Any]]:
        """Start all games; returns (N, C, 11, 11) observations and the infos."""
        super().reset(seed=seed)
        self._table.restart(np.arange(self.num_envs), self.np_random)
        return self._table.observations.copy(), self._infos(self._everywhere)

    def step(
        self, actions: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """Play one action per game, (N,) integers; `ValueError` names the first illegal one, and no game has moved."""
        table = self._table
        table.play(check_actions(actions, self.num_envs), self.np_random)
        rewards, over = table.rewards.astype(np.float64), table.over.copy()
        infos: dict[str, Any] = {}
        if over.any():
            infos = {"final_obs": table.observations.copy(), "final_info": self._infos(over)}
            infos |= {"_final_obs": over, "_final_info": over}
            table.restart(np.flatnonzero(over), self.np_random)
        return (
            table.observations.copy(),
            rewards,
            over,
            np.zeros(self.num_envs, np.bool_),
            infos | self._infos(self._everywhere),
        )

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return the legal actions, (N, 122) bool."""
        return self._table.masks.astype(np.bool_)

    def _infos(self, where: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """Return the infos, with the masks that Gymnasium's convention asks for: `where` they hold."""
        masks, seats = self._table.masks.copy(), self._table.seats.copy()
        return {"action_mask": masks, "_action_mask": where, "seat": seats, "_seat": where}


def _make_opponents(opponents: Any, num_players: int) -> list[tuple[list[int], Agent]]:
    """Return the distinct agents, each with the relative seats (1..n-1 after the learner) that it holds."""
    from ninetka_agents.agent import make_agent  # agents stand above the environment; only this view needs them

    alone = isinstance(opponents, str) or not isinstance(opponents, Sequence)
    given = [opponents] * (num_players - 1) if alone else list(opponents)
    if len(given) != num_players - 1:
        raise ValueError(f"opponents: {len(given)} given, expected one for all or {num_players - 1}, one per seat")
    made: dict[Any, Agent] = {}
    for one in given:
        if not isinstance(one, str) and not callable(getattr(one, "act", None)):
            raise ValueError(f"opponents: {one!r} is neither an agent's spec nor an agent with a method act")
        made.setdefault(one if isinstance(one, str) else id(one), make_agent(one) if isinstance(one, str) else one)
    keys = [one if isinstance(one, str) else id(one) for one in given]
    return [([r for r, k in enumerate(keys, start=1) if k == key], agent) for key, agent in made.items()]


@jit
def _begin(games: Records, which: npt.NDArray[np.intp], options: Any, streams: npt.NDArray[np.uint64]) -> None:
    for index in which:
        begin(games, index, *options, streams)


@jit
def _play_if_legal(games: Records, actions: npt.NDArray[np.int64]) -> int:
    """Play in all games; if an action is illegal, return the game's index and change nothing, else return -1."""
    for index in range(len(games)):
        if not is_legal(games[index], actions[index]):
            return index
    for index in range(len(games)):
        play(games[index], actions[index])
    return -1


@jit
def _over(games: Records, which: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    over = np.empty(len(which), np.bool_)
    for place, index in enumerate(which):
        over[place] = is_over(games[index])
    return over


@jit
def _show(
    games: Records,
    which: npt.NDArray[np.intp],
    seats: npt.NDArray[np.int8],
    reward: int,
    planes: npt.NDArray[np.int8],
    masks: npt.NDArray[np.int8],
    rewards: npt.NDArray[np.float32],
    over: npt.NDArray[np.bool_],
) -> None:
    """Write what the learner sees of the games `which`, and what it gets where they are over."""
    paid = np.empty(MAX_PLAYERS, np.float32)
    for index in which:
        game, seat = games[index], seats[index]
        write_observation(game, seat, planes[index])
        write_legal_mask(game, masks[index])
        over[index] = is_over(game)
        rewards[index] = 0.0
        if over[index]:
            write_rewards(game, reward, paid)
            rewards[index] = paid[seat]
