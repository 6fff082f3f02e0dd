"""Test the bits that games write for a GPU, and how they are spread to bytes; all of it compiled for the CPU."""

from __future__ import annotations

import numpy as np
import pytest
from numba import config

from ninetka_env.api.conformance import check
from ninetka_env.core.bits import clear_bits, fill_bits, get_bit, num_words, or_bits, set_bit
from ninetka_env.core.jit import jit

pytest.importorskip("torch")

from ninetka_env.gpu.kernels import read_eight_bits, spread

NINETKA = [
    f"ninetka:num_players={players},auto_pass={auto_pass},neutral_placement={neutral_placement},turn_order={order}"
    for players in (2, 3, 4)
    for auto_pass, neutral_placement, order in ((True, "players", "restart"), (False, "random", "continue"))
]
GO_OPTIONS = ("ko=simple", "ko=situational,planes=alphazero,scoring=territory,allow_resign=True", "ko=positional")
GO = [f"go:size={size},komi=0.5,{options}" for size in (2, 5) for options in GO_OPTIONS]
LARGER_GO = [f"go:size={size},komi=0.5,{options}" for size in (3, 4, *range(6, 20)) for options in GO_OPTIONS]
KROPKI = [
    f"kropki:width={width},height={height},{options}"
    for width, height in ((3, 3), (7, 5), (9, 9))
    for options in ("territory=declared", "territory=immediate,start=cross")
]
LARGER_KROPKI = [f"kropki:width={width},height={height}" for width, height in ((12, 12), (13, 9), (20, 17), (39, 32))]


@pytest.mark.parametrize("spec", [*NINETKA, *GO, *KROPKI])
def test_bits_are_observations_and_masks(spec):
    check(spec, games=3 if config.DISABLE_JIT else 12, only=["bits"])


@pytest.mark.exhaustive
@pytest.mark.parametrize("spec", [*LARGER_GO, *LARGER_KROPKI])
def test_bits_are_observations_and_masks_on_larger_boards(spec):
    check(spec, games=2, only=["bits"])


@jit
def _spread_all(words, first, stride, size, out):
    for place in range(len(out)):
        out[place] = spread(read_eight_bits(words, first, stride, size, place))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 8, 9, 11, 27, 31, 32, 33, 61, 64, 65, 122, 2783])
def test_bits_of_many_games_become_bytes(size):
    rng, games, first, stride = np.random.default_rng(size), 16, 3, num_words(size) + 5
    expected = rng.integers(0, 2, (games, size), np.uint8)
    words = rng.integers(0, 2**32, (games, stride), np.uint32)  # other words, and bits that are not used
    bits = np.unpackbits(words[:, first : first + num_words(size)].copy().view(np.uint8), axis=1, bitorder="little")
    bits[:, :size] = expected
    words[:, first : first + num_words(size)] = np.packbits(bits, axis=1, bitorder="little").view(np.uint32)
    for count in (1, 11, 16):
        found = np.zeros(-(-count * size // 8), np.uint64)
        _spread_all(np.append(words, np.uint32(7)), first, stride, size, found)
        assert found.view(np.uint8)[: count * size].tolist() == expected[:count].ravel().tolist()


def test_runs_of_bits():
    rng = np.random.default_rng(0)
    for _ in range(200):
        place, count, run = int(rng.integers(0, 96)), int(rng.integers(0, 33)), int(rng.integers(0, 2**32))
        words = rng.integers(0, 2**32, 4, np.uint32)
        number = sum(int(word) << 32 * k for k, word in enumerate(words))
        ones = (1 << count) - 1 << place
        for change, arguments, wanted in (
            (fill_bits, (count,), number | ones),
            (clear_bits, (count,), number & ~ones),
            (or_bits, (run,), number | run << place),
            (set_bit, (), number | 1 << place),
        ):
            changed = words.copy()
            change(changed, place, *arguments)
            assert sum(int(word) << 32 * k for k, word in enumerate(changed)) == wanted
        assert get_bit(words, place) == number >> place & 1
