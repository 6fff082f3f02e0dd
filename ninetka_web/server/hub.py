"""Receives and answers the messages of all connections. A message waits until the code that it needs is compiled.

Start reading at `Hub.receive`. The handlers are in `handlers.py`, the tables in `live_tables.py`.

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
from ninetka_web.server.connections import Connection
from ninetka_web.server.handlers import Handlers
from ninetka_web.server.live_tables import LiveTables
from ninetka_web.server.new_tables import needs_parsing, read_table, required_job
from ninetka_web.server.protocol import ClientMessage, message_id_of, read_message
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.store import Store
from ninetka_web.thinking.agent_threads import AgentThreads
from ninetka_web.thinking.analysis_service import AnalysisService
from ninetka_web.thinking.warm import RULES, Job, WarmUp

MAX_QUEUED = 1_000
"""The maximal number of messages that wait until the rules are compiled."""
MAX_DEFERRED = 4
"""The maximal number of one connection's messages that wait for compilation or parsing."""

log = logging.getLogger("ninetka")


class Hub:
    """The tables and connections of one server."""

    def __init__(self, store: Store, warm_up: WarmUp) -> None:
        """Create a hub that queues all messages until `open` has finished."""
        self._threads, self._warm_up = AgentThreads(), warm_up
        self.live = LiveTables(store, self._threads, warm_up)
        self._handlers = Handlers(self.live, AnalysisService(self._threads, warm_up))
        self._required_jobs = self.live.required_jobs
        self._queued: list[tuple[Connection, str]] = []
        self._is_open = False
        self._deferred: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Restore the stored tables once their rules are compiled, then handle the queued messages."""
        for job in self._required_jobs:
            await self._warm_up.wait(job)
        await self.live.restore()
        self._is_open = True
        for connection, text in self._queued:
            if not connection.is_closed:
                self.receive(connection, text)
        self._queued.clear()

    def receive(self, connection: Connection, text: str) -> None:
        """Handle and answer a message at once, or later if code must be compiled or a text parsed first."""
        if not self._is_open and len(self._queued) < MAX_QUEUED:
            self._queued.append((connection, text))
            connection.waits_for_start = True
            if any(map(self._warm_up.is_compiling, self._required_jobs)):
                connection.send(type="compiling", what="the rules, for the stored tables")
            return
        number = 0
        try:
            if not self._is_open:
                raise RefusedError("the server is starting; try again in a few seconds")
            message = read_message(text)
            number = message.id
            if not connection.user and not isinstance(message, protocol.Hello):
                raise RefusedError("say hello first")
            job = required_job(message, self.live.tables.get(connection.table_id))
            if job and (needs_parsing(message) or not self._warm_up.is_ready(job)):
                self._defer(connection, message, job)
                return
        except RefusedError as refusal:
            connection.send(type="refused", id=number or message_id_of(text), reason=str(refusal))
            return
        self._answer(connection, message, functools.partial(self._handlers.handle, connection, message))

    def _answer(self, connection: Connection, message: ClientMessage, act: Callable[[], None]) -> None:
        """Call `act` and send its outcome, `done` or `refused`. The connection stays open after any error."""
        try:
            act()
            connection.send(type="done", id=message.id)
        except RefusedError as refusal:
            connection.send(type="refused", id=message.id, reason=str(refusal))
        except Exception as error:
            log.exception("a message could not be answered: %s", message.type)
            connection.send(
                type="refused", id=message.id, reason=f"the request failed and was not carried out: {error}"
            )

    def _defer(self, connection: Connection, message: ClientMessage, job: Job) -> None:
        """Answer a message later: when its code is compiled (`job`) and its text, if any, is parsed."""
        if connection.num_deferred >= MAX_DEFERRED or len(self._deferred) >= MAX_QUEUED:
            raise RefusedError("too many of your requests wait for compilation or parsing; try again in a few seconds")
        self._handlers.check_deferred(connection, message)
        if self._warm_up.is_compiling(job):
            connection.send(type="compiling", what=str(job))
        connection.num_deferred += 1
        task = asyncio.create_task(self._run_deferred(connection, message, job))
        self._deferred.add(task)
        task.add_done_callback(self._deferred.discard)

    async def _run_deferred(self, connection: Connection, message: ClientMessage, job: Job) -> None:
        act, table_id = functools.partial(self._handlers.handle, connection, message), connection.table_id
        try:
            self._warm_up.request(job, connection.quota_key)
            self._warm_up.request(Job(job.compile_key, RULES), connection.quota_key)  # right after the first board
            await self._warm_up.wait(job, connection.quota_key)
            if connection.table_id != table_id and not isinstance(message, protocol.Create | protocol.Upload):
                raise RefusedError("you left the table in the meantime")
            if needs_parsing(message):
                table = await self._threads.run(read_table, message, connection.user)
                await self._warm_up.wait(Job(table.setup.compile_key, RULES), connection.quota_key)
                act = functools.partial(self.live.add, connection, table)
        except Exception as error:
            act = functools.partial(_fail, error)
        connection.num_deferred -= 1
        if not connection.is_closed:
            self._answer(connection, message, act)

    def disconnect(self, connection: Connection) -> None:
        """Remove a closed connection; its user keeps the seats."""
        self.live.watch(connection, "")
        connection.is_closed = True

    def close(self) -> None:
        """Stop all agents and analyses. All changes are already in the journal."""
        for task in self._deferred:
            task.cancel()
        self.live.close()
        self._threads.close()


def _fail(error: Any) -> None:
    raise error
