"""The kernels of a batch: one thread per game plays it with the verbs; a block of threads writes its outputs.

The arguments are arrays as in `ninetka_env.api.vector.StepArguments`, on the device.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import cuda

from ninetka_env.core.batch import GameOutcomes, play_and_restart
from ninetka_env.core.verbs import is_legal, random_action, start, write_legal_mask, write_observation

NO_ACTION = int(np.iinfo(np.int64).min)
"""In the array of illegal actions: the game has none."""
SHARED_BYTES = 48 * 1024
"""Shared memory of a block that every GPU has (CUDA C++ Programming Guide, table of technical specifications)."""


@cuda.jit
def start_games(games: Any, chosen: Any, options: Any, streams: Any) -> None:
    """Start the chosen games."""
    index = cuda.grid(1)
    if index < len(games) and chosen[index]:
        start(games[index], options, streams, index)


@cuda.jit
def sample_actions(games: Any, streams: Any, actions: Any) -> None:
    """Draw a random legal action for each game; see `GameVectorEnv.sample_legal`."""
    index = cuda.grid(1)
    if index < len(games):
        actions[index] = random_action(games[index], streams, len(games) + index)


@cuda.jit
def step_games(
    games: Any, actions: Any, illegal: Any, options: Any, streams: Any, reward: int, terminated: Any, winners: Any,
    scores: Any, rewards: Any, targets: Any,
) -> None:  # fmt: skip
    """Play the actions; a game whose action is illegal is not played any more until `illegal` is cleared."""
    index = cuda.grid(1)
    if index >= len(games):
        return
    if illegal[index] == NO_ACTION and is_legal(games[index], actions[index]):
        outcomes = GameOutcomes(winners, scores, rewards, targets)
        play_and_restart(games[index], index, actions[index], reward, options, streams, terminated, outcomes)
        return
    if illegal[index] == NO_ACTION:
        illegal[index] = max(actions[index], NO_ACTION + 1)
    terminated[index] = False
    for seat in range(rewards.shape[1]):
        rewards[index, seat] = 0.0


@functools.cache
def output_kernel(planes_size: int, games_per_block: int) -> Any:
    """Return the kernel that writes observations, masks and seats to move, for observations of `planes_size` bytes.

    A thread writes a game's planes to shared memory, from where all threads of the block copy them in whole lines.
    """
    block_size = planes_size * games_per_block

    @cuda.jit
    def write_outputs(games: Any, planes: Any, masks: Any, to_move: Any) -> None:
        staged = cuda.shared.array(block_size, np.int8)
        thread, first = cuda.threadIdx.x, cuda.blockIdx.x * games_per_block
        count = min(games_per_block, len(games) - first)
        if thread < count:
            game = games[first + thread]
            to_move[first + thread] = game.to_move
            write_legal_mask(game, masks[first + thread])
            write_observation(game, game.to_move, staged[thread * planes_size : (thread + 1) * planes_size])
        cuda.syncthreads()
        for place in range(thread, count * planes_size, cuda.blockDim.x):
            planes[first * planes_size + place] = staged[place]

    return write_outputs


def games_per_block(planes_size: int) -> int:
    """Return the number of games whose planes fit into the shared memory of a block, at most 16."""
    return max(1, min(16, SHARED_BYTES // planes_size))
