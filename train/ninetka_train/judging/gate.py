"""A match that stops as soon as it is known whether an agent is good enough: the generalised SPRT.

Wald's sequential probability ratio test (1945) asks after every batch of games whether what was seen speaks for an
agent that wins a share `high` of them, or for one that wins a share `low`. The chances of draws, and how the games of a
rotation group hang together, are not known; each hypothesis is given those that fit it best (X. Li, J. Liu and Z. Ying,
"Generalized sequential probability ratio test for separate families of hypotheses", Sequential Analysis, 2014). The
cases are the rotation groups, so that with two players this is the pentanomial test of Stockfish's fishtest (M. Van den
Bergh, "The generalized maximum likelihood ratio for the expectation value of a distribution", 2019).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.options import shortened
from ninetka_train.judging.arena import Finished
from ninetka_train.judging.results import Results

BATCH = 32
"""Games between two looks at what they show, by default."""
UNSEEN = 1e-3
"""Groups that are all lost, and all won, count for at least so many: none was seen, but some may come (as fishtest)."""
BISECTIONS = 60
"""Halve an interval until two numbers next to each other remain."""
PASSED, FAILED, UNDECIDED = "passed", "failed", "undecided"

Floats = npt.NDArray[np.float64]


class Bounds(NamedTuple):
    """Log-likelihood ratios at which an agent fails and passes."""

    fails: float
    passes: float


@dataclass(frozen=True)
class Gate:
    """What is to be decided about the first agent of a match."""

    low: float
    """It fails if it wins no more than this share of its games, draws shared."""
    high: float
    """It passes if it wins at least this share."""
    alpha: float = 0.05
    """Chance to pass nevertheless if it wins `low` of the games, about."""
    beta: float = 0.05
    """Chance to fail nevertheless if it wins `high` of them, about."""

    def __post_init__(self) -> None:
        """Raise `ValueError` for what is out of range."""
        if not 0 < self.low < self.high < 1:
            raise ValueError(f"gate={self.low:g},{self.high:g}: expected two shares, 0 < low < high < 1")
        for name in ("alpha", "beta"):
            if not 0 < getattr(self, name) < 0.5:
                raise ValueError(f"{name}={shortened(getattr(self, name))}: expected a chance above 0 and below 0.5")

    @property
    def bounds(self) -> Bounds:
        """Where it is decided."""
        return Bounds(math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha))


@dataclass(frozen=True)
class GateFigures:
    """What was decided."""

    gate: Gate
    ratio: float
    """The log-likelihood ratio: above 0 what was seen speaks for `high`."""
    bounds: Bounds
    verdict: str
    """`"passed"`, `"failed"`, or `"undecided"` if all games were played."""
    games: int
    """Games played."""
    most_games: int
    """Games that might have been played: those asked for, rounded up to whole rotation groups."""


def parse_gate(text: str | None, alpha: float | None = None, beta: float | None = None) -> Gate | None:
    """Return the gate that a text such as `"0.5,0.55"` means, None for none; `ValueError` says what is wrong."""
    told = {name: chance for name, chance in (("alpha", alpha), ("beta", beta)) if chance is not None}
    if text is None:
        for name, chance in told.items():
            raise ValueError(f"{name}={chance}: it is a chance of a gate, which was not asked for")
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise ValueError(f"gate={shortened(text)}: expected two shares of games, such as 0.5,0.55") from None
    return Gate(low, high, **told)


def check_gate(num_agents: int) -> None:
    """Raise `ValueError` unless a match of this number of agents can be judged."""
    if num_agents != 2:
        raise ValueError(f"gate: expected 2 agents, the one to be judged and its opponent, got {num_agents}")


def stops(gate: Gate, finished: Finished | None = None) -> Finished:
    """Return what ends a match, as `finished` of `play_games`, once the gate has a verdict or another one does."""

    def ends(results: Results, games: range) -> bool:
        is_asked, whole = bool(finished and finished(results, games)), results.whole_groups()
        return is_asked or (len(whole.winners) > 0 and judge(whole, gate).verdict != UNDECIDED)

    return ends


def judge(results: Results, gate: Gate) -> GateFigures:
    """Judge the first agent by the games played so far; its opponent holds all other seats."""
    check_gate(len(results.settings.agents))
    groups = results.schedule.group_of
    shares = np.bincount(groups, results.shares[:, 0]) / np.bincount(groups)
    values, counts = np.unique(shares.round(9), return_counts=True)
    ratio, bounds = float(log_likelihood_ratio(values, counts, gate.low, gate.high)), gate.bounds
    verdict = PASSED if ratio >= bounds.passes else FAILED if ratio <= bounds.fails else UNDECIDED
    most_games = math.ceil(results.settings.num_games / results.schedule.rotation) * results.schedule.rotation
    return GateFigures(gate, ratio, bounds, verdict, len(results.winners), most_games)


def log_likelihood_ratio(values: npt.ArrayLike, counts: npt.ArrayLike, low: float, high: float) -> Floats:
    """Return how much more likely what was seen is if the mean is `high` than if it is `low`; (...) nats.

    The likelihood of a mean is that of the distribution with that mean that fits best.

    Args:
        values: (K,) what a case may be, 0..1.
        counts: (..., K) how often each was seen.
        low: a mean between 0 and 1.
        high: another one.
    """
    cases, seen = np.append(values, (0.0, 1.0)), np.asarray(counts, np.float64)
    weights = np.concatenate([seen, np.full((*seen.shape[:-1], 2), UNSEEN)], axis=-1)
    logs = [np.log1p(_tilt(cases, weights, mean)[..., None] * (cases - mean)) for mean in (low, high)]
    ratio: Floats = (weights * (logs[0] - logs[1])).sum(axis=-1)
    return ratio


def _tilt(values: Floats, weights: Floats, mean: float) -> Floats:
    """Return t, so that weights / (1 + t (values - mean)), over their sum, is the likeliest distribution of that mean.

    It is the Lagrange multiplier of the mean (Owen, "Empirical likelihood", 2001, section 2.9): where a sum that falls
    as t rises is 0, found by bisection.
    """
    away = values - mean
    low, high = (np.full(weights.shape[:-1], end) for end in (-(1 - 1e-12) / (1 - mean), (1 - 1e-12) / mean))
    for _ in range(BISECTIONS):
        tilt = (low + high) / 2
        is_below = (weights * away / (1 + tilt[..., None] * away)).sum(axis=-1) > 0
        low, high = np.where(is_below, tilt, low), np.where(is_below, high, tilt)
    return (low + high) / 2
