"""`Game` of Go: options, errors, events, text, equality."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from go.go_helpers import choose, from_picture, play_all

from ninetka_env.core.batch import make_outcomes, new_games, option_codes, step_with_autoreset
from ninetka_env.core.random_streams import make_streams
from ninetka_env.core.registry import definition_of, load_variant
from ninetka_env.games.go.definition import GO
from ninetka_env.games.go.game import Game
from ninetka_env.games.go.rules import state_dtype


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 2}, "komi=7.0: expected a multiple of 0.5 from -4 to 4 on a board of size 2, such as komi=0"),
        ({"komi": 6.25}, "komi=6.25: expected a multiple of 0.5"),
        ({"komi": 82}, "komi=82.0: expected a multiple of 0.5 from -81 to 81"),
        ({"komi": float("nan")}, "komi=nan"),
        ({"komi": float("inf")}, "komi=inf"),
        ({"komi": True}, "komi=True"),
        ({"komi": "7"}, "komi='7'"),
        ({"ko": "super"}, "ko='super': expected one of 'simple', 'positional', 'situational'"),
        ({"scoring": "chinese"}, "scoring='chinese': expected one of 'area', 'document', 'territory'"),
        ({"handicap": 1}, "handicap=1: expected one of 0, 2, 3, 4, 5"),
        ({"handicap": 2, "size": 13}, "handicap=2: expected 0"),
        ({"max_plies": 0}, "max_plies=0: expected an integer of at least 1 and at most 1024"),
        ({"max_plies": 1025}, "max_plies=1025"),
        ({"size": 1}, "size=1: expected an integer of at least 2 and at most 19"),
        ({"size": 20}, "size=20"),
        ({"allow_resign": 1}, "allow_resign=1: expected one of False, True"),
        ({"planes": "pgx"}, "planes='pgx': expected one of 'standard', 'alphazero'"),
    ],
)
def test_wrong_options_are_refused_by_name(options, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 (compared below)
        Game.new(**options)
    assert message in str(error.value)


def test_specs():
    variant = load_variant("go:komi=6.5,size=13,ko=situational,allow_resign=true")
    assert (variant.options["komi"], variant.num_actions, variant.sizes.planes) == (6.5, 171, (16, 13, 13))
    assert variant.sizes.max_plies == 338
    assert load_variant(variant.spec) == variant
    assert load_variant("go:max_plies=100").sizes.max_plies == 100
    assert load_variant("go").spec == "go"
    with pytest.raises(ValueError, match="reward"):
        load_variant("go:reward=win")
    with pytest.raises(ValueError, match="komi='x': expected a multiple"):
        load_variant("go:komi=x")
    with pytest.raises(ValueError, match="max_plies"):
        load_variant("go:max_plies=many")


def test_options_are_stored_in_the_state():
    options = {
        "komi": -3.5, "ko": "situational", "scoring": "territory", "handicap": 3, "max_plies": 99, "size": 9,
        "allow_resign": True, "planes": "alphazero",
    }  # fmt: skip
    game = Game.new(**options)
    assert {name: getattr(game, name) for name in options} == options
    assert Game.new(size=3).max_plies == 18
    assert set(options) == {option.name for option in GO.options}


def test_state_dtypes_belong_to_go_and_are_small():
    for dtype in GO.dtypes:
        assert definition_of(dtype) is GO
    assert len(GO.dtypes) == 36
    assert state_dtype(9).itemsize <= 1200
    covered = sum(field[0].itemsize for field in state_dtype(9).fields.values())
    assert covered == state_dtype(9).itemsize  # no holes


def illegal_reason(game, name):
    with pytest.raises(ValueError) as error:  # noqa: PT011 (compared by the caller)
        game.play(game.action_index(name))
    return str(error.value)


def test_illegal_actions_name_point_and_reason():
    game = from_picture("3 X . . . . . . . .\n2 O X . . . . . . .\n1 . O X . . . . . .")
    assert "action 9 (A2) is illegal for Black at ply 0: the point is occupied" in illegal_reason(game, "A2")
    play_all(game, "A1")
    assert "action 9 (A2) is illegal for White at ply 1: suicide" in illegal_reason(game, "A2")
    ko = from_picture("2 X O . . . . . . .\n1 . X O . . . . . .", to_move=1)
    play_all(ko, "A1")
    assert "action 1 (B1) is illegal for Black at ply 1: ko" in illegal_reason(ko, "B1")
    for action in (-1, 82, 1 << 40):
        with pytest.raises(ValueError, match=r"expected 0\.\.81"):
            ko.play(action)
    with pytest.raises(TypeError):
        ko.play(1.0)
    play_all(ko, "pass pass")
    assert "over" in illegal_reason(ko, "A9")


def test_an_illegal_action_changes_nothing():
    game = play_all(Game.new(ko="positional"), "E5")
    before = game.records.tobytes()
    illegal_reason(game, "E5")
    assert game.records.tobytes() == before


def test_resigning_as_an_action():
    game = play_all(Game.new(allow_resign=True, komi=0), "E5")
    assert game.num_actions == 83
    game.play(82)
    assert (game.is_over, game.winner(), game.result()) == (True, 0, "B+R")
    assert game.returns("score").tolist() == [1, -1]
    assert game.scores().tolist() == [81, 0]
    assert game.legal_mask().sum() == 0
    with pytest.raises(ValueError, match="resign"):
        Game.new().action_index("resign")


def test_events():
    for reason, letter in (("resigned", "R"), ("time", "T"), ("left", "F")):
        game = play_all(Game.new(), "E5")
        game.forfeit(0, reason)
        assert (game.is_over, game.winner(), game.result()) == (True, 1, f"W+{letter}")
        assert game.returns("score").tolist() == [-1, 1]
        assert game.scores().tolist() == [81, 7]
        assert game.ko_points().size == 0
    assert Game.new().result() == "?"
    assert play_all(Game.new(komi=6.5), "pass pass").result() == "W+6.5"


def random_game(seed, plies, **options):
    rng, game = np.random.default_rng(seed), Game.new(**options)
    while not game.is_over and game.ply < plies:
        game.play(choose(game, rng))
    return game


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scoring": "document", "komi": 6.5, "max_plies": 130},
        {"ko": "situational"},
        {"handicap": 3, "planes": "alphazero", "allow_resign": True},
    ],
)
def test_text_round_trip(options):
    for seed in range(12):
        game = random_game(seed, 12 * seed, **options)
        read = Game.from_text(str(game))
        assert str(read) == str(game)
        assert (read.board == game.board).all()
        assert read == game
        assert (read.scores().tolist(), read.result()) == (game.scores().tolist(), game.result())
        if game.ko == "simple":
            assert read.legal_actions().tolist() == game.legal_actions().tolist()
        assert str(Game.from_text(str(game).split("\n")[0])) == str(game)


LINE = "go3 .X./XOX/..O B ko=- komi=7 caps=0,0 ply=5 rules=simple,area"


def test_text_of_a_position():
    game = Game.from_text(LINE)
    assert str(game) == f"{LINE}\n\n3 . X .\n2 X O X\n1 . . O\n  A B C"
    assert game.board.tolist() == [[0, 0, 2], [1, 2, 1], [0, 1, 0]]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("go3", "go20", "go20: expected a size of 2 to 19"),
        ("go3", "chess", "word 1 of the position: expected go9"),
        (".X./", ".X/", "expected 3 ranks of 3 signs"),
        ("..O", "..#", "word 2"),
        (" B ", " black ", "word 3 of the position: expected B or W"),
        ("ko=-", "ko=J9", "no point 'J9'"),
        ("ko=-", "ko=A1", "ko=A1: the last turn cannot have captured a stone there"),
        ("komi=7", "komi=10", "komi=10.0: expected a multiple of 0.5 from -9 to 9"),
        ("komi=7", "komi=0.3", "word 5"),
        ("ply=5", "ply=19", "ply=19: the game ends after 18 plies"),
        ("ply=5", "ply=2000", "ply=2000: expected at most 1024"),
        ("simple", "super", "word 8 of the position: expected rules="),
        ("area", "area more=1", "handicap=.. planes=.. resign, in this order, found 'more=1'"),
        ("ply=5 rules=simple,area", "ply=1 rules=simple,area passes=2", "passes=2: expected at most as many"),
        ("XOX/..O", "XOX/.XO", "the chain there has no liberty"),
        ("area", "area\n\n3 . . .\n2 X O X\n1 . . O\nA B C", "differs from the line"),
        ("area", "area\n\n3 . . ?\n2 X O X\n1 . . O\nA B C", "line 3: expected 3 and 3 of . X O"),
        (LINE, "", "word 1"),
    ],
)
def test_wrong_text_is_refused(old, new, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 (compared below)
        Game.from_text(LINE.replace(old, new))
    assert message in str(error.value)


def test_impossible_boards_are_refused():
    with pytest.raises(ValueError, match="A1: the chain there"):
        Game.from_board([[1, 1, 1]] * 3)
    with pytest.raises(ValueError, match="expected shape"):
        Game.from_board(np.zeros((2, 3), np.int8))
    with pytest.raises(ValueError, match="integers 0"):
        Game.from_board(np.full((3, 3), 3))
    with pytest.raises(ValueError, match="to_move=2"):
        Game.from_board(np.zeros((9, 9), int), 2)
    with pytest.raises(ValueError, match="size"):
        Game.from_board(np.zeros((9, 9), int), size=9)


def test_names():
    game = Game.new(size=19)
    for action in range(362):
        assert game.action_index(game.action_name(action)) == action
    assert [game.action_name(action) for action in (0, 8, 18, 19, 360, 361)] == ["A1", "J1", "T1", "A2", "T19", "pass"]
    assert game.action_index("t19") == 360
    for name in ("I5", "A0", "A20", "", "AA1", "A01", "U1", "resign", "A²"):
        with pytest.raises(ValueError, match=r"no point|no action"):
            game.action_index(name)


def test_copies_and_pickles_are_equal_and_independent():
    game = random_game(1, 60, ko="positional", planes="alphazero")
    for twin in (game.copy(), copy.deepcopy(game), pickle.loads(pickle.dumps(game))):
        assert twin == game
        assert hash(twin) == hash(game)
        twin.play(81)
        assert twin != game


def test_positions_reached_in_different_orders_are_equal():
    one, other = (play_all(Game.new(), moves) for moves in ("A1 J9 B1 H9 C3 G7", "B1 H9 A1 J9 C3 G7"))
    assert one == other
    assert one != play_all(Game.new(komi=6.5), "A1 J9 B1 H9 C3 G7")
    assert one == play_all(Game.new(), "A1 J9 B1 G7 C3 H9")  # with another last placement
    assert one != play_all(Game.new(), "A1 J9 B1 H9 C3 G8")
    assert one != play_all(Game.new(), "A1 J9 B1 pass C3 pass")
    assert Game.new(size=3) != Game.new()


def test_the_same_game_in_a_batch():
    """A game that restarts in the memory of a finished game keeps none of its values."""
    variant = load_variant("go:max_plies=40,planes=alphazero")
    streams, rng = make_streams(0, 2), np.random.default_rng(0)
    batch, endings, codes = new_games(variant, streams), make_outcomes(variant.dtype, 2), option_codes(variant, 2)
    assert endings.targets.shape == (2, 81)
    for _ in range(3):
        games = [Game.start(variant) for _ in range(2)]
        while not games[0].is_over:
            assert batch.tobytes() == b"".join(game.records.tobytes() for game in games)
            actions = [choose(game, rng, passing=0.0) for game in games]
            for game, action in zip(games, actions, strict=True):
                game.play(action)
            step_with_autoreset(batch, np.array(actions), codes, streams, endings)
        assert endings.winners.tolist() == [game.winner() for game in games]
        assert endings.scores.tolist() == [game.scores().tolist() for game in games]
        assert endings.targets.tolist() == [game.owners().ravel().tolist() for game in games]


def test_with_options_changes_the_options_of_a_position():
    game = play_all(Game.new(ko="positional", handicap=2, max_plies=50), "E5 D3 pass")
    other = game.with_options(komi=-1.5, scoring="document", allow_resign=True, planes="alphazero", max_plies=None)
    assert (other.komi, other.scoring, other.allow_resign, other.planes) == (-1.5, "document", True, "alphazero")
    assert (other.max_plies, other.ko, other.handicap, other.last_action) == (162, "positional", 2, game.last_action)
    options = {"komi": 7.0, "scoring": "area", "allow_resign": False, "planes": "standard", "max_plies": 50}
    assert other.with_options(**options) == game
    assert (game.with_options(max_plies=3).is_over, game.is_over) == (True, False)
    assert Game.new(size=2, komi=0).with_options(planes="alphazero").komi == 0
    for options, message in (
        ({"size": 9}, "size: expected none"),
        ({"ko": "simple"}, "ko: expected none"),
        ({"komi": 82}, "komi=82.0: expected a multiple of 0.5 from -81 to 81"),
        ({"scoring": "stones"}, "scoring='stones': expected one of 'area', 'document', 'territory'"),
    ):
        with pytest.raises(ValueError, match=message):
            game.with_options(**options)
