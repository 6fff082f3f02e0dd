"""Intervals of shares, and ratings by the Plackett-Luce model of the winner.

Agent a with rating r(a) wins a game with probability c(a) exp r(a) / sum over agents b of c(b) exp r(b), where c is the
number of the agent's seats (Luce 1959; Hunter, "MM algorithms for generalized Bradley-Terry models", 2004). For two
seats it is the Elo formula. A drawn game counts as a share of a win for every seat.

Rating intervals are estimate +- quantile x standard error. `python -m benchmarks.elo_intervals` simulates their
coverage.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_agents.plugins import plugins_of
from ninetka_train.judging.results import Results

CONFIDENCE = 0.95
"""Confidence level of intervals."""
ELO_PER_NAT = 400 / np.log(10)
"""Elo points per unit of log-odds."""
PRIOR_WEIGHT = 0.05
"""Weight of the squared ratings (nats) as a penalty, so that ratings are finite: a normal prior with standard deviation
550 Elo."""
MIN_DEGREES_OF_FREEDOM = 4
"""Minimum degrees of freedom for an interval; a lineup of g rotation groups has g - 1."""
INDEPENDENT_DEGREES_OF_FREEDOM = 10
"""Weight of the standard error of independent games in `half_widths`, in degrees of freedom."""
BENCHMARK_OPPONENTS = ("random", "mcts:simulations=50", "mcts:simulations=200", "mcts:simulations=2000")
"""Benchmark opponents for every game; each game adds its own."""
NETWORK_WITH_SEARCH = "net:simulations=64"
"""Spec of a game's best network with search."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Interval = tuple[float, float]
"""Lower and upper bound."""


# Intervals


def wilson_interval(wins: float, games: float) -> Interval:
    """Return the 95 % Wilson score interval of a share (Wilson 1927; Brown, Cai and DasGupta 2001 compare others)."""
    share, deviations = wins / games, NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    part = deviations**2 / games
    middle = share + part / 2
    half = float(np.sqrt(part * (share * (1 - share) + part / 4)))
    return max(0.0, (middle - half) / (1 + part)), min(1.0, (middle + half) / (1 + part))


def clustered_interval(hits: npt.NDArray[np.bool_], clusters: npt.NDArray[np.int64]) -> Interval:
    """Return the 95 % interval of a share of cases that come in clusters, such as the decisions of one game.

    It is the Wilson interval for the effective number of cases, N / design effect (Kish, "Survey Sampling", 1965). The
    design effect is v / v0, but at least 1, where v is the variance of the share as a ratio of sums over clusters
    (Cochran, "Sampling Techniques", 1977, chapter 6) and v0 is the variance for independent cases. If no case or every
    case is a hit, the correlation cannot be estimated, and the cases count as independent. With few clusters the
    interval is somewhat too narrow.

    Args:
        hits: (N,) whether each case is a hit; at least one case.
        clusters: (N,) the cluster of each case.
    """
    places = np.unique(clusters, return_inverse=True)[1]
    share = float(hits.mean())
    return interval_of_sums(share, len(hits), np.bincount(places, hits - share) / len(hits))


def interval_of_sums(share: float, cases: int, sums: npt.NDArray[Any]) -> Interval:
    """Return the Wilson interval of a share for the number of independent cases with the same variance.

    Args:
        share: a share of cases, possibly weighted.
        cases: number of cases, the maximum of independent ones.
        sums: (C,) the part of each cluster in the share, relative to its expectation; they sum to 0.
    """
    variance, effective = float(sums @ sums), float(cases)
    if len(sums) > 1 and variance > 0:
        effective = min(effective, share * (1 - share) / (variance * len(sums) / (len(sums) - 1)))
    return wilson_interval(share * effective, effective)


# Ratings


def elo_ratings(results: Results, anchor: int | None = None) -> list[tuple[float | None, Interval | None]]:
    """Return each agent's rating and 95 % interval on the Elo scale.

    The rating of agent `anchor` is 0; for None the mean of all agents is 0.

    An agent has no interval if there are too few rotation groups (see `MIN_DEGREES_OF_FREEDOM`), or if its rating
    relative to the anchor is bounded only by the prior. The games bound the difference of two ratings if each agent won
    a share of a game against the other, directly or through a chain of other agents (assumption 1 of Hunter). Without
    an anchor, this must hold for all pairs of agents.
    """
    num_agents = len(results.settings.agents)
    if num_agents == 1:
        return [(None, None)]
    copies, groups = wins_by_group(results)
    wins = np.stack([group.sum(axis=0) for group in groups])
    ratings = fit_ratings(copies, wins)
    contrasts = np.eye(num_agents) - (1 / num_agents if anchor is None else np.eye(num_agents)[anchor])
    elos = ELO_PER_NAT * contrasts @ ratings
    linked, freedom = _mutually_linked(copies, wins), sum(len(group) - 1 for group in groups)
    bounded = np.full(num_agents, linked.all()) if anchor is None else linked[anchor]
    bounded = bounded & (freedom >= MIN_DEGREES_OF_FREEDOM) & (np.arange(num_agents) != anchor)
    halves = ELO_PER_NAT * half_widths(copies, groups, contrasts) if bounded.any() else np.zeros(num_agents)
    return [
        (float(elo), (float(elo - half), float(elo + half)) if known else None)
        for elo, half, known in zip(elos, halves, bounded, strict=True)
    ]


def _mutually_linked(copies: Ints, wins: Floats) -> npt.NDArray[np.bool_]:
    """Return (K, K) bool: whether two agents each won a share of a game against the other, directly or via others."""
    took = (wins.T > 0).astype(np.int64) @ (copies > 0) > 0
    np.fill_diagonal(took, True)
    for middle in range(len(took)):
        took |= np.outer(took[:, middle], took[middle])
    return np.asarray(took & took.T)


def wins_by_group(results: Results) -> tuple[Ints, list[Floats]]:
    """Count seats and wins of K agents in L lineups. A draw counts as a share of a win for each seat.

    Returns:
        (L, K) number of seats of each agent in each lineup; a list of L arrays, (G, K): the wins of each agent in
        each of the G rotation groups of the lineup.
    """
    num_agents, schedule = len(results.settings.agents), results.schedule
    copies = np.array([[lineup.count(agent) for agent in range(num_agents)] for lineup in schedule.lineups])
    wins = np.zeros((len(results.starts), num_agents))
    np.add.at(wins, schedule.group_of, results.shares)
    lineups = schedule.lineup_of[schedule.first_games]
    return copies, [wins[lineups == lineup] for lineup in range(len(schedule.lineups))]


def fit_ratings(copies: npt.ArrayLike, wins: npt.ArrayLike, prior: float = PRIOR_WEIGHT) -> Floats:
    """Return the most likely ratings under a weak normal prior, by Newton's method; (..., K) nats with mean 0.

    Leading dimensions fit several sets of results at once.

    Args:
        copies: (L, K) number of seats of agent k in lineup l.
        wins: (..., L, K) number of wins of agent k in lineup l.
        prior: weight of the squared ratings, as `alpha` of `choix.opt_top1`; above 0, so that ratings are finite.
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


def half_widths(copies: npt.ArrayLike, groups: Sequence[npt.ArrayLike], contrasts: npt.ArrayLike) -> Floats:
    """Return half the width of the 95 % interval of each contrast of ratings, (C,) nats.

    It is the larger of two half widths. The first is Student's quantile times the cluster-robust standard error, with
    rotation groups as clusters. It can be too small by chance if there are few groups, and it is 0 if all groups have
    the same result. The second is Student's quantile times the root of a weighted mean of two squared
    standard errors: the cluster-robust one, weighted by its degrees of freedom, and the one of independent games,
    weighted by `INDEPENDENT_DEGREES_OF_FREEDOM`.

    Args:
        copies: (L, K) as in `fit_ratings`.
        groups: one array (G, K) per lineup: the wins of agent k in rotation group g.
        contrasts: (C, K) weights of the ratings; each row sums to 0.
    """
    robust, independent = standard_errors(copies, groups, contrasts)
    freedom = sum(len(np.asarray(group)) - 1 for group in groups)
    mixed = (freedom * robust**2 + INDEPENDENT_DEGREES_OF_FREEDOM * independent**2) / (
        freedom + INDEPENDENT_DEGREES_OF_FREEDOM
    )
    half: Floats = np.maximum(
        student_t_quantile(freedom) * robust,
        student_t_quantile(freedom + INDEPENDENT_DEGREES_OF_FREEDOM) * np.sqrt(mixed),
    )
    return half


def standard_errors(
    copies: npt.ArrayLike, groups: Sequence[npt.ArrayLike], contrasts: npt.ArrayLike
) -> tuple[Floats, Floats]:
    """Return two standard errors of each contrast of the ratings of `fit_ratings`, (C,) nats each.

    The first is cluster-robust (Liang and Zeger, "Longitudinal data analysis using generalized linear models", 1986),
    with rotation groups as clusters within each lineup. The second assumes independent games. For the arguments, see
    `half_widths`. In a lineup with one group, games count as independent in both.
    """
    counted, won = np.asarray(copies, np.float64), [np.asarray(group, np.float64) for group in groups]
    ratings = fit_ratings(counted, np.stack([group.sum(axis=0) for group in won]))
    spread, robust = np.zeros((2, len(ratings), len(ratings)))
    for seats, group in zip(counted, won, strict=True):
        chance = seats * np.exp(ratings) / (seats @ np.exp(ratings))
        independent = group.sum() * (np.diag(chance) - np.outer(chance, chance))
        spread += independent
        robust += len(group) * np.cov(group.T) if len(group) > 1 else independent
    weights = np.asarray(contrasts, np.float64) @ np.linalg.inv(spread + 2 * PRIOR_WEIGHT * np.eye(len(ratings)))
    robust_errors, independent_errors = (
        np.sqrt(np.einsum("ci,ij,cj->c", weights, part, weights).clip(0)) for part in (robust, spread)
    )
    return robust_errors, independent_errors


def student_t_quantile(degrees_of_freedom: float) -> float:
    """Return the two-sided 95 % quantile of Student's t, accurate to 0.1 % for at least 4 degrees of freedom.

    Uses the expansion around the normal quantile (Abramowitz and Stegun, 26.7.5).
    """
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / degrees_of_freedom**power for power, term in enumerate(terms, 1))


# The default pool


def default_pool(game: str) -> list[str]:
    """Return the specs of the agents that are rated by default.

    They are the benchmark opponents, all known networks, and the best network with search.
    """
    parts = plugins_of(game)
    specs = [*BENCHMARK_OPPONENTS, *parts.evaluation_opponents, parts.default_opponent]
    if parts.network and importlib.util.find_spec("torch"):
        from ninetka_agents.checkpoint import known_networks

        networks = [f"net:{name}" for name in known_networks(game)]
        specs += [*networks, NETWORK_WITH_SEARCH] if networks else []
    return list(dict.fromkeys(specs))
