"""The tables of a server in memory. Each change is saved, then sent to the connections; agents and clocks continue."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sqlite3
import time
from collections.abc import Callable

from ninetka_web.server import quotas
from ninetka_web.server.connections import Guest
from ninetka_web.server.people import People
from ninetka_web.server.quotas import MAX_TABLES
from ninetka_web.tables.endings import lose_on_time
from ninetka_web.tables.journal import kind_of_text, table_from
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.setup import digest
from ninetka_web.tables.store import Store
from ninetka_web.tables.table import Table
from ninetka_web.tables.views import view_of
from ninetka_web.thinking.agents import Agents
from ninetka_web.thinking.players import Players
from ninetka_web.thinking.warm import RULES, Job, WarmUp

RETRY = 1.0
"""Seconds until an agent tries again after its move could not be saved."""

log = logging.getLogger("ninetka")


class Flags:
    """Timers for losses on time, one for each table whose clock runs."""

    def __init__(self, fall: Callable[[Table], None]) -> None:
        """Call `fall` with a table when its running clock has no time left."""
        self._fall = fall
        self._flags: dict[str, asyncio.TimerHandle] = {}

    def set(self, table: Table) -> None:
        """Update the clock of a table and restart its timer."""
        self.drop(table.id)
        if table.clock:
            table.wind()
            if table.clock.running is not None:
                seconds = table.clock.rest(table.clock.running) + 0.01
                self._flags[table.id] = asyncio.get_running_loop().call_later(seconds, self._fall, table)

    def drop(self, table: str) -> None:
        """Cancel the timer of a table."""
        if flag := self._flags.pop(table, None):
            flag.cancel()

    def close(self) -> None:
        """Cancel all timers."""
        for table in list(self._flags):
            self.drop(table)


class LiveTables:
    """All tables of a server, by id, and the connections that watch them."""

    def __init__(self, store: Store, players: Players, warm_up: WarmUp) -> None:
        """Start without tables; `restore` adds those of the store."""
        self.tables: dict[str, Table] = {}
        self.touched: dict[str, float] = {}
        """The time of each table's last change, in seconds since the epoch."""
        self.people = People()
        self.flags = Flags(self.end_on_time)
        self.agents = Agents(players, warm_up, self.people.see, self.changed, self.people.show, self.people.announce)
        self._store, self._players, self._warm_up = store, players, warm_up
        self._stored = [(_kind_of(text), text) for text in store.states()]
        self._views: dict[str, str] = {}
        """Cache of the public part of each table's state: its JSON text without the opening brace."""

    # From the store

    @property
    def needed(self) -> set[Job]:
        """The jobs that must be done before the stored tables can be restored."""
        return {Job(kind, RULES) for kind, _ in self._stored if kind}

    async def restore(self) -> None:
        """Restore the stored tables. The `needed` jobs must be done."""
        touched = self._store.touched()
        for kind, text in self._stored:
            try:
                table = await self._players.run(table_from, text)
            except Exception:  # it stays in the store, for a version that can read it
                log.exception("a stored table of %s could not be read", kind or "an unknown game")
                continue
            self.tables[table.id] = table
            self.touched[table.id] = touched.get(table.id, time.time())
        self._stored.clear()

    def find(self, table_id: str) -> None:
        """Load a table from the store if it is not in memory; `RefusedError` if it does not exist."""
        if table_id not in self.tables and (table := self._store.load(table_id)):
            self.tables[table.id], self.touched[table.id] = table, time.time()
        if table_id not in self.tables:
            raise RefusedError("there is no such table (any more)")

    # Connections

    def table_of(self, guest: Guest) -> Table:
        """Return the table of a connection; `RefusedError` if it has none."""
        if guest.table not in self.tables:
            raise RefusedError("you are not at a table")
        return self.tables[guest.table]

    def look_at(self, guest: Guest, table: str) -> None:
        """Let a connection watch a table, or none for an empty id."""
        guest.rest()
        if guest.table:
            self.people.go(guest, self.tables.get(guest.table))
            if not self.people.see(guest.table):
                self.agents.stop(guest.table)  # no connection watches, so the game waits
            self._show_presence(guest, guest.table)
        guest.table, guest.knows = table, (-1, 0)
        if table:
            self.people.come(guest, table)
            self._show_presence(guest, table)
            guest.show()
            self.flags.set(self.tables[table])
            self.agents.prompt(self.tables[table])

    def _show_presence(self, guest: Guest, table_id: str) -> None:
        """Send the state to a table's connections when one of several people has come or gone."""
        table = self.tables.get(table_id)
        if table and guest.person in table.people and len(table.people) > 1:
            self.people.show(table_id)

    def state_for(self, guest: Guest) -> str:
        """Return the state of a connection's table as a message: the public part, its own part, and the new moves."""
        table = self.tables[guest.table]
        if guest.table not in self._views:
            self._views[guest.table] = json.dumps(view_of(table))[1:]
        history, count = guest.knows
        first = count if history == table.course.history else 0
        guest.knows = (table.course.history, len(table.actions))
        away = self.people.away(table) if len(table.people) > 1 else {}
        own = {
            "type": "state",
            "you": table.seats_of(guest.person),
            "asked": guest.person in table.wishes.asked,
            "away": {seat: round(left, 1) for one, left in away.items() for seat in table.seats_of(one)},
            "clock": table.clock.told() if table.clock else None,
            "accepted": guest.person in table.accepted,
            "compiling": self.agents.is_compiling(table),
            "from": first,
            **({} if history == table.course.history else {"start": table.course.start}),
        }
        moves = ", ".join(table.course.told_moves[first:])
        return f'{json.dumps(own)[:-1]}, "moves": [{moves}], {self._views[guest.table]}'

    # Changes

    def changed(self, table: Table) -> None:
        """Write a changed table into the journal, then send it to its connections and start its agents.

        A change that cannot be written is undone, so that no connection sees a state that would be lost.
        """
        table.wind()
        try:
            self._store.save(table)
        except sqlite3.Error as error:
            log.exception("table %s could not be saved", table.id)
            self._take_back(table.id)
            raise RefusedError(f"the change could not be saved, so it was not made: {error}") from error
        table.revision += 1
        self.touched[table.id] = time.time()
        self._views.pop(table.id, None)
        self.people.show(table.id)
        self.flags.set(table)
        self.agents.prompt(table)

    def _take_back(self, table_id: str) -> None:
        """Replace a table by its last saved version."""
        saved = None
        with contextlib.suppress(sqlite3.Error):  # `find` reads it again when a connection joins
            saved = self._store.load(table_id)
        if saved is None:
            self._forget(table_id)
            return
        self.tables[table_id] = saved
        self.flags.set(saved)
        self.agents.stop(table_id)  # an agent there thinks about the discarded version
        asyncio.get_running_loop().call_later(RETRY, self._prompt_again, saved)

    def _prompt_again(self, table: Table) -> None:
        """Start the agents of a table again after a change could not be saved."""
        if self.tables.get(table.id) is table:
            self.people.show(table.id)
            self.agents.prompt(table)

    def end_on_time(self, table: Table) -> None:
        """End a game in which a seat has no time left."""
        if self.tables.get(table.id) is not table:
            return
        lose_on_time(table)
        try:
            self.changed(table)
        except RefusedError as refusal:
            self.people.announce(table.id, str(refusal))

    def add(self, guest: Guest, table: Table) -> None:
        """Add a new table and let the connection watch it."""
        self._make_room()
        table.maker = digest(guest.owner)
        self.tables[table.id] = table
        self.changed(table)
        self._warm_up.want(Job(table.setup.kind, RULES), guest.owner)
        self.look_at(guest, table.id)

    def _make_room(self) -> None:
        """Remove expired tables, and one more if there are still too many."""
        for table_id in quotas.expired(self.tables.values(), self.touched):
            if not self.people.see(table_id):
                self.remove(table_id)
        if len(self.tables) >= MAX_TABLES:
            table_id = quotas.giving_way(self.tables.values(), self.touched, self.people.see)
            self.people.announce(table_id, "this table makes room for others: its creator has too many tables")
            self.remove(table_id)

    def remove(self, table_id: str) -> None:
        """Delete a table; its connections watch no table afterwards."""
        try:
            self._store.remove(table_id)
        except sqlite3.Error as error:
            log.exception("table %s could not be removed", table_id)
            raise RefusedError(f"the table could not be removed: {error}") from error
        for guest in self.people.at(table_id):
            self.look_at(guest, "")
        self._forget(table_id)

    def _forget(self, table_id: str) -> None:
        self.agents.stop(table_id)
        self.people.forget(table_id)
        self.flags.drop(table_id)
        for memory in (self.tables, self.touched, self._views):
            memory.pop(table_id, None)

    def close(self) -> None:
        """Stop all agents, analyses and timers. All changes are already in the journal."""
        self.agents.close()
        self.flags.close()
        for table in self.tables:
            for guest in self.people.at(table):
                guest.rest()


def _kind_of(text: str) -> str:
    """Return `Setup.kind` of a stored table; empty if the text cannot be read."""
    try:
        return kind_of_text(text)
    except (ValueError, KeyError, TypeError):
        return ""
