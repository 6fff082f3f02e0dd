"""Limits for tables, analyses and chat messages, and the choice of tables to remove when there are too many."""

from __future__ import annotations

import ipaddress
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.table import Table

MAX_TABLES, MAX_TABLES_EACH = 2_000, 50
TABLES_AT_ONCE, TABLES_PER_SECOND = 100.0, 0.2
"""How many tables one quota key (`Guest.owner`) may create at once, and per second in the long run."""
ANALYSES_AT_ONCE, ANALYSES_PER_SECOND = 40.0, 5.0
"""The same limits for analyses. A cancelled analysis still runs for a moment, a network to the end of its step."""
LINES_AT_ONCE, LINES_PER_SECOND = 5.0, 0.3
"""The same limits for the chat messages of one user."""
UNTOUCHED, UNPLAYED = 90 * 86_400.0, 86_400.0
"""Seconds after its last change until a table is removed, and until a table without moves is removed."""
MAX_OWNERS = 10_000

now: Callable[[], float] = time.perf_counter


class Allowance:
    """A rate limit per key (a token bucket): a number at once, and a number per second in the long run."""

    def __init__(self, at_once: float, per_second: float, what: str) -> None:
        """Start all keys with full buckets; the error message names `what`."""
        self._at_once, self._per_second, self._what = at_once, per_second, what
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, who: str) -> None:
        """Take one token of a key; `RefusedError` says when the next one is available."""
        left, since = self._left.get(who, (self._at_once, now()))
        left = min(self._at_once, left + (now() - since) * self._per_second)
        if left < 1:
            seconds = (1 - left) / self._per_second
            raise RefusedError(f"too many {self._what} in a short time; the next one in {seconds:.0f} s")
        self._left.pop(who, None)  # moves the key to the end, so that the oldest key is first
        self._left[who] = left - 1, now()
        if len(self._left) > MAX_OWNERS:
            del self._left[next(iter(self._left))]


def network_of(address: str) -> str:
    """Return the quota key of an address: the IPv4 address or the IPv6 /64 network; "" for this computer."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(ip, ipaddress.IPv6Address):
        ip = ip.ipv4_mapped or ip
    if ip.is_loopback:
        return ""
    return str(ipaddress.ip_network((ip, 64), strict=False)) if ip.version == 6 else str(ip)


def is_played(table: Table) -> bool:
    """Return whether people play an unfinished game at a table."""
    return not table.is_over and not table.shown and any(seat.holder for seat in table.seats)


def expired(tables: Iterable[Table], touched: Mapping[str, float]) -> list[str]:
    """Return the ids of expired tables; `touched` has the time of each last change, in seconds since the epoch."""
    return [t.id for t in tables if touched[t.id] + (UNTOUCHED if t.actions else UNPLAYED) < time.time()]


def giving_way(tables: Iterable[Table], touched: Mapping[str, float], seen: Callable[[str], bool]) -> str:
    """Return the id of the table to remove when there are too many.

    It is a table of the creator with the most tables, so that new users get in. Among these, tables that no connection
    watches (`seen`) come first, then tables where no people play, then the least recently changed ones. A watched table
    is removed only if its creator has more than `MAX_TABLES_EACH` tables.

    Raises:
        RefusedError: if no table can be removed.
    """
    tables = list(tables)
    made = Counter(table.maker for table in tables)
    able = [table for table in tables if not seen(table.id) or made[table.maker] > MAX_TABLES_EACH]
    if not able:
        raise RefusedError("all tables of this server are taken; try again later")
    return min(able, key=lambda t: (-made[t.maker], seen(t.id), is_played(t), touched[t.id])).id
