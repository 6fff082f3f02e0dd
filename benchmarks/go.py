"""9 x 9 Go beside its peers: batches, playouts, the PettingZoo loop, and how long GNU Go thinks."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.aec import random_game
from benchmarks.measure import Row, has, one_core, rates, write_rows
from benchmarks.vector import random_play
from ninetka_env import go_v0
from ninetka_env.core.chance import Streams, make_streams
from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import Records, playout, plies

TARGETS = {"standard": 2e6, "alphazero": 4e6}
GNU_GO = ("gnugo", "--mode", "gtp", "--chinese-rules", "--capture-all-dead")


@jit
def _play_out(games: Records, streams: Streams, count: int) -> int:
    """Play the first game to its end so many times from the second one; return all plies."""
    played = 0
    for _ in range(count):
        games[0] = games[1]
        playout(games[0], streams, 0)
        played += plies(games[0])
    return played


def playouts() -> tuple[Callable[[], int], Callable[[], float]]:
    """Return a function that plays 1,000 uniform playouts from the empty board, and one that tells their mean plies."""
    games, streams = np.repeat(go_v0.Game.new().records, 2), make_streams(0)
    played = [0, 0]

    def run() -> int:
        played[0] += 1000
        played[1] += _play_out(games, streams, 1000)
        return 1000

    return run, lambda: played[1] / played[0]


def openspiel() -> Callable[[], int]:
    """Return a function that plays one random game of OpenSpiel's with tensor and mask, and counts its plies."""
    import pyspiel

    game, rng = pyspiel.load_game("go(board_size=9,komi=7.0)"), np.random.default_rng(0)

    def run() -> int:
        state, moves = game.new_initial_state(), 0
        while not state.is_terminal():
            state.observation_tensor(state.current_player())
            legal = np.flatnonzero(state.legal_actions_mask())
            state.apply_action(int(legal[int(rng.random() * len(legal))]))
            moves += 1
        return moves

    return run


def pgx(num_envs: int = 1024) -> Callable[[], int]:
    """Return a function that plays a random ply in each of many games of pgx's (JAX on the CPU, all cores it finds)."""
    import jax
    import pgx

    env = pgx.make("go_9x9")
    step = pgx.experimental.wrappers.auto_reset(env.step, env.init)

    def random_step(state: Any, key: Any) -> tuple[Any, Any]:
        keys = jax.random.split(key)
        logits = jax.numpy.log(state.legal_action_mask.astype(float))
        action = jax.random.categorical(keys[0], logits, axis=1)
        return jax.vmap(step)(state, action, jax.random.split(keys[1], num_envs)), keys[1]

    jitted, key = jax.jit(random_step), jax.random.PRNGKey(0)
    held = [jax.vmap(env.init)(jax.random.split(key, num_envs)), key]

    def run() -> int:
        held[:] = jitted(*held)
        jax.block_until_ready(held[0].observation)
        return num_envs

    return run


def rows() -> Iterator[Row]:
    """Measure on one core, alternating with the peers that are installed."""
    for planes, target in TARGETS.items():
        (ours,) = rates(random_play(go_v0.vector_env(1024, planes=planes, num_threads=1)))
        yield Row(f"Go, batched random play, 1024 games, {planes} planes, one core", "plies/s", ours, target=target)
    for name, module, make in (("OpenSpiel go, tensor and mask", "pyspiel", openspiel), ("pgx go_9x9", "pgx", pgx)):
        if has(module):
            ours, theirs = rates(random_play(go_v0.vector_env(1024, num_threads=1)), make())
            yield Row("Go, batched random play, 1024 games, one core", "plies/s", ours, theirs, name)
        else:
            yield Row(f"Go, batched random play, {name}", "plies/s", ours, note="peer not installed")
    run, length = playouts()
    (ours,) = rates(run)
    yield Row("Go, uniform playouts", "playouts/s", ours, target=140e3, note=f"{length():.0f} plies each")
    yield from aec_rows()
    yield from gnu_go_rows()


def aec_rows() -> Iterator[Row]:
    """Measure the PettingZoo loop beside PettingZoo's own Go."""
    from pettingzoo.classic import go_v5

    for kind in ("raw_env", "env"):
        peer = getattr(go_v5, kind)(board_size=9, komi=7.5)
        ours, theirs = rates(random_game(getattr(go_v0, kind)()), random_game(peer), seconds=0.7)
        yield Row(f"Go, AEC loop with last(), {kind}", "moves/s", ours, theirs, f"PettingZoo go_v5, {kind}")


def gnu_go_rows() -> Iterator[Row]:
    """Measure GNU Go's time a move against itself, where Debian's package is installed."""
    program = shutil.which(GNU_GO[0], path="/usr/games:/usr/local/bin:/usr/bin")
    for level in (0, 5, 10):
        what = f"GNU Go, level {level}, against itself"
        if program is None:
            yield Row(what, "ms/move", float("nan"), note="gnugo is not installed")
            return
        took = gnu_go_game([program, *GNU_GO[1:], "--level", str(level)])
        yield Row(what, "ms/move", 1e3 * float(np.mean(took)), note=f"{1e3 * max(took):.0f} at most")


def gnu_go_game(command: list[str], moves: int = 60) -> list[float]:
    """Return how many seconds each move of a game took."""
    took: list[float] = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as engine:

        def ask(line: str) -> str:
            assert engine.stdin is not None
            assert engine.stdout is not None
            print(line, file=engine.stdin, flush=True)
            answer = engine.stdout.readline().strip()
            engine.stdout.readline()
            return answer

        ask("boardsize 9")
        ask("komi 7")
        passed = 0
        while passed < 2 and len(took) < moves:
            begin = time.perf_counter()
            answer = ask(f"genmove {'bw'[len(took) % 2]}")
            took.append(time.perf_counter() - begin)
            passed = passed + 1 if answer.endswith(("PASS", "resign")) else 0
        ask("quit")
    return took


if __name__ == "__main__":
    one_core()
    write_rows(rows())
