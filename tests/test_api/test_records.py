"""Tests of game records as text: a golden file, round trips, damaged texts, wrong records."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from damage import find_misread_texts
from hypothesis import given
from hypothesis import strategies as st
from ninetka.positions import ALL_OPTIONS, Options, any_options, random_positions, seeds
from ninetka.some_games import GOLDEN, golden_records, played

from ninetka_env.api.record_files import read_records
from ninetka_env.api.records import GameRecord, format_record
from ninetka_env.core.game import EVENTS, Event
from ninetka_env.core.registry import load_variant
from ninetka_env.core.text import MAX_LINE_LENGTH


def read_text(text: str) -> list[GameRecord]:
    return list(read_records(io.StringIO(text)))


# Golden files


def test_written_games_equal_the_golden_file():
    text = GOLDEN.read_text(encoding="utf-8")
    assert "\n".join(map(format_record, golden_records())) == text
    assert list(read_records(GOLDEN)) == golden_records()
    assert "(pass)" in text
    assert " pass" in text


def test_other_formats_are_refused():
    for other in ("9tka record, format 1", "game record, format 3"):
        message = f"<text>, line 1: expected 'game record, format 2', found '{other}'"
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            read_text(ONE_GAME.replace("game record, format 2", other, 1))


def test_a_record_is_of_a_variant():
    record = golden_records()[1]
    assert record.variant == load_variant(
        "ninetka:num_players=4,neutral_placement=random,turn_order=continue", auto_pass=False
    )
    assert record == GameRecord.of(record.actions, record.variant, drawn=record.drawn)
    assert record == GameRecord.of(record.actions, record.variant.spec, drawn=record.drawn)
    assert (record.num_players, record.seats) == (4, ("yellow", "blue", "orange", "green"))
    assert len(record.drawn) == record.variant.sizes.num_drawn == 9
    assert record.start().drawn_actions() == tuple(sorted(record.drawn))


# Round trips


@given(
    any_options, seeds, st.dictionaries(st.from_regex(r"[a-z][a-z0-9_]{3,9}x", fullmatch=True), st.text(max_size=20))
)
def test_game_survives_text(options, seed, tags):
    tags = {key: text.strip() for key, text in tags.items() if text.isprintable()}
    record = played(options, seed, tags)
    assert read_text(format_record(record)) == [record]


@pytest.mark.parametrize("options", ALL_OPTIONS, ids=str)
def test_replay_passes_through_every_position(options):
    record = played(options, 3)
    games = list(record.replay())
    assert [str(game) for game in games] == [str(game) for game in random_positions(options, 3)]
    assert str(games[-1]) == str(record.final())
    assert record.scores == tuple(games[-1].scores())
    assert record.winner == games[-1].winner()


# Damaged texts


def reformat_games(text: str) -> str:
    return "\n".join(map(format_record, read_text(text)))


def test_damaged_games_are_refused_or_read_as_they_are_written():
    for seed, options in enumerate(ALL_OPTIONS[::5]):
        text = format_record(played(options, seed, {"yellow": "a b"})) + "\n" + format_record(played(options, seed + 1))
        assert find_misread_texts(text, reformat_games, seed, 400) == []


def test_misread_detects_wrong_readers():
    text = format_record(played(Options(2), 1))
    original = reformat_games(text)

    def first_lines_only(bad: str) -> str:
        return reformat_games("\n".join(bad.split("\n")[:12]) + "\n")

    def without_passes(bad: str) -> str:
        return original if bad.count("(pass)") != text.count("(pass)") else reformat_games(bad)

    def at_the_first_number(bad: str) -> str:
        return reformat_games(bad) if bad.startswith("game record") else str(bad[99999])

    assert find_misread_texts(text, lambda _: original, 0, 200)
    assert find_misread_texts(text + "\n" + text, first_lines_only, 0, 200)
    assert find_misread_texts(text, without_passes, 0, 2000)
    with pytest.raises(IndexError):
        find_misread_texts(text, at_the_first_number, 0, 2000)


ONE_GAME, DRAWN_GAME = (game + "\n" for game in GOLDEN.read_text(encoding="utf-8").split("\n\n")[:2])


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("record, format", "record, form", 1, "expected 'game record, format 2'"),
        ("players: 2", "players: 5", 3, "players: '5': expected one of 2, 3, 4"),
        ("restart", "sometimes", 5, "turn_order: 'sometimes': expected one of restart, continue"),
        ("turn_order: restart\n", "", 9, "lacks 'turn_order: restart|continue'"),
        ("date:", "yellow:", 9, "'yellow' is given twice"),
        ("date: 2024-05-01", "When it was", 9, "expected 'key: text' or 'neutral: ...'"),
        ("\nplacement:", "\nplacements:", 11, "expected 'placement: ...'"),
        ("\nmovement", "\n\nmovement", 13, "the game that begins in line 1 is cut off: expected 'movement: ...'"),
        ("yellow 3", "yellow 5", 15, "expected the result"),
        ("blue wins", "yellow wins", 15, "expected the result"),
        ("wins\n", "wins\nand more\n", 16, "expected a blank line after the result"),
        ("(pass) ", "", 14, "expected (pass)"),
        ("movement: ", "movement: (pass) ", 13, "expected a move, found '(pass)'"),
    ],
)
def test_errors_name_line_and_what_was_expected(old, new, line, message):
    assert old in ONE_GAME
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        read_text(ONE_GAME.replace(old, new, 1))
    assert str(caught.value).startswith(f"<text>, line {line}: ")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "game: ninetka",
            "game: ninetki",
            r"unknown game 'ninetki': known are .*ninetka.* \(did you mean 'ninetka'\?\)",
        ),
        ("game: ninetka", "game: ", "expected 'game: ...', found 'game:'"),
        ("game: ninetka", "game:ninetka", "expected 'game: ...', found 'game:ninetka'"),
        ("game: ninetka\n", "", "expected 'game: ...', found 'players: 2'"),
        ("players: 2", "game: ninetka\nplayers: 2", "'game' is given twice"),
    ],
)
def test_unknown_games_are_named(old, new, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_text(ONE_GAME.replace(old, new, 1))
    assert re.match("<text>, line [23]: ", str(caught.value))


def change_moves(name: str, change: Callable[[list[str]], list[str]], text: str) -> str:
    """Apply `change` to the moves after `name:` in a record's text, such as `placement:`; return the new text."""

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
        read_text(change_moves(name, change, ONE_GAME))


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
        read_text(change_moves("neutral", change, DRAWN_GAME))


def test_endless_lines_are_refused():
    for text in (
        "x" * 10**7,
        ONE_GAME.replace("maxn", "m" * MAX_LINE_LENGTH),
        ONE_GAME.replace(" D1", " D1" * 5000, 1),
    ):
        with pytest.raises(ValueError, match=f"expected at most {MAX_LINE_LENGTH} characters in a line"):
            read_text(text)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "games.txt"
    path.write_bytes(ONE_GAME.encode() + b"\n9tka \xff\xfe record")
    games = read_records(path)
    assert next(games).num_players == 2
    with pytest.raises(ValueError, match=r"games.txt, line 17: expected printable text"):
        next(games)


# Games that end before the rules end them


def ended_after(options: Options, plies: int, reason: str, seat: int, seed: int = 3) -> GameRecord:
    """Return the record of a random game that an event ends."""
    whole = played(options, seed)
    return GameRecord.of(
        whole.actions[:plies], whole.variant, drawn=whole.drawn, event=Event(reason, seat), tags={"seed": str(seed)}
    )


@pytest.mark.parametrize("options", ALL_OPTIONS, ids=str)
def test_events_are_written_and_read(options):
    for plies in (0, 1, 8, 9, 20, 36, 44, 45, 46, 54):
        for reason, seat in itertools.product(EVENTS, range(options.num_players)):
            record = ended_after(options, plies, reason, seat)
            final = record.final()
            assert (final.event, final.is_over) == (Event(reason, seat), True)
            assert record.winner == final.winner() != seat
            assert read_text(format_record(record)) == [record]
            assert list(record.replay())[-1] == final
            assert [game.event for game in record.replay()] == [None] * plies + [record.event]


def test_result_lines_name_events():
    expected = {
        "resigned": "result: blue resigned; yellow wins",
        "time": "result: blue lost on time; yellow wins",
        "left": "result: blue left; yellow wins",
    }
    for reason, line in expected.items():
        assert format_record(ended_after(Options(2), 30, reason, 1)).splitlines()[-1] == line
    assert "result: orange resigned; " in format_record(ended_after(Options(3), 50, "resigned", 2))


def test_games_with_and_without_events_in_one_text():
    records = [ended_after(Options(2), 12, "time", 0), played(Options(2)), ended_after(Options(4), 50, "resigned", 3)]
    assert read_text("\n".join(map(format_record, records))) == records
    assert len(set(map(format_record, records))) == 3


def test_an_event_counts_in_a_comparison():
    resigned, on_time = (ended_after(Options(2), 12, reason, 0) for reason in ("resigned", "time"))
    assert resigned != on_time
    assert replace(resigned, event=on_time.event) == on_time


def test_damaged_games_with_events_are_refused_or_read_as_they_are_written():
    for seed, options in enumerate(ALL_OPTIONS[::5]):
        text = format_record(ended_after(options, 12 * (seed + 1), EVENTS[seed % 3], seed % 2))
        assert find_misread_texts(text + "\n" + text, reformat_games, seed, 300) == []


def test_a_game_that_is_over_cannot_be_resigned():
    (record,) = read_text(ONE_GAME)
    with pytest.raises(ValueError, match="the game is over already"):
        format_record(replace(record, event=Event("resigned", 1 - record.winner)))
    with pytest.raises(ValueError, match=r"<text>, line 15: .*the game is over already"):
        read_text(re.sub("result: .*", "result: yellow resigned; blue wins", ONE_GAME))


def test_wrong_events_are_refused():
    record = ended_after(Options(2), 12, "resigned", 1)
    for event, message in ((Event("bored", 1), "reason='bored'"), (Event("time", 2), "seat=2")):
        with pytest.raises(ValueError, match=message):
            GameRecord.of(record.actions, event=event)
        with pytest.raises(ValueError, match=message):
            format_record(replace(record, event=event))


@pytest.mark.parametrize(
    "result", ["blue resigned; blue wins", "yellow resigned; yellow wins", "orange resigned; yellow wins",
               "blue resigned", "blue gave up; yellow wins", "yellow wins", "blue resigned; drawn", ""]
)  # fmt: skip
def test_results_that_contradict_the_event_are_refused(result):
    text = format_record(ended_after(Options(2), 12, "resigned", 1))
    with pytest.raises(ValueError, match=r"<text>, line \d+: .*expected"):
        read_text(text.replace("blue resigned; yellow wins", result))


# Records that are wrong


def test_wrong_records_are_not_written():
    record = played(Options(2))
    with pytest.raises(ValueError, match="the game is not over"):
        GameRecord.of(record.actions[:-1])
    with pytest.raises(ValueError, match="is illegal"):
        GameRecord.of(record.actions[1:])
    with pytest.raises(ValueError, match="num_players=5"):
        GameRecord.of(record.actions, num_players=5)
    with pytest.raises(ValueError, match=r"the record says scores \(9, 0\) and winner 7"):
        format_record(replace(record, scores=(9, 0), winner=7))
    with pytest.raises(ValueError, match="the players place them"):
        GameRecord.of(record.actions, drawn=[24])
    with pytest.raises(ValueError, match="neutral_placement='dice'"):
        GameRecord.of(record.actions, neutral_placement="dice")
    with pytest.raises(ValueError, match="unknown option 'komi', there are num_players, neutral_placement"):
        GameRecord.of(record.actions, komi=6.5)
    with pytest.raises(ValueError, match=r"unknown game 'chess': known are .*ninetka"):
        GameRecord.of(record.actions, "chess")


@pytest.mark.parametrize(
    "tags",
    [{"players": "2"}, {"game": "x"}, {"result": "x"}, {"neutral": "x"}, {"Date": "x"}, {"d": "two\nlines"},
     {"d": " x"}, {"": "x"}, {"d": "x" * MAX_LINE_LENGTH}, {"k" * 33: "x"}, {"d": "\0"}],
)  # fmt: skip
def test_tags_that_cannot_be_read_back_are_not_written(tags):
    with pytest.raises(ValueError, match="tag "):
        format_record(played(Options(2), 0, tags))
