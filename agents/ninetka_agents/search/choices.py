"""Sets of choices, as searches keep them: see `ninetka_env.core.verbs.write_choices`."""

from __future__ import annotations

import numpy as np

from ninetka_env.core.chance import Streams, draw_below, nth_one
from ninetka_env.core.jit import jit, lowest, popcount
from ninetka_env.core.verbs import WORD, Words


def words_for(choices: int) -> int:
    """Return how many words hold a set of so many choices."""
    return -(-choices // WORD)


@jit(counted=False)
def is_empty(choices: Words) -> bool:
    """Tell whether there are none."""
    any_bits = choices[0]
    for word in range(1, len(choices)):
        any_bits |= choices[word]
    return any_bits == 0


@jit(counted=False)
def count_choices(choices: Words) -> int:
    """Count them."""
    count = popcount(choices[0])
    for word in range(1, len(choices)):
        count += popcount(choices[word])
    return count


@jit(counted=False)
def remove_choice(choices: Words, choice: int) -> None:
    """Take one out."""
    choices[choice // WORD] &= ~(np.int64(1) << (choice % WORD))


@jit(counted=False)
def draw_choice(choices: Words, streams: Streams, index: int) -> int:
    """Draw one of them (there must be one), uniformly, from stream `index`."""
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
    """Return the lowest choice above `after`, -1 if there is none; begin with -1."""
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
