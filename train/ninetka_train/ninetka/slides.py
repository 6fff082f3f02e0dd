"""What 9tka adds to self-play: slides and values by tree search, and exact results of two players.

A policy slides badly, and who wins by bad slides says little about the stones that were placed. With `slide_playouts`,
a tree search slides instead. Who wins is a poor teacher all the same where chance decides: with `first_slide_playouts`,
placements learn what a longer search says at the first slide. Where the solver says who wins, the policy may slide:
with `exact_share` it does, in two-player games, and meets the positions that its own mistakes lead to.

What perfect play says of two-player positions takes the place of what a search guessed. A solved position has its
winner as value, and if the mover wins, only winning moves in its policy: shared out as the search did or, without a
search, each of them right. Any other position of the game has the winner of the next solved one: placement is learned
against perfect movement, whatever mistakes were made after it.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from ninetka_agents.agent import Actions, GameRandom
from ninetka_agents.ninetka.solver.solver import LOST, WON, solvable, solve_batch
from ninetka_agents.search.guided import GuidedSearch
from ninetka_agents.search.gumbel import Evaluate
from ninetka_agents.search.mcts import MctsAgent
from ninetka_env.core.chance import Streams
from ninetka_env.core.jit import jit
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.verbs import Records
from ninetka_env.games.ninetka.geometry import MAX_PLAYERS, NUM_ACTIONS, SLOT_SQUARE
from ninetka_env.games.ninetka.rules import MOVEMENT
from ninetka_train.learning.config import AlphaZeroSettings, CountOr0, Fraction, TreePlayouts
from ninetka_train.learning.samples import Floats, outcome_shares
from ninetka_train.learning.selfplay import (
    POLICY,
    Bools,
    GameHooks,
    Keeping,
    Learned,
    Numbers,
    Positions,
    policy_targets,
    portions,
)


class Settings(AlphaZeroSettings):
    """What 9tka adds to the settings of AlphaZero."""

    slide_playouts: TreePlayouts = 0
    """Playouts of the tree search that slides in the network's games, from the random ply on; searched slides then
    learn from the guided search's visits. 0: the policy slides, and the Gumbel search searches all."""
    slide_share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Factor of share and value_share for slides that are played by slide_playouts, whose positions say less that is
    new."""
    first_slide_playouts: TreePlayouts = 0
    """Playouts of a tree search that says at a game's first slide what its placements are worth, in place of who wins
    in the end; 0: who wins. Games of two players are left to the solver, unless exact_nodes is 0."""
    exact_nodes: CountOr0 = 20_000
    """Nodes that the solver may visit per two-player position of the movement phase; 0 leaves it out."""
    exact_share: Fraction = 0.0
    """Chance that a slide of the network's two-player games is passed to the solver, in addition to those that are kept
    anyway, and kept if some moves win and others lose; above 0, the policy slides in these games, whatever
    slide_playouts."""
    exact_lines: CountOr0 = 0
    """Games that go on from the first slide that was kept of each of the network's two-player games, by moves drawn
    from the policy, and are passed to the solver, which remembers what they share: many exact positions at little
    cost."""

    @model_validator(mode="after")
    def _check(self) -> Settings:
        for name, value in (("exact_share", self.exact_share), ("exact_lines", self.exact_lines)):
            if value and not self.exact_nodes:
                raise ValueError(f"{name}={value}: needs exact_nodes above 0, the nodes of the solver")
        return self


class Hooks(GameHooks):
    """Slides by search, and exact results."""

    def __init__(self, settings: Settings, evaluate: Evaluate, threads: int) -> None:
        """Set up for a task; see `GameHooks`."""
        self.settings, self.threads = settings, threads
        self.branch_games = settings.exact_lines
        self.agent = MctsAgent(max(1, settings.slide_playouts), threads=threads)
        self.first_slide_search = MctsAgent(max(1, settings.first_slide_playouts), threads=threads)
        self.guided = GuidedSearch(evaluate, settings.simulations, threads=threads)

    def act(self, games: Records, drawing: Bools, streams: Streams) -> Actions:
        """Slide by tree search where no move is drawn."""
        actions = np.full(len(games), POLICY)
        sliding = self._slides(games) & ~drawing
        if sliding.any():
            rng = GameRandom(streams[sliding])
            actions[sliding] = self.agent.act(games[sliding], rng)
            streams[sliding] = rng.streams
        return actions

    def keeping(self, games: Records) -> Keeping:
        """Keep fewer slides of the tree search, since there are more of them and they say less that is new.

        Slides of two players are passed to the solver, and first slides to the search that values placements.
        """
        weights = np.where(self._slides(games), self.settings.slide_share, 1.0)
        shown = np.where(self._is_valued(games), 1.0, np.where(solvable(games), self.settings.exact_share, 0.0))
        return Keeping(weights, shown)

    def search(self, positions: Positions, rows: Numbers, policy: Floats, values: Floats) -> Numbers:
        """Search slides by one tree each, guided by the network, if they are played by search."""
        sliding = self._is_searched(positions.games[rows])
        for part in portions(rows[sliding]):
            found = self.guided.run(positions.games[part], GameRandom(positions.streams[part]))
            policy[part], values[part] = policy_targets(found.visits, 1.0), found.values
        return rows[~sliding]

    def branches(self, positions: Positions) -> Numbers:
        """Go on from the first slide of each game of two players, as far as it was kept."""
        if not self.branch_games:
            return super().branches(positions)
        slides = np.flatnonzero(solvable(positions.games))
        return slides[np.unique(positions.origins[slides], return_index=True)[1]]

    def learned(self, positions: Positions, winners: Numbers, policy: Floats, families: Numbers) -> Learned:
        """Put the results of the solver, and of the search at first slides, in the place of guesses."""
        known = find_known(positions.games, self.settings.exact_nodes, self.threads, families)
        decisive = (known.moves == WON).any(1) & (known.moves == LOST).any(1)
        outcomes = outcome_shares(next_known(known.winners, positions.origins, winners), MAX_PLAYERS)
        self._value_placements(positions, outcomes)
        return Learned(outcomes, only_winning(policy, known), known.winners >= 0, decisive)

    def _is_searched(self, games: Records) -> Bools:
        """Return which of (N,) positions the guided search searches."""
        return np.asarray((games["phase"] == MOVEMENT) & (self.settings.slide_playouts > 0))

    def _slides(self, games: Records) -> Bools:
        """Return in which of (N,) games a search slides: not where the solver is to see what the policy does."""
        return self._is_searched(games) & ~(solvable(games) & (self.settings.exact_share > 0))

    def _is_valued(self, games: Records) -> Bools:
        """Return which of (N,) positions are first slides that a search values: those that the solver does not."""
        if not self.settings.first_slide_playouts:
            return np.zeros(len(games), np.bool_)
        all_placed = (games["board"][:, SLOT_SQUARE] != 0).all(1)
        solved = solvable(games) & (self.settings.exact_nodes > 0)
        return np.asarray((games["phase"] == MOVEMENT) & all_placed & ~solved)

    def _value_placements(self, positions: Positions, outcomes: Floats) -> None:
        """Overwrite outcomes of positions up to the first slide of their game by what a search says of that."""
        games, index = positions.games, positions.origins
        firsts = np.flatnonzero(self._is_valued(games))
        firsts = firsts[np.unique(index[firsts], return_index=True)[1]]  # a seat that must pass leaves all stones
        if not len(firsts):
            return
        worth = np.full((index.max() + 1, MAX_PLAYERS), np.nan, np.float32)
        found = self.first_slide_search.run(games[firsts], GameRandom(positions.streams[firsts]))
        worth[index[firsts]] = found.values
        before = games["phase"] != MOVEMENT
        before[firsts] = True
        rows = np.flatnonzero(before & ~np.isnan(worth[index, 0]))
        outcomes[rows, :MAX_PLAYERS] = worth[index[rows]]
        outcomes[rows, MAX_PLAYERS] = 0  # 9tka is never drawn


class Known(NamedTuple):
    """What is known of N positions."""

    winners: npt.NDArray[np.int8]
    """(N,) int8: the seat that wins under perfect play, `UNFINISHED` where unknown."""
    moves: npt.NDArray[np.int8]
    """(N, 122) int8: values of the mover's actions; see `ninetka_agents.ninetka.solver.solver.Solution`."""


def find_known(games: Records, nodes: int, threads: int, families: npt.NDArray[np.int64]) -> Known:
    """Solve two-player positions of the movement phase within `nodes` each (0: none); all others stay unknown.

    Args:
        games: (N,) positions; those of one game stand in the order of play.
        nodes: most nodes of the solver's search for each of them.
        threads: the most to use; results do not depend on it.
        families: (N,) int64 the same number for positions that share what the solver remembers.
    """
    known = Known(np.full(len(games), UNFINISHED, np.int8), np.zeros((len(games), NUM_ACTIONS), np.int8))
    chosen = np.flatnonzero(solvable(games))[::-1]  # the last ones first: what is known of them helps the others
    if nodes and len(chosen):
        found = solve_batch(games[chosen], nodes, threads, families=families[chosen])
        known.winners[chosen], known.moves[chosen] = found
    return known


def only_winning(policy: npt.NDArray[np.float32], known: Known) -> npt.NDArray[np.float32]:
    """Return (N, 122) float32 policies without the moves that give a win away; 1 for each winning one if none is left.

    Args:
        policy: (N, 122) float32, each summing to 1, or all 0 for a position that was not searched.
        known: what is known of the positions.
    """
    winning = (known.moves == WON).astype(np.float32)
    kept = policy * winning
    left = kept.sum(1, keepdims=True)
    kept = np.where(left > 1e-3, kept / left.clip(1e-3), winning)
    return np.where(winning.any(1, keepdims=True), kept, policy)


@jit
def next_known(
    known: npt.NDArray[np.int8], index: npt.NDArray[np.int64], winners: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return (N,) int64: the winner of each position's game as the next position says that is solved, itself included.

    Args:
        known: (N,) int8 winners of positions, `UNFINISHED` where unknown; those of one game in the order of play.
        index: (N,) int64 the game of each position.
        winners: (G,) int64 who won in the end: for positions after which none is solved.
    """
    newest, found = winners.copy(), np.empty(len(known), np.int64)
    for place in range(len(known) - 1, -1, -1):
        if known[place] >= 0:
            newest[index[place]] = known[place]
        found[place] = newest[index[place]]
    return found
