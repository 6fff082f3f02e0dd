"""Compiles the code of games ahead of time, in parallel processes; the command `ninetka warm`.

Start reading at `warm`. `python -m ninetka_train.warm GAME PART` is one of the processes: it runs all code of that part
once, which compiles it into the cache on disk, unless it is there already.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path

import numpy as np

import ninetka_env
from ninetka_agents.agent import RandomAgent, make_agent
from ninetka_agents.one_seat import one_seat, one_seat_vector
from ninetka_agents.plugins import plugins_of
from ninetka_env.api.aec import GameAEC, wrapped
from ninetka_env.api.vector import MIN_GAMES_PER_THREAD, GameVectorEnv
from ninetka_env.core.cache import cache_folders
from ninetka_env.core.registry import Variant, known_games, load_variant
from ninetka_env.core.threads import available_cores
from ninetka_train.judging.arena import play_games

ENVIRONMENT = "environment"
"""The part that all other parts use; it is compiled first."""


def warm(games: Sequence[str], report: Callable[[str], None]) -> int:
    """Compile what games need in their default use, as many parts at once as there are cores.

    Args:
        games: specs, such as `"go:size=13"`; all games with their default options if it is empty.
        report: called with each line of progress.

    Returns:
        The number of parts that could not be compiled.

    Raises:
        ValueError: if a spec is wrong.
        OSError: if no folder for compiled code can be written.
    """
    variants = {game: load_variant(game) for game in games or known_games()}
    folder = _cache_home()
    start, failures = time.perf_counter(), 0
    for parts in ([ENVIRONMENT], None):
        work = [(game, part) for game, variant in variants.items() for part in parts or _further_parts(variant)]
        with ThreadPoolExecutor(available_cores()) as pool:
            running = {pool.submit(_run_process, *each): each for each in work}
            for number, done in enumerate(as_completed(running), start=1):
                seconds, error = done.result()
                failures += bool(error)
                outcome = f"failed: {error}" if error else f"{seconds:.1f} s"
                report(f"{number}/{len(work)} {', '.join(running[done])}: {outcome}")
    size = sum(path.stat().st_size for path in folder.rglob("*.code"))
    report(f"{time.perf_counter() - start:.0f} s; the compiled code, {size / 1e6:.0f} MB, is in {folder}")
    return failures


def _cache_home() -> Path:
    folder = cache_folders(Path(ninetka_env.__file__).absolute().parent).writable
    if folder is None:
        raise OSError("compiled code cannot be kept: set NUMBA_CACHE_DIR to a folder that can be written")
    return folder.parent


def _run_process(spec: str, part: str) -> tuple[float, str]:
    """Compile a part in a process; return the seconds, and the last line of the error, empty if there is none."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "ninetka_train.warm", spec, part]
    quiet = os.environ | {"NINETKA_COMPILE_NOTICE": "0"}
    done = subprocess.run(command, env=quiet, capture_output=True, text=True, check=False)
    lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    return time.perf_counter() - start, lines[-1] if done.returncode else ""


# The parts


def _further_parts(variant: Variant) -> list[str]:
    """Return the parts of a game other than `ENVIRONMENT`: environments, and specs of agents."""
    plugins = plugins_of(variant.definition.name)
    own = [spec for spec in [plugins.default_opponent] if not spec.startswith("mcts")]
    has_network = bool(plugins.network) and importlib.util.find_spec("torch") is not None
    networks = ["net", "net:simulations=16"] if has_network else []
    return ["batch", "one seat", "match", *own, "mcts:simulations=20", "mcts:simulations=20,rave", *networks]


def compile_part(spec: str, part: str) -> None:
    """Run all code of a part once."""
    variant = load_variant(spec)
    parts = {ENVIRONMENT: _play_environment, "batch": _step_batch, "one seat": _play_one_seat, "match": _play_match}
    parts.get(part, partial(_choose_actions, part))(variant)


def _play_environment(variant: Variant) -> None:
    """Play a game, and compose the message for an illegal action."""
    env, rng = wrapped(GameAEC(variant)), np.random.default_rng(0)
    env.reset(seed=0)
    env.unwrapped.game.describe_illegal(0)
    for _ in env.agent_iter():
        observation, _, terminated, truncated, _ = env.last()
        mask = None if observation is None else observation["action_mask"]
        env.step(None if terminated or truncated or mask is None else int(rng.choice(np.flatnonzero(mask))))


def _step_batch(variant: Variant) -> None:
    """Step batches with and without helper threads."""
    for num_envs, num_threads in ((1, 1), (2 * MIN_GAMES_PER_THREAD, 2)):
        envs = GameVectorEnv(num_envs, variant, num_threads=num_threads)
        envs.reset(seed=0)
        for _ in range(10):
            envs.step(envs.action_mask.argmax(axis=1))
        envs.close()


def _play_one_seat(variant: Variant) -> None:
    env = one_seat(variant.spec, opponents="random")
    _, info = env.reset(seed=0)
    env.step(int(info["action_mask"].argmax()))
    envs = one_seat_vector(2, variant.spec, opponents="random")
    _, infos = envs.reset(seed=0)
    envs.step(infos["action_mask"].argmax(axis=1))


def _play_match(variant: Variant) -> None:
    play_games(["random", "random"], variant.num_players, num_games=2, game=variant.spec, seed=0)


def _choose_actions(agent: str, variant: Variant) -> None:
    """Let an agent choose actions in positions of all stages."""
    envs, states = GameVectorEnv(1, variant), []
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    while not envs.terminated[0]:
        states.append(envs.games.copy())
        envs.step(RandomAgent().act(envs.games, rng))
    chosen = np.concatenate(states[:: max(1, len(states) // 8)])
    make_agent(agent, variant.spec).act(chosen, rng)


if __name__ == "__main__":
    compile_part(*sys.argv[1:])
