"""Speed of the PettingZoo loop, including `last()`, compared with PettingZoo's own board games.

`benchmarks.vector` measures batches.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.measure import Row, pin_to_one_core, rates, write_rows
from ninetka_env import ninetka_v0

warnings.filterwarnings("ignore")


def random_game(env: Any) -> Callable[[], int]:
    """Return a function that plays one random game through `agent_iter` and `last` and returns its number of moves."""
    rng = np.random.default_rng(0)

    def run() -> int:
        env.reset(seed=0)
        moves = 0
        for _ in env.agent_iter():
            observation, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                env.step(None)
                continue
            legal = np.flatnonzero(observation["action_mask"])
            env.step(int(legal[int(rng.random() * len(legal))]))
            moves += 1
        return moves

    return run


def rows() -> Iterator[Row]:
    """Measure `raw_env` and `env`, alternating with each peer."""
    from pettingzoo.classic import connect_four_v3, tictactoe_v3

    for peer_name, peer in (("PettingZoo connect four", connect_four_v3), ("PettingZoo tic-tac-toe", tictactoe_v3)):
        for kind, target in (("raw_env", 60e3), ("env", 26e3)):
            ours, theirs = rates(
                random_game(getattr(ninetka_v0, kind)()), random_game(getattr(peer, kind)()), seconds=0.7
            )
            yield Row(f"AEC loop with last(), {kind}", "moves/s", ours, theirs, f"{peer_name}, {kind}", target)


if __name__ == "__main__":
    pin_to_one_core()
    write_rows(rows())
