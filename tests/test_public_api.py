"""Tests that the public API has not changed, and that the page *Public API and stability* names all of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from public_api import SECTIONS, SNAPSHOT, differences

PROMISED: dict[str, Any] = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "public-api.md"
TEXT = PAGE.read_text(encoding="utf-8")
TITLES = {"ninetka": "9tka", "go": "Go", "kropki": "Kropki"}
ADVICE = """Users' programs may depend on it, so restore it. If the change is intended, make the old name raise an error
that gives the new name, add both to CHANGELOG.md, change docs/reference/public-api.md, and update the snapshot in the
same commit: make public-api"""


@pytest.mark.parametrize("section", PROMISED)
def test_nothing_public_is_gone_or_has_changed(section: str) -> None:
    if section == "networks":
        pytest.importorskip("torch")
    try:
        found = differences(PROMISED[section], SECTIONS[section](), section)
    except Exception as error:  # a missing name may stop the whole section from being read
        found = [f"{section} cannot be read: {error!r}"]
    if found:
        pytest.fail("\n".join(["the public API has changed:", *(f"  {one}" for one in found), ADVICE]), pytrace=False)


def test_the_snapshot_has_all_sections() -> None:
    assert PROMISED.keys() == SECTIONS.keys()


# The page


@pytest.mark.parametrize("section", PROMISED)
def test_the_page_names_everything_public(section: str) -> None:
    text = " ".join(TEXT.replace('"', "'").split())
    names = dict.fromkeys(names_in(PROMISED[section], section))
    missing = [name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]
    assert not missing, f"{PAGE.name} does not name {', '.join(missing)}, which {SNAPSHOT.name} has under {section!r}"


def names_in(entry: Any, section: str) -> Iterator[str]:
    """Yield the names, parameters, spaces and ranges in a part of the snapshot, as the page writes them."""
    if isinstance(entry, dict):
        for key, value in entry.items():
            yield key.partition("(")[0]
            yield from names_in(value, "agents" if (section, key) == ("networks", "agents") else section)
    elif isinstance(entry, str):
        yield from re.findall(r"Discrete\(\d+\)|Box\(0, 1, \([\d, ]+\), \w+\)|\d+\.\.\d+", entry)
    elif isinstance(entry, list) and section == "commands":
        yield from options_in(entry)
    elif isinstance(entry, list):
        yield from specs(entry) if section == "agents" else (one for one in entry if one != "*")


def options_in(parameters: Iterable[str]) -> set[str]:
    """Return the spellings of a command's options."""
    return {one.partition("=")[0] for one in parameters if one.startswith("-")}


def specs(parameters: Iterable[str]) -> set[str]:
    """Return an agent's options as in a spec: `key=default`, or only `key` if the default is empty or None."""
    found = (one.replace("'", "").replace("=None", "").rstrip("=") for one in parameters if one != "*")
    return {one.replace("=False", "=false").replace("=True", "=true") for one in found}


def table(heading: str) -> list[list[str]]:
    """Return the cells of the page's table whose first row is `heading`."""
    rows = TEXT.partition(f"{heading}\n")[2].partition("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]


def test_the_page_gives_every_command_its_options() -> None:
    rows = {name.strip("`").partition(" ")[0]: options for name, options in table("| command | options |")}
    assert {name: set(re.findall(r"`(-[\w-]+)`", options)) for name, options in rows.items()} == {
        name: options_in(parameters) for name, parameters in PROMISED["commands"].items()
    }


@pytest.mark.parametrize("game", TITLES)
def test_the_page_gives_every_agent_its_options(game: str) -> None:
    rows = [row for row in table("| game | agent | options with their defaults |") if row[0] in ("all", TITLES[game])]
    assert {agent.strip("`"): set(re.findall(r"`([\w=.]+)`", options)) for _, agent, options in rows} == {
        name: specs(options)
        for part in (PROMISED, PROMISED["networks"])
        for name, options in part["agents"][game].items()
    }


# The comparison


PARAMETERS = ["games", "seed=None", "*", "reward='win'"]


@pytest.mark.parametrize(
    ("now", "found"),
    [
        (PARAMETERS, []),
        (["games", "seed=None", "threads=1", "*", "planes=None", "reward='win'", "**options"], []),
        (["games=1", "seed=None", "reward='win'"], []),
        (["games", "*", "reward='win'"], ["seed is gone"]),
        (["all", "seed=None", "*", "reward='win'"], ["games is gone (new: all)", "all is new and required"]),
        (["games", "seed=0", "*", "reward='win'"], ["seed was None by default, is now 0"]),
        (["games", "seed", "*", "reward='win'"], ["seed was None by default, is now required"]),
        (["games", "seed=None", "*", "reward='score'"], ["reward was 'win' by default, is now 'score'"]),
        (["games", "*", "seed=None", "reward='win'"], ["seed was at place 2, has none now"]),
        (["games", "size=9", "seed=None", "*", "reward='win'"], ["seed was at place 2, is now at place 3"]),
        (["games", "seed=None", "*", "reward='win'", "size"], ["size is new and required"]),
    ],
)
def test_what_a_change_of_parameters_breaks(now: list[str], found: list[str]) -> None:
    assert differences({"f": PARAMETERS}, {"f": now}) == [f"f: {one}" for one in found]


def test_removing_variable_keywords_is_a_difference() -> None:
    assert differences({"f": ["game", "**options"]}, {"f": ["game"]}) == ["f: **options is gone"]


@pytest.mark.parametrize(
    ("now", "found"),
    [
        ({"Game": {"ply": "int", "board": "int8 (9, 9)", "size": "int"}, "env": []}, []),
        ({"Game": {"ply": "int"}}, ["Game > board is gone"]),
        ({"Game": {"ply": "int", "cells": "int8 (9, 9)"}}, ["Game > board is gone (new: cells)"]),
        ({"Game": {"ply": "int", "board": "int64 (9, 9)"}}, ["Game > board was 'int8 (9, 9)', is now 'int64 (9, 9)'"]),
        ({"Game": {"ply": [], "board": "int8 (9, 9)"}}, ["Game > ply was 'int', is now []"]),
        ({}, ["Game is gone"]),
    ],
)
def test_what_a_change_of_names_breaks(now: dict[str, Any], found: list[str]) -> None:
    assert differences({"Game": {"ply": "int", "board": "int8 (9, 9)"}}, now) == found
