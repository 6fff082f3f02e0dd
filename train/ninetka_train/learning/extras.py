"""What a single game may add to self-play: moves and results that are known better than its network knows them.

A game's own is a class derived from `GameExtras` in the game's room; `ninetka_train.parts` says where.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions
from ninetka_agents.search.gumbel import Evaluate
from ninetka_agents.search.tree import TreeResult
from ninetka_env.core.chance import Streams
from ninetka_env.core.registry import limits_of
from ninetka_env.core.verbs import Records
from ninetka_train.learning.config import AlphaZeroSettings
from ninetka_train.learning.samples import Floats, outcome_shares

Bools = npt.NDArray[np.bool_]


class Learned(NamedTuple):
    """What is to be learned of N positions."""

    outcomes: Floats
    """(N, P + 1) float32 shares of the outcomes: each seat wins; drawn."""
    policy: Floats
    """(N, A) float32, as in `ninetka_train.learning.samples.Samples`."""
    certain: Bools
    """(N,) bool: perfect play says who wins, not how the game happened to end."""
    decisive: Bools
    """(N,) bool: some moves are known to win, and others not to."""


class GameExtras:
    """Adds nothing: what most games have."""

    def __init__(self, settings: AlphaZeroSettings, evaluate: Evaluate, threads: int) -> None:
        """Set up for a task.

        Args:
            settings: of the run.
            evaluate: what the network says; see `ninetka_agents.search.gumbel.Evaluate`.
            threads: at most so many; results must not depend on it.
        """
        self.settings, self.evaluate, self.threads = settings, evaluate, threads

    @classmethod
    def check(cls, settings: AlphaZeroSettings) -> None:
        """Raise `ValueError` for settings that the game has no use for."""
        for name in ("slide_playouts", "first_slide_playouts", "exact_share", "exact_lines"):
            if getattr(settings, name):
                raise ValueError(f"alphazero.{name}={getattr(settings, name)}: is for 9tka alone, expected 0")

    def plays(self, games: Records) -> Bools:
        """Tell in which of (N,) games, whose moves are not drawn any more, `act` plays instead of the policy."""
        return np.zeros(len(games), np.bool_)

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions in games that `plays` named; see `ninetka_agents.agent.Agent.act`."""
        raise NotImplementedError

    def weights(self, games: Records) -> npt.NDArray[np.float64]:
        """Return (N,) float64: times the shares of positions to keep."""
        return np.ones(len(games))

    def shown(self, games: Records) -> npt.NDArray[np.float64]:
        """Return (N,) float64: the chance that a position is given to `learned` even if it would not be kept."""
        return np.zeros(len(games))

    def branches(self, games: Records, index: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the numbers of those of (N,) positions, (N,) int64 the game of each, that more games go on from."""
        return np.empty(0, np.int64)

    def searches(self, games: Records) -> Bools:
        """Tell which of (N,) positions `search` searches instead of the Gumbel search."""
        return np.zeros(len(games), np.bool_)

    def search(self, games: Records, rng: np.random.Generator) -> TreeResult:
        """Search positions that `searches` named."""
        raise NotImplementedError

    def learned(
        self,
        games: Records,
        index: npt.NDArray[np.int64],
        winners: npt.NDArray[np.int64],
        policy: Floats,
        families: npt.NDArray[np.int64],
        streams: Streams,
    ) -> Learned:
        """Return what is to be learned of positions, given what was found out by search and play.

        Args:
            games: (N,) positions; those of one game stand in the order of play.
            index: (N,) int64 the game of each.
            winners: (G,) int64 who won each game.
            policy: (N, A) float32 what the search would play, all 0 without one.
            families: (N,) int64 the same number for positions that a solver meets together: those of games that went on
                from one position, or of one game.
            streams: (N,) their chance, which is left alone.
        """
        unknown = np.zeros(len(games), np.bool_)
        outcomes = outcome_shares(winners[index], limits_of(games.dtype).players)
        return Learned(outcomes, policy, unknown, unknown)
