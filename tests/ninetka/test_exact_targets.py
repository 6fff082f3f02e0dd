"""Tests of exact self-play targets, against values chosen by hand and against plain search to the end."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from learning.searches import some_search, with_network, with_playouts
from ninetka.brute import brute_force_winner, winners_of_moves

from ninetka_agents.ninetka.solver.solver import LOST, WON, Budget, solve
from ninetka_env.core.jit import popcount
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.rules import Phase
from ninetka_train.learning.samples import Samples
from ninetka_train.ninetka.selfplay_hooks import (
    SolvedPositions,
    keep_winning_moves,
    next_solved_winner,
    solve_positions,
)

PLAYERS = np.array([2, 2, 2, 3])


def test_losing_moves_are_removed_from_the_policy():
    moves = np.zeros((4, 122), np.int8)
    moves[0, :4] = (WON, LOST, WON, LOST)
    moves[1, :3] = (WON, WON, LOST)
    moves[2, :2] = LOST
    policy = np.zeros((4, 122), np.float32)
    policy[:, :4] = [(0.3, 0.5, 0.1, 0.1), (0, 0, 1, 0), (0.25, 0.75, 0, 0), (0.5, 0.5, 0, 0)]
    known = SolvedPositions(np.array([0, 1, 0, UNFINISHED], np.int8), moves)
    left = keep_winning_moves(policy, known)
    np.testing.assert_allclose(
        left[:, :4], [(0.75, 0, 0.25, 0), (1, 1, 0, 0), (0.25, 0.75, 0, 0), (0.5, 0.5, 0, 0)], atol=1e-6
    )


def test_every_winning_move_is_a_target_without_a_search():
    moves = np.zeros((2, 122), np.int8)
    moves[0, :3] = (WON, LOST, WON)
    left = keep_winning_moves(
        np.zeros((2, 122), np.float32), SolvedPositions(np.array([0, UNFINISHED], np.int8), moves)
    )
    assert left[:, :3].tolist() == [[1, 0, 1], [0, 0, 0]]
    assert left.sum() == 2


def test_positions_get_the_winner_of_the_next_solved_position():
    known = np.array([UNFINISHED, UNFINISHED, 1, UNFINISHED, 0, UNFINISHED, UNFINISHED], np.int8)
    index = np.array([0, 1, 0, 1, 0, 0, 1])
    assert next_solved_winner(known, index, np.array([1, 0])).tolist() == [1, 0, 1, 0, 0, 1, 0]


@pytest.mark.parametrize("source", ["playouts", "network"])
def test_targets_match_brute_force(source):
    """Checks every position with up to 9 movable stones."""
    if source == "playouts":
        samples: Samples = with_playouts(PLAYERS, 3, 8, power=2.0, exact_nodes=20_000)
    else:
        samples = with_network(
            some_search(4), PLAYERS, 3, share=0.5, value_share=0.5, value_mix=0.5, exact_nodes=20_000
        )
    games = samples.games
    small = [popcount(int(np.bitwise_or.reduce(game["movable"]))) <= 9 for game in games]
    endings = np.flatnonzero((games["num_players"] == 2) & (games["phase"] == Phase.MOVEMENT) & small)
    assert len(endings) > 15
    for place in endings:
        game = Game(games[place : place + 1].copy())
        winner = brute_force_winner(game.records, 0)
        assert samples.values[place].tolist() == np.eye(5)[winner].tolist()
        if winner == game.to_move:
            winners = np.full(122, -1)
            winners[game.legal_actions()] = winners_of_moves(game.records, game.legal_actions())
            assert (winners[samples.policy[place] > 0] == winner).all()
            right = (winners == winner).sum()
            assert samples.policy[place].sum() == pytest.approx(1, abs=0.01) or samples.policy[place].sum() == right


def test_exact_share_keeps_solved_two_player_slides():
    """With `exact_share`, the policy chooses the slides of two-player games, without a search.

    Only won positions with a losing move are kept. They have no value targets: without lost positions, a network would
    learn that the mover always wins. Positions in which every move wins are not kept, because they teach nothing.
    """
    players, search = np.array([2] * 8 + [3] * 8), some_search(2)
    few = with_network(search, players, 5, share=1e-9, exact_nodes=2000, slide_playouts=8)
    assert len(few.games) == 0
    samples = with_network(search, players, 5, share=1e-9, exact_nodes=2000, exact_share=1.0, slide_playouts=8)
    games = samples.games
    assert len(games) > 30
    assert (games["num_players"] == 2).all()
    assert (games["phase"] == Phase.MOVEMENT).all()
    assert not samples.values.any()
    for place in range(len(games)):
        known = solve(Game(games[place : place + 1].copy()), Budget(nodes=200_000))
        assert known.winner == games[place]["to_move"]
        assert (known.moves == LOST).any()
        assert set(np.flatnonzero(samples.policy[place])) <= set(np.flatnonzero(known.moves == WON))
        assert set(np.unique(samples.policy[place])) == {0, 1}
    half = with_network(search, players, 5, share=0, exact_nodes=2000, exact_share=0.5, slide_playouts=8)
    assert 0.3 < len(half.games) / len(games) < 0.7


def test_exact_lines_add_solved_and_mostly_decisive_positions():
    players, search = np.array([2] * 6 + [3] * 6), some_search(2)
    options = {"share": 1e-9, "exact_nodes": 2000, "exact_share": 1.0, "slide_playouts": 8}
    before = with_network(search, players, 5, **options)
    samples = with_network(search, players, 5, exact_lines=6, **options)
    for one, other in zip(before, samples, strict=True):
        assert one.tobytes() == other[: len(one)].tobytes()  # the samples of `before` come first, unchanged
    games, policy, values = (array[len(before.games) :] for array in samples[:3])
    assert len(games) > 100
    assert (games["num_players"] == 2).all()
    valued = values.any(1)
    assert 0.05 < valued.mean() < 0.4
    won = values[valued, games["to_move"][valued]]
    assert 0.3 < won.mean() < 0.7  # no bias towards the mover
    decisive = 0
    for place in range(0, len(games), 3):
        game = Game(games[place : place + 1].copy())
        known = solve(game, Budget(nodes=200_000))
        assert not valued[place] or values[place].tolist() == np.eye(5)[known.winner].tolist()
        assert set(np.flatnonzero(policy[place])) <= set(known.winning_moves())
        decisive += 0 < len(known.winning_moves()) < len(game.legal_actions())
        assert not policy[place].any() or known.winner == game.to_move
    assert decisive > 0.5 * len(range(0, len(games), 3))
    assert len(np.unique(games["movable"], axis=0)) > 0.8 * len(games)


def test_only_two_player_movement_positions_are_solved():
    games = with_playouts(PLAYERS, 3, 4).games
    alone = np.arange(len(games))
    known = solve_positions(games, 500, 1, alone)
    assert (known.winners[(games["phase"] < Phase.MOVEMENT) | (games["num_players"] > 2)] == UNFINISHED).all()
    assert (known.winners >= 0).any()
    assert (solve_positions(games, 0, 1, alone).winners == UNFINISHED).all()
