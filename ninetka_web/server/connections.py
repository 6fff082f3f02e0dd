"""Browsers that are connected: who they are, what they are still to be sent, and what happens if they do not read."""

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
"""Messages that may wait for a browser that reads too slowly before it is hung up on; states do not pile up."""

PATIENCE = 20.0
"""Seconds in which something must move at the other end of a connection."""


class Guest:
    """A browser that is connected: who it is, what it looks at, and what it is still to be told."""

    def __init__(self, network: str = "") -> None:
        """Begin as a stranger at no table, from a network as `quotas.network_of` tells it."""
        self.network = network
        self.person = ""
        self.table = ""
        self.analysis: asyncio.Task[None] | None = None
        self.patient = 0
        """How many of its messages wait for something to be compiled or read."""
        self.is_early = False
        """Whether something that it has said waits until the stored tables are restored."""
        self.gone = False
        self.knows = (-1, 0)
        """Which history of its table it has been shown, and how many moves of it."""
        self._waiting: deque[str] = deque()
        self._state_due = False
        self._wake = asyncio.Event()

    @property
    def owner(self) -> str:
        """Whom all is charged to that it makes: everybody in a network together, on this computer each person."""
        return self.network or self.person

    def tell(self, **message: Any) -> None:
        """Send a message soon."""
        if len(self._waiting) >= MAX_WAITING:
            self.gone = True
        else:
            self._waiting.append(json.dumps(message))
        self._wake.set()

    def show(self) -> None:
        """Send the state of the table soon, as it is by then."""
        self._state_due = True
        self._wake.set()

    def rest(self) -> None:
        """Stop the analysis that it looks at."""
        if self.analysis:
            self.analysis.cancel()
            self.analysis = None

    async def next_messages(self, tables: Container[str], state_for: Callable[[Guest], str]) -> list[str]:
        """Wait until there is something to send, and return it.

        Args:
            tables: the tables that there are, by id.
            state_for: returns the message that shows a guest its table.
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
    """A line that serves parts of the page, for `PATIENCE` seconds, unless it becomes a WebSocket."""

    def connection_made(self, transport: Any) -> None:
        """Begin to wait, and let nothing that is sent wait: else a board comes 40 ms after the "done" before it.

        asyncio sets this option itself, but only if the listening socket names TCP, and on Linux alone.
        """
        super().connection_made(transport)
        self.loop.call_later(PATIENCE, self._end)
        with contextlib.suppress(OSError):  # macOS refuses where the other end has hung up already
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _end(self) -> None:
        if self.transport.get_protocol() is self:
            self.transport.abort()


class Line(WebSocketsSansIOProtocol):
    """A WebSocket whose other end reads."""

    _cut: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        """Wait until what is written is read, but not for ever."""
        super().pause_writing()
        self._cut = self.loop.call_later(PATIENCE, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on."""
        if self._cut:
            self._cut.cancel()
        super().resume_writing()

    def keepalive_timeout(self) -> None:
        """Cut a line that has not answered a ping: closing it would wait until all is read."""
        super().keepalive_timeout()
        self.transport.abort()
