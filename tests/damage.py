"""Damage texts at random, to check that readers refuse them."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

DAMAGE = [chr(code) for code in range(32, 127)] + ["\n", "\t", "\r", "\0", "\x85", "\u2028", "é", "9", "\udc80", " \n"]
"""Strings to insert into a text: characters, line ends, and an undecodable byte (a surrogate escape)."""


def words(text: str) -> list[str]:
    """Return the words of a text; case and white space are ignored."""
    return text.upper().split()


def damaged(text: str, rng: np.random.Generator) -> str:
    """Return the text with a random change: a character or line changed, inserted, deleted, swapped or cut off."""
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


def find_misread_texts(text: str, rewrite: Callable[[str], str], seed: int, times: int) -> list[str]:
    """Damage a text `times` times and return the damaged texts that `rewrite` reads wrongly.

    `rewrite` reads a text and writes it again. It must raise a `ValueError` with a line number or reproduce the text.
    """
    rng = np.random.default_rng(seed)
    wrong = []
    for _ in range(times):
        bad = damaged(text, rng)
        try:
            if words(rewrite(bad)) != words(bad):
                wrong.append(bad)
        except ValueError as error:
            if not re.search(r"line \d+", str(error)):
                wrong.append(f"{error}: {bad}")
    return wrong
