"""Smart Game Format, FF[4]: what the files of all games share. `sgfmill` reads and writes the syntax.

A game whose `Definition.sgf` names a module can be read and written as SGF. That module has two functions:

- `read(nodes)`: takes the `Node`s of a game's main line, root first, and returns a `GameRecord`. It raises `ValueError`
  naming the move that is wrong.
- `write(record)`: takes a `GameRecord` and returns the nodes.

Files hold several games, and variations, of which the main line alone is read.
"""

from __future__ import annotations

import codecs
import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, TypeAlias

from sgfmill import sgf_grammar

from ninetka_env.core.record import GameRecord
from ninetka_env.core.registry import Definition, get_definition, known_games
from ninetka_env.core.text import TAG, quote

Node: TypeAlias = dict[str, list[str]]
"""Properties of a node, each with its values, without escapes."""

MOST_BYTES, DEEPEST = 1_000_000, 1000
"""Longer files, and trees nested deeper, are not read."""

TAGS = {
    "BR": "black_rank", "WR": "white_rank", "BT": "black_team", "WT": "white_team", "DT": "date", "EV": "event",
    "RO": "round", "PC": "place", "TM": "seconds", "OT": "overtime", "GN": "name", "AN": "annotated_by", "CP": "rights",
    "SO": "source", "US": "written_by",
}  # fmt: skip
"""Properties of the root that are kept as tags, beside the names of the players; other tags stand in `GC`."""
RANK = re.compile(r"([1-9]|[12][0-9]|30)[kK]\??|[1-9][dD]\??")
"""Ranks run from 30k to 1k, then from 1d to 9d."""


def read_sgf(data: bytes) -> Iterator[GameRecord]:
    """Yield the games of a file one by one.

    Raises:
        ValueError: naming the game, and the move where one is wrong.
    """
    if len(data) > MOST_BYTES:
        raise ValueError(f"expected at most {MOST_BYTES} bytes")
    _check_depth(data)
    try:
        trees = sgf_grammar.parse_sgf_collection(data)
    except ValueError as error:
        raise ValueError(f"no SGF: {error}") from None
    for number, tree in enumerate(trees, 1):
        try:
            nodes = _decoded(list(sgf_grammar.main_sequence_iter(tree)))
            yield _module(_game_of(nodes[0])).read(nodes)
        except ValueError as error:
            raise ValueError(f"game {number}: {error}") from None


def sgf_text(record: GameRecord) -> str:
    """Return a game as SGF, in lines; `ValueError` if there is no SGF for it."""
    definition = record.variant.definition
    if definition.sgf is None:
        raise ValueError(f"{definition.title} has no form in SGF: expected another name than one in .sgf")
    tree = sgf_grammar.Coarse_game_tree()
    tree.sequence = [
        {name: [sgf_grammar.escape_text(value.encode()) for value in values] for name, values in node.items()}
        for node in _module(definition).write(record)
    ]
    text: str = sgf_grammar.serialise_game_tree(tree).decode()
    return text


def _module(definition: Definition) -> Any:
    assert definition.sgf is not None
    return importlib.import_module(definition.sgf[1])


def _check_depth(data: bytes) -> None:
    depth = 0
    for mark in re.findall(rb"[()]", re.sub(rb"\[(?:\\.|[^\]\\])*\]", b"", data, flags=re.DOTALL)):
        depth += 1 if mark == b"(" else -1
        if depth > DEEPEST:
            raise ValueError(f"expected variations nested at most {DEEPEST} deep")


def _decoded(nodes: list[dict[str, list[bytes]]]) -> list[Node]:
    """Return nodes as text, by the character set that the root names; unless it does, UTF-8 or else Latin-1."""
    names = [value.decode("ascii", "replace") for value in nodes[0].get("CA", [b"UTF-8"])[:1]]
    try:
        codec = codecs.lookup(names[0])
        "".encode(codec.name)  # not all codecs are for text
    except LookupError:
        raise ValueError(f"CA[{quote(names[0])}]: expected a known character set, such as UTF-8") from None

    def text(value: bytes) -> str:
        raw = sgf_grammar.text_value(value)
        if "CA" in nodes[0]:
            return raw.decode(codec.name, "replace")
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return raw.decode("latin-1")

    return [{name: list(map(text, values)) for name, values in node.items()} for node in nodes]


def _game_of(root: Node) -> Definition:
    """Return the game whose number the root names; Go unless it does, as the standard has it."""
    told = value_of(root, "GM", "1")
    numbers = {}
    for name in known_games():
        definition = get_definition(name)
        if definition.sgf is not None:
            numbers[str(definition.sgf[0])] = definition
    if told not in numbers:
        known = ", ".join(f"{number} ({one.title})" for number, one in sorted(numbers.items()))
        raise ValueError(f"GM[{quote(told)}]: expected one of {known}")
    return numbers[told]


# For the modules of the games


def value_of(node: Node, name: str, default: str = "") -> str:
    """Return the first value of a property, without spaces around it."""
    return node.get(name, [default])[0].strip()


def new_root(definition: Definition, record: GameRecord) -> Node:
    """Return a root with what all games have: format, game, character set, players and tags."""
    assert definition.sgf is not None
    root: Node = {
        "GM": [str(definition.sgf[0])],
        "FF": ["4"],
        "CA": ["UTF-8"],
        "AP": [f"ninetka:{version('ninetka-env')}"],
    }
    tags = dict(record.tags)
    for name, key in _tags_of(definition.seats).items():
        if key in tags:
            root[name] = [tags.pop(key)]
    if tags:
        root["GC"] = ["\n".join(f"{key}: {text}" for key, text in tags.items())]
    return root


def read_tags(root: Node, seats: Sequence[str], ranks: bool = False) -> dict[str, str]:
    """Return what a root tells beside the game, by key.

    Raises:
        ValueError: if `ranks`, and a player has one that there is not in Go; elsewhere `BR` and `WR` hold ratings, too.
    """
    tags: dict[str, str] = {}
    for name, key in _tags_of(seats).items():
        text = _one_line(value_of(root, name))
        if ranks and text and name in ("BR", "WR") and not RANK.fullmatch(text):
            raise ValueError(f"{name}[{quote(text)}]: expected a rank of 30k to 1k or 1d to 9d")
        if text:
            tags[key] = text
    for line in value_of(root, "GC").split("\n"):
        match = TAG.fullmatch(line.strip())
        if match and match[2]:
            tags.setdefault(match[1], _one_line(match[2]))
    return tags


def _tags_of(seats: Sequence[str]) -> Mapping[str, str]:
    return {"PB": seats[0].lower(), "PW": seats[1].lower(), **TAGS}


def _one_line(text: str) -> str:
    """Return what of a text may be a tag."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())[:500]
