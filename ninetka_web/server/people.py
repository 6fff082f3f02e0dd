"""The people at the tables: who looks at which, who has left one, and what they say to each other."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable

from ninetka_web.games.offer import Json
from ninetka_web.server.connections import Guest
from ninetka_web.server.quotas import LINES_AT_ONCE, LINES_PER_SECOND, Allowance
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.setup import digest
from ninetka_web.tables.table import Table

AWAY = 60.0
"""Seconds in which whoever has left a game may come back before others can go on without them."""
MAX_LINES = 50
"""That were said at a table and are shown to whoever comes. They are not written down."""

now: Callable[[], float] = time.perf_counter


class People:
    """The guests of a server, table by table."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._guests: dict[str, set[Guest]] = {}
        self._left: dict[str, dict[str, float]] = {}
        """When people of a table were missed first, by table and person."""
        self._said: dict[str, deque[Json]] = {}
        self._lines = Allowance(LINES_AT_ONCE, LINES_PER_SECOND, "lines")

    def at(self, table: str) -> Iterable[Guest]:
        """Return who looks at a table."""
        return tuple(self._guests.get(table, ()))

    def see(self, table: str) -> bool:
        """Return whether anybody looks at a table."""
        return table in self._guests

    def show(self, table: str) -> None:
        """Show a table to all who look at it."""
        for guest in self.at(table):
            guest.show()

    def announce(self, table: str, text: str) -> None:
        """Send a notice to all who look at a table."""
        for guest in self.at(table):
            guest.tell(type="notice", text=text)

    def come(self, guest: Guest, table: str) -> None:
        """Let a guest look at a table, and hear what was said there."""
        self._guests.setdefault(table, set()).add(guest)
        self._left.get(table, {}).pop(guest.person, None)
        if table in self._said:
            guest.tell(type="chat", lines=list(self._said[table]))

    def go(self, guest: Guest, table: Table | None) -> None:
        """Let a guest look no more at the table where it was."""
        guests = self._guests[guest.table]
        guests.discard(guest)
        if not guests:
            del self._guests[guest.table]
        if table:
            self.away(table)

    def away(self, table: Table) -> dict[str, float]:
        """Return the seconds that each person has to come back who plays at a table and does not look at it."""
        here = {guest.person for guest in self.at(table.id)}
        left = self._left.setdefault(table.id, {})
        for person in table.people - here:
            left.setdefault(person, now())
        missed = {person: left[person] for person in table.people - here}
        return {person: max(0.0, since + AWAY - now()) for person, since in missed.items()}

    def gone(self, table: Table) -> set[str]:
        """Return the people who play at a table and have been away from it for too long."""
        return {person for person, seconds in self.away(table).items() if seconds <= 0}

    def is_alone(self, guest: Guest, table: Table) -> bool:
        """Return whether nobody else plays at a table or, where agents play alone, watches what others have begun."""
        if table.people:
            return table.people == {guest.person}
        own = table.maker == digest(guest.owner)
        return own or all(other.person == guest.person for other in self.at(table.id))

    def say(self, guest: Guest, table: Table, text: str) -> None:
        """Tell everybody at a table what one who plays there says."""
        seats = table.seats_of(guest.person)
        if not seats:
            raise RefusedError("only who plays at this table can speak here")
        said = "".join(sign for sign in text if sign.isprintable()).strip()
        if not said:
            raise RefusedError("there is nothing in it that can be shown")
        self._lines.take(guest.person)
        line = {"who": table.seats[seats[0]].name or table.colour(seats[0]).capitalize(), "text": said}
        self._said.setdefault(table.id, deque(maxlen=MAX_LINES)).append(line)
        for other in self.at(table.id):
            other.tell(type="chat", lines=[line], new=True)

    def forget(self, table: str) -> None:
        """Forget a table that is gone."""
        self._left.pop(table, None)
        self._said.pop(table, None)
