"""Batched self-play: many games stepped at once by compiled code, on arrays that the environment owns and reuses."""

from __future__ import annotations

import functools
import os
import weakref
from typing import Any, ClassVar

import numba
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode

from ninetka_env.core.jit import jit, popcount
from ninetka_env.core.threads import (
    DONE,
    PATIENCE,
    Control,
    Crew,
    add,
    claim,
    close_shares,
    look,
    make_control,
    open_shares,
    pause,
    waits,
)
from ninetka_env.api.aec import observation_space
from ninetka_env.core.chance import Streams, make_streams
from ninetka_env.games.ninetka.game import Game, begin, check_actions, check_choice, check_count, check_options, describe_illegal
from ninetka_env.games.ninetka.geometry import NUM_ACTIONS
from ninetka_env.games.ninetka.observation import SHAPE, write_fast_planes, write_slow_planes
from ninetka_env.games.ninetka.rewards import REWARDS, write_rewards
from ninetka_env.games.ninetka.rules import GAME, Record, Records, is_legal, is_over, play, winner_of, write_legal_mask

Actions = npt.NDArray[np.int64]
Int8s = npt.NDArray[np.int8]

CHUNK = 64
"""Games that a thread claims at a time."""
GAMES_PER_THREAD = 512
"""Games for which a further thread is worth its while."""


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
        games: (N,) records of dtype `ninetka_env.games.ninetka.rules.GAME`, for agents and searches; not to be written.
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
        """Make the arrays and start the games; `reset` starts them anew, from a seed if you like.

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
        threads = 1 if numba.config.DISABLE_JIT else threads  # plain Python has no atomic counters
        self._helpers = max(1, min(threads, self.num_envs // GAMES_PER_THREAD)) - 1
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
        self._actions = np.zeros(self.num_envs, np.int64)
        self._control = make_control(self._helpers + 1)
        close_shares(self._control, self.num_envs)
        self._crew: Crew | None = None
        self._drawn_phase = np.full(self.num_envs, -1, np.int8)
        self._streams = make_streams(None, self.num_envs)
        self.reset()

    def reset(self, seed: int | None = None) -> npt.NDArray[np.int8]:
        """Start all games anew and return `observations`.

        `seed` gives game i the stream of seed + i for its random neutral stones; None lets the streams go on.
        """
        if seed is not None:
            self._streams[:] = make_streams(seed, self.num_envs)
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
        self._actions[:] = check_actions(actions, self.num_envs)
        if self._helpers:
            self._call_helpers()
        if (illegal := _step(self._control, *self._work)) >= 0:
            game = Game(self.games[illegal : illegal + 1])
            raise ValueError(f"game {illegal}: {describe_illegal(game, int(self._actions[illegal]))}")
        return self.observations, self.rewards, self.terminated

    def _call_helpers(self) -> None:
        if self._crew is None or self._crew.process != os.getpid():  # threads stay behind when a process forks
            self._crew = Crew(self._helpers, _watch, self._control, *self._work)
            weakref.finalize(self, self._crew.close)
        self._crew.wake()

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles get helpers of their own."""
        return {name: value for name, value in self.__dict__.items() if name != "_work"} | {"_crew": None}

    @functools.cached_property
    def _work(self) -> tuple[Any, ...]:
        """What the compiled step works on."""
        return self._actions, self._reward, self._options, self._streams, *self._arrays()

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
def _reset(
    options: tuple[int, int, int, int],
    streams: Streams,
    games: Records,
    planes: Int8s,
    masks: Int8s,
    to_move: Int8s,
    drawn_phase: Int8s,
    *results: Any,
) -> None:
    for index in range(len(games)):
        begin(games, index, *options, streams)
        _show(games[index], planes[index], masks[index], to_move, drawn_phase, index)


@jit
def _step(
    control: Control, actions: Actions, reward: int, options: Any, streams: Streams, games: Records, *arrays: Any
) -> int:
    """Play `actions` in all games, together with whoever watches the counters, and return -1 when all are done.

    If an action is illegal, return the number of its game instead and change nothing.
    """
    illegal = _first_illegal(games, actions)
    if illegal >= 0:
        return illegal
    open_shares(control, len(actions))
    _step_claimed(control, 0, actions, reward, options, streams, games, *arrays)
    while look(control, DONE) < len(actions):
        pause()
    return -1


@jit
def _watch(control: Control, share: int, actions: Actions, *work: Any) -> None:
    """Help with every step that begins, until none has begun for a while."""
    idle = 0
    while idle < PATIENCE:
        idle += 1
        pause()
        if waits(control, share, len(actions)):
            _step_claimed(control, share, actions, *work)
            idle = 0


@jit
def _step_claimed(control: Control, share: int, actions: Actions, *work: Any) -> None:
    while True:
        first, stop = claim(control, share, len(actions), CHUNK)
        if first == stop:
            return
        _step_games(first, stop, actions, *work)
        add(control, DONE, stop - first)


@jit
def _first_illegal(games: Records, actions: Actions) -> int:
    for index in range(len(games)):
        if not is_legal(games[index], actions[index]):
            return index
    return -1


@jit
def _step_games(
    first: int,
    stop: int,
    actions: Actions,
    reward: int,
    options: tuple[int, int, int, int],
    streams: Streams,
    games: Records,
    planes: Int8s,
    masks: Int8s,
    to_move: Int8s,
    drawn_phase: Int8s,
    rewards: npt.NDArray[np.float32],
    terminated: npt.NDArray[np.bool_],
    final_scores: Int8s,
    final_winner: Int8s,
) -> None:
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


@jit(inline=True)
def _show(game: Record, planes: Int8s, mask: Int8s, to_move: Int8s, drawn_phase: Int8s, index: int) -> None:
    """Write what the seat to move sees; planes that cannot have changed since the last time are left alone."""
    to_move[index] = game.to_move
    write_legal_mask(game, mask)
    if game.phase != drawn_phase[index]:
        write_slow_planes(game, game.to_move, planes)
        drawn_phase[index] = game.phase
    write_fast_planes(game, game.to_move, planes)
