"""Tests with compiled kernels on the CPU; `test_gpu_compilation.py` runs pytest on this file."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from compiled_kernels import launch
from numba import cuda

from benchmarks import gpu
from ninetka_env.gpu import vector

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def as_on_a_gpu(monkeypatch):
    """Let blocks have as many threads as on a GPU."""
    monkeypatch.setattr(vector, "OUTPUT_THREADS", 128)


def differences(spec: str, games: int, plies: int, compared_every: int, monkeypatch: pytest.MonkeyPatch) -> int:
    for name, value in (("GAMES", games), ("PLIES", plies), ("COMPARED_EVERY", compared_every)):
        monkeypatch.setattr(gpu, name, value)
    return gpu.differences(spec)


@pytest.mark.parametrize("spec", gpu.VARIANTS)
def test_compiled_kernels_play_the_games_of_the_cpu(spec, monkeypatch):
    assert differences(spec, 70, 120, 1, monkeypatch) == 0


@pytest.mark.parametrize(
    ("spec", "games"), [("go:size=19,ko=positional,max_plies=50", 60), ("kropki:width=39,height=32", 20)]
)
def test_compiled_kernels_play_on_the_largest_boards(spec, games, monkeypatch):
    assert differences(spec, games, 60, 2, monkeypatch) == 0  # in two blocks


@pytest.mark.exhaustive
@pytest.mark.parametrize("spec", gpu.VARIANTS)
def test_compiled_kernels_play_millions_of_plies_like_the_cpu(spec, monkeypatch):
    monkeypatch.setattr("compiled_kernels.check_addresses", False)  # checked in the shorter test
    assert differences(spec, 16_384, 160, 8, monkeypatch) == 0


# Running kernels on the CPU


@cuda.jit
def reverse(numbers, out):
    """Reverse the numbers of each block."""
    shared = cuda.shared.array(64, np.int64)
    thread, index = cuda.threadIdx.x, cuda.grid(1)
    shared[thread] = numbers[index]
    cuda.syncthreads()
    out[index] = shared[cuda.blockDim.x - 1 - thread]


@cuda.jit
def sum_twice(numbers):
    """Add neighbours in global memory, with a barrier but without shared memory."""
    index = cuda.grid(1)
    total = numbers[index] + numbers[index ^ 1]
    cuda.syncthreads()
    numbers[index] = total


@cuda.jit
def use_a_logarithm(numbers):
    """Call a function that the kernels of games do not call."""
    numbers[cuda.grid(1)] = math.log(numbers[cuda.grid(1)])


@cuda.jit
def wait_sometimes(out):
    """Let only some threads reach the barrier."""
    shared = cuda.shared.array(64, np.int64)
    shared[cuda.threadIdx.x] = 1
    if cuda.threadIdx.x % 2:
        cuda.syncthreads()
    out[cuda.grid(1)] = shared[cuda.threadIdx.x]


@cuda.jit
def add_one(numbers):
    """Add 1 to each number."""
    if cuda.grid(1) < len(numbers):
        numbers[cuda.grid(1)] += 1


def test_the_threads_of_a_block_wait_for_each_other():
    numbers, out = np.arange(192), np.zeros(192, np.int64)
    launch(reverse, CPU, 3, 64, numbers, out)
    assert (out == numbers.reshape(3, 64)[:, ::-1].ravel()).all()


def test_barriers_need_no_shared_memory():
    numbers = np.arange(128)
    launch(sum_twice, CPU, 2, 64, numbers)
    assert (numbers == np.repeat(np.arange(1, 256, 4), 2)).all()


def test_unknown_functions_are_named():
    with pytest.raises(AssertionError, match="__nv_log"):
        launch(use_a_logarithm, CPU, 1, 4, np.ones(4))


def test_a_barrier_that_some_threads_do_not_reach_is_found():
    with pytest.raises(AssertionError, match="barrier"):
        launch(wait_sometimes, CPU, 3, 64, np.zeros(192, np.int64))


@pytest.mark.parametrize(("offset", "is_wrong"), [(0, False), (4, True), (8, False)])
def test_misaligned_numbers_are_found(offset, is_wrong):
    numbers = np.zeros(20 * 8, np.uint8)[offset : offset + 10 * 8].view(np.int64)
    if is_wrong:
        with pytest.raises(AssertionError, match="misaligned"):
            launch(add_one, CPU, 1, 32, numbers)
    else:
        launch(add_one, CPU, 1, 32, numbers)
        assert (numbers == 1).all()
