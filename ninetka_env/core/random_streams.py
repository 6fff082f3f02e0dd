"""Random numbers for compiled code: one SplitMix64 stream per game, so that results do not depend on threads.

Start reading at `make_streams` and `draw`.

A stream is one uint64 in an array, and every draw advances it. SplitMix64 is from Steele, Lea and Flood, "Fast
splittable pseudorandom number generators", OOPSLA 2014 (the finaliser's constants are David Stafford's mix 13).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit, popcount, readonly_array
from ninetka_env.core.options import short_repr

Streams = npt.NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)
_ACTIONS = np.uint64(0xA0761D6478BD642F)
"""Any constant: two states that differ are positions of the same sequence of 2**64 words, most likely far apart."""


def is_seed(value: Any) -> bool:
    """Return whether a value is an integer of at least 0, and no bool."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= 0


def check_seed(seed: Any) -> int | None:
    """Return a seed as an int, or None; raise `ValueError` for other values."""
    if seed is not None and not is_seed(seed):
        raise ValueError(f"seed={short_repr(seed)}: expected an integer of at least 0, or None")
    return None if seed is None else int(seed)


def make_streams(seed: int | None, count: int = 1) -> Streams:
    """Return `count` random streams, (count,) uint64; stream i equals `make_streams(seed + i)[0]`.

    `seed=None` draws fresh entropy from the operating system.
    """
    seed, count = check_seed(seed), int(count)
    if seed is None:
        return np.asarray(np.random.SeedSequence().generate_state(count, np.uint64), np.uint64)
    if count > _MANY and seed + count <= 1 << 64:
        return _seed_words(np.uint64(seed) + np.arange(count, dtype=np.uint64))
    words = [np.random.SeedSequence(seed + i).generate_state(1, np.uint64)[0] for i in range(count)]
    return np.array(words, np.uint64)


_MANY = 32
"""For more seeds than this, `_seed_words` is faster than numpy's objects."""


def _seed_words(seeds: Streams) -> Streams:
    """Return `np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]` for each of (N,) seeds below 2**64.

    This is numpy's algorithm, seed_seq_fe of O'Neill, "Developing a seed_seq alternative", 2015, with four words of
    entropy, two of which are 0 here.
    """
    low, high, zeros = seeds & np.uint64(0xFFFFFFFF), seeds >> np.uint64(32), np.zeros_like(seeds)
    first_factors, last_factors = _factors(0x43B0D7E5, 0x931E8875, 17), _factors(0x8B51F9DD, 0x58F38DED, 3)
    entropy = [words.astype(np.uint32) for words in (low, high, zeros, zeros)]
    pool = [_hash(words, first_factors, number) for number, words in enumerate(entropy)]
    pairs = [(source, target) for source in range(4) for target in range(4) if source != target]
    for number, (source, target) in enumerate(pairs, len(pool)):
        hashed = _hash(pool[source], first_factors, number)
        pool[target] = _fold(np.uint32(0xCA01F9DD) * pool[target] - np.uint32(0x4973F715) * hashed)
    low, high = (_hash(words, last_factors, number).astype(np.uint64) for number, words in enumerate(pool[:2]))
    return np.asarray(low | high << np.uint64(32))


def _factors(first: int, factor: int, count: int) -> npt.NDArray[np.uint32]:
    """Return `first` times the powers of `factor` from 0 on, modulo 2**32."""
    return np.array([first * pow(factor, power, 1 << 32) % (1 << 32) for power in range(count)], np.uint32)


def _hash(words: npt.NDArray[np.uint32], factors: npt.NDArray[np.uint32], number: int) -> npt.NDArray[np.uint32]:
    return _fold((words ^ factors[number]) * factors[number + 1])


def _fold(words: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    return words ^ words >> np.uint32(16)


def make_game_streams(seed: int | None, count: int) -> Streams:
    """Return two random streams per game, (2 * count,) uint64: `make_streams` for its starts, then for its actions."""
    starts = make_streams(seed, count)
    return np.concatenate([starts, starts ^ _ACTIONS])


@jit
def draw(streams: Streams, index: int) -> np.uint64:
    """Draw the next 64 random bits from stream `index`."""
    streams[index] += _GOLDEN
    word = streams[index]
    word = (word ^ (word >> np.uint64(30))) * _MIX_A
    word = (word ^ (word >> np.uint64(27))) * _MIX_B
    return word ^ (word >> np.uint64(31))


@jit
def draw_each(streams: Streams, words: Streams) -> None:
    """Fill `words`, (N,) uint64: word i is drawn from stream i."""
    for index in range(len(words)):
        words[index] = draw(streams, index)


@jit
def draw_many(streams: Streams, words: Streams) -> None:
    """Fill `words`, (N,) uint64: all words are drawn from stream 0."""
    for index in range(len(words)):
        words[index] = draw(streams, 0)


@jit
def draw_below(streams: Streams, index: int, bound: int) -> int:
    """Draw an int from 0..bound-1, uniform to within 2**-32 (Lemire's multiply and shift)."""
    word = (draw(streams, index) >> np.uint64(32)) * np.uint64(bound)
    return np.int64(word >> np.uint64(32))  # type: ignore[return-value]  # numba turns int64 with uint64 into float64


@jit
def draw_set_bit(streams: Streams, index: int, bits: int) -> int:
    """Draw the index of a set bit of `bits`, uniformly; `bits` must not be 0."""
    return nth_set_bit(bits, draw_below(streams, index, popcount(bits)))


_NTH_SET_BIT = readonly_array([([i for i in range(9) if bits >> i & 1] + [0] * 9)[:9] for bits in range(512)], np.int8)
"""(512, 9) int8: the indices of the set bits of each 9-bit number, ascending, padded with 0."""


@jit
def nth_set_bit(bits: int, n: int) -> int:
    """Return the index of set bit number `n`, counted from 0, of a number with up to 63 bits.

    The code is branch-free, because random data would defeat branch prediction.
    """
    place = 0
    for width in (36, 18, 9):
        below = popcount(bits & ((1 << width) - 1))
        above = int(n >= below)
        n -= above * below
        bits >>= above * width
        place += above * width
    return place + int(_NTH_SET_BIT[bits & 511, n])
