"""Lines to browsers that hold nobody up: one at whose other end nothing moves for a while is cut."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

PATIENCE = 20.0
"""Seconds."""


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
