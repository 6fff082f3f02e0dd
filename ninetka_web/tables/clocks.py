"""A clock for people: a main time for the game and an increment after each turn. Agents have no clock.

`table.py` switches the clock; the timers are in `ninetka_web/server/live_tables.py`. Time control of GTP is in
`ninetka_agents.go.gtp.time_control`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

now: Callable[[], float] = time.perf_counter


@dataclass
class Clock:
    """The remaining time of each seat. The clock of at most one seat runs."""

    main: int
    """Seconds for the game."""
    increment: int
    """Seconds that are added after each turn."""
    remaining: list[float]
    """Remaining seconds of each seat when its clock last stopped.

    A clock loaded from the store does not run until `switch_to` is called.
    """

    def __post_init__(self) -> None:
        """Start with no clock running."""
        self.running: int | None = None
        self._since = now()

    @classmethod
    def of(cls, main: int, increment: int, seats: int) -> Clock:
        """Return a new clock that does not run yet."""
        return cls(main, increment, [float(main)] * seats)

    def switch_to(self, seat: int | None) -> None:
        """Stop the running clock and start the clock of `seat`; None starts no clock."""
        if self.running is not None:
            self.remaining[self.running] = self.seconds_remaining(self.running)
        self.running, self._since = seat, now()

    def end_turn(self, seat: int) -> None:
        """Add the increment to a seat's time."""
        self.remaining[seat] += self.increment

    def seconds_remaining(self, seat: int) -> float:
        """Return the remaining seconds of a seat now, at least 0."""
        return max(0.0, self.remaining[seat] - (now() - self._since if seat == self.running else 0.0))

    @property
    def is_expired(self) -> bool:
        """Whether the seat whose clock runs has no time left."""
        return self.running is not None and self.seconds_remaining(self.running) <= 0

    def as_json(self) -> dict[str, object]:
        """Return the clock as JSON for browsers."""
        remaining = [round(self.seconds_remaining(seat), 2) for seat in range(len(self.remaining))]
        return {"remaining": remaining, "running": self.running, "main": self.main, "increment": self.increment}
