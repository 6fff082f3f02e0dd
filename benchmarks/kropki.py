"""Benchmark Kropki: speed, memory, start time and strength, compared with oppai-rs; check it against the slow rules.

`benchmarks.oppai` runs oppai-rs. `python -m benchmarks.kropki local aec` runs only these two parts of `PARTS`.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks import oppai
from benchmarks.aec import random_game
from benchmarks.measure import Row, rates, write_rows, write_rows_on_one_core
from benchmarks.startup import peak_memory, process_seconds
from benchmarks.vector import random_play
from ninetka_agents.agent import Agent, make_agent
from ninetka_agents.search.rave import search
from ninetka_env import kropki_v0
from ninetka_env.core.batch import new_games
from ninetka_env.core.jit import jit
from ninetka_env.core.random_streams import Streams, make_streams
from ninetka_env.core.registry import load_variant
from ninetka_env.core.verbs import StateArray, playout
from ninetka_train.judging.evaluate import evaluate

FIRST_STEP = """
from ninetka_env import kropki_v0 as e
e = e.env({}); e.reset(seed=0); e.last(); e.step(24); e.last()
"""
SEARCH = """
import numpy as np
from ninetka_agents.search.rave import search
from ninetka_env.games.kropki.game import Game
search(Game.new({0}, {1}), {2}, np.random.default_rng(0))
"""
RAVE, UCT = "mcts:simulations=1000,rave,threads=1", "mcts:simulations=1000,threads=1"
TIMED_RAVE = "mcts:seconds=0.02,rave,threads=1"
LOCK_STEP_GAMES = 1000
"""Approximate number of games that are compared ply by ply with the slow reference."""
SMALL_BOARD, LARGE_BOARD = (
    {"width": side, "height": side, "territory": "immediate", "start": "cross"} for side in (10, 20)
)
"""Options of the boards of the matches."""
PLAYOUTS = {10: 20_000, 20: 4_000}
"""Number of playouts per call, by board side."""
SIMULATIONS = 10_000
NEW_SIZES = ((11, 9), (9, 11), (12, 7), (7, 12), (8, 8))
"""Sizes (width, height) that use the state type and the compiled code of 10 x 10."""


@jit
def _playouts(games: StateArray, streams: Streams, count: int) -> int:
    for _ in range(count):
        games[1] = games[0]
        playout(games[1], streams, 0)
    return count


def playouts(side: int, territory: str) -> Callable[[], int]:
    """Return a function that plays random games from the empty board."""
    streams = make_streams(0)
    games = np.repeat(new_games(load_variant("kropki", width=side, height=side, territory=territory), streams), 2)
    return lambda: int(_playouts(games, streams, PLAYOUTS[side]))


def search_position() -> kropki_v0.Game:
    """Return the position in which searches are timed."""
    return kropki_v0.Game.new(10, 10, territory="immediate", start="cross")


def simulations() -> Callable[[], int]:
    """Return a function that searches by UCT with RAVE and returns the number of simulations."""
    game, rng = search_position(), np.random.default_rng(0)
    return lambda: int(search(game, SIMULATIONS, rng).visits.sum())


def playout_rows(side: int, target: float) -> Iterator[Row]:
    """Measure random playouts, compared with oppai-rs if NINETKA_OPPAI_BENCH is set."""
    for territory in ("declared", "immediate"):
        what = f"Kropki {side} x {side}, {territory}, random playouts"
        if oppai.BENCH:
            peer_games = oppai.random_games(oppai.BENCH, side, 10 * PLAYOUTS[side])  # makes its start negligible
            ours, peer = rates(playouts(side, territory), peer_games)
            yield Row(what, "playouts/s", ours, peer, "oppai-rs field, immediate", target)
        else:
            (ours,) = rates(playouts(side, territory))
            yield Row(what, "playouts/s", ours, target=target, note="NINETKA_OPPAI_BENCH is not set")


def search_row() -> Row:
    """Measure tree search, compared with oppai-rs if NINETKA_OPPAI_CLI is set."""
    what, target = "Kropki 10 x 10, immediate, cross, UCT with RAVE", 125e3
    if oppai.CLI:
        ours, peer = rates(simulations(), oppai.simulations(oppai.CLI, search_position(), SIMULATIONS))
        return Row(what, "simulations/s", ours, peer, "oppai-rs UCT", target)
    (ours,) = rates(simulations())
    return Row(what, "simulations/s", ours, target=target, note="NINETKA_OPPAI_CLI is not set")


def memory_rows() -> Iterator[Row]:
    """Measure the peak memory of processes that run a million simulations."""
    for width, height, target in ((10, 10, 1e9), (39, 32, 2e9)):
        peak_memory(SEARCH.format(width, height, 10))  # fills the cache, because compiling takes memory too
        what = f"Kropki {width} x {height}, 1 M simulations of UCT with RAVE, whole process"
        yield Row(
            what, "bytes", peak_memory(SEARCH.format(width, height, 1_000_000)), target=target, lower_is_better=True
        )


def start_rows() -> Iterator[Row]:
    """Measure the time of new processes to their first step: with a warm and a cold cache, and on new board sizes."""
    default_step = FIRST_STEP.format("")
    process_seconds(default_step, runs=1)
    what = "Kropki, process to first step"
    yield Row(f"{what}, warm cache", "s", process_seconds(default_step), target=1.0, lower_is_better=True)
    with tempfile.TemporaryDirectory() as empty:
        cold = process_seconds(default_step, runs=1, cache=empty)
        steps = [FIRST_STEP.format(f"width={width}, height={height}") for width, height in NEW_SIZES]
        new = statistics.median(process_seconds(step, runs=1, cache=empty) for step in steps)
    yield Row(f"{what}, cold cache", "s", cold, target=10.0, lower_is_better=True)
    note = "median of " + ", ".join(f"{width} x {height}" for width, height in NEW_SIZES)
    yield Row(f"{what}, a new size after 10 x 10", "s", new, target=1.0, lower_is_better=True, note=note)


def speed_rows() -> Iterator[Row]:
    """Measure batches, playouts, search and the size of a state."""
    for side, play_target, playout_target in ((10, 4e6, 200e3), (20, 1.8e6, 45e3)):
        (ours,) = rates(random_play(kropki_v0.vector_env(1024, side, side, num_threads=1)))
        what = f"Kropki {side} x {side}, declared, batched random play, 1024 games"
        yield Row(what, "actions/s", ours, target=play_target)
        yield from playout_rows(side, playout_target)
    yield search_row()
    size = load_variant("kropki").dtype.itemsize
    yield Row("Kropki 10 x 10, record of one game", "bytes", size, target=600, lower_is_better=True)


def aec_rows() -> Iterator[Row]:
    """Measure the AEC loop, compared with PettingZoo's connect four."""
    from pettingzoo.classic import connect_four_v3

    for kind in ("raw_env", "env"):
        runs = random_game(getattr(kropki_v0, kind)()), random_game(getattr(connect_four_v3, kind)())
        ours, peer = rates(*runs, seconds=0.7)
        yield Row(f"Kropki, AEC loop with last(), {kind}", "moves/s", ours, peer, f"PettingZoo connect four, {kind}")


def thread_rows() -> Iterator[Row]:
    """Measure two threads compared with one."""
    for side in (10, 20):
        two, one = rates(*(random_play(kropki_v0.vector_env(1024, side, side, num_threads=n)) for n in (2, 1)))
        what = f"Kropki {side} x {side}, declared, batched random play, 1024 games, two threads"
        yield Row(what, "actions/s", two, one, "one thread")


def match(first: str, other: str | Agent, games: int, target: float, **options: object) -> Row:
    """Play a match with alternating seats; return a row with the share won by `first`, where a draw counts half."""
    game = load_variant("kropki", **options)
    agents = [make_agent(one, "kropki") if isinstance(one, str) else one for one in (first, other)]
    figures = evaluate(agents, num_games=games, game=game, batch=1).agents[0]
    sides, territory, start = f"{options['width']} x {options['height']}", options["territory"], options["start"]
    opponent = other if isinstance(other, str) else other.name
    note = "95 %: {:.0f} to {:.0f}".format(*(100 * bound for bound in figures.interval)) + f", {games} games"
    what = f"Kropki {sides}, {territory}, {start}: {first} against {opponent}"
    return Row(what, "%", 100 * figures.share, target=target, note=note)


def strength_rows() -> Iterator[Row]:
    """Play matches of UCT with RAVE against the greedy agent, plain UCT and oppai-rs."""
    for start in ("empty", "cross"):
        yield match(RAVE, "greedy", 60, 95, **SMALL_BOARD | {"territory": "declared", "start": start})
    yield match(RAVE, UCT, 60, 95, **SMALL_BOARD)
    if oppai.CLI:
        yield match(RAVE, oppai.OppaiAgent(oppai.CLI, 1000), 100, 90, **SMALL_BOARD)


def local_rows() -> Iterator[Row]:
    """Play a match between local search and search of all nodes, with equal time per move."""
    yield match(f"{TIMED_RAVE},local,playouts=heavy", TIMED_RAVE, 40, 90, **LARGE_BOARD)


def lock_step_rows() -> Iterator[Row]:
    """Compare random games ply by ply with the slow reference; raise `CalledProcessError` if there is a difference."""
    root = Path(__file__).resolve().parent.parent
    path = os.pathsep.join([str(root / "tests"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "kropki.lock_step", "--games", str(LOCK_STEP_GAMES)]
    environment = os.environ | {"PYTHONPATH": path}
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    games, sizes = sum(map(int, re.findall(r": (\d+) games", output))), len(output.splitlines())
    note = f"{games} games on {sizes} sizes"
    what = "Kropki, lock-step with the slow reference: differences"
    yield Row(what, "", 0, target=0, lower_is_better=True, note=note)


ONE_CORE = {
    "speed": speed_rows, "aec": aec_rows, "memory": memory_rows, "start": start_rows,
    "strength": strength_rows, "local": local_rows,
}  # fmt: skip
PARTS = ONE_CORE | {"threads": thread_rows, "lock_step": lock_step_rows}


def main(parts: list[str]) -> None:
    """Print the rows of the parts named in `parts`; if it is empty, of all parts."""
    if unknown := [part for part in parts if part not in PARTS]:
        raise SystemExit(f"error: unknown part {unknown[0]!r} of this benchmark: the parts are {', '.join(PARTS)}")
    for part in parts or PARTS:
        (write_rows_on_one_core if part in ONE_CORE else write_rows)(PARTS[part]())


if __name__ == "__main__":
    main(sys.argv[1:])
