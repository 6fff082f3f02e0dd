"""Intervals of shares: how sure a number of wins among a number of games is."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import numpy.typing as npt

CONFIDENCE = 0.95

Interval = tuple[float, float]


def wilson(wins: float, games: float) -> Interval:
    """Return the 95 % Wilson score interval of a share (Wilson 1927; Brown, Cai and DasGupta 2001 compare others)."""
    share, deviations = wins / games, NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    part = deviations**2 / games
    middle = share + part / 2
    half = float(np.sqrt(part * (share * (1 - share) + part / 4)))
    return max(0.0, (middle - half) / (1 + part)), min(1.0, (middle + half) / (1 + part))


def clustered_interval(hits: npt.NDArray[np.bool_], clusters: npt.NDArray[np.int64]) -> Interval:
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
