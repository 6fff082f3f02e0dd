"""Read, write and print files of game records. Readers replay every game; writers replace files atomically.

`ninetka_env.api.records` describes the text format. Paths that end in `.sgf` use the Smart Game Format, for the games
that have it; see `ninetka_env.core.sgf`.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, Any, NoReturn

from ninetka_env.api.records import (
    FORMAT,
    PASSED,
    GameRecord,
    format_record,
    heading,
    moves_line_index,
    moves_line_names,
    option_key,
    parse_event,
    parse_stated_result,
    result_text,
)
from ninetka_env.api.rendering import render_ansi
from ninetka_env.core.files import StrPath, is_special, path_in_errors, replace_file
from ninetka_env.core.game import Event, Game
from ninetka_env.core.options import Choice, Option
from ninetka_env.core.registry import Definition, Variant, get_definition
from ninetka_env.core.sgf import read_sgf, sgf_text
from ninetka_env.core.text import MAX_LINE_LENGTH, TAG_PATTERN, quote

_RESULT = rb"result: [^(]*; (?:[^(]* wins|drawn)(?: \(stated: .*\))?"
_STATED_RESULT = rb"result: [^(;]*, as stated \(.*\); counted: .*"
"""Patterns of the last line of a game in a file, without and with a stated winner. A line with a stated winner ends
with scores, which could be cut off. The line is complete only if a line feed follows."""


def write_records(target: StrPath | IO[str], records: Iterable[GameRecord], *, append: bool = False) -> int:
    """Write games to a file in the order in which `records` yields them.

    With `append=False`, replace the file atomically: on an error an existing file is left unchanged. With
    `append=True`, append each game separately: on an error the file keeps the complete games written so far.

    Args:
        target: a path, or a text file open for writing (then `append` is ignored).
        records: the games; may be a generator.
        append: append to an existing file instead of replacing it.

    Returns:
        The number of games written.

    Raises:
        OSError: if the path cannot be written; the message names it.
        ValueError: if a record cannot be written (see `format_record`), or if `append` is True and the file ends inside
            a game.
    """
    if not isinstance(target, (str, os.PathLike)):
        count = 0
        for text in _texts(records):
            target.write(text)
            count += 1
        return count
    if append and not is_special(Path(target)):
        return _append(Path(target), records)
    return replace_file(target, (text.encode() for text in _texts(records, as_sgf=_is_sgf(target))))


def _is_sgf(path: StrPath) -> bool:
    return os.fspath(path).lower().endswith(".sgf")


def check_format(path: StrPath, variant: Variant) -> None:
    """Raise `ValueError` if games of a variant cannot be written in the format that the path's suffix selects."""
    if _is_sgf(path):
        sgf_text(GameRecord(variant, (), (), 0))


def _texts(records: Iterable[GameRecord], *, as_sgf: bool = False) -> Iterator[str]:
    """Yield the text of each game, with a blank line between games."""
    for number, record in enumerate(records):
        yield "\n" * (number > 0) + (sgf_text if as_sgf else format_record)(record)


def _append(path: Path, records: Iterable[GameRecord]) -> int:
    """Append each game with one write and return the number of games; undo a write that fails."""
    with path_in_errors(path):
        file = path.open("ab+", buffering=0)
    count = 0
    with file:
        separator = _separator(file, path)
        for count, text in enumerate(_texts(records, as_sgf=_is_sgf(path)), 1):
            data = (separator + text if count == 1 else text).encode()
            with path_in_errors(path):
                end = file.seek(0, os.SEEK_END)
                try:
                    if file.write(data) != len(data):
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                except OSError:
                    file.truncate(end)
                    raise
    return count


def _separator(file: IO[bytes], path: Path) -> str:
    """Return the line feeds to write before a game that is appended to the games of a file.

    Raises:
        ValueError: if the file ends inside a game.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - MAX_LINE_LENGTH))
    tail = file.read()
    if not tail.strip():
        return ""
    last = tail.strip().splitlines()[-1]
    is_whole = re.fullmatch(rb".*\)" if _is_sgf(path) else _RESULT, last)
    if not is_whole and not (tail.endswith(b"\n") and re.fullmatch(_STATED_RESULT, last)):
        raise ValueError(f"{path}: ends inside a game: repair it or write to another file")
    return "\n" if tail.endswith(b"\n") else "\n\n"


def read_records(source: StrPath | IO[str]) -> Iterator[GameRecord]:
    """Yield the games of a file one by one; each game is replayed and checked before it is yielded.

    Args:
        source: a path, or a text file open for reading.

    Raises:
        OSError: if the path cannot be read; the message names it.
        ValueError: if a game is not valid (an illegal move, a wrong result, an unknown option, an end inside a game and
            so on); the message gives the file, the line and what was expected.
    """
    if isinstance(source, (str, os.PathLike)):
        if _is_sgf(source):
            yield from _read_sgf(Path(source))
            return
        with Path(source).open(encoding="utf-8-sig", errors="surrogateescape") as file:
            yield from read_records(file)
        return
    lines = _LineReader(source)
    while lines.skip_blank():
        yield _read_record(lines)


def _read_sgf(path: Path) -> Iterator[GameRecord]:
    with path.open("rb") as file:
        try:
            yield from read_sgf(file)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


class _LineReader:
    """Reads the lines of a text file, counts them, and allows one line of lookahead: `next`."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._name = str(getattr(file, "name", "<text>"))
        self.number = 0
        self.next: str | None = ""
        self._advance()

    def _advance(self) -> None:
        """Read the next line into `next`; None after the last line."""
        text = self._file.readline(MAX_LINE_LENGTH + 1)
        self.number += 1
        self.next = text.rstrip() if text else None
        if len(text) > MAX_LINE_LENGTH:
            self.fail(f"expected at most {MAX_LINE_LENGTH} characters in a line")
        if self.next is not None and not self.next.isprintable():
            self.fail(f"expected printable text in UTF-8, found {quote(self.next)}")

    def take(self) -> str:
        """Return `next` and read the following line; return "" at the end of the text."""
        line = self.next
        if line is not None:
            self._advance()
        return line or ""

    def skip_blank(self) -> bool:
        """Skip blank lines; return whether another line follows."""
        while self.next == "":
            self._advance()
        return self.next is not None

    def fail(self, message: str, number: int | None = None) -> NoReturn:
        """Raise `ValueError` for line `number`, by default for the next line."""
        raise ValueError(f"{self._name}, line {number or self.number}: {message}")


def _read_record(lines: _LineReader) -> GameRecord:
    """Read the game record that starts in the next line."""
    first = lines.number
    if lines.next != FORMAT:
        lines.fail(f"expected {FORMAT!r}, found {quote(lines.next or '')}")
    lines.take()
    definition = _read_game(lines)
    variant, tags = _read_tags(lines, first, definition)
    record = _read_drawn(lines, first, GameRecord(variant, (), (), 0, tags=tags))
    moves = _MoveReader(lines, first, record)
    last = moves.read_all()
    number = lines.number
    result = " ".join(word for _, word in _words(lines, first, "result", ()))
    moves.apply_event(parse_event(result, record.seats), number, last)
    stated = parse_stated_result(result) if moves.game.event is None else ""
    record = replace(record, actions=tuple(moves.actions), event=moves.game.event, stated=stated)
    record = record.with_result(moves.game)
    if result != result_text(record):
        lines.fail(f"expected the result {result_text(record)!r}, found {quote(result)}", number)
    if lines.next:
        lines.fail(f"expected a blank line after the result, found {quote(lines.next)}")
    return record


def _read_game(lines: _LineReader) -> Definition:
    """Read the line `game` and return the definition that it names."""
    if not (lines.next or "").startswith("game: "):
        lines.fail(f"expected 'game: ...', found {quote(lines.next or '')}")
    try:
        definition = get_definition((lines.next or "").removeprefix("game: "))
    except ValueError as error:
        lines.fail(str(error))
    lines.take()
    return definition


def _words(lines: _LineReader, first: int, name: str, folded: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Read the line with the key `name`, which must be the next line; yield each word with its line number.

    If `name` is one of `folded`, include the indented lines that continue the line. Error messages name line `first`,
    the first line of the game.
    """
    if not lines.next:
        lines.fail(f"the game that begins in line {first} is cut off: expected '{name}: ...'")
    if not f"{lines.next} ".startswith(f"{name}: "):
        lines.fail(f"expected '{name}: ...', found {quote(lines.next)}")
    number, line = lines.number, lines.take().removeprefix(f"{name}:")
    yield from ((number, word) for word in line.split())
    while name in folded and lines.next and lines.next.startswith(" "):
        number, line = lines.number, lines.take()
        yield from ((number, word) for word in line.split())


def _read_tags(lines: _LineReader, first: int, definition: Definition) -> tuple[Variant, dict[str, str]]:
    """Read the lines between `game` and the moves; return the variant with the options read, and the tags.

    Fail if a key is repeated or an option is missing.
    """
    options = {option_key(one): one for one in definition.options}
    names = definition.stages if definition.stages_in_order else ("moves",)
    values: dict[str, Any] = {}
    tags: dict[str, str] = {}
    while lines.next and not lines.next.startswith(f"{names[0]}:"):
        match = TAG_PATTERN.fullmatch(lines.next)
        if not match:
            lines.fail(f"expected 'key: text' or '{names[0]}: ...', found {quote(lines.next)}")
        key, text = match[1], match[2] or ""
        if key == "game" or key in values or key in tags:
            lines.fail(f"{key!r} is given twice")
        if key in names or key == "result":
            lines.fail(f"expected '{names[0]}: ...' before '{key}: ...'")
        if key in options:
            try:
                values[key] = options[key].parse(text)
            except ValueError:
                one_of = "one of " * isinstance(options[key], Choice)
                lines.fail(f"{key}: {quote(text)}: expected {one_of}{_allowed_values(options[key], ', ')}")
        else:
            tags[key] = text
        lines.take()
    for key, option in options.items():
        if key not in values:
            lines.fail(f"the game that begins in line {first} lacks '{key}: {_allowed_values(option, '|')}'")
    try:
        return definition.variant(**{options[key].name: value for key, value in values.items()}), tags
    except ValueError as error:
        lines.fail(str(error))


def _allowed_values(option: Option, between: str) -> str:
    """Return the allowed values of an option as a record writes them, for messages; `between` separates choices."""
    return between.join(map(str, option.values)) if isinstance(option, Choice) else option.allowed


def _read_drawn(lines: _LineReader, first: int, record: GameRecord) -> GameRecord:
    """Read the actions drawn at random before the first turn and return the record with these actions.

    The actions fill the first line of moves. For a variant without random draws, return the record unchanged.
    """
    count = record.variant.sizes.num_drawn
    if not count:
        return record
    start: Game = record.variant.game_class.start(record.variant, 0)
    names = moves_line_names(record.variant)
    words = list(islice(_words(lines, first, names[0], names), 2 * count))
    try:
        record = replace(record, drawn=tuple(start.action_index(word) for _, word in words))
        record.start()
    except ValueError as error:
        lines.fail(str(error), words[-1][0] if words else None)
    return record


class _MoveReader:
    """Plays the moves of a record as they are read."""

    def __init__(self, lines: _LineReader, first: int, record: GameRecord) -> None:
        self._lines, self._first = lines, first
        self._names = moves_line_names(record.variant)
        self._drawn = bool(record.drawn)
        self.game = record.start()
        self.actions: list[int] = []

    def read_all(self) -> int:
        """Play all lines of moves; return the number of the last line that belongs to a stage reached by the game."""
        last = self._lines.number
        for place, name in enumerate(self._names):
            if not (place == 0 and self._drawn):  # the drawn actions, which fill this line, have been read
                last = self._read(name, place, last)
        return last

    def _read(self, name: str, place: int, last: int) -> int:
        number, expected_passes = self._lines.number, 0
        is_early = (
            not self.game.is_over and moves_line_index(self.game) < place
        )  # an event may end a game before this line
        for number, word in _words(self._lines, self._first, name, self._names):
            if is_early:
                self.fail_unfinished(last)
            if expected_passes or word == PASSED:
                if not expected_passes or word != PASSED:
                    self._fail(f"expected {'a move' if word == PASSED else PASSED}, found {quote(word)}", number)
                expected_passes -= 1
                continue
            if self.game.is_over or moves_line_index(self.game) != place:
                self._fail(f"expected no more moves in phase {name.upper()}, found {quote(word)}", number)
            try:
                self.actions.append(self.game.action_index(word))
                self.game.play(self.actions[-1])
            except ValueError as error:
                self._fail(str(error), number)
            expected_passes = len(self.game.passed)
        if expected_passes:
            self.fail_unfinished(number, PASSED)
        return last if is_early else number

    def apply_event(self, event: Event | None, number: int, last: int) -> None:
        """End the game by `event`; without an event, raise `ValueError` unless the game is over.

        Errors name line `number`, which contains the event, or line `last`, which contains the last move.
        """
        if event is not None:
            try:
                self.game.forfeit(event.seat, event.kind)
            except ValueError as error:
                self._fail(str(error), number)
        elif not self.game.is_over:
            self.fail_unfinished(last)

    def fail_unfinished(self, number: int, expected: str = "") -> NoReturn:
        """Raise the error of an incomplete game; `number` is the line where more was expected."""
        expected = expected or " ".join(map(self.game.action_name, self.game.legal_actions().tolist()))
        name = self._names[min(moves_line_index(self.game), len(self._names) - 1)]
        self._fail(f"phase {name.upper()} is cut off: expected one more of {expected}", number)

    def _fail(self, message: str, number: int) -> NoReturn:
        self._lines.fail(f"after {len(self.actions)} moves: {message}", number)


# Selecting and printing games


def find_record(path: StrPath, number: int = 1) -> GameRecord:
    """Return game `number` of a file, counted from 1.

    Raises:
        OSError: if the path cannot be read.
        ValueError: if the file has no such game, or this game or an earlier game is not valid; see `read_records`.
    """
    count = 0
    for count, record in enumerate(read_records(path), 1):
        if count == number:
            return record
    raise ValueError(f"{os.fspath(path)}: there is no game {number}; the file has {count} games, counted from 1")


def position_at(record: GameRecord, ply: int | None = None) -> Game:
    """Return the position of a game after `ply` plies, counted as `Game.ply` does; None returns the last position.

    The first position is the start position. If it results from random draws, its ply counts the draws.

    Raises:
        ValueError: if the game has no such ply; the message gives the range of plies.
    """
    position = None
    for game in record.replay():
        if ply is None or game.ply == ply:
            position = game
    if position is None:
        raise ValueError(f"ply {ply}: the game has the plies {record.start().ply} to {record.final().ply}")
    return position


def replay_text(record: GameRecord, ply: int | None = None, *, color: bool = True) -> Iterator[str]:
    """Yield a game as text to print: first options, tags and result, then the board of each position.

    Args:
        record: the game.
        ply: yield only the position after this many plies; see `position_at`.
        color: whether to use the colours of a terminal (ANSI escapes).
    """
    positions = record.replay() if ply is None else iter([position_at(record, ply)])
    yield "\n".join(heading(record))
    for game in positions:
        yield render_ansi(game, color=color)
