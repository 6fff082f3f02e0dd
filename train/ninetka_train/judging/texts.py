"""Texts of shares and ratings with their intervals, for sentences, tables and pages."""

from __future__ import annotations

from ninetka_train.judging.ratings import Interval


def count_text(count: int | str, noun: str) -> str:
    """Return a count and its noun, such as `1 game`, `2 games` or `2 to 3 games`."""
    return f"{count} {noun}{'s' * (str(count) != '1')}"


def percent(share: float) -> str:
    """Format a share in percent, without the percent sign."""
    return f"{100 * share:.1f}"


def share_text(share: float | None, interval: Interval | None, unit: str = "") -> str:
    """Format a share and its interval in percent, `-` for None; `unit` follows the share, such as `" %"`."""
    if share is None or interval is None:
        return "-"
    low, high = interval
    return f"{percent(share)}{unit} [{percent(low)}, {percent(high)}]"


def range_text(low: float | None, high: float | None, decimals: int = 0, sign: str = "") -> str:
    """Format an interval that may have only one bound; with `sign="+"`, numbers above 0 have a sign."""
    bounds = [None if one is None else f"{round(one, decimals) + 0.0:{sign}.{decimals}f}" for one in (low, high)]
    if None in bounds:
        return f"above {bounds[0]}" if bounds[0] is not None else f"below {bounds[1]}"
    return " to ".join(map(str, bounds))


def elo_text(elo: float | None, interval: Interval | None, unit: str = "") -> str:
    """Format a rating and its interval, if there is one; `unit` follows the rating, such as `" Elo"`."""
    text = f"{round(elo or 0):+d}{unit}"
    if interval is None:
        return text
    low, high = interval
    return f"{text} [{round(low):+d}, {round(high):+d}]"
