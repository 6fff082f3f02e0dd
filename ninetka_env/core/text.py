"""Text that people write and programs read: how lines look, and words about what was found."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

TAG = re.compile(r"([a-z][a-z0-9_]{0,31}):(?: (\S(?:.*\S)?))?")
"""A line of a record: a key, and its text."""
MAX_LINE = 4096
"""Longer lines than this many characters are neither written nor read."""


def one_line(text: str, most: int = 500) -> str:
    """Return a text as one line of at most `most` printable characters; runs of other characters become one space."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(printable.split())[:most].rstrip()


def quote(text: str) -> str:
    """Quote what was found, shortened."""
    return repr(text) if len(text) <= 80 else f"{text[:80]!r} ..."


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that is nearest to this one; empty if none is near."""
    return next(iter(difflib.get_close_matches(word, known, n=1)), "")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question for the end of an error, with the known word that is nearest; empty if none is near."""
    near = nearest(word, known)
    return f" (did you mean {near!r}?)" if near else ""
