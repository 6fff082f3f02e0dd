"""Timers that end games on time: one for each table whose clock runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ninetka_web.tables.table import Table


class Flags:
    """They fall when the time is over of whoever's clock runs, one at each table."""

    def __init__(self, fall: Callable[[Table], None]) -> None:
        """Call `fall` with a table when its flag falls."""
        self._fall = fall
        self._flags: dict[str, asyncio.TimerHandle] = {}

    def set(self, table: Table) -> None:
        """Let the clock of a table run, and set its flag anew."""
        self.drop(table.id)
        if table.clock:
            table.wind()
            if table.clock.running is not None:
                seconds = table.clock.rest(table.clock.running) + 0.01
                self._flags[table.id] = asyncio.get_running_loop().call_later(seconds, self._fall, table)

    def drop(self, table: str) -> None:
        """Let a flag never fall."""
        if flag := self._flags.pop(table, None):
            flag.cancel()

    def close(self) -> None:
        """Let none fall any more."""
        for table in list(self._flags):
            self.drop(table)
