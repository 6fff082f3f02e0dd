"""Receives the messages of all connections and answers each, at once or when the code that it needs is compiled.

All handlers run on one event loop, so a message is handled completely before the next one is read. Only agents,
analyses and parsers run on threads.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable
from typing import Any

from ninetka_web.server import protocol
from ninetka_web.server.connections import Guest
from ninetka_web.server.handlers import Handlers
from ninetka_web.server.live_tables import LiveTables
from ninetka_web.server.new_tables import brings_text, read_table, rules_for
from ninetka_web.server.protocol import AnyMessage, id_of, read_message
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.store import Store
from ninetka_web.thinking.analysts import Analysts
from ninetka_web.thinking.players import Players
from ninetka_web.thinking.warm import RULES, Job, WarmUp

MAX_EARLY = 1_000
"""The maximal number of messages that wait until the rules are compiled."""
MAX_PATIENT = 4
"""The maximal number of one connection's messages that wait for compilation or parsing."""

log = logging.getLogger("ninetka")


class Hub:
    """The tables and connections of one server."""

    def __init__(self, store: Store, warm_up: WarmUp) -> None:
        """Create a hub that queues all messages until `open` has finished."""
        self._players, self._warm_up = Players(), warm_up
        self.live = LiveTables(store, self._players, warm_up)
        self._handlers = Handlers(self.live, Analysts(self._players, warm_up))
        self._needed = self.live.needed
        self._early: list[tuple[Guest, str]] = []
        self._is_open = False
        self._patient: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Restore the stored tables once their rules are compiled, then handle the queued messages."""
        for job in self._needed:
            await self._warm_up.wait(job)
        await self.live.restore()
        self._is_open = True
        for guest, text in self._early:
            if not guest.gone:
                self.receive(guest, text)
        self._early.clear()

    def receive(self, guest: Guest, text: str) -> None:
        """Handle a message and answer it, at once or when the code that it needs is compiled."""
        if not self._is_open and len(self._early) < MAX_EARLY:
            self._early.append((guest, text))
            guest.is_early = True
            if any(map(self._warm_up.is_compiling, self._needed)):
                guest.tell(type="compiling", what="the rules, for the stored tables")
            return
        number = 0
        try:
            if not self._is_open:
                raise RefusedError("the server is starting; try again in a few seconds")
            message = read_message(text)
            number = message.id
            if not guest.person and not isinstance(message, protocol.Hello):
                raise RefusedError("say hello first")
            job = rules_for(message, self.live.tables.get(guest.table))
            if job and (brings_text(message) or not self._warm_up.is_ready(job)):
                self._later(guest, message, job)
                return
        except RefusedError as refusal:
            guest.tell(type="refused", id=number or id_of(text), reason=str(refusal))
            return
        self._answer(guest, message, functools.partial(self._handlers.handle, guest, message))

    def _answer(self, guest: Guest, message: AnyMessage, act: Callable[[], None]) -> None:
        """Call `act` and send its outcome, `done` or `refused`. The connection stays open after any error."""
        try:
            act()
            guest.tell(type="done", id=message.id)
        except RefusedError as refusal:
            guest.tell(type="refused", id=message.id, reason=str(refusal))
        except Exception as error:
            log.exception("a message could not be answered: %s", message.type)
            guest.tell(type="refused", id=message.id, reason=f"the request failed and was not carried out: {error}")

    def _later(self, guest: Guest, message: AnyMessage, job: Job) -> None:
        """Answer a message later, when a job is done and the message's text, if any, is parsed."""
        if guest.patient >= MAX_PATIENT or len(self._patient) >= MAX_EARLY:
            raise RefusedError("too many of your requests wait for compilation or parsing; try again in a few seconds")
        self._handlers.check(guest, message)
        if self._warm_up.is_compiling(job):
            guest.tell(type="compiling", what=str(job))
        guest.patient += 1
        task = asyncio.create_task(self._finish(guest, message, job))
        self._patient.add(task)
        task.add_done_callback(self._patient.discard)

    async def _finish(self, guest: Guest, message: AnyMessage, job: Job) -> None:
        act, place = functools.partial(self._handlers.handle, guest, message), guest.table
        try:
            for wanted in (job, Job(job.kind, RULES)):  # the rest of the rules is compiled right after the first board
                self._warm_up.want(wanted, guest.owner)
            await self._warm_up.wait(job, guest.owner)
            if guest.table != place and not isinstance(message, protocol.Create | protocol.Upload):
                raise RefusedError("you left the table in the meantime")
            if brings_text(message):
                table = await self._players.run(read_table, message, guest.person)
                await self._warm_up.wait(Job(table.setup.kind, RULES), guest.owner)
                act = functools.partial(self.live.add, guest, table)
        except Exception as error:
            act = functools.partial(_fail, error)
        guest.patient -= 1
        if not guest.gone:
            self._answer(guest, message, act)

    def leave(self, guest: Guest) -> None:
        """Remove a closed connection; its user keeps the seats."""
        self.live.look_at(guest, "")
        guest.gone = True

    def close(self) -> None:
        """Stop all agents and analyses. All changes are already in the journal."""
        for task in self._patient:
            task.cancel()
        self.live.close()
        self._players.close()


def _fail(error: Any) -> None:
    raise error
