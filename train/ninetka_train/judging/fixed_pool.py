"""The rating of one agent from games against opponents whose ratings are fixed, so that it changes no other rating.

An agent with rating x wins a game against n - 1 opponents of rating R with probability 1 / (1 + (n - 1) exp(R - x)), in
nats: the model of `ratings.py`. The most likely x is the one for which the expected number of wins is the actual one.

The interval has all x for which the actual number of wins differs from the expected one by at most Student's quantile
times the standard deviation: a score interval, which is Wilson's if there is one opponent and games are independent
(Wilson 1927; Cox and Hinkley, "Theoretical Statistics", 1974, section 9.3). It has finite bounds if an agent won nearly
all games, and one bound if it won all. `python -m benchmarks.fixed_pool_intervals` simulates its coverage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_train.judging.ratings import ELO_PER_NAT, MIN_DEGREES_OF_FREEDOM, student_t_quantile

MARGIN = 20.0
"""Nats by which a rating is searched for beyond those of the opponents."""
BISECTION_STEPS = 60

Floats = npt.NDArray[np.float64]


class FixedPoolRating(NamedTuple):
    """A rating on the scale of the opponents, in Elo."""

    elo: float | None
    """None if the agent won all games or none."""
    low: float | None
    """Lower bound of the 95 % interval; None if the agent won no game."""
    high: float | None
    """Upper bound of the 95 % interval; None if the agent won all games."""


def rate_against(ratings: Sequence[float], wins: Sequence[npt.ArrayLike], num_players: int) -> FixedPoolRating:
    """Rate an agent that played with one kind of opponent at a time.

    Args:
        ratings: Elo rating of each opponent.
        wins: for each opponent, (G,) the number of games after each opening that the agent won; a draw counts as 1 / n.
            There is one game for each seat of the agent. The first openings are the same for all opponents.
        num_players: number of players n: the opponent has n - 1 seats.

    Raises:
        ValueError: if there are too few openings for an interval.
    """
    won = [np.asarray(one, np.float64) for one in wins]
    if max(map(len, won), default=0) <= MIN_DEGREES_OF_FREEDOM:
        raise ValueError(f"expected the results of more than {MIN_DEGREES_OF_FREEDOM} openings")
    games = np.array([num_players * len(one) for one in won], np.float64)
    offsets = np.asarray(ratings, np.float64) / ELO_PER_NAT + np.log(num_players - 1)
    total, quantile = sum(float(one.sum()) for one in won), student_t_quantile(max(map(len, won)) - 1)
    scale = quantile * np.sqrt(design_effect(won, num_players))

    def excess(rating: float, deviations: float) -> float:
        chance = 1 / (1 + np.exp(offsets - rating))
        return total - float(games @ chance) - deviations * scale * float(np.sqrt(games @ (chance * (1 - chance))))

    first, last = offsets.min() - MARGIN, offsets.max() + MARGIN
    won_none, won_all = total == 0, total == games.sum()
    rating = None if won_none or won_all else _root(lambda x: excess(x, 0), first, last)
    low = None if won_none else _root(lambda x: excess(x, 1), first, last if rating is None else rating)
    high = None if won_all else _root(lambda x: excess(x, -1), first if rating is None else rating, last)
    return FixedPoolRating(*(None if one is None else ELO_PER_NAT * one for one in (rating, low, high)))


def design_effect(won: Sequence[Floats], num_players: int) -> float:
    """Return by what factor the variance of the number of wins is larger than with independent games; at least 1.

    Games after the same opening are not independent, also those against different opponents.

    Args:
        won: for each opponent, (G,) the number of games won after each opening.
        num_players: number of games after each opening.
    """
    openings = max(map(len, won))
    deviations, independent = np.zeros(openings), 0.0
    for one in won:
        share = one.mean() / num_players
        deviations[: len(one)] += one - one.mean()
        independent += len(one) * num_players * share * (1 - share)
    spread = float(deviations @ deviations) * openings / (openings - 1)
    return max(1.0, spread / independent) if independent else 1.0


def _root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Return the zero of a function that is positive at `low` and negative at `high`."""
    for _ in range(BISECTION_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return (low + high) / 2
