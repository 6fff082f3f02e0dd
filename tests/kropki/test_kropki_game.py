"""Test `Game` of Kropki: options, errors, names, text, copies, ends of games."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ninetka_env.core.registry import get_definition, load_variant
from ninetka_env.games.kropki.definition import KROPKI
from ninetka_env.games.kropki.game import Game
from ninetka_env.games.kropki.geometry import column_name, node_index, node_name
from ninetka_env.games.kropki.rules import STATE_DTYPES, state_dtype

# Options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 2}, "width=2: expected an integer of at least 3 and at most 39"),
        ({"height": 33}, "height=33: expected an integer of at least 3 and at most 32"),
        ({"width": "10"}, "width='10'"),
        ({"territory": "always"}, "territory='always': expected one of 'declared', 'immediate'"),
        ({"start": 1}, "start=1: expected one of 'empty', 'cross'"),
    ],
)
def test_wrong_options_are_refused_by_name(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Game.new(**options)


def test_unknown_options_are_refused_with_a_suggestion() -> None:
    with pytest.raises(ValueError, match=r"unknown option 'widht'.*did you mean 'width'"):
        get_definition("kropki").variant(widht=10)


def test_a_spec_is_read_and_written() -> None:
    variant = load_variant("kropki:width=12,territory=immediate,start=cross")
    assert dict(variant.options) == {"width": 12, "height": 10, "territory": "immediate", "start": "cross"}
    assert load_variant(variant.spec) == variant
    assert load_variant("kropki").spec == "kropki"


def test_the_cross_is_in_the_middle() -> None:
    board = Game.new(6, 7, start="cross").board
    assert board[2:4, 2:4].tolist() == [[1, 2], [2, 1]]
    assert (board != 0).sum() == 4
    assert Game.new(3, 3, start="cross").board[:2, :2].tolist() == [[1, 2], [2, 1]]
    assert Game.new(6, 7, start="cross").ply == 0


def test_three_dtypes_without_gaps_serve_all_sizes() -> None:
    assert [state_dtype(*sides) for sides in ((3, 3), (12, 12), (13, 3), (20, 20), (3, 21), (39, 32))] == [
        STATE_DTYPES[0], STATE_DTYPES[0], STATE_DTYPES[1], STATE_DTYPES[1], STATE_DTYPES[2], STATE_DTYPES[2],
    ]  # fmt: skip
    for dtype in STATE_DTYPES:
        assert sum(dtype.fields[name][0].itemsize for name in dtype.names) == dtype.itemsize
        assert dtype.itemsize % 8 == 0  # for words in the state, which a GPU reads only from aligned addresses
        assert dtype in KROPKI.dtypes


# Names


def test_names_of_nodes() -> None:
    assert [column_name(column) for column in (0, 25, 26, 27, 38)] == ["A", "Z", "AA", "AB", "AM"]
    for width, height in ((39, 32), (10, 10), (3, 5)):
        for node in range(width * height):
            assert node_index(node_name(node, width, height), width, height) == node
    assert node_name(0, 10, 10) == "A10"
    assert node_index("j1", 10, 10) == 99
    for name in ("K1", "A11", "A0", "A01", "11", "A", "", "ÄA1", "AA1"):
        with pytest.raises(ValueError, match=r"no node .*from A1 to J10"):
            node_index(name, 10, 10)


def test_names_of_actions_are_read_back() -> None:
    for territory in ("declared", "immediate"):
        game = Game.new(5, 4, territory=territory)
        for action in range(game.num_actions):
            assert game.action_index(game.action_name(action)) == action
    assert Game.new(5, 4).action_name(25) == "*A3"
    assert Game.new(5, 4).action_name(40) == "end"
    with pytest.raises(ValueError, match="no node"):
        Game.new(5, 4, territory="immediate").action_index("end")


# Illegal actions


def game_of(rows: str, **options: object) -> Game:
    return Game.from_board(np.array([[".XO".index(s) for s in row] for row in rows.split("/")]), **options)


def drawing_game() -> Game:
    """Return a position in which Black has just closed two chains and may draw."""
    game = game_of(".X.X./XO.OX/.X.X.")
    game.play(game.action_index("C2"))
    assert game.drawing
    return game


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("B3", r"action 1 \(B3\) is illegal for seat 0: its point is placed: play \*B2 or \*D2 or end"),
        ("*A1", r"action 25 \(\*A1\) is illegal for seat 0: nothing can be drawn there"),
        ("*C2", r"action 22 \(\*C2\) is illegal for seat 0: nothing can be drawn there"),
    ],
)
def test_illegal_actions_while_drawing_name_the_reason(name: str, reason: str) -> None:
    refuse(drawing_game(), name, reason)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("C2", r"action 7 \(C2\) is illegal for seat 1: the node is taken by black"),
        ("B2", r"action 6 \(B2\) is illegal for seat 1: the node is taken by white"),
        ("*D2", r"action 23 \(\*D2\) is illegal for seat 1: a turn begins with a point: place it first"),
        ("end", r"action 30 \(end\) is illegal for seat 1: a turn begins with a point: place it first"),
    ],
)
def test_illegal_actions_before_placing_name_the_reason(name: str, reason: str) -> None:
    game = drawing_game()
    game.play(game.action_index("*B2"))
    game.play(game.action_index("end"))
    refuse(game, name, reason)


def test_no_point_may_be_placed_inside_a_region() -> None:
    game = game_of(".XX./XO.X/.X..")
    for name in ("C1", "*B2"):
        game.play(game.action_index(name))
    refuse(game, "C2", r"action 6 \(C2\) is illegal for seat 1: the node is inside a region of black")


def test_a_core_is_drawn_by_its_lowest_point() -> None:
    game = game_of(".XX./XOOX/.X..")
    game.play(game.action_index("C1"))
    assert game.drawable().tolist() == [[-1] * 4, [-1, 17, 17, -1], [-1] * 4]
    assert game.action_index("*C2") == 17
    refuse(game, 18, r"action 18 \(\*C2\) is illegal for seat 0: that region is drawn by its lowest point, \*B2")


def test_other_integers_and_other_types_are_no_actions() -> None:
    game = Game.new(5, 4)
    for action in (-1, 41, 1 << 40):
        refuse(game, action, rf"action {action} is illegal: expected 0\.\.40")
    with pytest.raises(TypeError):
        game.play("C2")


def refuse(game: Game, action: str | int, reason: str) -> None:
    before = copy.copy(game)
    with pytest.raises(ValueError, match=reason):
        game.play(game.action_index(action) if isinstance(action, str) else action)
    assert game == before


@pytest.mark.parametrize(
    ("rows", "drawn", "node"),
    [
        (".X./X.X/.X.", ["B2"], "B2"),  # nothing to capture
        (".XX../XXOX./.XX..", ["B2", "C2"], "B2"),  # a smaller chain leaves B2 out
        (".XXX./X.XOX/.XXX.", ["B2", "D2"], "B2"),  # the region at D2 captures a point, the region at B2 none
        (".OOOO./OXXOXO/.OOOO.", ["B2", "C2", "D2", "E2"], "D2"),  # two regions that share a link
    ],
)
def test_regions_that_no_minimal_chain_encloses_are_refused(rows: str, drawn: list[str], node: str) -> None:
    board = np.array([[".XO".index(sign) for sign in row] for row in rows.split("/")])
    region, (height, width) = np.zeros_like(board), board.shape
    for name in drawn:
        region.flat[node_index(name, width, height)] = ".XO".index(rows[1])  # the seat of the first link
    with pytest.raises(ValueError, match=f"region at {node}: a region is only what the smallest chain"):
        Game.from_board(board, region)


def test_wrong_positions_are_refused() -> None:
    board = game_of(".X./XOX/.X.", to_move=1).board
    for wrong, options in (
        ("to_move=2", {"to_move": 2}),
        ("last=9", {"last": 9}),
        ("region: expected", {"region": np.zeros((3, 4), int)}),
        ("region at A3", {"region": np.ones((3, 3), int) - (board > 0)}),
        ("what can be drawn must be drawn", {"territory": "immediate"}),
        ("width=2", {"board": np.zeros((3, 2), int)}),
        ("board: expected", {"board": 3 * board}),
        ("board: expected", {"board": np.zeros(9, int)}),
    ):
        with pytest.raises(ValueError, match=wrong):
            Game.from_board(**{"board": board, **options})


# Ends


def test_resigning_and_losing_on_time() -> None:
    game = Game.new(5, 4)
    game.play(0)
    game.resign()
    assert game.is_over
    assert game.winner() == 0
    assert game.returns().tolist() == [1, -1]
    assert game.legal_actions().size == 0
    refuse(game, 3, r"action 3 \(D4\) is illegal for seat 1: the game is over")
    with pytest.raises(ValueError, match="over already"):
        game.forfeit(0)


def test_rewards_and_draws() -> None:
    game = game_of(".X./XOX/...", territory="immediate")
    game.play(game.action_index("B1"))
    assert game.winner() == 0
    assert game.returns("score").tolist() == pytest.approx([1 / 9, -1 / 9])
    assert Game.new(4, 4).winner() == -1
    assert Game.new(4, 4).returns().tolist() == [0, 0]


# Text, copies


def random_games(count: int = 12) -> list[Game]:
    rng = np.random.default_rng(8)
    games = []
    for number in range(count):
        sides = [(6, 6), (10, 4), (5, 12)][number % 3]
        game = Game.new(*sides, territory=["declared", "immediate"][number % 2], start=["empty", "cross"][number // 6])
        for _ in range(int(rng.integers(80))):
            if not game.is_over:
                game.play(int(rng.choice(game.legal_actions())))
        games.append(game)
    return games


def test_text_is_read_back() -> None:
    for game in [*random_games(), drawing_game(), Game.new(39, 32)]:
        assert Game.from_text(str(game)) == game
        assert str(Game.from_text(str(game))) == str(game)


def test_the_text_of_a_position() -> None:
    game = drawing_game()
    game.play(game.action_index("*B2"))
    assert str(game).splitlines() == [
        "Kropki  width=5  height=3  territory=declared  start=empty  to_move=black  drawing=yes  last=C2",
        "",
        "     A B C D E",
        " 3   . X . X .",
        " 2   X o X O X",
        " 1   . X . X .",
    ]


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("Kropki", "Kropka", "line 1: expected 'Kropki  width=10"),
        ("width=5", "width=50", r"line 1: 50 x 3: expected 3 x 3 to 39 x 32"),
        ("last=C2", "last=F2", r"line 1: last=F2: no node 'F2'"),
        ("last=C2", "last=A1", r"last=A1: no point stands there"),
        ("A B C", "A C B", r"line 3: expected A B C D E, found 'A C B D E'"),
        ("X o X O X", "X o X ? X", r"line 5: expected 2 and 5 signs of"),
        (" 1   . X . X .", "", r"line 6: expected a line 1, found the end of the text"),
        (" 1   . X . X .", " 1   . . . X .", r"region at B2: live points of its seat must enclose it"),
        (" 2   X o X O X", " 2   X o X . X", r"seat 0 cannot be drawing: there is nothing that it may draw"),
        (" 1   . X . X .", " 1   . X . X .\nmore", r"line 7: expected the end of the text, found 'more'"),
    ],
)
def test_wrong_text_is_refused(old: str, new: str, error: str) -> None:
    game = drawing_game()
    game.play(game.action_index("*B2"))
    with pytest.raises(ValueError, match=error):
        Game.from_text(str(game).replace(old, new))


def test_copies_and_pickles_are_independent() -> None:
    for game in random_games(4):
        for twin in (game.copy(), copy.deepcopy(game), pickle.loads(pickle.dumps(game))):
            assert twin == game
            assert twin.last_action == game.last_action
            if not game.is_over:
                twin.play(int(twin.legal_actions()[0]))
                assert twin != game


def test_positions_reached_in_different_orders_are_equal() -> None:
    one, other = Game.new(5, 5), Game.new(5, 5)
    for node in (0, 1, 12, 13, 6, 22):
        one.play(node)
    for node in (12, 13, 0, 1, 6, 22):
        other.play(node)
    assert one == other
    assert hash(one) == hash(other)


def test_several_threads_may_query_legal_actions_at_once() -> None:
    """Queries do not change the state, so threads cannot see each other's intermediate values."""
    game = drawing_game()
    expected = game.legal_actions().tolist()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: game.legal_actions().tolist(), range(2000)))
    assert found == [expected] * 2000
