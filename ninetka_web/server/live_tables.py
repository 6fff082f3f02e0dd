"""The tables of a server in memory. A change is saved and sent to the connections; then agents and clocks continue.

Start reading at `LiveTables.save_and_send`. What users may do at a table is in `ninetka_web/tables/table.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sqlite3
import time
from collections.abc import Callable

from ninetka_web.server import quotas
from ninetka_web.server.connections import Connection
from ninetka_web.server.presence import Presence
from ninetka_web.server.quotas import MAX_TABLES
from ninetka_web.tables.endings import lose_on_time
from ninetka_web.tables.journal import compile_key_of_stored, load_table
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.setup import digest
from ninetka_web.tables.store import Store
from ninetka_web.tables.table import Table
from ninetka_web.tables.views import view_of
from ninetka_web.thinking.agent_threads import AgentThreads
from ninetka_web.thinking.agents import AgentRunner
from ninetka_web.thinking.warm import RULES, Job, WarmUp

RETRY_S = 1.0
"""Seconds until an agent tries again after its move could not be saved."""

log = logging.getLogger("ninetka")


class ClockTimers:
    """Timers for losses on time, one for each table whose clock runs."""

    def __init__(self, on_timeout: Callable[[Table], None]) -> None:
        """Call `on_timeout` with a table when its running clock has no time left."""
        self._on_timeout = on_timeout
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def restart(self, table: Table) -> None:
        """Update the clock of a table and restart its timer."""
        self.cancel(table.id)
        if table.clock:
            table.update_clock()
            if table.clock.running is not None:
                seconds = table.clock.seconds_remaining(table.clock.running) + 0.01
                self._timers[table.id] = asyncio.get_running_loop().call_later(seconds, self._on_timeout, table)

    def cancel(self, table_id: str) -> None:
        """Cancel the timer of a table."""
        if timer := self._timers.pop(table_id, None):
            timer.cancel()

    def close(self) -> None:
        """Cancel all timers."""
        for table_id in list(self._timers):
            self.cancel(table_id)


class LiveTables:
    """All tables of a server, by id, and the connections that watch them."""

    def __init__(self, store: Store, threads: AgentThreads, warm_up: WarmUp) -> None:
        """Start without tables; `restore` adds the stored tables."""
        self.tables: dict[str, Table] = {}
        self.touched: dict[str, float] = {}
        """The time of each table's last change, in seconds since the epoch."""
        self.presence = Presence()
        self.clock_timers = ClockTimers(self.end_on_timeout)
        self.agents = AgentRunner(
            threads,
            warm_up,
            self.presence.is_watched,
            self.save_and_send,
            self.presence.send_state,
            self.presence.announce,
        )
        self._store, self._threads, self._warm_up = store, threads, warm_up
        self._stored = [(_compile_key_of(text), text) for text in store.states()]
        self._views: dict[str, str] = {}
        """Cache of the public part of each table's state: its JSON text without the opening brace."""

    # From the store

    @property
    def required_jobs(self) -> set[Job]:
        """The jobs that must be done before the stored tables can be restored."""
        return {Job(compile_key, RULES) for compile_key, _ in self._stored if compile_key}

    async def restore(self) -> None:
        """Restore the stored tables. The jobs `required_jobs` must be done."""
        touched = self._store.touched()
        for compile_key, text in self._stored:
            try:
                table = await self._threads.run(load_table, text)
            except Exception:  # the text stays in the store, for a version that can read it
                log.exception("a stored table of %s could not be read", compile_key or "an unknown game")
                continue
            self.tables[table.id] = table
            self.touched[table.id] = touched.get(table.id, time.time())
        self._stored.clear()

    def ensure_loaded(self, table_id: str) -> None:
        """Load a table from the store if it is not in memory; `RefusedError` if it does not exist."""
        if table_id not in self.tables and (table := self._store.load(table_id)):
            self.tables[table.id], self.touched[table.id] = table, time.time()
        if table_id not in self.tables:
            raise RefusedError("there is no such table (any more)")

    # Connections

    def table_of(self, connection: Connection) -> Table:
        """Return the table of a connection; `RefusedError` if it has none."""
        if connection.table_id not in self.tables:
            raise RefusedError("you are not at a table")
        return self.tables[connection.table_id]

    def watch(self, connection: Connection, table_id: str) -> None:
        """Let a connection watch a table instead of its previous one; with an empty id, it watches no table."""
        connection.stop_analysis()
        if connection.table_id:
            self.presence.leave(connection, self.tables.get(connection.table_id))
            if not self.presence.is_watched(connection.table_id):
                self.agents.stop(connection.table_id)  # no connection watches, so the game waits
            self._send_presence(connection, connection.table_id)
        connection.table_id, connection.sent_moves = table_id, (-1, 0)
        if table_id:
            self.presence.join(connection, table_id)
            self._send_presence(connection, table_id)
            connection.send_state()
            self.clock_timers.restart(self.tables[table_id])
            self.agents.start_thinking(self.tables[table_id])

    def _send_presence(self, connection: Connection, table_id: str) -> None:
        """Send a table's state, which says who is away, to the table's connections.

        Do nothing unless the connection's user plays at the table together with other people.
        """
        table = self.tables.get(table_id)
        if table and connection.user in table.users and len(table.users) > 1:
            self.presence.send_state(table_id)

    def state_for(self, connection: Connection) -> str:
        """Return a connection's state message: the table's public state, the user's own part, and the unsent moves."""
        table = self.tables[connection.table_id]
        if connection.table_id not in self._views:
            self._views[connection.table_id] = json.dumps(view_of(table))[1:]
        version, count = connection.sent_moves
        first = count if version == table.history.version else 0
        connection.sent_moves = (table.history.version, len(table.actions))
        away = self.presence.users_away(table) if len(table.users) > 1 else {}
        own = {
            "type": "state",
            "you": table.seats_of(connection.user),
            "asked": connection.user in table.pending_request.unanswered,
            "away": {seat: round(seconds, 1) for user, seconds in away.items() for seat in table.seats_of(user)},
            "clock": table.clock.as_json() if table.clock else None,
            "accepted": connection.user in table.accepted,
            "compiling": self.agents.waits_for_compiler(table),
            "from": first,
            **({} if version == table.history.version else {"start": table.history.start_json}),
        }
        moves = ", ".join(table.history.moves_json[first:])
        return f'{json.dumps(own)[:-1]}, "moves": [{moves}], {self._views[connection.table_id]}'

    # Changes

    def save_and_send(self, table: Table) -> None:
        """Write a changed table into the journal, then send it to its connections and start its agents.

        A change that cannot be written is undone, so that no connection sees a state that would be lost.
        """
        table.update_clock()
        try:
            self._store.save(table)
        except sqlite3.Error as error:
            log.exception("table %s could not be saved", table.id)
            self._restore_saved(table.id)
            raise RefusedError(f"the change could not be saved, so it was not made: {error}") from error
        table.revision += 1
        self.touched[table.id] = time.time()
        self._views.pop(table.id, None)
        self.presence.send_state(table.id)
        self.clock_timers.restart(table)
        self.agents.start_thinking(table)

    def _restore_saved(self, table_id: str) -> None:
        """Replace a table by its last saved version."""
        saved = None
        with contextlib.suppress(sqlite3.Error):  # `ensure_loaded` reads it again when a connection joins
            saved = self._store.load(table_id)
        if saved is None:
            self._remove_from_memory(table_id)
            return
        self.tables[table_id] = saved
        self.clock_timers.restart(saved)
        self.agents.stop(table_id)  # the agent thinks about the discarded version
        asyncio.get_running_loop().call_later(RETRY_S, self._prompt_again, saved)

    def _prompt_again(self, table: Table) -> None:
        """Start the agents of a table again after a change could not be saved."""
        if self.tables.get(table.id) is table:
            self.presence.send_state(table.id)
            self.agents.start_thinking(table)

    def end_on_timeout(self, table: Table) -> None:
        """End a game in which a seat has no time left."""
        if self.tables.get(table.id) is not table:
            return
        lose_on_time(table)
        try:
            self.save_and_send(table)
        except RefusedError as refusal:
            self.presence.announce(table.id, str(refusal))

    def add(self, connection: Connection, table: Table) -> None:
        """Add a new table and let the connection watch it."""
        self._make_room()
        table.created_by = digest(connection.quota_key)
        self.tables[table.id] = table
        self.save_and_send(table)
        self._warm_up.request(Job(table.setup.compile_key, RULES), connection.quota_key)
        self.watch(connection, table.id)

    def _make_room(self) -> None:
        """Remove expired tables, and one more if there are still too many."""
        for table_id in quotas.expired_tables(self.tables.values(), self.touched):
            if not self.presence.is_watched(table_id):
                self.remove(table_id)
        if len(self.tables) >= MAX_TABLES:
            table_id = quotas.table_to_evict(self.tables.values(), self.touched, self.presence.is_watched)
            self.presence.announce(table_id, "this table makes room for others: its creator has too many tables")
            self.remove(table_id)

    def remove(self, table_id: str) -> None:
        """Delete a table; its connections watch no table afterwards."""
        try:
            self._store.remove(table_id)
        except sqlite3.Error as error:
            log.exception("table %s could not be removed", table_id)
            raise RefusedError(f"the table could not be removed: {error}") from error
        for connection in self.presence.connections_at(table_id):
            self.watch(connection, "")
        self._remove_from_memory(table_id)

    def _remove_from_memory(self, table_id: str) -> None:
        self.agents.stop(table_id)
        self.presence.forget(table_id)
        self.clock_timers.cancel(table_id)
        for mapping in (self.tables, self.touched, self._views):
            mapping.pop(table_id, None)

    def close(self) -> None:
        """Stop all agents, analyses and timers. All changes are already in the journal."""
        self.agents.close()
        self.clock_timers.close()
        for table_id in self.tables:
            for connection in self.presence.connections_at(table_id):
                connection.stop_analysis()


def _compile_key_of(text: str) -> str:
    """Return `Setup.compile_key` of a stored table; empty if the text cannot be read."""
    try:
        return compile_key_of_stored(text)
    except (ValueError, KeyError, TypeError):
        return ""
