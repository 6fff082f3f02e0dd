"""Shapes of the network by what they learn in the same minutes: the same games, one core, then against each other.

Not part of `make bench`, as it takes half an hour: `ninetka bench architecture`. Minutes per network are read from
NINETKA_BENCH_MINUTES.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from benchmarks.measure import Row, one_core, write_rows
from ninetka_agents.net_agent import NetAgent
from ninetka_agents.ninetka.network import Network
from ninetka_train.judging.evaluate import evaluate
from ninetka_train.learning.alphazero import learn, new_state, play_round
from ninetka_train.learning.config import check_config
from ninetka_train.learning.samples import Samples

Shape = dict[str, Any]
SHAPES: dict[str, Shape] = {
    "relations, width 64, 2 blocks": {},
    "relations, width 32, 2 blocks": {"width": 32},
    "relations, width 96, 2 blocks": {"width": 96},
    "relations, width 64, 1 block": {"blocks": 1},
    "relations, width 64, 3 blocks": {"blocks": 3},
    "attention, width 64, 2 blocks": {"mixing": "attention"},
    "pools and opposite slots alone, width 64, 3 blocks": {"mixing": "pool", "blocks": 3},
}
MINUTES = float(os.environ.get("NINETKA_BENCH_MINUTES", "3"))
GAMES = 1000
"""Games of the tree search per number of players, to learn from."""
RATED = {2: 300, 4: 60}
"""Games per lineup by number of players, to rate them."""
SEED = 11


def learned(shape: Shape, samples: Samples, steps: int) -> Network:
    """Return a network of that shape after so many steps, over which their size falls."""
    settings = {"rounds": 1, "steps": steps, "minibatch": 512}
    state = new_state(check_config({"algorithm": "alphazero", "network": shape, "alphazero": settings}))
    state.window = [samples]
    learn(state)
    trained: Network = state.network
    return trained


def steps_in_time(shape: Shape, samples: Samples) -> int:
    """Return how many steps a network of that shape takes in `MINUTES`."""
    for steps in (1, 4):  # the first one is slower
        start = time.perf_counter()
        learned(shape, samples, steps)
    return max(1, int(steps * MINUTES * 60 / (time.perf_counter() - start)))


def rows() -> Iterator[Row]:
    """Train all shapes, then rate them, playing their policies' best moves."""
    torch.set_num_threads(1)
    settings = {"games": GAMES, "playouts": 400, "power": 12, "exact_nodes": 0}
    values = {"algorithm": "alphazero", "players": [2, 3, 4], "seed": SEED, "threads": 1, "alphazero": settings}
    samples, _ = play_round(new_state(check_config(values)))
    steps = {name: steps_in_time(shape, samples) for name, shape in SHAPES.items()}
    networks = {name: learned(shape, samples, steps[name]) for name, shape in SHAPES.items()}
    agents = [NetAgent(network, name=name) for name, network in networks.items()]
    for players, games in RATED.items():
        result = evaluate(agents, players, games, seed=SEED, neutral_placement="random")
        for figures in result.agents:
            assert figures.elo is not None
            name = figures.name
            size = sum(weights.numel() for weights in networks[name].parameters())
            low, high = figures.elo_interval or (-np.inf, np.inf)
            note = f"[{low:.0f}, {high:.0f}]; {size / 1e3:.0f} k weights, {steps[name]} steps, {figures.games} games"
            yield Row(f"{players} players, {name}", "Elo", figures.elo, note=note)


def main() -> None:
    """Run on one core."""
    one_core()
    write_rows(rows())


if __name__ == "__main__":
    main()
