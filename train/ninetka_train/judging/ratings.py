"""Ratings: the Plackett-Luce model of who comes first.

Agent a with rating r(a) wins a game with probability c(a) exp r(a) / sum over agents b of c(b) exp r(b), where c counts
an agent's copies at the table. (Luce 1959; Hunter, "MM algorithms for generalized Bradley-Terry models", 2004.) For two
seats it is the Elo formula. A drawn game counts as a share of a win for every seat.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_train.judging.arena import Results
from ninetka_train.judging.intervals import CONFIDENCE, Interval

ELO_PER_NAT = 400 / np.log(10)
"""Elo points per unit of log-odds."""
PRIOR = 0.05
"""Weight of the squared ratings (in nats) that holds ratings finite: a normal prior with a deviation of 550 Elo."""
RESAMPLES = 1000

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def elo_ratings(results: Results, anchor: int | None = None) -> list[tuple[float | None, Interval | None]]:
    """Return each agent's rating and interval on the Elo scale: above the agent `anchor`, None for the pool's mean.

    There is no interval where the games set no bound and the prior alone holds a rating: a rating is bounded against
    those that took games from an agent, directly or by way of others, and lost some to it likewise (assumption 1 of
    Hunter). All of the pool must do so for its mean to be known.
    """
    num_agents = len(results.settings.agents)
    if num_agents == 1:
        return [(None, None)]
    copies, group_wins = _wins_by_group(results)
    wins = group_wins.sum(axis=1)
    elos = ELO_PER_NAT * fit_ratings(copies, wins)
    intervals = ELO_PER_NAT * bootstrap_ratings(copies, group_wins, results.settings.seed, anchor=anchor)
    linked = _linked(copies, wins)
    bounded = np.full(num_agents, linked.all()) if anchor is None else linked[anchor]
    bounded = bounded & (group_wins.shape[1] > 1)
    if anchor is not None:
        elos, bounded = elos - elos[anchor], bounded & (np.arange(num_agents) != anchor)
    return [
        (float(elo), (float(low), float(high)) if known else None)
        for elo, low, high, known in zip(elos, *intervals, bounded, strict=True)
    ]


def _linked(copies: Ints, wins: Floats) -> npt.NDArray[np.bool_]:
    """Return (K, K) bool: each of two agents took a share of a game from the other, directly or by way of others."""
    took = (wins.T > 0).astype(np.int64) @ (copies > 0) > 0
    np.fill_diagonal(took, True)
    for middle in range(len(took)):
        took |= np.outer(took[:, middle], took[middle])
    return np.asarray(took & took.T)


def _wins_by_group(results: Results) -> tuple[Ints, Floats]:
    """Return each agent's copies per lineup, (L, K), and wins per rotation group, (L, groups, K); draws are shared."""
    num_agents, schedule = len(results.settings.agents), results.schedule
    everyone = np.arange(num_agents)
    copies = np.array([[lineup.count(agent) for agent in everyone] for lineup in schedule.lineups])
    shape = (len(schedule.lineups), schedule.groups_per_lineup, schedule.rotation, num_agents)
    return copies, results.shares.reshape(shape).sum(axis=2)


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


def bootstrap_ratings(
    copies: npt.ArrayLike,
    group_wins: npt.NDArray[Any],
    seed: int,
    resamples: int = RESAMPLES,
    anchor: int | None = None,
) -> Floats:
    """Return the 95 % percentile interval of each rating over resampled rotation groups, (2, K) nats.

    Groups, not games, are drawn with replacement (within each lineup), because the games of a group belong together.

    Args:
        copies: (L, K) as in `fit_ratings`.
        group_wins: (L, groups, K) wins per rotation group.
        seed: of the resampling.
        resamples: how many.
        anchor: the agent whose rating is 0; None for ratings with mean 0.
    """
    rng = np.random.default_rng(seed)
    wins = []
    for lineup in group_wins:  # groups with the same wins are alike: draw how often each kind appears
        kinds, counts = np.unique(lineup, axis=0, return_counts=True)
        wins.append(rng.multinomial(len(lineup), counts / len(lineup), size=resamples) @ kinds)
    ratings = fit_ratings(copies, np.stack(wins, axis=1))
    if anchor is not None:
        ratings = ratings - ratings[:, anchor : anchor + 1]
    tail = (1 - CONFIDENCE) / 2
    return np.quantile(ratings, [tail, 1 - tail], axis=0)
