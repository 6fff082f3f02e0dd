"""Text that people write and programs read: how lines look, and words about what was found."""

from __future__ import annotations

import re

TAG = re.compile(r"([a-z][a-z0-9_]{0,31}):(?: (\S(?:.*\S)?))?")
"""A line of a record: a key, and its text."""
MAX_LINE = 4096
"""Longer lines than this many characters are neither written nor read."""


def quote(text: str) -> str:
    """Quote what was found, shortened."""
    return repr(text) if len(text) <= 80 else f"{text[:80]!r} ..."
