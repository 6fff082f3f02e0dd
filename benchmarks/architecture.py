"""Shapes of the network by what they learn in the same minutes: the same games, one core, then against each other.

Not part of `make bench`, as it takes half an hour: `ninetka bench architecture`. Minutes per network are read from
NINETKA_BENCH_MINUTES.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import numpy as np
import torch

from agents.network import Network, NetworkConfig
from agents.policy import NetAgent
from benchmarks.measure import Row, one_core, write_rows
from train.alphazero import learn, new_student
from train.config import TrainConfig, check_config
from train.evaluate import evaluate
from train.selfplay import Samples, playout_games

SHAPES = {
    "relations, width 64, 2 blocks": NetworkConfig(),
    "relations, width 32, 2 blocks": NetworkConfig(width=32),
    "relations, width 96, 2 blocks": NetworkConfig(width=96),
    "relations, width 64, 1 block": NetworkConfig(blocks=1),
    "relations, width 64, 3 blocks": NetworkConfig(blocks=3),
    "attention, width 64, 2 blocks": NetworkConfig(mixing="attention"),
    "pools and opposite slots alone, width 64, 3 blocks": NetworkConfig(mixing="pool", blocks=3),
}
MINUTES = float(os.environ.get("NINETKA_BENCH_MINUTES", "3"))
GAMES = 1000
"""Games of the tree search per number of players, to learn from."""
RATED = {2: 300, 4: 60}
"""Games per lineup by number of players, to rate them."""
SEED = 11


def make_config(shape: NetworkConfig, steps: int) -> TrainConfig:
    """Return how a network of that shape learns in so many steps."""
    network = {name: getattr(shape, name) for name in ("width", "blocks", "mixing", "heads")}
    learning = {"rounds": 1, "steps": steps, "minibatch": 512}
    return check_config({"network": network, "alphazero": learning, "players": [2, 3, 4], "threads": 1})


def steps_per_second(shape: NetworkConfig, samples: Samples) -> float:
    """Return how many gradient steps a network of that shape takes in a second."""
    for steps in (1, 4):  # the first one is slower
        student = new_student(make_config(shape, steps))
        student.window = [samples]
        start = time.perf_counter()
        learn(student)
    return steps / (time.perf_counter() - start)


def trained(shape: NetworkConfig, samples: Samples) -> tuple[Network, int]:
    """Return a network that learned for `MINUTES`, its step size falling over just that time, and its steps."""
    steps = max(1, int(steps_per_second(shape, samples) * MINUTES * 60))
    student = new_student(make_config(shape, steps))
    student.window = [samples]
    learn(student)
    return student.network, steps


def rows() -> Iterator[Row]:
    """Train all shapes, then rate them, playing their policies' best moves."""
    torch.set_num_threads(1)
    samples = playout_games(np.repeat([2, 3, 4], GAMES), SEED, 400, power=12)
    found = {name: trained(shape, samples) for name, shape in SHAPES.items()}
    agents = [NetAgent.of(network, name=name) for name, (network, _) in found.items()]
    for players, games in RATED.items():
        result = evaluate(agents, players, games, seed=SEED, neutral_placement="random")
        for figures in result.agents:
            assert figures.elo is not None
            network, steps = found[figures.name]
            size = sum(weights.numel() for weights in network.parameters())
            low, high = figures.elo_interval or (-np.inf, np.inf)
            note = f"[{low:.0f}, {high:.0f}]; {size / 1e3:.0f} k weights, {steps} steps, {figures.games} games"
            yield Row(f"{players} players, {figures.name}", "Elo", figures.elo, note=note)


def main() -> None:
    """Run on one core."""
    one_core()
    write_rows(rows())


if __name__ == "__main__":
    main()
