"""Tests of exact max^n against plain recursion, the solver and `can_force_win`."""

from __future__ import annotations

import numpy as np
import pytest
from ninetka.positions import Options, position_after, random_action
from scale import MANY_GAMES, TEST_GAMES, Scaled

from ninetka_agents.ninetka.exact_maxn import solve_max_n
from ninetka_agents.ninetka.force import can_force_win
from ninetka_agents.ninetka.solver.solver import solve
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import PASS
from ninetka_env.games.ninetka.rules import Phase


def endings(num_players: int, count: int, stones: int) -> list[Game]:
    """Return the first position of each random game with at most `stones` movable stones."""
    found = []
    for seed in range(count):
        options = Options(num_players, turn_order=("restart", "continue")[seed // 2 % 2], auto_pass=bool(seed % 2))
        game, rng = position_after(options, seed, Phase.MOVEMENT, 12), np.random.default_rng(seed)
        while int(game.movable().sum()) > stones:
            game.play(random_action(game, rng))
        found.append(game)
    return found


def after(game: Game, action: int) -> Game:
    child = game.copy()
    child.play(action)
    return child


def winner_of(game: Game) -> int:
    """Return the winner by the definition, with plain recursion."""
    if game.is_over:
        return game.winner()
    winners = [winner_of(after(game, int(action))) for action in game.legal_actions()]
    return game.to_move if game.to_move in winners else winners[0]


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_results_match_the_definition(num_players: int, scaled: Scaled) -> None:
    seen = set()
    for game in endings(num_players, scaled(40, 5), 5):
        found, legal = solve_max_n(game), game.legal_actions()
        assert found.winner == winner_of(game)
        assert found.winners[legal].tolist() == [winner_of(after(game, int(action))) for action in legal]
        assert (np.delete(found.winners, legal) == UNFINISHED).all()
        seen |= {found.winner, PASS if PASS in legal else -1}
    assert seen >= {*range(num_players), PASS} or TEST_GAMES < MANY_GAMES


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_who_can_force_a_win_wins(num_players: int, scaled: Scaled) -> None:
    forced = 0
    for game in endings(num_players, scaled(20, 5), 10):
        winner = solve_max_n(game).winner
        for seat in range(num_players):
            can = can_force_win(game, seat)
            forced += bool(can)
            assert not can or winner == seat
            assert can or winner != seat or num_players > 2
    assert forced >= 3


def test_two_player_results_match_the_solver(scaled: Scaled) -> None:
    for game in endings(2, scaled(20, 5), 11):
        found, solution = solve_max_n(game), solve(game)
        assert found.winner == solution.winner
        legal = game.legal_actions()
        assert ((found.winners[legal] == game.to_move) == (solution.moves[legal] == 1)).all()


def test_an_exhausted_budget_leaves_results_unknown() -> None:
    cut = 0
    for game in endings(3, 10, 9):
        truth = solve_max_n(game)
        for nodes in (1, 5, 50, 500):
            found = solve_max_n(game, nodes)
            assert found.nodes <= nodes
            assert found.winner in (UNFINISHED, truth.winner)
            assert ((found.winners == UNFINISHED) | (found.winners == truth.winners)).all()
            cut += found.winner < 0
        assert solve_max_n(game, truth.nodes)[:1] == truth[:1]
    assert cut


def test_finished_games_return_their_winner_and_invalid_arguments_are_refused() -> None:
    over = position_after(Options(3), 0, Phase.MOVEMENT, 99)
    assert solve_max_n(over).winner == over.winner()
    with pytest.raises(ValueError, match="nodes=0"):
        solve_max_n(over, 0)
    with pytest.raises(ValueError, match="PLACEMENT"):
        solve_max_n(position_after(Options(3), 0, Phase.PLACEMENT, 0))
