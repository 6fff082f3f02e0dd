"""How the Go Text Protocol, version 2, writes commands and answers.

    7 play black D4         id (may be left out), name, arguments
    =7                      success, or `?7 illegal move`; an empty line ends each answer

G. Farneback, "Specification of the Go Text Protocol, version 2, draft 2", 2002. Control characters are nothing, tabs
are spaces, `#` begins a comment, lines with nothing else are no commands and get no answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ninetka_env.games.go.geometry import action_index, action_name, point_index

MAX_LINE = 1 << 16
"""Characters of a line; a longer one is answered with an error."""
SMALLEST, LARGEST = 5, 19
"""Sizes of boards that are played by the protocol."""
COLOURS = {"b": 0, "black": 0, "w": 1, "white": 1}

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_ID = re.compile(r"[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})")


class GtpError(Exception):
    """A command that fails: the text is the answer."""


class Command(NamedTuple):
    """One command."""

    id: str
    """As written, repeated in the answer; empty for none."""
    name: str
    arguments: tuple[str, ...]


def read_lines(read: Callable[[], bytes]) -> Iterator[str]:
    """Yield the lines of what `read` returns bit by bit until that is nothing; long ones are cut behind `MAX_LINE`."""
    rest = b""
    while chunk := read():
        *lines, rest = (rest + chunk).split(b"\n")
        yield from map(_text, lines)
        rest = rest[: MAX_LINE + 1]
    if rest:
        yield _text(rest)


def _text(line: bytes) -> str:
    return line[: MAX_LINE + 1].decode("utf-8", "replace")


def is_interrupt(line: str) -> bool:
    """Tell whether a line is the comment that ends the thinking of the command under way, as GoGui sends it."""
    return _CONTROL.sub("", line).strip() == "# interrupt"


def read_command(line: str) -> Command | None:
    """Return the command of a line; None if there is none."""
    words = _CONTROL.sub("", line.partition("#")[0]).split()
    if not words:
        return None
    number = words.pop(0) if _ID.fullmatch(words[0]) else ""
    return Command(number, words[0] if words else "", tuple(words[1:]))


def write_command(name: str, *arguments: object) -> str:
    """Return the line of a command without id."""
    return " ".join([name, *map(str, arguments)]) + "\n"


def opening(number: str, success: bool = True) -> str:
    """Return what begins an answer to the command of an id."""
    return f"{'=' if success else '?'}{number}"


def write_answer(number: str, text: str, success: bool = True) -> str:
    """Return a whole answer: `text` without empty lines, which would end it early, and the empty line that ends it."""
    lines = [line.rstrip() for line in text.split("\n")]
    return "\n".join([f"{opening(number, success)} {lines[0]}".rstrip(), *filter(None, lines[1:])]) + "\n\n"


# Arguments


def read_colour(word: str) -> int:
    """Return the seat of a colour."""
    if word.lower() not in COLOURS:
        raise GtpError("invalid color")
    return COLOURS[word.lower()]


def write_colour(seat: int) -> str:
    """Return the colour of a seat."""
    return "bw"[seat]


def read_move(word: str, size: int) -> int:
    """Return the action of a vertex or pass; `GtpError` for anything else."""
    try:
        action = action_index(word, size)
    except ValueError:
        raise GtpError("invalid coordinate") from None
    if action > size * size:
        raise GtpError("invalid coordinate")
    return action


def read_point(word: str, size: int) -> int:
    """Return the point of a vertex."""
    try:
        return point_index(word, size)
    except ValueError:
        raise GtpError("invalid coordinate") from None


def write_move(action: int, size: int) -> str:
    """Return the vertex, `pass` or `resign` of an action."""
    return action_name(action, size)


def read_whole(word: str) -> int:
    """Return a whole number of at least 0, of at most nine digits."""
    if not re.fullmatch(r"[0-9]{1,9}", word, re.ASCII):
        raise GtpError(f"{word[:20]!r} is not a whole number")
    return int(word)


def read_number(word: str) -> float:
    """Return a number."""
    if not _NUMBER.fullmatch(word):
        raise GtpError(f"{word[:20]!r} is not a number")
    return float(word)
