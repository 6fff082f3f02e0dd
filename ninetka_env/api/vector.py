"""Vector environment for self-play, for every game: compiled code steps many games at once on preallocated arrays.

Users make it with `vector_env` of a game's module, such as `ninetka_env.ninetka_v0`.
"""

from __future__ import annotations

import functools
import os
import weakref
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode

from ninetka_env.api.aec import observation_space
from ninetka_env.core.batch import Endings, begin, bytes_per_game, codes_of, first_illegal, make_endings, write_ending
from ninetka_env.core.chance import Streams, make_streams
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_actions, check_choice, check_count, check_memory
from ninetka_env.core.outcome import REWARDS, UNFINISHED
from ninetka_env.core.registry import Variant
from ninetka_env.core.threads import (
    DONE,
    PAUSES,
    Control,
    ThreadTeam,
    add,
    claim,
    close_shares,
    look,
    make_control,
    most_threads,
    open_shares,
    pause,
    waits,
)
from ninetka_env.core.verbs import (
    Codes,
    Record,
    Records,
    is_over,
    play,
    stage,
    start,
    write_fast_planes,
    write_legal_mask,
    write_slow_planes,
)

Actions = npt.NDArray[np.int64]
Int8s = npt.NDArray[np.int8]

CHUNK = 64
"""Number of games that a thread claims at a time."""
GAMES_PER_THREAD = 512
"""Minimum number of games per thread; with fewer games another thread does not make a step faster."""


class Work(NamedTuple):
    """Arguments of the compiled step."""

    actions: Actions
    """(N,) int64, one action per game."""
    reward: int
    """An index of `outcome.REWARDS`."""
    options: Codes
    """(N, k) int64, the encoded options of each game."""
    streams: Streams
    """(N,) uint64, one per game."""
    endings: Endings
    terminated: npt.NDArray[np.bool_]
    """(N,) bool, whether the last step ended the game."""
    games: Records
    planes: Int8s
    """(N, C * H * W) int8, as the seat to move sees each game."""
    masks: Int8s
    """(N, num_actions) int8, 1 for legal actions."""
    to_move: Int8s
    """(N,) int8, the seat that acts next."""
    drawn_stage: Int8s
    """(N,) int8, the stage of each game when its slow planes were written last; -1 if they have not been written."""


class GameVectorEnv:
    """Environment for self-play in N games at once; each step plays one action per game for its seat to move.

    `reset` and `step` overwrite the arrays below, so copy what you keep, and do not write to them. A game that ends
    restarts in the same step (`AutoresetMode.SAME_STEP`), so there is always a seat to move and a legal action. Other
    modes are not supported: a learner does not need the final position, because its rewards are exact, and every
    learner would have to handle rows in which no action is played. Game i after `reset(seed=s)` equals, action for
    action, the game of `raw_env(...)` after `reset(seed=s + i)`.

    Attributes:
        observations: (N, C, H, W) int8, each game as its seat to move sees it.
        action_mask: (N, num_actions) int8, the legal actions of the seat to move.
        to_move: (N,) int8, the seat that acts next.
        rewards: (N, n) float32, per seat; zero except on the step that ends a game.
        terminated: (N,) bool, whether the last step ended the game.
        final_scores: (N, n) of the game's `score_dtype`, the scores at the end of each slot's last finished game.
        final_winner: (N,) int8, the winner of that game: a seat or -1 (`DRAWN`); -2 (`UNFINISHED`) if the slot has
            finished no game.
        games: (N,) states, for agents and searches; do not write to them.
    """

    def __init__(self, num_envs: int, variant: Variant, reward: str = "win", num_threads: int | None = None) -> None:
        """Allocate the arrays and start the games with unseeded random streams; `reset` restarts them.

        Args:
            num_envs: N, the number of games, at least 1.
            variant: the game with its options.
            reward: `"win"` or `"score"`; see `ninetka_env.core.outcome.REWARDS`.
            num_threads: maximum number of threads that step the games; None for one per core.

        Raises:
            ValueError: if an option is wrong; the message gives its name and the allowed values.
        """
        self.variant = variant
        self.metadata = {"name": variant.definition.version, "autoreset_mode": AutoresetMode.SAME_STEP}
        self._reward = check_choice("reward", reward, REWARDS)
        most = most_threads()
        self.num_envs = check_count("num_envs", num_envs)
        check_memory("num_envs", self.num_envs, bytes_per_game(variant))
        threads = most if num_threads is None else min(most, check_count("num_threads", num_threads))
        threads = 1 if numba.config.DISABLE_JIT else threads  # plain Python has no atomic counters
        self._helpers = max(1, min(threads, self.num_envs // GAMES_PER_THREAD)) - 1
        self.single_observation_space = observation_space(variant)
        self.single_action_space = Discrete(variant.num_actions)
        self.games = np.zeros(self.num_envs, variant.dtype)
        self.observations = np.zeros((self.num_envs, *variant.sizes.planes), np.int8)
        self.action_mask = np.zeros((self.num_envs, variant.num_actions), np.int8)
        self.to_move = np.zeros(self.num_envs, np.int8)
        self.terminated = np.zeros(self.num_envs, np.bool_)
        self._endings = make_endings(variant.dtype, self.num_envs, variant.num_players)
        self._everywhere = np.arange(self.num_envs)
        self._actions = np.zeros(self.num_envs, np.int64)
        self._options = codes_of(variant, self.num_envs)
        self._control = make_control(self._helpers + 1)
        close_shares(self._control, self.num_envs)
        self._team: ThreadTeam | None = None
        self._drawn_stage = np.full(self.num_envs, -1, np.int8)
        self._streams = make_streams(None, self.num_envs)
        self.reset()

    @property
    def num_players(self) -> int:
        """Number of seats of each game."""
        return self.variant.num_players

    @property
    def rewards(self) -> npt.NDArray[np.float32]:
        """(N, n) float32, per seat; zero except on the step that ends a game."""
        return self._endings.rewards

    @property
    def final_scores(self) -> npt.NDArray[Any]:
        """(N, n), the scores at the end of each slot's last finished game."""
        return self._endings.scores

    @property
    def final_winner(self) -> npt.NDArray[np.int8]:
        """(N,) int8, the winner of each slot's last finished game or `DRAWN`; `UNFINISHED` before the first."""
        return self._endings.winners

    def reset(self, seed: int | None = None) -> npt.NDArray[np.int8]:
        """Restart all games and return `observations`.

        Args:
            seed: game i gets the random stream of seed + i for what is drawn before its first turn; None continues the
                streams.
        """
        if seed is not None:
            self._streams[:] = make_streams(seed, self.num_envs)
        for array in (self.rewards, self.terminated, self.final_scores):
            array[:] = 0
        self.final_winner[:] = UNFINISHED
        self._drawn_stage[:] = -1
        begin(self.games, self._everywhere, self._options, self._streams)
        _show_all(self._work)
        return self.observations

    def step(
        self, actions: npt.ArrayLike
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """Play one action in every game and return `observations`, `rewards` and `terminated`.

        Args:
            actions: (N,) integers, one legal action per game for its seat to move.

        Raises:
            ValueError: if the shape is wrong or an action is illegal; the message names the game, the action and the
                legal actions, and no game has changed.
            TypeError: if the actions are not integers.
        """
        self._actions[:] = check_actions(actions, self.num_envs)
        if self._helpers:
            self._call_helpers()
        if (illegal := _step(self._control, *self._work)) >= 0:
            game = self.variant.game_class(self.games[illegal : illegal + 1])
            raise ValueError(f"game {illegal}: {game.describe_illegal(int(self._actions[illegal]))}")
        return self.observations, self.rewards, self.terminated

    def close(self) -> None:
        """End the helper threads; a later step starts new ones."""
        if self._team is not None:
            self._team.close()
            self._team = None

    def _call_helpers(self) -> None:
        if self._team is None or self._team.process != os.getpid():  # a forked process has no threads of its parent
            self._team = ThreadTeam(self._helpers, _watch, self._control, self._work)
            weakref.finalize(self, self._team.close)
        self._team.wake()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies and pickles, without threads; a copy starts its own helper threads."""
        return {name: value for name, value in self.__dict__.items() if name != "_work"} | {"_team": None}

    @functools.cached_property
    def _work(self) -> Work:
        flat = self.observations.reshape(self.num_envs, -1)
        return Work(
            self._actions, self._reward, self._options, self._streams, self._endings, self.terminated, self.games,
            flat, self.action_mask, self.to_move, self._drawn_stage,
        )  # fmt: skip


@jit(counted=False)
def _show_all(work: Work) -> None:
    for index in range(len(work.games)):
        _show(work.games[index], work.planes[index], work.masks[index], work.to_move, work.drawn_stage, index)


@jit(counted=False)
def _step(control: Control, *fields: Any) -> int:
    """Play the actions in all games, together with the helper threads, and return -1.

    If an action is illegal, return the index of the first such game and change nothing. The fields of `Work` are
    separate arguments, because numba takes 2 microseconds longer to find the type of a named tuple.
    """
    work = Work(*fields)
    illegal = first_illegal(work.games, work.actions)
    if illegal >= 0:
        return illegal
    open_shares(control, len(work.actions))
    _step_claimed(control, 0, work)
    while look(control, DONE) < len(work.actions):
        pause()
    return -1


@jit(counted=False)
def _watch(control: Control, share: int, work: Work) -> None:
    """Run a helper thread: help with every step that starts, and return after `PAUSES` pauses without a step."""
    idle = 0
    while idle < PAUSES:
        idle += 1
        pause()
        if waits(control, share, len(work.actions)):
            _step_claimed(control, share, work)
            idle = 0


@jit(counted=False)
def _step_claimed(control: Control, share: int, work: Work) -> None:
    while True:
        first, stop = claim(control, share, len(work.actions), CHUNK)
        if first == stop:
            return
        _step_games(first, stop, work)
        add(control, DONE, stop - first)


@jit(counted=False)
def _step_games(first: int, stop: int, work: Work) -> None:
    for index in range(first, stop):
        game = work.games[index]
        play(game, work.actions[index])
        if work.terminated[index]:
            work.endings.rewards[index] = 0.0
        work.terminated[index] = is_over(game)
        if work.terminated[index]:
            write_ending(game, index, work.reward, work.endings)
            start(game, work.options[index], work.streams, index)
            work.drawn_stage[index] = -1
        _show(game, work.planes[index], work.masks[index], work.to_move, work.drawn_stage, index)


@jit(inline=True, counted=False)
def _show(game: Record, planes: Int8s, mask: Int8s, to_move: Int8s, drawn_stage: Int8s, index: int) -> None:
    """Write the outputs for the seat to move; write the slow planes only if the stage has changed."""
    to_move[index] = game.to_move
    write_legal_mask(game, mask)
    now = stage(game)
    if now != drawn_stage[index]:
        write_slow_planes(game, game.to_move, planes)
        drawn_stage[index] = now
    write_fast_planes(game, game.to_move, planes)
