"""Go in the Smart Game Format: round trips, sgfmill, files of other programs, invalid files."""

from __future__ import annotations

import io

import numpy as np
import pytest
from go.go_helpers import choose
from hypothesis import given
from hypothesis import strategies as st
from sgfmill import sgf, sgf_moves

from ninetka_env.api.record_files import check_format, find_record, read_records, write_records
from ninetka_env.core import sgf as core_sgf
from ninetka_env.core.game import Event
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.record import GameRecord
from ninetka_env.core.registry import load_variant
from ninetka_env.core.sgf import MAX_BYTES, MAX_DEPTH, read_sgf, sgf_text
from ninetka_env.games.go.sgf import from_sgf, to_sgf

TAGS = {"black": "mcts:simulations=[1]", "white": "a\\b", "date": "2023-04-01", "black_rank": "3d", "seed": "7"}


def make_record(spec, seed=0, plies=1024, event=None):
    """Return the record of a random game of at most `plies` plies; `event` may end it."""
    variant, rng = load_variant(spec), np.random.default_rng(seed)
    game, actions = variant.game_class.start(variant), []
    while not game.is_over and len(actions) < plies:
        actions.append(choose(game, rng))
        game.play(actions[-1])
    return GameRecord.of(actions, variant, event=event, tags=TAGS)


def read(text):
    (record,) = read_sgf(text if isinstance(text, bytes) else text.encode())
    return record


RECORDS = [
    make_record("go"),
    make_record("go:ko=situational,scoring=document,komi=-3.5,max_plies=50,planes=alphazero"),
    make_record("go:handicap=4,allow_resign=true", 8),
    make_record("go:scoring=territory", plies=20, event=Event("resigned", 0)),
    make_record("go", plies=21, event=Event("time", 1)),
    make_record("go", plies=0, event=Event("left", 1)),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.variant}-{record.event}")
def test_records_are_read_back(record):
    assert read(sgf_text(record)) == record


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.variant}-{record.event}")
def test_sgfmill_reads_the_same_game(record):
    game, final = sgf.Sgf_game.from_bytes(sgf_text(record).encode()), record.final()
    board, plays = sgf_moves.get_setup_and_moves(game)
    cells = [[" bw".index(board.get(*divmod(9 * rank + file, 9)) or " ") for file in range(9)] for rank in range(9)]
    assert cells == record.start().board.tolist()
    points = [81 if move is None else 9 * move[0] + move[1] for _, move in plays]
    assert points == [action for action in record.actions if action < 82]
    assert [colour for colour, _ in plays] == ["bw"[game.to_move] for game in record.replay()][: len(plays)]
    root = game.get_root()
    assert (game.get_size(), game.get_komi(), game.get_handicap()) == (9, final.komi, final.handicap or None)
    assert (root.get("RE"), game.get_player_name("b"), root.get("BR")) == (final.result(), TAGS["black"], "3d")
    assert root.get("AP")[0] == "ninetka"


def test_files_hold_several_games(tmp_path):
    path = tmp_path / "games.SGF"
    assert write_records(path, RECORDS[:2]) == 2
    assert write_records(path, RECORDS[2:], append=True) == 4
    assert list(read_records(path)) == RECORDS
    assert find_record(path, 3) == RECORDS[2]
    path.write_text(path.read_text(encoding="utf-8")[:-4], encoding="utf-8")
    with pytest.raises(ValueError, match="ends inside a game"):
        write_records(path, RECORDS, append=True)


def test_only_the_length_of_a_game_is_limited(monkeypatch):
    """A file may be longer than a game may be, because it is read in chunks.

    A chunk may end anywhere: in a value, between a parenthesis and its node, or outside of a game.
    """
    texts = [sgf_text(record) for record in RECORDS]
    odd = ["(;SZ[9]C[:) (; \\\\] [];B[aa](;W[bb]C[\\\\](;B[cc]))(;W[dd]))", "(\n ;SZ[9]C[\\]];B[aa])"]
    data = " ] talk :( of (games) ".join([*odd, *texts, *odd, ""]).encode()
    expected = [*map(read, odd), *RECORDS, *map(read, odd)]
    longest = max(map(len, texts))
    assert len(data) > 2 * longest
    for limit in (longest + 22, longest + 23, longest + 30, longest + 101):
        monkeypatch.setattr(core_sgf, "MAX_BYTES", limit)
        assert list(read_sgf(io.BytesIO(data))) == expected
    monkeypatch.setattr(core_sgf, "MAX_BYTES", longest)
    with pytest.raises(ValueError, match=rf"game [0-9]+: expected at most {longest} bytes"):
        list(read_sgf(data))


def test_endless_files_are_refused():
    class Endless(io.RawIOBase):
        def read(self, size=-1):
            return b"(;C[" + bytes(size - 4)

    with pytest.raises(ValueError, match="game 1: expected at most 1000000 bytes"):
        next(read_sgf(Endless()))


def test_sizes_that_sgf_cannot_hold_are_refused_before_a_match(tmp_path):
    check_format(tmp_path / "games.sgf", load_variant("go:size=5"))
    check_format(tmp_path / "games.txt", load_variant("go:size=3"))
    with pytest.raises(ValueError, match="SGF holds boards of 5 to 19, not size 3"):
        check_format(tmp_path / "games.sgf", load_variant("go:size=3"))


def test_other_games_have_no_sgf(tmp_path):
    path = tmp_path / "9tka.sgf"
    path.write_text("before", encoding="utf-8")
    variant = load_variant("ninetka")
    record = GameRecord(variant, (), (), 0)
    with pytest.raises(ValueError, match="9tka has no SGF format"):
        write_records(path, [record])
    assert path.read_text(encoding="utf-8") == "before"


def test_points():
    assert [to_sgf(point, 9) for point in (0, 80, 40, 20, 60, 81)] == ["ai", "ia", "ee", "cg", "gc", ""]
    for size in (5, 9, 19):
        for point in range(size**2 + 1):
            assert from_sgf(to_sgf(point, size), size) == point
    assert from_sgf("tt", 19) == 361


# Files of other programs


def test_the_main_line_of_a_game_with_variations():
    record = read("(;GM[1]FF[4]SZ[9]KM[6.5];B[ee];W[cc](;B[gc](;W[tt])(;W[aa]))(;B[dd];W[dc]))")
    final = record.final()
    assert [final.action_name(action) for action in record.actions] == ["E5", "C7", "G7", "pass"]
    assert (record.winner, final.komi, final.is_over) == (UNFINISHED, 6.5, False)


def test_rules_and_results_of_other_programs():
    text = "(;SZ[9]RU[Japanese]KM[6.50]RE[W+12.5]PB[\u00e9]BR[5k];B[ee];W[gc];B[];W[];B[])"
    record = read(text)
    assert record.final().scoring == "territory"
    assert (record.actions, record.winner) == ((40, 60, 81, 81), 1)
    assert (record.stated, record.counted, record.final().result()) == ("W+12.5", None, "W+6.5")
    assert record.tags == {"black": "\u00e9", "black_rank": "5k"}
    assert read(text.encode("latin-1")).tags == record.tags
    assert read("(;SZ[9]CA[shift_jis]PW[\u7881])".encode("shift_jis")).tags == {"white": "\u7881"}
    assert read("(;SZ[9]RE[B+Resign];B[ee])").event == Event("resigned", 1)
    void = read("(;SZ[9]RE[Void];B[ee])")
    assert (void.stated, void.winner, void.tags) == ("Void", UNFINISHED, {})
    assert read("(;SZ[9]KM[]RU[]RE[]HA[]BR[9p])").final().komi == 0
    odd = read("(;SZ[9]GC[stated: W+5];B[ee])")
    assert read(sgf_text(odd)).tags == odd.tags == {"stated": "W+5"}
    assert (odd.winner, "RE[?]" in sgf_text(odd)) == (UNFINISHED, True)


RANKS = [
    "5p", "9d", "30k", "2\u6bb5", "P9\u6bb5", "18k*", "11k+", "8k?", "?", "-", "NR", "1524?", "1680*", "35k", "6 dan",
    "Honinbo", "\u7121 rank, 1200", "1812", "a]b", "[x]", "a\\b", "a\\", "\\]", "3d: strong", "B[aa];W[bb]", "(;", ")",
    "12d (\u00e9)", "x" * 600, "one two " * 400,
]  # fmt: skip


@pytest.mark.parametrize("rank", RANKS, ids=lambda rank: rank[:12])
def test_ranks_are_texts_of_any_kind(rank, tmp_path):
    escaped = rank.replace("\\", "\\\\").replace("]", "\\]")
    record = read(f"(;SZ[9]PB[a]BR[{escaped}]WR[ {escaped}\n];B[ee];W[];B[])")
    assert record.tags == {"black": "a", "black_rank": rank.strip(), "white_rank": rank.strip()}
    for name in ("games.sgf", "games.txt"):
        write_records(tmp_path / name, [record])
        assert list(read_records(tmp_path / name)) == [record]


@given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("]\\:\n\t ("), max_size=40))
def test_any_rank_that_is_written_is_read_back_on_one_line(rank):
    record = GameRecord.of([81, 81], "go", tags={"black_rank": f"x{rank}x"})
    printable = "".join(char if char.isprintable() else " " for char in f"x{rank}x")
    assert read(sgf_text(record)).tags == {"black_rank": " ".join(printable.split())}


def test_long_tags_are_truncated(tmp_path):
    record = read(f"(;SZ[9]BR[{'x' * 5000}]WR[{'x' * 4031} yyy]GC[{'k' * 32}: {'z' * 5000}];B[];W[])")
    assert {key: len(text) for key, text in record.tags.items()} == {
        "black_rank": 4032,
        "white_rank": 4031,
        "k" * 32: 4032,
    }
    write_records(tmp_path / "games.txt", [record])
    assert list(read_records(tmp_path / "games.txt")) == [record]


def test_a_result_with_a_control_character_survives_a_round_trip():
    record = next(read_sgf(b"(;GM[1]FF[4]SZ[5]KM[6.5]RE[B+\0R];B[aa];W[bb])"))
    assert next(read_sgf(sgf_text(record).encode())) == record
    resigning = next(read_sgf(b"(;GM[1]SZ[5]NK[resign=True]RE[B+\0R];B[aa])"))  # with `allow_resign`
    assert (resigning.actions, resigning.event) == ((20, 26), None)


def test_setup(tmp_path):
    record = read("(;SZ[9]AB[aa:bb][ee]AW[ia]PL[W];AE[aa];W[cc])")
    start, final = record.start(), record.final()
    assert sorted(map(start.action_name, np.flatnonzero(start.board))) == ["A8", "B8", "B9", "E5", "J9"]
    assert (start.to_move, final.board[6, 2]) == (1, 2)
    assert read(sgf_text(record)).final() == final
    handicap = read("(;SZ[9]HA[2]AB[gc][cg];W[ee])")
    assert (handicap.variant.options["handicap"], handicap.start_position) == (2, None)
    other = read("(;SZ[9]HA[2]AB[gc][cc];W[ee])")
    assert (other.variant.options["handicap"], other.start().to_move) == (0, 1)
    with pytest.raises(ValueError, match="set up"):
        write_records(tmp_path / "game.txt", [other])


def test_two_turns_of_one_colour():
    with pytest.warns(UserWarning, match="game 1: the turn before move 2 is left out, and not played"):
        record = read("(;SZ[9];B[ee];B[gc];W[cc])")
    assert record.skipped_turns == (1,)
    assert record.final().ply == 3
    assert [game.to_move for game in record.replay()] == [0, 1, 1, 0]
    with pytest.warns(UserWarning, match="game 1"):
        assert read(sgf_text(record)) == record


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a valid SGF game"),
        ("(;B[aa]", "not a valid SGF game: .*unexpected end"),
        ("(;GM[40]X)", "not a valid SGF game"),
        ("(;GM[2])", r"GM\['2'\]: expected one of 1 \(Go\)"),
        ("(;SZ[4])", r"SZ\['4'\]: expected a square board of 5 to 19"),
        ("(;SZ[9:13])", r"SZ\['9:13'\]"),
        ("(;SZ[\u00b2])", "SZ"),
        ("(;SZ[9]KM[x])", r"KM\['x'\]: expected a number of points"),
        ("(;SZ[9]KM[375])", "komi=375.0: expected a multiple of 0.5 from -81 to 81 on a board of size 9"),
        ("(;SZ[9]KM[0.3])", "komi=0.3: expected a multiple of 0.5"),
        ("(;SZ[9]NK[ko=super])", "ko='super': expected one of"),
        ("(;SZ[9]NK[size=3])", "NK.*expected some of ko, scoring"),
        ("(;SZ[9]HA[3])", r"HA\['3'\]: expected a number of 2 to 9 stones, and AB"),
        ("(;SZ[9]HA[3]AB[aa][bb];W[ee])", r"HA\['3'\]"),
        ("(;SZ[9]PL[x]AB[aa])", r"PL\['x'\]: expected B or W"),
        ("(;SZ[9]CA[klingon])", r"CA\['klingon'\]: expected a known character set"),
        ("(;SZ[9]CA[hex])", "CA"),
        ("(;SZ[9]CA[idna])", r"CA\['idna'\]: expected a known character set"),
        ("(;SZ[9]CA[rot13])", r"CA\['rot13'\]"),
        ("(;SZ[9]AB[aa]AW[aa])", "AW: two stones on A9"),
        ("(;SZ[9]AB[tt])", "AB.*expected a point"),
        ("(;SZ[9]AW[aa:a1])", "game 1: AW: no point 'a1': expected two letters of a..i"),
        ("(;SZ[9]AW[aa]AB[ab][ba])", "A9: the chain there has no liberty"),
        ("(;SZ[9];B[aa];AB[bb])", "after move 1: AB sets up stones"),
        ("(;SZ[9];B[aa]W[bb])", "move 1: expected one move in a node"),
        ("(;SZ[9];B[aa];W[zz])", "game 1: move 2: no point 'zz': expected two letters of a..i"),
        ("(;SZ[9];B[aa];W[aa])", r"move 2: action 72 \(A9\) is illegal for White at ply 1: the point is occupied"),
        ("(;SZ[9];B[aa];W[];B[];W[aa])", r"move 4: .*the game is over|two|occupied"),
        ("(;SZ[9];B[ab];W[ee];B[ba];W[aa])", r"move 4: action 72 \(A9\) is illegal for White at ply 3: suicide"),
        ("(;SZ[9])(;SZ[9];B[aa];W[aa])", "game 2: move 2"),
        ("(;SZ[9])(;SZ[9];B[aa]", "game 2: not a valid SGF game: unexpected end"),
        ("(;" * (MAX_DEPTH + 1), "game 1: expected variations nested at most 1000 deep"),
        ("x" * (MAX_BYTES + 1), "at most 1000000 bytes"),
    ],
)
def test_the_error_names_what_is_wrong(text, message):
    with pytest.raises(ValueError, match=message) as error:
        list(read_sgf(text.encode()))
    assert len(str(error.value)) < 400


def test_the_error_names_the_file(tmp_path):
    path = tmp_path / "bad.sgf"
    path.write_text("(;SZ[9];B[aa];W[aa])", encoding="utf-8")
    with pytest.raises(ValueError, match=r"bad\.sgf: game 1: move 2: action 72"):
        find_record(path)


def test_games_longer_than_the_default_limit_are_read():
    """The game is longer than the default limit of plies, because captures free points for more stones."""
    variant, rng = load_variant("go:size=5,max_plies=90"), np.random.default_rng(0)
    game, moves = variant.game_class.start(variant), ""
    while game.ply < 60:
        placings = [action for action in game.legal_actions().tolist() if action < 25]
        action = int(rng.choice(placings)) if placings else 25
        moves += f";{'BW'[game.to_move]}[{to_sgf(action, 5)}]"
        game.play(action)
    assert not game.is_over
    found = read(f"(;SZ[5]{moves})")
    assert (found.final().ply, found.variant.options["max_plies"]) == (60, 62)
    assert read(sgf_text(found)) == found
