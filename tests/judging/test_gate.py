"""The sequential gate: the log-likelihood ratio, and simulated error rates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from ninetka_agents import make_agent
from ninetka_env.core.outcome import UNFINISHED
from ninetka_train.judging.arena import play_games
from ninetka_train.judging.evaluate import evaluate
from ninetka_train.judging.gate import (
    FAILED,
    PASSED,
    UNDECIDED,
    Gate,
    evaluate_gate,
    log_likelihood_ratio,
    parse_gate,
    stop_at_verdict,
)

# The ratio


@pytest.mark.parametrize(("wins", "games"), [(60, 100), (0, 20), (20, 20), (37, 80)])
def test_ratio_without_draws_equals_walds(wins, games):
    expected = wins * math.log(0.55 / 0.45) + (games - wins) * math.log(0.45 / 0.55)
    found = log_likelihood_ratio([0.0, 1.0], [games - wins, wins], 0.45, 0.55)
    assert found == pytest.approx(expected, abs=1e-2)


def best_fit(values, counts, mean):
    """Return the maximum log-likelihood over distributions with this mean, found by a general optimiser."""
    values, counts = np.array(values), np.array(counts)
    limits = [
        {"type": "eq", "fun": lambda chances: chances.sum() - 1},
        {"type": "eq", "fun": lambda chances: chances @ values - mean},
    ]
    found = minimize(
        lambda chances: -counts @ np.log(chances), np.full(len(values), 1 / len(values)),
        bounds=[(1e-12, 1)] * len(values), constraints=limits, options={"maxiter": 500, "ftol": 1e-13},
    )  # fmt: skip
    assert found.success
    return -found.fun


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")  # from SciPy's optimiser
@pytest.mark.parametrize("counts", [[12, 5, 20, 9, 14], [3, 1, 30, 1, 4], [1, 2, 3, 4, 50]])
def test_ratio_with_draws_equals_that_of_the_best_fits(counts):
    values = [0, 0.25, 0.5, 0.75, 1]
    expected = best_fit(values, counts, 0.56) - best_fit(values, counts, 0.5)
    assert log_likelihood_ratio(values, counts, 0.5, 0.56) == pytest.approx(expected, abs=2e-3)


def test_ratios_are_vectorised_and_symmetric():
    values, counts = [0, 0.5, 1], np.array([[10, 30, 20], [0, 0, 9], [5, 0, 0], [0, 7, 0]])
    together = log_likelihood_ratio(values, counts, 0.45, 0.55)
    for found, row in zip(together, counts, strict=True):
        assert found == pytest.approx(float(log_likelihood_ratio(values, row, 0.45, 0.55)), abs=1e-9)
        assert found == pytest.approx(-float(log_likelihood_ratio(values, row[::-1], 0.45, 0.55)), abs=1e-6)


# Error rates, in simulated matches


def simulated(chances, gate, matches, groups, every):
    """Simulate matches of at most `groups` groups of two games; the gate is checked after every `every` groups.

    `chances` are the probabilities that a group has the value 0, 0.25, 0.5, 0.75 or 1. Return the share of matches that
    passed, the share that failed, and the mean number of groups.
    """
    values, rng = np.array([0, 0.25, 0.5, 0.75, 1]), np.random.default_rng(7)
    running, counts = np.arange(matches), np.zeros((matches, 5), np.int64)
    verdicts, lengths = np.zeros(matches, np.int64), np.full(matches, groups)
    for played in range(every, groups + 1, every):
        counts[running] += rng.multinomial(every, chances, size=len(running))
        ratios = log_likelihood_ratio(values, counts[running], gate.low, gate.high)
        for verdict, ended in ((-1, ratios <= gate.bounds[0]), (1, ratios >= gate.bounds[1])):
            verdicts[running[ended]], lengths[running[ended]] = verdict, played
        running = running[(ratios > gate.bounds[0]) & (ratios < gate.bounds[1])]
        if len(running) == 0:
            break
    return (verdicts == 1).mean(), (verdicts == -1).mean(), lengths.mean()


SHAPES = {"no draws": (1, 0, 2, 0, 1), "draws": (1, 3, 4, 3, 1), "correlated pairs": (1, 0, 6, 0, 1)}


def with_mean(shape, mean):
    """Return probabilities of the values 0, 0.25, ..., 1 with the given mean: weights `shape`, tilted exponentially."""
    values = np.array([0, 0.25, 0.5, 0.75, 1])
    low, high = -50.0, 50.0
    for _ in range(100):
        middle = (low + high) / 2
        chances = np.array(shape) * np.exp(middle * values)
        low, high = (middle, high) if chances @ values / chances.sum() < mean else (low, middle)
    return chances / chances.sum()


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_error_rates_are_at_most_nominal(shape):
    gate, matches = Gate(0.45, 0.55), 1500
    margin = 3 * math.sqrt(0.05 * 0.95 / matches)
    passed, failed, length = simulated(with_mean(SHAPES[shape], 0.45), gate, matches, 4000, 4)
    assert passed <= gate.alpha + margin
    assert failed >= 1 - gate.alpha - margin
    passed, failed, other = simulated(with_mean(SHAPES[shape], 0.55), gate, matches, 4000, 4)
    assert failed <= gate.beta + margin
    assert passed >= 1 - gate.beta - margin
    clear = simulated(with_mean(SHAPES[shape], 0.7), gate, 300, 4000, 4)
    assert clear[0] == 1
    assert clear[2] < min(length, other) / 2


def test_expected_length_is_about_walds():
    """Matches without draws are at most 25 % longer than Wald's formula says; the gate is checked every four groups."""
    gate = Gate(0.45, 0.55)
    (lower, upper), step = gate.bounds, 0.45 * math.log(0.55 / 0.45) + 0.55 * math.log(0.45 / 0.55)
    expected = (0.95 * lower + 0.05 * upper) / step
    length = simulated([0.55, 0, 0, 0, 0.45], gate, 1500, 4000, 4)[2]
    assert expected * 0.95 < length < expected * 1.25


def test_short_match_is_undecided():
    passed, failed, length = simulated(with_mean(SHAPES["no draws"], 0.5), Gate(0.49, 0.51), 200, 40, 4)
    assert (passed, failed, length) == (0, 0, 40)


# In a match


def test_a_match_ends_with_the_verdict():
    agents = [make_agent("mcts:simulations=50,threads=1"), make_agent("random")]
    evaluation = evaluate(agents, 2, 400, gate=Gate(0.5, 0.6), batch=8, seed=1)
    assert evaluation.gate.verdict == PASSED
    assert evaluation.gate.games == evaluation.games_per_lineup == evaluation.agents[0].games < 100
    assert evaluation.gate.games % 8 == 0
    assert evaluation.gate.most_games == evaluation.settings.num_games == 400
    longer = play_games(agents, 2, evaluation.gate.games - 8, seed=1, batch=8)
    assert evaluate_gate(longer, Gate(0.5, 0.6)).verdict == UNDECIDED  # undecided eight games earlier
    failed = evaluate(agents[::-1], 2, 400, gate=Gate(0.5, 0.6), batch=8, seed=1)
    assert failed.gate.verdict == FAILED


def test_callback_is_called_with_a_gate_and_can_end_the_match():
    agents, seen = [make_agent("random"), make_agent("random")], []
    gate = Gate(0.001, 0.99, 0.49, 0.49)  # decided after the first batch
    evaluation = evaluate(agents, 2, 40, gate=gate, batch=4, on_batch_end=lambda results, games: seen.append(games))
    assert seen == [range(4)]
    assert evaluation.gate.verdict != UNDECIDED
    evaluation = evaluate(agents, 2, 40, gate=Gate(0.5, 0.501), batch=4, on_batch_end=lambda results, games: True)
    assert evaluation.gate.games == 4
    assert evaluation.gate.verdict == UNDECIDED


def test_failures_in_incomplete_rotations_are_not_reported():
    results = play_games([make_agent("random"), make_agent("random")], 2, 4)
    results.failures.update({1: "game 2", 3: "game 4"})
    results.winners[2] = UNFINISHED
    whole = results.complete_groups()
    assert (len(whole.winners), whole.failures) == (2, {1: "game 2"})


def test_only_complete_rotations_count():
    agents = [make_agent("random"), make_agent("random")]
    figures = evaluate_gate(play_games(agents, 2, 5), Gate(0.5, 0.6))
    assert figures.games == figures.most_games == 6
    seen = []

    def finished(results, games):
        seen.append(games.stop)
        return games.stop >= 7 and stop_at_verdict(Gate(0.1, 0.11, 0.49, 0.49))(results, games)

    results = play_games(agents, 3, 300, batch=2, on_batch_end=finished)
    assert len(results.winners) == len(results.actions) == 3 * len(results.starts) == seen[-1] // 3 * 3
    assert (results.winners >= 0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("0.5", 0.05, 0.05), "gate='0.5': expected two shares of games, such as 0.5,0.55"),
        (("a,b", 0.05, 0.05), "gate='a,b': expected two shares"),
        (("", 0.05, 0.05), "gate='': expected two shares"),
        (("0.6,0.5", 0.05, 0.05), "gate=0.6,0.5: expected two shares, 0 < low < high < 1"),
        (("0,0.5", 0.05, 0.05), "gate=0,0.5: expected"),
        (("nan,0.5", 0.05, 0.05), "gate=nan,0.5: expected"),
        (("0.5,0.55", 0, 0.05), "alpha=0: expected a probability above 0 and below 0.5"),
        (("0.5,0.55", 0.05, 0.7), "beta=0.7: expected"),
    ],
)
def test_invalid_settings_are_reported(arguments, message):
    with pytest.raises(ValueError, match=message):
        parse_gate(*arguments)
