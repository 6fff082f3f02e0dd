"""Train repeatedly on three nodes while workers and nodes are killed or stopped at random times.

    PYTHONPATH=tests python -m cluster.kills 30

Each run must write the same bytes as a run in one process. The exit status is 0 if all runs do.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from cluster.nodes import kinds, new_player, small, some_nodes, trained

PATIENCE = 3.0


def main(trials: int) -> int:
    """Run the trials; return the number of runs whose files differ."""
    config, rng = small(games=24, playouts=40, task_games=4), np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name, some_nodes(3) as nodes:
        expected, player = trained(config, Path(name, "alone")), new_player(PATIENCE)
        happenings = kinds(nodes, player, rng)
        trained(config, Path(name, "warm"), player)
        seconds = -time.perf_counter()
        wrong = int(trained(config, Path(name, "calm"), player) != expected)
        seconds += time.perf_counter()
        for trial in range(trials):
            what, moment, start = list(happenings)[trial % 3], float(rng.uniform(0, seconds)), time.perf_counter()
            happening = threading.Timer(moment, happenings[what])
            happening.start()
            right = trained(config, Path(name, str(trial)), player) == expected
            print(
                f"{'right' if right else 'WRONG'} in {time.perf_counter() - start:.1f} s: {what} after {moment:.1f} s",
                flush=True,
            )
            wrong += not right
            happening.join()
            while len(nodes.nodes) < 3:
                nodes.add()
    print(f"{wrong} of {trials} wrong")
    return wrong


if __name__ == "__main__":
    sys.exit(min(1, main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)))
