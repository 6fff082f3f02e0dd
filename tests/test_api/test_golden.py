"""Tests that replay the golden playthroughs with the whole public API of each game; `make golden` writes the files.

A change of rules, actions, masks, planes or rewards makes these tests fail. If the change is intended, increase the
version of the environment and regenerate the files.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from golden.playthrough import (
    FORMATTERS,
    DifferenceError,
    FileView,
    View,
    format_ranges,
    parse_ranges,
    write_playthrough,
)
from golden.regenerate import playthrough, playthroughs_of, recorded_games
from golden.views import GOLDEN_FOLDER, make_header, views_of

from ninetka_env.core.registry import load_variant

FILES = sorted(GOLDEN_FOLDER.glob("*/*.txt"))
EXAMPLE = GOLDEN_FOLDER / "ninetka" / "3-random-continue-pass.txt"


def played_again(path: Path) -> str:
    """Replay a file in the package and return the resulting text."""
    file = FileView(path)
    variant, seed = load_variant(file.header["game"]), int(file.header["seed"])
    return write_playthrough(make_header(variant, seed), [file, *views_of(variant, seed)], file.next_action)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_package_plays_every_line(path):
    assert played_again(path) == path.read_text(encoding="utf-8")


def test_there_is_a_file_for_each_choice_of_options():
    listed = {
        GOLDEN_FOLDER / game / f"{name}.txt" for game in recorded_games() for name in playthroughs_of(game).PLAYTHROUGHS
    }
    assert listed == {*FILES}


def test_regenerating_writes_the_same():
    options, seed = playthroughs_of("ninetka").PLAYTHROUGHS[EXAMPLE.stem]
    assert playthrough("ninetka", options, seed) == EXAMPLE.read_text(encoding="utf-8")


# Tests that differences are found


def altered(folder: Path, number: int, line: str | None) -> Path:
    """Copy the example with line `number` replaced by `line`; if `line` is None, the copy ends before that line."""
    lines = EXAMPLE.read_text(encoding="utf-8").split("\n")
    lines[number - 1 :] = [""] if line is None else [line, *lines[number:]]
    path = folder / EXAMPLE.name
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def last_line(start: str) -> tuple[int, str]:
    """Return the number and the text of the example's last line that starts with `start`."""
    return [
        (n, line) for n, line in enumerate(EXAMPLE.read_text(encoding="utf-8").split("\n"), 1) if line.startswith(start)
    ][-1]


@pytest.mark.parametrize("fact", [fact for fact in FORMATTERS if fact != "passed"])
def test_a_fact_that_differs_is_found(tmp_path, fact):
    number, line = last_line(f"{fact}: ")
    with pytest.raises(DifferenceError, match=rf"(?s)^{fact} after .*{EXAMPLE.name}, line {number}: .*\n.*:"):
        played_again(altered(tmp_path, number, line + "5"))


def test_a_position_that_differs_is_found(tmp_path):
    number, line = last_line("|  6")
    with pytest.raises(DifferenceError, match="position after"):
        played_again(altered(tmp_path, number, line.replace(".", "#", 1)))


def test_an_action_of_another_name_is_found(tmp_path):
    number, line = last_line("20. ")
    with pytest.raises(DifferenceError, match=rf"(?s)action after '19\. .*{EXAMPLE.name}, line {number}: "):
        played_again(altered(tmp_path, number, line + "0"))


def test_a_file_that_ends_early_is_found(tmp_path):
    number, _ = last_line("20. ")
    with pytest.raises(DifferenceError, match="ends, but the game continues"):
        played_again(altered(tmp_path, number - 1, None))


def test_a_difference_from_the_reference_raises(monkeypatch):
    module = playthroughs_of("ninetka")
    right = module.planes_of

    def wrong(game, viewer):
        planes = right(game, viewer)
        planes[20][5][5] ^= game.phase == 2 and viewer == 1
        return planes

    monkeypatch.setattr(module, "planes_of", wrong)
    with pytest.raises(DifferenceError, match=r"planes after '36\. .*\n.*the reference: .*\n.*raw_env"):
        playthrough("ninetka", *module.PLAYTHROUGHS[EXAMPLE.stem])


def test_ranges_are_read_as_written():
    for numbers in ([], [0], [3, 4], [0, 1, 2, 5, 7, 8, 121]):
        assert parse_ranges(format_ranges(numbers)) == numbers
    assert format_ranges([0, 1, 2, 5, 7, 8]) == ["0-2", "5", "7-8"]


def test_a_view_returns_none_by_default():
    assert (View().position(), View().action_name(0)) == (None, None)
