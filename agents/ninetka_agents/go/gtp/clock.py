"""How long an engine may think: the time settings of the protocol, and a share of what is left for the next move."""

from __future__ import annotations

from dataclasses import dataclass

LAG = 0.1
"""Seconds of a move that are left for the way to the controller and back."""
FEWEST_MOVES = 10
"""Main time is shared out among at least so many own moves to come."""


@dataclass(frozen=True)
class TimeSettings:
    """Main time, then periods of overtime in which some moves must be made; in seconds."""

    main: float
    overtime: float
    """0 for none: main time is all there is."""
    stones: int
    """Moves of each period of overtime."""


@dataclass
class _Left:
    seconds: float
    stones: int
    """Moves to be made in these seconds; 0 in main time."""


class Clock:
    """The time of both seats."""

    def __init__(self) -> None:
        """Set no limit."""
        self.settings: TimeSettings | None = None
        self._left: list[_Left] = []

    def set(self, main: float, overtime: float, stones: int) -> None:
        """Set the same time for both seats; overtime without stones, or no time at all, is no limit.

        The former is what the protocol says, the latter what controllers mean by it.
        """
        unlimited = (overtime > 0 and stones == 0) or (main == 0 and overtime == 0)
        self.settings = None if unlimited else TimeSettings(main, overtime if stones else 0.0, stones)
        self.reset()

    def reset(self) -> None:
        """Begin a new game with the same settings."""
        if self.settings is not None:
            self._left = [_Left(self.settings.main, 0) for _ in range(2)]
            for seat in range(2):
                self._begin_overtime(seat)

    def tell(self, seat: int, seconds: float, stones: int) -> None:
        """Correct what is left to a seat: `stones` moves in so many seconds, or main time if 0."""
        if self.settings is not None:
            self._left[seat] = _Left(seconds, min(stones, max(self.settings.stones, 1)))

    def spend(self, seat: int, seconds: float) -> None:
        """Take the time of a move."""
        if self.settings is None:
            return
        left = self._left[seat]
        left.seconds -= seconds
        if left.stones == 1:  # the period is done, the next one begins
            self._left[seat] = _Left(self.settings.overtime, self.settings.stones)
            return
        left.stones = max(left.stones - 1, 0)
        self._begin_overtime(seat)

    def seconds_for(self, seat: int, moves: float) -> float | None:
        """Return how long a seat may think about its next move, of so many that it may still have to make.

        Main time is shared out evenly, with what overtime gives to a move on top. None for as long as it likes.
        """
        if self.settings is None:
            return None
        left, settings = self._left[seat], self.settings
        if left.stones:
            share = left.seconds / left.stones
        else:
            after = settings.overtime / settings.stones if settings.overtime else 0.0
            share = min(left.seconds / max(moves, FEWEST_MOVES) + after, left.seconds + after)
        return max(share - LAG, share / 10, 0.0)

    def _begin_overtime(self, seat: int) -> None:
        """Go over to overtime where main time is used up."""
        settings, left = self.settings, self._left[seat]
        if settings is not None and settings.overtime and left.stones == 0 and left.seconds <= 0:
            self._left[seat] = _Left(settings.overtime, settings.stones)
