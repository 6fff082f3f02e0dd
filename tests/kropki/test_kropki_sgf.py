"""Records of Kropki: SGF and lines of text come back as they were, those of sites are read, wrong ones are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ninetka_env.api.record_files import read_records, write_records
from ninetka_env.core.game import Event
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.record import GameRecord
from ninetka_env.core.registry import load_variant
from ninetka_env.core.sgf import read_sgf, sgf_text
from ninetka_env.games.kropki.game import Game
from ninetka_env.games.kropki.sgf import from_sgf, line_of, read_line, to_sgf

SPECS = [
    f"kropki:width={width},height={height},territory={territory},start={start}"
    for width, height in ((3, 3), (6, 6), (10, 10), (7, 12), (12, 5))
    for territory in ("declared", "immediate")
    for start in ("empty", "cross")
]


def random_record(spec: str, seed: int, share: float = 1.0, tags: dict[str, str] | None = None) -> GameRecord:
    """Play a random game; with a smaller share of its turns, a seat resigns then."""
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


def one(text: str) -> GameRecord:
    (record,) = read_sgf(text.encode())
    return record


@pytest.mark.parametrize("spec", SPECS)
def test_games_come_back_from_sgf_and_from_a_line(spec: str) -> None:
    for seed in range(4):
        record = random_record(spec, seed, share=(1.0, 0.5)[seed % 2], tags={"black": "me", "date": "2026-01-01"})
        assert one(sgf_text(record)) == record
        assert read_line(line_of(record)) == GameRecord.of(record.actions, record.variant, event=record.event)


def test_the_rule_is_found_by_the_chains_where_a_file_does_not_tell() -> None:
    for spec in SPECS[8:12]:
        record = random_record(spec, 3)
        text = sgf_text(record)
        assert record.variant.options["territory"] in text
        for told in ("2", ""):
            found = one(text.replace(f"RU[{record.variant.options['territory']}]", f"RU[{told}]"))
            assert found.scores == record.scores
            assert found.final() == record.final() or found.variant != record.variant


def test_files_hold_many_games(tmp_path: Path) -> None:
    records = [random_record(spec, 7) for spec in SPECS]
    assert write_records(tmp_path / "games.sgf", records) == len(records)
    assert list(read_records(tmp_path / "games.sgf")) == records


SMALL = "kropki 5x4 declared empty: ba bb ab da cb db bc*bb"


def test_a_line_and_its_sgf() -> None:
    record = read_line(SMALL)
    assert line_of(record) == SMALL
    assert record.winner == UNFINISHED
    assert record.scores == (1, 0)
    text = sgf_text(record).replace("\n", "")
    assert ";B[bc.bacbbcabba]" in text
    assert "GM[40]" in text
    assert "SZ[5:4]" in text
    assert one(text).actions == record.actions


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
    record = one((HEAD.format(rules) + "PB[a]PW[b]RE[B+R]" + MOVES).replace(";W[db]", ";\nW[d\nb]"))
    assert record.variant.options["territory"] == territory
    assert record.scores == (1, 0)
    assert record.event == Event("resigned", 1)
    assert record.tags == {"black": "a", "white": "b"}


def test_variations_and_drawn_territory_are_left_out() -> None:
    text = HEAD.format("immediate") + ";B[ba](;W[bb];B[ab]TB[.baabbccbba])(;W[aa]))"
    assert one(text).actions == (1, 6, 5)


def test_a_result_by_agreement_is_kept_as_a_tag() -> None:
    record = one(HEAD.format("immediate") + "RE[W+3];B[ba])")
    assert (record.winner, record.tags["told"]) == (UNFINISHED, "W+3")


def test_points_may_be_set_up() -> None:
    record = one("(;GM[40]SZ[6]RU[russian]AB[aa]AW[bb];W[cc];B[dd])")
    assert record.start().board.sum() == 3
    assert record.start().to_move == 1
    assert one("(;GM[40]SZ[6]RU[russian]AB[cc][dd]AW[dc][cd];B[aa])").variant.options["start"] == "cross"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("(;GM[40]SZ[50];B[aa])", r"SZ\['50'\]: expected a board of 3 x 3 to 39 x 32"),
        ("(;GM[40];B[aa])", r"SZ\[''\]"),
        (HEAD.format("declared") + ";B[aa];B[ab])", r"move 2 \(A3\): it is the turn of white"),
        (HEAD.format("declared") + ";B[aa];W[aa])", r"move 2 \(A4\): .*taken by black"),
        (HEAD.format("declared") + ";B[])", "move 1: expected a node"),
        (HEAD.format("declared") + ";B[zz])", "move 1: no node 'zz'"),
        (HEAD.format("declared") + ";B[aa.ab])", r"move 1 \(A4\): there is nothing to draw"),
        (HEAD.format("declared") + MOVES.replace("abba]", "ab]"), r"move 7 \(B2\): the chain .* is not closed"),
        (HEAD.format("declared") + MOVES.replace(".bacb", ".dbcb").replace("abba", "abdb"), "is not closed"),
        (HEAD.format("declared") + MOVES.replace("bcabba", "bcbbba"), "no live point of black stands on B3"),
        (HEAD.format("immediate") + MOVES.replace("B[bc.", "B[ec."), r"no live point of black stands on B2"),
        (HEAD.format("declared") + "AE[aa];B[ab])", "AE"),
        (HEAD.format("declared") + ";B[ab];AB[aa])", "AB"),
        (HEAD.format("declared") + "RE[B won];B[ab])", r"RE\['B won'\]"),
    ],
)
def test_wrong_records_are_refused_by_the_move(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=error) as caught:
        one(text)
    assert "\n" not in str(caught.value)


def test_a_wider_chain_than_the_least_is_refused() -> None:
    moves = ";B[ba];W[bb];B[ab];W[ea];B[cb];W[eb];B[db];W[ec];B[ca];W[ed];B[dc];W[aa];B[cd];W[ad];B[bc{}])"
    wide = ".bacadbdccdbcabba"  # round a free node too
    assert one("(;GM[40]SZ[6]RU[declared]" + moves.format(".bacbbcabba")).scores == (1, 0)
    with pytest.raises(ValueError, match=r"move 15 \(B4\): the chain .* is not the least one"):
        one("(;GM[40]SZ[6]RU[declared]" + moves.format(wide))


def test_names_of_nodes() -> None:
    assert [to_sgf(node, 39) for node in (0, 26, 38, 39 * 31 + 38)] == ["aa", "Aa", "Ma", "MF"]
    for node in range(39 * 32):
        assert from_sgf(to_sgf(node, 39), 39, 32) == node


def test_a_game_that_was_set_up_has_no_line() -> None:
    begin = Game.from_board(np.eye(5, dtype=np.int8))
    record = GameRecord(begin.definition().variant(width=5, height=5), (), (0, 0), UNFINISHED, begin=begin)
    with pytest.raises(ValueError, match="no line of text"):
        line_of(record)
