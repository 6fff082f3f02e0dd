"""Test the tables of the board, each against an independent formula, and the symmetries of the game."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ninetka.positions import Options, observe, random_action, square
from ninetka.reference import direction_inward, is_edge, is_inner, may_hold_neutral, next_inward
from scale import Scaled

from ninetka_env.games.ninetka import geometry
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import (
    ACTION_SYMMETRIES,
    ADJACENT_SLOTS,
    ALL_NEUTRALS,
    ALL_SLOTS,
    COLUMN_LINE,
    EDGE,
    ENTRY_SQUARE,
    INNER,
    INVERSE_SYMMETRY,
    LANDING_PLACE,
    LINE_SQUARES,
    NEUTRAL_SQUARE,
    PASS,
    ROW_LINE,
    SECTION,
    SECTION_NEUTRALS,
    SLOT_END,
    SLOT_LINE,
    SLOT_SQUARE,
    SQUARE_NEUTRAL,
    SQUARE_SLOT,
    SYMMETRIES,
    action_index,
    action_name,
    square_index,
    square_name,
)

SQUARES = [(row, col) for row in range(11) for col in range(11)]
SLOTS = range(36)


def ones(bits: int) -> list[int]:
    return [place for place in range(64) if int(bits) >> place & 1]


# Tables


def test_tables_are_read_only() -> None:
    tables = [name for name, table in vars(geometry).items() if isinstance(table, np.ndarray) and name.isupper()]
    assert len(tables) > 15
    assert [name for name in tables if getattr(geometry, name).flags.writeable] == []


def test_inner_and_edge_squares() -> None:
    assert INNER.tolist() == [is_inner(sq) for sq in SQUARES]
    assert EDGE.tolist() == [is_edge(sq) for sq in SQUARES]
    assert np.flatnonzero(~INNER & ~EDGE).tolist() == [0, 10, 110, 120]


def test_sections_count_in_reading_order() -> None:
    drawn = np.repeat(np.repeat(np.arange(9).reshape(3, 3), 3, axis=0), 3, axis=1)
    assert SECTION.reshape(11, 11)[1:10, 1:10].tolist() == drawn.tolist()
    assert (SECTION[~INNER] == -1).all()


def test_slots_count_the_edge_squares() -> None:
    assert SLOT_SQUARE.tolist() == [square(*sq) for sq in SQUARES if is_edge(sq)]
    assert [SQUARE_SLOT[s] for s in SLOT_SQUARE] == list(SLOTS)
    assert (SQUARE_SLOT[~EDGE] == -1).all()
    assert ones(ALL_SLOTS) == list(SLOTS)


def test_lines() -> None:
    rows = [[square(row, col) for col in range(1, 10)] for row in range(1, 10)]
    columns = [[square(row, col) for row in range(1, 10)] for col in range(1, 10)]
    assert LINE_SQUARES.tolist() == rows + columns


def test_two_lines_cross_in_an_inner_square() -> None:
    for row, col in SQUARES:
        here = square(row, col)
        if is_inner((row, col)):
            assert LINE_SQUARES[ROW_LINE[here], COLUMN_LINE[here] - 9] == here
            assert LINE_SQUARES[COLUMN_LINE[here], ROW_LINE[here]] == here
        else:
            assert ROW_LINE[here] == COLUMN_LINE[here] == -1


@pytest.mark.parametrize("slot", SLOTS)
def test_the_line_that_a_slot_slides_along(slot: int) -> None:
    edge = divmod(int(SLOT_SQUARE[slot]), 11)
    down, right = direction_inward(edge)
    way = [square(edge[0] + step * down, edge[1] + step * right) for step in range(1, 10)]
    line = LINE_SQUARES[SLOT_LINE[slot]].tolist()
    assert way == (line if SLOT_END[slot] == 0 else line[::-1])
    assert ENTRY_SQUARE[slot] == square(*next_inward(edge))


@given(st.integers(0, 511))
def test_landing_places(occupied: int) -> None:
    line = "".join("x" if occupied >> place & 1 else "." for place in range(9))
    free_from_start = len(line) - len(line.lstrip("."))
    free_from_end = len(line) - len(line.rstrip("."))
    assert LANDING_PLACE[0, occupied] == free_from_start - 1
    assert LANDING_PLACE[1, occupied] == (9 - free_from_end if free_from_end else -1)


def test_adjacent_slots() -> None:
    blocked: dict[int, list[int]] = {s: [] for s in range(121)}
    for slot in SLOTS:
        blocked[square(*next_inward(divmod(int(SLOT_SQUARE[slot]), 11)))].append(slot)
    assert {s: ones(ADJACENT_SLOTS[s]) for s in range(121)} == blocked
    two = [[divmod(int(SLOT_SQUARE[slot]), 11) for slot in slots] for slots in blocked.values() if len(slots) == 2]
    assert two == [[(0, 1), (1, 0)], [(0, 9), (1, 10)], [(9, 0), (10, 1)], [(9, 10), (10, 9)]]


def test_neutral_squares() -> None:
    allowed = [square(*sq) for sq in SQUARES if may_hold_neutral(sq)]
    assert NEUTRAL_SQUARE.tolist() == allowed
    assert SQUARE_NEUTRAL.tolist() == [allowed.index(s) if s in allowed else -1 for s in range(121)]
    assert ones(ALL_NEUTRALS) == list(range(49))
    for section in range(9):
        inside = [SECTION[s] == section for s in allowed]
        assert ones(SECTION_NEUTRALS[section]) == np.flatnonzero(inside).tolist()
    assert [len(ones(bits)) for bits in SECTION_NEUTRALS] == [4, 6, 4, 6, 9, 6, 4, 6, 4]


# Symmetries


@pytest.mark.parametrize("k", range(8))
def test_what_each_symmetry_does(k: int) -> None:
    old = np.arange(121)
    new = np.empty_like(old)
    new[SYMMETRIES[k]] = old
    expected = old.reshape(11, 11)
    expected = expected.T if k & 4 else expected
    expected = expected[::-1] if k & 2 else expected
    expected = expected[:, ::-1] if k & 1 else expected
    assert (new.reshape(11, 11) == expected).all()


def test_the_symmetries_are_the_dihedral_group_of_the_square() -> None:
    group = {tuple(symmetry) for symmetry in SYMMETRIES.tolist()}
    assert len(group) == 8
    assert SYMMETRIES[0].tolist() == list(range(121))
    for first in SYMMETRIES:
        assert {tuple(second[first].tolist()) for second in SYMMETRIES} == group
    quarter_turns = [k for k in range(8) if (SYMMETRIES[k][SYMMETRIES[k]] != SYMMETRIES[0]).any()]
    assert len(quarter_turns) == 2


@pytest.mark.parametrize("k", range(8))
def test_each_symmetry_can_be_undone(k: int) -> None:
    assert SYMMETRIES[INVERSE_SYMMETRY[k]][SYMMETRIES[k]].tolist() == list(range(121))
    assert SYMMETRIES[k][SYMMETRIES[INVERSE_SYMMETRY[k]]].tolist() == list(range(121))


def test_actions_turn_with_their_squares() -> None:
    assert (ACTION_SYMMETRIES[:, :PASS] == SYMMETRIES).all()
    assert (ACTION_SYMMETRIES[:, PASS] == PASS).all()


def test_a_turned_game_is_the_same_game(options: Options, scaled: Scaled) -> None:
    """The symmetries commute with play, legal actions and observations."""
    for seed in range(scaled(2)):
        rng = np.random.default_rng(seed)
        game = options.new_game(seed)
        twins = [options.from_board(turned(game.board.ravel(), k).reshape(11, 11), 0) for k in range(8)]
        while not game.is_over:
            assert_same_game(game, twins)
            action = random_action(game, rng)
            game.play(action)
            for k in range(8):
                twins[k].play(ACTION_SYMMETRIES[k, action])
        assert_same_game(game, twins)


def turned(values: npt.NDArray[np.int8], k: int, table: npt.NDArray[np.int16] = SYMMETRIES) -> npt.NDArray[np.int8]:
    """Apply symmetry `k` to an array whose last axis is squares, or actions if `table` is `ACTION_SYMMETRIES`."""
    new = np.empty_like(values)
    new[..., table[k]] = values
    return new


def assert_same_game(game: Game, twins: list[Game]) -> None:
    viewer = game.ply % game.num_players
    mask, planes = game.legal_mask(), observe(game, viewer).reshape(-1, 121)
    for k, twin in enumerate(twins):
        assert (twin.to_move, twin.phase, twin.passed) == (game.to_move, game.phase, game.passed)
        assert (twin.is_over, twin.winner(), twin.ply) == (game.is_over, game.winner(), game.ply)
        assert (twin.board.ravel() == turned(game.board.ravel(), k)).all()
        assert (twin.legal_mask() == turned(mask, k, ACTION_SYMMETRIES)).all()
        assert (observe(twin, viewer).reshape(-1, 121) == turned(planes, k)).all()
        assert twin.scores().tolist() == game.scores().tolist()


# Names


@pytest.mark.parametrize(
    ("name", "row", "col"), [("A10", 1, 0), ("K1", 10, 10), ("A11", 0, 0), ("B11", 0, 1), ("C9", 2, 2), ("K10", 1, 10)]
)
def test_square_names(name: str, row: int, col: int) -> None:
    """Columns are A..K from the left, rows 1..11 from the bottom."""
    assert square_name(square(row, col)) == name
    assert square_index(name) == square_index(name.lower()) == square(row, col)


def test_names_round_trip() -> None:
    names = [action_name(action) for action in range(122)]
    assert len(set(names)) == 122
    assert names[PASS] == "pass"
    assert [action_index(name) for name in names] == list(range(122))


@pytest.mark.parametrize(
    "name",
    [
        *("", "A", "7", "L1", "@1", "A0", "A12", "A01", "A-1", "A+1", "A1 ", " A1", "A1.0", "1A", "AB1", "Pass"),
        *("A\u00b2", "A\u0661", "\u01315"),  # a superscript 2, an Arabic 1, a dotless i
    ],
)
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no square"):
        square_index(name)
    with pytest.raises(ValueError, match="no square"):
        action_index(name)


def test_pass_is_no_square() -> None:
    with pytest.raises(ValueError, match="no square 'pass'"):
        square_index("pass")


@given(st.text("ABIKLabikl0123456789+-. ", max_size=4))
def test_a_text_is_a_square_or_refused(text: str) -> None:
    try:
        index = square_index(text)
    except ValueError:
        return
    assert square_name(index) == text.upper()
