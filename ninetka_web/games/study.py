"""Base class of the game-specific parts of an analysis. `insight` and `solve` are slow and run on threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

from ninetka_env.core.game import Game
from ninetka_env.core.outcome import UNFINISHED
from ninetka_web.games.offer import Json

Stopped = Callable[[], bool]
"""Returns whether a computation should stop because its result is no longer wanted."""


def never() -> bool:
    """Return False: never stop early."""
    return False


class Exact(NamedTuple):
    """Values of a position under perfect play: the winning seat, `DRAWN`, or `UNFINISHED` if the value is unknown."""

    winner: int
    after: Mapping[int, int]
    """The winner after each legal action; empty if it was not requested."""

    @property
    def is_whole(self) -> bool:
        """Whether all values are known."""
        return UNFINISHED not in (self.winner, *self.after.values())


class Study:
    """Search budgets of a game, and game-specific facts about its positions."""

    budgets: ClassVar[Mapping[str, tuple[int, ...]]] = {"mcts": (200, 1_000, 4_000, 20_000), "net": (16, 64, 256)}
    """Total simulations after each step of an analysis, by engine."""
    share_simulations: ClassVar[int] = 250
    """Simulations of the tree search for one point of the win-probability graph."""
    solves: ClassVar[bool] = False
    """Whether some positions can be solved exactly: see `solvable`."""

    def insight(self, game: Game) -> Json:
        """Return game-specific facts about a position, for the analysis panel and the drawing file."""
        return {}

    def solvable(self, game: Game) -> bool:
        """Return whether `solve` may solve the position; this is fast."""
        return False

    def solve(self, game: Game, seconds: float, stopped: Stopped = never, *, moves: bool = True) -> Exact:
        """Solve a `solvable` position and, if `moves`, its moves, as far as possible in `seconds`."""
        raise NotImplementedError
