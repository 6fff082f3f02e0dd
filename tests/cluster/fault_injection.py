"""Train repeatedly on three nodes while workers and nodes are killed or stopped at random times.

    PYTHONPATH=tests python -m cluster.fault_injection 30

Each run must write the same bytes as a run in one process. If a run writes other bytes, the exit status is 1.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from cluster.nodes import faults, new_player, small, some_nodes, train

TIMEOUT_S = 3.0


def main(trials: int) -> int:
    """Train once without a fault and `trials` times with a fault; return the number of runs that write wrong files."""
    config, rng = small(games=24, playouts=40, task_games=4), np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name, some_nodes(3) as nodes:
        expected, player = train(config, Path(name, "alone")), new_player(TIMEOUT_S)
        inject = faults(nodes, player, rng)
        train(config, Path(name, "warm"), player)
        seconds = -time.perf_counter()
        wrong = int(train(config, Path(name, "calm"), player) != expected)
        seconds += time.perf_counter()
        for trial in range(trials):
            fault, moment, start = list(inject)[trial % 3], float(rng.uniform(0, seconds)), time.perf_counter()
            timer = threading.Timer(moment, inject[fault])
            timer.start()
            right = train(config, Path(name, str(trial)), player) == expected
            print(
                f"{'right' if right else 'WRONG'} in {time.perf_counter() - start:.1f} s: {fault} after {moment:.1f} s",
                flush=True,
            )
            wrong += not right
            timer.join()
            while len(nodes.nodes) < 3:
                nodes.add()
    print(f"{wrong} of {trials + 1} runs wrong")
    return wrong


if __name__ == "__main__":
    sys.exit(min(1, main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)))
