"""Measure the size of a game's state and the time of a new process to its first step, with a warm and a cold cache."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from benchmarks.measure import Row, has, write_rows
from ninetka_env.games.ninetka.rules import GAME

IMPORT = "import ninetka_env"
FIRST_STEP = "from ninetka_env import ninetka_v0 as e; e = e.env(); e.reset(seed=0); e.last(); e.step(24); e.last()"
PEER_STEP = (
    "from pettingzoo.classic import connect_four_v3 as e; e = e.env(); e.reset(seed=0); e.last(); e.step(3); e.last()"
)
PEAK = """
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
SPIEL_STEP = "import pyspiel; s = pyspiel.load_game('hex').new_initial_state(); s.apply_action(0)"


def seconds(code: str, runs: int = 5, cache: str | None = None) -> float:
    """Return the median wall time of a new Python process that runs `code`, in seconds.

    Args:
        code: the program.
        runs: number of processes.
        cache: folder of the compile cache; the default one if None.
    """
    environment = os.environ | ({"XDG_CACHE_HOME": cache, "NUMBA_CACHE_DIR": cache} if cache else {})
    taken = []
    for _ in range(runs):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, env=environment)
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def peak(code: str) -> float:
    """Return the peak memory of a new Python process that runs `code`, in bytes, from Linux's `/proc`.

    `getrusage` would include the memory of the parent process.
    """
    told = subprocess.run([sys.executable, "-W", "ignore", "-c", code + PEAK], check=True, stdout=subprocess.PIPE)
    return 1024.0 * int(told.stdout)


def rows() -> Iterator[Row]:
    """Measure whole processes; every figure includes the start of Python itself."""
    yield Row("record of one game", "bytes", GAME.itemsize, target=512, lower_is_better=True)
    bare = seconds("pass")
    note = f"{bare:.2f} s of it is Python itself"
    yield Row("import ninetka_env", "s", seconds(IMPORT), target=0.6, lower_is_better=True, note=note)
    seconds(FIRST_STEP, runs=1)
    peer = seconds(PEER_STEP)
    name = "PettingZoo connect four"
    yield Row("process to first step, warm cache", "s", seconds(FIRST_STEP), peer, name, 1.0, lower_is_better=True)
    if has("pyspiel"):
        what = "process to first step, warm cache"
        yield Row(what, "s", seconds(FIRST_STEP), seconds(SPIEL_STEP), "OpenSpiel hex", 1.0, lower_is_better=True)
    with tempfile.TemporaryDirectory() as empty:
        cold = seconds(FIRST_STEP, runs=1, cache=empty)
    yield Row("process to first step, cold cache", "s", cold, target=20.0, lower_is_better=True)


if __name__ == "__main__":
    write_rows(rows())
