"""From games to figures: win shares with intervals, seats, thinking time, ratings, and the two-player tournament.

    evaluation = evaluate([make_agent("net"), make_agent("maxn")], num_players=3, num_games=300)
    evaluation.agents[0].share, evaluation.agents[0].interval

All functions here are pure: the same results give the same figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from ninetka_agents.agent import Agent
from ninetka_env.games.ninetka.rules import Phase
from ninetka_train.judging.arena import Lineup, Results, Settings, play_games
from ninetka_train.ninetka.blunders import Decisions, check_solvable, find_decisions

CONFIDENCE = 0.95
ELO_PER_NAT = 400 / np.log(10)
"""Elo points per unit of log-odds."""
PRIOR = 0.05
"""Weight of the squared ratings (in nats) that holds ratings finite: a normal prior with a deviation of 550 Elo."""
RESAMPLES = 1000

Interval = tuple[float, float]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SeatFigures:
    """How an agent did in one seat."""

    seat: int
    games: int
    wins: int


@dataclass(frozen=True)
class TimeFigures:
    """How long an agent thought in one phase, in milliseconds per move.

    Games are played in batches: a move's time is the wall time of a call over the number of positions in it.
    """

    phase: str
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
    share: float
    """wins / games."""
    interval: Interval
    """95 % Wilson interval of `share`."""
    even: float
    """The share that it would have if every seat won equally often: its seats over all seats."""
    sections: float
    """Mean score of its seats."""
    seats: list[SeatFigures]
    times: list[TimeFigures]
    elo: float | None
    """Rating, the pool's mean at 0; None if it played only itself."""
    elo_interval: Interval | None
    """95 % interval by resampling rotation groups; None where the games set no bound: it won all or none
    of them, or there is one group only."""


@dataclass(frozen=True)
class LineupFigures:
    """Who won how often at one table."""

    agents: list[str]
    games: int
    wins: dict[str, int]


@dataclass(frozen=True)
class MatchFigures:
    """An agent's two-player matches against another: two games with seats swapped, the higher sum of scores wins."""

    agent: str
    opponent: str
    matches: int
    won: int
    drawn: int
    lost: int
    sections: int
    opponent_sections: int


@dataclass(frozen=True)
class ExactFigures:
    """What perfect play says of an agent's decisions in the movement phase of two-player games."""

    agent: str
    decisions: int
    unsolved: int
    """Decisions of which the solver could not tell within its budget what they were worth."""
    won: int
    """Decisions in positions that perfect play wins."""
    blunders: int
    """Those of them that gave the win away."""
    share: float | None
    """blunders / won, None if nothing was won."""
    interval: Interval | None
    """95 % interval of it; see `clustered_interval`: decisions of games from one start hang together."""


@dataclass(frozen=True)
class Evaluation:
    """Everything that a report shows."""

    settings: Settings
    games_per_lineup: int
    """Games asked for, rounded up to whole rotation groups."""
    rotation: int
    """Games per rotation group."""
    distinct_games: int
    """Games that differ, in their start, seating or moves; agents without chance replay the same ones."""
    agents: list[AgentFigures]
    lineups: list[LineupFigures]
    matches: list[MatchFigures] | None
    """Two-player tournament, if asked for."""
    exact: list[ExactFigures] | None
    """Blunders by the standard of perfect play, if asked for."""


def evaluate(
    agents: Sequence[Agent],
    num_players: int = 2,
    num_games: int = 100,
    *,
    tournament: bool = False,
    exact: bool = False,
    **options: Any,
) -> Evaluation:
    """Play and sum up: `summarise(play_games(agents, num_players, num_games, **options))`."""
    if tournament:
        check_tournament(len(agents), num_players)
    if exact:
        check_solvable(num_players)
    return summarise(play_games(agents, num_players, num_games, **options), tournament=tournament, exact=exact)


def summarise(results: Results, *, tournament: bool = False, exact: bool = False) -> Evaluation:
    """Work out the figures of finished games.

    Args:
        results: the games.
        tournament: also score matches of two games; for two players.
        exact: also judge every movement decision by perfect play; for two players. It takes a while.

    Raises:
        ValueError: if `tournament` is asked for and the games are no two-player games between different agents, or
            `exact` and they have more players.
    """
    elos = _elo_ratings(results)
    agents = [_agent_figures(results, agent, *elo) for agent, elo in enumerate(elos)]
    lineups = [_lineup_figures(results, number, lineup) for number, lineup in enumerate(results.schedule.lineups)]
    matches = match_figures(results) if tournament else None
    schedule = results.schedule
    return Evaluation(
        settings=results.settings,
        games_per_lineup=results.games_per_lineup,
        rotation=schedule.rotation,
        distinct_games=distinct_games(results),
        agents=agents,
        lineups=lineups,
        matches=matches,
        exact=exact_figures(results) if exact else None,
    )


def distinct_games(results: Results) -> int:
    """Count the games that differ in their start, in who holds which seat, or in their moves."""
    schedule = results.schedule
    starts = np.repeat(results.starts["board"], schedule.rotation, axis=0).reshape(len(schedule.seatings), -1)
    told = np.concatenate([starts.astype(np.int64), schedule.seatings, results.actions], axis=1)
    return len(np.unique(told, axis=0))


def wilson(wins: float, games: float) -> Interval:
    """Return the 95 % Wilson score interval of a share (Wilson 1927; Brown, Cai and DasGupta 2001 compare others)."""
    share, deviations = wins / games, float(norm.ppf((1 + CONFIDENCE) / 2))
    part = deviations**2 / games
    middle = share + part / 2
    half = float(np.sqrt(part * (share * (1 - share) + part / 4)))
    return max(0.0, (middle - half) / (1 + part)), min(1.0, (middle + half) / (1 + part))


def clustered_interval(hits: npt.NDArray[np.bool_], clusters: Ints) -> Interval:
    """Return the 95 % interval of a share of cases that come in clusters, as the decisions of one game do.

    It is Wilson's of as many cases as would say as much if they were independent: fewer by the design effect (Kish,
    "Survey Sampling", 1965), the variance of the share as a ratio of sums over clusters (Cochran, "Sampling
    Techniques", 1977, chapter 6) over that of independent cases, at least 1. If no case or every case is a hit,
    nothing tells how they hang together, and they count as independent. With few clusters it is somewhat too narrow.

    Args:
        hits: (N,) at least one case.
        clusters: (N,) the cluster of each.
    """
    places = np.unique(clusters, return_inverse=True)[1]
    totals, share, cases = np.bincount(places), float(hits.mean()), float(len(hits))
    independent = share * (1 - share) / cases
    if len(totals) > 1 and independent > 0:
        spread = ((np.bincount(places, hits) - share * totals) ** 2).sum() * len(totals) / (len(totals) - 1)
        cases /= max(1.0, float(spread / cases**2 / independent))
    return wilson(share * cases, cases)


def _agent_figures(results: Results, agent: int, elo: float | None, elo_interval: Interval | None) -> AgentFigures:
    held = results.schedule.seatings == agent
    games, wins = int(held.any(axis=1).sum()), int((results.winning_agents == agent).sum())
    return AgentFigures(
        name=results.settings.agents[agent],
        games=games,
        wins=wins,
        share=wins / games,
        interval=wilson(wins, games),
        even=float(held.sum()) / (games * results.settings.num_players),
        sections=float(results.scores[held].mean()),
        seats=[_seat_figures(results, agent, seat) for seat in range(results.settings.num_players)],
        times=_time_figures(results, agent),
        elo=elo,
        elo_interval=elo_interval,
    )


def _seat_figures(results: Results, agent: int, seat: int) -> SeatFigures:
    there = results.schedule.seatings[:, seat] == agent
    return SeatFigures(seat, int(there.sum()), int((there & (results.winners == seat)).sum()))


def _time_figures(results: Results, agent: int) -> list[TimeFigures]:
    figures = []
    for phase in Phase:
        moves = int(results.clock.moves[agent, phase])
        if moves:
            mean = float(results.clock.seconds[agent, phase]) / moves
            slowest = float(results.clock.slowest[agent, phase])
            figures.append(TimeFigures(phase.name.lower(), moves, 1000 * mean, 1000 * slowest))
    return figures


def _lineup_figures(results: Results, number: int, lineup: Lineup) -> LineupFigures:
    names, games = results.settings.agents, results.games_per_lineup
    winners = results.winning_agents[number * games : (number + 1) * games]
    wins = {names[agent]: int((winners == agent).sum()) for agent in sorted(set(lineup))}
    return LineupFigures([names[agent] for agent in lineup], games, wins)


# Ratings: the Plackett-Luce model of who comes first. Agent a with rating r(a) wins a game with probability
# c(a) exp r(a) / sum over agents b of c(b) exp r(b), where c counts an agent's copies at the table. (Luce 1959;
# Hunter, "MM algorithms for generalized Bradley-Terry models", 2004.) For two seats it is the Elo formula.


def _elo_ratings(results: Results) -> list[tuple[float | None, Interval | None]]:
    """Return each agent's rating and interval on the Elo scale."""
    num_agents = len(results.settings.agents)
    if num_agents == 1:
        return [(None, None)]
    copies, group_wins = _wins_by_group(results)
    wins = group_wins.sum(axis=1)
    elos = ELO_PER_NAT * fit_ratings(copies, wins)
    intervals = ELO_PER_NAT * bootstrap_ratings(copies, group_wins, results.settings.seed)
    games = (copies > 0).T @ wins.sum(axis=1)
    bounded = (wins.sum(axis=0) > 0) & (wins.sum(axis=0) < games) & (group_wins.shape[1] > 1)
    return [
        (float(elo), (float(low), float(high)) if known else None)
        for elo, low, high, known in zip(elos, *intervals, bounded, strict=True)
    ]


def _wins_by_group(results: Results) -> tuple[Ints, Ints]:
    """Return each agent's copies per lineup, (L, K), and wins per rotation group, (L, groups, K)."""
    num_agents, schedule = len(results.settings.agents), results.schedule
    everyone = np.arange(num_agents)
    copies = np.array([[lineup.count(agent) for agent in everyone] for lineup in schedule.lineups])
    won = results.winning_agents[:, None] == everyone
    shape = (len(schedule.lineups), schedule.groups_per_lineup, schedule.rotation, num_agents)
    return copies, won.reshape(shape).sum(axis=2)


def fit_ratings(copies: npt.ArrayLike, wins: npt.ArrayLike, prior: float = PRIOR) -> Floats:
    """Return the most likely ratings under a weak normal prior, by Newton's method; (..., K) nats with mean 0.

    Many sets of results may be fitted at once. `prior` has the meaning of `alpha` in `choix.opt_top1`.

    Args:
        copies: (L, K) the seats that agent k fills in lineup l.
        wins: (..., L, K) how often agent k won at lineup l.
        prior: weight of the squared ratings; above 0, so that an agent that always wins stays finite.
    """
    counted, won = np.asarray(copies, np.float64), np.asarray(wins, np.float64)
    games = won.sum(axis=-1, keepdims=True)
    ratings = np.zeros((*won.shape[:-2], won.shape[-1]))
    identity = np.eye(won.shape[-1])
    for _ in range(100):
        strength = counted * np.exp(ratings[..., None, :])
        chance = strength / strength.sum(axis=-1, keepdims=True)
        slope = (won - games * chance).sum(axis=-2) - 2 * prior * ratings
        spread = (games * chance).sum(axis=-2)[..., None] * identity - np.swapaxes(games * chance, -1, -2) @ chance
        step = np.linalg.solve(spread + 2 * prior * identity, slope[..., None])[..., 0]
        ratings += np.clip(step, -1, 1)
        if np.abs(step).max() < 1e-9:
            break
    return ratings - ratings.mean(axis=-1, keepdims=True)


def bootstrap_ratings(copies: npt.ArrayLike, group_wins: Ints, seed: int, resamples: int = RESAMPLES) -> Floats:
    """Return the 95 % percentile interval of each rating over resampled rotation groups, (2, K) nats.

    Groups, not games, are drawn with replacement (within each lineup), because the games of a group belong together.

    Args:
        copies: (L, K) as in `fit_ratings`.
        group_wins: (L, groups, K) wins per rotation group.
        seed: of the resampling.
        resamples: how many.
    """
    rng = np.random.default_rng(seed)
    wins = []
    for lineup in group_wins:  # groups with the same wins are alike: draw how often each kind appears
        kinds, counts = np.unique(lineup, axis=0, return_counts=True)
        wins.append(rng.multinomial(len(lineup), counts / len(lineup), size=resamples) @ kinds)
    ratings = fit_ratings(copies, np.stack(wins, axis=1))
    tail = (1 - CONFIDENCE) / 2
    return np.quantile(ratings, [tail, 1 - tail], axis=0)


def exact_figures(results: Results) -> list[ExactFigures]:
    """Count what each agent did with positions of the movement phase that perfect play wins."""
    decisions = find_decisions(results)
    starts = decisions.games // results.schedule.rotation
    return [_exact_figures(decisions, starts, agent, name) for agent, name in enumerate(results.settings.agents)]


def _exact_figures(decisions: Decisions, starts: Ints, agent: int, name: str) -> ExactFigures:
    mine = decisions.agents == agent
    unsolved, won = int((mine & decisions.unknown).sum()), mine & decisions.won
    blunders = decisions.blunders[won]
    share, interval = (float(blunders.mean()), clustered_interval(blunders, starts[won])) if won.any() else (None, None)
    return ExactFigures(name, int(mine.sum()), unsolved, len(blunders), int(blunders.sum()), share, interval)


def check_tournament(num_agents: int, num_players: int) -> None:
    """Raise `ValueError` unless there can be two-player matches."""
    if num_players != 2:
        raise ValueError(f"tournament with num_players={num_players}: its matches are for 2 players")
    if num_agents < 2:
        raise ValueError(f"tournament with {num_agents} agent: its matches need at least 2")


def match_figures(results: Results) -> list[MatchFigures]:
    """Score two-player games as matches of two with seats swapped, for every agent against every opponent.

    Each side sums its scores over both games; the higher sum wins the match, equal sums draw it.
    """
    check_tournament(len(results.settings.agents), results.settings.num_players)
    figures = []
    for number, lineup in enumerate(results.schedule.lineups):
        games = slice(number * results.games_per_lineup, (number + 1) * results.games_per_lineup)
        seatings, scores = results.schedule.seatings[games], results.scores[games]
        sums = [scores[seatings == agent].reshape(-1, 2).sum(axis=1) for agent in lineup]
        figures.append(_match_figures(results, lineup, sums))
        figures.append(_match_figures(results, lineup[::-1], sums[::-1]))
    return figures


def _match_figures(results: Results, pair: Lineup, sums: list[Ints]) -> MatchFigures:
    agent, opponent = (results.settings.agents[index] for index in pair)
    own, other = sums
    outcome = np.sign(own - other)
    won, drawn, lost = (int((outcome == sign).sum()) for sign in (1, 0, -1))
    return MatchFigures(agent, opponent, len(own), won, drawn, lost, int(own.sum()), int(other.sum()))
