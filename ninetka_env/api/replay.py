"""Games read back from files, checked move by move, and shown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, Any, NoReturn

from ninetka_env.core.files import StrPath
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import NUM_NEUTRALS, action_index, action_name, square_index
from ninetka_env.games.ninetka.text import (
    FORMAT,
    MAX_LINE,
    MOVES,
    OPTIONS,
    PASSED,
    TAG,
    GameRecord,
    heading,
    quote,
    result_text,
)
from ninetka_env.games.ninetka.render import render_ansi
from ninetka_env.games.ninetka.rules import Phase


def read_records(source: StrPath | IO[str]) -> Iterator[GameRecord]:
    """Yield the games of a file one by one, each replayed and found right before it is handed out.

    Args:
        source: a path, or a text file open for reading.

    Raises:
        OSError: if the path cannot be read, naming it.
        ValueError: if a game is broken (an illegal move, a wrong result, an unknown option, an end inside a game ...),
            naming file, line and what was expected.
    """
    if isinstance(source, (str, os.PathLike)):
        with Path(source).open(encoding="utf-8-sig", errors="surrogateescape") as file:
            yield from read_records(file)
        return
    lines = _Lines(source)
    while lines.skip_blank():
        yield _read_record(lines)


class _Lines:
    """The lines of a text file, counted, with the next one in view."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._name = str(getattr(file, "name", "<text>"))
        self.number = 0
        self.next: str | None = ""
        self._advance()

    def _advance(self) -> None:
        """Bring the next line into view; `next` is None after the last."""
        text = self._file.readline(MAX_LINE + 1)
        self.number += 1
        self.next = text.rstrip() if text else None
        if len(text) > MAX_LINE:
            self.fail(f"expected at most {MAX_LINE} characters in a line")
        if self.next is not None and not self.next.isprintable():
            self.fail(f"expected printable text in UTF-8, found {quote(self.next)}")

    def take(self) -> str:
        """Return the line in view and go on; at the end of the text return ""."""
        line = self.next
        if line is not None:
            self._advance()
        return line or ""

    def skip_blank(self) -> bool:
        """Go to the next line that is not blank; tell whether there is one."""
        while self.next == "":
            self._advance()
        return self.next is not None

    def fail(self, message: str, number: int | None = None) -> NoReturn:
        """Raise the error of a line, the one in view unless told."""
        raise ValueError(f"{self._name}, line {number or self.number}: {message}")


def _read_record(lines: _Lines) -> GameRecord:
    """Read the game that starts in the line in view."""
    first = lines.number
    if lines.next != FORMAT:
        lines.fail(f"expected {FORMAT!r}, found {quote(lines.next or '')}")
    lines.take()
    record = _read_tags(lines, first)
    if record.neutral_placement == "random":
        record = _read_neutrals(lines, first, record)
    moves = _Moves(lines, record)
    for name, phase in MOVES.items():
        if phase != Phase.NEUTRAL or record.neutral_placement == "players":
            moves.read(_words(lines, first, name), phase)
    record = replace(record, actions=tuple(moves.actions)).with_result(moves.game)
    number, expected = lines.number, result_text(record)
    if (told := " ".join(word for _, word in _words(lines, first, "result"))) != expected:
        lines.fail(f"expected the result {expected!r}, found {quote(told)}", number)
    if lines.next:
        lines.fail(f"expected a blank line after the result, found {quote(lines.next)}")
    return record


def _words(lines: _Lines, first: int, name: str) -> Iterator[tuple[int, str]]:
    """Yield the words of the line `name`, which must come now, and of indented lines, each with its line's number."""
    if not lines.next:
        lines.fail(f"the game that begins in line {first} is cut off: expected '{name}: ...'")
    if not f"{lines.next} ".startswith(f"{name}: "):
        lines.fail(f"expected '{name}: ...', found {quote(lines.next)}")
    number, line = lines.number, lines.take().removeprefix(f"{name}:")
    yield from ((number, word) for word in line.split())
    while name in MOVES and lines.next and lines.next.startswith(" "):
        number, line = lines.number, lines.take()
        yield from ((number, word) for word in line.split())


def _read_tags(lines: _Lines, first: int) -> GameRecord:
    """Read options and tags up to the moves; return them as a record of no moves."""
    values: dict[str, Any] = {}
    tags: dict[str, str] = {}
    while lines.next and not lines.next.startswith("neutral:"):
        match = TAG.fullmatch(lines.next)
        if not match:
            lines.fail(f"expected 'key: text' or 'neutral: ...', found {quote(lines.next)}")
        key, text = match[1], match[2] or ""
        if key in values or key in tags:
            lines.fail(f"{key!r} is given twice")
        if key in MOVES or key == "result":
            lines.fail(f"expected 'neutral: ...' before '{key}: ...'")
        if key in OPTIONS:
            if text not in OPTIONS[key]:
                lines.fail(f"{key}: {quote(text)}: expected one of {', '.join(OPTIONS[key])}")
            values[key] = OPTIONS[key][text]
        else:
            tags[key] = text
        lines.take()
    for key in OPTIONS:
        if key not in values:
            lines.fail(f"the game that begins in line {first} lacks '{key}: {'|'.join(OPTIONS[key])}'")
    return GameRecord(values.pop("players"), (), (), 0, **values, tags=tags)


def _read_neutrals(lines: _Lines, first: int, record: GameRecord) -> GameRecord:
    """Read the neutral stones that were drawn at random."""
    words = list(islice(_words(lines, first, "neutral"), 2 * NUM_NEUTRALS))
    try:
        record = replace(record, neutrals=tuple(square_index(word) for _, word in words))
        record.start()
    except ValueError as error:
        lines.fail(str(error), words[-1][0] if words else None)
    return record


class _Moves:
    """Plays the moves of a record as they are read."""

    def __init__(self, lines: _Lines, record: GameRecord) -> None:
        self._lines = lines
        self.game = record.start()
        self.actions: list[int] = []

    def read(self, words: Iterator[tuple[int, str]], phase: Phase) -> None:
        """Play the words of one phase, which must complete it."""
        number, passed = self._lines.number, 0
        for number, word in words:
            if passed or word == PASSED:
                if not passed or word != PASSED:
                    self._fail(f"expected {'a move' if word == PASSED else PASSED}, found {quote(word)}", number)
                passed -= 1
                continue
            if self._is_complete(phase):
                self._fail(f"expected no more moves in phase {phase.name}, found {quote(word)}", number)
            try:
                self.actions.append(action_index(word))
                self.game.play(self.actions[-1])
            except ValueError as error:
                self._fail(str(error), number)
            passed = len(self.game.passed)
        if passed or not self._is_complete(phase):
            legal = PASSED if passed else " ".join(map(action_name, self.game.legal_actions()))
            self._fail(f"phase {phase.name} is cut off: expected one more of {legal}", number)

    def _is_complete(self, phase: Phase) -> bool:
        return self.game.phase > phase or self.game.is_over

    def _fail(self, message: str, number: int) -> NoReturn:
        self._lines.fail(f"after {len(self.actions)} moves: {message}", number)


# What a person asks for


def find_record(path: StrPath, game: int = 1) -> GameRecord:
    """Return the game number `game` of a file, counted from 1.

    Raises:
        OSError: if the path cannot be read.
        ValueError: if the file has no such game, or a game up to it is broken; see `read_records`.
    """
    count = 0
    for count, record in enumerate(read_records(path), 1):
        if count == game:
            return record
    raise ValueError(f"{os.fspath(path)}: there is no game {game} among its {count}, counted from 1")


def position_at(record: GameRecord, ply: int | None = None) -> Game:
    """Return the position of a game after `ply` plies, counted as `Game.ply` does; None: the last one.

    Raises:
        ValueError: naming the plies that the record has (stones drawn at random have no positions of their own).
    """
    position = None
    for game in record.replay():
        if ply is None or game.ply == ply:
            position = game
    if position is None:
        raise ValueError(f"ply {ply}: the game has the plies {record.start().ply} to {record.final().ply}")
    return position


def replay_text(record: GameRecord, ply: int | None = None, *, color: bool = True) -> Iterator[str]:
    """Yield a game as text to print: first options, tags and result, then the drawn board of each position.

    Args:
        record: the game.
        ply: show only the position after this many plies; see `position_at`.
        color: use the colours of a terminal (ANSI escapes).
    """
    positions = record.replay() if ply is None else iter([position_at(record, ply)])
    yield "\n".join(heading(record))
    for game in positions:
        yield render_ansi(game, color=color)
