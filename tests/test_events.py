"""Tests of events that end games before the rules do: resigning, losing on time, leaving."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ninetka.positions import Options, any_options, position_after, random_position, seeds

from ninetka_env.core.game import EVENTS, Event, winner_text
from ninetka_env.core.outcome import REWARDS
from ninetka_env.core.registry import load_variant
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.rules import Phase


def unfinished_game(options: Options, seed: int, plies: int) -> Game:
    """Return a random game after `plies` plies, or after 45 plies if the game is over at `plies`."""
    game = random_position(options, seed, plies)
    return game if not game.is_over else random_position(options, seed, 45)


@given(any_options, seeds, st.integers(0, 84), st.sampled_from(EVENTS), st.integers(0, 3))
def test_an_event_ends_a_game_and_its_seat_does_not_win(options, seed, plies, reason, seat):
    game = unfinished_game(options, seed, plies)
    seat %= game.num_players
    before = game.copy()
    game.forfeit(seat, reason)
    assert game.is_over
    assert game.event == Event(reason, seat)
    assert game.winner() != seat
    assert len(game.legal_actions()) == 0
    assert not game.legal_mask().any()
    assert (game.legal_mask().shape, game.legal_mask().dtype) == ((122,), np.int8)
    assert game.records.tobytes() == before.records.tobytes()
    assert (game.scores() == before.scores()).all()
    assert (game.to_move, game.ply, game.last_action, game.passed) == (
        before.to_move, before.ply, before.last_action, before.passed
    )  # fmt: skip


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("reason", EVENTS)
def test_with_two_players_the_other_seat_wins(seat, reason):
    for seed in range(20):
        game = unfinished_game(Options(2), seed, 70)
        game.forfeit(seat, reason)
        assert game.winner() == 1 - seat
        assert winner_text(game) == ("blue wins", "yellow wins")[seat]


@pytest.mark.parametrize("num_players", [3, 4])
def test_with_more_players_the_best_other_seat_wins_and_ties_go_to_the_last(num_players):
    seen = set()
    for seed in range(40):
        for seat in range(num_players):
            game = position_after(Options(num_players), seed, Phase.MOVEMENT, 12)
            scores, leader = game.scores().tolist(), game.winner()
            game.forfeit(seat)
            others = [other for other in range(num_players) if other != seat]
            best = max(scores[other] for other in others)
            assert game.winner() == max(other for other in others if scores[other] == best)
            assert seat == leader or game.winner() == leader
            seen.add((seat == leader, [scores[other] for other in others].count(best) > 1))
    assert len(seen) == 4  # the leader or another seat, with and without a tie


def test_without_scores_the_last_other_seat_wins():
    for seat, winner in ((0, 2), (1, 2), (2, 1)):
        game = Game.new(3)
        game.resign(seat)
        assert game.winner() == winner


@given(any_options, seeds, st.integers(0, 84), st.integers(0, 3))
def test_both_rewards_pay_the_winner(options, seed, plies, seat):
    game = unfinished_game(options, seed, plies)
    n = game.num_players
    game.forfeit(seat % n)
    expected = [1.0 if other == game.winner() else -1 / (n - 1) for other in range(n)]
    for reward in REWARDS:
        paid = game.returns(reward)
        assert (paid.shape, paid.dtype) == ((n,), np.float32)
        assert paid.tolist() == pytest.approx(expected)
        assert paid.sum() == pytest.approx(0, abs=1e-6)


def test_the_seat_to_move_resigns_by_default():
    game = unfinished_game(Options(3), 1, 31)
    mover = game.to_move
    game.resign()
    assert game.event == Event("resigned", mover)
    game = unfinished_game(Options(3), 1, 31)
    game.resign((mover + 1) % 3)
    assert game.event == Event("resigned", (mover + 1) % 3)
    game = unfinished_game(Options(3), 1, 31)
    game.forfeit(mover)
    assert game.event == Event("time", mover)


COPIES: dict[str, Callable[[Game], Game]] = {
    "copy": Game.copy,
    "copy.copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda game: pickle.loads(pickle.dumps(game)),
}


@pytest.mark.parametrize("way", COPIES)
def test_a_copy_keeps_the_event_and_does_not_share_it(way):
    game = unfinished_game(Options(3), 2, 50)
    twin = COPIES[way](game)
    game.resign(1)
    assert (twin.event, twin.is_over) == (None, False)
    twin = COPIES[way](game)
    assert twin == game
    assert hash(twin) == hash(game)
    assert (twin.event, twin.is_over, twin.winner()) == (game.event, True, game.winner())


def test_events_count_in_a_comparison():
    games = [Game.new(3) for _ in range(5)]
    games[1].resign(0)
    games[2].resign(1)
    games[3].forfeit(0, "time")
    games[4].resign(0)
    assert len(set(games)) == 4
    assert games[1] == games[4]
    assert games[0] != games[1]


def assert_refused(game: Game, message: str, *calls: Callable[[Game], None]) -> None:
    """Check that each call raises with this message and changes nothing."""
    before = game.copy()
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call(game)
        assert (game, game.event) == (before, before.event)


def test_a_finished_game_cannot_be_resigned():
    over = position_after(Options(2), 0, Phase.MOVEMENT, 99)
    assert_refused(over, "the game is over already", Game.resign, lambda game: game.forfeit(0, "left"))
    resigned = Game.new(3)
    resigned.resign()
    assert_refused(
        resigned, "the game is over already", Game.resign, lambda game: game.forfeit(1), lambda game: game.resign(2)
    )
    assert resigned.event == Event("resigned", 0)


def test_a_game_ended_by_an_event_accepts_no_action():
    game = unfinished_game(Options(2), 0, 20)
    legal = game.legal_actions().tolist()
    game.resign()
    for action in (*legal, -1, 121, 122, 2**40):
        assert_refused(game, f"action {action}\\b.*the game is over", lambda game, action=action: game.play(action))


@pytest.mark.parametrize("seat", [3, -1, 2**40, True, 1.0, "1", [1]])
def test_a_wrong_seat_is_named(seat):
    message = r"seat=.*expected an integer of at least 0 and at most 2"
    assert_refused(Game.new(3), message, lambda game: game.resign(seat), lambda game: game.forfeit(seat, "left"))


@pytest.mark.parametrize("reason", ["", "Time", "bored", None, 1, ["time"]])
def test_a_wrong_reason_is_named(reason):
    message = r"reason=.*expected one of 'resigned', 'time', 'left'"
    assert_refused(Game.new(3), message, lambda game: game.forfeit(1, reason))


def test_seats_may_be_numpy_integers():
    game = Game.new(3)
    game.resign(np.int64(1))
    assert game.event == Event("resigned", 1)
    assert type(game.event.seat) is int


def test_repr_of_a_resigned_game():
    game = Game.new(2)
    game.resign()
    assert repr(game) == "<Game of 2: NEUTRAL, ply 0, over>"


@pytest.mark.parametrize("name", ["ninetka", "go", "kropki"])
def test_readonly_states_are_not_changed(name, tmp_path):
    variant = load_variant(name)
    game = variant.game_class.start(variant, 0)
    file = tmp_path / "games.npy"
    np.save(file, game.records)
    frozen = game.copy()
    frozen.records.flags.writeable = False
    for records in (frozen.records, np.load(file, mmap_mode="r")):
        view = type(game)(records)
        before, action = records.tobytes(), int(view.legal_actions()[0])
        with pytest.raises(ValueError, match=r"read-only: play in game.copy\(\) instead"):
            view.play(action)
        if name == "go":
            with pytest.raises(ValueError, match="read-only"):
                view.hand_turn(1)
        assert records.tobytes() == before
        view.copy().play(action)
