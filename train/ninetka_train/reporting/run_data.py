"""Read the folder of a run (settings, log, measurements, games), and make the tables of its report.

Start reading at `read_run` and `report_tables`. `run_report.py` writes the report.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from ninetka_agents.plugins import plugins_of
from ninetka_env.api.record_files import read_records
from ninetka_env.api.records import GameRecord
from ninetka_env.core.options import short_repr
from ninetka_env.core.registry import DEFAULT_GAME, definition_of_spec
from ninetka_train.judging.ratings import Interval, wilson_interval
from ninetka_train.judging.texts import count_text, percent
from ninetka_train.learning.config import read_settings
from ninetka_train.learning.logger import CURVE_FILE, LOG_FILE, LogEntry, read_json_lines, variant_label
from ninetka_train.learning.teacher import teacher_spec

CONFIG, EVALUATION, GAMES, BEST = "config.yaml", "evaluation.json", "games.txt", "best"
_LOG_KEYS = ("progress", "seconds")
_CURVE_KEYS = ("progress", "players", "opponent", "games", "wins", "evaluation_seconds")
"""Keys that each line of the log and of the learning curve needs."""
NETWORK, BASELINE = "net", "maxn"
"""Agent names in `ninetka_train.run`: the network, and the agent that plays one of its phases in some games."""
PHASE_AGENTS = {
    NETWORK: (NETWORK, NETWORK),
    f"{NETWORK} places, {BASELINE} moves": (NETWORK, BASELINE),
    f"{BASELINE} places, {NETWORK} moves": (BASELINE, NETWORK),
}
"""Maps the name of each agent of the benchmark to the agents of its placement phase and its movement phase."""


@dataclass(frozen=True)
class WinShare:
    """Wins of an agent against an opponent in all other seats."""

    agent: str
    opponent: str
    variant: str
    """Variant of the game; see `variant_label`."""
    players: int
    wins: float
    """Number of wins; a draw counts as 1 / n of a win for each of n seats."""
    games: int
    seats: tuple[tuple[float, int], ...] = ()
    """(wins, games) in each seat."""
    trained: float = 0.0
    """The amount of training before the games; see `RunData.unit`."""

    @property
    def share(self) -> float:
        """Wins per game."""
        return self.wins / self.games

    @property
    def interval(self) -> Interval:
        """95 % Wilson interval of the share."""
        return wilson_interval(self.wins, self.games)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{percent(self.share)} [{percent(low)}, {percent(high)}]"


@dataclass(frozen=True)
class ReportTable:
    """A table for a terminal or an HTML page."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str


@dataclass(frozen=True)
class RunData:
    """Contents of a run's folder."""

    name: str
    config: dict[str, Any]
    log: list[LogEntry]
    curve: list[LogEntry]
    evaluations: list[dict[str, Any]]
    games: list[GameRecord]

    @cached_property
    def minutes(self) -> float:
        """Minutes of training so far."""
        return float(self.log[-1]["seconds"]) / 60 if self.log else 0.0

    @property
    def unit(self) -> str:
        """The unit in which the plots measure training. It is not time, so that plots do not depend on the machine."""
        if self._length is None:
            return "% of the run"
        return "moves of training" if self.config["algorithm"] == "ppo" else "games of training"

    @cached_property
    def _length(self) -> int | None:
        """The number of moves or games of the whole run; None if the configuration does not say it."""
        if self.config["algorithm"] == "ppo":
            return self.config.get("ppo", {}).get("moves")
        settings, game = self.config.get("alphazero", {}), self.config.get("game", DEFAULT_GAME)
        variants = len(self.config["players"]) * (1 if isinstance(game, str) else len(game))
        return settings["rounds"] * settings["games"] * variants if settings else None

    def trained(self, line: LogEntry) -> float:
        """Return the amount of training at a line of the log or of the curve, in `unit`."""
        return float(line["progress"]) * (100 if self._length is None else self._length)

    @cached_property
    def benchmark(self) -> list[WinShare]:
        """The measurements of the final benchmark."""
        trained = self.trained(self.log[-1]) if self.log else 0.0
        return [_win_share(evaluation, trained) for evaluation in self.evaluations]

    @cached_property
    def best(self) -> list[LogEntry]:
        """The measurement of the curve with the most wins: its lines, one for each opponent; empty if there is none."""
        found = measurements(self.curve)
        return max(reversed(found), key=mean_share, default=[])  # the latest of equal ones

    @cached_property
    def shares(self) -> list[WinShare]:
        """The network's measurements during training and at the end, in order."""
        before = [
            WinShare(
                NETWORK,
                line["opponent"],
                variant_label(line.get("game", DEFAULT_GAME), line["players"]),
                line["players"],
                line["wins"],
                line["games"],
                trained=self.trained(line),
            )
            for line in self.curve
            if not (self.benchmark and line["progress"] == 1)  # the benchmark is more exact
        ]
        return before + [share for share in self.benchmark if share.agent == NETWORK]

    @property
    def teacher(self) -> str:
        """The spec of the agent that played the first rounds; empty if there is none."""
        settings = self.config.get("alphazero", {})
        if self.config["algorithm"] == "ppo" or not settings.get("playout_rounds"):
            return ""
        return teacher_spec(_game_name(self.config), settings["teacher"], settings["playouts"], settings["exploration"])

    @property
    def variants(self) -> list[str]:
        """The variants of the game in the measurements, in order."""
        return list(dict.fromkeys(share.variant for share in self.shares))


def measurements(curve: Sequence[LogEntry]) -> list[list[LogEntry]]:
    """Divide the lines of a learning curve into measurements of one network each."""
    return [list(lines) for _, lines in groupby(curve, key=lambda line: line["progress"])]


def mean_share(lines: Sequence[LogEntry]) -> float:
    """Return the mean share of wins in a measurement, over opponents and variants."""
    return float(np.mean([line["wins"] / line["games"] for line in lines]))


def _win_share(evaluation: dict[str, Any], trained: float) -> WinShare:
    agent, opponent = evaluation["agents"]
    players = evaluation["settings"]["num_players"]
    seats = tuple((seat["wins"] + seat.get("draws", 0) / players, seat["games"]) for seat in agent["seats"])
    wins, variant = agent["share"] * agent["games"], evaluation["settings"].get("game", DEFAULT_GAME)
    return WinShare(
        agent["name"], opponent["name"], variant_label(variant, players), players, wins, agent["games"], seats, trained
    )


def read_run(folder: Path) -> RunData:
    """Read the folder of a run, which may still be training.

    Raises:
        ValueError: if it is not the folder of a run, or a file in it is broken; the message names the file.
        OSError: if a file cannot be read.
    """
    if not (folder / CONFIG).exists():
        raise ValueError(f"{folder}: not the folder of a run ({CONFIG} is missing)")
    config = read_settings(folder / CONFIG)
    parts: dict[str, dict[str, Any]] = {
        CONFIG: {},
        LOG_FILE: {"log": read_json_lines(folder / LOG_FILE, _LOG_KEYS)},
        CURVE_FILE: {"curve": read_json_lines(folder / CURVE_FILE, _CURVE_KEYS)},
    }
    if (folder / EVALUATION).exists():
        parts[EVALUATION] = {"evaluations": _read_evaluations(folder / EVALUATION)}
        parts[GAMES] = {"games": list(read_records(folder / GAMES))}
    run = RunData(folder.resolve().name, config, [], [], [], [])
    for name, contents in parts.items():  # one file after another, so that an error is in the file that was added
        run = replace(run, **contents)
        try:
            summary(run), report_tables(run), str(run.shares)
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, IndexError) as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"{folder / name}: was not written by a run: {what}") from None
    return run


def _read_evaluations(path: Path) -> list[dict[str, Any]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: is not complete JSON: {error}") from None
    if not isinstance(found, list):
        raise ValueError(f"{path}: expected a list of matches, found {short_repr(found)}")
    return found


def whose_games(config: Mapping[str, Any]) -> str:
    """Return how a run learns, and who plays the games of its rounds, from its configuration as plain values."""
    if config["algorithm"] == "ppo":
        return "PPO from the network's own games"
    settings = config["alphazero"]
    rounds, before = settings["rounds"], min(settings["rounds"], settings["playout_rounds"])
    teacher = settings["teacher"] or plugins_of(_game_name(config)).teacher
    search = teacher if teacher.startswith("net") else f"{teacher} with {settings['playouts']} playouts"
    if before == rounds:
        return f"imitating {search} ({count_text(rounds, 'round')} of its games)"
    if not before:
        return f"AlphaZero ({count_text(rounds, 'round')} of the network's own games)"
    own = count_text(rounds - before, "round")
    return f"AlphaZero ({count_text(before, 'round')} of games of {search}, then {own} of the network's own games)"


def _game_name(config: Mapping[str, Any]) -> str:
    """Return the name of the game of a configuration."""
    game = config.get("game", DEFAULT_GAME)
    return definition_of_spec(game if isinstance(game, str) else game[0])[0].name


def summary(run: RunData) -> str:
    """Return a line of text with the algorithm, whose games it learned from, the game, and the duration."""
    game, players = run.config.get("game", DEFAULT_GAME), " and ".join(str(number) for number in run.config["players"])
    what = f"{players} players" if game == DEFAULT_GAME else " and ".join([game] if isinstance(game, str) else game)
    text = f"{what}; {whose_games(run.config)}; trained for {duration(60 * run.minutes)}"
    if run.log and run.log[-1]["progress"] < 1:
        text += f" ({run.log[-1]['progress']:.0%} of the run)"
    if run.best:
        text += f"; best of the curve at {run.best[0]['progress']:.0%} of the run ({mean_share(run.best):.0%} of games)"
    if evaluation_seconds := sum(line["evaluation_seconds"] for line in run.curve):
        text += f"; the games of the curve took {duration(evaluation_seconds)} in addition"
    return text


def duration(seconds: float) -> str:
    """Format a duration in hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def report_tables(run: RunData) -> list[ReportTable]:
    """Return the tables of the benchmark for each variant.

    The first table has the network's wins by opponent and seat, the second compares them with the wins of its teacher
    and of the game's default opponent. If there are games in which the network played only one phase, a third table has
    the wins by phase.
    """
    found = []
    for variant in run.variants:
        shares = [share for share in run.benchmark if share.variant == variant]
        if shares:
            found.append(_opponents_table(variant, shares))
        if any(share.agent not in PHASE_AGENTS for share in shares):
            found.append(_comparison_table(variant, shares, run.teacher))
        if any(share.agent in PHASE_AGENTS.keys() - {NETWORK} for share in shares):
            found.append(_phases_table(variant, shares))
    return found


def _opponents_table(variant: str, shares: list[WinShare]) -> ReportTable:
    players = shares[0].players
    seats = tuple(f"seat {seat}" for seat in range(players))
    rows = [
        (share.opponent, str(share.games), str(share), *(percent(wins / games) for wins, games in share.seats))
        for share in shares
        if share.agent == NETWORK
    ]
    note = f"The opponent holds all other seats; {percent(1 / players)} % is the expected share. Seat 0 moves first."
    return ReportTable(f"{variant}: wins of the network", ("against", "games", "wins % [95 %]", *seats), rows, note)


def _comparison_table(variant: str, shares: list[WinShare], teacher: str) -> ReportTable:
    """Return a table of the wins of the network and of the agents that it is compared with, by opponent."""
    opponents = list(dict.fromkeys(share.opponent for share in shares))
    rows = [
        (opponent, "teacher" if share.agent == teacher else share.agent, str(share))
        for opponent in opponents
        for share in shares
        if share.opponent == opponent and (share.agent == NETWORK or share.agent not in PHASE_AGENTS)
    ]
    note = "The opponent holds all other seats."
    if any(share.agent == teacher for share in shares):
        note = f"teacher: {teacher}. {note}"
    columns = ("against", "agent", "wins % [95 %]")
    return ReportTable(f"{variant}: the network compared with other agents", columns, rows, note)


def _phases_table(variant: str, shares: list[WinShare]) -> ReportTable:
    rows = [
        (*PHASE_AGENTS[share.agent], str(share.games), str(share))
        for share in shares
        if share.opponent == BASELINE and share.agent in PHASE_AGENTS
    ]
    note = f"Against {BASELINE} in all other seats; neutral stones count as placement."
    title = f"{variant}: what each phase is worth"
    return ReportTable(title, ("places", "moves", "games", "wins % [95 %]"), rows, note)
