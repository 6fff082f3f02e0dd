"""Gate: stop a match as soon as it is decided whether an agent is good enough, by the generalised SPRT.

Start reading at `stop_at_verdict` and `evaluate_gate`; `evaluate.py` calls them.

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

from ninetka_env.core.options import short_repr
from ninetka_train.judging.arena import BatchCallback
from ninetka_train.judging.results import Results

GATE_BATCH = 32
"""Games between two tests, by default."""
PSEUDO_COUNT = 1e-3
"""Count that is added for each of the results 0 and 1, because they may not have occurred yet (as in fishtest)."""
BISECTION_STEPS = 60
"""Bisection steps: enough to reach two adjacent floating-point numbers."""
PASSED, FAILED, UNDECIDED = "passed", "failed", "undecided"

Floats = npt.NDArray[np.float64]


class GateBounds(NamedTuple):
    """Log-likelihood ratios at which the agent fails and passes."""

    fails: float
    passes: float


@dataclass(frozen=True)
class Gate:
    """Settings of a sequential test of the first agent of a match."""

    low: float
    """The agent should fail if its share of wins (a draw is shared by all seats) is at most this."""
    high: float
    """The agent should pass if its share of wins is at least this."""
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
                    f"{name}={short_repr(getattr(self, name))}: expected a probability above 0 and below 0.5"
                )

    @property
    def bounds(self) -> GateBounds:
        """Bounds of the log-likelihood ratio (Wald)."""
        return GateBounds(math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha))


@dataclass(frozen=True)
class GateFigures:
    """Result of a gate."""

    gate: Gate
    ratio: float
    """Log-likelihood ratio; above 0 the results favour `high`."""
    bounds: GateBounds
    verdict: str
    """`"passed"`, `"failed"` or `"undecided"`."""
    games: int
    """Games played."""
    most_games: int
    """Maximum number of games: the requested games, rounded up to whole rotation groups."""


def parse_gate(text: str | None, alpha: float | None = None, beta: float | None = None) -> Gate | None:
    """Parse a gate such as `"0.5,0.55"`; return None if `text` is None. Raise `ValueError` for invalid values."""
    given = {name: chance for name, chance in (("alpha", alpha), ("beta", beta)) if chance is not None}
    if text is None:
        for name, chance in given.items():
            raise ValueError(f"{name}={chance}: it is a setting of the gate, but no gate is given")
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise ValueError(f"gate={short_repr(text)}: expected two shares of games, such as 0.5,0.55") from None
    return Gate(low, high, **given)


def check_gate(num_agents: int) -> None:
    """Raise `ValueError` unless there are two agents."""
    if num_agents != 2:
        raise ValueError(f"gate: expected 2 agents, the one to be tested and its opponent, got {num_agents}")


def stop_at_verdict(gate: Gate, on_batch_end: BatchCallback | None = None) -> BatchCallback:
    """Return a callback for `play_games` that ends the match at a verdict, or when `on_batch_end` returns true."""

    def ends(results: Results, games: range) -> bool:
        is_asked, whole = bool(on_batch_end and on_batch_end(results, games)), results.complete_groups()
        return is_asked or (len(whole.winners) > 0 and evaluate_gate(whole, gate).verdict != UNDECIDED)

    return ends


def evaluate_gate(results: Results, gate: Gate) -> GateFigures:
    """Test the first of two agents with these games, which must be complete rotation groups; return the result."""
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
    weights = np.concatenate([seen, np.full((*seen.shape[:-1], 2), PSEUDO_COUNT)], axis=-1)
    logs = [np.log1p(_lagrange_multiplier(cases, weights, mean)[..., None] * (cases - mean)) for mean in (low, high)]
    ratio: Floats = (weights * (logs[0] - logs[1])).sum(axis=-1)
    return ratio


def _lagrange_multiplier(values: Floats, weights: Floats, mean: float) -> Floats:
    """Return t such that weights / (1 + t (values - mean)), normalised, is the most likely distribution with that mean.

    t is the Lagrange multiplier of the mean (Owen, "Empirical likelihood", 2001, section 2.9): the root of a sum that
    decreases in t, found by bisection.
    """
    away = values - mean
    low, high = (np.full(weights.shape[:-1], end) for end in (-(1 - 1e-12) / (1 - mean), (1 - 1e-12) / mean))
    for _ in range(BISECTION_STEPS):
        tilt = (low + high) / 2
        is_below = (weights * away / (1 + tilt[..., None] * away)).sum(axis=-1) > 0
        low, high = np.where(is_below, tilt, low), np.where(is_below, high, tilt)
    return (low + high) / 2
