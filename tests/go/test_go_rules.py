"""The rules of Go: lock-step with the slow reference, worked examples, and properties of whole games."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from go.go_helpers import assert_equal, choose, from_picture, is_legal, play_all, play_in_lock_step, reference_of
from go.reference import ReferenceGame
from go.tiny import solve
from numba import config

from ninetka_env.core.jit import jit
from ninetka_env.core.random_streams import make_streams
from ninetka_env.core.verbs import forced_action, is_over, playout, random_action, write_choices
from ninetka_env.games.go.choices import is_eye
from ninetka_env.games.go.game import Game
from ninetka_env.games.go.geometry import action_symmetries, point_name, symmetries
from ninetka_env.games.go.rules import KO_RULES, SCORINGS

# In lock-step with the reference

COMPILED = [
    *({"size": 3, "scoring": scoring, "max_plies": 60} for scoring in SCORINGS),
    *({"size": 9, "scoring": scoring, "komi": 6.5} for scoring in SCORINGS),
    {"size": 9, "handicap": 4, "allow_resign": True},
    *({"size": 9, "ko": ko} for ko in KO_RULES[1:]),
]
UNCOMPILED = [
    {
        "size": size,
        "komi": 0.5 * size,
        "ko": ko,
        "scoring": SCORINGS[(size + place) % 3],
        "max_plies": min(4 * size * size, 120),
    }
    for size in (2, 3, 4, 5, 6, 7, 8, 13)
    for place, ko in enumerate(KO_RULES)
    if size < 5 or place == size % 3  # boards repeat mainly on small sizes
]


def label(options):
    return "-".join(f"{value}" for value in options.values())


@pytest.mark.parametrize("options", UNCOMPILED if config.DISABLE_JIT else COMPILED, ids=label)
def test_lock_step_with_the_reference(options):
    """With the compiler, only two sizes are tested, because compilation takes ten seconds per dtype."""
    points = options["size"] ** 2
    for seed in range(max(1, 30 // points)):
        play_in_lock_step(options, seed, assert_equal, every=1 + points // 16)


@pytest.mark.exhaustive
@pytest.mark.skipif(config.DISABLE_JIT, reason="needs the compiler")
def test_lock_step_on_the_largest_board():
    play_in_lock_step({"size": 19, "max_plies": 500}, 0, assert_equal, every=100)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", ["NUMBA_BOUNDSCHECK", "NUMBA_DISABLE_JIT"])
def test_the_rules_hold_with_bounds_checks_and_without_the_compiler(mode):
    """Compiled code that reads past the end of an array returns garbage without an error; these modes raise."""
    here = Path(__file__).parent
    small = "lock_step_with and (3-area or 3-simple-standard)"
    which = {"NUMBA_BOUNDSCHECK": small, "NUMBA_DISABLE_JIT": "lock_step"}[mode]
    wraps_around = "ignore:overflow encountered:RuntimeWarning:ninetka_env.core.random_streams"
    command = [sys.executable, "-m", "pytest", "-qx", "-o", "addopts=", "-p", "no:cacheprovider", "--noconftest"]
    path = os.pathsep.join([str(here.parents[1]), str(here.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [*command, "-W", wraps_around, "test_go_rules.py", "test_go_observation.py", "-k", which],
        cwd=here, env=os.environ | {mode: "1", "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


# Worked examples

KO = """
6 . . . X O . . . .
5 . . X O . O . . .
4 . . . X O . . . .
3 . . . . . . . . .
2 . . . . . . . . .
1 . . . . . . . . .
"""


@pytest.mark.parametrize("ko", KO_RULES)
def test_a_stone_taken_in_a_ko_may_not_be_taken_back_at_once(ko):
    game = play_all(from_picture(KO, ko=ko), "E5")
    assert game.captured().tolist() == [1, 0]
    assert not is_legal(game, "D5")
    assert [point_name(point, 9) for point in game.ko_points()] == ["D5"]
    play_all(game, "A1 J9 D5")
    assert game.captured().tolist() == [1, 1]
    assert not is_legal(game, "E5")


def test_a_pass_lifts_the_ko():
    assert is_legal(play_all(from_picture(KO), "E5 pass A1"), "D5")
    assert play_all(from_picture(KO), "E5 pass pass").is_over


def test_snapback_is_no_ko():
    game = from_picture("""
3 X X X . . . . . .
2 O O O X . . . . .
1 . . O X . . . . .
""")
    play_all(game, "B1 A1")
    assert game.captured().tolist() == [0, 1]
    assert game.ko_points().size == 0
    play_all(game, "B1")
    assert game.captured().tolist() == [5, 1]
    assert not game.board[:2, :3].ravel()[[0, 2, 3, 4, 5]].any()


SUICIDE = """
9 . O . . . . . . .
8 O . . . . . . . .
7 . . . . . . . . .
6 . . . . . . . . .
5 . . . . . . . . .
4 . . . . . . . . .
3 . . . . . . . . .
2 O O . . . . . . .
1 X . O . . . . . .
"""


def test_suicide_of_one_and_of_several_stones():
    black, white = from_picture(SUICIDE), from_picture(SUICIDE, to_move=1)
    assert not is_legal(black, "A9")
    assert not is_legal(black, "B1")
    assert is_legal(white, "A9")
    assert play_all(white, "B1").captured().tolist() == [0, 1]
    assert white.board[0].tolist() == [0, 2, 2, 0, 0, 0, 0, 0, 0]


def test_captures_come_before_suicide_and_take_two_chains():
    game = play_all(from_picture("3 X . . . . . . . .\n2 O X . . . . . . .\n1 . O X . . . . . ."), "A1")
    assert game.captured().tolist() == [2, 0]
    assert game.ko_points().size == 0
    assert not is_legal(game, "A2")
    assert not is_legal(game, "B1")


def test_seki():
    game = from_picture("3 X X X X X X X X X\n2 O O O O O O O O X\n1 O . X X X X . O X", komi=7)
    play_all(game, "pass pass")
    assert game.is_over
    assert game.scores().tolist() == [69, 17]
    assert (game.winner(), game.result()) == (0, "B+52")
    assert np.flatnonzero(game.owners() == -1).tolist() == [1, 6]


TRIPLE_KO = """
9 X O . O . . . . .
8 . X O . . . . . .
7 . . . . . . . . .
6 . . . . . . . . .
5 . . . . . . . . .
4 . . . . . . . . .
3 . . . . . . . . .
2 . X O . . . X O .
1 X . X O . X O . O
"""
ROUND = "C9 B1 H1 B9 C1 G1"


def test_triple_ko_repeats_until_the_limit():
    game = from_picture(TRIPLE_KO, max_plies=36)
    before = game.board.copy()
    for lap in range(6):
        assert not game.is_over
        play_all(game, ROUND)
        assert (game.board == before).all()
        assert game.captured().tolist() == [3 * (lap + 1)] * 2
    assert game.is_over


@pytest.mark.parametrize("ko", KO_RULES[1:])
def test_superko_ends_the_triple_ko(ko):
    game = play_all(from_picture(TRIPLE_KO, ko=ko), ROUND[:-3])
    assert not is_legal(game, "G1")
    assert is_legal(game, "pass")
    with pytest.raises(ValueError, match="superko"):
        play_all(game, "G1")


@pytest.mark.parametrize("ko", KO_RULES)
def test_captures_and_a_pass_match_the_reference(ko):
    """White captures four stones, then one stone, and Black passes. Moves that have become illegal are skipped."""
    game = from_picture("3 O O O . . . . . .\n2 X X O O . . . . .\n1 . X X O . . . . .", to_move=1, ko=ko)
    reference = reference_of(game)
    for name in ("A1", "A2", "B2", "pass", "A1", "B1", "A2"):
        if is_legal(game, name):
            play_all(game, name)
            reference.play(game.action_index(name))
        assert_equal(game, reference)


@pytest.mark.parametrize("ko", KO_RULES)
def test_sending_two_returning_one(ko):
    """White captures two stones; taking one back at B1 repeats the first board, but with the other seat to move."""
    game = play_all(from_picture("2 O O X . . . . . .\n1 . X . X . . . . .", ko=ko), "A1 C1")
    assert is_legal(game, "B1") == (ko != "positional")


def test_jigo():
    board = np.ones((9, 9), np.int8)
    board.flat[44:] = 2
    board.flat[[0, 80]] = 0
    game = play_all(Game.from_board(board), "pass pass")
    assert game.scores().tolist() == [44, 44]
    assert (game.winner(), game.result()) == (-1, "0")
    for reward in ("win", "score"):
        assert game.returns(reward).tolist() == [0, 0]


SHEET = (
    "E5 J2 J1 H1 E1 A1 A2 A9 B1 F5 A8 pass B9 F1 E2 F2 E3 F3 E4 F4 E6 F6 E7 F7 E8 F8 E9 F9 C3 pass C7 G7 B5 G3 D5 H5 "
    "C5 pass pass"
)


@pytest.mark.parametrize(
    ("scoring", "scores", "result"),
    [("area", [45, 43], "B+2"), ("document", [47, 44], "B+3"), ("territory", [29, 30], "W+1")],
)
def test_three_ways_to_count_one_board(scoring, scores, result):
    game = play_all(Game.new(scoring=scoring), SHEET)
    assert game.is_over
    assert game.ply == 39
    assert game.captured().tolist() == [2, 1]
    assert [(game.board == colour).sum() for colour in (1, 2)] == [18, 14]
    assert game.scores().tolist() == scores
    assert game.result() == result
    assert game.returns().tolist() == ([1, -1] if result[0] == "B" else [-1, 1])
    lead = np.float32((scores[0] - scores[1]) / 81)
    assert game.returns("score").tolist() == [lead, -lead]


def test_edges_of_the_rules():
    assert play_all(Game.new(), "pass pass").scores().tolist() == [0, 7]
    assert play_all(Game.new(), "E5 pass pass").scores().tolist() == [81, 7]
    one = play_all(Game.new(komi=-81), "E5 pass pass")
    assert one.returns("score").tolist() == [1, -1]
    game = Game.new()
    game.resign(0)
    assert (game.winner(), game.result(), game.legal_mask().sum()) == (1, "W+R", 0)


@pytest.mark.parametrize(
    ("stones", "points"), [(2, "C3 G7"), (3, "C3 G7 C7"), (4, "C3 G7 C7 G3"), (5, "C3 G7 C7 G3 E5")]
)
def test_handicap_stones_are_on_the_board_and_white_moves_first(stones, points):
    game = Game.new(handicap=stones)
    assert sorted(point_name(point, 9) for point in np.flatnonzero(game.board)) == sorted(points.split())
    assert (game.board[game.board != 0] == 1).all()
    assert (game.to_move, game.ply, game.handicap) == (1, 0, stones)


def test_the_values_of_tiny_boards():
    """The values are computed by backward induction and depend on the maximum number of plies."""
    small, larger = solve(2, 15), solve(3, 16)
    assert [small.value(plies) for plies in range(12, 16)] == [0, 1, 0, 1]
    assert [larger.value(plies) for plies in (8, 13, 14, 15, 16)] == [1, 9, 9, 9, 9]


def test_perfect_play_reaches_the_value_of_the_tiny_board():
    rng, solution = np.random.default_rng(0), solve(3, 16)
    for seed in range(20):
        game, perfect = Game.new(size=3, komi=0, max_plies=16), seed % 3
        while not game.is_over:
            record = game.records[0]
            values = solution.action_values(
                game.board.ravel().tolist(), game.to_move, int(record["ko_point"]), game.passes > 0, 16 - game.ply
            )
            assert [*values] == game.legal_actions().tolist()
            best = [action for action in values if values[action] == max(values.values())]
            game.play(int(rng.choice(best if perfect in (game.to_move, 2) else [*values])))
        lead = game.scores()[0] - game.scores()[1]
        assert lead == 9 if perfect == 2 else lead >= 9 if perfect == 0 else lead <= 9


# Choices, random actions, playouts


@jit
def _choices(games, words):
    write_choices(games[0], words)
    return forced_action(games[0])


@jit
def _draw_action(games, streams):
    return random_action(games[0], streams, 0)


@jit
def _play_out(games, streams):
    playout(games[0], streams, 0)
    return is_over(games[0])


@jit
def _eye(games, point):
    return is_eye(games[0], point)


def some_positions(count=40, **options):
    """Yield positions of random games, each with the same game in the slow reference."""
    rng = np.random.default_rng(5)
    while count:
        game, reference = Game.new(**options), ReferenceGame(**options)
        for _ in range(int(rng.integers(150))):
            if not game.is_over:
                action = choose(game, rng, passing=0.005)
                game.play(action)
                reference.play(action)
        count -= 1
        yield game, reference


def test_choices_are_the_legal_actions():
    for game, _ in some_positions(ko="positional"):
        words = np.full(2, -1, np.int64)
        assert _choices(game.records, words) == -1
        found = [63 * word + bit for word in range(2) for bit in range(63) if words[word] >> bit & 1]
        assert found == game.legal_actions().tolist()
        assert (words >= 0).all()


def test_resigning_is_legal_but_not_among_the_choices():
    game, words = Game.new(allow_resign=True), np.zeros(2, np.int64)
    _choices(game.records, words)
    assert words[1] >> (82 - 63) == 0
    assert game.legal_actions().tolist() == list(range(83))


def test_random_actions_are_uniform_and_change_nothing():
    game, _ = next(some_positions(ko="positional"))
    before, streams, legal = game.records.tobytes(), make_streams(1), game.legal_actions()
    counts = np.bincount([_draw_action(game.records, streams) for _ in range(400 * len(legal))], minlength=82)
    assert np.flatnonzero(counts).tolist() == legal.tolist()
    assert abs(counts[legal] - 400).max() < 5 * 20
    assert game.records.tobytes() == before


def test_eyes_match_the_reference():
    seen = 0
    for game, reference in some_positions():
        for point in np.flatnonzero(game.board.ravel() == 0):
            eye = reference.is_own_eye(divmod(int(point), 9))
            assert _eye(game.records, int(point)) == eye
            seen += eye
    assert seen > 20


@pytest.mark.parametrize("ko", KO_RULES)
def test_playouts_end_by_two_passes_when_only_eyes_are_left(ko):
    streams = make_streams(3)
    lengths = []
    for _ in range(20):
        game = Game.new(ko=ko, max_plies=500)
        assert _play_out(game.records, streams)
        assert game.passes == 2
        for seat in range(2):
            game.records["to_move"], game.records["passes"] = seat, 0
            reference = reference_of(game)
            assert all(reference.is_own_eye(divmod(a, 9)) for a in reference.legal_actions() if a < 81)
        lengths.append(game.ply)
    assert 95 < np.mean(lengths) < 130


def test_playouts_place_uniformly():
    """The first two placements on 3 x 3 are every ordered pair of different points equally often."""
    streams, counts = make_streams(4), np.zeros((9, 9))
    for _ in range(7200):
        game = Game.new(size=3, max_plies=2)
        _play_out(game.records, streams)
        counts[game.records["before_last"][0], game.records["last"][0]] += 1
    assert not counts.diagonal().any()
    assert abs(counts[~np.eye(9, dtype=bool)] - 100).max() < 50


# Properties


def test_symmetries_commute_with_the_rules():
    for k in range(8):
        points, actions = symmetries(9)[k], action_symmetries(9, 82)[k]
        rng, game, image = np.random.default_rng(k), Game.new(scoring="document"), Game.new(scoring="document")
        while not game.is_over:
            assert (image.board.ravel()[points] == game.board.ravel()).all()
            assert (image.legal_mask()[actions] == game.legal_mask()).all()
            assert image.scores().tolist() == game.scores().tolist()
            assert (image.owners().ravel()[points] == game.owners().ravel()).all()
            action = choose(game, rng)
            game.play(action)
            image.play(int(actions[action]))
        assert image.is_over


def test_derived_fields_follow_from_the_board():
    for game, _ in some_positions(20):
        record = game.records[0]
        empty = np.flatnonzero(game.board.ravel() == 0)
        assert sorted(record["empty"][: record["num_empty"]].tolist()) == empty.tolist()
        assert all(record["empty"][record["empty_index"][point]] == point for point in empty)
        rebuilt = Game.from_board(game.board).records[0]
        assert rebuilt["occupied_sides"].tolist() == record["occupied_sides"].tolist()
        for head in {*record["chain"][np.flatnonzero(game.board)].tolist()}:
            chain = np.flatnonzero(record["chain"] == head)
            other = rebuilt["chain"][head]
            assert np.flatnonzero(rebuilt["chain"] == other).tolist() == chain.tolist()
            assert record["stones"][head] == rebuilt["stones"][other] == len(chain)
            assert record["liberties"][head] == rebuilt["liberties"][other]
