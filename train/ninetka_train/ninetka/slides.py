"""What 9tka adds to self-play: slides and values by tree search, and exact results of two players.

A policy slides badly, and who wins by bad slides says little about the stones that were placed. With `slide_playouts`,
a tree search slides instead. Who wins is a poor teacher all the same where chance decides: with `first_slide_playouts`,
placements learn what a longer search says at the first slide. Where the solver says who wins, the policy may slide:
with `exact_share` it does, in two-player games, and meets the positions that its own mistakes lead to.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, GameRandom
from ninetka_agents.ninetka.solver.solver import LOST, WON, solvable
from ninetka_agents.search.guided import GuidedSearch
from ninetka_agents.search.gumbel import Evaluate
from ninetka_agents.search.mcts import MctsAgent
from ninetka_agents.search.tree import TreeResult
from ninetka_env.core.chance import Streams
from ninetka_env.core.verbs import Records
from ninetka_env.games.ninetka.geometry import MAX_PLAYERS, SLOT_SQUARE
from ninetka_env.games.ninetka.rules import MOVEMENT
from ninetka_train.learning.config import AlphaZeroSettings
from ninetka_train.learning.extras import Bools, GameExtras, Learned
from ninetka_train.learning.samples import Floats, outcome_shares
from ninetka_train.ninetka.exact_targets import find_known, next_known, only_winning


class Extras(GameExtras):
    """Slides and their exact results."""

    def __init__(self, settings: AlphaZeroSettings, evaluate: Evaluate, threads: int) -> None:
        """Set up for a task; see `GameExtras`."""
        super().__init__(settings, evaluate, threads)
        self.slides = settings.slide_playouts > 0
        self.agent = MctsAgent(max(1, settings.slide_playouts), threads=threads)
        self.judge = MctsAgent(max(1, settings.first_slide_playouts), threads=threads)
        self.guided = GuidedSearch(evaluate, settings.simulations, threads=threads)

    @classmethod
    def check(cls, settings: AlphaZeroSettings) -> None:
        """Refuse none: they are made for 9tka."""

    def plays(self, games: Records) -> Bools:
        """Slide where the solver is not to see what the policy does."""
        return self.searches(games) & ~(solvable(games) & (self.settings.exact_share > 0))

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Slide by tree search."""
        return self.agent.act(games, rng)

    def weights(self, games: Records) -> npt.NDArray[np.float64]:
        """Keep fewer slides of the tree search: there are more of them, and they say less that is new."""
        return np.where(self.plays(games), self.settings.slide_share, 1.0)

    def shown(self, games: Records) -> npt.NDArray[np.float64]:
        """Show slides of two players to the solver, and first slides to the judge."""
        return np.where(self._judged(games), 1.0, np.where(solvable(games), self.settings.exact_share, 0.0))

    def branches(self, games: Records, index: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Go on from the first slide of each game of two players, as far as it was kept."""
        if not self.settings.exact_lines:
            return super().branches(games, index)
        slides = np.flatnonzero(solvable(games))
        return slides[np.unique(index[slides], return_index=True)[1]]

    def searches(self, games: Records) -> Bools:
        """Search slides if they are played by search."""
        return np.asarray((games["phase"] == MOVEMENT) & self.slides)

    def search(self, games: Records, rng: np.random.Generator) -> TreeResult:
        """Search slides by one tree each, guided by the network."""
        return self.guided.run(games, rng)

    def learned(
        self,
        games: Records,
        index: npt.NDArray[np.int64],
        winners: npt.NDArray[np.int64],
        policy: Floats,
        families: npt.NDArray[np.int64],
        streams: Streams,
    ) -> Learned:
        """Put exact and judged results in the place of guesses; see also `ninetka_train.ninetka.exact_targets`."""
        known = find_known(games, self.settings.exact_nodes, self.threads, families)
        decisive = (known.moves == WON).any(1) & (known.moves == LOST).any(1)
        outcomes = outcome_shares(next_known(known.winners, index, winners), MAX_PLAYERS)
        self._judge(games, index, streams, outcomes)
        return Learned(outcomes, only_winning(policy, known), known.winners >= 0, decisive)

    def _judged(self, games: Records) -> Bools:
        """Tell which of (N,) positions are first slides that the judge sees: those that the solver does not."""
        if not self.settings.first_slide_playouts:
            return np.zeros(len(games), np.bool_)
        all_placed = (games["board"][:, SLOT_SQUARE] != 0).all(1)
        solved = solvable(games) & (self.settings.exact_nodes > 0)
        return np.asarray((games["phase"] == MOVEMENT) & all_placed & ~solved)

    def _judge(self, games: Records, index: npt.NDArray[np.int64], streams: Streams, outcomes: Floats) -> None:
        """Overwrite outcomes of positions up to the first slide of their game by what the judge says of that."""
        firsts = np.flatnonzero(self._judged(games))
        firsts = firsts[np.unique(index[firsts], return_index=True)[1]]  # a seat that must pass leaves all stones
        if not len(firsts):
            return
        worth = np.full((index.max() + 1, MAX_PLAYERS), np.nan, np.float32)
        worth[index[firsts]] = self.judge.run(games[firsts], GameRandom(streams[firsts])).values
        before = games["phase"] != MOVEMENT
        before[firsts] = True
        rows = np.flatnonzero(before & ~np.isnan(worth[index, 0]))
        outcomes[rows, :MAX_PLAYERS] = worth[index[rows]]
        outcomes[rows, MAX_PLAYERS] = 0  # 9tka is never drawn
