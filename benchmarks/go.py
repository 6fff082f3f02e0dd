"""Benchmark 9 x 9 Go, compared with the peers of `benchmarks.go_peers`.

Measured are batches, playouts, search, the PettingZoo loop, memory, start time, and GNU Go's speed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks import go_peers
from benchmarks.aec import random_game
from benchmarks.measure import Row, is_installed, rates, write_rows, write_rows_on_one_core
from benchmarks.search import spiel_mcts
from benchmarks.startup import peak_memory, process_seconds
from benchmarks.vector import random_play
from ninetka_agents.search import rave, uct
from ninetka_env import go_v0
from ninetka_env.core.jit import jit
from ninetka_env.core.random_streams import Streams, make_streams
from ninetka_env.core.registry import load_variant
from ninetka_env.core.verbs import StateArray, playout, plies

TARGETS = {"alphazero": (4e6, 7e6), "standard": (2e6, 3.5e6)}
"""Target plies per second with one thread and with two, by kind of planes."""
SIMULATIONS = 10_000
FIRST_STEP = "from ninetka_env import go_v0 as e; e = e.env(); e.reset(seed=0); e.last(); e.step(24); e.last()"
SEARCH = """
import numpy as np
from ninetka_agents import make_agent
from ninetka_env import go_v0
make_agent("{}", "go").act(go_v0.Game.new().records, np.random.default_rng(0))
"""
"""Program that searches the empty board once."""
SPIEL_INSTALL = "OpenSpiel (pip install open-spiel)"
PGX_INSTALL = "pgx (pip install pgx)"


# One core


def one_core_rows() -> Iterator[Row]:
    """Measure on one core, alternating with the installed peers."""
    for planes, (target, _) in TARGETS.items():
        (ours,) = rates(random_batch(planes, 1))
        yield Row(f"{batch_row_name(planes)}, one core", "plies/s", ours, target=target)
    what = f"{batch_row_name('alphazero')}, one core"
    yield peer_row(what, "plies/s", random_batch("alphazero", 1), "pyspiel", go_peers.openspiel,
                 "OpenSpiel go in Python, tensor and mask", SPIEL_INSTALL)  # fmt: skip
    yield peer_row(
        what, "plies/s", random_batch("alphazero", 1), "pgx", go_peers.pgx, "pgx go_9x9, one core", PGX_INSTALL
    )
    yield from search_rows()
    yield from aec_rows()
    yield from gnu_go_rows()


def batch_row_name(planes: str) -> str:
    """Return the start of the row names of batched play."""
    return f"Go, batched random play, 1024 games, {planes} planes"


def random_batch(planes: str, threads: int) -> Callable[[], int]:
    """Return a function that plays random plies in 1,024 games."""
    return random_play(go_v0.vector_env(1024, planes=planes, num_threads=threads))


def peer_row(
    what: str,
    unit: str,
    ours: Callable[[], int],
    module: str,
    peer: Callable[[], Callable[[], int]],
    name: str,
    install_hint: str,
    target: float | None = None,
) -> Row:
    """Measure `ours`, alternating with a peer if it is installed; otherwise add a note on how to install it.

    Args:
        what: name of the row.
        unit: unit of the rates.
        ours: does some work and returns how much.
        module: module of the peer.
        peer: returns a function like `ours` that uses the peer.
        name: name of the peer.
        install_hint: name of the peer's package and how to install it.
        target: rate to reach.
    """
    if not is_installed(module):
        return Row(what, unit, rates(ours)[0], target=target, note=f"not installed: {install_hint}")
    our_rate, peer_rate = rates(ours, peer())
    return Row(what, unit, our_rate, peer_rate, name, target)


@jit
def _play_out(games: StateArray, streams: Streams, count: int) -> int:
    """Play `count` playouts in `games[0]` from the position `games[1]`; return the total number of plies."""
    played = 0
    for _ in range(count):
        games[0] = games[1]
        playout(games[0], streams, 0)
        played += plies(games[0])
    return played


def playouts() -> tuple[Callable[[], int], Callable[[], float]]:
    """Return two functions: one plays 1,000 playouts from the empty board, one returns their mean number of plies."""
    games, streams = np.repeat(go_v0.Game.new().records, 2), make_streams(0)
    played = [0, 0]

    def run() -> int:
        played[0] += 1000
        played[1] += _play_out(games, streams, 1000)
        return 1000

    return run, lambda: played[1] / played[0]


def search_rows() -> Iterator[Row]:
    """Measure playouts and searches from the empty board."""
    run, length = playouts()
    (ours,) = rates(run)
    yield Row("Go, uniform playouts", "playouts/s", ours, target=140e3, note=f"{length():.0f} plies each")
    game, rng = go_v0.Game.new(), np.random.default_rng(0)

    def plain() -> int:
        return int(uct.search(game, SIMULATIONS, rng).visits.sum())

    def strong() -> int:
        return int(rave.search(game, SIMULATIONS, rng, heavy=True).visits.sum())

    for what, ours_, target in (("UCT", plain, 120e3), ("RAVE with playouts=heavy", strong, 70e3)):
        yield peer_row(f"Go, {what}, {SIMULATIONS} a move", "simulations/s", ours_, "pyspiel",
                     lambda: spiel_mcts(go_peers.SPIEL_GAME, 500), "OpenSpiel C++ MCTS", SPIEL_INSTALL,
                     target)  # fmt: skip


def aec_rows() -> Iterator[Row]:
    """Measure the PettingZoo loop, alternating with PettingZoo's own Go."""
    from pettingzoo.classic import go_v5

    for kind, target_ratio in (("raw_env", 12), ("env", 5)):
        peer = getattr(go_v5, kind)(board_size=9, komi=7.5)
        ours, theirs = rates(random_game(getattr(go_v0, kind)()), random_game(peer), seconds=0.7)
        name, note = f"PettingZoo go_v5, {kind}", f"target ratio: {target_ratio}"
        yield Row(f"Go, AEC loop with last(), {kind}", "moves/s", ours, theirs, name, note=note)


def gnu_go_rows() -> Iterator[Row]:
    """Measure GNU Go's time per move in a game against itself, if GNU Go is installed."""
    for level in (0, 5, 10):
        what = f"GNU Go, level {level}, against itself"
        try:
            took = go_peers.gnu_go_move_seconds(level)
        except ValueError:
            yield Row(what, "ms/move", float("nan"), note="not installed: GNU Go (apt-get install gnugo)")
            return
        yield Row(what, "ms/move", 1e3 * float(np.mean(took)), note=f"{1e3 * max(took):.0f} at most")


# Two threads, size, memory and start


def rows() -> Iterator[Row]:
    """Measure two threads compared with one, then the memory and start time of whole processes."""
    for planes, (_, target) in TARGETS.items():
        two, one = rates(random_batch(planes, 2), random_batch(planes, 1))
        yield Row(f"{batch_row_name(planes)}, two threads", "plies/s", two, one, "one thread", target)
    yield peer_row(f"{batch_row_name('alphazero')}, two threads", "plies/s", random_batch("alphazero", 2), "pgx",
                 go_peers.pgx, "pgx go_9x9, all cores", PGX_INSTALL)  # fmt: skip
    size = load_variant("go").dtype.itemsize
    yield Row("Go, record of one game, simple ko", "bytes", size, target=1200, lower_is_better=True)
    if Path("/proc/self/status").exists():
        yield from memory_rows()
    yield from start_rows()


def memory_rows() -> Iterator[Row]:
    """Measure the peak memory of processes that search the empty board once."""
    for spec in ("mcts:simulations=1000000,threads=1", "mcts:simulations=1000000,threads=1,rave,playouts=heavy"):
        peak_memory(SEARCH.format(spec.replace("1000000", "10")))  # fills the cache, because compiling takes memory too
        megabytes = peak_memory(SEARCH.format(spec)) / 1e6
        yield Row(f"Go, peak memory of {spec}", "MB", megabytes, target=1000, lower_is_better=True)


def start_rows() -> Iterator[Row]:
    """Measure the time of a new process to its first step: with a warm and a cold cache, and on a new board size."""
    process_seconds(FIRST_STEP, runs=1)
    what = "Go, process to first step"
    yield Row(f"{what}, warm cache", "s", process_seconds(FIRST_STEP), target=1.0, lower_is_better=True)
    with tempfile.TemporaryDirectory() as empty:
        cold = process_seconds(FIRST_STEP, runs=1, cache=empty)
        yield Row(f"{what}, cold cache", "s", cold, target=10.0, lower_is_better=True)
        other = process_seconds(FIRST_STEP.replace("env()", "env(size=13)"), runs=1, cache=empty)
        yield Row(f"{what}, 13 x 13 for the first time", "s", other, target=10.0, lower_is_better=True)


if __name__ == "__main__":
    write_rows_on_one_core(one_core_rows())
    write_rows(rows())
