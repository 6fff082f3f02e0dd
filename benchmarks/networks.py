"""Benchmark the encoding of all games, and the networks of Go and Kropki: evaluation and the gradients of a step.

The network of 9tka is measured by `benchmarks.train`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from benchmarks.measure import Row, rates, write_rows
from benchmarks.vector import random_play
from ninetka_agents.outputs import as_tensors, forward_states
from ninetka_agents.plugins import network_of
from ninetka_env.api.vector import GameVectorEnv
from ninetka_env.core.registry import load_variant
from ninetka_env.core.verbs import StateArray

TARGETS: dict[str, dict[int, float | None]] = {
    "go": {1: 5.0, 256: 0.5},
    "kropki": {1: 5.0, 256: 0.5},
    "kropki:width=20,height=20": {1: None, 64: None},
    "kropki:width=39,height=32": {1: None, 64: None},
}
"""Maps a game to the batch sizes to measure, and a batch size to its target in milliseconds per position."""
MINIBATCH = 512
ENCODED = 4096


def positions(spec: str, count: int, calls: int = 1) -> StateArray:
    """Return `count` positions of different games after `calls` calls of `random_play`."""
    envs = GameVectorEnv(count, load_variant(spec))
    play = random_play(envs)
    for _ in range(calls):
        play()
    return envs.games.copy()


def milliseconds(run: Callable[[], object], repeats: int) -> float:
    """Return the median time of a call of `run` in milliseconds, after one warm-up call."""
    run()
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return 1e3 * statistics.median(taken)


def encoding_run(network: Any, games: StateArray, threads: int) -> Callable[[], int]:
    """Return a function that encodes games on a number of threads and returns their number."""

    def run() -> int:
        torch.set_num_threads(threads)
        network.encode(games)
        return len(games)

    return run


def encoding_rows() -> Iterator[Row]:
    """Compare the encoding of positions on all threads with one thread."""
    threads = torch.get_num_threads()
    for spec in ("ninetka", "go", "kropki"):
        network, games = network_of(spec).Network(), positions(spec, ENCODED, calls=60)
        shared, one = rates(*(encoding_run(network, games, count) for count in (threads, 1)))
        yield Row(f"{spec}: encodes {ENCODED}, {threads} threads", "positions/s", shared, one, "one thread")
    torch.set_num_threads(threads)


def evaluation_run(network: Any, games: StateArray, bf16: bool) -> Callable[[], object]:
    """Return a function that evaluates games."""

    def run() -> object:
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            return forward_states(network, games)

    return run


def gradient_run(network: Any, games: StateArray, bf16: bool) -> Callable[[], object]:
    """Return a function that computes the gradients of a loss that depends on all outputs, on the batch `games`."""
    inputs = as_tensors(network.encode(games))

    def run() -> object:
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            outputs = network(inputs)
        parts = (outputs.logits, outputs.value_logits, outputs.owner_logits)
        loss = sum((part.logsumexp(-1).mean() for part in parts), outputs.score.square().mean())
        return loss.backward()

    return run


def rows() -> Iterator[Row]:
    """Measure everything on all cores."""
    threads = torch.get_num_threads()
    for spec, targets in TARGETS.items():
        torch.manual_seed(0)
        network = network_of(load_variant(spec).definition.name).Network().eval()
        for (count, target), bf16 in ((one, bf16) for one in targets.items() for bf16 in (False, True)):
            what = f"{spec}: its network judges {count} at once, {threads} threads, {'bfloat16' if bf16 else 'float32'}"
            taken = milliseconds(evaluation_run(network, positions(spec, count), bf16), 200 // count + 5) / count
            yield Row(what, "ms/position", taken, target=target, lower_is_better=True)
    for spec, bf16 in ((spec, bf16) for spec in ("go", "kropki") for bf16 in (False, True)):
        network = network_of(spec).Network()
        what = f"{spec}: gradients of {MINIBATCH} positions, {threads} threads, {'bfloat16' if bf16 else 'float32'}"
        yield Row(
            what, "ms", milliseconds(gradient_run(network, positions(spec, MINIBATCH), bf16), 3), lower_is_better=True
        )


if __name__ == "__main__":
    write_rows(encoding_rows())
    write_rows(rows())
