"""Self-play settings and hooks for 9tka: slides and values by tree search, and exact results for two players.

- `slide_playouts`: a tree search slides instead of the policy. A policy slides badly, and the winner after bad slides
  says little about the placed stones.
- `first_slide_playouts`: the value targets of placements come from a longer search at the first slide instead of the
  winner, because the winner is a noisy target.
- `exact_share`: the policy slides in two-player games, because the solver finds the winner anyway. The network then
  also meets the positions that its own mistakes lead to.

Exact results replace the targets of two-player positions. The value target of a solved position is its exact winner.
If the mover wins, the policy target keeps only the winning moves: in the proportions of the search or, without a
search, with 1 for each winning move. The value target of an unsolved position is the exact winner of the next solved
position of its game. Placements are therefore trained against perfect movement, and later mistakes do not matter. The
generic part is in `ninetka_train.learning.selfplay`.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from ninetka_agents.agent import Actions, PerGameGenerator
from ninetka_agents.ninetka.solver.solver import LOST, WON, solvable, solve_batch
from ninetka_agents.search.guided import GuidedSearch
from ninetka_agents.search.gumbel import Evaluate
from ninetka_agents.search.mcts import MctsAgent
from ninetka_env.core.jit import jit
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.random_streams import Streams
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka.geometry import MAX_PLAYERS, NUM_ACTIONS, SLOT_SQUARE
from ninetka_env.games.ninetka.rules import MOVEMENT
from ninetka_train.learning.config import AlphaZeroSettings, Fraction, NonNegativeCount, TreePlayouts
from ninetka_train.learning.samples import Floats, outcome_shares
from ninetka_train.learning.selfplay import (
    BY_POLICY,
    Bools,
    GameHooks,
    Ints,
    KeepChances,
    Positions,
    TrainingTargets,
    policy_targets,
    search_batches,
)


class Settings(AlphaZeroSettings):
    """The AlphaZero settings with those that only 9tka has."""

    slide_playouts: TreePlayouts = 0
    """Playouts of the tree search that chooses slides in the network's games, except for moves that are drawn from the
    policy. The policy targets of slides are then the visits of a tree search guided by the network. With 0, the policy
    chooses the slides, and the Gumbel search makes the targets of all positions."""
    slide_share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Factor by which the settings share and value_share are multiplied for slides that the tree search plays (see
    slide_playouts). It may be below 1, because these positions contain less new information."""
    first_slide_playouts: TreePlayouts = 0
    """Playouts of a tree search at each game's first slide, whose values replace the game's winner as the value target
    of placements. With 0, the winner is used. Two-player games use the solver instead, unless exact_nodes is 0."""
    exact_nodes: NonNegativeCount = 20_000
    """Maximum number of solver nodes per two-player position of the movement phase; 0 disables the solver."""
    exact_share: Fraction = 0.0
    """Probability that a slide position of the network's two-player games is solved although share and value_share do
    not select it. It becomes a sample if some moves win and others lose. If this setting is above 0, the policy chooses
    the slides of two-player games, also if slide_playouts is set."""
    exact_lines: NonNegativeCount = 0
    """Number of further games for each of the network's two-player games. They start from the game's first kept slide
    position, and their moves are drawn from the policy. The solver solves their positions with a shared table,
    which gives many exact positions at little cost."""

    @model_validator(mode="after")
    def _check(self) -> Settings:
        for name, value in (("exact_share", self.exact_share), ("exact_lines", self.exact_lines)):
            if value and not self.exact_nodes:
                raise ValueError(f"{name}={value}: needs exact_nodes above 0, the nodes of the solver")
        return self


class Hooks(GameHooks):
    """The self-play hooks of 9tka; see the module docstring."""

    def __init__(self, settings: Settings, evaluate: Evaluate, threads: int) -> None:
        """Set up for a task; see `GameHooks`."""
        self.settings, self.threads = settings, threads
        self.games_per_branch = settings.exact_lines
        self.agent = MctsAgent(max(1, settings.slide_playouts), threads=threads)
        self.first_slide_search = MctsAgent(max(1, settings.first_slide_playouts), threads=threads)
        self.guided = GuidedSearch(evaluate, settings.simulations, threads=threads)

    def act(self, games: StateArray, is_drawn: Bools, streams: Streams) -> Actions:
        """Choose slides by tree search, except where the move is to be drawn from the policy."""
        actions = np.full(len(games), BY_POLICY)
        sliding = self._slides_by_search(games) & ~is_drawn
        if sliding.any():
            rng = PerGameGenerator(streams[sliding])
            actions[sliding] = self.agent.act(games[sliding], rng)
            streams[sliding] = rng.streams
        return actions

    def keep_chances(self, games: StateArray) -> KeepChances:
        """Return the probabilities with which positions are kept.

        Positions in which a tree search chooses the slide have the factor `slide_share`. Regardless of it, two-player
        slides are passed to the solver with probability `exact_share`, and the first slide is always passed to
        `training_targets` if a search there evaluates the placements.
        """
        weights = np.where(self._slides_by_search(games), self.settings.slide_share, 1.0)
        shown = np.where(self._is_valued(games), 1.0, np.where(solvable(games), self.settings.exact_share, 0.0))
        return KeepChances(weights, shown)

    def search(self, positions: Positions, rows: Ints, policy: Floats, values: Floats) -> Ints:
        """Search slides by a tree search guided by the network if `slide_playouts` is set; return the other rows."""
        sliding = self._is_searched(positions.games[rows])
        for part in search_batches(rows[sliding]):
            found = self.guided.run(positions.games[part], PerGameGenerator(positions.streams[part]))
            policy[part], values[part] = policy_targets(found.visits, 1.0), found.values
        return rows[~sliding]

    def branch_positions(self, positions: Positions) -> Ints:
        """Return the first kept slide position of each two-player game."""
        if not self.games_per_branch:
            return super().branch_positions(positions)
        slides = np.flatnonzero(solvable(positions.games))
        return slides[np.unique(positions.game_indices[slides], return_index=True)[1]]

    def training_targets(self, positions: Positions, winners: Ints, policy: Floats, groups: Ints) -> TrainingTargets:
        """Return the targets, with the results of the solver and of the searches at first slides."""
        known = solve_positions(positions.games, self.settings.exact_nodes, self.threads, groups)
        decisive = (known.moves == WON).any(1) & (known.moves == LOST).any(1)
        outcomes = outcome_shares(next_solved_winner(known.winners, positions.game_indices, winners), MAX_PLAYERS)
        self._value_placements(positions, outcomes)
        return TrainingTargets(outcomes, keep_winning_moves(policy, known), known.winners >= 0, decisive)

    def _is_searched(self, games: StateArray) -> Bools:
        """Return (N,) bool: the positions whose policy targets come from the guided search."""
        return np.asarray((games["phase"] == MOVEMENT) & (self.settings.slide_playouts > 0))

    def _slides_by_search(self, games: StateArray) -> Bools:
        """Return (N,) bool: where a search chooses the slide; with `exact_share`, not in two-player games."""
        return self._is_searched(games) & ~(solvable(games) & (self.settings.exact_share > 0))

    def _is_valued(self, games: StateArray) -> Bools:
        """Return (N,) bool: the positions of first slides that a search evaluates, because the solver does not."""
        if not self.settings.first_slide_playouts:
            return np.zeros(len(games), np.bool_)
        all_placed = (games["board"][:, SLOT_SQUARE] != 0).all(1)
        solved = solvable(games) & (self.settings.exact_nodes > 0)
        return np.asarray((games["phase"] == MOVEMENT) & all_placed & ~solved)

    def _value_placements(self, positions: Positions, outcomes: Floats) -> None:
        """Overwrite the outcomes up to the first slide of each game with the values of a search at the first slide."""
        games, index = positions.games, positions.game_indices
        firsts = np.flatnonzero(self._is_valued(games))
        # one position per game: after a pass, the next position looks like a first slide, too
        firsts = firsts[np.unique(index[firsts], return_index=True)[1]]
        if not len(firsts):
            return
        worth = np.full((index.max() + 1, MAX_PLAYERS), np.nan, np.float32)
        found = self.first_slide_search.run(games[firsts], PerGameGenerator(positions.streams[firsts]))
        worth[index[firsts]] = found.values
        before = games["phase"] != MOVEMENT
        before[firsts] = True
        rows = np.flatnonzero(before & ~np.isnan(worth[index, 0]))
        outcomes[rows, :MAX_PLAYERS] = worth[index[rows]]
        outcomes[rows, MAX_PLAYERS] = 0  # 9tka is never drawn


class SolvedPositions(NamedTuple):
    """The exact results of N positions."""

    winners: npt.NDArray[np.int8]
    """(N,) int8: the seat that wins under perfect play, `UNFINISHED` if unknown."""
    moves: npt.NDArray[np.int8]
    """(N, 122) int8: values of the mover's actions; see `ninetka_agents.ninetka.solver.solver.Solution.moves`."""


def solve_positions(games: StateArray, nodes: int, threads: int, groups: npt.NDArray[np.int64]) -> SolvedPositions:
    """Solve the two-player positions of the movement phase; the results of all other positions are unknown.

    Args:
        games: (N,) positions; the positions of a game are in the order of play.
        nodes: maximum number of solver nodes per position; 0 solves nothing.
        threads: maximum number of threads; results do not depend on it.
        groups: (N,) int64, equal for positions that share the solver's table.
    """
    known = SolvedPositions(np.full(len(games), UNFINISHED, np.int8), np.zeros((len(games), NUM_ACTIONS), np.int8))
    # later positions first, because their results in the solver's table speed up the earlier positions
    chosen = np.flatnonzero(solvable(games))[::-1]
    if nodes and len(chosen):
        found = solve_batch(games[chosen], nodes, threads, groups=groups[chosen])
        known.winners[chosen], known.moves[chosen] = found
    return known


def keep_winning_moves(policy: npt.NDArray[np.float32], known: SolvedPositions) -> npt.NDArray[np.float32]:
    """Return (N, 122) float32 policies. Where a winning move is known, only winning moves are kept, with sum 1.

    If the winning moves have almost no probability, each winning move gets 1.

    Args:
        policy: (N, 122) float32; each row sums to 1, or is all 0 for a position that was not searched.
        known: the exact results of the positions.
    """
    winning = (known.moves == WON).astype(np.float32)
    kept = policy * winning
    total = kept.sum(1, keepdims=True)
    kept = np.where(total > 1e-3, kept / total.clip(1e-3), winning)
    return np.where(winning.any(1, keepdims=True), kept, policy)


@jit
def next_solved_winner(
    known: npt.NDArray[np.int8], index: npt.NDArray[np.int64], winners: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return (N,) int64: for each position, the winner of the next solved position of its game, itself included.

    Args:
        known: (N,) int8, exact winners, `UNFINISHED` if unknown; positions of one game are in the order of play.
        index: (N,) int64, the game of each position.
        winners: (G,) int64, the winner of each game, used if no later position is solved.
    """
    newest, found = winners.copy(), np.empty(len(known), np.int64)
    for place in range(len(known) - 1, -1, -1):
        if known[place] >= 0:
            newest[index[place]] = known[place]
        found[place] = newest[index[place]]
    return found
