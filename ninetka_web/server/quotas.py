"""Limits for tables, analyses and chat messages, and the choice of tables to remove when there are too many.

`handlers.py` and `presence.py` limit requests with `RateLimit`; `live_tables.py` removes tables.
"""

from __future__ import annotations

import ipaddress
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.table import Table

MAX_TABLES, MAX_TABLES_PER_USER = 2_000, 50
TABLES_AT_ONCE, TABLES_PER_SECOND = 100.0, 0.2
"""How many tables one quota key (`Connection.quota_key`) may create at once, and per second in the long run."""
ANALYSES_AT_ONCE, ANALYSES_PER_SECOND = 40.0, 5.0
"""The same limits for analyses. A cancelled analysis runs on for a moment, a network search to the end of its step."""
CHAT_LINES_AT_ONCE, CHAT_LINES_PER_SECOND = 5.0, 0.3
"""The same limits for the chat messages of one user."""
MAX_AGE_S, MAX_UNPLAYED_AGE_S = 90 * 86_400.0, 86_400.0
"""Seconds from the last change of a table until it is removed: with moves, and without moves."""
MAX_QUOTA_KEYS = 10_000

now: Callable[[], float] = time.perf_counter


class RateLimit:
    """A rate limit per key (a token bucket): a number at once, and a number per second in the long run."""

    def __init__(self, at_once: float, per_second: float, items: str) -> None:
        """Start all keys with full buckets; the error message names `items`."""
        self._at_once, self._per_second, self._items = at_once, per_second, items
        self._tokens: dict[str, tuple[float, float]] = {}

    def take(self, key: str) -> None:
        """Take one token of a key; `RefusedError` says when the next one is available."""
        tokens, updated = self._tokens.get(key, (self._at_once, now()))
        tokens = min(self._at_once, tokens + (now() - updated) * self._per_second)
        if tokens < 1:
            seconds = (1 - tokens) / self._per_second
            raise RefusedError(f"too many {self._items} in a short time; the next one in {seconds:.0f} s")
        self._tokens.pop(key, None)  # moves the key to the end, so that the oldest key is first
        self._tokens[key] = tokens - 1, now()
        if len(self._tokens) > MAX_QUOTA_KEYS:
            del self._tokens[next(iter(self._tokens))]


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
    return not table.is_over and not table.view_only and any(seat.user for seat in table.seats)


def expired_tables(tables: Iterable[Table], touched: Mapping[str, float]) -> list[str]:
    """Return the ids of expired tables; `touched` maps ids to the last change, in seconds since the epoch."""
    return [t.id for t in tables if touched[t.id] + (MAX_AGE_S if t.actions else MAX_UNPLAYED_AGE_S) < time.time()]


def table_to_evict(tables: Iterable[Table], touched: Mapping[str, float], is_watched: Callable[[str], bool]) -> str:
    """Return the id of the table to remove when there are too many.

    It is a table of the creator with the most tables, so that new users get in. Among these, tables that no connection
    watches (`is_watched`) come first, then tables where no people play, then the least recently changed ones. A watched
    table is removed only if its creator has more than `MAX_TABLES_PER_USER` tables.

    Raises:
        RefusedError: if no table can be removed.
    """
    tables = list(tables)
    num_created = Counter(table.created_by for table in tables)
    candidates = [
        table for table in tables if not is_watched(table.id) or num_created[table.created_by] > MAX_TABLES_PER_USER
    ]
    if not candidates:
        raise RefusedError("all tables of this server are taken; try again later")
    return min(candidates, key=lambda t: (-num_created[t.created_by], is_watched(t.id), is_played(t), touched[t.id])).id
