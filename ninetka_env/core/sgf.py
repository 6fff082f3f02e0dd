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
import io
import itertools
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ninetka_env.core.game import Event, Game
from ninetka_env.core.record import GameRecord
from ninetka_env.core.registry import Definition, get_definition, known_games
from ninetka_env.core.stated import COLOURS, counted_result, read_result
from ninetka_env.core.text import MAX_LINE, TAG, one_line, quote

with warnings.catch_warnings():  # of an escape in its text, whenever an installer has not compiled it beforehand
    warnings.simplefilter("ignore")
    from sgfmill import sgf_grammar

Node: TypeAlias = dict[str, list[str]]
"""Properties of a node, each with its values, without escapes."""

MOST_BYTES, DEEPEST = 1_000_000, 1000
"""Of a game with all its variations: longer ones, and those nested deeper, are not read."""

TAGS = {
    "BR": "black_rank", "WR": "white_rank", "BT": "black_team", "WT": "white_team", "DT": "date", "EV": "event",
    "RO": "round", "PC": "place", "TM": "seconds", "OT": "overtime", "GN": "name", "AN": "annotated_by", "CP": "rights",
    "SO": "source", "US": "written_by",
}  # fmt: skip
"""Properties of the root that are kept as tags, as are the names of the players; other tags stand in `GC`."""
LONGEST_TAG = MAX_LINE - 64
"""Longer tags are cut, so that a tag with its key fits into a line of this project's own text."""

_START = re.compile(rb"\(\s*;")
_MARK = re.compile(rb"\[(?:[^\]\\]|\\.)*+\]|[()\[]", re.DOTALL)
"""A whole value, a bracket of a tree, or a value that goes on behind the end of what was read."""


def read_sgf(source: bytes | IO[bytes]) -> Iterator[GameRecord]:
    """Yield the games of a file, or of its bytes, one by one; warn of turns that a game leaves out.

    Raises:
        ValueError: naming the game, and the move where one is wrong.
    """
    texts = _game_texts(io.BytesIO(source) if isinstance(source, bytes) else source)
    for number in itertools.count(1):
        try:
            if (text := next(texts, None)) is None:
                return
            record = _read_game(text)
        except ValueError as error:
            raise ValueError(f"game {number}: {error}") from None
        if record.handed:
            moves = ", ".join(str(move + 1) for move in record.handed[:5]) + ", .." * (len(record.handed) > 5)
            warnings.warn(f"game {number}: the turn before move {moves} is left out, and not played", stacklevel=2)
        yield record


def _game_texts(file: IO[bytes]) -> Iterator[bytes]:
    """Yield what a file holds up to the end of each game, one at least; what follows the last game is none."""
    text, found = b"", False
    while (chunk := file.read(MOST_BYTES)) and len(text) <= MOST_BYTES:
        text, place = text + chunk, 0
        while end := _end_of_game(text, place):
            yield text[place:end]
            place, found = end, True
        text = text[place:]
    if not found or chunk or _START.search(text):
        yield text


def _end_of_game(text: bytes, place: int) -> int:
    """Return where the first game from a place on ends, 0 if it does not."""
    start, depth = _START.search(text, place), 0
    for mark in _MARK.finditer(text, start.start()) if start else ():
        sign = mark[0]
        if sign == b"[":
            return 0
        depth += (sign == b"(") - (sign == b")")
        if depth > DEEPEST:
            raise ValueError(f"expected variations nested at most {DEEPEST} deep")
        if depth == 0:
            return mark.end()
    return 0


def _read_game(text: bytes) -> GameRecord:
    """Return the game that a text holds."""
    if len(text) > MOST_BYTES:
        raise ValueError(f"expected at most {MOST_BYTES} bytes")
    try:
        tree = sgf_grammar.parse_sgf_game(text)
    except ValueError as error:
        raise ValueError(f"no SGF: {error}") from None
    nodes = _decoded(list(sgf_grammar.main_sequence_iter(tree)))
    record: GameRecord = _module(_game_of(nodes[0])).read(nodes)
    return record


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


def _decoded(nodes: list[dict[str, list[bytes]]]) -> list[Node]:
    """Return nodes as text, by the character set that the root names; unless it does, UTF-8 or else Latin-1."""
    names = [value.decode("ascii", "replace") for value in nodes[0].get("CA", [b"UTF-8"])[:1]]
    try:
        codec = codecs.lookup(names[0])
        b"a".decode(codec.name, "replace")  # not all codecs are for text, nor for text of others
    except (LookupError, ValueError):
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


def new_root(definition: Definition, record: GameRecord, final: Game) -> Node:
    """Return a root with what all games have: format, game, character set, result, players and tags."""
    assert definition.sgf is not None
    root: Node = {
        "GM": [str(definition.sgf[0])],
        "FF": ["4"],
        "CA": ["UTF-8"],
        "AP": [f"ninetka:{version('ninetka-env')}"],
        "RE": [record.stated or counted_result(final)],
    }
    tags = dict(record.tags)
    for name, key in _tags_of(definition.seats).items():
        if key in tags:
            root[name] = [tags.pop(key)]
    if tags:
        root["GC"] = ["\n".join(f"{key}: {text}" for key, text in tags.items())]
    return root


def stones_of(board: npt.NDArray[np.int8], name: Callable[[int], str]) -> Node:
    """Return `AB` and `AW`, the stones that are set up, where there are any.

    Args:
        board: the cells in the order of their numbers: 0 empty, seat + 1.
        name: returns SGF's name of a cell.
    """
    stones = {f"A{COLOURS[seat]}": np.flatnonzero(board == seat + 1).tolist() for seat in range(2)}
    return {key: [name(cell) for cell in cells] for key, cells in stones.items() if cells}


def read_tags(root: Node, seats: Sequence[str]) -> dict[str, str]:
    """Return the texts of a root that are kept as tags, by key; each becomes one line.

    Ranks and ratings (`BR`, `WR`) may be any text: sites write them in many ways.
    """
    tags: dict[str, str] = {}
    for name, key in _tags_of(seats).items():
        text = one_line(value_of(root, name), LONGEST_TAG)
        if text:
            tags[key] = text
    for line in value_of(root, "GC").split("\n"):
        match = TAG.fullmatch(line.strip())
        if match and match[2]:
            tags.setdefault(match[1], one_line(match[2], LONGEST_TAG))
    return tags


def with_result(record: GameRecord, final: Game, text: str) -> GameRecord:
    """Return a record with the result that its file states in `RE`.

    Who resigned, lost on time or left ends a game of two that is not over by an event; any other text is kept as
    `GameRecord.stated`, unless it is exactly what the rules give.

    Args:
        record: the game.
        final: its last position.
        text: the value of `RE`, empty if there is none.
    """
    winner, kind = read_result(text, record.seats)
    if kind is not None and winner is not None and not final.is_over:
        record = replace(record, event=Event(kind, 1 - winner))
        return record.with_result(record.final())
    return replace(record, stated=text).with_result(final, unfinished=True)


def _tags_of(seats: Sequence[str]) -> Mapping[str, str]:
    return {"PB": seats[0].lower(), "PW": seats[1].lower(), **TAGS}
