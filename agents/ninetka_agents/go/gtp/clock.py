"""Time control of the GTP engine: the time settings of the protocol, and the time for the next move."""

from __future__ import annotations

from dataclasses import dataclass

LAG = 0.1
"""The part of each move's time that is reserved for communication with the controller, in seconds."""
FEWEST_MOVES = 10
"""Main time is divided by at least this number of moves."""


@dataclass(frozen=True)
class TimeSettings:
    """Main time, then overtime: periods in which a number of moves must be played (Canadian); times in seconds."""

    main: float
    overtime: float
    """The length of a period of overtime; 0 for no overtime."""
    stones: int
    """The number of moves in each period of overtime."""


@dataclass
class _Left:
    seconds: float
    stones: int
    """The number of moves to play in these seconds; 0 in main time."""


class Clock:
    """The remaining time of both seats."""

    def __init__(self) -> None:
        """Start without a time limit."""
        self.settings: TimeSettings | None = None
        self._left: list[_Left] = []

    def set(self, main: float, overtime: float, stones: int) -> None:
        """Set the time of both seats.

        Overtime with 0 stones means no time limit by the protocol. No time at all (0 0) is treated as no limit too,
        because controllers use it that way.
        """
        unlimited = (overtime > 0 and stones == 0) or (main == 0 and overtime == 0)
        self.settings = None if unlimited else TimeSettings(main, overtime if stones else 0.0, stones)
        self.reset()

    def reset(self) -> None:
        """Restart the time of both seats for a new game with the same settings."""
        if self.settings is not None:
            self._left = [_Left(self.settings.main, 0) for _ in range(2)]
            for seat in range(2):
                self._begin_overtime(seat)

    def tell(self, seat: int, seconds: float, stones: int) -> None:
        """Set the remaining time of a seat: `seconds` for `stones` moves, or of main time if `stones` is 0."""
        if self.settings is not None:
            self._left[seat] = _Left(seconds, min(stones, max(self.settings.stones, 1)))

    def spend(self, seat: int, seconds: float) -> None:
        """Subtract the time of a move."""
        if self.settings is None:
            return
        left = self._left[seat]
        left.seconds -= seconds
        if left.stones == 1:  # the next period starts
            self._left[seat] = _Left(self.settings.overtime, self.settings.stones)
            return
        left.stones = max(left.stones - 1, 0)
        self._begin_overtime(seat)

    def seconds_for(self, seat: int, moves: float) -> float | None:
        """Return the time of a seat for its next move in seconds, None for no limit.

        Main time is divided evenly among the remaining moves; the overtime of one move is added.

        Args:
            seat: the seat.
            moves: the expected number of moves that the seat has still to play.
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
        """Start overtime for a seat whose main time is used up."""
        settings, left = self.settings, self._left[seat]
        if settings is not None and settings.overtime and left.stones == 0 and left.seconds <= 0:
            self._left[seat] = _Left(settings.overtime, settings.stones)
