"""One training run, from its configuration to its report, in the folder `runs/NAME/`.

The folder contains:

- `config.yaml`: the resolved configuration;
- `log.jsonl`: one line of numbers per rollout or round; `tensorboard/`: the same for TensorBoard;
- `curve.jsonl`: ten measurements, against `ninetka_agents.plugins.GamePlugins.evaluation_opponents`;
- `best`: the network of the measurement with the most wins;
- `step-*`, `resume-*`: checkpoints (see `ninetka_train.learning.resume`);
- `evaluation.json`: the benchmark at the end; `games.txt`: some of its games;
- `report.png`, `report-dark.png`, `report.html`: the report (see `ninetka_train.reporting.run_data`).
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
from ninetka_agents.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from ninetka_agents.net_agent import NetAgent
from ninetka_agents.plugins import plugins_of
from ninetka_env.api.record_files import write_records
from ninetka_env.api.records import GameRecord
from ninetka_env.core.files import replace_file
from ninetka_env.core.registry import DEFAULT_GAME
from ninetka_train.judging.arena import make_settings, play_games
from ninetka_train.judging.evaluate import summarise
from ninetka_train.judging.gate import GATE_BATCH
from ninetka_train.judging.report import evaluation_dict
from ninetka_train.judging.results import Results
from ninetka_train.judging.saved_games import game_records
from ninetka_train.learning import processes
from ninetka_train.learning.alphazero import train_alphazero
from ninetka_train.learning.config import TrainConfig, load_config, read_settings
from ninetka_train.learning.lock import LOCK_FILE, locked
from ninetka_train.learning.logger import Journal
from ninetka_train.learning.ppo import league_agents, train_ppo
from ninetka_train.learning.resume import STEP_PREFIX, initial_network, newest_step
from ninetka_train.learning.teacher import teacher_spec
from ninetka_train.plugins import benchmark_pairs_of
from ninetka_train.reporting.run_data import BEST, CONFIG, EVALUATION, GAMES, mean_share, measurements
from ninetka_train.reporting.run_report import print_run, write_report

if TYPE_CHECKING:  # needs Ray
    from ninetka_train.cluster.tasks import ClusterPlayer

CURVE_POINTS = 10
"""Measurements of the learning curve, at equal intervals; the final benchmark is not included."""

MAX_REFERENCE_GAMES = 200
"""Maximum number of games of each match of the final benchmark in which the network does not play."""

CHANGEABLE_SETTINGS = ("threads", "checkpoint_every", "keep_checkpoints", "checkpoint_minutes", "curve_games")
"""Settings that may change when a run is resumed."""
LENGTH_SETTINGS = {"alphazero": "alphazero.rounds", "ppo": "ppo.moves"}
"""The setting of each algorithm for the length of a run. When a run is resumed, it may be changed to any value above
what is already done."""
SCHEDULE_TEXTS = {"alphazero": "learning_rate falls", "ppo": "learning_rate and entropy fall"}
"""Text for a warning: the settings that each algorithm decreases over the length of a run."""

TrainingProgress = Callable[[float, dict[str, float]], None]
"""Called with the finished share of the run, 0..1, and the newest numbers."""


def run(
    config: TrainConfig,
    folder: Path,
    games: int = 200,
    resume: bool = False,
    progress: TrainingProgress | None = None,
    player: ClusterPlayer | None = None,
    on_start: Callable[[], object] | None = None,
) -> None:
    """Train a network, save everything in `folder`, and report the results against the opponents.

    Args:
        config: configuration of the run.
        folder: folder of the run, locked for other processes; must not exist or be empty, unless the run is resumed.
        games: number of games per opponent and variant in the final benchmark; 0 for no benchmark, no report and no
            measurements during training.
        resume: continue from the newest valid checkpoint, or start the run if the folder has none; for a finished run,
            only report the results. The length may grow, and `CHANGEABLE_SETTINGS` may have other values.
        progress: called after every rollout or round.
        player: plays AlphaZero's rounds and the measurements on a cluster; None to play them in this process.
        on_start: called once all settings and files are checked, before the training starts or continues.

    Raises:
        ValueError: if PPO is given a `player` or several processes; if the folder is not empty, is in use or cannot be
            resumed.
        OSError: if a file cannot be written; the error names it. Earlier checkpoints stay unchanged.
    """
    processes.check_distributable(config)
    if player and config.algorithm != "alphazero":
        raise ValueError(f"algorithm={config.algorithm}: only the games of alphazero can be played on a cluster")
    for variant in config.variants if games else ():
        make_settings(("net", "its opponent"), None, games, game=variant)  # raise errors before the training
    first = processes.rank() == 0
    with (
        processes.restoring_torch_threads(),
        _prepared_folder(config, folder, resume) if first else contextlib.nullcontext(config) as config,
    ):
        if on_start:
            on_start()
        if processes.broadcast_from_first(lambda: not (folder / EVALUATION).exists()):
            with contextlib.closing(Journal(folder)) as journal:
                network = _train(config, folder, resume, journal, games > 0, progress, player)
                if games and first:
                    _benchmark(network, config, folder, games, player)
        if games and first:
            write_report(folder)
            print_run(folder)


@contextlib.contextmanager
def _prepared_folder(config: TrainConfig, folder: Path, resume: bool) -> Iterator[TrainConfig]:
    """Prepare the folder for a new or a resumed run, and keep it locked within the context; yield its configuration."""
    begins = not (resume and (folder / CONFIG).exists())
    if begins:
        _check_initial_networks(config)
        _check_empty(folder)
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        if begins:
            _check_empty(folder)  # another process may have started a run meanwhile
            _write_config(config, folder)
        else:
            config = _prepare_resume(config, folder)
        _remove_leftovers(folder)
        yield config


def _check_initial_networks(config: TrainConfig) -> None:
    """Create the first network and the league, so that errors are raised before the folder is created."""
    initial_network(config)
    if config.algorithm == "ppo":
        league_agents(config)


def _check_empty(folder: Path) -> None:
    """Raise `ValueError` unless the folder is missing or has only leftover temporary files."""
    if folder.exists() and (not folder.is_dir() or any(not _is_leftover(path) for path in folder.iterdir())):
        raise ValueError(f"{folder} exists: resume that run, rename this one (--set name=...), or remove the folder")


def _write_config(config: TrainConfig, folder: Path) -> None:
    values = config.model_dump(mode="json")
    if config.start_from:  # the initial network determines the shape, so do not write default values
        values["network"] = config.network.model_dump(mode="json", exclude_unset=True)
    replace_file(folder / CONFIG, [yaml.safe_dump(values, sort_keys=False).encode()])


def _prepare_resume(config: TrainConfig, folder: Path) -> TrainConfig:
    """Prepare the folder of a run for resuming it with a configuration.

    Returns:
        The configuration, with the run's own values of the `CHANGEABLE_SETTINGS` that are not given.

    Raises:
        ValueError: if a setting differs that must not change.
    """
    _check_same_game(config, folder)
    was = load_config(folder / CONFIG)
    _remove_later_best(folder)
    own = {key: getattr(was, key) for key in CHANGEABLE_SETTINGS if key not in config.model_fields_set}
    config = config.model_copy(update=own)
    length = LENGTH_SETTINGS[config.algorithm]
    before, now = (_flat(each.model_dump(mode="json")) for each in (was, config))
    changed = [key for key in now if before.get(key) != now[key]]
    done = newest_step(folder)
    wrong = [key for key in changed if key not in CHANGEABLE_SETTINGS and (key != length or now[key] <= done)]
    if wrong:
        what = ", ".join(f"{key}={before.get(key)} (now {now[key]})" for key in wrong)
        raise ValueError(
            f"{folder}: cannot be resumed with other settings than it was started with: {what}; "
            f"allowed are other values of {', '.join(CHANGEABLE_SETTINGS)} and {length} above {done}, "
            "which is already done"
        )
    if length in changed:
        for name in (EVALUATION, GAMES):  # removed first, because they mark the shorter run as finished
            (folder / name).unlink(missing_ok=True)
        schedule = SCHEDULE_TEXTS[config.algorithm]
        warnings.warn(
            f"{folder}: {length}={now[length]} (was {before[length]}): {schedule} until the new end", stacklevel=2
        )
    if "keep_checkpoints" in changed:
        _warn_of_removed_checkpoints(config, folder)
    if changed:
        _write_config(config, folder)
    return config


def _warn_of_removed_checkpoints(config: TrainConfig, folder: Path) -> None:
    """Warn if the next scheduled checkpoint removes others because `keep_checkpoints` is lower than before."""
    keep = config.keep_checkpoints
    removed = len(list(folder.glob(f"{STEP_PREFIX}-*.safetensors"))) + 1 - keep if keep else 0
    if removed > 1:
        what = f"the next checkpoint removes the {removed} oldest"
        warnings.warn(f"{folder}: keep_checkpoints={keep}: {what}", stacklevel=3)


def _remove_later_best(folder: Path) -> None:
    """Remove the best network if it was measured after the checkpoint from which the run is resumed."""
    path = folder / f"{BEST}.json"
    if path.exists() and load_checkpoint(path)[1].step > newest_step(folder):
        for ending in (".json", ".safetensors"):
            path.with_suffix(ending).unlink()


def _check_same_game(config: TrainConfig, folder: Path) -> None:
    """Raise `ValueError` if a run was started with another game than that of `config`.

    The folder may come from another user, so its `game: python:MODULE:NAME` must not import a module that `config` has
    not imported.
    """
    was, now = read_settings(folder / CONFIG).get("game", DEFAULT_GAME), config.model_dump(mode="json")["game"]
    if was != now:
        what = f"game={was} (now {now})"
        raise ValueError(f"{folder}: cannot be resumed with other settings than it was started with: {what}")


def _remove_leftovers(folder: Path) -> None:
    for path in filter(_is_leftover, list(folder.rglob("*.part"))):
        path.unlink()


def _is_leftover(path: Path) -> bool:
    """Return whether a killed process may have left the file behind: the lock file, or a temporary file."""
    return path.name == LOCK_FILE or (path.name.startswith(".") and path.suffix == ".part")


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested dictionaries: `{"a": {"b": 1}}` becomes `{"a.b": 1}`."""
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
    progress: TrainingProgress | None,
    player: ClusterPlayer | None,
) -> Any:
    def report(state: Any, numbers: dict[str, float]) -> None:
        if processes.rank() > 0:
            return
        line = journal.log(state.step, state.total, numbers)
        if player:
            player.publish(line)
        if measure and config.curve_games and _is_due(journal, state.progress):
            with journal.pause():
                _measure(state, config, journal, player)
        if progress:
            progress(state.progress, line)

    if config.algorithm == "ppo":
        return train_ppo(config, folder, report, resume)
    return train_alphazero(config, folder, report, resume, player.play_round if player else None)


def _is_due(journal: Journal, progress: float) -> bool:
    """Return whether a measurement is due: one after the first rollout or round, then one after each tenth."""
    last = journal.curve[-1]["progress"] if journal.curve else -1.0
    return int(progress * CURVE_POINTS) > int(last * CURVE_POINTS)


def _measure(state: Any, config: TrainConfig, journal: Journal, player: ClusterPlayer | None) -> None:
    """Play the network against each opponent, add a point to each learning curve, and save the best network so far."""
    begin, points = time.perf_counter(), []
    for results in _play_matches(state.network, config, config.curve_games, int(state.progress * CURVE_POINTS), player):
        settings, now = results.settings, time.perf_counter()
        about = {"game": settings.game, "players": settings.num_players, "opponent": settings.agents[1]}
        wins = float(results.shares[:, 0].sum())  # a draw counts for all seats in equal shares
        figures = {"games": len(results.winners), "wins": int(wins) if wins.is_integer() else wins}
        points.append(about | figures | {"evaluation_seconds": round(now - begin, 2)})
        begin = now
    if mean_share(points) >= max(map(mean_share, measurements(journal.curve)), default=0.0):
        notes = Checkpoint(state.network.config, state.step, config.model_dump(mode="json"))
        save_checkpoint(journal.folder / BEST, state.network, notes)
    # only now, so that a run that is killed during the games repeats the whole measurement when it is resumed
    for point in points:
        journal.log_measurement(point)


def _benchmark(network: Any, config: TrainConfig, folder: Path, games: int, player: ClusterPlayer | None) -> None:
    """Play the final benchmark with other seeds than during training; save its figures and one rotation per match."""
    evaluations: list[dict[str, Any]] = []
    records: list[GameRecord] = []
    for results in _play_matches(network, config, games, CURVE_POINTS + 1, player, final=True):
        evaluations.append(evaluation_dict(summarise(results)))
        records += game_records(results, range(results.schedule.rotation))
    write_records(folder / GAMES, records)
    replace_file(folder / EVALUATION, [json.dumps(evaluations, indent=1).encode()])


def _play_matches(
    network: Any, config: TrainConfig, games: int, measurement: int, player: ClusterPlayer | None, final: bool = False
) -> Iterator[Results]:
    """Play the network against each opponent in each variant that it learns; yield the results of each match.

    Args:
        network: the network to measure.
        config: configuration of the run.
        games: number of games per match.
        measurement: number of the measurement, which determines the seed together with the run's seed.
        player: plays the games on a cluster; None to play them in this process.
        final: also play the game's pairs of `ninetka_train.plugins.benchmark_pairs_of`, and the teacher and the game's
            default opponent against the same opponents, for comparison.
    """
    game = config.definition.name
    net = NetAgent(network)
    opponents = [make_agent(opponent, game) for opponent in plugins_of(game).evaluation_opponents]
    pairs: list[tuple[Agent, Agent]] = [(net, opponent) for opponent in opponents]
    if final:
        pairs += benchmark_pairs_of(game, net)
    matches = [(pair, games) for pair in pairs]
    if final:
        compared = [(one, other) for one in _references(config) for other in opponents if one.name != other.name]
        matches += [(pair, min(games, MAX_REFERENCE_GAMES)) for pair in compared]
    for variant in sorted(set(config.variants), key=lambda one: one.codes):
        for pair, count in matches:
            batch_options: dict[str, Any] = (
                {"batch": GATE_BATCH, "play_batches": player.batch_player(pair)} if player else {}
            )
            yield play_games(pair, None, count, game=variant, seed=(config.seed << 8) + measurement, **batch_options)


def _references(config: TrainConfig) -> list[Agent]:
    """Return the agents with which the report compares the network: its teacher, and the game's default opponent."""
    game, settings = config.definition.name, config.alphazero
    specs = [plugins_of(game).default_opponent]
    if config.algorithm == "alphazero" and settings.playout_rounds:
        specs.insert(0, teacher_spec(game, settings.teacher, settings.playouts, settings.exploration))
    return [make_agent(spec, game) for spec in dict.fromkeys(specs)]
