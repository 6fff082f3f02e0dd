"""Texts that were damaged by accident, and readers that must not fall for them."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

DAMAGE = [chr(code) for code in range(32, 127)] + ["\n", "\t", "\r", "\0", "\x85", "\u2028", "é", "9", "\udc80", " \n"]
"""What is put into a text: signs, ends of lines, bytes that are no text."""


def words(text: str) -> list[str]:
    """Return what a text says: case and the spaces between words do not count."""
    return text.upper().split()


def damaged(text: str, rng: np.random.Generator) -> str:
    """Change, insert or delete a character or a line, exchange two, or cut the text off."""
    place, sign = int(rng.integers(len(text))), DAMAGE[rng.integers(len(DAMAGE))]
    lines = text.splitlines(keepends=True)
    row = int(rng.integers(len(lines)))
    return [
        text[:place] + sign + text[place + 1 :],
        text[:place] + sign + text[place:],
        text[:place] + text[place + 1 :],
        text[:place],
        text[:place] + text[place + 1 : place + 2] + text[place : place + 1] + text[place + 2 :],
        "".join(lines[:row] + lines[row + 1 :]),
        "".join([*lines[:row], lines[row], *lines[row:]]),
        re.sub(r"\b([A-K])(\d)\b", r"\g<1>1\2", text, count=1),
    ][rng.integers(8)]


def misread(text: str, retell: Callable[[str], str], seed: int, times: int) -> list[str]:
    """Damage a text many times; return what `retell` neither refuses with a line number nor tells as it is written."""
    rng = np.random.default_rng(seed)
    wrong = []
    for _ in range(times):
        bad = damaged(text, rng)
        try:
            if words(retell(bad)) != words(bad):
                wrong.append(bad)
        except ValueError as error:
            if not re.search(r"line \d+", str(error)):
                wrong.append(f"{error}: {bad}")
    return wrong
