"""Measure the size of a game's state and the time of a new process to its first step, with a warm and a cold cache.

`ninetka_env.core.cache` is the cache of compiled code.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from benchmarks.measure import Row, is_installed, write_rows
from ninetka_env.games.ninetka.rules import STATE_DTYPE

IMPORT = "import ninetka_env"
IMPORT_PACKAGES = "import numpy, numba, gymnasium, pettingzoo"
FIRST_STEP = "from ninetka_env import ninetka_v0 as e; e = e.env(); e.reset(seed=0); e.last(); e.step(24); e.last()"
FIRST_STEP_OF_GO = FIRST_STEP.replace("ninetka_v0", "go_v0")
PEER_STEP = (
    "from pettingzoo.classic import connect_four_v3 as e; e = e.env(); e.reset(seed=0); e.last(); e.step(3); e.last()"
)
FIRST_MATCHES = {
    "9tka": "maxn mcts:simulations=200",
    "Go": "mcts:simulations=200,rave mcts:simulations=200 --game go",
    "9tka with a network": "net:simulations=64 maxn",
}
"""Arguments of `ninetka evaluate` for matches whose code is compiled first."""
TRAIN_TO_FIRST_GAME = """
import os, sys
from ninetka_train.learning import selfplay
from ninetka_train.__main__ import main
play = selfplay._play_actions
def noted(games, playing, actions):
    left = play(games, playing, actions)
    if len(left) < len(playing):
        os._exit(0)
    return left
selfplay._play_actions = noted
sys.argv = ["ninetka", "train", "--config", "quick", "--games", "0", "--runs", sys.argv[1]]
main()
"""
"""Train as `make train` does until the first game is finished."""
PRINT_PEAK = """
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
SPIEL_STEP = "import pyspiel; s = pyspiel.load_game('hex').new_initial_state(); s.apply_action(0)"


def process_seconds(code: str, runs: int = 5, cache: str | None = None) -> float:
    """Return the median wall time of a new Python process that runs `code`, in seconds.

    Args:
        code: the program.
        runs: number of processes.
        cache: folder of the compile cache; the default one if None.
    """
    environment = os.environ | ({"XDG_CACHE_HOME": cache, "NUMBA_CACHE_DIR": cache} if cache else {})
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, env=environment)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def peak_memory(code: str) -> float:
    """Return the peak memory of a new Python process that runs `code`, in bytes, from Linux's `/proc`.

    `getrusage` would include the memory of the parent process.
    """
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code + PRINT_PEAK], check=True, stdout=subprocess.PIPE)
    return 1024.0 * int(done.stdout)


def rows() -> Iterator[Row]:
    """Measure whole processes; every figure includes the start of Python itself."""
    yield Row("record of one game", "bytes", STATE_DTYPE.itemsize, target=512, lower_is_better=True)
    bare = process_seconds("pass")
    note = f"{bare:.2f} s of it is Python itself"
    yield Row("import ninetka_env", "s", process_seconds(IMPORT), target=0.6, lower_is_better=True, note=note)
    process_seconds(FIRST_STEP, runs=1)
    peer = process_seconds(PEER_STEP)
    name = "PettingZoo connect four"
    yield Row(
        "process to first step, warm cache", "s", process_seconds(FIRST_STEP), peer, name, 1.0, lower_is_better=True
    )
    if is_installed("pyspiel"):
        what = "process to first step, warm cache"
        yield Row(
            what,
            "s",
            process_seconds(FIRST_STEP),
            process_seconds(SPIEL_STEP),
            "OpenSpiel hex",
            1.0,
            lower_is_better=True,
        )
    packages = process_seconds(IMPORT_PACKAGES)
    note = f"beyond {packages:.2f} s for the imports of numpy, numba, gymnasium and pettingzoo"
    for name, step in (("9tka", FIRST_STEP), ("Go", FIRST_STEP_OF_GO)):
        process_seconds(step, runs=1)
        warm = process_seconds(step) - packages
        yield Row(f"first step of {name}, warm cache", "s", warm, target=0.3, lower_is_better=True, note=note)
        with tempfile.TemporaryDirectory() as empty:
            cold = process_seconds(step, runs=1, cache=empty)
        yield Row(f"process to first step of {name}, cold cache", "s", cold, target=20.0, lower_is_better=True)
    for name, agents in FIRST_MATCHES.items():
        what = f"first match: two games, {name}, cold cache, time of all cores"
        yield Row(what, "s", first_match_seconds(agents), lower_is_better=True)
    if is_installed("torch"):
        what = "process of make train to its first finished game, cold cache"
        yield Row(what, "s", first_trained_game_seconds(), target=40.0, lower_is_better=True)


def first_match_seconds(agents: str) -> float:
    """Return the processor time of `ninetka evaluate` for a match of two games with an empty compile cache."""
    with tempfile.TemporaryDirectory() as empty:
        before = _children_seconds()
        command = [sys.executable, "-m", "ninetka_train", "evaluate", *agents.split(), "--games", "2"]
        subprocess.run(command, check=True, env=os.environ | {"XDG_CACHE_HOME": empty}, capture_output=True)
        return _children_seconds() - before


def first_trained_game_seconds() -> float:
    """Return the wall time from the start of a training run to its first finished game with an empty compile cache."""
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as runs:
        command = [sys.executable, "-c", TRAIN_TO_FIRST_GAME, runs]
        start = time.perf_counter()
        subprocess.run(command, check=True, env=os.environ | {"XDG_CACHE_HOME": empty}, capture_output=True)
        return time.perf_counter() - start


def _children_seconds() -> float:
    """Return the processor time of all processes that this process has started and waited for."""
    times = os.times()
    return times.children_user + times.children_system


if __name__ == "__main__":
    write_rows(rows())
