"""Trains again and again on three nodes while workers and nodes are killed or hang, at random moments.

    PYTHONPATH=tests python -m cluster.kills 30

Each run must leave the bytes that one process leaves. Ends with status 0 if all did.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from cluster.nodes import Nodes, kinds, new_player, small, some_nodes, trained

PATIENCE = 3.0


def main(trials: int) -> int:
    """Run; return the number of runs that went wrong."""
    config, rng = small(games=24, playouts=40, task_games=4), np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name, some_nodes(3) as nodes:
        expected, seconds = trained(config, Path(name, "alone")), 0.0
        player = new_player(PATIENCE)
        wrong = 0
        for trial in range(-1, trials):  # the first is left alone, to see how long it takes
            chosen = None if trial < 0 else list(kinds(nodes, rng))[trial % 3]
            moment = float(rng.uniform(0, seconds))
            start = time.monotonic()
            happening = threading.Timer(moment, strike, (nodes, rng, chosen))
            happening.start()
            right = trained(config, Path(name, str(trial)), player) == expected
            happening.join()
            if trial <= 0:
                seconds = time.monotonic() - start
            wrong += not right
            what = f"{chosen} after {moment:.1f} s" if chosen else "nothing happens"
            print(f"{'right' if right else 'WRONG'} in {time.monotonic() - start:.1f} s: {what}", flush=True)
        print(f"{trials - wrong} of {trials} right")
    return wrong


def strike(nodes: Nodes, rng: np.random.Generator, chosen: str | None) -> None:
    """Let something happen."""
    if chosen:
        kinds(nodes, rng)[chosen]()


if __name__ == "__main__":
    sys.exit(min(1, main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)))
