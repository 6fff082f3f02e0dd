"""Time control of the GTP engine: the time settings of the protocol, and the time for the next move.

Start reading at `TimeControl.seconds_for`; `move_chooser.py` keeps within this time.
"""

from __future__ import annotations

from dataclasses import dataclass

LAG_S = 0.1
"""The part of each move's time that is reserved for communication with the controller, in seconds."""
MIN_MOVES = 10
"""Main time is divided by at least this number of moves."""


@dataclass(frozen=True)
class TimeSettings:
    """Main time and Canadian overtime: periods in which a number of moves must be played. Times are in seconds."""

    main: float
    overtime: float
    """The length of a period of overtime; 0 for no overtime."""
    stones: int
    """The number of moves in each period of overtime."""


@dataclass
class _Remaining:
    seconds: float
    stones: int
    """The number of moves to play in the remaining `seconds`; 0 in main time."""


class TimeControl:
    """The remaining time of both seats."""

    def __init__(self) -> None:
        """Start without a time limit."""
        self.settings: TimeSettings | None = None
        self._remaining: list[_Remaining] = []

    def set(self, main: float, overtime: float, stones: int) -> None:
        """Set the time of both seats.

        There is no time limit if `overtime` is positive and `stones` is 0, as in the protocol. There is none either if
        `main` and `overtime` are both 0, because some controllers send this for unlimited time.

        Args:
            main: the main time in seconds.
            overtime: the length of a period of overtime in seconds; 0 for no overtime.
            stones: the number of moves in each period of overtime.
        """
        unlimited = (overtime > 0 and stones == 0) or (main == 0 and overtime == 0)
        self.settings = None if unlimited else TimeSettings(main, overtime if stones else 0.0, stones)
        self.reset()

    def reset(self) -> None:
        """Restart the time of both seats for a new game with the same settings."""
        if self.settings is not None:
            self._remaining = [_Remaining(self.settings.main, 0) for _ in range(2)]
            for seat in range(2):
                self._start_overtime(seat)

    def update(self, seat: int, seconds: float, stones: int) -> None:
        """Set the remaining time of a seat: `seconds` for its next `stones` moves, or main time if `stones` is 0."""
        if self.settings is not None:
            self._remaining[seat] = _Remaining(seconds, min(stones, max(self.settings.stones, 1)))

    def spend(self, seat: int, seconds: float) -> None:
        """Subtract the time of a move; start the next period of overtime if the seat has reached it."""
        if self.settings is None:
            return
        remaining = self._remaining[seat]
        remaining.seconds -= seconds
        if remaining.stones == 1:  # the next period starts
            self._remaining[seat] = _Remaining(self.settings.overtime, self.settings.stones)
            return
        remaining.stones = max(remaining.stones - 1, 0)
        self._start_overtime(seat)

    def seconds_for(self, seat: int, moves: float) -> float | None:
        """Return the time of a seat for its next move in seconds, None for no limit.

        Main time is divided evenly among the remaining moves; the overtime of one move is added.

        Args:
            seat: the seat.
            moves: the expected number of moves that the seat has still to play.
        """
        if self.settings is None:
            return None
        remaining, settings = self._remaining[seat], self.settings
        if remaining.stones:
            share = remaining.seconds / remaining.stones
        else:
            overtime_share = settings.overtime / settings.stones if settings.overtime else 0.0
            share = min(remaining.seconds / max(moves, MIN_MOVES) + overtime_share, remaining.seconds + overtime_share)
        return max(share - LAG_S, share / 10, 0.0)

    def _start_overtime(self, seat: int) -> None:
        """Start overtime for a seat whose main time is used up."""
        settings, remaining = self.settings, self._remaining[seat]
        if settings is not None and settings.overtime and remaining.stones == 0 and remaining.seconds <= 0:
            self._remaining[seat] = _Remaining(settings.overtime, settings.stones)
