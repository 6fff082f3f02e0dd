"""Sets of choices as bits, in the form of `ninetka_env.core.verbs.write_choices`.

A *choice* is the number of a legal action in a search, by default the action itself. Games with many actions can have
fewer choices.
"""

from __future__ import annotations

import numpy as np

from ninetka_env.core.jit import jit, lowest_bit, popcount
from ninetka_env.core.random_streams import Streams, draw_below, nth_set_bit
from ninetka_env.core.verbs import BITS_PER_WORD, BitSet


def words_for(choices: int) -> int:
    """Return the number of 64-bit words that hold a set of choices below `choices`."""
    return -(-choices // BITS_PER_WORD)


@jit(refcount=False)
def is_empty(choices: BitSet) -> bool:
    """Return whether the set is empty."""
    any_bits = choices[0]
    for word in range(1, len(choices)):
        any_bits |= choices[word]
    return any_bits == 0


@jit(refcount=False)
def count_choices(choices: BitSet) -> int:
    """Return the number of choices in the set."""
    count = popcount(choices[0])
    for word in range(1, len(choices)):
        count += popcount(choices[word])
    return count


@jit(refcount=False)
def remove_choice(choices: BitSet, choice: int) -> None:
    """Remove a choice from the set."""
    choices[choice // BITS_PER_WORD] &= ~(np.int64(1) << (choice % BITS_PER_WORD))


@jit(refcount=False)
def draw_choice(choices: BitSet, streams: Streams, index: int) -> int:
    """Draw a choice of a non-empty set uniformly at random, from stream `index`."""
    n = draw_below(streams, index, count_choices(choices))
    for word in range(len(choices) - 1):
        below = popcount(choices[word])
        if n < below:
            return word * BITS_PER_WORD + nth_set_bit(choices[word], n)
        n -= below
    word = len(choices) - 1
    return word * BITS_PER_WORD + nth_set_bit(choices[word], n)


@jit(refcount=False)
def next_choice(choices: BitSet, after: int) -> int:
    """Return the lowest choice above `after`, -1 if there is none; `after` = -1 returns the first choice."""
    start = after + 1
    word = start // BITS_PER_WORD
    if word >= len(choices):
        return -1
    bits = (choices[word] >> (start % BITS_PER_WORD)) << (start % BITS_PER_WORD)
    while bits == 0:
        word += 1
        if word == len(choices):
            return -1
        bits = choices[word]
    return word * BITS_PER_WORD + lowest_bit(bits)
