"""Tests of the atomic replacement of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ninetka_env.core.files import replace_file, replace_files, with_extension


def failing_at(number, function):
    """Return a wrapper of `function` that raises "disk full" at call number `number`."""
    calls = iter(range(1, 100))

    def call(*arguments, **options):
        if next(calls) == number:
            raise OSError(28, "No space left on device")
        return function(*arguments, **options)

    return call


def test_pieces_are_joined_and_counted(tmp_path):
    assert replace_file(tmp_path / "a", iter([b"one ", b"two"])) == 2
    assert replace_file(tmp_path / "b", []) == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"one two", "b": b""}


def test_only_a_known_extension_is_replaced():
    given = ["x", "x.5", "runs.d/x.png", "x.md"]
    assert [str(with_extension(Path(path), ".json")) for path in given] == [
        "x.json", "x.5.json", "runs.d/x.json", "x.json",
    ]  # fmt: skip


@pytest.mark.parametrize("number", [1, 2])
def test_files_that_belong_together_are_replaced_all_or_none(tmp_path, monkeypatch, number):
    one, other = tmp_path / "one", tmp_path / "other"
    replace_files({one: [b"old"], other: [b"old"]})
    monkeypatch.setattr(os, "fsync", failing_at(number, os.fsync))
    with pytest.raises(OSError, match="cannot write: No space left") as caught:
        replace_files({one: [b"new"], other: [b"new"]})
    assert caught.value.filename == str((one, other)[number - 1])
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == {
        "one": "old",
        "other": "old",
    }


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_devices_are_written_to_directly(tmp_path):
    replace_file("/dev/null", [b"x"])
    assert Path("/dev/null").is_char_device()
    with pytest.raises(OSError, match="cannot write: No space left"):
        replace_file("/dev/full", [b"x"])
