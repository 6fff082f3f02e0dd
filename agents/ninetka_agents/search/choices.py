"""Bit sets of choices, as `ninetka_env.core.verbs.write_choices` writes them."""

from __future__ import annotations

import numpy as np

from ninetka_env.core.chance import Streams, draw_below, nth_one
from ninetka_env.core.jit import jit, lowest, popcount
from ninetka_env.core.verbs import WORD, Words


def words_for(choices: int) -> int:
    """Return the number of words of a set of `choices` choices."""
    return -(-choices // WORD)


@jit(counted=False)
def is_empty(choices: Words) -> bool:
    """Return whether the set is empty."""
    any_bits = choices[0]
    for word in range(1, len(choices)):
        any_bits |= choices[word]
    return any_bits == 0


@jit(counted=False)
def count_choices(choices: Words) -> int:
    """Return the number of choices in the set."""
    count = popcount(choices[0])
    for word in range(1, len(choices)):
        count += popcount(choices[word])
    return count


@jit(counted=False)
def remove_choice(choices: Words, choice: int) -> None:
    """Remove a choice from the set."""
    choices[choice // WORD] &= ~(np.int64(1) << (choice % WORD))


@jit(counted=False)
def draw_choice(choices: Words, streams: Streams, index: int) -> int:
    """Draw a choice of a non-empty set uniformly at random, from stream `index`."""
    n = draw_below(streams, index, count_choices(choices))
    for word in range(len(choices) - 1):
        below = popcount(choices[word])
        if n < below:
            return word * WORD + nth_one(choices[word], n)
        n -= below
    word = len(choices) - 1
    return word * WORD + nth_one(choices[word], n)


@jit(counted=False)
def next_choice(choices: Words, after: int) -> int:
    """Return the lowest choice above `after`, -1 if there is none; `after` = -1 returns the first choice."""
    start = after + 1
    word = start // WORD
    if word >= len(choices):
        return -1
    bits = (choices[word] >> (start % WORD)) << (start % WORD)
    while bits == 0:
        word += 1
        if word == len(choices):
            return -1
        bits = choices[word]
    return word * WORD + lowest(bits)
