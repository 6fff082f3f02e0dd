"""Tests of `can_force_win` against plain recursion and the solver."""

from __future__ import annotations

import numpy as np
import pytest
from ninetka.positions import Options, position_after, random_action
from scale import Scaled

from ninetka_agents.ninetka.force import can_force_win
from ninetka_agents.ninetka.solver.solver import solve
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.rules import Phase


def forced(game: Game, seat: int) -> bool:
    """Return whether the seat can force a win by the definition, with plain recursion."""
    if game.is_over:
        return game.winner() == seat
    answers = []
    for action in game.legal_actions():
        after = game.copy()
        after.play(int(action))
        answers.append(forced(after, seat))
    return any(answers) if game.to_move == seat else all(answers)


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_answers_match_the_definition(num_players: int, scaled: Scaled) -> None:
    answers = []
    for seed in range(scaled(20, 4)):
        game = position_after(Options(num_players, auto_pass=bool(seed % 2)), seed, Phase.MOVEMENT, 12)
        rng = np.random.default_rng(seed)
        while int(game.movable().sum()) > 5:
            game.play(random_action(game, rng))
        for seat in range(num_players):
            answers.append(can_force_win(game, seat))
            assert answers[-1] == forced(game, seat)
    assert {*answers} == {True, False}


def test_the_solvers_winner_can_force_a_win() -> None:
    for seed in range(10):
        game = position_after(Options(2), seed, Phase.MOVEMENT, 14)
        winner = solve(game).winner
        assert [can_force_win(game, seat) for seat in (0, 1)] == [winner == 0, winner == 1]


def test_an_exhausted_budget_returns_none_and_invalid_arguments_are_refused() -> None:
    start = position_after(Options(3), 0, Phase.MOVEMENT, 0)
    assert can_force_win(start, 0, nodes=3) is None
    with pytest.raises(ValueError, match="seat=3"):
        can_force_win(start, 3)
    with pytest.raises(ValueError, match="PLACEMENT"):
        can_force_win(position_after(Options(3), 0, Phase.PLACEMENT, 0), 0)
