"""Test game records of Kropki in SGF and as lines of text: round trips, files of sites, and errors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ninetka_env.api.record_files import read_records, write_records
from ninetka_env.core.game import Event
from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_env.core.record import GameRecord
from ninetka_env.core.registry import load_variant
from ninetka_env.core.sgf import read_sgf, sgf_text
from ninetka_env.games.kropki.game import Game
from ninetka_env.games.kropki.sgf import node_from_sgf, node_to_sgf, read_line, write_line

SPECS = [
    f"kropki:width={width},height={height},territory={territory},start={start}"
    for width, height in ((3, 3), (6, 6), (10, 10), (7, 12), (12, 5))
    for territory in ("declared", "immediate")
    for start in ("empty", "cross")
]


def random_record(spec: str, seed: int, share: float = 1.0, tags: dict[str, str] | None = None) -> GameRecord:
    """Return the record of a random game. If `share` is below 1, a seat resigns after points on that share of nodes."""
    rng = np.random.default_rng(seed)
    variant = load_variant(spec)
    game, actions = variant.game_class.start(variant), []
    while not game.is_over and (
        game.drawing or game.ply < share * variant.options["width"] * variant.options["height"]
    ):
        actions.append(int(rng.choice(game.legal_actions())))
        game.play(actions[-1])
    event = None if game.is_over else Event("resigned", game.to_move)
    return GameRecord.of(actions, variant, event=event, tags=tags)


def read_one(text: str) -> GameRecord:
    (record,) = read_sgf(text.encode())
    return record


@pytest.mark.parametrize("spec", SPECS)
def test_games_are_read_back_from_sgf_and_from_a_line(spec: str) -> None:
    for seed in range(4):
        record = random_record(spec, seed, share=(1.0, 0.5)[seed % 2], tags={"black": "me", "date": "2026-01-01"})
        assert read_one(sgf_text(record)) == record
        assert read_line(write_line(record)) == GameRecord.of(record.actions, record.variant, event=record.event)


def test_the_rule_is_found_by_the_chains_if_a_file_does_not_name_it() -> None:
    for spec in SPECS[8:12]:
        record = random_record(spec, 3)
        text = sgf_text(record)
        assert record.variant.options["territory"] in text
        for rule in ("2", ""):
            found = read_one(text.replace(f"RU[{record.variant.options['territory']}]", f"RU[{rule}]"))
            assert found.scores == record.scores
            assert found.final() == record.final() or found.variant != record.variant


def test_files_hold_many_games(tmp_path: Path) -> None:
    records = [random_record(spec, 7) for spec in SPECS]
    assert write_records(tmp_path / "games.sgf", records) == len(records)
    assert list(read_records(tmp_path / "games.sgf")) == records


SMALL = "kropki 5x4 declared empty: ba bb ab da cb db bc*bb"


def test_a_line_and_its_sgf() -> None:
    record = read_line(SMALL)
    assert write_line(record) == SMALL
    assert record.winner == UNFINISHED
    assert record.scores == (1, 0)
    text = sgf_text(record).replace("\n", "")
    assert ";B[bc.bacbbcabba]" in text
    assert "GM[40]" in text
    assert "SZ[5:4]" in text
    assert read_one(text).actions == record.actions


def with_event(record: GameRecord, event: Event | None) -> GameRecord:
    record = replace(record, event=event)
    return record.with_result(record.final(), unfinished=True)


@pytest.mark.parametrize("event", [None, *(Event(kind, seat) for kind in ("resigned", "time") for seat in range(2))])
def test_a_game_that_stops_while_its_seat_may_draw_is_read_back(event: Event | None) -> None:
    """The record that is read has the same open turn and the same event, such as a resignation."""
    record = read_line(SMALL.replace("*bb", "*"))
    assert record.final().legal_actions().tolist() == [20 + 6, 40]
    ended = with_event(record, event)
    assert read_one(sgf_text(ended)) == ended
    if event in (None, Event("resigned", 0)):
        assert read_line(write_line(ended)) == ended


@pytest.mark.parametrize("event", [Event("resigned", 0), Event("time", 1), Event("left", 1)])
def test_a_line_cannot_hold_other_ends(event: Event) -> None:
    with pytest.raises(ValueError, match="cannot be written as a line of text: the game ended"):
        write_line(with_event(read_line(SMALL), event))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("kropki 5x4 declared: ba", "expected 'kropki 10x10"),
        ("kropki 5x2 declared empty: ba", "height=2"),
        ("kropki 5x4 declared empty: ba ba", r"move 2 \(B4\): .*taken by black"),
        ("kropki 5x4 declared empty: ba bz", r"move 2: no node 'bz': expected aa to ed"),
        ("kropki 5x4 declared empty: ba*bb", r"move 1 \(B4\): .*place it first"),
        (SMALL.replace("*bb", "*cc"), r"move 7 \(B2\): .*nothing can be drawn there"),
        (SMALL.replace("*bb", "*bb*bb"), r"move 7 \(B2\): .*place it first"),
        (SMALL.replace("declared", "immediate"), r"move 7 \(B2\): "),
        (SMALL + " bb", r"move 8 \(B3\): .*taken by white"),
        (SMALL + "*", "move 7: nothing is left to draw"),
        (SMALL.replace("cb", "cb*"), r"move 5 \(C3\): no node ''"),
        ("kropki 3x3 immediate empty: aa ba ca ab bb cb ac bc cc resign", "resign: the game is over"),
    ],
)
def test_wrong_lines_are_refused_by_the_move(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        read_line(text)


HEAD = "(;GM[40]FF[4]SZ[5:4]RU[{}]"
MOVES = ";B[ba];W[bb];B[ab];W[da];B[cb];W[db];B[bc.bacbbcabba])"


@pytest.mark.parametrize(
    ("rules", "territory"),
    [
        ("declared", "declared"),
        ("zagram:Surr=1,MustSurr=0,MinArea=0", "declared"),
        ("immediate", "immediate"),
        ("MustSurr=1,MinArea=1", "immediate"),
        ("russian", "immediate"),
        ("2", "immediate"),
        ("", "immediate"),
    ],
)
def test_records_of_sites_are_read(rules: str, territory: str) -> None:
    record = read_one((HEAD.format(rules) + "PB[a]PW[b]RE[B+R]" + MOVES).replace(";W[db]", ";\nW[d\nb]"))
    assert record.variant.options["territory"] == territory
    assert record.scores == (1, 0)
    assert record.event == Event("resigned", 1)
    assert record.tags == {"black": "a", "white": "b"}


def test_variations_and_drawn_territory_are_left_out() -> None:
    text = HEAD.format("immediate") + ";B[ba](;W[bb];B[ab]TB[.baabbccbba])(;W[aa]))"
    assert read_one(text).actions == (1, 6, 5)


# Made-up games in the styles of sites and programs: zagram.org with STOP, playdots.ru with a cross as moves and with
# grounding, szkrab with line breaks, Kropki for Windows with the other seat's chain, KataGoDots with an empty move.

ZAGRAM = (
    "(;FF[4]GM[40]CA[UTF-8]AP[zagram.org]SZ[6]RU[Punish=0,Holes=1,AddTurn=0,MustSurr=1,MinArea=1,Pass=0,Stop=1,"
    "LastSafe=0,ScoreTerr=0,InstantWin=0]AB[cc][dd]AW[dc][cd]PB[Zażółć]PW[b]TM[60]OT[0+7]BL[75]WL[72]DT[2023-06-09]"
    "RE[B+1]BR[1083]WR[1222];B[db]BL[67];W[fa]WL[66.5];B[ec.dbecddccdb]BL[67]C[B pressed STOP];W[fb];W[fc];W[fd]"
    "TB[.dbecddccdb])"
)
PLAYDOTS = (
    "(;AP[Спортивные Точки (playdots.ru)]GM[40]FF[4]CA[UTF-8]SZ[6:5]RU[russian]PB[a]PW[b]BR[Нет звания, 1200]"
    "WR[Второй разряд, 1300]OT[20 sec / move]EV[турнир]RE[B+1];B[bb];W[cb];B[bc];W[ac];W[cc];B[dc];W[dd];B[cd]"
    ";B[db];W[fa];B[ca];W[ee];W[fb][fc][fd])"
)
SZKRAB = (
    "(;FF[4]GM[40]CA[UTF-8]\nSZ[5:4]\nPB[a]BR[1867]PW[b_]WR[1171]DT[2007-11-23 00:57:07]AP[www.szkrab.net.pl:0.0.1]"
    "\nRE[B+R]\n;B[ba];W[bb];B[ab];W[d\na];B[cb];W[db]\n;B[bc.bacb\nbcabba]\n)"
)
KROPKI = "(;GM[40]FF[4]\nSZ[5:4]\nDT[2017-01-09]\nRU[2]AP[Kropki:0084.12]\n;B[ba];W[da];B[ab];W[db];B[cb];W[ea];B[bc]"
INTO_A_HOUSE = KROPKI + ";W[bb.bacbbcabba])"
KATAGO = "(;FF[4]GM[40]CA[UTF-8]AP[katago]SZ[10:8]KM[0.5]RE[B+1.5]AB[ed][fe][ef]AW[ee][fd];W[de];B[df];W[hd];B[])"


@pytest.mark.parametrize(
    ("text", "rule", "points", "scores", "winner", "stated"),
    [
        (ZAGRAM, "immediate", 3, (1, 0), 0, "B+1"),
        (PLAYDOTS, "immediate", 4, (2, 0), 0, "B+1"),
        (SZKRAB, "immediate", 7, (1, 0), 0, ""),
        (INTO_A_HOUSE, "immediate", 8, (1, 0), UNFINISHED, ""),
        (KATAGO, "immediate", 3, (0, 0), 0, "B+1.5"),
    ],
    ids=["zagram", "playdots", "szkrab", "kropki", "katago"],
)
def test_styles_of_sites(text: str, rule: str, points: int, scores: tuple[int, int], winner: int, stated: str) -> None:
    record = read_one(text)
    assert record.variant.options["territory"] == rule
    nodes = record.variant.options["width"] * record.variant.options["height"]
    assert sum(action < nodes for action in record.actions) == points
    assert record.scores == scores
    assert (record.winner, record.stated, record.counted) == (winner, stated, None)
    assert read_one(sgf_text(record)) == record


def test_other_comments_about_a_stop_are_ignored() -> None:
    """A comment is no stop if its words are not the site's words, or if both seats move after it."""
    for comment in ("Here he should have pressed STOP", "W pressed STOP"):
        assert read_one(HEAD.format("immediate") + f";B[aa]C[{comment}];W[bb];B[cc])").actions == (0, 6, 12)


def test_ratings_are_not_changed() -> None:
    tags = read_one(PLAYDOTS).tags
    assert (tags["black_rank"], tags["white_rank"]) == ("Нет звания, 1200", "Второй разряд, 1300")


@pytest.mark.parametrize("rule", ["declared", "immediate"])
def test_a_move_may_name_a_chain_of_the_other_seat_that_the_rules_then_draw(rule: str) -> None:
    full = f"(;GM[40]SZ[3]RU[{rule}];W[aa];B[ba];W[ca];B[ab];W[ac];B[cb];W[cc];B[bc];W[bb{{}}])"
    for chain in ("", ".baabbccbba"):
        assert read_one(full.format(chain)).scores == (1, 0)
    with pytest.raises(ValueError, match=r"move 9 \(B2\): the chain .baabbccb is not closed"):
        read_one(full.format(".baabbccb"))


def test_a_chain_of_the_other_seat_that_no_rule_draws_is_refused() -> None:
    with pytest.raises(ValueError, match=r"move 8 \(E3\): the chains enclose more than the rules draw"):
        read_one("(;GM[40]SZ[5]RU[declared];B[ba];W[bb];B[ab];W[ea];B[cb];W[eb];B[bc];W[ec.baabbccbba])")


@pytest.mark.parametrize(
    ("text", "winner", "event", "stated"),
    [
        ("W+3", 1, None, "W+3"),
        ("B+G", 0, None, "B+G"),
        ("B won", 0, None, "B won"),
        ("W+Res.", 1, Event("resigned", 0), ""),
        ("B+T", 0, Event("time", 1), ""),
        ("W+Forfeit", 1, Event("left", 0), ""),
        ("0", DRAWN, None, "0"),
        ("Void", UNFINISHED, None, "Void"),
        ("agreed", UNFINISHED, None, "agreed"),
        ("?", UNFINISHED, None, ""),
        ("", UNFINISHED, None, ""),
    ],
)
def test_the_result_of_a_game_that_is_not_over(text: str, winner: int, event: Event | None, stated: str) -> None:
    record = read_one(HEAD.format("immediate") + f"RE[{text}];B[ba])")
    assert (record.winner, record.event, record.stated, record.counted) == (winner, event, stated, None)
    assert record.tags == {}
    assert read_one(sgf_text(record)) == record


@pytest.mark.parametrize(
    ("text", "winner", "stated", "counted"),
    [
        ("W+1", 1, "", None),
        ("W+2", 1, "W+2", None),
        ("B+R", 0, "B+R", 1),
        ("Draw", DRAWN, "Draw", 1),
        ("Void", UNFINISHED, "Void", 1),
        ("agreed", 1, "agreed", None),
        ("?", 1, "", None),
    ],
)
def test_the_result_of_a_game_that_is_over(
    text: str, winner: int, stated: str, counted: int | None, tmp_path: Path
) -> None:
    record = read_one(f"(;GM[40]SZ[3]RU[declared]RE[{text}];B[aa];W[ba];B[ca];W[ab];B[ac];W[cb];B[cc];W[bc];B[bb])")
    assert (record.final().is_over, record.scores) == (True, (0, 1))
    assert (record.winner, record.stated, record.counted) == (winner, stated, counted)
    for name in ("games.sgf", "games.txt"):
        write_records(tmp_path / name, [record])
        assert list(read_records(tmp_path / name)) == [record]


def test_a_tag_of_any_name_is_only_a_tag() -> None:
    odd = read_one(HEAD.format("immediate") + "GC[stated: W+3];B[ba])")
    assert (odd.tags, odd.winner) == ({"stated": "W+3"}, UNFINISHED)
    assert read_one(sgf_text(odd)) == odd


def test_points_may_be_set_up() -> None:
    record = read_one("(;GM[40]SZ[6]RU[russian]AB[aa]AW[bb];W[cc];B[dd])")
    assert record.start().board.sum() == 3
    assert record.start().to_move == 1
    assert read_one("(;GM[40]SZ[6 : 6]RU[russian]AB[aa]AW[bb]PL[White])").start().to_move == 1
    assert read_one("(;GM[40]SZ[6]RU[russian]AB[cc][dd]AW[dc][cd];B[aa])").variant.options["start"] == "cross"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("(;GM[40]SZ[50];B[aa])", r"SZ\['50'\]: expected a board of 3 x 3 to 39 x 32"),
        ("(;GM[40];B[aa])", r"SZ\[''\]"),
        (HEAD.format("declared") + ";B[aa];B[ab])", r"move 2 \(A3\): it is the turn of white"),
        (HEAD.format("declared") + ";B[aa];W[aa])", r"move 2 \(A4\): .*taken by black"),
        (HEAD.format("declared") + ";B[];W[aa])", "move 1: expected a node"),
        (HEAD.format("declared") + ";B[aa];W[ba];W[ea];B[da])", r"move 3 \(E4\): it is the turn of black"),
        (HEAD.format("declared") + ";B[aa];W[ba];W[ba];B[bb])", r"move 3 \(B4\): it is the turn of black"),
        (HEAD.format("declared") + "AB[ab];B[aa];W[ba];W[ca];B[cb])", r"move 3 \(C4\): it is the turn of black"),
        (HEAD.format("declared") + ";B[aa][ab];W[ba])", r"move 2 \(A3\): it is the turn of white"),
        (HEAD.format("declared") + ";B[aa];W[ba];B[ab];B[bb])", r"move 4 \(B3\): it is the turn of white"),
        (HEAD.format("declared") + ";B[zz])", "move 1: no node 'zz'"),
        (HEAD.format("declared") + ";B[aa.ab])", r"move 1 \(A4\): there is nothing to draw"),
        (HEAD.format("declared") + MOVES.replace("abba]", "ab]"), r"move 7 \(B2\): the chain .* is not closed"),
        (HEAD.format("declared") + MOVES.replace(".bacb", ".dbcb").replace("abba", "abdb"), "is not closed"),
        (HEAD.format("declared") + MOVES.replace("bcabba", "bcbbba"), "no live point of black stands on B3"),
        (HEAD.format("immediate") + MOVES.replace("B[bc.", "B[ec."), r"no live point of black stands on B2"),
        (HEAD.format("declared") + "AE[aa];B[ab])", "AE"),
        (HEAD.format("declared") + "AB[aa]AW[bb][aa];B[ab])", r"AW\['aa'\]: a point of the other seat"),
        (HEAD.format("declared") + ";B[ab];AB[aa])", "AB"),
    ],
)
def test_wrong_records_are_refused_by_the_move(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=error) as caught:
        read_one(text)
    assert "\n" not in str(caught.value)


def test_a_chain_that_is_not_minimal_is_refused() -> None:
    moves = ";B[ba];W[bb];B[ab];W[ea];B[cb];W[eb];B[db];W[ec];B[ca];W[ed];B[dc];W[aa];B[cd];W[ad];B[bc{}])"
    wide = ".bacadbdccdbcabba"  # this chain also encloses a free node
    assert read_one("(;GM[40]SZ[6]RU[declared]" + moves.format(".bacbbcabba")).scores == (1, 0)
    with pytest.raises(ValueError, match=r"move 15 \(B4\): the chain .* is not the smallest one"):
        read_one("(;GM[40]SZ[6]RU[declared]" + moves.format(wide))


def test_names_of_nodes() -> None:
    assert [node_to_sgf(node, 39) for node in (0, 26, 38, 39 * 31 + 38)] == ["aa", "Aa", "Ma", "MF"]
    for node in range(39 * 32):
        assert node_from_sgf(node_to_sgf(node, 39), 39, 32) == node


def test_a_game_that_was_set_up_has_no_line() -> None:
    start = Game.from_board(np.eye(5, dtype=np.int8))
    record = GameRecord(start.definition().variant(width=5, height=5), (), (0, 0), UNFINISHED, start_position=start)
    with pytest.raises(ValueError, match="cannot be written as a line of text: the game starts"):
        write_line(record)
