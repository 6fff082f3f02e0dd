"""Tests of `simd`: compiled code, plain Python and scalar arithmetic agree."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from ninetka_agents.ninetka.solver.simd import (
    NUM_LANES,
    any_nonzero,
    count_ones,
    gather,
    lane,
    load,
    minimum,
    positive_mask,
    store,
)
from ninetka_env.core.jit import jit, readonly_array

Words = npt.NDArray[np.int64]
TABLE = readonly_array(np.random.default_rng(0).integers(-(1 << 40), 1 << 40, 512), np.int64)


def compute(words: Words, out: Words) -> tuple[bool, bool, int]:
    """Use all functions and operators of `simd`; write the results into `out`, (16, 4) int64."""
    a, b, c, d = load(words, 1, 2)
    store(out, 0, 0, a + b, a - b, a * 3, 5 - a)
    store(out, 4, 0, a & b, b | 7, c ^ d, ~a)
    store(out, 8, 0, (a & 0xFFFF) << 3, 1 << (b & 15), (a & 0xFFFF) >> 2, (c & 0xFF) + (d >> 1))
    store(out, 12, 0, positive_mask(a - b), minimum(a, b), count_ones(c), gather(TABLE, d & 511))
    return any_nonzero(a), any_nonzero(a ^ a), lane(d, 3)


compiled = jit(compute)


@pytest.mark.parametrize("seed", range(20))
def test_compiled_code_matches_plain_python(seed: int) -> None:
    words = np.random.default_rng(seed).integers(0, 1 << 62, (6, 7))
    words[1:5, 2] >>= 3 * seed
    one, other = np.zeros((2, 16, 4), np.int64)
    assert compiled(words, one) == compute(words, other) == (bool(words[1:5, 2].any()), False, words[4, 5])
    assert one.tolist() == other.tolist()


def test_lanes_match_separate_integers() -> None:
    words, out = np.random.default_rng(1).integers(0, 1 << 60, (6, 7)), np.zeros((16, 4), np.int64)
    compute(words, out)
    for place in range(NUM_LANES):
        a, b, c, d = words[1 + place, 2:6].tolist()
        assert out[place].tolist() == [a + b, a - b, 3 * a, 5 - a]
        assert out[4 + place].tolist() == [a & b, b | 7, c ^ d, ~a]
        shifted = [(a & 0xFFFF) << 3, 1 << (b & 15), (a & 0xFFFF) >> 2, (c & 0xFF) + (d >> 1)]
        assert out[8 + place].tolist() == shifted
        assert out[12 + place].tolist() == [-int(a > b), min(a, b), c.bit_count(), TABLE[d & 511]]


@pytest.mark.parametrize("place", range(NUM_LANES))
def test_any_nonzero_finds_a_single_lane(place: int) -> None:
    words, out = np.zeros((6, 7), np.int64), np.zeros((16, 4), np.int64)
    words[1 + place, 2] = 1 << 62
    assert compiled(words, out)[0] is True
