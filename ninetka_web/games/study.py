"""Base class of the game-specific parts of an analysis. `insight` and `solve` are slow and run on threads.

`ninetka_web/thinking/analysis.py` has the parts of an analysis that are the same for all games.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

from ninetka_env.core.game import Game
from ninetka_env.core.outcome import UNFINISHED
from ninetka_web.games.offer import Json

StopCheck = Callable[[], bool]
"""Returns whether a computation should stop because its result is no longer wanted."""


def never_stop() -> bool:
    """Return False: never stop early."""
    return False


class ExactValue(NamedTuple):
    """Values of a position under perfect play: the winning seat, `DRAWN`, or `UNFINISHED` if the value is unknown."""

    winner: int
    winner_after: Mapping[int, int]
    """The winner after each legal action; empty if it was not requested."""

    @property
    def is_complete(self) -> bool:
        """Whether all values are known."""
        return UNFINISHED not in (self.winner, *self.winner_after.values())


class Study:
    """Search budgets of a game, and game-specific facts about its positions."""

    budgets: ClassVar[Mapping[str, tuple[int, ...]]] = {"mcts": (200, 1_000, 4_000, 20_000), "net": (16, 64, 256)}
    """By engine: the total number of simulations after each step of an analysis."""
    timeline_simulations: ClassVar[int] = 250
    """Simulations of the tree search for one point of the win-probability graph."""
    has_solver: ClassVar[bool] = False
    """Whether some positions can be solved exactly: see `solvable`."""

    def insight(self, game: Game) -> Json:
        """Return game-specific facts about a position, for the analysis panel and the renderer in the browser."""
        return {}

    def solvable(self, game: Game) -> bool:
        """Return whether `solve` may solve the position; this is fast."""
        return False

    def solve(self, game: Game, seconds: float, stopped: StopCheck = never_stop, *, moves: bool = True) -> ExactValue:
        """Return the values of a `solvable` position; values that are not found in `seconds` are `UNFINISHED`.

        Args:
            game: the position.
            seconds: the time limit.
            stopped: returns whether to stop early.
            moves: whether to find the winner after each legal action, too.
        """
        raise NotImplementedError
