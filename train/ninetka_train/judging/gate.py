"""Gate: stop a match as soon as it is decided whether an agent is good enough, by the generalised SPRT.

Wald's sequential probability ratio test (1945) compares two hypotheses after every batch of games: the agent wins a
share `high` of its games, or a share `low`. The probability of draws and the correlation within a rotation group are
unknown; for each hypothesis the values with the highest likelihood are used (X. Li, J. Liu and Z. Ying, "Generalized
sequential probability ratio test for separate families of hypotheses", Sequential Analysis, 2014). The observations are
rotation groups, so with two players this is the pentanomial test of Stockfish's fishtest (M. Van den Bergh, "The
generalized maximum likelihood ratio for the expectation value of a distribution", 2019).
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
"""Games between two tests, by default."""
UNSEEN = 1e-3
"""Pseudo-count of shares 0 and 1, which may not have been observed yet (as in fishtest)."""
BISECTIONS = 60
"""Bisection steps: enough to reach two adjacent floating-point numbers."""
PASSED, FAILED, UNDECIDED = "passed", "failed", "undecided"

Floats = npt.NDArray[np.float64]


class Bounds(NamedTuple):
    """Log-likelihood ratios at which the agent fails and passes."""

    fails: float
    passes: float


@dataclass(frozen=True)
class Gate:
    """Settings of a test of the first agent of a match."""

    low: float
    """Share of games (draws shared) up to which the agent should fail."""
    high: float
    """Share of games from which the agent should pass."""
    alpha: float = 0.05
    """Approximate probability that an agent with share `low` passes."""
    beta: float = 0.05
    """Approximate probability that an agent with share `high` fails."""

    def __post_init__(self) -> None:
        """Raise `ValueError` if a value is out of range."""
        if not 0 < self.low < self.high < 1:
            raise ValueError(f"gate={self.low:g},{self.high:g}: expected two shares, 0 < low < high < 1")
        for name in ("alpha", "beta"):
            if not 0 < getattr(self, name) < 0.5:
                raise ValueError(
                    f"{name}={shortened(getattr(self, name))}: expected a probability above 0 and below 0.5"
                )

    @property
    def bounds(self) -> Bounds:
        """Bounds of the log-likelihood ratio (Wald)."""
        return Bounds(math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha))


@dataclass(frozen=True)
class GateFigures:
    """Result of a gate."""

    gate: Gate
    ratio: float
    """Log-likelihood ratio; above 0 the results favour `high`."""
    bounds: Bounds
    verdict: str
    """`"passed"`, `"failed"` or `"undecided"`."""
    games: int
    """Games played."""
    most_games: int
    """Maximum number of games: the requested games, rounded up to whole rotation groups."""


def parse_gate(text: str | None, alpha: float | None = None, beta: float | None = None) -> Gate | None:
    """Parse a gate such as `"0.5,0.55"`; None gives None. Raise `ValueError` for invalid values."""
    told = {name: chance for name, chance in (("alpha", alpha), ("beta", beta)) if chance is not None}
    if text is None:
        for name, chance in told.items():
            raise ValueError(f"{name}={chance}: it is a setting of the gate, but no gate is given")
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise ValueError(f"gate={shortened(text)}: expected two shares of games, such as 0.5,0.55") from None
    return Gate(low, high, **told)


def check_gate(num_agents: int) -> None:
    """Raise `ValueError` unless there are two agents."""
    if num_agents != 2:
        raise ValueError(f"gate: expected 2 agents, the one to be tested and its opponent, got {num_agents}")


def stops(gate: Gate, finished: Finished | None = None) -> Finished:
    """Return a callback for `play_games` that ends the match at a verdict, or when `finished` returns true."""

    def ends(results: Results, games: range) -> bool:
        is_asked, whole = bool(finished and finished(results, games)), results.whole_groups()
        return is_asked or (len(whole.winners) > 0 and judge(whole, gate).verdict != UNDECIDED)

    return ends


def judge(results: Results, gate: Gate) -> GateFigures:
    """Test the first agent by the games played so far; its opponent has all other seats."""
    check_gate(len(results.settings.agents))
    groups = results.schedule.group_of
    shares = np.bincount(groups, results.shares[:, 0]) / np.bincount(groups)
    values, counts = np.unique(shares.round(9), return_counts=True)
    ratio, bounds = float(log_likelihood_ratio(values, counts, gate.low, gate.high)), gate.bounds
    verdict = PASSED if ratio >= bounds.passes else FAILED if ratio <= bounds.fails else UNDECIDED
    most_games = math.ceil(results.settings.num_games / results.schedule.rotation) * results.schedule.rotation
    return GateFigures(gate, ratio, bounds, verdict, len(results.winners), most_games)


def log_likelihood_ratio(values: npt.ArrayLike, counts: npt.ArrayLike, low: float, high: float) -> Floats:
    """Return the log-likelihood ratio of the means `high` and `low`, (...) nats.

    The likelihood of a mean is the maximum likelihood over all distributions with that mean.

    Args:
        values: (K,) possible values of an observation, 0..1.
        counts: (..., K) number of observations of each value.
        low: a mean between 0 and 1.
        high: another mean between 0 and 1.
    """
    cases, seen = np.append(values, (0.0, 1.0)), np.asarray(counts, np.float64)
    weights = np.concatenate([seen, np.full((*seen.shape[:-1], 2), UNSEEN)], axis=-1)
    logs = [np.log1p(_tilt(cases, weights, mean)[..., None] * (cases - mean)) for mean in (low, high)]
    ratio: Floats = (weights * (logs[0] - logs[1])).sum(axis=-1)
    return ratio


def _tilt(values: Floats, weights: Floats, mean: float) -> Floats:
    """Return t such that weights / (1 + t (values - mean)), normalised, is the most likely distribution with that mean.

    t is the Lagrange multiplier of the mean (Owen, "Empirical likelihood", 2001, section 2.9): the root of a sum that
    decreases in t, found by bisection.
    """
    away = values - mean
    low, high = (np.full(weights.shape[:-1], end) for end in (-(1 - 1e-12) / (1 - mean), (1 - 1e-12) / mean))
    for _ in range(BISECTIONS):
        tilt = (low + high) / 2
        is_below = (weights * away / (1 + tilt[..., None] * away)).sum(axis=-1) > 0
        low, high = np.where(is_below, tilt, low), np.where(is_below, high, tilt)
    return (low + high) / 2
