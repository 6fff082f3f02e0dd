"""Compare network architectures: train each for the same time on the same games, on one core; then play a match.

Start reading at `rows`. `benchmarks.networks` and `benchmarks.train` measure the speed of networks.

Not part of `make speed`, because it takes half an hour: run `ninetka speed architecture`. The environment variable
NINETKA_BENCH_MINUTES sets the minutes of training per network.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from benchmarks.measure import Row, pin_to_one_core, write_rows
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
TRAINING_GAMES = 1000
"""Number of games to train on, played by tree search, for each number of players."""
RATING_GAMES = {2: 300, 4: 60}
"""Number of games per lineup of the match, by number of players; see `ninetka_train.judging.schedule`."""
SEED = 11


def train_network(shape: Shape, samples: Samples, steps: int) -> Network:
    """Return a network of a shape after `steps` gradient steps with a decaying learning rate."""
    settings = {"rounds": 1, "steps": steps, "minibatch": 512}
    state = new_state(check_config({"algorithm": "alphazero", "network": shape, "alphazero": settings}))
    state.window = [samples]
    learn(state)
    network: Network = state.network
    return network


def steps_in_time(shape: Shape, samples: Samples) -> int:
    """Return how many gradient steps a network of a shape takes in `MINUTES`."""
    for steps in (1, 4):  # the first run is slower and serves as a warm-up
        start = time.perf_counter()
        train_network(shape, samples, steps)
    return max(1, int(steps * MINUTES * 60 / (time.perf_counter() - start)))


def rows() -> Iterator[Row]:
    """Train all shapes, then rate the networks in matches. The networks play their most probable moves."""
    torch.set_num_threads(1)
    settings = {"games": TRAINING_GAMES, "playouts": 400, "power": 12, "exact_nodes": 0}
    values = {"algorithm": "alphazero", "players": [2, 3, 4], "seed": SEED, "threads": 1, "alphazero": settings}
    samples, _ = play_round(new_state(check_config(values)))
    steps = {name: steps_in_time(shape, samples) for name, shape in SHAPES.items()}
    networks = {name: train_network(shape, samples, steps[name]) for name, shape in SHAPES.items()}
    agents = [NetAgent(network, name=name) for name, network in networks.items()]
    for players, games in RATING_GAMES.items():
        result = evaluate(agents, players, games, seed=SEED, neutral_placement="random")
        for figures in result.agents:
            assert figures.elo is not None
            name = figures.name
            size = sum(weights.numel() for weights in networks[name].parameters())
            low, high = figures.elo_interval or (-np.inf, np.inf)
            note = f"[{low:.0f}, {high:.0f}]; {size / 1e3:.0f} k weights, {steps[name]} steps, {figures.games} games"
            yield Row(f"{players} players, {name}", "Elo", figures.elo, note=note)


def main() -> None:
    """Run the benchmark on one core."""
    pin_to_one_core()
    write_rows(rows())


if __name__ == "__main__":
    main()
