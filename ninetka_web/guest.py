"""A browser that is connected: who it is, what it looks at, and what it is still to be told."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Container
from typing import Any, Protocol

MAX_WAITING = 500
"""Messages that may wait for a browser that reads too slowly before it is hung up on; states do not pile up."""


class Shows(Protocol):
    """Who knows what a guest is to see."""

    @property
    def tables(self) -> Container[str]:
        """The tables that there are, by id."""
        ...

    def state_for(self, guest: Guest) -> str:
        """Return the message that shows a guest its table."""
        ...


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
        """Whether something that it has said waits until the tables of before are found again."""
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

    async def next_messages(self, hub: Shows) -> list[str]:
        """Wait until there is something to send, and return it."""
        await self._wake.wait()
        self._wake.clear()
        messages = list(self._waiting)
        self._waiting.clear()
        if self._state_due and self.table in hub.tables:
            messages.append(hub.state_for(self))
        self._state_due = False
        return messages
