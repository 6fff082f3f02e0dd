"""Vector environment for self-play in any game: compiled code steps many games at once on preallocated arrays.

Create it with `vector_env` of a game's module, such as `ninetka_env.ninetka_v0`.
"""

from __future__ import annotations

import functools
import importlib
import os
import weakref
from typing import Any, Literal, NamedTuple, TypeAlias

import numba
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode

from ninetka_env.api import buffer_check
from ninetka_env.api.aec import observation_space
from ninetka_env.api.buffer_check import BufferCheck
from ninetka_env.api.positions import starting_states
from ninetka_env.api.reset_options import ResetOptions, check_reset_mask
from ninetka_env.core.batch import (
    GameOutcomes,
    Indices,
    bytes_per_game,
    make_outcomes,
    option_codes,
    play_and_restart,
    restart_games,
)
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_actions, check_choice, check_count, check_memory
from ninetka_env.core.outcome import REWARDS, UNFINISHED
from ninetka_env.core.random_streams import Streams, make_game_streams
from ninetka_env.core.registry import Variant
from ninetka_env.core.threads import (
    DONE_COUNTER,
    PAUSES_BEFORE_SLEEP,
    TASK,
    Control,
    ThreadTeam,
    atomic_add,
    atomic_load,
    claim,
    close_shares,
    default_num_threads,
    has_unclaimed,
    make_control,
    num_shares,
    open_shares,
    pause,
    result_place,
)
from ninetka_env.core.verbs import (
    OptionCodes,
    State,
    StateArray,
    is_legal,
    random_action,
    stage,
    write_fast_planes,
    write_legal_mask,
    write_slow_planes,
)

Actions = npt.NDArray[np.int64]
Int8s = npt.NDArray[np.int8]
CudaDevice: TypeAlias = Literal[
    "cuda", "cuda:0", "cuda:1", "cuda:2", "cuda:3", "cuda:4", "cuda:5", "cuda:6", "cuda:7"
]  # fmt: skip
"""Names of CUDA devices, for type checkers; PyTorch knows them with higher numbers, too."""

CHUNK_SIZE = 64
"""Number of games that a thread claims at a time."""
MIN_GAMES_PER_THREAD = 512
"""Minimum number of games per thread; with fewer games per thread, an additional thread does not make a step faster."""
CHECK, PLAY, SAMPLE = range(3)
"""The tasks of the threads: check the actions, play them, draw actions."""


class StepArguments(NamedTuple):
    """Arguments of the compiled step."""

    actions: Actions
    """(N,) int64, one action per game: the actions to play, or those that were drawn."""
    reward: int
    """An index into `outcome.REWARDS`."""
    options: OptionCodes
    """(N, k) int64, the encoded options of each game."""
    streams: Streams
    """(2 * N,) uint64; see `make_game_streams`."""
    endings: GameOutcomes
    terminated: npt.NDArray[np.bool_]
    """(N,) bool, whether the last step ended the game."""
    games: StateArray
    planes: Int8s
    """(N, C * H * W) int8, as the seat to move sees each game."""
    masks: Int8s
    """(N, num_actions) int8, 1 for legal actions."""
    to_move: Int8s
    """(N,) int8, the seat that acts next."""
    drawn_stage: Int8s
    """(N,) int8, the stage of each game when `write_slow_planes` was last called; -1 if it has not been called."""


class Buffers(NamedTuple):
    """The arrays into which compiled code writes; see the attributes of `GameVectorEnv` with the same names."""

    observations: Int8s
    action_mask: Int8s
    to_move: Int8s
    rewards: npt.NDArray[np.float32]
    terminated: npt.NDArray[np.bool_]
    final_scores: npt.NDArray[Any]
    final_winner: Int8s
    games: StateArray


class GameVectorEnv:
    """Environment for self-play in N games at once; each step plays one action per game for its seat to move.

    `reset` and `step` overwrite the arrays below: copy the values that you want to keep, and do not write to the
    arrays. With `copy=True` the attributes are new arrays after each call, which are never overwritten. If the
    environment variable `NINETKA_CHECK_BUFFERS` is 1 when the environment is made, `reset` and `step` raise
    `RuntimeError` if an array has been written to.

    A game that ends restarts in the same step (`AutoresetMode.SAME_STEP`), so there is always a seat to move
    and a legal action. Other modes are not supported. They would show the final position, but no learner needs it,
    because the rewards are exact. Every learner would have to handle steps that play no action in some games. With the
    same actions, game i after `reset(seed=s)` equals the game of `raw_env(...)` after `reset(seed=s + i)`.

    Attributes:
        observations: (N, C, H, W) int8, each game as its seat to move sees it.
        action_mask: (N, num_actions) int8, the legal actions of the seat to move.
        to_move: (N,) int8, the seat that acts next.
        rewards: (N, n) float32, per seat; zero except on the step that ends a game.
        terminated: (N,) bool, whether the last step ended the game.
        final_scores: (N, n) of the game's `score_dtype`, the final scores of the last game that has ended in each row.
        final_winner: (N,) int8, the winner of the last game that has ended in each row: a seat or -1 (`DRAWN`); -2
            (`UNFINISHED`) if no game has ended there.
        games: (N,) states, for agents and searches; do not write to them.
    """

    observations: Int8s
    action_mask: Int8s
    to_move: Int8s
    rewards: npt.NDArray[np.float32]
    terminated: npt.NDArray[np.bool_]
    final_scores: npt.NDArray[Any]
    final_winner: Int8s
    games: StateArray

    def __init__(
        self,
        num_envs: int,
        variant: Variant,
        reward: str = "win",
        num_threads: int | None = None,
        copy: bool = False,
    ) -> None:
        """Allocate the arrays and start the games with unseeded random streams; `reset` restarts them.

        Args:
            num_envs: N, the number of games, at least 1.
            variant: the game with its options.
            reward: `"win"` or `"score"`; see `ninetka_env.core.outcome.REWARDS`.
            num_threads: maximum number of threads that step the games; None for one per core.
            copy: whether `reset` and `step` return, and bind the attributes to, new arrays.

        Raises:
            ValueError: if an option is wrong; the message gives its name and the allowed values.
        """
        self.variant = variant
        self.metadata = {"name": variant.definition.version, "autoreset_mode": AutoresetMode.SAME_STEP}
        self._reward = check_choice("reward", reward, REWARDS)
        most = default_num_threads()
        self.num_envs = check_count("num_envs", num_envs)
        check_memory("num_envs", self.num_envs, bytes_per_game(variant))
        threads = most if num_threads is None else min(most, check_count("num_threads", num_threads))
        threads = 1 if numba.config.DISABLE_JIT else threads  # plain Python has no atomic counters
        self._num_helpers = max(1, min(threads, self.num_envs // MIN_GAMES_PER_THREAD)) - 1
        self.single_observation_space = observation_space(variant)
        self.single_action_space = Discrete(variant.num_actions)
        self._endings = make_outcomes(variant.dtype, self.num_envs, variant.num_players)
        self._buffers = Buffers(
            observations=np.zeros((self.num_envs, *variant.sizes.planes), np.int8),
            action_mask=np.zeros((self.num_envs, variant.num_actions), np.int8),
            to_move=np.zeros(self.num_envs, np.int8),
            rewards=self._endings.rewards,
            terminated=np.zeros(self.num_envs, np.bool_),
            final_scores=self._endings.scores,
            final_winner=self._endings.winners,
            games=np.zeros(self.num_envs, variant.dtype),
        )
        self._copy = bool(check_choice("copy", copy, (False, True)))
        self._bind_attributes()
        self._check: BufferCheck | None = None
        self._actions = np.zeros(self.num_envs, np.int64)
        self._options = option_codes(variant, self.num_envs)
        self._control = make_control(self._num_helpers + 1)
        close_shares(self._control, self.num_envs)
        self._team: ThreadTeam | None = None
        self._close_team: weakref.finalize[..., Any] | None = None
        self._drawn_stage = np.full(self.num_envs, -1, np.int8)
        self._streams = make_game_streams(None, self.num_envs)
        self._reset_options = ResetOptions("position", "reset_mask")
        self.reset()
        if buffer_check.is_enabled() and not self._copy:
            self._check = BufferCheck(self._buffers._asdict())

    @property
    def num_players(self) -> int:
        """Number of seats of each game."""
        return self.variant.num_players

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> npt.NDArray[np.int8]:
        """Restart games, by default all, and return `observations`.

        Args:
            seed: the random streams of game i get the seed `seed + i`; None continues the streams. One is used for
                random starts, the other by `sample_legal`.
            options: a dict with these entries; others are ignored, with one warning:

                - `"position"`: the position in which the games start, or a sequence or state array with one for each of
                  the N games; see `ninetka_env.api.positions.starting_states`. Games that start later, in `step`, start
                  normally.
                - `"reset_mask"`: (N,) bool, the games to restart; possibly none. The other games and their random
                  streams do not change. `rewards`, `terminated`, `final_scores` and `final_winner` remain those of the
                  last step for all games. Without a mask, they are cleared.

        Raises:
            ValueError: if the seed, a position or the mask is not valid; nothing changes.
        """
        given = self._reset_options.read(options)
        mask, position = given.get("reset_mask"), given.get("position")
        where = np.ones(self.num_envs, np.bool_) if mask is None else check_reset_mask(mask, self.num_envs)
        states = None if position is None else starting_states(position, self.variant, where)
        streams = None if seed is None else make_game_streams(seed, self.num_envs)
        if self._check is not None:
            self._check.check()
        buffers, indices = self._buffers, np.flatnonzero(where)
        if streams is not None:
            self._streams[:] = np.where(np.tile(where, 2), streams, self._streams)
        if mask is None:
            buffers.rewards[:], buffers.terminated[:], buffers.final_scores[:] = 0, False, 0
            buffers.final_winner[:] = UNFINISHED
        if states is None:
            restart_games(buffers.games, indices, self._options, self._streams)
        else:
            buffers.games[indices] = states
        self._drawn_stage[indices] = -1
        _write_outputs_of(indices, self._step_arguments)
        self._finish_call()
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
        if self._check is not None:
            self._check.check()
        if (illegal := self._run_task(CHECK)) >= 0:
            game = self.variant.game_class(self._buffers.games[illegal : illegal + 1])
            raise ValueError(f"game {illegal}: {game.describe_illegal(int(self._actions[illegal]))}")
        self._finish_call()
        return self.observations, self.rewards, self.terminated

    def sample_legal(self) -> Actions:
        """Return a random legal action for each game, (N,) int64, uniformly drawn from a random stream of the game.

        The array is new. The actions depend only on the seed of `reset` and on the games, not on the number of threads.
        """
        self._run_task(SAMPLE)
        return self._actions.copy()

    def close(self) -> None:
        """End the helper threads; a later step starts new ones."""
        if self._close_team is not None:
            self._close_team()
        self._team = self._close_team = None

    def _finish_call(self) -> None:
        """Give the user new arrays or save the contents of the buffers, if this is asked for."""
        if self._copy:
            self._bind_attributes()
        if self._check is not None:
            self._check.save()

    def _bind_attributes(self) -> None:
        """Bind the public attributes to the buffers or, with `copy=True`, to copies of them."""
        for name, array in self._buffers._asdict().items():
            setattr(self, name, array.copy() if self._copy else array)

    def _run_task(self, task: int) -> int:
        """Do a task together with the helper threads; see `_run`."""
        if self._num_helpers:
            self._wake_helpers()
        return int(_run(self._control, task, *self._step_arguments))

    def _wake_helpers(self) -> None:
        if self._team is None or self._team.pid != os.getpid():  # a fork does not have its parent's threads
            self.close()
            self._team = ThreadTeam(self._num_helpers, _run_helper, self._control, self._step_arguments)
            self._close_team = weakref.finalize(self, self._team.close)
        self._team.wake()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies and pickles, without threads; a copy starts its own helper threads."""
        state = {name: value for name, value in self.__dict__.items() if name != "_step_arguments"}
        return state | {"_team": None, "_close_team": None}

    @functools.cached_property
    def _step_arguments(self) -> StepArguments:
        buffers = self._buffers
        flat = buffers.observations.reshape(self.num_envs, -1)
        return StepArguments(
            self._actions, self._reward, self._options, self._streams, self._endings, buffers.terminated,
            buffers.games, flat, buffers.action_mask, buffers.to_move, self._drawn_stage,
        )  # fmt: skip


def make_vector_env(
    num_envs: int,
    variant: Variant,
    reward: str = "win",
    num_threads: int | None = None,
    copy: bool = False,
    device: str = "cpu",
    validate: bool = False,
) -> Any:
    """Make a `GameVectorEnv`, or on a GPU a `ninetka_env.gpu.vector.DeviceVectorEnv`; see there for the arguments.

    Raises:
        ValueError: if an option is wrong, or has no meaning on the device; the message gives its name and the allowed
            values.
        ImportError: if PyTorch is not installed, which games on a GPU need.
        RuntimeError: if there is no such GPU, or numba-cuda is not installed.
    """
    if device == "cpu":
        check_choice("validate", validate, (False, True))  # a step on the CPU always checks the actions
        return GameVectorEnv(num_envs, variant, reward, num_threads, copy)
    for name, value, default in (("num_threads", num_threads, None), ("copy", copy, False)):
        if value != default:
            raise ValueError(f"{name}={value!r}: expected {default!r} with device={device!r}")
    try:
        module = importlib.import_module("ninetka_env.gpu.vector")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(f'device={device!r}: games on a GPU need PyTorch: pip install -e ".[gpu]"') from error
    return module.DeviceVectorEnv(num_envs, variant, reward, device, validate)


@jit(refcount=False)
def _write_outputs_of(indices: Indices, work: StepArguments) -> None:
    """Write the outputs of the games at `indices`."""
    for index in indices:
        _write_outputs(work.games[index], work.planes[index], work.masks[index], work.to_move, work.drawn_stage, index)


@jit(refcount=False)
def _run(control: Control, task: int, *fields: Any) -> int:
    """Do a task for all games, together with the helper threads, and return -1; `CHECK` is followed by `PLAY`.

    If an action is illegal, return the index of the first such game and change nothing. The fields of `StepArguments`
    are separate arguments, because numba takes 2 microseconds longer to find the type of a named tuple.
    """
    work = StepArguments(*fields)
    count, shares = len(work.games), num_shares(control)
    while True:
        for share in range(shares):
            control[result_place(share)] = count
        open_shares(control, count, task)
        _work_on_claimed(control, 0, count if shares == 1 else CHUNK_SIZE, work)
        while atomic_load(control, DONE_COUNTER) < count:
            pause()
        if task != CHECK:
            return -1
        illegal = count
        for share in range(shares):
            illegal = min(illegal, control[result_place(share)])
        if illegal < count:
            return illegal
        task = PLAY


@jit(refcount=False)
def _run_helper(control: Control, share: int, work: StepArguments) -> None:
    """Help with every task that starts; return after `PAUSES_BEFORE_SLEEP` pauses without a task."""
    idle = 0
    while idle < PAUSES_BEFORE_SLEEP:
        idle += 1
        pause()
        if has_unclaimed(control, share, len(work.games)):
            _work_on_claimed(control, share, CHUNK_SIZE, work)
            idle = 0


@jit(inline=True, refcount=False)
def _work_on_claimed(control: Control, share: int, chunk: int, work: StepArguments) -> None:
    """Claim `chunk` games at a time and do the current task for them, until none is left; then count them as done.

    The result of `CHECK` is the first game whose action is illegal. Inlined, because otherwise numba would compile all
    that this function calls once more.
    """
    done = 0
    while True:
        first, stop = claim(control, share, len(work.games), chunk)
        if first == stop:
            break
        task = atomic_load(control, TASK)
        if task == PLAY:
            _play_games(first, stop, work)
        elif task == CHECK:
            for index in range(first, stop):
                if not is_legal(work.games[index], work.actions[index]):
                    control[result_place(share)] = min(control[result_place(share)], index)
        else:
            for index in range(first, stop):
                work.actions[index] = random_action(work.games[index], work.streams, len(work.games) + index)
        done += stop - first
    atomic_add(control, DONE_COUNTER, done)


@jit(inline=True, refcount=False)
def _play_games(first: int, stop: int, work: StepArguments) -> None:
    for index in range(first, stop):
        game = work.games[index]
        play_and_restart(
            game, index, work.actions[index], work.reward, work.options[index], work.streams, work.terminated,
            work.endings,
        )  # fmt: skip
        if work.terminated[index]:
            work.drawn_stage[index] = -1
        _write_outputs(game, work.planes[index], work.masks[index], work.to_move, work.drawn_stage, index)


@jit(inline=True, refcount=False)
def _write_outputs(game: State, planes: Int8s, mask: Int8s, to_move: Int8s, drawn_stage: Int8s, index: int) -> None:
    """Write the outputs for the seat to move; call `write_slow_planes` only if the stage has changed."""
    to_move[index] = game.to_move
    write_legal_mask(game, mask)
    now = stage(game)
    if now != drawn_stage[index]:
        write_slow_planes(game, game.to_move, planes)
        drawn_stage[index] = now
    write_fast_planes(game, game.to_move, planes)
