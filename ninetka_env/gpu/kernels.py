"""The kernels of a batch: one thread per game plays it with the verbs; a block of threads writes its outputs.

The arguments are arrays as in `ninetka_env.api.vector.StepArguments`, on the device.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numba import cuda

from ninetka_env.core.batch import GameOutcomes, play_and_restart
from ninetka_env.core.bits import Words, num_words
from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import (
    is_legal,
    random_action,
    start,
    write_legal_bits,
    write_legal_mask,
    write_observation,
    write_observation_bits,
    writes_bits,
)
from ninetka_env.gpu.device import jit_kernel

NO_ACTION = int(np.iinfo(np.int64).min)
"""In the array of illegal actions: the game has none."""
SHARED_BYTES = 48 * 1024
"""Shared memory of a block that every GPU has (CUDA C++ Programming Guide, table of technical specifications)."""

MAX_GAMES_PER_BLOCK = 64
"""Of the kernel that writes bits."""
WORD_BYTES = 4


@jit_kernel
def start_games(games: Any, chosen: Any, options: Any, streams: Any) -> None:
    """Start the chosen games."""
    index = cuda.grid(1)
    if index < len(games) and chosen[index]:
        start(games[index], options, streams, index)


@jit_kernel
def sample_actions(games: Any, streams: Any, actions: Any) -> None:
    """Draw a random legal action for each game; see `GameVectorEnv.sample_legal`."""
    index = cuda.grid(1)
    if index < len(games):
        actions[index] = random_action(games[index], streams, len(games) + index)


@jit_kernel
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


class OutputKernel(NamedTuple):
    """A kernel that writes observations, masks and seats to move; each block writes those of a number of games.

    Its arguments are the games, the observations and the masks, both as flat arrays with elements of `dtype`, and the
    seats to move.
    """

    kernel: Any
    games_per_block: int
    dtype: type[np.generic]


@functools.cache
def output_kernel(dtype: np.dtype[Any], planes_size: int, num_actions: int) -> OutputKernel:
    """Return the kernel that writes the outputs of games with this dtype.

    Args:
        dtype: the dtype of the states.
        planes_size: number of bytes of an observation.
        num_actions: number of bytes of a mask.
    """
    stride = (num_words(planes_size) + num_words(num_actions)) | 1  # odd: threads then use different memory banks
    count = min(MAX_GAMES_PER_BLOCK, SHARED_BYTES // (WORD_BYTES * stride) // 8 * 8)
    if count and writes_bits(dtype):
        return OutputKernel(_bits_kernel(planes_size, num_actions, stride, count), count, np.uint64)
    count = max(1, min(16, SHARED_BYTES // planes_size))
    return OutputKernel(_bytes_kernel(planes_size, num_actions, count), count, np.int8)


def _bytes_kernel(planes_size: int, num_actions: int, games_per_block: int) -> Any:
    """Return the kernel for any game.

    A thread writes a game's planes to shared memory, from where all threads of the block copy them in whole lines.
    """
    block_size = planes_size * games_per_block

    @jit_kernel
    def write_outputs(games: Any, planes: Any, masks: Any, to_move: Any) -> None:
        staged = cuda.shared.array(block_size, np.int8)
        thread, first = cuda.threadIdx.x, cuda.blockIdx.x * games_per_block
        count = min(games_per_block, len(games) - first)
        if thread < count:
            index = first + thread
            game = games[index]
            to_move[index] = game.to_move
            write_legal_mask(game, masks[index * num_actions : (index + 1) * num_actions])
            write_observation(game, game.to_move, staged[thread * planes_size : (thread + 1) * planes_size])
        cuda.syncthreads()
        for place in range(thread, count * planes_size, cuda.blockDim.x):
            planes[first * planes_size + place] = staged[place]

    return write_outputs


def _bits_kernel(planes_size: int, num_actions: int, stride: int, games_per_block: int) -> Any:
    """Return the kernel for games that write bits.

    A thread writes a game's bits to shared memory: the planes, then the mask, in `stride` words. All threads of the
    block spread the bits to bytes, eight at a time. `games_per_block` is a multiple of 8, so that the bytes of each
    block begin at a multiple of 8.
    """
    planes_words, words = num_words(planes_size), num_words(planes_size) + num_words(num_actions)
    block_words = games_per_block * stride + 1  # `read_eight_bits` reads one word more

    @jit_kernel
    def write_outputs(games: Any, planes: Any, masks: Any, to_move: Any) -> None:
        staged = cuda.shared.array(block_words, np.uint32)
        thread, first = cuda.threadIdx.x, cuda.blockIdx.x * games_per_block
        count = min(games_per_block, len(games) - first)
        if thread < count:
            game, start = games[first + thread], thread * stride
            to_move[first + thread] = game.to_move
            write_observation_bits(game, game.to_move, staged[start : start + planes_words])
            write_legal_bits(game, staged[start + planes_words : start + words])
        cuda.syncthreads()
        for place in range(thread, (count * planes_size + 7) // 8, cuda.blockDim.x):
            planes[first // 8 * planes_size + place] = spread(read_eight_bits(staged, 0, stride, planes_size, place))
        for place in range(thread, (count * num_actions + 7) // 8, cuda.blockDim.x):
            bits = read_eight_bits(staged, planes_words, stride, num_actions, place)
            masks[first // 8 * num_actions + place] = spread(bits)

    return write_outputs


@jit(inline=True)
def read_eight_bits(words: Words, first: int, stride: int, size: int, place: int) -> np.uint32:
    """Return the bits of the eight elements `8 * place` to `8 * place + 7` of several games.

    Most numbers are uint32, because a GPU computes with 32 bits.

    Args:
        words: the words of all games.
        first: the index of the first word of game 0.
        stride: the distance between the first words of two games.
        size: number of elements of a game.
        place: the number of the eight elements. Bits of elements after the last game are undefined.
    """
    element = np.uint32(8 * place)
    game = np.uint32(element // np.uint32(size))
    offset = np.uint32(element - np.uint32(game * np.uint32(size)))
    word = np.uint32(np.uint32(game * np.uint32(stride)) + np.uint32(first + (offset >> np.uint32(5))))
    pair = np.uint64(words[word]) | np.uint64(words[word + np.uint32(1)]) << np.uint64(32)
    bits = np.uint32((pair >> np.uint64(offset & np.uint32(31))) & np.uint64(255))
    known = size - np.int64(offset)  # the elements of this game
    while known < 8:
        game = np.uint32(game + np.uint32(1))
        bits = np.uint32(bits & np.uint32((1 << known) - 1))
        bits = np.uint32(bits | np.uint32((np.int64(words[first + game * stride]) << known) & 255))
        known += size
    return bits


@jit(inline=True)
def spread(bits: np.uint32) -> np.uint64:
    """Return eight bytes of 0 and 1, the first in the lowest byte, from eight bits.

    The product has four copies of four bits; in each, another of these bits is the lowest bit of a byte.
    """
    low = np.uint32((bits & np.uint32(15)) * np.uint32(0x00204081)) & np.uint32(0x01010101)
    high = np.uint32((bits >> np.uint32(4)) * np.uint32(0x00204081)) & np.uint32(0x01010101)
    return np.uint64(low) | np.uint64(high) << np.uint64(32)
