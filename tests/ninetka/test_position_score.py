"""Tests of the errors of agents in the stored positions."""

from __future__ import annotations

import numpy as np
import pytest

from ninetka_agents.agent import Agent
from ninetka_train.judging.lockstep import AgentError
from ninetka_train.ninetka.exact_positions import STAGES, load_positions
from ninetka_train.ninetka.position_score import score_positions


class Chooser(Agent):
    """Plays the legal action with the highest or lowest value, which it looks up."""

    name = "chooser"

    def __init__(self, positions, sign):
        self.sign = sign
        self.values = {
            (state["board"].tobytes(), int(state["to_move"])): np.where(legal, sign * value, -9)
            for state, legal, value in zip(positions.states, positions.legal, positions.values, strict=True)
        }

    def act(self, games, rng):
        found = [self.values[game["board"].tobytes(), int(game["to_move"])] for game in games]
        return np.array([value.argmax() for value in found])


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_perfect_play_makes_no_errors_and_the_worst_play_only_errors(num_players):
    positions = load_positions(num_players)
    for sign, rate in ((1, 0.0), (-1, 1.0)):
        score = score_positions(Chooser(positions, sign), positions)
        assert score.rate == rate
        assert score.wins == (positions.values == 1).any(1).sum()
        assert score.wins_given_away == rate * score.wins
        assert sum(stage.positions for stage in score.stages) == len(positions)
        assert {stage.errors for stage in score.stages} == {rate * stage.positions for stage in score.stages} or rate


@pytest.mark.parametrize("num_players", [2, 3])
def test_random_play_errs_as_often_as_the_shares_of_bad_actions_say(num_players):
    positions = load_positions(num_players)
    legal = positions.legal
    best = np.where(legal, positions.values, -1).max(1)
    bad = (legal & (positions.values < best[:, None])).sum(1) / legal.sum(1)
    expected = np.mean([bad[positions.stages == stage].mean() for stage in range(len(STAGES[num_players]))])
    scores = [score_positions("random", positions, seed) for seed in range(8)]
    assert abs(np.mean([score.rate for score in scores]) - expected) < 0.02
    low, high = np.mean([score.interval for score in scores], axis=0)
    spread = np.std([score.rate for score in scores])
    assert 0 < high - low < 0.15
    assert spread < high - low


def test_a_seed_and_a_spec_give_the_same_score():
    positions = load_positions(3)
    first, again = (score_positions("mcts:simulations=20", positions, 5) for _ in range(2))
    assert first == again
    assert first.agent == "mcts:simulations=20"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda count: np.full(count, 60), "position 2p0000: agent 'wrong': action 60 .* is illegal for seat"),
        (lambda count: np.full(count, -1), "position 2p0000: agent 'wrong': action -1 is illegal"),
        (lambda count: np.full(count, 122), "position 2p0000: agent 'wrong': action 122 is illegal"),
        (lambda count: np.full(count, 1.5), "positions: agent 'wrong': TypeError: actions: expected integers"),
        (lambda count: [1], r"positions: agent 'wrong': ValueError: actions: expected shape \(256,\)"),
        (lambda count: 1 // 0, "positions: agent 'wrong': ZeroDivisionError"),
    ],
)
def test_a_failing_agent_is_reported(answer, message):
    class Wrong(Agent):
        name = "wrong"

        def act(self, games, rng):
            return answer(len(games))

    with pytest.raises(AgentError, match=message):
        score_positions(Wrong(), load_positions(2))
