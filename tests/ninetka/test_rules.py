"""Test the rules: in lock-step with the slow reference, by drawn examples, and by properties of whole games."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from ninetka.positions import (
    ALL_OPTIONS,
    TWO_PLAYERS,
    Options,
    any_options,
    assert_equal,
    board_of,
    picture_of,
    random_positions,
    seeds,
    square,
)
from ninetka.reference import PASS, ReferenceGame
from scale import Scaled

from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import EDGE, INNER, NEUTRAL_STONE, SIZE
from ninetka_env.games.ninetka.rules import Phase

# In lock-step with the reference


def test_lock_step_with_the_reference(options: Options, scaled: Scaled) -> None:
    for seed in range(scaled(83)):
        play_in_lock_step(options, seed)


def play_in_lock_step(options: Options, seed: int) -> None:
    """Play a random game in both implementations, and compare all results at every ply."""
    rng = np.random.default_rng([seed, ALL_OPTIONS.index(options)])
    game, reference, ply = options.new_game(seed), ReferenceGame(options.num_players, *options[2:]), 0
    if options.neutral_placement == "random":
        reference.with_neutrals(np.flatnonzero(game.board == NEUTRAL_STONE).tolist())
        ply = 9
    while True:
        assert game.ply == ply
        assert_equal(game, reference)
        if reference.is_over():
            return
        action = int(rng.choice(reference.legal_actions()))
        game.play(action)
        reference.play(action)
        ply += action != PASS


def test_movable_stones_and_landing_squares_match_the_reference(options: Options, scaled: Scaled) -> None:
    for seed in range(scaled(4)):
        for game in random_positions(options, seed):
            assert_equal_slides(game, options.reference_of(game))


def assert_equal_slides(game: Game, reference: ReferenceGame) -> None:
    movable = [stone for seat in range(game.num_players) for stone in reference.movable_stones(seat)]
    assert sorted(movable) == [tuple(stone) for stone in np.argwhere(game.movable()).tolist()]
    for stone in movable:
        assert game.landing(square(*stone)) == square(*reference.landing_square(stone))


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", ["NUMBA_BOUNDSCHECK", "NUMBA_DISABLE_JIT"])
def test_the_rules_hold_with_bounds_checks_and_without_the_compiler(mode: str) -> None:
    """Compiled code that reads past the end of an array returns garbage without an error; these modes raise."""
    here = Path(__file__).parent
    tests = ["test_rules.py::test_lock_step_with_the_reference"]
    tests += [f"test_observation.py::test_every_plane_for_every_viewer_at_every_ply[{Options(n)}]" for n in (2, 3, 4)]
    wraps_around = "ignore:overflow encountered:RuntimeWarning:ninetka_env.core.random_streams"
    command = [sys.executable, "-m", "pytest", "-qx", "-o", "addopts=", "-p", "no:cacheprovider", "-W", wraps_around]
    path = os.pathsep.join([str(here.parent), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {mode: "1", "NINETKA_TEST_GAMES": "24", "PYTHONPATH": path}
    done = subprocess.run(command + tests, cwd=here, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "27 passed" in done.stdout


# Drawn examples, one rule each: `1` is a stone of seat 0, `2` one of seat 1, .., `#` a neutral stone

THREE_PLAYERS = """
.123123123.
1.........1
2.#..#..#.2
3.........3
1.........1
2.#..#..#.2
3.........3
1.........1
2.#..#..#.2
3.........3
.123123123.
"""


def full_edge(picture: str = TWO_PLAYERS, num_players: int = 2) -> Game:
    """Return the start of the movement phase with seat 0 to move."""
    return Options(num_players).from_board(board_of(picture), to_move=0)


def play_all(game: Game, *squares: tuple[int, int]) -> None:
    for touched in squares:
        game.play(square(*touched))


def test_neutrals_stand_in_rows_and_columns_2_to_8() -> None:
    allowed = [square(row, col) for row in range(2, 9) for col in range(2, 9)]
    assert Game.new(2).legal_actions().tolist() == allowed
    for touched in sorted(set(range(121)) - set(allowed)):
        with pytest.raises(ValueError, match="NEUTRAL"):
            Game.new(2).play(touched)


def test_a_section_takes_one_neutral() -> None:
    game = Game.new(2)
    play_all(game, (2, 2))
    for other in ((2, 2), (2, 3), (3, 2), (3, 3)):
        assert square(*other) not in game.legal_actions()
        with pytest.raises(ValueError, match="NEUTRAL"):
            play_all(game, other)
    assert square(2, 4) in game.legal_actions()  # the next section


def test_stones_are_placed_on_empty_edge_squares() -> None:
    game = Game.new(2, neutral_placement="random", seed=0)
    assert game.legal_actions().tolist() == np.flatnonzero(EDGE).tolist()
    play_all(game, (0, 1))
    assert game.legal_actions().tolist() == np.flatnonzero(EDGE)[1:].tolist()


def test_a_slide_stops_short_of_a_neutral_or_settled_stone() -> None:
    board = TWO_PLAYERS.replace("2.#..#..#.1", "2.#.#...#.1", 1)  # only the neutral in the centre is left in its column
    game = full_edge(board)
    play_all(game, (0, 5), (4, 0), (4, 10))
    assert picture_of(game)[:6] == [
        ".1212.2121.",
        "1.........2",
        "2.#.#...#.1",
        "1.........2",
        "....211....",
        "1.#..#..#.2",
    ]


def test_a_slide_down_an_empty_line_blocks_the_stone_opposite() -> None:
    game = full_edge()
    assert game.movable()[3, 10]
    play_all(game, (3, 0))
    assert picture_of(game)[3] == ".........12"
    assert not game.movable()[3, 10]
    assert square(3, 10) not in game.legal_actions()
    assert game.movable().sum() == 36 - 2  # the stone itself, and the one it blocks


def test_a_stone_on_an_inner_corner_blocks_two() -> None:
    game = full_edge()
    play_all(game, (1, 0))
    assert picture_of(game)[:2] == [".121212121.", ".........12"]
    assert not game.movable()[1, 10]
    assert not game.movable()[0, 9]
    assert game.movable().sum() == 36 - 3


def test_a_tied_section_has_no_owner() -> None:
    game = full_edge()
    owners = []
    for touched in ((1, 0), (0, 8), (3, 0)):  # all three end in section 2
        play_all(game, touched)
        owners.append(int(game.section_owners()[2]))
    assert owners == [0, -1, 0]
    assert picture_of(game)[:4] == [".1212121.1.", "........212", "2.#..#..#.1", ".........12"]
    assert game.counts()[:, 2].tolist() == [2, 1]


def test_an_owner_has_more_stones_than_each_other_seat_not_than_all_together() -> None:
    game = full_edge(THREE_PLAYERS, num_players=3)
    owners = []
    for touched in ((1, 0), (0, 8), (3, 0), (10, 7)):  # all four end in section 2
        play_all(game, touched)
        owners.append(int(game.section_owners()[2]))
    assert owners == [0, -1, -1, 0]
    assert game.counts()[:, 2].tolist() == [2, 1, 1]


def test_of_tied_leaders_the_later_seat_wins() -> None:
    game = full_edge()
    play_all(game, (1, 0))
    assert (game.scores().tolist(), game.winner()) == ([1, 0], 0)
    play_all(game, (2, 0))
    assert (game.scores().tolist(), game.winner()) == ([1, 1], 1)


NO_OWNER_TWO_PLAYERS = """
.2.........
22.1.......
..25.121...
.121.5.52..
.15.21.....
.2..1511...
.....2252..
...25.11111
.25.2...52.
.11.....221
...........
"""

NO_OWNER_THREE_PLAYERS = """
.11........
332..2..21.
.15..5..51.
......332..
.25....53..
....2....12
..1353.....
.3251.251..
...1.3513..
.....12.322
.........3.
"""


@pytest.mark.parametrize(("num_players", "picture"), [(2, NO_OWNER_TWO_PLAYERS), (3, NO_OWNER_THREE_PLAYERS)])
def test_the_last_seat_wins_if_no_section_has_an_owner(num_players: int, picture: str) -> None:
    game = Options(num_players).from_board(board_of(picture.replace("5", "#")), to_move=0)
    assert game.is_over
    assert len(game.legal_actions()) == 0
    assert game.scores().tolist() == [0] * num_players
    assert game.winner() == num_players - 1


ONE_CANNOT_SLIDE = """
...1.....2.
....21...12
.111#1..2..
.1#..212#2.
.1...1#2...
......2#2..
..1#..22..1
..2##2.....
..121...#2.
.......2112
...1.......
"""

TWO_CANNOT_SLIDE = """
....1....3.
.34...24132
.4#...##3..
231...2....
.1.......12
...1...2#3.
..4##..1..4
.....2...43
..3#.#..#24
..42.1..43.
....1......
"""


def test_a_seat_without_a_slide_is_passed_over() -> None:
    game = Options(2).from_board(board_of(ONE_CANNOT_SLIDE), to_move=0)
    play_all(game, (0, 3))
    assert (game.to_move, game.passed) == (0, (1,))
    play_all(game, (6, 10))
    assert (game.to_move, game.passed) == (0, (1,))


def test_two_seats_in_a_row_are_passed_over() -> None:
    game = Options(4).from_board(board_of(TWO_CANNOT_SLIDE), to_move=0)
    assert game.passed == ()
    play_all(game, (10, 4))
    assert (game.to_move, game.passed) == (3, (1, 2))
    assert square(0, 9) not in game.legal_actions()  # a stone of seat 2, and blocked


def test_from_board_passes_over_seats_that_cannot_slide() -> None:
    played = Options(4).from_board(board_of(TWO_CANNOT_SLIDE), to_move=0)
    play_all(played, (10, 4))
    game = Options(4).from_board(played.board, to_move=1)
    assert (game.to_move, game.passed) == (3, (1, 2))


def test_passing_is_legal_only_without_a_slide() -> None:
    game = Options(4, auto_pass=False).from_board(board_of(TWO_CANNOT_SLIDE), to_move=0)
    assert PASS not in game.legal_actions()
    with pytest.raises(ValueError, match=r"pass.*MOVEMENT"):
        game.play(PASS)
    play_all(game, (10, 4))
    ply = game.ply
    for seat in (1, 2):
        assert (game.to_move, game.passed) == (seat, ())
        assert game.legal_actions().tolist() == [PASS]
        game.play(PASS)
    assert game.ply == ply
    assert game.to_move == 3
    assert PASS not in game.legal_actions()


def test_with_auto_pass_a_pass_is_not_an_action() -> None:
    game = Options(2).from_board(board_of(ONE_CANNOT_SLIDE), to_move=0)
    with pytest.raises(ValueError, match=r"pass.*MOVEMENT"):
        game.play(PASS)


@pytest.mark.parametrize(
    ("slides", "sections_of_seat_1"),
    [
        ([(1, 0), (10, 1), (0, 2), (0, 3), (0, 6)], [2, 7]),
        ([(1, 0), (5, 0), (0, 1), (2, 0), (0, 2)], [2, 6]),
    ],
)
def test_the_worked_examples(slides: list[tuple[int, int]], sections_of_seat_1: list[int]) -> None:
    game = worked_example()
    play_all(game, *slides)
    assert np.flatnonzero(game.section_owners() == 1).tolist() == sections_of_seat_1


def worked_example() -> Game:
    """Return the board of the worked examples: the start of the movement phase, with seat 1 to move."""
    board = np.zeros((SIZE, SIZE), np.int8)
    for neutral in ((2, 2), (3, 4), (3, 8), (5, 3), (4, 5), (5, 8), (8, 2), (8, 6), (7, 8)):
        board[neutral] = NEUTRAL_STONE
    for stone in ((1, 0), (0, 2), (0, 6), (0, 1)):
        board[stone] = 2
    for stone in ((10, 1), (0, 3), (5, 0), (2, 0), (0, 9), (1, 10), (9, 0)):
        board[stone] = 1
    rest = np.flatnonzero(EDGE & (board.ravel() == 0))
    board.flat[rest[:14]] = 2
    board.flat[rest[14:]] = 1
    return Options(2, turn_order="continue").from_board(board, to_move=1)


# Properties of whole games


@given(any_options, seeds)
def test_nine_neutral_plies_then_36_placements_then_at_most_36_slides(options: Options, seed: int) -> None:
    for game in random_positions(options, seed):
        neutral = game.board == NEUTRAL_STONE
        settled = (game.board.ravel() != 0) & ~neutral.ravel() & INNER
        stones = (game.board != 0) & ~neutral
        assert neutral.sum() == min(game.ply, 9)
        assert stones.sum() == min(max(game.ply - 9, 0), 36)
        assert settled.sum() == max(game.ply - 45, 0)
        assert game.phase == (game.ply >= 9) + (game.ply >= 45)
    assert 45 < game.ply <= 81
    assert [(game.board == seat + 1).sum() for seat in range(4)] == (
        [36 // game.num_players] * game.num_players + [0] * (4 - game.num_players)
    )


@given(any_options, seeds)
def test_stones_never_vanish_and_settled_stones_never_move(options: Options, seed: int) -> None:
    before = np.zeros((SIZE, SIZE), np.int8)
    for game in random_positions(options, seed):
        changed = (game.board != before).ravel()
        assert (before.ravel()[changed & INNER] == 0).all()
        if game.ply > 45:
            assert np.bincount(game.board.ravel()).tolist() == np.bincount(before.ravel()).tolist()
            assert changed.sum() == 2 * (game.last_action != PASS)
        before = game.board.copy()


@given(any_options, seeds)
def test_a_blocked_stone_stays_blocked(options: Options, seed: int) -> None:
    before = np.ones((SIZE, SIZE), np.bool_)
    for game in random_positions(options, seed):
        if game.phase == Phase.MOVEMENT:
            assert not (game.movable() & ~before).any()
            before = game.movable()
    assert not game.movable().any()


@given(any_options, seeds)
def test_seats_move_in_turn(options: Options, seed: int) -> None:
    before = options.new_game(seed).copy()
    for game in random_positions(options, seed):
        same_phase = game.phase == before.phase
        if game.last_action is not None and same_phase:
            assert game.to_move == (before.to_move + 1 + len(game.passed)) % game.num_players
        before = game.copy()


@given(any_options, seeds)
def test_only_seats_without_a_slide_pass(options: Options, seed: int) -> None:
    for game in random_positions(options, seed):
        movable = {game.board[tuple(stone)] - 1 for stone in np.argwhere(game.movable())}
        assert not movable & set(game.passed)
        stuck = game.phase == Phase.MOVEMENT and game.to_move not in movable and not game.is_over
        assert (PASS in game.legal_actions()) == stuck
        assert not (stuck and options.auto_pass)
        assert not (game.passed and not options.auto_pass)


@pytest.mark.parametrize("num_players", [2, 3, 4])
@pytest.mark.parametrize("neutral_placement", ["players", "random"])
@pytest.mark.parametrize("turn_order", ["restart", "continue"])
def test_who_opens_a_phase(num_players: int, neutral_placement: str, turn_order: str) -> None:
    options = Options(num_players, neutral_placement, turn_order)
    continues = neutral_placement == "players" and turn_order == "continue"
    opener = 9 % num_players if continues else 0
    openers = {game.ply: game.to_move for game in random_positions(options, seed=0)}
    assert openers.get(0, 0) == 0
    assert openers[9] == openers[45] == opener


@given(any_options, seeds)
def test_from_a_full_edge_a_slide_always_ends_at_a_stone(options: Options, seed: int) -> None:
    """A line without inner stones has a stone at its far end, so no slide ends next to an empty edge square."""
    for game in random_positions(options, seed):
        if game.phase == Phase.MOVEMENT:
            for start in np.flatnonzero(game.movable()):
                assert_ends_at_a_stone(game, int(start))


def assert_ends_at_a_stone(game: Game, start: int) -> None:
    row, col = divmod(start, SIZE)
    step = {0: SIZE, 10: -SIZE}[row] if row in (0, 10) else {0: 1, 10: -1}[col]
    landing = game.landing(start)
    cells = game.board.ravel()
    assert INNER[landing]
    assert not cells[start + step : landing + step : step].any()
    assert cells[landing + step] != 0
