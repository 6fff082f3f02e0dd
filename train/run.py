"""One training run from its configuration to its benchmark, kept in the folder `runs/NAME/`.

What lies there:

- `config.yaml`: the resolved configuration;
- `log.jsonl`: one line of plain numbers per rollout or round;
- `*.safetensors`, `*.json`: checkpoints;
- `evaluation.json`: the benchmark at the end, against random, MaxN and the tree search.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from agents import make_agent
from agents.network import Network
from agents.policy import NetAgent
from train.alphazero import train_alphazero
from train.config import TrainConfig
from train.evaluate import Evaluation, evaluate
from train.ppo import train_ppo
from train.report import as_dict, print_report

OPPONENTS = ("random", "maxn", "mcts:simulations=200")
"""Whom a finished network is measured against."""

Progress = Callable[[float, dict[str, float]], None]
"""Told the share of the run that is done, 0..1, and the newest numbers."""


def run(
    config: TrainConfig, folder: Path, games: int = 200, resume: bool = False, progress: Progress | None = None
) -> None:
    """Train a network, keep everything in `folder`, and print how it does against the opponents.

    Args:
        config: what to do.
        folder: of the run; must not exist yet, unless the run is resumed.
        games: games of the final benchmark per opponent and player count; 0 for none.
        resume: go on from the newest good checkpoint.
        progress: called after every rollout or round.

    Raises:
        ValueError: if the folder exists already, is missing or not fit to resume from.
        OSError: if it cannot be written; checkpoints written before stay as they are.
    """
    _prepare(config, folder, resume)
    network = _train(config, folder, resume, progress)
    if games:
        write_evaluations(network, config, folder / "evaluation.json", games)


def _prepare(config: TrainConfig, folder: Path, resume: bool) -> None:
    if resume:
        if not folder.is_dir():
            raise ValueError(f"{folder}: no run to resume")
        return
    if folder.exists():
        raise ValueError(f"{folder} exists: resume that run, name this one otherwise (--set name=...), or remove it")
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False))


def _train(config: TrainConfig, folder: Path, resume: bool, progress: Progress | None) -> Network:
    begin = time.perf_counter()
    with (folder / "log.jsonl").open("a", buffering=1) as log:

        def report(state: Any, numbers: dict[str, float]) -> None:
            numbers = numbers | {"seconds": round(time.perf_counter() - begin, 1)}
            log.write(json.dumps(numbers) + "\n")
            if progress:
                progress(state.progress, numbers)

        train = train_ppo if config.algorithm == "ppo" else train_alphazero
        return train(config, folder, report, resume)


def write_evaluations(network: Network, config: TrainConfig, path: Path, games: int) -> None:
    """Measure a network against each opponent, at each number of players it learned; print tables, write JSON."""
    results = []
    for players in config.players:
        for opponent in OPPONENTS:
            pair = [NetAgent.of(network), make_agent(opponent)]
            result: Evaluation = evaluate(pair, players, games, seed=config.seed + 1)
            print_report(result)
            results.append(as_dict(result))
    path.write_text(json.dumps(results, indent=1))
