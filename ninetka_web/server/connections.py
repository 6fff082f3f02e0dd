"""The server's end of a browser's connection: its user, its outgoing messages, and timeouts of slow readers.

Start reading at `Connection`. `server.py` reads the messages of a connection, `hub.py` answers them.
"""

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

MAX_OUTBOX = 500
"""The number of unsent messages at which a slow connection is closed.

States do not count, because only the newest one is sent.
"""

TIMEOUT_S = 20.0
"""Seconds after which a connection is closed if its other end does not read or answer."""


class Connection:
    """A connected browser: its user, the table that it shows, and the messages to send."""

    def __init__(self, network: str = "") -> None:
        """Start without a user and without a table; `network` is a result of `quotas.network_of`."""
        self.network = network
        self.user = ""
        self.table_id = ""
        self.analysis: asyncio.Task[None] | None = None
        self.num_deferred = 0
        """The number of this connection's messages that wait for compilation or parsing."""
        self.waits_for_start = False
        """Whether a message of this connection waits until the stored tables are restored."""
        self.is_closed = False
        self.sent_moves = (-1, 0)
        """The `GameHistory.version` that was last sent to the browser, and the number of moves that were sent."""
        self._outbox: deque[str] = deque()
        self._state_due = False
        self._wake = asyncio.Event()

    @property
    def quota_key(self) -> str:
        """The key of this connection's quotas: the network, or the user if the browser is on the server's computer."""
        return self.network or self.user

    def send(self, **message: Any) -> None:
        """Queue a message."""
        if len(self._outbox) >= MAX_OUTBOX:
            self.is_closed = True
        else:
            self._outbox.append(json.dumps(message))
        self._wake.set()

    def send_state(self) -> None:
        """Queue the state of the table; the state is read when it is sent."""
        self._state_due = True
        self._wake.set()

    def stop_analysis(self) -> None:
        """Stop the analysis of this connection."""
        if self.analysis:
            self.analysis.cancel()
            self.analysis = None

    async def next_messages(self, tables: Container[str], state_for: Callable[[Connection], str]) -> list[str]:
        """Wait until there are messages to send, and return them.

        Args:
            tables: the existing tables, by id.
            state_for: returns the state of a connection's table as a message.
        """
        await self._wake.wait()
        self._wake.clear()
        messages = list(self._outbox)
        self._outbox.clear()
        if self._state_due and self.table_id in tables:
            messages.append(state_for(self))
        self._state_due = False
        return messages


class HttpProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """An HTTP connection. It is closed after `TIMEOUT_S` seconds unless it becomes a WebSocket."""

    def connection_made(self, transport: Any) -> None:
        """Start the timeout and set TCP_NODELAY. Without it, a state arrives 40 ms after the preceding `done`.

        asyncio sets this option only on Linux, and only if the listening socket names TCP as its protocol.
        """
        super().connection_made(transport)
        self.loop.call_later(TIMEOUT_S, self._end)
        with contextlib.suppress(OSError):  # macOS fails if the other end has already disconnected
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _end(self) -> None:
        if self.transport.get_protocol() is self:
            self.transport.abort()


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket that is aborted if its other end does not read."""

    _abort_timer: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        """Pause until the other end reads; abort the connection after `TIMEOUT_S` seconds."""
        super().pause_writing()
        self._abort_timer = self.loop.call_later(TIMEOUT_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Cancel the timeout and continue writing."""
        if self._abort_timer:
            self._abort_timer.cancel()
        super().resume_writing()

    def keepalive_timeout(self) -> None:
        """Abort a connection that did not answer a ping. A normal close would wait until pending data is read."""
        super().keepalive_timeout()
        self.transport.abort()
