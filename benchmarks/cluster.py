"""What self-play on a cluster costs: milliseconds and bytes per task, and whole rounds to check a simulation by.

    python -m benchmarks.cluster --out cluster.json
    python -m benchmarks.cluster_scale cluster.json docs/cluster

Needs the extra `cluster` and a quiet machine; takes some minutes. Not part of `make bench`.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
import torch
from ray.cluster_utils import Cluster

from ninetka_train.cluster.packing import pack, unpack
from ninetka_train.cluster.tasks import ClusterPlayer
from ninetka_train.cluster.workers import Workers
from ninetka_train.learning.alphazero import TrainState, learn, new_state, play_round
from ninetka_train.learning.config import TrainConfig, load_config
from ninetka_train.learning.samples import join
from ninetka_train.learning.selfplay import play_task, tasks_of
from ninetka_train.machine import cores, machine

STORE = 256 * 2**20
EMPTY = 300
"""Tasks without work, to see what handing one out costs."""
ROUNDS = 3
"""Of each measurement; the median counts."""
LAYOUTS = {"1 worker": [1], "2 workers": [2], "3 nodes": [1, 1, 1]}
"""Cores of the nodes of the clusters on which whole rounds are played."""


def seconds_of(run: Callable[[], object], times: int = ROUNDS) -> float:
    """Return the median of the seconds that something takes, after a first time that does not count."""
    run()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def costs_alone(state: TrainState) -> dict[str, Any]:
    """Measure in this process, on one thread: tasks, their samples, packing, joining, learning."""
    config, number = state.config, state.rounds
    parts, seconds = [], []
    play_task(config, state.network, number, tasks_of(config)[0])  # compiles
    for task in tasks_of(config):
        start = time.perf_counter()
        parts.append(play_task(config, state.network, number, task))
        seconds.append(time.perf_counter() - start)
    recipe = (config.model_dump(mode="json"), state.network, number)
    blob = pack(recipe)
    state.window = [join(parts)]
    return {
        "task_seconds": seconds,
        "task_bytes": statistics.mean(sum(array.nbytes for array in part) for part in parts),
        "weight_bytes": blob.nbytes,
        "pack_seconds": seconds_of(lambda: pack(recipe)),
        "unpack_seconds": seconds_of(lambda: unpack(blob)),
        "join_seconds": seconds_of(lambda: join(parts)),
        "learn_seconds": seconds_of(lambda: learn(state), 1),
    }


@contextmanager
def nodes_of(node_cores: list[int]) -> Iterator[ClusterPlayer]:
    """Start nodes with these numbers of cores, beside a head that has none."""
    common = {"object_store_memory": STORE, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **common})
    try:
        for count in node_cores:
            cluster.add_node(num_cpus=count, object_store_memory=STORE)
        ray.init(cluster.address, logging_level="ERROR")
        yield ClusterPlayer(Workers(print))
    finally:
        ray.shutdown()
        cluster.shutdown()


def costs_together(state: TrainState) -> dict[str, Any]:
    """Measure on clusters: a call without work, whole rounds."""
    found: dict[str, Any] = {"rounds": {}}
    for name, node_cores in LAYOUTS.items():
        with nodes_of(node_cores) as player:
            while len(player.workers) < sum(node_cores):
                _do_nothing(player.workers, 1)
            if len(node_cores) == 1:
                empty = seconds_of(functools.partial(_do_nothing, player.workers, EMPTY))
                found[f"call_seconds, {name}"] = empty / EMPTY
            seconds = seconds_of(functools.partial(player.play_round, state))
            found["rounds"][name] = {"nodes": len(node_cores), "workers": sum(node_cores), "seconds": seconds}
    return found


def _do_nothing(workers: Workers, times: int) -> None:
    list(workers.map((_nothing, ()), range(times)))


def _nothing() -> Callable[[int], None]:
    return _pass


def _pass(task: int) -> None:
    return None


def measure(config: TrainConfig) -> dict[str, Any]:
    """Measure everything; the round is the first one with the network."""
    torch.set_num_threads(1)
    state = new_state(config)
    state.network.eval()
    state.rounds = min(config.alphazero.playout_rounds, config.alphazero.rounds - 1)
    alone = costs_alone(state)
    threads = seconds_of(lambda: play_round(state))
    about = {"machine": machine(), "cores": cores(), "game": str(config.variants[0]), "config": config.name}
    return about | alone | {"threads_seconds": threads} | costs_together(state)


def main() -> None:
    """Measure what the command line asks for, write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="quick")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    usual = ["threads=0", "device=cpu", "alphazero.games=128", "alphazero.task_games=8"]
    found = measure(load_config(arguments.config, [*usual, *arguments.set]))
    arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    rounds = ", ".join(f"{name} {one['seconds']:.2f} s" for name, one in found["rounds"].items())
    print(f"threads {found['threads_seconds']:.2f} s, {rounds}")


if __name__ == "__main__":
    main()
