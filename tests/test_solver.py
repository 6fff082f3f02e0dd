"""The exact solver against plain search to the end, and what it promises besides."""

from __future__ import annotations

import numpy as np
import pytest
from brute import margin_by_force, winner_by_force, winners_of_moves
from conftest import TEST_GAMES, Options, position_after, random_action

from agents.solver import LOST, UNKNOWN, WON, Budget, solve, solve_batch
from ninetka_env._jit import popcount
from ninetka_env.game import Game
from ninetka_env.rules import Phase, Records

TWO = [Options(2, turn_order=order, auto_pass=passes) for order in ("restart", "continue") for passes in (True, False)]


def endings(count: int, most: int, seed: int = 0) -> Records:
    """Return positions of random games with 1 to `most` movable stones, `count` of them."""
    found: list[Records] = []
    rng = np.random.default_rng(seed)
    while len(found) < count:
        game = position_after(TWO[len(found) % 4], seed + len(found), Phase.MOVEMENT, 10)
        while not game.is_over:
            stones = popcount(int(np.bitwise_or.reduce(game.records["movable"][0])))
            if stones <= most and rng.random() < 0.5:
                found.append(game.records.copy())
                break
            game.play(random_action(game, rng))
    return np.concatenate(found)


def test_winners_are_those_of_plain_search() -> None:
    games = endings(TEST_GAMES, 10)
    winners, _ = solve_batch(games, moves=False)
    assert winners.tolist() == [winner_by_force(games, index) for index in range(len(games))]
    assert 0 < np.count_nonzero(winners) < len(games)


def test_moves_are_those_of_plain_search() -> None:
    games = endings(TEST_GAMES // 4, 9, seed=1_000_000)
    winners, values = solve_batch(games)
    for index, winner in enumerate(winners):
        game = Game(games[index : index + 1])
        legal = game.legal_actions()
        expected = [WON if seat == game.to_move else LOST for seat in winners_of_moves(games[index : index + 1], legal)]
        assert values[index, legal].tolist() == expected
        assert np.count_nonzero(values[index]) == len(legal)
        assert (winner == game.to_move) == (WON in expected)


def test_margins_are_those_of_plain_search() -> None:
    games = endings(TEST_GAMES // 20, 8, seed=2_000_000)
    for index in range(len(games)):
        solution = solve(Game(games[index : index + 1]), margin=True, moves=False)
        assert solution.margin == margin_by_force(games, index)


def test_a_spent_budget_leaves_unknown_what_is_unknown() -> None:
    game = position_after(TWO[0], 1, Phase.MOVEMENT, 0)
    solution = solve(game, Budget(nodes=10))
    assert (solution.winner, solution.nodes) == (-1, 10)
    assert (solution.moves == UNKNOWN).all()


def test_only_two_players_and_only_slides() -> None:
    with pytest.raises(ValueError, match="3 players"):
        solve(position_after(Options(3), 0, Phase.MOVEMENT, 0))
    with pytest.raises(ValueError, match="PLACEMENT"):
        solve(position_after(Options(2), 0, Phase.PLACEMENT, 3))
