"""Tests of ratings against opponents of fixed ratings, compared with scipy and with simulated games."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm, t

from ninetka_train.judging.fixed_pool import design_effect, rate_against
from ninetka_train.judging.ratings import ELO_PER_NAT, wilson_interval


def chances(elo, ratings, num_players):
    """P = e^x / (e^x + (n - 1) e^R): Plackett-Luce with n - 1 copies of the opponent."""
    strength, others = np.exp(elo / ELO_PER_NAT), (num_players - 1) * np.exp(np.array(ratings) / ELO_PER_NAT)
    return strength / (strength + others)


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_the_rating_is_the_most_likely_one(num_players):
    rng = np.random.default_rng(num_players)
    ratings = [-300.0, 0.0, 500.0, 900.0]
    wins = [rng.binomial(num_players, p, 20) for p in chances(250, ratings, num_players)]

    def loss(elo):
        p = chances(elo, ratings, num_players)
        won = np.array([one.mean() / num_players for one in wins])
        return -(won * np.log(p) + (1 - won) * np.log(1 - p)).sum()

    best = minimize_scalar(loss, bounds=(-3000, 3000), method="bounded", options={"xatol": 1e-6}).x
    found = rate_against(ratings, wins, num_players)
    assert found.elo == pytest.approx(best, abs=0.01)
    assert found.low < found.elo < found.high


def test_one_opponent_and_independent_games_give_wilsons_interval():
    """With very many openings, Student's quantile is the normal one."""
    openings = 100_000
    wins = np.repeat([2, 1], [30_000, 70_000])
    assert design_effect([wins], 2) == 1  # the games of an opening differ more than by chance
    found = rate_against([100.0], [wins], 2)
    low, high = wilson_interval(wins.sum(), 2 * openings)
    scale = t.ppf(0.975, openings - 1) / norm.ppf(0.975)
    for bound, share in ((found.low, low), (found.high, high)):
        expected = 100 + ELO_PER_NAT * np.log(share / (1 - share))
        assert bound - found.elo == pytest.approx(scale * (expected - found.elo), rel=1e-3)


def test_the_bounds_are_where_the_wins_are_a_quantile_from_the_expected_number():
    ratings, wins = [0.0, 400.0], [np.tile([2, 1, 1, 0, 2], 4), np.tile([0, 1, 0, 0, 1], 4)]
    total = sum(one.sum() for one in wins)
    scale = t.ppf(0.975, 19) * np.sqrt(design_effect(wins, 2))

    def distance(elo):
        p = chances(elo, ratings, 2)
        return (total - 40 * p.sum()) / np.sqrt(40 * (p * (1 - p)).sum())

    found = rate_against(ratings, wins, 2)
    assert found.low == pytest.approx(brentq(lambda elo: distance(elo) - scale, -1000, found.elo), abs=0.5)
    assert found.high == pytest.approx(brentq(lambda elo: distance(elo) + scale, found.elo, 2000), abs=0.5)


def test_all_games_won_or_lost_give_one_bound():
    won = rate_against([0.0, 500.0], [np.full(30, 2), np.full(30, 2)], 2)
    assert (won.elo, won.high) == (None, None)
    assert 700 < won.low < 1500
    lost = rate_against([0.0, 500.0], [np.zeros(30), np.zeros(30)], 3)
    assert (lost.elo, lost.low) == (None, None)
    assert -1000 < lost.high < 0
    nearly = rate_against([0.0], [np.append(np.full(29, 2), 1)], 2)
    assert nearly.low < nearly.elo < nearly.high


def test_groups_with_one_result_widen_the_interval():
    rng = np.random.default_rng(0)
    independent = rng.binomial(3, 0.5, 300).astype(float)
    together = 3.0 * rng.integers(0, 2, 300)
    assert design_effect([independent], 3) < 1.3
    assert design_effect([together], 3) == pytest.approx(3, abs=0.1)
    # the same openings against another opponent count as one cluster
    both = design_effect([together, together], 3)
    assert both == pytest.approx(6, abs=0.2)


@pytest.mark.parametrize("num_players", [2, 4])
def test_the_interval_covers_the_true_rating(num_players):
    """300 simulated cards: 95 % are covered, give or take three standard errors."""
    rng, ratings = np.random.default_rng(1), [-400.0, 0.0, 500.0]
    covered = 0
    for _ in range(300):
        p = chances(150, ratings, num_players)
        found = rate_against(ratings, [rng.binomial(num_players, one, 40) for one in p], num_players)
        covered += found.low <= 150 <= found.high
    assert 0.95 - 3 * 0.0126 < covered / 300 <= 1


@pytest.mark.parametrize("wins", [[], [np.ones(4)], [np.ones(0), np.ones(1)]])
def test_too_few_openings_are_refused(wins):
    with pytest.raises(ValueError, match="expected the results of more than 4 openings"):
        rate_against([0.0] * len(wins), wins, 2)
