"""Tests of the text of `ninetka solve` against plain search to the end."""

from __future__ import annotations

import numpy as np
import pytest
from ninetka.brute import brute_force_winner
from ninetka.positions import Options, position_after, random_action

from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.rules import Phase
from ninetka_env.games.ninetka.text import SEATS
from ninetka_train.ninetka.analyze import solution_text


def late_position(players: int, seed: int, left: int) -> Game:
    game = position_after(Options(players), seed, Phase.MOVEMENT, 0)
    rng = np.random.default_rng(seed)
    while int(game.movable().sum()) > left and not game.is_over:
        game.play(random_action(game, rng))
    return game


@pytest.mark.parametrize("seed", range(6))
def test_two_players_are_solved_exactly(seed):
    game = late_position(2, seed, 8)
    first = next(iter(solution_text(game)))
    assert first.startswith(f"{SEATS[int(brute_force_winner(game.records, 0))]} wins")


@pytest.mark.parametrize("players", [3, 4])
def test_with_more_players_at_most_one_seat_can_force_a_win(players):
    lines = list(solution_text(late_position(players, 1, 7)))
    assert lines[0].startswith("max^n: ")
    answers = [line.rsplit(" ", 1)[1] for line in lines if "against all others together" in line]
    assert len(answers) == players
    assert answers.count("yes") <= 1


def test_an_exhausted_budget_is_reported():
    assert list(solution_text(late_position(2, 3, 18), nodes=1)) == ["not solved within 1 nodes"]


def test_other_phases_are_refused():
    with pytest.raises(ValueError, match="phase NEUTRAL"):
        list(solution_text(Game.new(2)))
