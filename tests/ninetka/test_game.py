"""Test `Game`: positions from boards, illegal actions and options, copies, random neutral stones, the state."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ninetka.positions import (
    TWO_PLAYERS,
    Options,
    assert_equal,
    board_of,
    position_after,
    positions,
    random_action,
    random_position,
    random_positions,
    square,
)
from scale import Scaled

import ninetka_env.core.game
import ninetka_env.games.ninetka.game
from ninetka_env.core.batch import option_codes, restart_games
from ninetka_env.core.registry import load_variant
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import NEUTRAL_STONE, SECTION, action_name
from ninetka_env.games.ninetka.rules import STATE_DTYPE, Phase

Board = npt.NDArray[np.int8]

# Positions from boards


def test_every_position_of_a_game_can_be_set_up_from_its_board(options: Options, scaled: Scaled) -> None:
    for seed in range(scaled(5)):
        for game in random_positions(options, seed):
            again = options.from_board(game.board, game.to_move)
            assert again == game
            assert (again.to_move, again.last_action, again.passed) == (game.to_move, None, ())


def test_from_board_passes_over_a_seat_that_cannot_slide(options: Options, scaled: Scaled) -> None:
    for seed in range(scaled(5)):
        mover = 0
        for game in random_positions(options, seed):
            if game.passed:
                again = options.from_board(game.board, (mover + 1) % game.num_players)
                assert (again, again.passed) == (game, game.passed)
            mover = game.to_move


@pytest.mark.parametrize("convert", [np.ndarray.tolist, np.asfortranarray, lambda board: board.astype(np.uint64)])
def test_a_board_may_be_any_array_of_integers(convert: Callable[[Board], Any]) -> None:
    board = board_of(TWO_PLAYERS)
    game = Game.from_board(convert(board), np.int64(0), 2)
    assert (game.board == board).all()


def test_a_position_does_not_share_memory_with_its_board() -> None:
    board = board_of(TWO_PLAYERS)
    game = Game.from_board(board, 0, 2)
    board[:] = 0
    assert (game.board == board_of(TWO_PLAYERS)).all()


CHANGES: dict[str, tuple[dict[tuple[int, int], int], int, str]] = {
    "a stone of an absent seat": ({(3, 0): 3}, 0, r"A8.*code 3"),
    "an unknown code": ({(3, 0): 6}, 0, r"A8.*code 6"),
    "a negative code": ({(3, 0): -1}, 0, r"A8.*code -1"),
    "a stone on a corner": ({(3, 0): 0, (0, 0): 1}, 0, r"A11.*corner"),
    "a neutral on a corner": ({(2, 2): 0, (10, 10): 5}, 0, r"K1.*corner"),
    "a neutral on the ring": ({(2, 5): 0, (1, 5): 5}, 0, r"F10.*neutral"),
    "a neutral on the edge": ({(2, 5): 0, (0, 5): 5}, 0, r"F11.*neutral"),
    "two neutrals in a section": ({(5, 5): 0, (3, 3): 5}, 0, r"section 0.* 2 neutral"),
    "ten neutrals": ({(3, 3): 5}, 0, r"section 0.* 2 neutral"),
    "too many stones": ({(2, 0): 1}, 0, r"seat 0 has 19 stones.*18"),
    "stones before all neutrals": ({(5, 5): 0}, 0, r"36 stones.* 8 neutral"),
    "a settled stone before all are placed": ({(3, 0): 0, (4, 0): 0, (3, 9): 1}, 1, r"1 settled.* 35 stones"),
    "the wrong seat opens": ({}, 1, r"to_move=1.*\[0, 0\].*MOVEMENT"),
    "the wrong seat to move": ({(3, 0): 0, (3, 9): 1}, 0, r"to_move=0.*\[1, 0\].*MOVEMENT"),
    "two slides of one seat": ({(3, 0): 0, (3, 9): 1, (7, 0): 0, (7, 9): 1}, 1, r"to_move=1.*\[2, 0\].*MOVEMENT"),
    "a placement too many": ({(3, 0): 0, (7, 0): 0}, 0, r"to_move=0.*\[16, 18\].*PLACEMENT"),
    "a settled stone in the middle of a line": ({(3, 0): 0, (3, 5): 1}, 1, r"F8.*no slide"),
    "a settled stone whose edge square is occupied": ({(3, 0): 0, (6, 9): 1}, 1, r"J5.*no slide"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_impossible_boards_are_refused(change: str) -> None:
    cells, to_move, message = CHANGES[change]
    board = board_of(TWO_PLAYERS)
    for where, code in cells.items():
        board[where] = code
    with pytest.raises(ValueError, match=message):
        Game.from_board(board, to_move, 2)


@pytest.mark.parametrize("to_move", [2, -1, 2**70, True, np.True_, 0.0, "0", None, (0,)])
def test_to_move_is_a_seat(to_move: Any) -> None:
    with pytest.raises(ValueError, match=r"to_move.*0\.\.1"):
        Game.from_board(board_of(TWO_PLAYERS), to_move, 2)


@pytest.mark.parametrize(
    "convert",
    [
        lambda board: board[:10],
        lambda board: board[:, :10],
        lambda board: board.ravel(),
        lambda board: board[None],
        lambda board: board[0, 0],
        lambda board: board.astype(np.float32),
        lambda board: board.astype(np.bool_),
        lambda board: board.astype(object),
        lambda board: board.astype(str),
        lambda board: None,
    ],
)
def test_a_board_is_11_x_11_integers(convert: Callable[[Board], Any]) -> None:
    with pytest.raises(ValueError, match=r"board.*\(11, 11\)"):
        Game.from_board(convert(board_of(TWO_PLAYERS)), 0, 2)


@pytest.mark.parametrize("code", [256, 257, -255, 2**40, 2**32 + 1])
def test_large_codes_do_not_wrap_around(code: int) -> None:
    board = board_of(TWO_PLAYERS).astype(np.int64)
    board[3, 0] = code
    with pytest.raises(ValueError, match=rf"A8.*{code}"):
        Game.from_board(board, 0, 2)


squares = st.tuples(st.integers(0, 10), st.integers(0, 10))


@given(positions(), squares, st.integers(-1, 6), st.none() | st.integers(0, 3))
def test_a_board_with_one_cell_changed(
    position: tuple[Options, Game], where: tuple[int, int], code: int, to_move: int | None
) -> None:
    options, game = position
    board = game.board.copy()
    board[where] = code
    is_refused_or_plays_to_its_end(options, board, game.to_move if to_move is None else to_move)


@given(positions(), st.lists(st.tuples(squares, squares), min_size=1, max_size=2), st.none() | st.integers(0, 3))
def test_a_board_with_cells_exchanged(
    position: tuple[Options, Game], pairs: list[tuple[tuple[int, int], tuple[int, int]]], to_move: int | None
) -> None:
    options, game = position
    board = game.board.copy()
    for first, second in pairs:
        board[first], board[second] = board[second], board[first]
    is_refused_or_plays_to_its_end(options, board, game.to_move if to_move is None else to_move)


def is_refused_or_plays_to_its_end(options: Options, board: Board, to_move: int) -> None:
    try:
        game = options.from_board(board, to_move)
    except ValueError:
        return
    assert (game.board == board).all()
    reference = options.reference_of(game)
    rng = np.random.default_rng(0)
    while not game.is_over:
        assert_equal(game, reference)
        action = random_action(game, rng)
        game.play(action)
        reference.play(action)
    assert_equal(game, reference)


# Illegal actions

PHASES = [(Phase.NEUTRAL, 4), (Phase.PLACEMENT, 17), (Phase.MOVEMENT, 12), (Phase.MOVEMENT, 99)]
"""Positions, as (phase, number of plies played in the phase): one in each phase, and the end of the game."""


def unchanged(game: Game, before: Game) -> bool:
    return (game, game.last_action, game.passed) == (before, before.last_action, before.passed)


@pytest.mark.parametrize(("phase", "plies"), PHASES)
@pytest.mark.parametrize("num_players", [2, 3, 4])
def test_illegal_actions_are_refused_and_change_nothing(num_players: int, phase: Phase, plies: int) -> None:
    game = position_after(Options(num_players), 0, phase, plies)
    before, legal = game.copy(), set(game.legal_actions().tolist())
    for action in sorted({*range(-130, 260)} - legal):
        with pytest.raises(ValueError, match=f"action {action}"):
            game.play(action)
        assert unchanged(game, before)


@pytest.mark.parametrize(("phase", "plies"), PHASES[:3])
def test_the_error_names_the_square_and_the_phase(phase: Phase, plies: int) -> None:
    game = position_after(Options(2), 0, phase, plies)
    for action in sorted({*range(122)} - set(game.legal_actions().tolist())):
        with pytest.raises(ValueError, match=rf"\b{action_name(action)}\b.* seat {game.to_move} .*{phase.name}"):
            game.play(action)


def test_after_the_end_every_action_is_refused() -> None:
    game = position_after(Options(2), 0, *PHASES[3])
    for action in range(122):
        with pytest.raises(ValueError, match=r"game is over"):
            game.play(action)


any_integers = (
    st.integers(-5, 125)
    | st.integers()
    | st.sampled_from([2**31, 2**32, 2**63 - 1, 2**63, 2**64, 2**64 + 24, -(2**63), -(2**63) - 1, 10**30])
    | st.integers(0, 127).map(np.int8)
    | st.integers(0, 255).map(np.uint8)
    | st.integers(-(2**63), 2**63 - 1).map(np.int64)
    | st.integers(0, 2**64 - 1).map(np.uint64)
    | st.integers(-5, 125).map(np.array)
)


@given(positions(), any_integers)
def test_an_action_is_played_or_refused(position: tuple[Options, Game], action: Any) -> None:
    _, game = position
    before = game.copy()
    if int(action) in game.legal_actions().tolist():
        game.play(action)
        assert game.last_action == int(action)
        assert type(game.last_action) is int
    else:
        with pytest.raises(ValueError, match=f"action {int(action)}"):
            game.play(action)
        assert unchanged(game, before)


@pytest.mark.parametrize(
    "action",
    [
        24.0,
        np.float64(24),
        True,
        np.True_,
        "24",
        "C9",
        None,
        [24],
        (24,),
        np.array([24]),
        np.array(24.0),
        24 + 0j,
        b"24",
    ],
)
def test_an_action_is_an_integer(action: Any) -> None:
    game = Game.new(2)
    with pytest.raises(TypeError, match="integer"):
        game.play(action)
    assert game == Game.new(2)


@given(positions(), any_integers)
def test_only_stones_that_can_slide_have_a_landing_square(position: tuple[Options, Game], touched: Any) -> None:
    _, game = position
    if int(touched) in np.flatnonzero(game.movable()):
        assert 0 <= game.landing(touched) <= 120
    else:
        with pytest.raises(ValueError, match="no stone that can slide"):
            game.landing(touched)


# Options


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        *[("num_players", value, "2, 3, 4") for value in (0, 1, 5, -2, 2.0, "2", None, True, [2])],
        *[("neutral_placement", value, "'players', 'random'") for value in ("Players", "", None, 0, True, ["random"])],
        *[("turn_order", value, "'restart', 'continue'") for value in ("restarts", "", None, 1, ("restart",))],
        *[("auto_pass", value, "True") for value in (1, 0, "yes", None, 1.0, np.array([True, False]))],
    ],
)
def test_wrong_options_are_named(option: str, value: Any, allowed: str) -> None:
    options: dict[str, Any] = {"num_players": 2, option: value}
    with pytest.raises(ValueError, match=rf"{option}=.*{allowed}"):
        Game.new(**options)
    with pytest.raises(ValueError, match=rf"{option}=.*{allowed}"):
        Game.from_board(np.zeros((11, 11), np.int8), 0, **options)


def test_options_may_be_numpy_scalars() -> None:
    game = Game.new(np.int64(3), neutral_placement=np.str_("random"), auto_pass=np.False_, seed=1)
    assert game == Game.new(3, neutral_placement="random", auto_pass=False, seed=1)


def test_options_are_kept(options: Options) -> None:
    game = random_position(options, seed=0, plies=60)
    assert (game.num_players, game.turn_order, game.auto_pass) == (options[0], *options[2:])


# Copies and comparisons

COPIES: dict[str, Callable[[Game], Game]] = {
    "copy": Game.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle {protocol}": lambda game, protocol=protocol: pickle.loads(pickle.dumps(game, protocol))
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    },
}


@pytest.mark.parametrize("way", COPIES)
@given(positions())
def test_a_copy_is_equal_and_independent(way: str, position: tuple[Options, Game]) -> None:
    _, game = position
    before, twin = COPIES[way](game), COPIES[way](game)
    assert type(twin) is Game
    assert unchanged(twin, game)
    assert hash(twin) == hash(game)
    if not game.is_over:
        twin.play(random_action(twin, np.random.default_rng(0)))
        assert twin != game
        assert unchanged(game, before)


def test_options_count_in_a_comparison() -> None:
    games = [Options(*choice).new_game() for choice in ((2,), (3,), (2, "players", "continue"))]
    games += [Options(2, auto_pass=False).new_game()]
    assert len(set(games)) == 4
    assert games[0] == Game.new(2)
    assert games[0] != "a game"


def test_equal_positions_reached_in_two_ways_are_equal() -> None:
    one, other = Game.new(2), Game.new(2)
    for first, second in zip((24, 27, 30), (30, 27, 24), strict=True):
        one.play(first)
        other.play(second)
    assert one == other
    assert hash(one) == hash(other)
    assert one.last_action != other.last_action


def test_equality_ignores_old_contents_of_the_memory() -> None:
    dirty = np.frombuffer(bytearray(b"\xff" * STATE_DTYPE.itemsize), STATE_DTYPE)
    game = Game(dirty)
    restart_games(game.records, np.zeros(1, np.int64), option_codes(load_variant("ninetka"), 1), np.zeros(1, np.uint64))
    assert game == Game.new(2)


def test_the_board_is_a_read_only_view() -> None:
    game = Game.new(2)
    board = game.board
    assert (board.shape, board.dtype) == ((11, 11), np.int8)
    with pytest.raises(ValueError, match="read-only"):
        board[2, 2] = 5
    game.play(square(2, 2))
    assert board[2, 2] == NEUTRAL_STONE


@pytest.mark.parametrize("ask", ["legal_mask", "legal_actions", "counts", "section_owners", "scores", "movable"])
def test_answers_are_fresh_arrays(ask: str) -> None:
    game = random_position(Options(3), seed=0, plies=60)
    before, answer = game.copy(), getattr(game, ask)()
    expected = answer.copy()
    answer[:] = 1 - answer.astype(answer.dtype) if answer.dtype != np.bool_ else ~answer
    assert (getattr(game, ask)() == expected).all()
    assert game == before


def test_shapes_and_dtypes() -> None:
    game = random_position(Options(3), seed=0, plies=60)
    assert (game.counts().shape, game.section_owners().shape, game.scores().shape) == ((3, 9), (9,), (3,))
    assert (game.legal_mask().shape, game.legal_mask().dtype) == ((122,), np.int8)
    assert game.legal_actions().dtype == np.int64
    assert {type(value) for value in (game.to_move, game.ply, game.winner(), game.num_players)} == {int}
    assert {type(value) for value in (game.is_over, game.auto_pass)} == {bool}
    assert repr(game) == f"<Game of 3: MOVEMENT, ply 60, seat {game.to_move} to move>"


# Random neutral stones

CRITICAL = {3: 16.27, 5: 20.52, 8: 26.12}
"""Chi-square at p = 0.001 by degrees of freedom."""


def test_random_neutrals_are_uniform_over_the_legal_squares_of_each_section() -> None:
    games = 3600
    drawn = sum((random_neutrals(seed) for seed in range(games)), np.zeros(121))
    legal = np.flatnonzero(drawn)
    assert legal.tolist() == Game.new(2).legal_actions().tolist()
    for section in range(9):
        counts = drawn[legal[SECTION[legal] == section]]
        expected = games / len(counts)
        assert ((counts - expected) ** 2 / expected).sum() < CRITICAL[len(counts) - 1]


def random_neutrals(seed: int) -> npt.NDArray[np.bool_]:
    game = Game.new(2, neutral_placement="random", seed=seed)
    return np.asarray(game.board.ravel() == NEUTRAL_STONE)


def test_sections_are_drawn_independently() -> None:
    pairs = np.zeros((4, 4))
    for seed in range(1600):
        neutrals = np.flatnonzero(random_neutrals(seed))
        first, last = neutrals[SECTION[neutrals] == 0], neutrals[SECTION[neutrals] == 8]
        pairs[[24, 25, 35, 36].index(first[0]), [84, 85, 95, 96].index(last[0])] += 1
    assert ((pairs - 100) ** 2 / 100).sum() < 37.7  # p = 0.001 with 15 degrees of freedom


def test_random_neutrals_follow_the_seed() -> None:
    games = [Game.new(3, neutral_placement="random", seed=seed) for seed in (7, 7, 8)]
    assert games[0] == games[1] != games[2]
    assert (games[0].phase, games[0].to_move, games[0].ply) == (Phase.PLACEMENT, 0, 9)


def test_without_a_seed_games_differ() -> None:
    assert len({Game.new(2, neutral_placement="random") for _ in range(20)}) > 10


# The state and the compiled entry points


def test_a_state_is_small() -> None:
    assert STATE_DTYPE.itemsize <= 512


def entries() -> dict[str, Any]:
    """Return the private compiled functions of the two modules `game`, by name. Only Python code calls them."""
    found = {**vars(ninetka_env.core.game), **vars(ninetka_env.games.ninetka.game)}.items()
    return {name: entry for name, entry in found if name.startswith("_") and hasattr(entry, "signatures")}


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_entries_are_compiled_once() -> None:
    use_all_entries([Game.from_board(random_position(Options(2), seed=0, plies=45).board, 0, 2)])
    before = {name: entry.signatures for name, entry in entries().items()}  # other tests may have compiled more
    use_all_entries(games_with_various_layouts())
    assert len(before) >= 7
    assert all(before.values())
    assert {name: entry.signatures for name, entry in entries().items()} == before


def games_with_various_layouts() -> list[Game]:
    batch = np.zeros(7, STATE_DTYPE)
    for index in range(7):
        batch[index] = random_position(Options(2), seed=index, plies=45).records[0]
    games = [Game(batch[3:4]), Game(batch[::3][2:3]), pickle.loads(pickle.dumps(Game(batch[:1])))]
    turned = Game.from_board(np.asfortranarray(games[0].board), np.int8(0), np.int64(2), auto_pass=np.True_)
    return [*games, turned]


def use_all_entries(games: list[Game]) -> None:
    for game in games:
        for convert in (int, np.int8, np.uint8, np.int64, np.uint64, np.array):
            game.play(convert(game.legal_actions()[0]))
        game.landing(np.flatnonzero(game.movable())[0])
        assert not game.is_over
        assert game.ply == 51
        assert game.winner() in (0, 1)
        assert game.scores().sum() <= 9
        assert abs(game.returns("score").sum()) < 1e-6
        assert game.stage == Phase.MOVEMENT
    for action in (2**31, 2**63, 2**64, -(2**70), np.uint64(2**63)):
        with pytest.raises(ValueError, match="illegal"):
            games[0].play(action)
