"""Ray nodes as processes on one machine, and the faults that tests inject."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import ray
from ray.cluster_utils import Cluster

from ninetka_train.cluster.tasks import ClusterPlayer
from ninetka_train.cluster.workers import Workers
from ninetka_train.learning.alphazero import train_alphazero
from ninetka_train.learning.config import TrainConfig, check_config

OBJECT_STORE_BYTES = 80 * 2**20
"""Memory of a node's object store in bytes, about the minimum that Ray accepts."""


def small(**changes: object) -> TrainConfig:
    """Return a configuration of four small rounds: two by playouts, two by the network. A task has two games.

    `changes` are settings of AlphaZero.
    """
    settings = {
        "rounds": 4, "playout_rounds": 2, "games": 8, "task_games": 2, "playouts": 8, "simulations": 4,
        "leaf_playouts": 2, "share": 0.4, "value_share": 0.1, "exact_nodes": 200, "window": 2, "steps": 6,
        "minibatch": 32, "microbatch": 16,
    }  # fmt: skip
    values = {
        "algorithm": "alphazero", "players": [2, 3], "threads": 1, "device": "cpu", "bf16": False,
        "checkpoint_every": 1, "network": {"width": 8, "blocks": 1}, "alphazero": settings | changes,
    }  # fmt: skip
    return check_config(values)


class Nodes:
    """A cluster whose head has no cores, and whose nodes have one core each."""

    def __init__(self, count: int) -> None:
        head = {"num_cpus": 0, "object_store_memory": OBJECT_STORE_BYTES, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, connect=False, head_node_args=head)
        self.nodes: list[object] = []
        for _ in range(count):
            self.add()
        ray.init(self.cluster.address, logging_level="ERROR", log_to_driver=False)

    def add(self) -> None:
        """Add a node. Ray allows this only in the main thread."""
        self.nodes.append(self.cluster.add_node(num_cpus=1, object_store_memory=OBJECT_STORE_BYTES, wait=False))

    def lose_one(self) -> None:
        """Kill the oldest node."""
        self.cluster.remove_node(self.nodes.pop(0), allow_graceful=False)

    def lose_head(self) -> None:
        """Kill the server of the cluster's head."""
        self.cluster.head_node.all_processes["gcs_server"][0].process.kill()

    def close(self) -> None:
        ray.shutdown()
        self.cluster.shutdown()


@contextmanager
def some_nodes(count: int) -> Iterator[Nodes]:
    nodes = Nodes(count)
    try:
        yield nodes
    finally:
        nodes.close()


def signal_one(player: ClusterPlayer, which: int, rng: np.random.Generator) -> None:
    """Send signal number `which` to a random worker, if there is one."""
    if names := sorted(player.workers.names.values()):
        with suppress(ProcessLookupError):
            os.kill(int(str(rng.choice(names)).split()[1]), which)  # "worker PID on HOST"


def faults(nodes: Nodes, player: ClusterPlayer, rng: np.random.Generator) -> dict[str, Callable[[], None]]:
    """Return a dictionary from the description of a fault to a function that causes the fault."""
    return {
        "a worker is killed": lambda: signal_one(player, signal.SIGKILL, rng),
        "a worker hangs": lambda: signal_one(player, signal.SIGSTOP, rng),
        "a node is killed": nodes.lose_one,
    }


def new_player(timeout_s: float = 60.0, warn: Callable[[str], None] = print) -> ClusterPlayer:
    return ClusterPlayer(Workers(warn, timeout_s))


def train(config: TrainConfig, folder: Path, player: ClusterPlayer | None = None) -> dict[str, bytes]:
    """Train in `folder`, on the cluster of `player` if given; return the contents of the folder's files by path."""
    train_alphazero(config, folder, play=player.play_round if player else None)
    return files_of(folder)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
