"""How much one guest may have of what all share: tables, words, and the server's time; and which tables give way."""

from __future__ import annotations

import ipaddress
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.table import Table

MAX_TABLES, MAX_TABLES_EACH = 2_000, 50
TABLES_AT_ONCE, TABLES_PER_SECOND = 100.0, 0.2
"""Tables that one owner may make at once, and in the long run: see `Guest.owner`."""
ANALYSES_AT_ONCE, ANALYSES_PER_SECOND = 40.0, 5.0
"""The same of analyses: one that is given up still thinks for a moment, and a network to the end of its step."""
LINES_AT_ONCE, LINES_PER_SECOND = 5.0, 0.3
"""The same of lines that a person may say."""
UNTOUCHED, UNPLAYED = 90 * 86_400.0, 86_400.0
"""Seconds after its last change in which a table goes, and one on which nothing was played."""
MAX_OWNERS = 10_000

now: Callable[[], float] = time.perf_counter


class Allowance:
    """So much at once, and so much a second in the long run, for each of many."""

    def __init__(self, at_once: float, per_second: float, what: str) -> None:
        """Let everybody begin with all that may be had at once; `what` is named when there is no more."""
        self._at_once, self._per_second, self._what = at_once, per_second, what
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, who: str) -> None:
        """Take one; `RefusedError` says when there is one again."""
        left, since = self._left.get(who, (self._at_once, now()))
        left = min(self._at_once, left + (now() - since) * self._per_second)
        if left < 1:
            seconds = (1 - left) / self._per_second
            raise RefusedError(f"too many {self._what} in a short time; the next one in {seconds:.0f} s")
        self._left.pop(who, None)  # the one who came last stands last
        self._left[who] = left - 1, now()
        if len(self._left) > MAX_OWNERS:
            del self._left[next(iter(self._left))]


def network_of(address: str) -> str:
    """Return whom an address is charged to: an IPv4 address, a /64 network of IPv6; "" for this computer itself."""
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
    """Return whether people are in the middle of a game there."""
    return not table.is_over and not table.shown and any(seat.holder for seat in table.seats)


def expired(tables: Iterable[Table], touched: Mapping[str, float]) -> list[str]:
    """Return the tables whose time is over; `touched` tells when each changed last, in seconds since the epoch."""
    return [t.id for t in tables if touched[t.id] + (UNTOUCHED if t.actions else UNPLAYED) < time.time()]


def giving_way(tables: Iterable[Table], touched: Mapping[str, float], seen: Callable[[str], bool]) -> str:
    """Return the table that goes when there are too many: one of whoever made most, so that a newcomer gets in.

    Of those it is one that nobody sees, if possible one in which no people play, and of them the one touched longest
    ago. One that somebody sees goes only if its maker has more than a person may have; `RefusedError` if none can.
    """
    tables = list(tables)
    made = Counter(table.maker for table in tables)
    able = [table for table in tables if not seen(table.id) or made[table.maker] > MAX_TABLES_EACH]
    if not able:
        raise RefusedError("all tables of this server are taken; try again later")
    return min(able, key=lambda t: (-made[t.maker], seen(t.id), is_played(t), touched[t.id])).id
