"""The card of an agent: all results of the benchmark, and the figures that follow from them, as a JSON file.

Start reading at `Card` and `figures_of`. The file has the results of each round, so the figures can be computed again,
and a benchmark that was stopped can be continued.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ninetka_env.core.options import check_choice, short_repr
from ninetka_env.core.registry import load_variant
from ninetka_env.core.text import one_line
from ninetka_train.judging.fixed_pool import FixedPoolRating, rate_against
from ninetka_train.judging.ratings import Interval, clustered_interval, interval_of_sums
from ninetka_train.judging.texts import count_text
from ninetka_train.ninetka.benchmark.protocol import QUICK, TIERS, Protocol, Step, load_protocol
from ninetka_train.ninetka.exact_positions import PLAYERS, load_positions


@dataclass(frozen=True)
class Round:
    """Results of the games of a round."""

    players: int
    opponent: str
    number: int
    wins: list[float]
    """Games that the agent won after each opening; a draw counts as 1 / n of a game with n players."""
    moves: int
    """Moves of the agent."""
    seconds: float
    """Time in which the agent chose them."""
    sha256: str
    """SHA-256 of all actions and winners."""
    won_placements: list[bool | None] | None = None
    """For each game whether perfect play wins it for the agent after all stones are placed, None if this is not known;
    None instead of the list if the protocol does not judge the placements of this round."""

    @property
    def step(self) -> Step:
        """Which round this is."""
        return self.players, self.opponent, self.number

    @property
    def games(self) -> int:
        """Number of games."""
        return self.players * len(self.wins)


@dataclass(frozen=True)
class PositionErrors:
    """Errors in the stored exact positions; see `ninetka_train.ninetka.position_score.PositionScore`."""

    players: int
    rate: float
    interval: Interval
    positions: int
    errors: int
    wins: int
    wins_given_away: int


@dataclass
class Card:
    """Results of an agent; not complete until all rounds and positions are there."""

    agent: str
    """The agent's spec."""
    protocol: int
    protocol_sha256: str
    tier: str
    author: str = ""
    method: str = ""
    """Name of the training method; cards of several seeds have the same."""
    files: list[tuple[str, str]] = field(default_factory=list)
    """Name and SHA-256 of the files that the agent is made from: weights of networks, and the module of an agent of
    another package."""
    versions: dict[str, str] = field(default_factory=dict)
    """Versions of libraries, and digests of this project's sources."""
    machines: list[str] = field(default_factory=list)
    """The machines on which the games were played."""
    date: str = ""
    """Day of the last result."""
    is_timed: bool = False
    """Whether the agent has a time limit, so that its moves depend on the machine."""
    differences: list[str] = field(default_factory=list)
    """What differed from the protocol: canary games, judgements of placements, or sets of positions."""
    milliseconds_alone: float | None = None
    """Mean time per move in two games of two players, played one after the other."""
    positions: list[PositionErrors] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)

    @property
    def is_official(self) -> bool:
        """Whether nothing differed from the protocol."""
        return not self.differences

    @property
    def games_sha256(self) -> str:
        """SHA-256 of all games."""
        ordered = sorted(self.rounds, key=lambda one: one.step)
        return hashlib.sha256("".join(one.sha256 for one in ordered).encode()).hexdigest()

    def missing_steps(self, protocol: Protocol) -> list[Step]:
        """Return the rounds of the tier that have not been played, in the order in which they are played."""
        there = {one.step for one in self.rounds}
        return [step for step in protocol.steps_of(self.tier) if step not in there]

    def is_complete(self, protocol: Protocol) -> bool:
        """Return whether all results of the tier are there."""
        scored = {one.players for one in self.positions}
        return not self.missing_steps(protocol) and scored == set(PLAYERS) and self.milliseconds_alone is not None


def quick_part(card: Card, protocol: Protocol) -> Card:
    """Return a card with only the results of the quick tier."""
    steps = protocol.steps_of(QUICK)
    rounds = [one for one in card.rounds if one.step in steps]
    return replace(card, tier=QUICK, rounds=rounds)


# Figures


class ShareFigures(NamedTuple):
    """How often something happened, with a 95 % interval."""

    hits: float
    cases: int
    interval: Interval

    @property
    def share(self) -> float:
        """The share: `hits` / `cases`."""
        return self.hits / self.cases


@dataclass(frozen=True)
class PlayersFigures:
    """Figures of the games with one number of players."""

    games: int
    rating: FixedPoolRating
    shares: Mapping[str, ShareFigures]
    """Share of the games won against each opponent; in the interval, games after one opening are one cluster."""
    errors: PositionErrors


@dataclass(frozen=True)
class Figures:
    """All figures of a complete card."""

    players: Mapping[int, PlayersFigures]
    placements: ShareFigures | None
    """In how many of the solved games of two players perfect play wins for the agent after all stones are placed; None
    if no game was solved."""
    judged: int
    """Number of these games, solved or not."""
    milliseconds: float | None
    """Mean time per move in the games, played in batches."""


def figures_of(card: Card, protocol: Protocol) -> Figures:
    """Return the figures of a complete card."""
    errors = {one.players: one for one in card.positions}
    players = {number: _players_figures(card, protocol, number, errors[number]) for number in PLAYERS}
    moves = sum(one.moves for one in card.rounds)
    seconds = sum(one.seconds for one in card.rounds)
    judged = sum(len(one.won_placements or ()) for one in card.rounds)
    return Figures(players, _placement_figures(card.rounds), judged, 1000 * seconds / moves if moves else None)


def _players_figures(card: Card, protocol: Protocol, num_players: int, errors: PositionErrors) -> PlayersFigures:
    rounds = sorted((one for one in card.rounds if one.players == num_players), key=lambda one: one.step)
    specs = protocol.opponents_of(card.tier)
    wins = {spec: np.array([won for one in rounds if one.opponent == spec for won in one.wins]) for spec in specs}
    ratings = [protocol.ratings[str(num_players)][spec] for spec in specs]
    rating = rate_against(ratings, [wins[spec] for spec in specs], num_players)
    shares = {}
    for spec, won in wins.items():
        hits, games = float(won.sum()), num_players * len(won)
        interval = interval_of_sums(hits / games, games, (won - won.mean()) / games)
        shares[spec] = ShareFigures(hits, games, interval)
    return PlayersFigures(sum(one.cases for one in shares.values()), rating, shares, errors)


def _placement_figures(rounds: Iterable[Round]) -> ShareFigures | None:
    hits, openings = [], []
    for number, one in enumerate(rounds):
        for place, won in enumerate(one.won_placements or ()):
            if won is not None:
                hits.append(won)
                openings.append(1000 * number + place // one.players)
    if not hits:
        return None
    return ShareFigures(sum(hits), len(hits), clustered_interval(np.array(hits), np.array(openings)))


# Files


def card_json(card: Card, protocol: Protocol) -> str:
    """Return the text of a card's file: a complete card also has its figures, which readers do not need."""
    values = asdict(card)
    rounds = values.pop("rounds")
    values["is_official"], values["is_complete"] = card.is_official, card.is_complete(protocol)
    if values["is_complete"]:
        values |= {"games_sha256": card.games_sha256, "figures": _figures_dict(figures_of(card, protocol))}
    head = json.dumps(values, indent=1, allow_nan=False)
    lines = ",\n  ".join(json.dumps(one, allow_nan=False) for one in rounds)
    return f'{head[:-2]},\n "rounds": [\n  {lines}\n ]\n}}\n'


def _figures_dict(figures: Figures) -> dict[str, Any]:
    def share(one: ShareFigures) -> dict[str, Any]:
        return {**one._asdict(), "share": one.share}

    return {
        "players": {
            str(number): {
                "games": one.games,
                **one.rating._asdict(),
                "shares": {spec: share(found) for spec, found in one.shares.items()},
                "errors": one.errors.rate,
            }
            for number, one in figures.players.items()
        },
        "placements": figures.placements and {**share(figures.placements), "judged": figures.judged},
        "milliseconds": figures.milliseconds,
    }


def read_card(path: Path) -> Card:
    """Read a card, complete or not.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is no card; the message names the file and the first wrong entry.
    """
    from pydantic import TypeAdapter, ValidationError

    data = path.read_bytes()
    try:
        values = json.loads(data)
        if not isinstance(values, Mapping):
            raise ValueError("expected an object")
        card = TypeAdapter(Card).validate_python({key: values[key] for key in values if key in _FIELDS})
        _check_results(card, load_protocol(card.protocol))
    except ValidationError as error:
        first = error.errors()[0]
        what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise ValueError(f"{path}: no card of the benchmark: {what}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: no card of the benchmark: {one_line(str(error), 300)}") from None
    return card


_FIELDS = {one.name for one in fields(Card)}


def _check_results(card: Card, protocol: Protocol) -> None:
    """Raise `ValueError` if results are impossible under the protocol."""
    if card.protocol_sha256 != protocol.sha256:
        raise ValueError(f"protocol_sha256: expected {protocol.sha256}, that of protocol {protocol.version}")
    check_choice("tier", card.tier, TIERS)
    if not one_line(card.agent, 1):
        raise ValueError("agent: expected a spec")
    steps = protocol.steps_of(card.tier)
    for one in card.rounds:
        what = f"round {one.number} of {count_text(one.players, 'player')} against {short_repr(one.opponent)}"
        if one.step not in steps:
            raise ValueError(f"{what}: it is there twice, or the tier has no such round")
        steps.remove(one.step)
        if problem := _problem_of(one, card.tier, protocol):
            raise ValueError(f"{what}: {problem}")
    if len({one.players for one in card.positions}) < len(card.positions):
        raise ValueError("positions: expected each number of players once")
    for errors in card.positions:
        if not _is_possible(errors):
            raise ValueError(f"positions of {count_text(errors.players, 'player')}: impossible numbers")
    if card.milliseconds_alone is not None and not 0 <= card.milliseconds_alone < np.inf:
        raise ValueError(f"milliseconds_alone={card.milliseconds_alone:g}: expected a finite number of at least 0")


def _problem_of(one: Round, tier: str, protocol: Protocol) -> str:
    """Return what is wrong with the results of a round; empty if nothing is."""
    wins, openings = np.array(one.wins), protocol.openings_per_round[str(one.players)]
    if len(wins) != openings:
        return f"expected the wins after each of {openings} openings, got {len(wins)}"
    if not ((wins >= 0) & (wins <= one.players)).all():
        return f"wins: expected 0 to {one.players} after each opening"
    if not 0 <= one.moves <= one.games * load_variant(protocol.game).sizes.max_plies or not 0 <= one.seconds < np.inf:
        return "moves or seconds: out of range"
    judged = one.games if protocol.judges_placements(*one.step, tier) else 0
    if len(one.won_placements or ()) != judged:
        return f"won_placements: expected values for {count_text(judged, 'game')}"
    return ""


def _is_possible(one: PositionErrors) -> bool:
    """Return whether numbers of errors do not contradict each other."""
    if one.players not in PLAYERS or not 0 <= one.interval[0] <= one.rate <= one.interval[1] <= 1:
        return False
    in_order = 0 <= one.wins_given_away <= min(one.wins, one.errors) and 0 <= one.errors <= one.positions
    return in_order and one.wins <= one.positions == _num_positions(one.players)


@functools.cache
def _num_positions(num_players: int) -> int:
    return len(load_positions(num_players))
