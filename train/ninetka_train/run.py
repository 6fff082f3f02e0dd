"""One training run, from its configuration to its report, in the folder `runs/NAME/`.

The folder contains:

- `config.yaml`: the resolved configuration;
- `log.jsonl`: one line of numbers per rollout or round; `tensorboard/`: the same for TensorBoard;
- `curve.jsonl`: ten measurements during training, against the game's `ninetka_agents.parts.Parts.opponents`;
- `step-*`, `resume-*`: checkpoints (see `ninetka_train.learning.resume`);
- `evaluation.json`: the benchmark at the end; `games.txt`: some of its games;
- `report.png`, `report.html`: the report (see `ninetka_train.showing.run_data`).
"""

from __future__ import annotations

import contextlib
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ninetka_agents import make_agent
from ninetka_agents.agent import Agent
from ninetka_agents.net_agent import NetAgent
from ninetka_agents.parts import parts_of
from ninetka_env.api.record_files import write_records
from ninetka_env.api.records import GameRecord
from ninetka_env.core.files import replace_file
from ninetka_train.judging.arena import make_settings, play_games
from ninetka_train.judging.evaluate import summarise
from ninetka_train.judging.gate import BATCH
from ninetka_train.judging.report import as_dict
from ninetka_train.judging.results import Results
from ninetka_train.judging.saved_games import game_records
from ninetka_train.learning import processes
from ninetka_train.learning.alphazero import train_alphazero
from ninetka_train.learning.config import TrainConfig, load_config
from ninetka_train.learning.lock import LOCK, locked
from ninetka_train.learning.logger import Journal
from ninetka_train.learning.ppo import league_agents, train_ppo
from ninetka_train.learning.resume import first_network, newest_step
from ninetka_train.parts import pairs_of
from ninetka_train.showing.run_data import CONFIG, EVALUATION, GAMES
from ninetka_train.showing.run_report import print_run, write_report

if TYPE_CHECKING:  # needs Ray
    from ninetka_train.cluster.tasks import ClusterPlayer

CURVE_POINTS = 10
"""Measurements during training, at equal intervals; the final benchmark is not included."""
CURVE_GAMES = 100
"""Games per measurement and opponent; few, so that they take a small part of a run of some minutes."""

CHANGEABLE = ("threads", "checkpoint_every", "checkpoint_minutes")
"""Settings that may change when a run is resumed."""
LENGTHS = {"alphazero": "alphazero.rounds", "ppo": "ppo.moves"}
"""The setting of each algorithm for the length of a run; it may be changed to more than is already done."""
SCHEDULES = {"alphazero": "learning_rate falls", "ppo": "learning_rate and entropy fall"}
"""What each algorithm decreases over the length of a run, for a warning."""

Progress = Callable[[float, dict[str, float]], None]
"""Called with the finished share of the run, 0..1, and the newest numbers."""


def run(
    config: TrainConfig,
    folder: Path,
    games: int = 200,
    resume: bool = False,
    progress: Progress | None = None,
    player: ClusterPlayer | None = None,
) -> None:
    """Train a network, save everything in `folder`, and report the results against the opponents.

    Args:
        config: configuration of the run.
        folder: folder of the run; must not exist yet, unless the run is resumed. It is locked for other processes.
        games: games of the final benchmark per opponent and player count; 0 for no measurements, also during training.
        resume: start the run, or continue from the newest good checkpoint; a finished run is only reported. A length
            above what is already done, and other values of `CHANGEABLE` are allowed.
        progress: called after every rollout or round.
        player: plays AlphaZero's rounds and the measurements on a cluster; None to play them in this process.

    Raises:
        ValueError: if PPO is given a player or several processes; if the folder exists already, is in use or cannot be
            resumed.
        OSError: if a file cannot be written; the error names it. Earlier checkpoints stay unchanged.
    """
    processes.check_shareable(config)
    if player and config.algorithm != "alphazero":
        raise ValueError(f"algorithm={config.algorithm}: only the games of alphazero can be played on a cluster")
    for variant in config.variants if games else ():
        make_settings(("net", "its opponent"), None, games, game=variant)  # raises errors before the training
    first = processes.rank() == 0
    with processes.kept_torch_threads(), _prepared(config, folder, resume) if first else contextlib.nullcontext():
        if processes.by_first(lambda: not (folder / EVALUATION).exists()):
            with contextlib.closing(Journal(folder)) as journal:
                network = _train(config, folder, resume, journal, games > 0, progress, player)
                if games and first:
                    _benchmark(network, config, folder, games, player)
        if games and first:
            write_report(folder)
            print_run(folder)


@contextlib.contextmanager
def _prepared(config: TrainConfig, folder: Path, resume: bool) -> Iterator[None]:
    """Lock the folder of a run, prepared for a new run or for the run that is resumed."""
    begins = not (resume and (folder / CONFIG).exists())
    if begins:
        _check_parts(config)
        _check_empty(folder)
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        if begins:
            _check_empty(folder)  # another process may have started a run meanwhile
            _write_config(config, folder)
        else:
            _take_up(config, folder)
        _remove_left(folder)
        yield


def _check_parts(config: TrainConfig) -> None:
    """Create the first network and the league, so that errors are raised before the folder is created."""
    first_network(config)
    if config.algorithm == "ppo":
        league_agents(config)


def _check_empty(folder: Path) -> None:
    """Raise `ValueError` unless the folder is missing or has only leftover temporary files."""
    if folder.exists() and (not folder.is_dir() or any(not _is_left(path) for path in folder.iterdir())):
        raise ValueError(f"{folder} exists: resume that run, rename this one (--set name=...), or remove the folder")


def _write_config(config: TrainConfig, folder: Path) -> None:
    values = config.model_dump(mode="json")
    if config.start_from:  # the shape is that of the network it starts from, not the default
        values["network"] = config.network.model_dump(mode="json", exclude_unset=True)
    replace_file(folder / CONFIG, [yaml.safe_dump(values, sort_keys=False).encode()])


def _take_up(config: TrainConfig, folder: Path) -> None:
    """Prepare the folder of a run for resuming it with a configuration.

    Raises:
        ValueError: if a setting differs that must not change.
    """
    was = load_config(folder / CONFIG)
    length = LENGTHS[config.algorithm]
    before, now = (_flat(each.model_dump(mode="json")) for each in (was, config))
    changed = [key for key in now if before.get(key) != now[key]]
    done = newest_step(folder)
    wrong = [key for key in changed if key not in CHANGEABLE and (key != length or now[key] <= done)]
    if wrong:
        what = ", ".join(f"{key}={before.get(key)} (now {now[key]})" for key in wrong)
        raise ValueError(
            f"{folder}: cannot be resumed with other settings than it was started with: {what}; "
            f"allowed are other values of {', '.join(CHANGEABLE)} and {length} above {done}, which is already done"
        )
    if length in changed:
        for name in (EVALUATION, GAMES):  # removed first, because they mark the shorter run as finished
            (folder / name).unlink(missing_ok=True)
        schedule = SCHEDULES[config.algorithm]
        warnings.warn(
            f"{folder}: {length}={now[length]} (was {before[length]}): {schedule} until the new end", stacklevel=2
        )
    if changed:
        _write_config(config, folder)


def _remove_left(folder: Path) -> None:
    for path in filter(_is_left, list(folder.rglob("*.part"))):
        path.unlink()


def _is_left(path: Path) -> bool:
    """Return whether the file may be a leftover of a process that was killed."""
    return path.name == LOCK or (path.name.startswith(".") and path.suffix == ".part")


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat


def _train(
    config: TrainConfig,
    folder: Path,
    resume: bool,
    journal: Journal,
    measure: bool,
    progress: Progress | None,
    player: ClusterPlayer | None,
) -> Any:
    def report(state: Any, numbers: dict[str, float]) -> None:
        if processes.rank() > 0:
            return
        line = journal.log(state.step, state.total, numbers)
        if player:
            player.publish(line)
        if measure and _is_due(journal, state.progress):
            with journal.pause():
                _measure(state.network, config, journal, state.progress, player)
        if progress:
            progress(state.progress, line)

    if config.algorithm == "ppo":
        return train_ppo(config, folder, report, resume)
    return train_alphazero(config, folder, report, resume, player.play_round if player else None)


def _is_due(journal: Journal, progress: float) -> bool:
    """Return whether a measurement is due: one at the start, then one after each tenth of the run."""
    last = journal.curve[-1]["progress"] if journal.curve else -1.0
    return progress < 1 and int(progress * CURVE_POINTS) > int(last * CURVE_POINTS)


def _measure(
    network: Any, config: TrainConfig, journal: Journal, progress: float, player: ClusterPlayer | None
) -> None:
    """Measure the network, and add a point to the learning curve of each opponent."""
    begin, points = time.perf_counter(), []
    for results in _matches(network, config, CURVE_GAMES, int(progress * CURVE_POINTS), player):
        settings, now = results.settings, time.perf_counter()
        about = {"game": settings.game, "players": settings.num_players, "opponent": settings.agents[1]}
        wins = float(results.shares[:, 0].sum())  # a draw counts for all seats in equal shares
        figures = {"games": len(results.winners), "wins": int(wins) if wins.is_integer() else wins}
        points.append(about | figures | {"evaluation_seconds": round(now - begin, 2)})
        begin = now
    for point in points:  # all at the end: a run that is killed during the games repeats the measurement
        journal.point(point)


def _benchmark(network: Any, config: TrainConfig, folder: Path, games: int, player: ClusterPlayer | None) -> None:
    """Measure the finished network with seeds that no other games used, and save some games."""
    evaluations: list[dict[str, Any]] = []
    records: list[GameRecord] = []
    for results in _matches(network, config, games, CURVE_POINTS, player, final=True):
        evaluations.append(as_dict(summarise(results)))
        records += game_records(results, range(results.schedule.rotation))
    write_records(folder / GAMES, records)
    replace_file(folder / EVALUATION, [json.dumps(evaluations, indent=1).encode()])


def _matches(
    network: Any, config: TrainConfig, games: int, number: int, player: ClusterPlayer | None, final: bool = False
) -> Iterator[Results]:
    """Play the network against each opponent in each variant that it learns, with the measurement's `number` as a seed.

    The `final` measurement includes the game's own pairs of agents; see `ninetka_train.parts.pairs_of`.
    """
    game = config.definition.name
    net = NetAgent(network)
    pairs: list[tuple[Agent, Agent]] = [(net, make_agent(opponent, game)) for opponent in parts_of(game).opponents]
    if final:
        pairs += pairs_of(game, net)
    for variant in sorted(set(config.variants), key=lambda one: one.codes):
        for pair in pairs:
            where: dict[str, Any] = {"batch": BATCH, "elsewhere": player.players_of(pair)} if player else {}
            yield play_games(pair, None, games, game=variant, seed=(config.seed << 8) + number, **where)
