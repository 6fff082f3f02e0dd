"""A clock for people: so much time for the whole game, and some more after each turn. Agents have none."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ninetka_web.tables import Table

now: Callable[[], float] = time.perf_counter


@dataclass
class Clock:
    """What each seat has left; the clock of one seat runs, or none does."""

    main: int
    """Seconds for the game."""
    increment: int
    """Seconds that a turn adds when it is over."""
    left: list[float]
    """Seconds of each seat when it was charged last; written down, a clock stands still until it is run again."""

    def __post_init__(self) -> None:
        """Begin with no seat's clock running."""
        self.running: int | None = None
        self._since = now()

    @classmethod
    def of(cls, main: int, increment: int, seats: int) -> Clock:
        """Return a new clock."""
        return cls(main, increment, [float(main)] * seats)

    def run(self, seat: int | None) -> None:
        """Charge the seat whose clock runs, and let that of another run; None stops all."""
        if self.running is not None:
            self.left[self.running] = self.rest(self.running)
        self.running, self._since = seat, now()

    def end_turn(self, seat: int) -> None:
        """Give a seat what a turn adds."""
        self.left[seat] += self.increment

    def rest(self, seat: int) -> float:
        """Return the seconds that a seat has now, 0 at least."""
        return max(0.0, self.left[seat] - (now() - self._since if seat == self.running else 0.0))

    @property
    def is_out(self) -> bool:
        """Whether the time of the seat whose clock runs is over."""
        return self.running is not None and self.rest(self.running) <= 0

    def told(self) -> dict[str, object]:
        """Return what browsers are told."""
        rests = [round(self.rest(seat), 2) for seat in range(len(self.left))]
        return {"left": rests, "running": self.running, "main": self.main, "increment": self.increment}


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
