"""Positions and games as text: golden files read by eye, round trips, damaged texts."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import ALL_OPTIONS, Options, any_options, positions, random_position, random_positions, seeds, square
from hypothesis import given
from hypothesis import strategies as st

from ninetka_env.api.record_files import read_records
from ninetka_env.api.records import GameRecord, format_record
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import PASS, action_name, square_index
from ninetka_env.games.ninetka.rules import Phase
from ninetka_env.games.ninetka.text import MAX_LINE, describe_last, last_landing, read_game, write_game

GOLDEN = Path(__file__).parent / "golden"


def played(options: Options, seed: int = 0, tags: dict[str, str] | None = None) -> GameRecord:
    """Record a random game."""
    start = options.new_game(seed)
    neutrals = np.flatnonzero(start.board == 5)
    actions = [position.last_action for position in random_positions(options, seed)][1:]
    return GameRecord.of(actions, **options._asdict(), neutrals=neutrals, tags=tags)


def counted(options: Options, neutrals: str = "", **tags: str) -> GameRecord:
    """Record a game that draws no random numbers: each ply plays the legal action number 7 * ply, counted round."""
    drawn = [square_index(name) for name in neutrals.split()]
    game = GameRecord(options.num_players, (), (), 0, *options[1:], neutrals=tuple(drawn)).start()
    actions = []
    while not game.is_over:
        legal = game.legal_actions()
        actions.append(int(legal[7 * len(actions) % len(legal)]))
        game.play(actions[-1])
    return GameRecord.of(actions, **options._asdict(), neutrals=drawn, tags=tags)


def read_text(text: str) -> list[GameRecord]:
    return list(read_records(io.StringIO(text)))


def words(text: str) -> list[str]:
    """Return what a text says: case and the spaces between words do not count."""
    return text.upper().split()


# Golden files


def worked_example() -> Game:
    """Return the position of the worked example of the rules, after the slides of its first row."""
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


def test_position_is_written_as_people_drew_it():
    assert str(worked_example()) == (GOLDEN / "position.txt").read_text().rstrip("\n")
    assert Game.from_text((GOLDEN / "position.txt").read_text()) == worked_example()


def golden_records() -> list[GameRecord]:
    return [
        counted(Options(2), yellow="maxn", blue="random", date="2024-05-01"),
        counted(Options(4, "random", "continue", auto_pass=False), "C9 F8 I9 D6 E5 I5 C4 G3 H3"),
        counted(Options(3), seed="7"),
    ]


def test_games_are_written_as_people_read_them():
    text = (GOLDEN / "games.txt").read_text()
    assert "\n".join(map(format_record, golden_records())) == text
    assert list(read_records(GOLDEN / "games.txt")) == golden_records()
    assert "(pass)" in text
    assert " pass" in text


# Round trips


@given(positions())
def test_position_survives_text(drawn):
    _, game = drawn
    assert Game.from_text(str(game)) == game
    assert str(Game.from_text(str(game))) == str(game)


def test_every_position_of_a_game_survives_text(options):
    for game in random_positions(options, seed=5):
        assert read_game(write_game(game)) == game


def test_position_is_read_as_the_class_that_asks():
    class Mine(Game):
        __slots__ = ()

    assert type(Mine.from_text(str(Game.new(3)))) is Mine


def test_spaces_and_blank_lines_are_free():
    game = random_position(Options(2), 1, 60)
    loose = "\n\n".join(f"   {line.replace(' ', '  ')} " for line in str(game).split("\n"))
    assert Game.from_text(loose) == game


@given(
    any_options, seeds, st.dictionaries(st.from_regex(r"[a-z][a-z0-9_]{3,9}x", fullmatch=True), st.text(max_size=20))
)
def test_game_survives_text(options, seed, tags):
    tags = {key: text.strip() for key, text in tags.items() if text.isprintable()}
    record = played(options, seed, tags)
    assert read_text(format_record(record)) == [record]


def test_replay_passes_through_every_position(options):
    record = played(options, 3)
    games = list(record.replay())
    assert [str(game) for game in games] == [str(game) for game in random_positions(options, 3)]
    assert str(games[-1]) == str(record.final())
    assert record.scores == tuple(games[-1].scores())
    assert record.winner == games[-1].winner()


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
            assert describe_last(after).endswith(": pass")
        else:
            assert last_landing(after) == game.landing(action)
            assert f"{action_name(action)} to {action_name(game.landing(action))}" in describe_last(after)


def test_first_and_last_moves_are_described():
    game = Game.new(2)
    assert (last_landing(game), describe_last(game)) == (None, "")
    game.play(square(2, 2))
    assert (last_landing(game), describe_last(game)) == (square(2, 2), "neutral stone: C9")
    game = random_position(Options(3), 0, 10)
    assert describe_last(game) == f"yellow: {action_name(game.last_action)}"


# Damaged texts

DAMAGE = [chr(code) for code in range(32, 127)] + ["\n", "\t", "\r", "\0", "\x85", "\u2028", "é", "9", "\udc80", " \n"]


def damaged(text: str, rng: np.random.Generator) -> str:
    """Change, insert or delete a character or a line, exchange two, or cut the text off."""
    place, sign = int(rng.integers(len(text))), DAMAGE[rng.integers(len(DAMAGE))]
    lines = text.splitlines(keepends=True)
    row = int(rng.integers(len(lines)))
    return [
        text[:place] + sign + text[place + 1 :],
        text[:place] + sign + text[place:],
        text[:place] + text[place + 1 :],
        text[:place],
        text[:place] + text[place + 1 : place + 2] + text[place : place + 1] + text[place + 2 :],
        "".join(lines[:row] + lines[row + 1 :]),
        "".join([*lines[:row], lines[row], *lines[row:]]),
        re.sub(r"\b([A-K])(\d)\b", r"\g<1>1\2", text, count=1),
    ][rng.integers(8)]


def misread(text: str, retell: Callable[[str], str], seed: int, times: int) -> list[str]:
    """Damage a text many times; return what `retell` neither refuses with a line number nor tells as it is written."""
    rng = np.random.default_rng(seed)
    wrong = []
    for _ in range(times):
        bad = damaged(text, rng)
        try:
            if words(retell(bad)) != words(bad):
                wrong.append(bad)
        except ValueError as error:
            if not re.search(r"line \d+", str(error)):
                wrong.append(f"{error}: {bad}")
    return wrong


def retell_games(text: str) -> str:
    return "\n".join(map(format_record, read_text(text)))


def retell_game(text: str) -> str:
    return str(Game.from_text(text))


def test_damaged_games_are_refused_or_read_as_they_are_written():
    for seed, options in enumerate(ALL_OPTIONS[::5]):
        text = format_record(played(options, seed, {"yellow": "a b"})) + "\n" + format_record(played(options, seed + 1))
        assert misread(text, retell_games, seed, 400) == []


def test_damaged_positions_are_refused_or_read_as_they_are_written():
    for seed, options in enumerate(ALL_OPTIONS):
        text = str(random_position(options, seed, 4 * seed))
        assert misread(text, retell_game, seed, 60) == []


def test_careless_readers_would_be_noticed():
    text = format_record(played(Options(2), 1))
    original = retell_games(text)

    def first_lines_only(bad: str) -> str:
        return retell_games("\n".join(bad.split("\n")[:12]) + "\n")

    def without_passes(bad: str) -> str:
        return original if bad.count("(pass)") != text.count("(pass)") else retell_games(bad)

    def at_the_first_number(bad: str) -> str:
        return retell_games(bad) if bad.startswith("9tka record") else str(bad[99999])

    assert misread(text, lambda _: original, 0, 200)
    assert misread(text + "\n" + text, first_lines_only, 0, 200)
    assert misread(text, without_passes, 0, 2000)
    with pytest.raises(IndexError):
        misread(text, at_the_first_number, 0, 2000)


ONE_GAME, DRAWN_GAME = (GOLDEN / "games.txt").read_text().split("\n\n")[:2]
ONE_GAME, DRAWN_GAME = ONE_GAME + "\n", DRAWN_GAME + "\n"


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("format 1", "format 2", 1, "expected '9tka record, format 1'"),
        ("players: 2", "players: 5", 2, "players: '5': expected one of 2, 3, 4"),
        ("restart", "sometimes", 4, "turn_order: 'sometimes': expected one of restart, continue"),
        ("turn_order: restart\n", "", 8, "lacks 'turn_order: restart|continue'"),
        ("date:", "yellow:", 8, "'yellow' is given twice"),
        ("date: 2024-05-01", "When it was", 8, "expected 'key: text' or 'neutral: ...'"),
        ("\nplacement:", "\nplacements:", 10, "expected 'placement: ...'"),
        ("\nmovement", "\n\nmovement", 12, "the game that begins in line 1 is cut off: expected 'movement: ...'"),
        ("yellow 3", "yellow 5", 14, "expected the result"),
        ("blue wins", "yellow wins", 14, "expected the result"),
        ("wins\n", "wins\nand more\n", 15, "expected a blank line after the result"),
        ("(pass) ", "", 13, "expected (pass)"),
        ("movement: ", "movement: (pass) ", 12, "expected a move, found '(pass)'"),
    ],
)
def test_errors_name_line_and_what_was_expected(old, new, line, message):
    assert old in ONE_GAME
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        read_text(ONE_GAME.replace(old, new, 1))
    assert str(caught.value).startswith(f"<text>, line {line}: ")


def moves_line(name: str, change: Callable[[list[str]], list[str]], text: str) -> str:
    """Change the squares of one line of moves, written on one line."""

    def changed(match: re.Match[str]) -> str:
        return f"{name}: {' '.join(change(match[1].split()))}\n"

    return re.sub(rf"(?<=\n){name}: ((?:.|\n )*)\n", changed, text, count=1)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("neutral", lambda moves: moves[:-1], "phase NEUTRAL is cut off"),
        ("neutral", lambda moves: ["A1", *moves[1:]], "legal are"),
        ("neutral", lambda moves: [*moves, "C11"], "expected no more moves in phase NEUTRAL"),
        ("neutral", lambda moves: ["Z9", *moves[1:]], "no square 'Z9'"),
        ("placement", lambda moves: [*moves[:-1], moves[0]], "is illegal"),
        ("placement", lambda moves: ["pass", *moves[1:]], "is illegal"),
        ("movement", lambda moves: moves[:-1], "phase MOVEMENT is cut off"),
        ("movement", lambda moves: [*moves, moves[-1]], "expected no more moves"),
        ("movement", lambda moves: [], "phase MOVEMENT is cut off"),
    ],
)
def test_wrong_moves_are_refused(name, change, message):
    with pytest.raises(ValueError, match=message):
        read_text(moves_line(name, change, ONE_GAME))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda squares: squares[:-1], "expected 9 different squares"),
        (lambda squares: [], "expected 9 different squares"),
        (lambda squares: [*squares, "G7"], "expected 9 different squares"),
        (lambda squares: [squares[1], *squares[1:]], "expected 9 different squares"),
        (lambda squares: ["F7", *squares[1:]], r"section 4 \(of 0..8\) has 2"),
        (lambda squares: ["B10", *squares[1:]], "rows and columns 2..8 only"),
        (lambda squares: ["pass", *squares[1:]], "no square 'pass'"),
    ],
)
def test_wrong_squares_of_drawn_neutral_stones_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        read_text(moves_line("neutral", change, DRAWN_GAME))


def test_endless_lines_are_refused():
    for text in ("x" * 10**7, ONE_GAME.replace("maxn", "m" * MAX_LINE), ONE_GAME.replace(" D1", " D1" * 5000, 1)):
        with pytest.raises(ValueError, match=f"expected at most {MAX_LINE} characters in a line"):
            read_text(text)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "games.txt"
    path.write_bytes(ONE_GAME.encode() + b"\n9tka \xff\xfe record")
    games = read_records(path)
    assert next(games).num_players == 2
    with pytest.raises(ValueError, match=r"games.txt, line 16: expected printable text"):
        next(games)


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


# Records that are wrong


def test_wrong_records_are_not_written():
    record = played(Options(2))
    with pytest.raises(ValueError, match="the game is not over"):
        GameRecord.of(record.actions[:-1])
    with pytest.raises(ValueError, match="is illegal"):
        GameRecord.of(record.actions[1:])
    with pytest.raises(ValueError, match="num_players=5"):
        GameRecord.of(record.actions, 5)
    with pytest.raises(ValueError, match=r"the record says scores \(9, 0\) and winner 7"):
        format_record(GameRecord(2, record.actions, (9, 0), 7))
    with pytest.raises(ValueError, match="the players place them"):
        GameRecord.of(record.actions, neutrals=[24])
    with pytest.raises(ValueError, match="neutral_placement='dice'"):
        GameRecord.of(record.actions, neutral_placement="dice")


@pytest.mark.parametrize(
    "tags",
    [{"players": "2"}, {"result": "x"}, {"neutral": "x"}, {"Date": "x"}, {"d": "two\nlines"}, {"d": " x"}, {"": "x"},
     {"d": "x" * MAX_LINE}, {"k" * 33: "x"}, {"d": "\0"}],
)  # fmt: skip
def test_tags_that_cannot_be_read_back_are_not_written(tags):
    with pytest.raises(ValueError, match="tag "):
        format_record(played(Options(2), 0, tags))
