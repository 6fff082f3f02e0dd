"""Batched self-play: many games stepped at once by compiled code, on arrays that the environment owns and reuses."""

from __future__ import annotations

from typing import Any, ClassVar

import numba
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode

from ninetka_env._jit import jit
from ninetka_env.aec import observation_space
from ninetka_env.chance import Streams, make_streams
from ninetka_env.game import Game, begin, check_actions, check_choice, check_count, check_options, describe_illegal
from ninetka_env.geometry import NUM_ACTIONS
from ninetka_env.observation import SHAPE, write_fast_planes, write_slow_planes
from ninetka_env.rewards import REWARDS, write_rewards
from ninetka_env.rules import GAME, NEUTRAL, Records, is_legal, is_over, play, winner_of, write_legal_mask
from ninetka_env._jit import popcount

GAMES_PER_THREAD = 256
"""Games below which a further thread costs more than it brings; smaller shares are not made."""

Planes = npt.NDArray[np.int8]


class NinetkaVectorEnv:
    """Self-play on N games at once: one action per game and step, always for the seat to move.

    All arrays below are the environment's own: `reset` and `step` write into them, so copy what you keep, and do not
    write into them yourself. A game that ends restarts in the same step (`AutoresetMode.SAME_STEP`), so there is
    always a seat to move and a legal action. Game i under seed s is, action for action, the game that
    `raw_env(...)` plays after `reset(seed=s + i)`.

    Attributes:
        observations: (N, C, 11, 11) int8, each game as its seat to move sees it.
        action_mask: (N, 122) int8, the legal actions of the seat to move.
        to_move: (N,) int8, the seat that acts next.
        rewards: (N, n) float32, per seat; zero but on the step that ends a game.
        terminated: (N,) bool, whether the last step ended the game.
        final_scores: (N, n) int8, sections per seat at the end of each slot's last finished game.
        final_winner: (N,) int8, its winner; -1 before the first.
        games: (N,) records of dtype `ninetka_env.rules.GAME`, for agents and searches; not to be written.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "ninetka_v0", "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(
        self,
        num_envs: int,
        num_players: int = 2,
        neutral_placement: str = "players",
        turn_order: str = "restart",
        auto_pass: bool = True,
        reward: str = "win",
        num_threads: int | None = None,
    ) -> None:
        """Make the arrays; `reset` starts the games.

        Args:
            num_envs: N, the number of games, at least 1.
            num_players: as in the AEC environment, like the next four.
            neutral_placement: `"players"` or `"random"`.
            turn_order: `"restart"` or `"continue"`.
            auto_pass: forced passes are played by the environment.
            reward: `"win"` or `"score"`.
            num_threads: at most this many threads step the games; None for all that numba may use.

        Raises:
            ValueError: naming the option that is wrong and the values it may have.
        """
        self._options = check_options(num_players, neutral_placement, turn_order, auto_pass)
        self._reward = check_choice("reward", reward, REWARDS)
        most = numba.config.NUMBA_NUM_THREADS
        self.num_envs = check_count("num_envs", num_envs)
        threads = most if num_threads is None else min(most, check_count("num_threads", num_threads))
        self._shares = max(1, min(threads, self.num_envs // GAMES_PER_THREAD))
        self.single_observation_space = observation_space()
        self.single_action_space = Discrete(NUM_ACTIONS)
        self.games = np.zeros(self.num_envs, GAME)
        self.observations = np.zeros((self.num_envs, *SHAPE), np.int8)
        self.action_mask = np.zeros((self.num_envs, NUM_ACTIONS), np.int8)
        self.to_move = np.zeros(self.num_envs, np.int8)
        self.rewards = np.zeros((self.num_envs, num_players), np.float32)
        self.terminated = np.zeros(self.num_envs, np.bool_)
        self.final_scores = np.zeros((self.num_envs, num_players), np.int8)
        self.final_winner = np.full(self.num_envs, -1, np.int8)
        self._drawn_phase = np.full(self.num_envs, -1, np.int8)
        self._streams = make_streams(None, self.num_envs)

    def reset(self, seed: int | None = None) -> npt.NDArray[np.int8]:
        """Start all games anew and return `observations`.

        `seed` gives game i the stream of seed + i for its random neutral stones; None lets the streams go on.
        """
        if seed is not None:
            self._streams = make_streams(seed, self.num_envs)
        for array in (self.rewards, self.terminated, self.final_scores):
            array[:] = 0
        self.final_winner[:] = -1
        self._drawn_phase[:] = -1
        _reset(self._options, self._streams, *self._arrays())
        return self.observations

    def step(
        self, actions: npt.ArrayLike
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """Play one action in every game and return `observations`, `rewards` and `terminated`.

        Args:
            actions: (N,) integers, one legal action per game for its seat to move.

        Raises:
            ValueError: if the shape is wrong or an action is illegal, naming the game, the square and the phase;
                no game has moved then.
            TypeError: if the actions are no integers.
        """
        chosen = check_actions(actions, self.num_envs)
        step = _step if self._shares == 1 else _step_parallel
        if (illegal := step(chosen, self._shares, self._reward, self._options, self._streams, *self._arrays())) >= 0:
            game = Game(self.games[illegal : illegal + 1])
            raise ValueError(f"game {illegal}: {describe_illegal(game, int(chosen[illegal]))}")
        return self.observations, self.rewards, self.terminated

    def _arrays(self) -> tuple[npt.NDArray[Any], ...]:
        return (
            self.games,
            self.observations.reshape(self.num_envs, -1),
            self.action_mask,
            self.to_move,
            self._drawn_phase,
            self.rewards,
            self.terminated,
            self.final_scores,
            self.final_winner,
        )


@jit
def _reset(options, streams, games, planes, masks, to_move, drawn_phase, rewards, terminated, final_scores, final_winner):
    for index in range(len(games)):
        begin(games, index, *options, streams)
        _show(games[index], planes[index], masks[index], to_move, drawn_phase, index)


@jit
def _step(actions, shares, reward, options, streams, games, *arrays):
    """Step all games on this thread; if an action is illegal, return the game's index and change nothing, else -1."""
    illegal = _first_illegal(games, actions)
    if illegal < 0:
        _step_games(0, len(games), actions, reward, options, streams, games, *arrays)
    return illegal


@jit(parallel=True)
def _step_parallel(actions, shares, reward, options, streams, games, *arrays):
    """The same, with the games shared out among threads."""
    illegal = _first_illegal(games, actions)
    if illegal < 0:
        for share in numba.prange(shares):
            first, stop = len(games) * share // shares, len(games) * (share + 1) // shares
            _step_games(first, stop, actions, reward, options, streams, games, *arrays)
    return illegal


@jit
def _first_illegal(games: Records, actions: npt.NDArray[np.int64]) -> int:
    for index in range(len(games)):
        if not is_legal(games[index], actions[index]):
            return index
    return -1


@jit
def _step_games(
    first, stop, actions, reward, options, streams, games, planes, masks, to_move, drawn_phase, rewards, terminated,
    final_scores, final_winner,
):
    for index in range(first, stop):
        game = games[index]
        play(game, actions[index])
        if terminated[index]:
            rewards[index] = 0.0
        terminated[index] = is_over(game)
        if terminated[index]:
            write_rewards(game, reward, rewards[index])
            for seat in range(game.num_players):
                final_scores[index, seat] = popcount(game.owned[seat])
            final_winner[index] = winner_of(game)
            begin(games, index, *options, streams)
        _show(game, planes[index], masks[index], to_move, drawn_phase, index)


@jit
def _show(game, planes, mask, to_move, drawn_phase, index):
    """Write what the seat to move sees; planes that cannot have changed since the last time are left alone."""
    to_move[index] = game.to_move
    write_legal_mask(game, mask)
    if game.phase != drawn_phase[index] or game.phase == NEUTRAL:
        write_slow_planes(game, game.to_move, planes)
        drawn_phase[index] = game.phase
    write_fast_planes(game, game.to_move, planes)
