"""Tests of `lanes`: compiled code, plain Python and scalar arithmetic agree."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from ninetka_agents.ninetka.solver.lanes import LANES, above_zero, any_set, count_ones, lane, load, pick, smaller, store
from ninetka_env.core.jit import frozen, jit

Words = npt.NDArray[np.int64]
TABLE = frozen(np.random.default_rng(0).integers(-(1 << 40), 1 << 40, 512), np.int64)


def compute(words: Words, out: Words) -> tuple[bool, bool, int]:
    """Use all functions and operators of `lanes`."""
    a, b, c, d = load(words, 1, 2)
    store(out, 0, 0, a + b, a - b, a * 3, 5 - a)
    store(out, 4, 0, a & b, b | 7, c ^ d, ~a)
    store(out, 8, 0, (a & 0xFFFF) << 3, 1 << (b & 15), (a & 0xFFFF) >> 2, (c & 0xFF) + (d >> 1))
    store(out, 12, 0, above_zero(a - b), smaller(a, b), count_ones(c), pick(TABLE, d & 511))
    return any_set(a), any_set(a ^ a), lane(d, 3)


compiled = jit(compute)


@pytest.mark.parametrize("seed", range(20))
def test_compiled_lanes_are_plain_ones(seed: int) -> None:
    words = np.random.default_rng(seed).integers(0, 1 << 62, (6, 7))
    words[1:5, 2] >>= 3 * seed
    one, other = np.zeros((2, 16, 4), np.int64)
    assert compiled(words, one) == compute(words, other) == (bool(words[1:5, 2].any()), False, words[4, 5])
    assert one.tolist() == other.tolist()


def test_plain_lanes_are_four_numbers() -> None:
    words, out = np.random.default_rng(1).integers(0, 1 << 60, (6, 7)), np.zeros((16, 4), np.int64)
    compute(words, out)
    for place in range(LANES):
        a, b, c, d = words[1 + place, 2:6].tolist()
        assert out[place].tolist() == [a + b, a - b, 3 * a, 5 - a]
        assert out[4 + place].tolist() == [a & b, b | 7, c ^ d, ~a]
        shifted = [(a & 0xFFFF) << 3, 1 << (b & 15), (a & 0xFFFF) >> 2, (c & 0xFF) + (d >> 1)]
        assert out[8 + place].tolist() == shifted
        assert out[12 + place].tolist() == [-int(a > b), min(a, b), c.bit_count(), TABLE[d & 511]]


@pytest.mark.parametrize("place", range(LANES))
def test_one_of_four_is_enough_to_be_set(place: int) -> None:
    words, out = np.zeros((6, 7), np.int64), np.zeros((16, 4), np.int64)
    words[1 + place, 2] = 1 << 62
    assert compiled(words, out)[0] is True
