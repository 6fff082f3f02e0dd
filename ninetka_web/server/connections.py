"""The server's end of a browser's connection: its user, its outgoing messages, and timeouts of slow readers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections import deque
from collections.abc import Callable, Container
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

MAX_WAITING = 500
"""The number of unsent messages after which a slow connection is closed; of states only the newest is sent."""

PATIENCE = 20.0
"""Seconds after which a connection is closed whose other end does not read or answer."""


class Guest:
    """A connected browser: its user, the table that it shows, and the messages to send."""

    def __init__(self, network: str = "") -> None:
        """Start without a user and without a table; `network` is a result of `quotas.network_of`."""
        self.network = network
        self.person = ""
        self.table = ""
        self.analysis: asyncio.Task[None] | None = None
        self.patient = 0
        """The number of its messages that wait for compilation or parsing."""
        self.is_early = False
        """Whether one of its messages waits until the stored tables are restored."""
        self.gone = False
        self.knows = (-1, 0)
        """`Course.history` of the table and the number of its moves that were sent to the browser."""
        self._waiting: deque[str] = deque()
        self._state_due = False
        self._wake = asyncio.Event()

    @property
    def owner(self) -> str:
        """The key of its quotas: the network, shared by all its users, or the user on the server's own computer."""
        return self.network or self.person

    def tell(self, **message: Any) -> None:
        """Queue a message."""
        if len(self._waiting) >= MAX_WAITING:
            self.gone = True
        else:
            self._waiting.append(json.dumps(message))
        self._wake.set()

    def show(self) -> None:
        """Queue the state of the table; the state is read when it is sent."""
        self._state_due = True
        self._wake.set()

    def rest(self) -> None:
        """Stop the analysis of this connection."""
        if self.analysis:
            self.analysis.cancel()
            self.analysis = None

    async def next_messages(self, tables: Container[str], state_for: Callable[[Guest], str]) -> list[str]:
        """Wait until there are messages to send, and return them.

        Args:
            tables: the existing tables, by id.
            state_for: returns the state of a connection's table as a message.
        """
        await self._wake.wait()
        self._wake.clear()
        messages = list(self._waiting)
        self._waiting.clear()
        if self._state_due and self.table in tables:
            messages.append(state_for(self))
        self._state_due = False
        return messages


class Http(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """An HTTP connection. It is closed after `PATIENCE` seconds unless it becomes a WebSocket."""

    def connection_made(self, transport: Any) -> None:
        """Start the timeout, and set TCP_NODELAY, without which a state arrives 40 ms after the `done` before it.

        asyncio sets this option only on Linux, and only if the listening socket names TCP as its protocol.
        """
        super().connection_made(transport)
        self.loop.call_later(PATIENCE, self._end)
        with contextlib.suppress(OSError):  # macOS fails if the other end has already disconnected
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _end(self) -> None:
        if self.transport.get_protocol() is self:
            self.transport.abort()


class Line(WebSocketsSansIOProtocol):
    """A WebSocket that is aborted if its other end does not read."""

    _cut: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        """Pause until the other end reads; abort the connection after `PATIENCE` seconds."""
        super().pause_writing()
        self._cut = self.loop.call_later(PATIENCE, self.transport.abort)

    def resume_writing(self) -> None:
        """Cancel the timeout and continue writing."""
        if self._cut:
            self._cut.cancel()
        super().resume_writing()

    def keepalive_timeout(self) -> None:
        """Abort a connection that did not answer a ping. A normal close would wait until pending data is read."""
        super().keepalive_timeout()
        self.transport.abort()
