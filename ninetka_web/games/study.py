"""What an analysis knows of one game only; nothing of it is quick."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

from ninetka_env.core.game import Game
from ninetka_env.core.outcome import UNFINISHED
from ninetka_web.games.offer import Json

Stopped = Callable[[], bool]
"""Returns whether nobody waits any more for what is being thought about."""


def never() -> bool:
    """Let those who think go on to the end."""
    return False


class Exact(NamedTuple):
    """What is known of a position under perfect play: winning seats, `DRAWN`, and `UNFINISHED` for what is not."""

    winner: int
    after: Mapping[int, int]
    """By legal action, who wins after it; empty if that was not asked for."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to find out."""
        return UNFINISHED not in (self.winner, *self.after.values())


class Study:
    """How deep a game is searched, and what else is found out about its positions."""

    budgets: ClassVar[Mapping[str, tuple[int, ...]]] = {"mcts": (200, 1_000, 4_000, 20_000), "net": (16, 64, 256)}
    """Simulations of the steps in which an analysis grows, by engine."""
    share_simulations: ClassVar[int] = 250
    """Of the tree search for one point of the band over the game."""
    solves: ClassVar[bool] = False
    """Whether perfect play is known somewhere: see `solvable`."""

    def insight(self, game: Game) -> Json:
        """Return what else is known of a position, for its panel and the drawing file."""
        return {}

    def solvable(self, game: Game) -> bool:
        """Return whether perfect play may be known in moments."""
        return False

    def solve(self, game: Game, seconds: float, stopped: Stopped = never, *, moves: bool = True) -> Exact:
        """Return what is found out in that many seconds about a position that is `solvable`, and about its moves."""
        raise NotImplementedError
