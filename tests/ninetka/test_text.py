"""Test positions of 9tka as text: a golden file that a person has checked, round trips, damaged texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from damage import find_misread_texts
from hypothesis import given
from ninetka.positions import ALL_OPTIONS, Options, positions, random_position, random_positions, square

from ninetka_env.games.ninetka.describe import describe_last_action, last_landing
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import PASS, action_name
from ninetka_env.games.ninetka.rules import Phase

GOLDEN = Path(__file__).parent / "position.txt"


# The golden file


def worked_example() -> Game:
    """Return the first worked example of Stefani et al. (2019), after its five slides."""
    board = np.zeros((11, 11), int)
    for row, col in ((2, 2), (3, 4), (3, 8), (5, 3), (4, 5), (5, 8), (8, 2), (8, 6), (7, 8)):
        board[row, col] = 5
    edge = [square(*divmod(s, 11)) for s in range(121) if (s // 11 % 10 == 0) != (s % 11 % 10 == 0)]
    second = [square(1, 0), square(0, 2), square(0, 6), square(0, 1)]
    first = [square(r, c) for r, c in ((10, 1), (0, 3), (5, 0), (2, 0), (0, 9), (1, 10), (9, 0))]
    rest = [s for s in edge if s not in first + second]
    board.flat[second + rest[:14]] = 2
    board.flat[first + rest[14:]] = 1
    game = Game.from_board(board, 1, 2, turn_order="continue")
    for slide in ((1, 0), (10, 1), (0, 2), (0, 3), (0, 6)):
        game.play(square(*slide))
    return game


def test_position_is_written_as_in_the_golden_file():
    assert str(worked_example()) == GOLDEN.read_text(encoding="utf-8").rstrip("\n")
    assert Game.from_text(GOLDEN.read_text(encoding="utf-8")) == worked_example()


# Round trips


@given(positions())
def test_position_survives_text(drawn):
    _, game = drawn
    assert Game.from_text(str(game)) == game
    assert str(Game.from_text(str(game))) == str(game)


def test_every_position_of_a_game_survives_text(options):
    for game in random_positions(options, seed=5):
        assert Game.from_text(str(game)) == game


def test_position_is_read_as_the_class_that_is_called():
    class Mine(Game):
        __slots__ = ()

    assert type(Mine.from_text(str(Game.new(3)))) is Mine


def test_extra_spaces_and_blank_lines_are_ignored():
    game = random_position(Options(2), 1, 60)
    loose = "\n\n".join(f"   {line.replace(' ', '  ')} " for line in str(game).split("\n"))
    assert Game.from_text(loose) == game


@given(positions())
def test_last_move_is_found_on_the_board(drawn):
    _, game = drawn
    if game.is_over or game.phase != Phase.MOVEMENT:
        return
    for action in game.legal_actions().tolist():
        after = game.copy()
        after.play(action)
        if action == PASS:
            assert last_landing(after) is None
            assert describe_last_action(after).endswith(": pass")
        else:
            assert last_landing(after) == game.landing(action)
            assert f"{action_name(action)} to {action_name(game.landing(action))}" in describe_last_action(after)


def test_first_and_last_moves_are_described():
    game = Game.new(2)
    assert (last_landing(game), describe_last_action(game)) == (None, "")
    game.play(square(2, 2))
    assert (last_landing(game), describe_last_action(game)) == (square(2, 2), "neutral stone: C9")
    game = random_position(Options(3), 0, 10)
    assert describe_last_action(game) == f"yellow: {action_name(game.last_action)}"


# Damaged texts


def rewrite_game(text: str) -> str:
    return str(Game.from_text(text))


def test_damaged_positions_are_refused_or_written_as_they_were_read():
    for seed, options in enumerate(ALL_OPTIONS):
        text = str(random_position(options, seed, 4 * seed))
        assert find_misread_texts(text, rewrite_game, seed, 60) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("9tka", "8tka", "line 1: expected '9tka  players=2|3|4"),
        ("=2 (blue)", "=2 (yellow)", "line 1: to_move=2 .* expected one of 1 (yellow), 2 (blue)"),
        ("=2 (blue)", "=3 (orange)", "line 1: to_move=3 .* expected one of 1 (yellow), 2 (blue)"),
        ("#", "3", "with each ? one of . 1 2 #"),
        ("\n10    ", "\n10    1", "line 6: expected '10 ? | ? ? ?"),
        ("#", ".", "line 1 with the board in lines 3 to 18: 36 stones but only 8 neutral"),
        ("=1 (yellow)", "=2 (blue)", "line 1 with the board in lines 3 to 18: to_move=1: impossible"),
    ],
)
def test_wrong_positions_are_refused(old, new, message):
    text = next(str(game) for game in random_positions(Options(2), 0) if old in str(game) and game.ply > 46)
    pattern = ".*".join(map(re.escape, message.split(".*")))
    with pytest.raises(ValueError, match=pattern):
        Game.from_text(text.replace(old, new, 1))


def test_cut_off_and_overlong_positions_are_refused():
    text = str(Game.new(2))
    for end in range(len(text)):
        with pytest.raises(ValueError, match="line"):
            Game.from_text(text[:end])
    with pytest.raises(ValueError, match="line 20: expected the end of the text, found 'more'"):
        Game.from_text(text + "\n\nmore")


def test_seat_that_would_be_passed_over_is_no_seat_to_move():
    def passed_over() -> Iterator[Game]:
        for seed in range(100):
            yield from (game for game in random_positions(Options(2), seed) if game.passed and not game.is_over)

    game = next(passed_over())
    names = ["1 (yellow)", "2 (blue)"]
    text = str(game).replace(names[game.to_move], names[1 - game.to_move])
    with pytest.raises(ValueError, match="none of its stones can slide, so it is passed over"):
        Game.from_text(text)
