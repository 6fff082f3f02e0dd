"""Kropki: batched play, random playouts and the PettingZoo loop, on one core."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.aec import random_game
from benchmarks.measure import Row, one_core, rates, write_rows
from benchmarks.startup import seconds
from benchmarks.vector import random_play
from ninetka_env import kropki_v0
from ninetka_env.core.batch import new_games
from ninetka_env.core.chance import Streams, make_streams
from ninetka_env.core.jit import jit
from ninetka_env.core.registry import load_variant
from ninetka_env.core.verbs import Records, playout

FIRST_STEP = "from ninetka_env import kropki_v0 as e; e = e.env(); e.reset(seed=0); e.last(); e.step(24); e.last()"
PLAYOUTS = {10: 20_000, 20: 4_000}
"""By the side of the board, how many playouts at once."""

OPPAI = os.environ.get("NINETKA_OPPAI_BENCH")
"""The path of `oppai-bench`, a program of github.com/pointsgame/oppai-rs: it plays random games on its field."""


@jit
def _playouts(games: Records, streams: Streams, count: int) -> int:
    for _ in range(count):
        games[1] = games[0]
        playout(games[1], streams, 0)
    return count


def playouts(side: int, territory: str) -> Callable[[], int]:
    """Return a function that plays random games from the empty board."""
    streams = make_streams(0)
    games = np.repeat(new_games(load_variant("kropki", width=side, height=side, territory=territory), streams), 2)
    return lambda: int(_playouts(games, streams, PLAYOUTS[side]))


def oppai_playouts(program: str, side: int) -> Callable[[], int]:
    """Return a function that has oppai-rs play random games, all regions drawn at once, and counts them."""
    count = 10 * PLAYOUTS[side]  # so many that its start takes next to no time
    command = [program, "-w", str(side), "-h", str(side), "-n", str(count), "-s", "7"]

    def run() -> int:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return count

    return run


def playout_rows(side: int, target: float) -> Iterator[Row]:
    """Measure random playouts, beside oppai-rs where the environment variable NINETKA_OPPAI_BENCH tells its path."""
    for territory in ("declared", "immediate"):
        what = f"Kropki {side} x {side}, {territory}, random playouts"
        if OPPAI:
            ours, peer = rates(playouts(side, territory), oppai_playouts(OPPAI, side))
            yield Row(what, "playouts/s", ours, peer, "oppai-rs field, immediate", target)
        else:
            (ours,) = rates(playouts(side, territory))
            yield Row(what, "playouts/s", ours, target=target, note="NINETKA_OPPAI_BENCH names no oppai-bench")


def rows() -> Iterator[Row]:
    """Measure everything on one core."""
    from pettingzoo.classic import connect_four_v3

    for side, play_target, playout_target in ((10, 4e6, 200e3), (20, 1.8e6, 45e3)):
        board = f"Kropki {side} x {side}"
        (ours,) = rates(random_play(kropki_v0.vector_env(1024, side, side, num_threads=1)))
        yield Row(f"{board}, batched random play, 1024 games", "actions/s", ours, target=play_target)
        yield from playout_rows(side, playout_target)
    for kind in ("raw_env", "env"):
        runs = random_game(getattr(kropki_v0, kind)()), random_game(getattr(connect_four_v3, kind)())
        ours, peer = rates(*runs, seconds=0.7)
        yield Row(f"Kropki, AEC loop with last(), {kind}", "moves/s", ours, peer, f"PettingZoo connect four, {kind}")
    size = load_variant("kropki").dtype.itemsize
    yield Row("Kropki 10 x 10, record of one game", "bytes", size, target=600, lower_is_better=True)
    seconds(FIRST_STEP, runs=1)
    warm = seconds(FIRST_STEP)
    yield Row("Kropki, process to first step, warm cache", "s", warm, target=1.0, lower_is_better=True)
    with tempfile.TemporaryDirectory() as empty:
        cold = seconds(FIRST_STEP, runs=1, cache=empty)
    yield Row("Kropki, process to first step, cold cache", "s", cold, target=10.0, lower_is_better=True)


if __name__ == "__main__":
    one_core()
    write_rows(rows())
