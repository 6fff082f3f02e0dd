"""A clock for people: so much time for the whole game, and some more after each turn. Agents have none."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

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
