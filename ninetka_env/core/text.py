"""Words about text that was read."""

from __future__ import annotations


def quote(text: str) -> str:
    """Quote what was found, shortened."""
    return repr(text) if len(text) <= 80 else f"{text[:80]!r} ..."
