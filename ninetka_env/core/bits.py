"""Bits in arrays of uint32 words: element e is bit `e % 32` of word `e // 32`.

Games write observations and masks in this form for a GPU; see `ninetka_env.core.verbs.write_observation_bits`. In the
functions, `place` is the number of an element. Each function changes only the bits that its description names.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit

Words: TypeAlias = npt.NDArray[np.uint32]
WORD_BITS = 32
"""Number of bits of a word. Its logarithm is 5, so `place >> 5` is a word, and `place & 31` a bit of it."""
ALL_ONES = (1 << WORD_BITS) - 1


def num_words(elements: int) -> int:
    """Return the number of words that hold this number of elements."""
    return -(-elements // WORD_BITS)


@jit(refcount=False)
def clear_words(words: Words) -> None:
    """Clear all bits."""
    for word in range(len(words)):
        words[word] = 0


@jit(refcount=False)
def get_bit(words: Words, place: int) -> int:
    """Return a bit, 0 or 1."""
    return int(words[place >> 5]) >> int(place & 31) & 1


@jit(refcount=False)
def set_bit(words: Words, place: int) -> None:
    """Set a bit."""
    words[place >> 5] |= np.uint32(1 << int(place & 31))


@jit(refcount=False)
def or_bits(words: Words, place: int, bits: int) -> None:
    """Set the bits from `place` on where `bits` has ones; `bits` has at most 32 bits."""
    word, shifted = place >> 5, int(bits) << int(place & 31)
    words[word] |= np.uint32(shifted & ALL_ONES)
    if shifted >> WORD_BITS:
        words[word + 1] |= np.uint32(shifted >> WORD_BITS)


@jit(refcount=False)
def fill_bits(words: Words, place: int, count: int) -> None:
    """Set `count` bits from `place` on."""
    for word in range(place >> 5, (place + count + 31) >> 5):
        words[word] |= np.uint32(_ones_between(place - (word << 5), place + count - (word << 5)))


@jit(refcount=False)
def clear_bits(words: Words, place: int, count: int) -> None:
    """Clear `count` bits from `place` on."""
    for word in range(place >> 5, (place + count + 31) >> 5):
        words[word] &= np.uint32(ALL_ONES - _ones_between(place - (word << 5), place + count - (word << 5)))


@jit(refcount=False)
def _ones_between(first: int, stop: int) -> int:
    """Return a word whose bits `first` to `stop - 1` are 1; these numbers may be outside of the word."""
    return (1 << min(stop, WORD_BITS)) - (1 << max(first, 0))
