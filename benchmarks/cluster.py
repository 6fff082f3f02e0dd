"""Measure the costs of self-play on a cluster: time and bytes per task, and whole rounds to validate the simulation.

    python -m benchmarks.cluster --out cluster.json
    python -m benchmarks.cluster_scale cluster.json docs/cluster

Needs the extra `cluster` and an otherwise idle machine; takes about five minutes on two cores. Not part of
`make speed`. `benchmarks.cluster_simulation` simulates larger clusters from these costs.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
import torch
from ray.cluster_utils import Cluster

from ninetka_env.core.threads import available_cores
from ninetka_train.cluster.tasks import ClusterPlayer
from ninetka_train.cluster.workers import Workers, pack, unpack
from ninetka_train.learning.alphazero import TrainState, learn, new_state, play_round
from ninetka_train.learning.config import load_config
from ninetka_train.learning.samples import Samples, join
from ninetka_train.learning.selfplay import play_task, tasks_of
from ninetka_train.machine import describe_machine

OBJECT_STORE_BYTES = 256 * 2**20
EMPTY_TASKS = 300
"""Number of empty tasks that measure the cost of assigning a task."""
REPEATS = 3
"""Number of repeats of each measurement; the median is used."""
DEFAULT_SETTINGS = ["threads=0", "device=cpu"]
VALIDATION_SETTINGS = ["alphazero.playout_rounds=0", "alphazero.games=128", "alphazero.task_games=8"]
"""Settings of the whole rounds, in addition to those of `quick`: many tasks, all played by the network."""
PROFILES = {
    "default settings": ("quick", ["alphazero.playout_rounds=0"]),
    "gen-4": ("gen-4", ["start_from=gen-4"]),
    "width 128, 3 blocks": ("quick", ["alphazero.playout_rounds=0", "network.width=128", "network.blocks=3"]),
    "width 256, 4 blocks": ("quick", ["alphazero.playout_rounds=0", "network.width=256", "network.blocks=4"]),
}
"""Configurations and settings to simulate, by name."""
SMALL_TASK_GAMES = 8
"""Number of games of a small task."""
TIMED_STEPS = 3
"""Number of gradient steps to time."""
LAYOUTS = {"1 worker": [1], "2 workers": [2], "3 nodes": [1, 1, 1]}
"""Clusters on which whole rounds are played: the number of cores of each node, by name of the cluster."""


def median_seconds(run: Callable[[], object], times: int = REPEATS) -> float:
    """Return the median time of a call of `run` in seconds, after one warm-up call."""
    run()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def measure_tasks(state: TrainState, tasks: Sequence[range]) -> tuple[list[Samples], dict[str, Any]]:
    """Play tasks in this process on one thread; return their samples and the measured costs in seconds and bytes."""
    config, number = state.config, state.rounds
    parts, seconds = [], []
    play_task(config, state.network, number, tasks[0])  # compiles; a shorter task might not reach all compiled code
    for task in tasks:
        start = time.perf_counter()
        parts.append(play_task(config, state.network, number, task))
        seconds.append(time.perf_counter() - start)
    recipe = (config.model_dump(mode="json"), state.network, number)
    blob = pack(recipe)
    return parts, {
        "task_seconds": seconds,
        "task_games": statistics.mean(map(len, tasks)),
        "task_bytes": statistics.mean(sum(array.nbytes for array in part) for part in parts),
        "weight_bytes": blob.nbytes,
        "pack_seconds": median_seconds(lambda: pack(recipe)),
        "unpack_seconds": median_seconds(lambda: unpack(blob)),
        "join_seconds": median_seconds(lambda: join(parts)),
    }


def profile(name: str, settings: list[str]) -> dict[str, Any]:
    """Return the costs of a configuration on one thread: of usual and small tasks, and of gradient steps."""
    config = load_config(name, [*DEFAULT_SETTINGS, *settings])
    state = new_state(load_config(name, [*DEFAULT_SETTINGS, *settings, f"alphazero.steps={TIMED_STEPS}"]))
    state.network.eval()
    parts, default = measure_tasks(state, tasks_of(config)[:2])
    _, small = measure_tasks(
        state, [range(first, first + SMALL_TASK_GAMES) for first in range(0, 4 * SMALL_TASK_GAMES, SMALL_TASK_GAMES)]
    )
    state.window = [join(parts)]
    return {
        "parameters": sum(parameter.numel() for parameter in state.network.parameters()),
        "games": config.alphazero.games * len(config.variants),
        "steps": config.alphazero.steps,
        "step_seconds": median_seconds(lambda: learn(state), 1) / TIMED_STEPS,
        "usual": default,
        "small": small,
    }


@contextmanager
def start_cluster(node_cores: list[int]) -> Iterator[ClusterPlayer]:
    """Return a context manager that starts a cluster and yields a `ClusterPlayer` for it.

    The cluster has a head node without cores and one node for each number of cores in `node_cores`.
    """
    common = {"object_store_memory": OBJECT_STORE_BYTES, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **common})
    try:
        for count in node_cores:
            cluster.add_node(num_cpus=count, object_store_memory=OBJECT_STORE_BYTES)
        ray.init(cluster.address, logging_level="ERROR")
        yield ClusterPlayer(Workers(print))
    finally:
        ray.shutdown()
        cluster.shutdown()


def measure_rounds(state: TrainState) -> dict[str, Any]:
    """Measure empty tasks and whole rounds on each cluster of `LAYOUTS`.

    The speed of one core changes over time, so it is measured again before each cluster.
    """
    found: dict[str, Any] = {"rounds": {}}
    for name, node_cores in LAYOUTS.items():
        alone = sum(measure_tasks(state, tasks_of(state.config))[1]["task_seconds"])
        with start_cluster(node_cores) as player:
            while len(player.workers) < sum(node_cores):
                _run_empty_tasks(player.workers, 1)
            if len(node_cores) == 1:
                empty = median_seconds(functools.partial(_run_empty_tasks, player.workers, EMPTY_TASKS))
                found[f"call_seconds, {name}"] = empty / EMPTY_TASKS
            seconds = median_seconds(functools.partial(player.play_round, state))
            figures = {"workers": sum(node_cores), "seconds": seconds, "alone_seconds": alone}
            found["rounds"][name] = {"nodes": len(node_cores)} | figures
    return found


def _run_empty_tasks(workers: Workers, times: int) -> None:
    list(workers.map((_make_empty_task, ()), range(times)))


def _make_empty_task() -> Callable[[int], None]:
    return _empty_task


def _empty_task(task: int) -> None:
    return None


def measure() -> dict[str, Any]:
    """Measure everything; tasks are measured before and after the rounds, because the machine's speed changes."""
    torch.set_num_threads(1)
    state = new_state(load_config("quick", [*DEFAULT_SETTINGS, *VALIDATION_SETTINGS]))
    state.network.eval()
    tasks = tasks_of(state.config)
    _, before = measure_tasks(state, tasks)
    threads = median_seconds(lambda: play_round(state))
    together = measure_rounds(state)
    _, after = measure_tasks(state, tasks)
    pairs = zip(before["task_seconds"], after["task_seconds"], strict=True)
    checked = after | {"task_seconds": [statistics.mean(pair) for pair in pairs]}
    profiles = {name: profile(*what) for name, what in PROFILES.items()}
    general = {"machine": describe_machine(), "cores": available_cores(), "threads_seconds": threads}
    return general | {"checked": checked, "profiles": profiles} | together


def main() -> None:
    """Measure everything and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    found = measure()
    arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    rounds = ", ".join(f"{name} {one['seconds']:.2f} s" for name, one in found["rounds"].items())
    print(f"threads {found['threads_seconds']:.2f} s, {rounds}")


if __name__ == "__main__":
    main()
