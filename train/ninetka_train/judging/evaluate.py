"""Figures (statistics) of matches: win shares with intervals by seat and lineup, thinking time, ratings, tournament.

Start reading at `evaluate` and `summarise`. Games are played in `arena.py` and `lockstep.py`; `report.py` prints the
figures.

    evaluation = evaluate(["net", "maxn"], num_players=3, num_games=300)
    evaluation.agents[0].share, evaluation.agents[0].interval

The same results give the same figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import AgentLike
from ninetka_env.core.options import check_choice
from ninetka_env.core.outcome import DRAWN
from ninetka_env.core.registry import DEFAULT_GAME, Variant
from ninetka_train.judging.arena import play_games
from ninetka_train.judging.gate import GATE_BATCH, Gate, GateFigures, check_gate, evaluate_gate, stop_at_verdict
from ninetka_train.judging.ratings import Interval, elo_ratings, wilson_interval
from ninetka_train.judging.results import MatchSettings, Results
from ninetka_train.judging.schedule import Lineup
from ninetka_train.plugins import exact_plugin_of


@dataclass(frozen=True)
class SeatFigures:
    """Results of an agent in one seat."""

    seat: int
    games: int
    wins: int
    draws: int
    share: float | None
    """As in `AgentFigures`; None if the agent had no games in this seat."""
    interval: Interval | None
    """95 % Wilson interval of `share`."""


@dataclass(frozen=True)
class TimeFigures:
    """Thinking time of an agent in one stage, in milliseconds per move.

    Games are played in batches: the time of a move is the wall time of a call divided by its number of positions.
    """

    stage: str
    moves: int
    mean_ms: float
    slowest_ms: float


@dataclass(frozen=True)
class AgentFigures:
    """Results of an agent in all its games."""

    name: str
    games: int
    wins: int
    """Games that the agent won with any of its copies."""
    draws: int
    """Games that were drawn."""
    share: float
    """(wins + shares of draws) / games. A draw counts 1 / n for each of the n seats, so 1 / 2 with two players."""
    interval: Interval
    """95 % Wilson interval of `share`."""
    even: float
    """Expected share if every seat won equally often: the agent's seats / all seats."""
    score: float
    """Mean score of the agent's seats."""
    seconds: float | None
    """Mean seconds per move, see `TimeFigures`; None without moves."""
    seats: list[SeatFigures]
    times: list[TimeFigures]
    elo: float | None
    """Elo rating, with `Evaluation.anchor` at 0; None if the agent is the only one."""
    elo_interval: Interval | None
    """95 % interval; None if there are too few games or they do not bound the rating (see
    `ninetka_train.judging.ratings.elo_ratings`)."""


@dataclass(frozen=True)
class LineupFigures:
    """Results of the games of one lineup."""

    agents: list[str]
    games: int
    wins: dict[str, int]
    draws: int
    shares: dict[str, float]
    """Share of wins of each agent, computed as `AgentFigures.share`."""
    intervals: dict[str, Interval]
    """95 % Wilson intervals of `shares`."""


@dataclass(frozen=True)
class MatchFigures:
    """An agent's two-player matches against an opponent; see `match_figures`."""

    agent: str
    opponent: str
    matches: int
    won: int
    drawn: int
    lost: int
    score: float
    opponent_score: float
    share: float
    """(won + drawn / 2) / matches."""
    interval: Interval
    """95 % Wilson interval of `share`."""


@dataclass(frozen=True)
class ExactFigures:
    """An agent's decisions, evaluated by perfect play."""

    agent: str
    decisions: int
    unsolved: int
    """Decisions that the solver did not solve within its budget."""
    won: int
    """Decisions in positions that are won under perfect play."""
    blunders: int
    """Decisions in won positions that gave the win away."""
    share: float | None
    """blunders / won; None if `won` is 0."""
    interval: Interval | None
    """95 % interval of `share` by `clustered_interval`, because decisions after the same start are not independent."""


@dataclass(frozen=True)
class Evaluation:
    """All figures of a match."""

    settings: MatchSettings
    games_per_lineup: int
    """Games played per lineup; the maximum if lineups differ."""
    rotation: int
    """Games per rotation group."""
    distinct_games: int
    """Games that differ in start, seating or moves; deterministic agents can repeat games."""
    anchor: str | None
    """The agent whose rating is 0; None if the mean of all agents is 0."""
    agents: list[AgentFigures]
    lineups: list[LineupFigures]
    matches: list[MatchFigures] | None
    """Two-player tournament, if requested."""
    exact: list[ExactFigures] | None
    """Blunders under perfect play, if requested."""
    gate: GateFigures | None
    """Result of the gate for the first agent, if requested."""
    failures: list[str]
    """One sentence for each game that an agent lost because it failed."""


class ExactPlugin(Protocol):
    """A module that evaluates decisions by perfect play."""

    def check_num_players(self, num_players: int) -> None:
        """Raise `ValueError` unless games with this number of players can be evaluated."""
        ...

    def exact_figures(self, results: Results) -> list[ExactFigures]:
        """Count each agent's decisions and blunders in positions that are won under perfect play."""
        ...


def _exact_plugin(variant: Variant) -> ExactPlugin:
    """Return the game's module for perfect play; raise `ValueError` if there is none."""
    module: ExactPlugin = exact_plugin_of(variant)
    return module


def evaluate(
    agents: Sequence[AgentLike | str],
    num_players: int | None = None,
    num_games: int = 100,
    *,
    game: str | Variant = DEFAULT_GAME,
    seed: int = 0,
    tournament: bool = False,
    exact: bool = False,
    gate: Gate | None = None,
    **options: Any,
) -> Evaluation:
    """Play a match and return its figures: `summarise(play_games(...))`.

    With a gate, the match ends as soon as there is a verdict, or when the option `on_batch_end` returns true. For
    the other arguments, see `summarise`, `play_games` and `ninetka_train.judging.arena.make_match`.
    """

    def check(settings: MatchSettings) -> None:
        check_figures(settings, tournament=tournament, exact=exact, gate=gate)

    if gate:
        options = {"batch": GATE_BATCH} | options | {"on_batch_end": stop_at_verdict(gate, options.get("on_batch_end"))}
    results = play_games(agents, num_players, num_games, game=game, seed=seed, check=check, **options)
    return summarise(results, tournament=tournament, exact=exact, gate=gate)


def check_figures(
    settings: MatchSettings, *, tournament: bool = False, exact: bool = False, gate: Gate | None = None
) -> None:
    """Raise `ValueError` if `summarise` cannot compute the requested figures for a match with these settings."""
    if tournament:
        check_tournament(len(settings.agents), settings.num_players)
    if exact:
        _exact_plugin(settings.variant).check_num_players(settings.num_players)
    if gate:
        check_gate(len(settings.agents))


def summarise(
    results: Results,
    *,
    tournament: bool = False,
    exact: bool = False,
    gate: Gate | None = None,
    anchor: str | None = None,
) -> Evaluation:
    """Compute the figures of finished games.

    Args:
        results: results of the games.
        tournament: also score matches of two games; for two players.
        exact: also evaluate every movement decision by perfect play; for two players. This is slow.
        gate: also test whether the first of two agents passes this gate.
        anchor: the agent whose rating is 0; None for a mean of 0.

    Raises:
        ValueError: if `tournament` is requested and the games are not two-player games between different agents, if
            `exact` is requested for more than two players, if `gate` is requested without exactly two agents, or if no
            agent has the name `anchor`.
    """
    elos = elo_ratings(results, None if anchor is None else check_choice("anchor", anchor, results.settings.agents))
    agents = [_agent_figures(results, agent, *elo) for agent, elo in enumerate(elos)]
    lineups = [_lineup_figures(results, number, lineup) for number, lineup in enumerate(results.schedule.lineups)]
    matches = match_figures(results) if tournament else None
    schedule = results.schedule
    return Evaluation(
        settings=results.settings,
        games_per_lineup=schedule.games_per_lineup,
        rotation=schedule.rotation,
        distinct_games=distinct_games(results),
        anchor=anchor,
        agents=agents,
        lineups=lineups,
        matches=matches,
        exact=_exact_plugin(results.settings.variant).exact_figures(results) if exact else None,
        gate=evaluate_gate(results, gate) if gate else None,
        failures=list(results.failures.values()),
    )


def distinct_games(results: Results) -> int:
    """Count the games that differ in start, seating or moves."""
    schedule = results.schedule
    starts = results.starts[schedule.group_of].view(np.uint8).reshape(len(schedule.seatings), -1)
    rows = zip(starts, schedule.seatings, results.actions, strict=True)
    return len({b"".join(part.tobytes() for part in row) for row in rows})


def _agent_figures(results: Results, agent: int, elo: float | None, elo_interval: Interval | None) -> AgentFigures:
    held = results.schedule.seatings == agent
    has_seat = held.any(axis=1)
    games, wins = int(has_seat.sum()), int((results.winning_agents == agent).sum())
    credit = float(results.shares[:, agent].sum())
    return AgentFigures(
        name=results.settings.agents[agent],
        games=games,
        wins=wins,
        draws=int((results.winners[has_seat] == DRAWN).sum()),
        share=credit / games,
        interval=wilson_interval(credit, games),
        even=float(held.sum()) / (games * results.settings.num_players),
        score=float(results.scores[held].mean()),
        seconds=seconds_per_move(results, agent),
        seats=[_seat_figures(results, agent, seat) for seat in range(results.settings.num_players)],
        times=_time_figures(results, agent),
        elo=elo,
        elo_interval=elo_interval,
    )


def _seat_figures(results: Results, agent: int, seat: int) -> SeatFigures:
    has_seat = results.schedule.seatings[:, seat] == agent
    games, wins, draws = (
        int(has_seat.sum()),
        *(int((has_seat & (results.winners == outcome)).sum()) for outcome in (seat, DRAWN)),
    )
    if not games:
        return SeatFigures(seat, 0, 0, 0, None, None)
    credit = wins + draws / results.settings.num_players
    return SeatFigures(seat, games, wins, draws, credit / games, wilson_interval(credit, games))


def seconds_per_move(results: Results, agent: int) -> float | None:
    """Return an agent's mean seconds per move, see `TimeFigures`; None if it made no moves."""
    moves = int(results.times.moves[agent].sum())
    return float(results.times.seconds[agent].sum()) / moves if moves else None


def _time_figures(results: Results, agent: int) -> list[TimeFigures]:
    figures = []
    for stage, name in enumerate(results.settings.variant.definition.stages):
        moves = int(results.times.moves[agent, stage])
        if moves:
            mean = float(results.times.seconds[agent, stage]) / moves
            slowest = float(results.times.slowest[agent, stage])
            figures.append(TimeFigures(name, moves, 1000 * mean, 1000 * slowest))
    return figures


def _lineup_figures(results: Results, number: int, lineup: Lineup) -> LineupFigures:
    names, part = results.settings.agents, results.schedule.lineup_of == number
    games = int(part.sum())
    winners, members = results.winning_agents[part], sorted(set(lineup))
    credit = {names[agent]: float(results.shares[part, agent].sum()) for agent in members}
    return LineupFigures(
        agents=[names[agent] for agent in lineup],
        games=games,
        wins={names[agent]: int((winners == agent).sum()) for agent in members},
        draws=int((winners == DRAWN).sum()),
        shares={name: one / games for name, one in credit.items()},
        intervals={name: wilson_interval(one, games) for name, one in credit.items()},
    )


def check_tournament(num_agents: int, num_players: int) -> None:
    """Raise `ValueError` unless there are two players and at least two agents."""
    if num_players != 2:
        raise ValueError(f"tournament with num_players={num_players}: its matches are for 2 players")
    if num_agents < 2:
        raise ValueError(f"tournament with {num_agents} agent: its matches need at least 2")


def match_figures(results: Results) -> list[MatchFigures]:
    """Score two-player games as matches of two games with seats swapped, for every agent against every opponent.

    The agent with the higher sum of scores over both games wins the match; equal sums draw it. A game that an event
    ended, such as a resignation or a failure, has no final score. In a match with such a game, the games won are
    compared instead.

    Raises:
        ValueError: if the games are not pairs with seats swapped.
    """
    check_tournament(len(results.settings.agents), results.settings.num_players)
    if (np.bincount(results.schedule.group_of) != 2).any():
        raise ValueError("tournament: these games do not come in pairs with seats swapped")
    figures = []
    for number, lineup in enumerate(results.schedule.lineups):
        games = np.flatnonzero(results.schedule.lineup_of == number)
        games = games[np.argsort(results.schedule.group_of[games], kind="stable")]
        seatings, scores = results.schedule.seatings[games], results.scores[games]
        wins = results.winners[games, None] == np.arange(2)
        is_cut = np.isin(games, [*results.events]).reshape(-1, 2).any(axis=1)
        sums, won = ([each[seatings == one].reshape(-1, 2).sum(axis=1) for one in lineup] for each in (scores, wins))
        leads = np.where(is_cut, won[0] - won[1], sums[0] - sums[1])
        figures.append(_match_figures(results, lineup, sums, leads))
        figures.append(_match_figures(results, lineup[::-1], sums[::-1], -leads))
    return figures


def _match_figures(
    results: Results, pair: Lineup, sums: list[npt.NDArray[Any]], leads: npt.NDArray[Any]
) -> MatchFigures:
    agent, opponent = (results.settings.agents[index] for index in pair)
    own, other = sums
    outcome = np.sign(leads)
    won, drawn, lost = (int((outcome == sign).sum()) for sign in (1, 0, -1))
    credit, matches, scores = won + drawn / 2, len(own), (float(own.sum()), float(other.sum()))
    return MatchFigures(
        agent,
        opponent,
        matches,
        won,
        drawn,
        lost,
        *scores,
        share=credit / matches,
        interval=wilson_interval(credit, matches),
    )
