"""What the folder of a run holds, read from it alone: settings, log, measurements, and the tables made of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ninetka_env.api.record_files import read_records
from ninetka_env.api.records import GameRecord
from ninetka_env.core.options import shortened
from ninetka_env.core.registry import DEFAULT
from ninetka_train.judging.ratings import Interval, wilson
from ninetka_train.judging.report import percent
from ninetka_train.learning.config import read_settings
from ninetka_train.learning.logger import CURVE, LOG, Line, read_lines, variant_label

CONFIG, EVALUATION, GAMES = "config.yaml", "evaluation.json", "games.txt"
NETWORK, BASELINE = "net", "maxn"
"""What `ninetka_train.run` calls the network, and the agent that lends it the other phase."""
PHASES = {
    NETWORK: (NETWORK, NETWORK),
    f"{NETWORK} places, {BASELINE} moves": (NETWORK, BASELINE),
    f"{BASELINE} places, {NETWORK} moves": (BASELINE, NETWORK),
}
"""Agents of the benchmark: who places their stones, who slides them."""


@dataclass(frozen=True)
class Share:
    """How often an agent won against an opponent that held all other seats."""

    agent: str
    opponent: str
    variant: str
    """Of the game; see `variant_label`."""
    players: int
    wins: float
    """A draw counts as a share of a win for every seat."""
    games: int
    seats: tuple[tuple[float, int], ...] = ()
    """(wins, games) in each seat."""
    minutes: float = 0.0
    """Training time before."""

    @property
    def share(self) -> float:
        """Wins per game."""
        return self.wins / self.games

    @property
    def interval(self) -> Interval:
        """95 % Wilson interval of the share."""
        return wilson(self.wins, self.games)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{percent(self.share)} [{percent(low)}, {percent(high)}]"


@dataclass(frozen=True)
class Sheet:
    """A table, however it is shown."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str


@dataclass(frozen=True)
class Run:
    """What the folder of a run holds so far."""

    name: str
    config: dict[str, Any]
    log: list[Line]
    curve: list[Line]
    evaluations: list[dict[str, Any]]
    games: list[GameRecord]

    @cached_property
    def minutes(self) -> float:
        """Of training so far."""
        return float(self.log[-1]["seconds"]) / 60 if self.log else 0.0

    @cached_property
    def benchmark(self) -> list[Share]:
        """The measurements at the end."""
        return [_share(evaluation, self.minutes) for evaluation in self.evaluations]

    @cached_property
    def shares(self) -> list[Share]:
        """The network's measurements on the way and at the end, in order."""
        before = [
            Share(
                NETWORK,
                line["opponent"],
                variant_label(line.get("game", DEFAULT), line["players"]),
                line["players"],
                line["wins"],
                line["games"],
                minutes=line["seconds"] / 60,
            )
            for line in self.curve
        ]
        return before + [share for share in self.benchmark if share.agent == NETWORK]

    @property
    def variants(self) -> list[str]:
        """The variants of the game that it was measured at, in order."""
        return list(dict.fromkeys(share.variant for share in self.shares))


def _share(evaluation: dict[str, Any], minutes: float) -> Share:
    agent, opponent = evaluation["agents"]
    players = evaluation["settings"]["num_players"]
    seats = tuple((seat["wins"] + seat.get("draws", 0) / players, seat["games"]) for seat in agent["seats"])
    wins, variant = agent["share"] * agent["games"], evaluation["settings"].get("game", DEFAULT)
    return Share(
        agent["name"], opponent["name"], variant_label(variant, players), players, wins, agent["games"], seats, minutes
    )


def read_run(folder: Path) -> Run:
    """Read what the folder of a run holds so far.

    Raises:
        ValueError: if it is none, or a file in it is broken, naming it.
        OSError: if a file cannot be read.
    """
    if not (folder / CONFIG).exists():
        raise ValueError(f"{folder}: no run lies there ({CONFIG} is missing)")
    config = read_settings(folder / CONFIG)
    evaluations, games = [], []
    if (folder / EVALUATION).exists():
        try:
            evaluations = json.loads((folder / EVALUATION).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{folder / EVALUATION}: is no complete JSON: {error}") from None
        games = list(read_records(folder / GAMES))
    run = Run(folder.resolve().name, config, read_lines(folder / LOG), read_lines(folder / CURVE), evaluations, games)
    try:
        summary(run), sheets(run)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"{folder}: what lies there was not written by a run: {shortened(error)}") from None
    return run


def summary(run: Run) -> str:
    """Say in a line what was trained, and for how long."""
    game, players = run.config.get("game", DEFAULT), " and ".join(str(number) for number in run.config["players"])
    what = f"{players} players" if game == DEFAULT else " and ".join([game] if isinstance(game, str) else game)
    text = f"{run.config['algorithm']}, {what}, trained for {duration(60 * run.minutes)}"
    if run.log and run.log[-1]["progress"] < 1:
        text += f" ({run.log[-1]['progress']:.0%} of the run)"
    if beside := sum(line["evaluation_seconds"] for line in run.curve):
        text += f"; the curve's games took {duration(beside)} beside it"
    return text


def duration(seconds: float) -> str:
    """Write a time in words."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def sheets(run: Run) -> list[Sheet]:
    """Return the tables of the benchmark: against each opponent, seat by seat, and phase by phase where there are."""
    found = []
    for variant in run.variants:
        shares = [share for share in run.benchmark if share.variant == variant]
        if shares:
            found.append(_opponents(variant, shares))
        if any(share.agent != NETWORK for share in shares):
            found.append(_phases(variant, shares))
    return found


def _opponents(variant: str, shares: list[Share]) -> Sheet:
    players = shares[0].players
    seats = tuple(f"seat {seat}" for seat in range(players))
    rows = [
        (share.opponent, str(share.games), str(share), *(percent(wins / games) for wins, games in share.seats))
        for share in shares
        if share.agent == NETWORK
    ]
    note = f"The opponent holds all other seats; {percent(1 / players)} % would be even. Seat 0 moves first."
    return Sheet(f"{variant}: wins of the network", ("against", "games", "wins % [95 %]", *seats), rows, note)


def _phases(variant: str, shares: list[Share]) -> Sheet:
    rows = [
        (*PHASES[share.agent], str(share.games), str(share))
        for share in shares
        if share.opponent == BASELINE and share.agent in PHASES
    ]
    note = f"Against {BASELINE} in all other seats; neutral stones count as placement."
    title = f"{variant}: what each phase is worth"
    return Sheet(title, ("places", "moves", "games", "wins % [95 %]"), rows, note)
