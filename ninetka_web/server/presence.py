"""Which connections watch which table, which users are away from their game, and the chat.

`live_tables.py` uses `Presence` to send the state of a table to its connections.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable

from ninetka_web.games.offer import Json
from ninetka_web.server.connections import Connection
from ninetka_web.server.quotas import CHAT_LINES_AT_ONCE, CHAT_LINES_PER_SECOND, RateLimit
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.setup import digest
from ninetka_web.tables.table import Table

RETURN_TIMEOUT_S = 60.0
"""Seconds after a user leaves a game until the other people may continue without this user."""
MAX_CHAT_LINES = 50
"""The number of chat messages of a table that a new connection gets. Chat messages are not stored on disk."""

now: Callable[[], float] = time.perf_counter


class Presence:
    """The connections of a server by table, absent users, and chat."""

    def __init__(self) -> None:
        """Start without connections."""
        self._connections: dict[str, set[Connection]] = {}
        self._away_since: dict[str, dict[str, float]] = {}
        """The time at which each absent user left, by table and user."""
        self._chat_lines: dict[str, deque[Json]] = {}
        self._chat_limit = RateLimit(CHAT_LINES_AT_ONCE, CHAT_LINES_PER_SECOND, "lines")

    def connections_at(self, table_id: str) -> Iterable[Connection]:
        """Return the connections that watch a table."""
        return tuple(self._connections.get(table_id, ()))

    def is_watched(self, table_id: str) -> bool:
        """Return whether any connection watches a table."""
        return table_id in self._connections

    def send_state(self, table_id: str) -> None:
        """Send a table's state to its connections."""
        for connection in self.connections_at(table_id):
            connection.send_state()

    def announce(self, table_id: str, text: str) -> None:
        """Send a notice to a table's connections."""
        for connection in self.connections_at(table_id):
            connection.send(type="notice", text=text)

    def join(self, connection: Connection, table_id: str) -> None:
        """Add a connection to a table and send it the recent chat messages."""
        self._connections.setdefault(table_id, set()).add(connection)
        self._away_since.get(table_id, {}).pop(connection.user, None)
        if table_id in self._chat_lines:
            connection.send(type="chat", lines=list(self._chat_lines[table_id]))

    def leave(self, connection: Connection, table: Table | None) -> None:
        """Remove a connection from its table."""
        connections = self._connections[connection.table_id]
        connections.discard(connection)
        if not connections:
            del self._connections[connection.table_id]
        if table:
            self.users_away(table)

    def users_away(self, table: Table) -> dict[str, float]:
        """Return the users who play at a table but do not watch it, with the seconds that they have left to return."""
        present = {connection.user for connection in self.connections_at(table.id)}
        left_at = self._away_since.setdefault(table.id, {})
        for user in table.users - present:
            left_at.setdefault(user, now())
        absent = {user: left_at[user] for user in table.users - present}
        return {user: max(0.0, since + RETURN_TIMEOUT_S - now()) for user, since in absent.items()}

    def users_gone(self, table: Table) -> set[str]:
        """Return the users who play at a table and did not come back in time."""
        return {user for user, seconds in self.users_away(table).items() if seconds <= 0}

    def is_alone(self, connection: Connection, table: Table) -> bool:
        """Return whether the connection's user is the only person who plays at a table.

        If only agents play there, return whether the user created the table or is the only user who watches it.
        """
        if table.users:
            return table.users == {connection.user}
        is_creator = table.created_by == digest(connection.quota_key)
        return is_creator or all(other.user == connection.user for other in self.connections_at(table.id))

    def chat(self, connection: Connection, table: Table, text: str) -> None:
        """Send a chat message of a player to a table's connections."""
        seats = table.seats_of(connection.user)
        if not seats:
            raise RefusedError("only players of this table can chat here")
        printable = "".join(character for character in text if character.isprintable()).strip()
        if not printable:
            raise RefusedError("the message has nothing in it that can be shown")
        self._chat_limit.take(connection.user)
        chat_line = {"name": table.seats[seats[0]].name or table.colour(seats[0]).capitalize(), "text": printable}
        self._chat_lines.setdefault(table.id, deque(maxlen=MAX_CHAT_LINES)).append(chat_line)
        for other in self.connections_at(table.id):
            other.send(type="chat", lines=[chat_line], new=True)

    def forget(self, table_id: str) -> None:
        """Remove the data of a deleted table."""
        self._away_since.pop(table_id, None)
        self._chat_lines.pop(table_id, None)
