"""Which connections watch which table, which users are away from their game, and the chat."""

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
"""Seconds that a user who left a game has to come back before the others may continue without them."""
MAX_LINES = 50
"""The number of chat messages of a table that a new connection gets. They are in memory only."""

now: Callable[[], float] = time.perf_counter


class People:
    """The connections of a server by table, absent users, and chat."""

    def __init__(self) -> None:
        """Start without connections."""
        self._guests: dict[str, set[Guest]] = {}
        self._left: dict[str, dict[str, float]] = {}
        """The time since when a user is away, by table and user."""
        self._said: dict[str, deque[Json]] = {}
        self._lines = Allowance(LINES_AT_ONCE, LINES_PER_SECOND, "lines")

    def at(self, table: str) -> Iterable[Guest]:
        """Return the connections that watch a table."""
        return tuple(self._guests.get(table, ()))

    def see(self, table: str) -> bool:
        """Return whether any connection watches a table."""
        return table in self._guests

    def show(self, table: str) -> None:
        """Send a table's state to its connections."""
        for guest in self.at(table):
            guest.show()

    def announce(self, table: str, text: str) -> None:
        """Send a notice to a table's connections."""
        for guest in self.at(table):
            guest.tell(type="notice", text=text)

    def come(self, guest: Guest, table: str) -> None:
        """Add a connection to a table and send it the recent chat messages."""
        self._guests.setdefault(table, set()).add(guest)
        self._left.get(table, {}).pop(guest.person, None)
        if table in self._said:
            guest.tell(type="chat", lines=list(self._said[table]))

    def go(self, guest: Guest, table: Table | None) -> None:
        """Remove a connection from its table."""
        guests = self._guests[guest.table]
        guests.discard(guest)
        if not guests:
            del self._guests[guest.table]
        if table:
            self.away(table)

    def away(self, table: Table) -> dict[str, float]:
        """Return, for each user who plays at a table but does not watch it, the seconds left to come back."""
        here = {guest.person for guest in self.at(table.id)}
        left = self._left.setdefault(table.id, {})
        for person in table.people - here:
            left.setdefault(person, now())
        missed = {person: left[person] for person in table.people - here}
        return {person: max(0.0, since + AWAY - now()) for person, since in missed.items()}

    def gone(self, table: Table) -> set[str]:
        """Return the users who play at a table and did not come back in time."""
        return {person for person, seconds in self.away(table).items() if seconds <= 0}

    def is_alone(self, guest: Guest, table: Table) -> bool:
        """Return whether the user is the only player of a table.

        If only agents play there: whether the user created the table or is the only one who watches it.
        """
        if table.people:
            return table.people == {guest.person}
        own = table.maker == digest(guest.owner)
        return own or all(other.person == guest.person for other in self.at(table.id))

    def say(self, guest: Guest, table: Table, text: str) -> None:
        """Send a chat message of a player to a table's connections."""
        seats = table.seats_of(guest.person)
        if not seats:
            raise RefusedError("only players of this table can chat here")
        said = "".join(sign for sign in text if sign.isprintable()).strip()
        if not said:
            raise RefusedError("the message has nothing in it that can be shown")
        self._lines.take(guest.person)
        line = {"who": table.seats[seats[0]].name or table.colour(seats[0]).capitalize(), "text": said}
        self._said.setdefault(table.id, deque(maxlen=MAX_LINES)).append(line)
        for other in self.at(table.id):
            other.tell(type="chat", lines=[line], new=True)

    def forget(self, table: str) -> None:
        """Remove the data of a deleted table."""
        self._left.pop(table, None)
        self._said.pop(table, None)
