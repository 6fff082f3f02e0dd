"""Tests of files of game records, and of printing them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from ninetka.positions import ALL_OPTIONS, Options
from ninetka.some_games import GOLDEN, golden_records, played
from requirements import needs_byte_filenames, needs_posix

from ninetka_env.api.record_files import find_record, position_at, read_records, replay_text, write_records
from ninetka_env.api.records import GameRecord
from ninetka_env.core.game import Event


def three_games() -> list[GameRecord]:
    return [played(options, seed) for seed, options in enumerate(ALL_OPTIONS[:3])]


def test_files_stream_games_out_and_in(tmp_path):
    path, games = tmp_path / "games.txt", three_games()
    assert write_records(path, iter(games[:2])) == 2
    assert write_records(str(path), games[2:], append=True) == 1
    assert list(read_records(path)) == games
    assert write_records(path, games[:1]) == 1
    assert list(read_records(str(path))) == games[:1]
    assert [entry.name for entry in tmp_path.iterdir()] == ["games.txt"]


def test_append_creates_a_file_and_checks_its_end(tmp_path):
    path, games = tmp_path / "games.txt", three_games()
    write_records(path, games[:1], append=True)
    path.write_text(path.read_text(encoding="utf-8").rstrip("\n"), encoding="utf-8")
    write_records(path, games[1:], append=True)
    assert list(read_records(path)) == games
    whole = path.read_text(encoding="utf-8")
    for lost in (3, 40):
        path.write_text(whole[:-lost], encoding="utf-8")
        with pytest.raises(ValueError, match=r"games.txt: ends inside a game"):
            write_records(path, games, append=True)
        assert path.read_text(encoding="utf-8") == whole[:-lost]


def test_append_after_games_and_after_events(tmp_path):
    path, games = tmp_path / "games.txt", three_games()
    path.write_text(GOLDEN.read_text(encoding="utf-8"), encoding="utf-8")
    resigned = GameRecord.of(games[0].actions[:20], event=Event("resigned", 0))
    write_records(path, [resigned], append=True)
    write_records(path, games, append=True)
    assert list(read_records(path)) == [*golden_records(), resigned, *games]


@needs_posix
def test_links_stay_links_and_modes_stay(tmp_path):
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("", encoding="utf-8")
    real.chmod(0o640)
    link.symlink_to(real)
    write_records(link, three_games())
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert len(list(read_records(real))) == 3


@pytest.mark.parametrize("append", [False, True])
def test_paths_that_cannot_be_written_are_named(tmp_path, append):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for path in (tmp_path / "missing" / "games.txt", tmp_path / "file" / "games.txt", tmp_path):
        with pytest.raises(OSError, match="cannot write") as caught:
            write_records(path, three_games(), append=append)
        assert caught.value.filename == str(path)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "x"


@needs_byte_filenames
def test_a_name_may_have_the_maximum_length_but_no_null_character(tmp_path):
    for name in ("a" * 255, "é" * 127, "a" * 200 + ".txt", "\udcff\n"):
        assert write_records(tmp_path / name, three_games()) == 3
        assert len(list(read_records(tmp_path / name))) == 3
    for append in (False, True):
        with pytest.raises(OSError, match=r"cannot write: .*null"):
            write_records(tmp_path / "a\0b", three_games(), append=append)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_is_reported():
    with pytest.raises(OSError, match="cannot write: No space left") as caught:
        write_records("/dev/full", three_games())
    assert caught.value.filename == "/dev/full"


def test_partly_written_game_is_removed(tmp_path):
    resource = pytest.importorskip("resource")
    path, games = tmp_path / "games.txt", three_games()
    write_records(path, games[:1])
    before = path.read_text(encoding="utf-8")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, limits[1]))
    try:
        with pytest.raises(OSError, match="cannot write") as caught:
            write_records(path, games[1:], append=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.filename == str(path)
    assert path.read_text(encoding="utf-8") == before


@pytest.mark.parametrize("kept", [0, 2])
def test_file_is_unchanged_if_the_iterable_of_games_fails(tmp_path, kept):
    path = tmp_path / "games.txt"
    path.write_text("old text", encoding="utf-8")

    def broken() -> Iterator[GameRecord]:
        yield from three_games()[:kept]
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        write_records(path, broken())
    with pytest.raises(ValueError, match="the record says"):
        write_records(path, [replace(played(Options(2)), scores=(9, 9), winner=0)])
    assert path.read_text(encoding="utf-8") == "old text"
    assert list(tmp_path.iterdir()) == [path]


def test_errors_of_the_source_name_the_source(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write_records(tmp_path / "copy.txt", read_records(tmp_path / "missing.txt"))
    assert caught.value.filename == str(tmp_path / "missing.txt")
    assert list(tmp_path.iterdir()) == []


# Replay


def test_replay_finds_games_and_positions():
    path = GOLDEN
    record = find_record(path, 2)
    assert record == golden_records()[1]
    assert position_at(record).is_over
    assert [position_at(record, ply).ply for ply in (9, 45, 60)] == [9, 45, 60]
    assert position_at(find_record(path), 0).ply == 0
    with pytest.raises(ValueError, match=r"games.txt: there is no game 4; the file has 3 games, counted from 1"):
        find_record(path, 4)
    with pytest.raises(ValueError, match="no game 0"):
        find_record(path, 0)
    with pytest.raises(ValueError, match="ply 8: the game has the plies 9 to 7"):
        position_at(record, 8)


def test_replay_prints_tags_and_boards():
    record = find_record(GOLDEN)
    texts = list(replay_text(record, color=False))
    assert len(texts) == 2 + len(record.actions)
    assert "yellow: maxn" in texts[0]
    assert "result: " in texts[0]
    assert "ply 12" in list(replay_text(record, 12, color=False))[1]
    assert len(list(replay_text(record, 12))) == 2
