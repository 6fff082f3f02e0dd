"""The syntax of the Go Text Protocol, version 2: commands, responses, arguments.

    7 play black D4         id (optional), name, arguments
    =7                      a successful response; an error is `?7 illegal move`; an empty line ends each response

G. Farneback, "Specification of the Go Text Protocol, version 2, draft 2", 2002. Control characters are removed, tabs
count as spaces, `#` starts a comment. Lines that are empty after this are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ninetka_env.games.go.geometry import action_index, action_name, point_index

MAX_LINE = 1 << 16
"""The maximum number of characters in a line; a longer line gets an error response."""
MIN_GTP_SIZE, MAX_GTP_SIZE = 5, 19
"""The range of board sizes that are supported in GTP."""
COLOURS = {"b": 0, "black": 0, "w": 1, "white": 1}

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_ID = re.compile(r"[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})")


class GtpError(Exception):
    """Raised by a command handler to send an error response; the message becomes the response text."""


class Command(NamedTuple):
    """A parsed command."""

    id: str
    """The id as it was sent, which the response repeats; empty if the command has none."""
    name: str
    arguments: tuple[str, ...]


def read_lines(read: Callable[[], bytes]) -> Iterator[str]:
    """Call `read` until it returns no bytes, and yield the lines of the bytes, decoded as UTF-8.

    Lines are cut after `MAX_LINE + 1` bytes, so that a line that is too long can be recognised.
    """
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
    """Return whether a line is the comment `# interrupt`, with which GoGui interrupts a running search."""
    return _CONTROL.sub("", line).strip() == "# interrupt"


def parse_command(line: str) -> Command | None:
    """Parse a line; return None if it contains no command."""
    words = _CONTROL.sub("", line.partition("#")[0]).split()
    if not words:
        return None
    number = words.pop(0) if _ID.fullmatch(words[0]) else ""
    return Command(number, words[0] if words else "", tuple(words[1:]))


def format_command(name: str, *arguments: object) -> str:
    """Return the line of a command without an id."""
    return " ".join([name, *map(str, arguments)]) + "\n"


def response_prefix(number: str, success: bool = True) -> str:
    """Return the start of a response: `=` or `?`, and the id of the command."""
    return f"{'=' if success else '?'}{number}"


def format_response(number: str, text: str, success: bool = True) -> str:
    """Return a complete response. Empty lines in `text` are removed, because an empty line ends a response."""
    lines = [line.rstrip() for line in text.split("\n")]
    return "\n".join([f"{response_prefix(number, success)} {lines[0]}".rstrip(), *filter(None, lines[1:])]) + "\n\n"


# Arguments: the parse functions raise `GtpError` if a word is not valid


def parse_colour(word: str) -> int:
    """Return the seat of a colour: `b`, `black`, `w` or `white`, in upper or lower case."""
    if word.lower() not in COLOURS:
        raise GtpError("invalid color")
    return COLOURS[word.lower()]


def format_colour(seat: int) -> str:
    """Return the colour of a seat, `b` or `w`."""
    return "bw"[seat]


def parse_move(word: str, size: int) -> int:
    """Return the action of a vertex, such as `D4`, or of `pass`."""
    try:
        action = action_index(word, size)
    except ValueError:
        raise GtpError("invalid coordinate") from None
    if action > size * size:
        raise GtpError("invalid coordinate")
    return action


def parse_point(word: str, size: int) -> int:
    """Return the point of a vertex, such as `D4`."""
    try:
        return point_index(word, size)
    except ValueError:
        raise GtpError("invalid coordinate") from None


def format_move(action: int, size: int) -> str:
    """Return the vertex, `pass` or `resign` of an action."""
    return action_name(action, size)


def parse_integer(word: str) -> int:
    """Return the value of a non-negative integer with at most nine digits."""
    if not re.fullmatch(r"[0-9]{1,9}", word, re.ASCII):
        raise GtpError(f"{word[:20]!r} is not a whole number")
    return int(word)


def parse_number(word: str) -> float:
    """Return the value of a decimal number, which may have a sign."""
    if not _NUMBER.fullmatch(word):
        raise GtpError(f"{word[:20]!r} is not a number")
    return float(word)
