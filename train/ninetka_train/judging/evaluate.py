"""From games to figures: win shares with intervals, seats, thinking time, ratings, and the two-player tournament.

    evaluation = evaluate(["net", "maxn"], num_players=3, num_games=300)
    evaluation.agents[0].share, evaluation.agents[0].interval

All functions here are pure: the same results give the same figures.
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
from ninetka_env.core.registry import DEFAULT, Variant
from ninetka_train.judging.arena import play_games
from ninetka_train.judging.gate import BATCH, Gate, GateFigures, check_gate, judge, stops
from ninetka_train.judging.ratings import Interval, elo_ratings, wilson
from ninetka_train.judging.results import Results, Settings
from ninetka_train.judging.schedule import Lineup
from ninetka_train.parts import exact_of


@dataclass(frozen=True)
class SeatFigures:
    """How an agent did in one seat."""

    seat: int
    games: int
    wins: int
    draws: int
    share: float | None
    """As of `AgentFigures`; None if it never sat there."""
    interval: Interval | None
    """95 % Wilson interval of it."""


@dataclass(frozen=True)
class TimeFigures:
    """How long an agent thought in one stage, in milliseconds per move.

    Games are played in batches: a move's time is the wall time of a call over the number of positions in it.
    """

    stage: str
    moves: int
    mean_ms: float
    slowest_ms: float


@dataclass(frozen=True)
class AgentFigures:
    """How an agent did in all its games."""

    name: str
    games: int
    wins: int
    """Games that the agent won, with any of its copies at the table."""
    draws: int
    """Games that were drawn."""
    share: float
    """(wins + draws shared out among the seats) / games: with two players a draw counts half."""
    interval: Interval
    """95 % Wilson interval of `share`."""
    even: float
    """The share that it would have if every seat won equally often: its seats over all seats."""
    score: float
    """Mean score of its seats."""
    seconds: float | None
    """Mean time per move, see `TimeFigures`; None if it decided nothing."""
    seats: list[SeatFigures]
    times: list[TimeFigures]
    elo: float | None
    """Rating, `Evaluation.anchor` at 0; None if it played only itself."""
    elo_interval: Interval | None
    """95 % interval; None where there are too few games, or they set no bound (see
    `ninetka_train.judging.ratings.elo_ratings`)."""


@dataclass(frozen=True)
class LineupFigures:
    """Who won how often at one table."""

    agents: list[str]
    games: int
    wins: dict[str, int]
    draws: int
    shares: dict[str, float]
    """By agent, as of `AgentFigures`."""
    intervals: dict[str, Interval]
    """95 % Wilson intervals of them."""


@dataclass(frozen=True)
class MatchFigures:
    """An agent's two-player matches against another: two games with seats swapped, the higher sum of scores wins."""

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
    """95 % Wilson interval of it."""


@dataclass(frozen=True)
class ExactFigures:
    """What perfect play says of an agent's decisions."""

    agent: str
    decisions: int
    unsolved: int
    """Decisions whose value the solver did not find within its budget."""
    won: int
    """Decisions in positions that perfect play wins."""
    blunders: int
    """Those of them that gave the win away."""
    share: float | None
    """blunders / won, None if nothing was won."""
    interval: Interval | None
    """95 % interval of it, by `clustered_interval`: decisions of games from one start are not independent."""


@dataclass(frozen=True)
class Evaluation:
    """Everything that a report shows."""

    settings: Settings
    games_per_lineup: int
    """Games played of each lineup; of the one with the most games if not all were played."""
    rotation: int
    """Games per rotation group."""
    distinct_games: int
    """Games that differ, in their start, seating or moves; agents without chance replay the same ones."""
    anchor: str | None
    """The agent whose rating is 0; None for the pool's mean."""
    agents: list[AgentFigures]
    lineups: list[LineupFigures]
    matches: list[MatchFigures] | None
    """Two-player tournament, if asked for."""
    exact: list[ExactFigures] | None
    """Blunders by the standard of perfect play, if asked for."""
    gate: GateFigures | None
    """What was decided about the first agent, if asked for."""
    failures: list[str]
    """What went wrong with agents, a sentence each: each cost them a game."""


class Exact(Protocol):
    """A module that judges decisions by perfect play."""

    def check(self, num_players: int) -> None:
        """Raise `ValueError` unless games of this number of players can be judged."""
        ...

    def figures(self, results: Results) -> list[ExactFigures]:
        """Count what each agent did in positions that perfect play wins."""
        ...


def _exact_of(variant: Variant) -> Exact:
    """Return what judges decisions in a game; `ValueError` if perfect play is not known."""
    module: Exact = exact_of(variant)
    return module


def evaluate(
    agents: Sequence[AgentLike | str],
    num_players: int | None = None,
    num_games: int = 100,
    *,
    game: str | Variant = DEFAULT,
    seed: int = 0,
    tournament: bool = False,
    exact: bool = False,
    gate: Gate | None = None,
    **options: Any,
) -> Evaluation:
    """Play and sum up: `summarise(play_games(agents, num_players, num_games, game=game, seed=seed, **options))`.

    With a gate the match ends as soon as there is a verdict, or `finished` says so.
    """

    def check(settings: Settings) -> None:
        check_figures(settings, tournament=tournament, exact=exact, gate=gate)

    if gate:
        options = {"batch": BATCH} | options | {"finished": stops(gate, options.get("finished"))}
    results = play_games(agents, num_players, num_games, game=game, seed=seed, check=check, **options)
    return summarise(results, tournament=tournament, exact=exact, gate=gate)


def check_figures(
    settings: Settings, *, tournament: bool = False, exact: bool = False, gate: Gate | None = None
) -> None:
    """Raise `ValueError` if a match with these settings cannot have figures that `summarise` is asked for."""
    if tournament:
        check_tournament(len(settings.agents), settings.num_players)
    if exact:
        _exact_of(settings.variant).check(settings.num_players)
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
    """Work out the figures of finished games.

    Args:
        results: the games.
        tournament: also score matches of two games; for two players.
        exact: also judge every movement decision by perfect play; for two players. It takes a while.
        gate: also say whether the first of two agents is good enough.
        anchor: the agent whose rating is 0; None for the pool's mean.

    Raises:
        ValueError: if `tournament` is asked for and the games are no two-player games between different agents, `exact`
            and they have more players, or `gate` and there are not two agents; or if nobody is called `anchor`.
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
        exact=_exact_of(results.settings.variant).figures(results) if exact else None,
        gate=judge(results, gate) if gate else None,
        failures=list(results.failures.values()),
    )


def distinct_games(results: Results) -> int:
    """Count the games that differ in their start, in who holds which seat, or in their moves."""
    schedule = results.schedule
    starts = results.starts[schedule.group_of].view(np.uint8).reshape(len(schedule.seatings), -1)
    rows = zip(starts, schedule.seatings, results.actions, strict=True)
    return len({b"".join(part.tobytes() for part in row) for row in rows})


def _agent_figures(results: Results, agent: int, elo: float | None, elo_interval: Interval | None) -> AgentFigures:
    held = results.schedule.seatings == agent
    there = held.any(axis=1)
    games, wins = int(there.sum()), int((results.winning_agents == agent).sum())
    credit = float(results.shares[:, agent].sum())
    return AgentFigures(
        name=results.settings.agents[agent],
        games=games,
        wins=wins,
        draws=int((results.winners[there] == DRAWN).sum()),
        share=credit / games,
        interval=wilson(credit, games),
        even=float(held.sum()) / (games * results.settings.num_players),
        score=float(results.scores[held].mean()),
        seconds=seconds_per_move(results, agent),
        seats=[_seat_figures(results, agent, seat) for seat in range(results.settings.num_players)],
        times=_time_figures(results, agent),
        elo=elo,
        elo_interval=elo_interval,
    )


def _seat_figures(results: Results, agent: int, seat: int) -> SeatFigures:
    there = results.schedule.seatings[:, seat] == agent
    games, wins, draws = (
        int(there.sum()),
        *(int((there & (results.winners == outcome)).sum()) for outcome in (seat, DRAWN)),
    )
    if not games:
        return SeatFigures(seat, 0, 0, 0, None, None)
    credit = wins + draws / results.settings.num_players
    return SeatFigures(seat, games, wins, draws, credit / games, wilson(credit, games))


def seconds_per_move(results: Results, agent: int) -> float | None:
    """Return the mean time that an agent took for a move, see `TimeFigures`; None if it made none."""
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
        intervals={name: wilson(one, games) for name, one in credit.items()},
    )


def check_tournament(num_agents: int, num_players: int) -> None:
    """Raise `ValueError` unless there can be two-player matches."""
    if num_players != 2:
        raise ValueError(f"tournament with num_players={num_players}: its matches are for 2 players")
    if num_agents < 2:
        raise ValueError(f"tournament with {num_agents} agent: its matches need at least 2")


def match_figures(results: Results) -> list[MatchFigures]:
    """Score two-player games as matches of two with seats swapped, for every agent against every opponent.

    Each side sums its scores over both games; the higher sum wins the match, equal sums draw it. A match with a game
    that was lost by resigning, or by failing to move, goes by games won: such a game has no final score.

    Raises:
        ValueError: if the games are no such pairs.
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
        agent, opponent, matches, won, drawn, lost, *scores, share=credit / matches, interval=wilson(credit, matches)
    )
