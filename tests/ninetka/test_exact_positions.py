"""Tests of the stored positions and of how they are made, against brute force and the search for forced wins."""

from __future__ import annotations

import numpy as np
import pytest

from ninetka_agents.ninetka.force import can_force_win
from ninetka_agents.ninetka.solver.solver import LOST, UNKNOWN, WON
from ninetka_agents.ninetka.winner_sets import winner_sets
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.rules import Phase
from ninetka_train.ninetka.exact_positions import PositionSet, load_positions, positions_csv, read_positions
from ninetka_train.ninetka.make_positions import choose_by_difficulty, make_positions

SIZES = {2: 2000, 3: 500, 4: 500}


@pytest.fixture(scope="module", params=SIZES)
def positions(request) -> PositionSet:
    return load_positions(request.param)


def test_each_position_has_a_choice_and_exact_values(positions):
    num_players = int(positions.states["num_players"][0])
    assert len(positions) == len(set(positions.ids)) == SIZES[num_players]
    assert len(np.unique(positions.states["board"], axis=0)) == len(positions)
    values, legal = positions.values, positions.legal
    assert (values[~legal] == UNKNOWN).all()
    for row in range(len(positions)):
        kinds = set(values[row, legal[row]].tolist())
        assert len(kinds) > 1
        assert positions.game(row).phase == Phase.MOVEMENT
        if num_players == 2:
            assert kinds == {WON, LOST}


def test_positions_are_spread_over_the_phase_and_over_difficulty(positions):
    good = (positions.values == WON).sum(1) / positions.legal.sum(1)
    assert (np.histogram(good, [0, 0.125, 0.25, 0.5, 0.75, 1])[0] > 0.05 * len(positions)).all()
    assert (np.bincount(positions.stages) >= 45).all()
    assert len(np.unique(positions.sources)) > 0.4 * len(positions)


@pytest.mark.parametrize("row", range(0, 500, 100))
def test_sample_labels_agree_with_the_search_for_forced_wins(positions, row):
    """Late positions of the file, which are fast to search."""
    late = np.argsort([positions.game(place).movable().sum() for place in range(len(positions))], kind="stable")
    game = positions.game(int(late[row]))
    for action in game.legal_actions().tolist():
        after = game.copy()
        after.play(action)
        winners = [seat for seat in range(game.num_players) if wins(after, seat)]
        expected = UNKNOWN if not winners else WON if winners == [game.to_move] else LOST
        assert positions.values[late[row], action] == expected


def wins(game, seat):
    return game.winner() == seat if game.is_over else can_force_win(game, seat)


@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_winner_sets_are_those_of_all_rules_for_max_n(num_players):
    """A seat is alone in the set exactly if it can force a win; the set holds the winner of every tie-break."""
    rng = np.random.default_rng(num_players)
    for _ in range(4):
        game = random_ending(num_players, 9, rng)
        sets = winner_sets(game)
        assert (sets[~np.isin(np.arange(len(sets)), game.legal_actions())] == 0).all()
        for action in game.legal_actions().tolist():
            after = game.copy()
            after.play(action)
            for seat in range(num_players):
                assert wins(after, seat) == (sets[action] == 1 << seat)
            for _ in range(3):
                assert sets[action] >> max_n_winner(after, rng) & 1


def random_ending(num_players, stones, rng):
    while True:
        game = Game.new(num_players=num_players)
        while not game.is_over and (game.phase != Phase.MOVEMENT or game.movable().sum() > stones):
            game.play(int(rng.choice(game.legal_actions())))
        if not game.is_over:
            return game


def max_n_winner(game, rng):
    """Return the winner under max^n, where a seat that cannot win plays at random."""
    if game.is_over:
        return game.winner()
    afters = [game.copy() for _ in game.legal_actions()]
    for after, action in zip(afters, game.legal_actions().tolist(), strict=True):
        after.play(action)
    winners = [max_n_winner(after, rng) for after in afters]
    return game.to_move if game.to_move in winners else int(rng.choice(winners))


def test_a_set_is_made_from_a_seed_and_its_labels_are_right():
    made = make_positions(2, seed=3, share=0.004)
    assert positions_csv(made) == positions_csv(make_positions(2, seed=3, share=0.004))
    checked = 0
    for row in range(len(made)):
        game = made.game(row)
        if game.movable().sum() <= 22:
            checked += 1
            won = winner_sets(game)[game.legal_actions()] == 1 << game.to_move
            assert made.values[row, game.legal_actions()].tolist() == np.where(won, WON, LOST).tolist()
    assert checked > 0


def test_a_file_is_read_as_it_was_written(positions):
    num_players = int(positions.states["num_players"][0])
    again = read_positions(positions_csv(positions), num_players)
    assert again.ids == positions.ids
    for name in ("sources", "slides", "states", "values"):
        assert np.array_equal(getattr(again, name), getattr(positions, name))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "", "positions, line 0: expected the columns id, source, board"),
        (lambda text: text.splitlines()[0] + "\n", "positions, line 1: expected at least one position"),
        (lambda text: text.replace("/", "", 1), "positions, line 2: expected 11 rows of 11 cells"),
        (lambda text: text.replace(".", "x", 1), "positions, line 2: "),
        (lambda text: text.replace(",", ",9", 8), "positions, line "),
        (lambda text: text.replace(".", "x" * 200_000, 1), "positions, line "),
        (lambda text: text + "2p0001\n", "positions, line 3: "),
        (lambda text: text.rpartition(",")[0] + ",5\n", "expected each legal action in one of the columns"),
    ],
)
def test_broken_files_are_refused(change, message):
    text = "\n".join(positions_csv(load_positions(2)).splitlines()[:2]) + "\n"
    with pytest.raises(ValueError, match=message):
        read_positions(change(text), 2)


def test_the_number_of_players_is_checked():
    with pytest.raises(ValueError, match="num_players=5: expected one of 2, 3, 4"):
        load_positions(5)


def test_difficulties_are_equally_frequent_where_possible():
    shares = np.array([0.1] * 2 + [0.2] * 50 + [0.9] * 50)
    chosen = choose_by_difficulty(shares, 22, np.random.default_rng(0))
    assert np.histogram(shares[chosen], [0, 0.125, 0.25, 1])[0].tolist() == [2, 10, 10]
    assert len(choose_by_difficulty(shares[:3], 9, np.random.default_rng(0))) == 3
