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

from benchmarks.measure import Row, one_core, write_rows
from ninetka_agents.net_agent import NetAgent
from ninetka_agents.ninetka.network import Network
from ninetka_train.judging.evaluate import evaluate
from ninetka_train.learning.alphazero import learn, new_state
from ninetka_train.learning.config import AlphaZeroSettings, NetworkSettings, TrainConfig
from ninetka_train.learning.selfplay import Samples, playout_games

SHAPES = {
    "relations, width 64, 2 blocks": NetworkSettings(),
    "relations, width 32, 2 blocks": NetworkSettings(width=32),
    "relations, width 96, 2 blocks": NetworkSettings(width=96),
    "relations, width 64, 1 block": NetworkSettings(blocks=1),
    "relations, width 64, 3 blocks": NetworkSettings(blocks=3),
    "attention, width 64, 2 blocks": NetworkSettings(mixing="attention"),
    "pools and opposite slots alone, width 64, 3 blocks": NetworkSettings(mixing="pool", blocks=3),
}
MINUTES = float(os.environ.get("NINETKA_BENCH_MINUTES", "3"))
GAMES = 1000
"""Games of the tree search per number of players, to learn from."""
RATED = {2: 300, 4: 60}
"""Games per lineup by number of players, to rate them."""
SEED = 11


def learned(shape: NetworkSettings, samples: Samples, steps: int) -> Network:
    """Return a network of that shape after so many steps, over which their size falls."""
    settings = AlphaZeroSettings(rounds=1, steps=steps, minibatch=512)
    state = new_state(TrainConfig(network=shape, alphazero=settings))
    state.window = [samples]
    learn(state)
    return state.network


def steps_in_time(shape: NetworkSettings, samples: Samples) -> int:
    """Return how many steps a network of that shape takes in `MINUTES`."""
    for steps in (1, 4):  # the first one is slower
        start = time.perf_counter()
        learned(shape, samples, steps)
    return max(1, int(steps * MINUTES * 60 / (time.perf_counter() - start)))


def rows() -> Iterator[Row]:
    """Train all shapes, then rate them, playing their policies' best moves."""
    torch.set_num_threads(1)
    samples = playout_games(np.repeat([2, 3, 4], GAMES), SEED, 400, power=12)
    steps = {name: steps_in_time(shape, samples) for name, shape in SHAPES.items()}
    networks = {name: learned(shape, samples, steps[name]) for name, shape in SHAPES.items()}
    agents = [NetAgent.of(network, name=name) for name, network in networks.items()]
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
