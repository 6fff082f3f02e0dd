"""Short runs that check whether training is reproducible: equal settings give equal bytes.

On a CPU, self-play results do not depend on threads, load or workers. Weights are byte-identical for equal learner
settings (including threads), processor type and torch version. A resumed run with unchanged settings equals the
uninterrupted one.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ALPHAZERO = {
    "rounds": 4, "playout_rounds": 2, "games": 8, "task_games": 4, "playouts": 24, "simulations": 8, "steps": 3,
    "minibatch": 64, "microbatch": 32,
}  # fmt: skip
_PPO = {
    "moves": 1024,  # four rollouts
    "games": 32,
    "plies": 8,
    "minibatch": 128,
    "microbatch": 64,
    "league_share": 0.5,
    "league_every": 2,
}
_SHARED = {"seed": 3, "network": {"width": 16, "blocks": 1}, "checkpoint_every": 3}
_GAMES = {"ninetka": "ninetka", "go": "go:size=5", "kropki": "kropki:width=6,height=6"}
CONFIGS = {
    f"{name}-{algorithm}": {"game": game, "algorithm": algorithm, algorithm: settings, **_SHARED}
    for name, game in _GAMES.items()
    for algorithm, settings in (("alphazero", _ALPHAZERO), ("ppo", _PPO))
}


def start_run(folder: Path, name: str, threads: int, *options: str, **more: object) -> subprocess.Popen[str]:
    """Start `ninetka train` in `folder` with the configuration `name`; continue a run if `options` has `--resume`."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.json"  # JSON is also valid YAML
    file.write_text(json.dumps(CONFIGS[name] | {"name": name, "threads": threads} | more), encoding="utf-8")
    command = [sys.executable, "-m", "ninetka_train", "train", "--config", str(file), "--runs", str(folder), *options]
    return subprocess.Popen(
        [*command, "--games", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def finish(process: subprocess.Popen[str]) -> None:
    """Wait for a run and check that it succeeds."""
    errors = process.communicate(timeout=600)[1]
    assert process.returncode == 0, errors


def stop(process: subprocess.Popen[str], number: signal.Signals, seconds: float) -> str:
    """Send a run a signal after `seconds` unless it has ended; check its status and return its stderr."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, number)
    errors = process.communicate(timeout=60)[1]
    expected = {signal.SIGKILL: (-9,), signal.SIGTERM: (143, -15), signal.SIGUSR1: (75, -10)}[number]
    assert process.returncode in (0, *expected), errors  # negative if the signal came before the command was loaded
    return errors


def checksum(folder: Path, name: str) -> str:
    """Return a digest of the last checkpoint's tensors (weights and other state) of a finished run."""
    newest = sorted((folder / name).glob("*.safetensors"))[-1]
    return hashlib.sha256(newest.read_bytes()).hexdigest()[:12]


def logged(folder: Path, name: str) -> list[dict[str, float]]:
    """Return the lines of a run's log, without times."""
    times = ("seconds", "moves_per_second", "share_of_play", "games_per_second", "samples_per_second")
    lines = [json.loads(line) for line in (folder / name / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{key: value for key, value in line.items() if key not in times} for line in lines]


@contextmanager
def busy_cores(processes: int) -> Iterator[None]:
    """Return a context manager that keeps `processes` processor cores busy."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def seconds_of(folder: Path, name: str, threads: int) -> float:
    """Train a run and return its seconds, which may include compilation."""
    start = time.perf_counter()
    finish(start_run(folder, name, threads))
    return time.perf_counter() - start
