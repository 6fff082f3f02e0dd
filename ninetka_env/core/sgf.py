"""Reading and writing of the Smart Game Format, FF[4], shared by all games. `sgfmill` handles the syntax.

A game whose `Definition.sgf` names a module can be read and written as SGF. That module has two functions:

- `read(nodes)`: takes the `Node`s of a game's main variation, root first, and returns a `GameRecord`. For an illegal
  move it raises `ValueError` that names the move.
- `write(record)`: takes a `GameRecord` and returns the nodes.

A file can have several games. Of a game with variations, only the main variation is read.
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
from ninetka_env.core.registry import Definition, definitions
from ninetka_env.core.stated_results import COLOURS, counted_result, read_result
from ninetka_env.core.text import MAX_LINE_LENGTH, TAG_PATTERN, one_line, quote

with warnings.catch_warnings():  # compiling sgfmill to bytecode warns of an invalid escape in its source
    warnings.simplefilter("ignore")
    from sgfmill import sgf_grammar

Node: TypeAlias = dict[str, list[str]]
"""The properties of a node; the values are unescaped."""

MAX_BYTES, MAX_DEPTH = 1_000_000, 1000
"""Maximum size in bytes and maximum nesting depth of a game with all its variations; larger games are rejected."""

TAGS = {
    "BR": "black_rank", "WR": "white_rank", "BT": "black_team", "WT": "white_team", "DT": "date", "EV": "event",
    "RO": "round", "PC": "place", "TM": "seconds", "OT": "overtime", "GN": "name", "AN": "annotated_by", "CP": "rights",
    "SO": "source", "US": "written_by",
}  # fmt: skip
"""Maps properties of the root node to the keys of a game record's tags. The names of the players are tags, too, in `PB`
and `PW`. All other tags are in `GC`."""
MAX_TAG_LENGTH = MAX_LINE_LENGTH - 64
"""Longer tags are cut, so that a tag with its key fits into a line of a text game record."""

_START = re.compile(rb"\(\s*;")
_MARK = re.compile(rb"\[(?:[^\]\\]|\\.)*+\]|[()\[]", re.DOTALL)
"""Matches a complete value, a parenthesis of a tree, or the start of a value whose end has not been read yet."""


def read_sgf(source: bytes | IO[bytes]) -> Iterator[GameRecord]:
    """Yield the games of a binary file or of bytes one by one; warn if a game skips turns.

    Raises:
        ValueError: if a game is not valid; the message names the game and, if known, the move.
    """
    texts = _game_texts(io.BytesIO(source) if isinstance(source, bytes) else source)
    for number in itertools.count(1):
        try:
            if (text := next(texts, None)) is None:
                return
            record = _read_game(text)
        except ValueError as error:
            raise ValueError(f"game {number}: {error}") from None
        if record.skipped_turns:
            moves = ", ".join(str(move + 1) for move in record.skipped_turns[:5]) + ", .." * (
                len(record.skipped_turns) > 5
            )
            warnings.warn(f"game {number}: the turn before move {moves} is left out, and not played", stacklevel=2)
        yield record


def _game_texts(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the text of each complete game, then the text after the last complete game if it is an error.

    That text is an error if it starts another game or is too long, or if there is no complete game. The parser then
    reports the error.
    """
    text, found = b"", False
    while (chunk := file.read(MAX_BYTES)) and len(text) <= MAX_BYTES:
        text, place = text + chunk, 0
        while end := _end_of_game(text, place):
            yield text[place:end]
            place, found = end, True
        text = text[place:]
    if not found or chunk or _START.search(text):
        yield text


def _end_of_game(text: bytes, place: int) -> int:
    """Return the end index of the first game that starts at or after `place`; 0 if its end has not been read yet."""
    start, depth = _START.search(text, place), 0
    for mark in _MARK.finditer(text, start.start()) if start else ():
        sign = mark[0]
        if sign == b"[":
            return 0
        depth += (sign == b"(") - (sign == b")")
        if depth > MAX_DEPTH:
            raise ValueError(f"expected variations nested at most {MAX_DEPTH} deep")
        if depth == 0:
            return mark.end()
    return 0


def _read_game(text: bytes) -> GameRecord:
    """Parse the text of one game."""
    if len(text) > MAX_BYTES:
        raise ValueError(f"expected at most {MAX_BYTES} bytes")
    try:
        tree = sgf_grammar.parse_sgf_game(text)
    except ValueError as error:
        raise ValueError(f"not a valid SGF game: {error}") from None
    nodes = _decoded(list(sgf_grammar.main_sequence_iter(tree)))
    record: GameRecord = _module(_game_of(nodes[0])).read(nodes)
    return record


def sgf_text(record: GameRecord) -> str:
    """Return a game record as SGF text; `ValueError` if the game has no SGF format."""
    definition = record.variant.definition
    if definition.sgf is None:
        raise ValueError(f"{definition.title} has no SGF format: expected a file name that does not end in .sgf")
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
    """Decode nodes with the character set in the root's `CA`; without `CA`, with UTF-8 or, if that fails, Latin-1."""
    names = [value.decode("ascii", "replace") for value in nodes[0].get("CA", [b"UTF-8"])[:1]]
    try:
        codec = codecs.lookup(names[0])
        b"a".decode(codec.name, "replace")  # raises for codecs that do not decode bytes to text
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
    """Return the definition of the game whose number is in the root's `GM`; by default Go, as in the SGF standard."""
    game_number = value_of(root, "GM", "1")
    titles = {}
    for definition in definitions():
        if definition.sgf is not None:
            number = str(definition.sgf[0])
            if number == game_number:
                return definition
            titles[number] = definition.title
    known = ", ".join(f"{number} ({title})" for number, title in sorted(titles.items()))
    raise ValueError(f"GM[{quote(game_number)}]: expected one of {known}")


# Functions for the games' SGF modules


def value_of(node: Node, name: str, default: str = "") -> str:
    """Return the first value of a property, stripped."""
    return node.get(name, [default])[0].strip()


def new_root(definition: Definition, record: GameRecord, final: Game) -> Node:
    """Return a root node with the properties that all games have: format, game, character set, result and tags."""
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
    """Return the properties `AB` and `AW` for the stones of a set-up position; a property without stones is omitted.

    Args:
        board: all cells in order: 0 if empty, else seat + 1.
        name: returns the SGF name of a cell, given its index in `board`.
    """
    stones = {f"A{COLOURS[seat]}": np.flatnonzero(board == seat + 1).tolist() for seat in range(2)}
    return {key: [name(cell) for cell in cells] for key, cells in stones.items() if cells}


def read_tags(root: Node, seats: Sequence[str]) -> dict[str, str]:
    """Return the tags in a root node, each reduced to one line.

    Ranks and ratings (`BR`, `WR`) may be any text, because sites write them in many ways.
    """
    tags: dict[str, str] = {}
    for name, key in _tags_of(seats).items():
        text = one_line(value_of(root, name), MAX_TAG_LENGTH)
        if text:
            tags[key] = text
    for line in value_of(root, "GC").split("\n"):
        match = TAG_PATTERN.fullmatch(line.strip())
        if match and match[2]:
            tags.setdefault(match[1], one_line(match[2], MAX_TAG_LENGTH))
    return tags


def with_stated_result(record: GameRecord, final: Game, text: str) -> GameRecord:
    """Return the record with the result that its file states in `RE`.

    If the text says that a seat resigned, lost on time or left, and the game is not over, it becomes the record's
    event. Any other text becomes `GameRecord.stated`, unless it equals the result by the rules.

    Args:
        record: the game record.
        final: the last position of the game.
        text: the value of `RE`, empty if there is none.
    """
    winner, kind = read_result(text, record.seats)
    if kind is not None and winner is not None and not final.is_over:
        record = replace(record, event=Event(kind, 1 - winner))
        return record.with_result(record.final())
    return replace(record, stated=text).with_result(final, unfinished=True)


def _tags_of(seats: Sequence[str]) -> Mapping[str, str]:
    return {"PB": seats[0].lower(), "PW": seats[1].lower(), **TAGS}
