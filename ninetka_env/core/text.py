"""Helpers for text that people write: tag lines, one-line texts, and suggestions in error messages.

The text of positions is in `text.py` of each game, that of game records in `ninetka_env.api.records`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

TAG_PATTERN = re.compile(r"([a-z][a-z0-9_]{0,31}):(?: (\S(?:.*\S)?))?")
"""A tag line of a game record: a key and its text."""
MAX_LINE_LENGTH = 4096
"""Maximum length of a line of a game record, in characters."""


def one_line(text: str, max_length: int = 500) -> str:
    """Return a text as one line of at most `max_length` printable characters; other characters become single spaces."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(printable.split())[:max_length].rstrip()


def quote(text: str) -> str:
    """Return the repr of a text, cut off after 80 characters."""
    return repr(text) if len(text) <= 80 else f"{text[:80]!r} ..."


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that is most similar to `word`, in any case, or an empty string if none is similar.

    A word with other numbers is another name, not another spelling: `gen-6` is not similar to `gen-7`.
    """
    numbers = re.findall(r"\d+", word)
    by_lower = {one.lower(): one for one in known if re.findall(r"\d+", one) == numbers}
    return next((by_lower[found] for found in difflib.get_close_matches(word.lower(), by_lower, n=1)), "")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean ...?)` for the end of an error message, or an empty string if no known word is similar."""
    near = nearest(word, known)
    return f" (did you mean {near!r}?)" if near else ""
