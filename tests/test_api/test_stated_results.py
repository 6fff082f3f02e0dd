"""Tests of stated results: the winner that they name, in SGF, in the project's text format and in replays."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from damage import find_misread_texts
from hypothesis import given
from hypothesis import strategies as st
from ninetka.positions import Options
from ninetka.some_games import played

from ninetka_env.api.record_files import read_records, replay_text, write_records
from ninetka_env.api.records import GameRecord, format_record, result_text
from ninetka_env.core.game import Event
from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_env.core.sgf import read_sgf, sgf_text
from ninetka_env.core.stated_results import Result, read_result

BLACK, WHITE = 0, 1

# Stated text, and the winner and the event that the text names; None if it names none.
TEXTS = [
    ("B+", BLACK, None),
    ("W+0.5", WHITE, None),
    ("W+.5", WHITE, None),
    ("b + 3.5", BLACK, None),
    ("B+0,5", BLACK, None),
    ("B+1/2", BLACK, None),
    ("B+?", BLACK, None),
    ("B+G", BLACK, None),
    ("B+Illegal", BLACK, None),
    ("B+Disconnection", BLACK, None),
    ("B+2 (moves after 120 unknown)", BLACK, None),
    ("B+2 (time of White ran out later)", BLACK, None),
    ("B+R", BLACK, "resigned"),
    ("w+r", WHITE, "resigned"),
    ("W+Res.", WHITE, "resigned"),
    ("B+Resignation", BLACK, "resigned"),
    ("Black + Resign", BLACK, "resigned"),
    ("W+T", WHITE, "time"),
    ("W+Time", WHITE, "time"),
    ("B+Timeout", BLACK, "time"),
    ("W+F", WHITE, "left"),
    ("W+Forf.", WHITE, "left"),
    ("B+Forfeit", BLACK, "left"),
    ("\uff22\uff0b\uff32", BLACK, "resigned"),  # full-width characters
    ("Black won", BLACK, None),
    ("Black wins by 3.5", BLACK, None),
    ("White wins on time", WHITE, "time"),
    ("White won by resignation.", WHITE, "resigned"),
    ("White resigns.", BLACK, "resigned"),
    ("black has resigned", WHITE, "resigned"),
    ("White lost by 2.5", BLACK, None),
    ("Black loses on time", WHITE, "time"),
    ("白中盘胜", WHITE, "resigned"),
    ("黑中盘胜", BLACK, "resigned"),
    ("黒中押し勝ち", BLACK, "resigned"),
    ("白中押し勝ち", WHITE, "resigned"),
    ("白胜43.5目", WHITE, None),
    ("黑胜2又3/4子", BLACK, None),
    ("黒3目半勝", BLACK, None),
    ("白3目半負け", BLACK, None),
    ("白超时胜", WHITE, "time"),
    ("黑认输", WHITE, "resigned"),
    ("0", DRAWN, None),
    ("0.0", DRAWN, None),
    ("Draw", DRAWN, None),
    ("jigo", DRAWN, None),
    ("Tie.", DRAWN, None),
    ("持碁", DRAWN, None),
    ("Void", UNFINISHED, None),
    ("Void (no result)", UNFINISHED, None),
    ("Both lost", UNFINISHED, None),
    ("無勝負", UNFINISHED, None),
    ("has adjourned.", None, None),
    ("Unfinished", None, None),
    ("1-0", None, None),
    ("Black", None, None),
    ("B", None, None),
    ("Drawer + 5", None, None),
]

NOT_OVER = "(;GM[1]SZ[9]KM[6.5]RE[{}];B[ee];W[ec])"
OVER = (
    "(;GM[1]SZ[9]KM[6.5]RU[Chinese]RE[{}];B[ea];W[fa];B[eb];W[fb];B[ec];W[fc];B[ed];W[fd];B[ee];W[fe];B[ef];W[ff]"
    ";B[eg];W[fg];B[eh];W[fh];B[ei];W[fi];B[];W[dd];B[];W[])"
)
"""SGF text of a finished game; `{}` is the result.

Black's stones and area have 45 points. A dead white stone was not captured, so the area counts for no player by the
rules: Black has 9 points and White 43.5.
"""
SCORES = "Black 9, White 43.5"


def read(form: str, text: str) -> GameRecord:
    (record,) = read_sgf(form.format(text.replace("]", "\\]")).encode())
    return record


def read_text(text: str) -> list[GameRecord]:
    return list(read_records(io.StringIO(text)))


def heading_of(record: GameRecord) -> list[str]:
    return [line for line in next(replay_text(record, 0)).split("\n") if "result" in line]


# Texts


@pytest.mark.parametrize(("text", "winner", "kind"), TEXTS)
def test_the_winner_and_the_event_of_a_text(text: str, winner: int | None, kind: str | None) -> None:
    assert read_result(text, ("Black", "White")) == read_result(f" {text}\n", ("black", "white")) == (winner, kind)


def test_seats_of_other_games() -> None:
    seats = ("yellow", "blue", "orange", "green")
    assert [read_result(text, seats).winner for text in ("yellow wins", "G+3", "blue+", "W+2", "0")] == [
        0,
        3,
        1,
        None,
        -1,
    ]
    assert read_result("blue resigned", seats) == Result(None)  # any of the other three seats may have won
    assert read_result("blue resigned", seats[:2]) == Result(0, "resigned")
    assert read_result("R+2", ("red", "rose")) == Result(None)
    assert read_result("rose wins", ("red", "rose")) == Result(1)


# Files


@pytest.mark.parametrize(("text", "winner", "kind"), TEXTS)
def test_the_winner_of_a_game_that_is_not_over(text: str, winner: int | None, kind: str | None) -> None:
    record = read(NOT_OVER, text)
    assert record.winner == (UNFINISHED if winner is None else winner)
    assert record.event == (None if kind is None else Event(kind, 1 - record.winner))
    assert record.stated == ("" if kind else text)
    assert (record.counted, record.scores, dict(record.tags)) == (None, (1, 7.5), {})
    assert read(sgf_text(record), "") == record
    if kind is None:
        with pytest.raises(ValueError, match="games that are not over"):
            format_record(record)


@pytest.mark.parametrize(("text", "winner", "kind"), TEXTS)
def test_the_winner_of_a_game_that_is_over(text: str, winner: int | None, kind: str | None) -> None:
    record = read(OVER, text)
    assert record.winner == (WHITE if winner is None else winner)
    assert (record.event, record.stated) == (None, text), kind
    assert record.counted == (None if record.winner == WHITE else WHITE)
    assert record.scores == (9, 43.5)
    assert record.final().winner() == WHITE
    assert read(sgf_text(record), "") == record
    assert read_text(format_record(record)) == [record]


@pytest.mark.parametrize("form", [OVER, NOT_OVER])
@pytest.mark.parametrize("text", ["", " ", "?", "W+34.5"])
def test_a_result_that_adds_nothing_to_the_rules_is_not_stored(form: str, text: str) -> None:
    record = read(form, text)
    expected = (WHITE, "", None) if form == OVER else (UNFINISHED, "", None)
    if (form, text) == (NOT_OVER, "W+34.5"):
        expected = (WHITE, "W+34.5", None)
    assert (record.winner, record.stated, record.counted) == expected


def test_a_file_without_a_result_is_counted() -> None:
    (record,) = read_sgf(OVER.replace("RE[{}]", "").encode())
    assert (record.winner, record.stated, record.counted) == (WHITE, "", None)


def test_a_resignation_after_two_passes() -> None:
    (record,) = read_sgf(b"(;GM[1]FF[4]SZ[9]KM[6.5]RE[W+Resign];B[ee];W[];B[])")
    assert (record.winner, record.counted, record.stated, record.event) == (WHITE, BLACK, "W+Resign", None)
    assert "RE[W+Resign]" in sgf_text(record)


def test_a_stated_result_is_one_line() -> None:
    record = read(OVER, "B+2.5\n(dead: \t D6])" + "x" * 600)
    assert record.stated == ("B+2.5 (dead: D6])" + "x" * 600)[:500]
    assert read(sgf_text(record), "") == record
    assert read_text(format_record(record)) == [record]


def test_where_resigning_is_an_action() -> None:
    form = NOT_OVER.replace("SZ[9]", "SZ[9]NK[resign=True]")
    resigned, other, on_time = read(form, "W+R"), read(form, "B+R"), read(form, "W+T")
    assert (resigned.actions[-1], resigned.event, resigned.winner, resigned.stated) == (82, None, WHITE, "")
    assert (len(other.actions), other.event) == (2, Event("resigned", WHITE))
    assert (len(on_time.actions), on_time.event) == (2, Event("time", BLACK))
    over = read(OVER.replace("SZ[9]", "SZ[9]NK[resign=True]"), "B+R")
    assert (over.event, over.winner, over.stated, over.counted) == (None, BLACK, "B+R", WHITE)
    for record in (resigned, other, on_time, over):
        assert read(sgf_text(record), "") == record
    both = replace(resigned, stated="B+2").with_result(resigned.final())
    assert (both.winner, both.counted) == (BLACK, WHITE)
    assert read_text(format_record(both)) == [both]
    with pytest.raises(ValueError, match=r"SGF has one result: .* not also 'B\+2'"):
        sgf_text(both)


# Records


def test_a_record_is_made_with_a_stated_result() -> None:
    over = read(OVER, "?")
    record = GameRecord.of(over.actions, over.variant, stated=" B+2.5\n")
    assert record == read(OVER, "B+2.5")
    assert (record.winner, record.stated, record.counted) == (BLACK, "B+2.5", WHITE)
    assert GameRecord.of(over.actions, over.variant, stated="W+34.5") == over
    assert replace(record, stated="").with_result(record.final()) == over
    with pytest.raises(ValueError, match=r"stated='B[+]R': expected no stated result, .* ended the game"):
        GameRecord.of(over.actions[:9], over.variant, event=Event("time", 0), stated="B+R")
    with pytest.raises(ValueError, match="the game is not over"):
        GameRecord.of(over.actions[:9], over.variant, stated="B+R")


def test_a_record_that_contradicts_its_stated_result_is_not_written() -> None:
    record = read(OVER, "B+2.5")
    for wrong in ({"winner": WHITE}, {"counted": None}, {"stated": "W+2.5"}, {"stated": ""}, {"stated": "B+2.5\n"}):
        with pytest.raises(ValueError, match=r"the record says scores \(9.0, 43.5\) and winner"):
            format_record(replace(record, **wrong))


# The project's text format


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        (OVER, "", f"{SCORES}; White wins"),
        (OVER, "B+2.5", f"Black wins, as stated (B+2.5); counted: {SCORES}"),
        (OVER, "W+R", f"White wins, as stated (W+R); counted: {SCORES}"),
        (OVER, "Jigo", f"drawn, as stated (Jigo); counted: {SCORES}"),
        (OVER, "Void", f"no winner, as stated (Void); counted: {SCORES}"),
        (OVER, "Unfinished", f"{SCORES}; White wins (stated: Unfinished)"),
        (NOT_OVER, "", "unfinished"),
        (NOT_OVER, "B+2.5", "Black wins, as stated (B+2.5); counted: Black 1, White 7.5"),
        (NOT_OVER, "Void", "no winner, as stated (Void); counted: Black 1, White 7.5"),
        (NOT_OVER, "has adjourned.", "unfinished (stated: has adjourned.)"),
        (NOT_OVER, "B+R", "White resigned; Black wins"),
    ],
)
def test_results_are_printed_with_their_source(form: str, text: str, expected: str) -> None:
    record = read(form, text)
    assert result_text(record) == expected
    assert heading_of(record) == [f"result: {expected}"]
    if form == OVER:
        assert format_record(record).endswith(f"\nresult: {expected}\n")


@pytest.mark.parametrize(
    "result",
    [
        f"White wins, as stated (B+2.5); counted: {SCORES}",
        "Black wins, as stated (B+2.5); counted: Black 9, White 43",
        "Black wins, as stated (B+2.5); counted: ",
        f"Black wins, as stated (); counted: {SCORES}",
        f"White wins, as stated (?); counted: {SCORES}",
        f"White wins, as stated (W+34.5); counted: {SCORES}",
        f"White wins, as stated (Unfinished); counted: {SCORES}",
        f"{SCORES}; White wins (stated: W+2)",
        f"{SCORES}; Black wins (stated: Unfinished)",
        f"{SCORES}; White wins (stated: )",
        f"{SCORES}; White wins (stated: Unfinished",
        f"Black resigned; White wins, as stated (W+R); counted: {SCORES}",
        "Black wins",
    ],
)
def test_wrong_stated_results_are_refused(result: str) -> None:
    text = format_record(read(OVER, "B+2.5")).rpartition("result: ")[0]
    with pytest.raises(ValueError, match=r"<text>, line \d+: "):
        read_text(f"{text}result: {result}\n")


@given(
    st.sampled_from(["", "yellow wins ", "void", "Y+", "0"]),
    st.text(st.sampled_from("()[];:, asx9\t") | st.characters()),
)
def test_any_stated_text_survives_in_any_game(prefix: str, suffix: str) -> None:
    final = played(Options(2), 3)
    record = GameRecord.of(final.actions, final.variant, drawn=final.drawn, stated=prefix + suffix)
    assert read_text(format_record(record)) == [record]


@pytest.mark.parametrize(
    "suffix", ["); counted: x", " (stated: Void)", "; yellow wins (stated: x)", ", as stated (0)", ")"]
)
@pytest.mark.parametrize("prefix", ["B+1", "odd", "void (", "0 ("])
def test_stated_text_may_look_like_a_result(prefix: str, suffix: str) -> None:
    final = played(Options(4), 3)
    record = GameRecord.of(final.actions, final.variant, drawn=final.drawn, stated=prefix + suffix)
    assert record.stated == prefix + suffix
    assert read_text(format_record(record)) == [record]


def test_damaged_stated_results_are_refused_or_read_as_they_are_written() -> None:
    def rewrite(text: str) -> str:
        return "\n".join(map(format_record, read_text(text)))

    texts = [format_record(read(OVER, text)) for text in ("B+2.5", "Void (x)", "Unfinished")]
    assert find_misread_texts("\n".join(texts), rewrite, 0, 400) == []


def test_append_after_stated_results(tmp_path) -> None:
    for text in ("B+2.5", "Jigo", "Void", "Unfinished"):
        path, record = tmp_path / "games.txt", read(OVER, text)
        write_records(path, [record])
        write_records(path, [record], append=True)
        assert list(read_records(path)) == [record, record]
        whole = path.read_text(encoding="utf-8")
        result = f"result: {result_text(record)}\n"
        assert whole.endswith(result)
        for lost in range(1 + (text == "Unfinished"), len(result)):
            path.write_text(whole[:-lost], encoding="utf-8")
            if whole[:-lost].rstrip().endswith("; White wins"):  # the shortened line is a complete result, too
                continue
            with pytest.raises(ValueError, match="ends inside a game"):
                write_records(path, [record], append=True)
