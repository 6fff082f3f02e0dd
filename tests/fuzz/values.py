"""Unexpected values and damaged texts for the fuzzer."""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

NUMBERS = [
    *(0, 1, -1, 2, 3, 7, 121, 122, 127, 128, 255, 256, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64),
    *(-(2**31), -(2**63) - 1, 10**18, 10**30, 10**5000),
]
UNEXPECTED_VALUES: list[Any] = [
    *NUMBERS,
    *(
        None,
        True,
        False,
        0.0,
        1.0,
        1.5,
        -0.0,
        float("nan"),
        float("inf"),
        1e308,
        5e-324,
        1 + 0j,
        Decimal(3),
        Fraction(1, 3),
    ),
    *("", "0", "1", "a", "\0", "\udcff", "\n", "é", "x" * 5000, "nan", b"1", bytearray(b"1"), ...),
    *([], [1], [[1]], (), (1,), {}, {1: 2}, set(), frozenset({1}), range(3), object, object(), print, int),
    *(np.int8(1), np.int64(5), np.uint64(2**64 - 1), np.float32(1), np.float64("nan"), np.bool_(True), np.str_("1")),
    *(np.array(3), np.array([3]), np.array([3.0]), np.zeros((0,)), np.zeros((3, 3), np.int64), np.array("a")),
    *(
        np.array([None]),
        np.datetime64("2020"),
        np.zeros(3, [("a", int)]),
        np.array([2**64 - 1], np.uint64),
    ),
]
WORDS = [
    *("", " ", "0", "1", "-1", "+1", "1_0", "1e18", "1.5", "nan", "inf", "-inf", "0x10", "٣", "true", "True", "None"),
    *("99999999999999", "9" * 400, "9" * 5000, "x" * 5000, "é", "\udcff", "\x1b[31m", "a\nb", "a\tb", "'", '"', "\\"),
    *(
        ".",
        "..",
        "/",
        "~",
        "../..",
        "-",
        "--",
        "=",
        ",",
        ":",
        "[",
        "]",
        "[]",
        "[[[[",
        "{}",
        "%s",
        "{0}",
        "$HOME",
        "*",
        "?",
    ),
]
"""Words for command lines and files, without null characters, which a command line cannot contain."""


def unexpected_value(rng: random.Random) -> Any:
    """Draw a value that is almost never valid."""
    if rng.random() < 0.1:
        return (
            rng.choice([[value] * 3, (value, value), {"a": value}])
            if (value := rng.choice(UNEXPECTED_VALUES)) is not None
            else []
        )
    return rng.choice(UNEXPECTED_VALUES)


def random_word(rng: random.Random) -> str:
    """Draw a word without null characters."""
    kind = rng.random()
    if kind < 0.7:
        return rng.choice(WORDS)
    if kind < 0.85:
        return str(rng.choice(NUMBERS[:-1]))
    return "".join(rng.choice("ab01.-=:,[]{}!&*?#'\"\\/ \n\té\x00\udc80") for _ in range(rng.randrange(1, 12))).replace(
        "\0", ""
    )


def damaged(text: str, rng: random.Random, others: Sequence[str] = ()) -> str:
    """Change a text in one to three places: delete, insert or move parts, or copy parts of other texts."""
    for _ in range(rng.randrange(1, 4)):
        text = _damaged_once(text or " ", rng, others)
    return text


def _damaged_once(text: str, rng: random.Random, others: Sequence[str]) -> str:
    first, last = sorted((rng.randrange(len(text) + 1), min(len(text), rng.randrange(len(text) + 1))))
    last = min(last, first + rng.choice((1, 1, 2, 8, 10**6)))
    lines = text.splitlines(keepends=True)
    row, other = rng.randrange(len(lines) or 1), rng.choice([text, *others])
    return [
        text[:first] + random_word(rng) + text[last:],
        text[:first] + text[last:],
        text[:first] + chr(rng.choice((0, 7, 9, 10, 13, 27, 133, 160, 8232, 65279, 56448, 120792))) + text[first:],
        text[:first] + text[first:last] * 2 + text[last:],
        "".join(lines[:row] + lines[row + 1 :]),
        "".join([*lines[: row + 1], *lines[row:]]),
        "".join(rng.sample(lines, len(lines))),
        text[:first] + other[len(other) // 2 :],
    ][rng.randrange(8)]
