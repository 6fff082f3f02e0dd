"""A clock for people: a main time for the game and an increment after each turn. Agents have no clock."""

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
    left: list[float]
    """Remaining seconds of each seat when its clock last stopped. A stored clock does not run until `run` is called."""

    def __post_init__(self) -> None:
        """Start with no clock running."""
        self.running: int | None = None
        self._since = now()

    @classmethod
    def of(cls, main: int, increment: int, seats: int) -> Clock:
        """Return a new clock."""
        return cls(main, increment, [float(main)] * seats)

    def run(self, seat: int | None) -> None:
        """Stop the running clock and start that of `seat`; None starts no clock."""
        if self.running is not None:
            self.left[self.running] = self.rest(self.running)
        self.running, self._since = seat, now()

    def end_turn(self, seat: int) -> None:
        """Add the increment to a seat's time."""
        self.left[seat] += self.increment

    def rest(self, seat: int) -> float:
        """Return the remaining seconds of a seat now, at least 0."""
        return max(0.0, self.left[seat] - (now() - self._since if seat == self.running else 0.0))

    @property
    def is_out(self) -> bool:
        """Whether the seat whose clock runs has no time left."""
        return self.running is not None and self.rest(self.running) <= 0

    def told(self) -> dict[str, object]:
        """Return the clock as JSON for browsers."""
        rests = [round(self.rest(seat), 2) for seat in range(len(self.left))]
        return {"left": rests, "running": self.running, "main": self.main, "increment": self.increment}
