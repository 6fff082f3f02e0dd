"""Positions and whole games as text that a person can read, and games into files (`replay` reads them back).

A *position* is what `str(game)` gives and `Game.from_text` reads:

    9tka  players=2  turn_order=restart  auto_pass=True  to_move=1 (yellow)

          A   B C D   E F G   H I J   K
    11        2 2 .   2 . 1   . 1 1
            +-------+-------+-------+
    10    . | . . . | . . . | 1 . . | 2
     9    1 | . # . | . 2 . | . # . | .
    ..      ..

`1`..`4` are the stones of the seats, numbered by their cell codes (seat 0 is `1`, yellow), in the header too; `#` is a
neutral stone, `.` an empty square. Spaces between the signs and blank lines are free. What a record does not hold (the
last action, who was passed over, how the neutral stones were placed) is not written.

A *game record* is a block of lines; a blank line parts it from the next in the same file:

    9tka record, format 1
    players: 2
    neutral_placement: players
    turn_order: restart
    auto_pass: True
    yellow: maxn
    blue: random
    neutral: C9 F8 I7 C6 E5 H6 D3 G2 I3
    placement: B11 A10 ...
      K4 ...
    movement: B11 A10 (pass) K4 ...
    result: yellow 5, blue 3; yellow wins

The four options are always written. Other tags (lower-case key, one line of text) are free; by convention the agents
stand under the colours of their seats. `neutral` has the nine squares in the order played, or as drawn at random.
Moves are the squares touched; `pass` is a move that a seat had to make (`auto_pass: False`), `(pass)` is no move but
shows a seat that the rules passed over. Long move lines go on in indented lines. `result` closes the game.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import fill
from typing import IO, Any, TypeVar

import numpy as np
import numpy.typing as npt

from ninetka_env.files import StrPath, is_special, naming, replace_file
from ninetka_env.game import NEUTRAL_PLACEMENTS, Game, check_options
from ninetka_env.geometry import (
    COLUMN_NAMES,
    EDGE,
    LINE_SQUARES,
    NEUTRAL_STONE,
    NUM_NEUTRALS,
    NUM_SQUARES,
    PASS,
    SIZE,
    SLOT_END,
    SLOT_LINE,
    SQUARE_SLOT,
    action_name,
    square_name,
)
from ninetka_env.rules import TURN_ORDERS, Phase

COLOURS = ("yellow", "blue", "orange", "green")
"""What people call the seats, after the colours of their stones."""

CELL_SIGNS = ".1234#"
"""The sign of each cell code."""

_GameT = TypeVar("_GameT", bound=Game)


# Positions


def write_game(game: Game) -> str:
    """Return a position as text that `read_game` reads back; the format is described at the top of this module."""
    seat = game.to_move
    header = (
        f"9tka  players={game.num_players}  turn_order={game.turn_order}  auto_pass={game.auto_pass}  "
        f"to_move={seat + 1} ({COLOURS[seat]})"
    )
    signs = iter(CELL_SIGNS[code] for code in game.board.ravel()[_DRAWN])
    board = [re.sub(r"\?", lambda _: next(signs), line) for line in _board_lines()]
    return "\n".join([header, "", *board])


def _board_lines() -> list[str]:
    """Return the drawing of the board, `?` for each of the 117 squares that are used."""
    border = 8 * " " + "+-------" * 3 + "+"
    lines = [6 * " " + "   ".join(" ".join(COLUMN_NAMES[a:b]) for a, b in ((0, 1), (1, 4), (4, 7), (7, 10), (10, 11)))]
    for row in range(SIZE):
        if row in (0, 10):
            lines.append(f"{SIZE - row:2}" + 8 * " " + "   ".join(["? ? ?"] * 3))
        else:
            lines.append(f"{SIZE - row:2}    ? | ? ? ? | ? ? ? | ? ? ? | ?")
        if row % 3 == 0 and row <= 9:
            lines.append(border)
    return lines


_DRAWN = np.setdiff1d(np.arange(NUM_SQUARES), [0, 10, 110, 120])
"""The squares in the order of the signs: all but the corners."""

_HEADER = re.compile(
    r"9tka players=([234]) turn_order=(restart|continue) auto_pass=(True|False) to_move=([1-4]) \((\w+)\)"
)
_HEADER_HELP = "9tka  players=2|3|4  turn_order=restart|continue  auto_pass=True|False  to_move=1 (yellow)"


def read_game(text: str, cls: type[_GameT] = Game) -> _GameT:  # type: ignore[assignment]  # the default is a Game
    """Return the position that `write_game` wrote.

    Raises:
        ValueError: if the text is no such position, naming the line and what was expected there, or if the board is
            impossible in a game.
    """
    lines = [(number, " ".join(line.split())) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    number, header = lines[0] if lines else (1, "")
    match = _HEADER.fullmatch(header)
    if not match:
        raise ValueError(f"line {number}: expected {_HEADER_HELP!r}, found {quote(header)}")
    players, turn_order, auto_pass, to_move, colour = match.groups()
    num_players, seat = int(players), int(to_move) - 1
    if seat >= num_players or colour != COLOURS[seat]:
        allowed = ", ".join(f"{n + 1} ({COLOURS[n]})" for n in range(num_players))
        raise ValueError(f"line {number}: to_move={to_move} ({quote(colour)}): expected one of {allowed}")
    board = _read_board(lines[1:], number, num_players)
    try:
        return _set_up(cls, board, seat, num_players, turn_order, auto_pass == "True")
    except ValueError as error:
        raise ValueError(f"line {number} with the board in lines {lines[1][0]} to {lines[-1][0]}: {error}") from None


def _read_board(lines: list[tuple[int, str]], last: int, num_players: int) -> npt.NDArray[np.int8]:
    """Return the (11, 11) board of numbered lines that follow line `last`."""
    signs = CELL_SIGNS[: num_players + 1] + CELL_SIGNS[NEUTRAL_STONE]
    codes: list[int] = []
    for index, drawn in enumerate(_board_lines()):
        expected = f"{' '.join(drawn.split())!r}" + (f" with each ? one of {' '.join(signs)}" if "?" in drawn else "")
        if index >= len(lines):
            raise ValueError(f"line {last + 1}: expected {expected}, found the end of the text")
        last, line = lines[index]
        words, wanted = line.split(), drawn.split()
        if len(words) != len(wanted) or any(
            word != want if want != "?" else len(word) != 1 or word not in signs
            for word, want in zip(words, wanted, strict=True)
        ):
            raise ValueError(f"line {last}: expected {expected}, found {quote(line)}")
        codes.extend(CELL_SIGNS.index(word) for word, want in zip(words, wanted, strict=True) if want == "?")
    for number, line in lines[index + 1 :]:
        raise ValueError(f"line {number}: expected the end of the text, found {quote(line)}")
    board = np.zeros(NUM_SQUARES, np.int8)
    board[_DRAWN] = codes
    return board.reshape(SIZE, SIZE)


def _set_up(
    cls: type[_GameT], board: npt.NDArray[np.int8], seat: int, num_players: int, turn_order: str, auto_pass: bool
) -> _GameT:
    """Set up a position that may have begun with either way to place the neutral stones."""
    options: dict[str, Any] = {"turn_order": turn_order, "auto_pass": auto_pass}
    errors = []
    for neutral_placement in NEUTRAL_PLACEMENTS:
        try:
            game = cls.from_board(board, seat, num_players, neutral_placement=neutral_placement, **options)
        except ValueError as error:
            errors.append(error)
            continue
        if game.to_move != seat:
            raise ValueError(
                f"to_move={seat + 1} ({COLOURS[seat]}): none of its stones can slide, so it is passed over"
            )
        return game
    raise errors[0]


def last_landing(game: Game) -> int | None:
    """Return the square where the stone of the last action stands; None at the start and after a pass."""
    square = game.last_action
    if square is None or square == PASS:
        return None
    if not EDGE[square] or game.board.flat[square]:
        return square
    slot = SQUARE_SLOT[square]  # it slid over empty squares, so it is the first stone met on the way in
    places = LINE_SQUARES[SLOT_LINE[slot]][:: -1 if SLOT_END[slot] else 1]
    return int(next(place for place in places if game.board.flat[place]))


def describe_last(game: Game) -> str:
    """Say what the last action was and who was passed over after it, such as `"blue: A5 to D5; yellow passed over"`."""
    if game.last_action is None:
        return ""
    landing = last_landing(game)
    if landing is None:
        return f"{COLOURS[(game.to_move - 1) % game.num_players]}: pass"
    code = int(game.board.flat[landing])
    told = f"{'neutral stone' if code == NEUTRAL_STONE else COLOURS[code - 1]}: {square_name(game.last_action)}"
    if landing != game.last_action:
        told += f" to {square_name(landing)}"
    passed = " and ".join(COLOURS[seat] for seat in game.passed)
    return f"{told}; {passed} passed over" if passed else told


def quote(text: str) -> str:
    """Quote what was found, shortened."""
    return repr(text) if len(text) <= 80 else f"{text[:80]!r} ..."


# Games


@dataclass(frozen=True)
class GameRecord:
    """A finished game from its first action to its result; `GameRecord.of` makes one."""

    num_players: int
    actions: tuple[int, ...]
    """Every action played by a seat, also passes with `auto_pass` off; not the passes that the rules played."""
    scores: tuple[int, ...]
    winner: int
    neutral_placement: str = "players"
    turn_order: str = "restart"
    auto_pass: bool = True
    neutrals: tuple[int, ...] = ()
    """The nine squares drawn with `neutral_placement="random"`, else empty."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Free text by key: the agents under the colours of their seats, `seed`, `date` ..."""

    @classmethod
    def of(
        cls,
        actions: Iterable[int],
        num_players: int = 2,
        *,
        neutral_placement: str = "players",
        turn_order: str = "restart",
        auto_pass: bool = True,
        neutrals: Iterable[int] = (),
        tags: Mapping[str, str] | None = None,
    ) -> GameRecord:
        """Record a finished game by its actions; its result is found by playing them.

        Raises:
            ValueError: if an option or an action is wrong, or the game is not over after the last.
        """
        played, drawn = tuple(map(int, actions)), tuple(map(int, neutrals))
        record = cls(num_players, played, (), 0, neutral_placement, turn_order, auto_pass, drawn, dict(tags or {}))
        return record.with_result(record.final())

    def start(self) -> Game:
        """Return the position before the first action.

        Raises:
            ValueError: if an option is wrong or the neutral stones cannot have been drawn like this.
        """
        options: dict[str, Any] = {"turn_order": self.turn_order, "auto_pass": self.auto_pass}
        check_options(self.num_players, self.neutral_placement, self.turn_order, self.auto_pass)
        if self.neutral_placement == "players":
            if self.neutrals:
                raise ValueError(f"{len(self.neutrals)} neutral stones are given, but the players place them")
            return Game.new(self.num_players, **options)
        if len(self.neutrals) != NUM_NEUTRALS or len({*self.neutrals} & {*range(NUM_SQUARES)}) != NUM_NEUTRALS:
            named = " ".join(square_name(square) for square in self.neutrals[: 2 * NUM_NEUTRALS])
            raise ValueError(f"neutral stones on {named or 'no square'}: expected {NUM_NEUTRALS} different squares")
        board = np.zeros((SIZE, SIZE), np.int8)
        board.flat[list(self.neutrals)] = NEUTRAL_STONE
        return Game.from_board(board, 0, self.num_players, neutral_placement="random", **options)

    def replay(self) -> Iterator[Game]:
        """Yield the position before the first action and after each one, every time a game of its own.

        Raises:
            ValueError: if an action is illegal, naming it and what is legal.
        """
        game = self.start()
        yield game.copy()
        for action in self.actions:
            game.play(action)
            yield game.copy()

    def final(self) -> Game:
        """Return the last position; raises as `replay` does."""
        game = self.start()
        for action in self.actions:
            game.play(action)
        return game

    def with_result(self, final: Game) -> GameRecord:
        """Return the record with the result of its last position; `ValueError` if the game is not over there."""
        if not final.is_over:
            raise ValueError(f"the game is not over after {len(self.actions)} actions: {final!r}")
        return replace(self, scores=tuple(map(int, final.scores())), winner=final.winner())


FORMAT = "9tka record, format 1"
OPTIONS: dict[str, dict[str, Any]] = {
    "players": {"2": 2, "3": 3, "4": 4},
    "neutral_placement": {choice: choice for choice in NEUTRAL_PLACEMENTS},
    "turn_order": {choice: choice for choice in TURN_ORDERS},
    "auto_pass": {"True": True, "False": False},
}
MOVES = {phase.name.lower(): phase for phase in Phase}
PASSED = "(pass)"
TAG = re.compile(r"([a-z][a-z0-9_]{0,31}):(?: (\S(?:.*\S)?))?")
MAX_LINE = 4096
"""Longer lines than this many characters are neither written nor read."""


def format_record(record: GameRecord) -> str:
    """Return a game as text, one block of lines; the format is described at the top of this module.

    Raises:
        ValueError: if the record does not replay to its own result, or a tag cannot be written.
    """
    words, final = _words_by_phase(record)
    played = record.with_result(final)
    if (record.scores, record.winner) != (played.scores, played.winner):
        told = f"scores {record.scores} and winner {record.winner}"
        raise ValueError(f"the record says {told}, but its actions lead to {result_text(played)!r}")
    lines = [
        FORMAT,
        *heading(record)[:-1],
        *(fill(f"{name}: {' '.join(words[name])}", 88, subsequent_indent="  ") for name in MOVES),
        heading(record)[-1],
    ]
    return "\n".join(lines) + "\n"


def heading(record: GameRecord) -> list[str]:
    """Return the lines of a record but for the first one and the moves: options, tags, result."""
    return [
        f"players: {record.num_players}",
        *(f"{name}: {getattr(record, name)}" for name in list(OPTIONS)[1:]),
        *(_tag_line(key, text) for key, text in record.tags.items()),
        f"result: {result_text(record)}",
    ]


def result_text(record: GameRecord) -> str:
    """Return scores and winner as the record writes them."""
    told = ", ".join(f"{colour} {score}" for colour, score in zip(COLOURS, record.scores, strict=False))
    return f"{told}; {COLOURS[record.winner]} wins"


def _tag_line(key: str, text: str) -> str:
    line = f"{key}: {text}" if text else f"{key}:"
    if key in OPTIONS or key in MOVES or key == "result":
        raise ValueError(f"tag {key!r}: the name is taken by the format")
    if not (TAG.fullmatch(line) and line.isprintable() and len(line) < MAX_LINE):
        raise ValueError(
            f"tag {quote(key)}: {quote(text)}: expected a key of at most 32 of a..z 0..9 _ and one line of at most "
            f"{MAX_LINE} printable characters without spaces at its ends"
        )
    return line


def _words_by_phase(record: GameRecord) -> tuple[dict[str, list[str]], Game]:
    """Return the words of the three lines of moves, and the last position."""
    words: dict[str, list[str]] = {name: [] for name in MOVES}
    words["neutral"] += map(square_name, record.neutrals)
    game = record.start()
    for action in record.actions:
        words[game.phase.name.lower()].append(action_name(action))
        game.play(action)
        words["movement"] += [PASSED] * len(game.passed)
    return words, game


# Files


def write_records(target: StrPath | IO[str], records: Iterable[GameRecord], *, append: bool = False) -> int:
    """Write games into a file, one after the other as `records` yields them.

    With `append=False` a path is replaced only when all games are written; if anything fails, a file that was there
    stays as it was. With `append=True` each game is added by itself, whole or not at all.

    Args:
        target: a path, or a text file open for writing (then `append` does not matter).
        records: the games; may be a generator.
        append: add to the games of an existing file.

    Returns:
        How many games were written.

    Raises:
        OSError: if the path cannot be written, naming it.
        ValueError: if a record is wrong (see `format_record`), or `append` finds that the file ends inside a game.
    """
    if not isinstance(target, (str, os.PathLike)):
        count = 0
        for text in _texts(records):
            target.write(text)
            count += 1
        return count
    if append and not is_special(Path(target)):
        return _append(Path(target), records)
    return replace_file(target, (text.encode() for text in _texts(records)))


def _texts(records: Iterable[GameRecord]) -> Iterator[str]:
    """Yield the text of each game, blank lines between them."""
    for number, record in enumerate(records):
        yield "\n" * (number > 0) + format_record(record)


def _append(path: Path, records: Iterable[GameRecord]) -> int:
    """Add games, each in one write; a write that fails half-way is taken back."""
    with naming(path):
        file = path.open("ab+", buffering=0)
    count = 0
    with file:
        gap = _gap(file, path)
        for count, text in enumerate(_texts(records), 1):
            data = (gap + text if count == 1 else text).encode()
            with naming(path):
                end = file.seek(0, os.SEEK_END)
                try:
                    if file.write(data) != len(data):
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                except OSError:
                    file.truncate(end)
                    raise
    return count


def _gap(file: IO[bytes], path: Path) -> str:
    """Return what parts the games that a file holds from the next one."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - MAX_LINE))
    tail = file.read()
    if not tail.strip():
        return ""
    if not re.fullmatch(rb"result: .* wins", tail.strip().splitlines()[-1]):
        raise ValueError(f"{path}: ends inside a game: repair it or write to another file")
    return "\n" if tail.endswith(b"\n") else "\n\n"
