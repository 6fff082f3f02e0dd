"""Self-play settings and hooks for 9tka: slides and values by tree search, and exact results for two players.

- `slide_playouts`: a tree search slides instead of the policy. A policy slides badly, and the winner after bad slides
  says little about the placed stones.
- `first_slide_playouts`: the value targets of placements come from a longer search at the first slide instead of the
  winner, because the winner is a noisy target.
- `exact_share`: the policy slides in two-player games, because the solver finds the winner anyway. The network then
  also meets the positions that its own mistakes lead to.

Exact results replace the targets of two-player positions. A solved position gets its winner as value. If the mover
wins, its policy target keeps only the winning moves, in the proportions of the search or, without a search, with 1 for
each. Every other position of the game gets the winner of the next solved position, so placements are trained against
perfect movement and later mistakes do not matter. The generic part is in `ninetka_train.learning.selfplay`.
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
    """The AlphaZero settings with those that only 9tka has."""

    slide_playouts: TreePlayouts = 0
    """Playouts of the tree search that chooses slides in the network's games, except for moves that are drawn from the
    policy. The policy targets of searched slides are then the visits of a guided search. 0: the policy slides, and the
    Gumbel search searches all positions."""
    slide_share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Factor of share and value_share for slides played by the tree search of slide_playouts, because these positions
    contain less new information."""
    first_slide_playouts: TreePlayouts = 0
    """Playouts of a tree search at each game's first slide, whose values replace the game's winner as the value target
    of placements. 0: the winner. Two-player games use the solver instead, unless exact_nodes is 0."""
    exact_nodes: CountOr0 = 20_000
    """Maximum number of solver nodes per two-player position of the movement phase; 0 disables the solver."""
    exact_share: Fraction = 0.0
    """Probability that a slide position of the network's two-player games is passed to the solver in addition to the
    selected ones; it becomes a sample if some moves win and others lose. Above 0, the policy slides in these games,
    also if slide_playouts is set."""
    exact_lines: CountOr0 = 0
    """Number of games that continue from the first selected slide position of each of the network's two-player games,
    with moves drawn from the policy. The solver solves their positions with a shared table, which gives many exact
    positions at little cost."""

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
        self.branch_games = settings.exact_lines
        self.agent = MctsAgent(max(1, settings.slide_playouts), threads=threads)
        self.first_slide_search = MctsAgent(max(1, settings.first_slide_playouts), threads=threads)
        self.guided = GuidedSearch(evaluate, settings.simulations, threads=threads)

    def act(self, games: Records, drawing: Bools, streams: Streams) -> Actions:
        """Choose slides by tree search, except where the move is to be drawn from the policy."""
        actions = np.full(len(games), POLICY)
        sliding = self._slides(games) & ~drawing
        if sliding.any():
            rng = GameRandom(streams[sliding])
            actions[sliding] = self.agent.act(games[sliding], rng)
            streams[sliding] = rng.streams
        return actions

    def keeping(self, games: Records) -> Keeping:
        """Return which positions to keep: fewer slides of the tree search, because they contain less new information.

        Also pass slides of two players to the solver, and first slides to the search that evaluates placements.
        """
        weights = np.where(self._slides(games), self.settings.slide_share, 1.0)
        shown = np.where(self._is_valued(games), 1.0, np.where(solvable(games), self.settings.exact_share, 0.0))
        return Keeping(weights, shown)

    def search(self, positions: Positions, rows: Numbers, policy: Floats, values: Floats) -> Numbers:
        """Search slides with a guided tree search if they are played by search; return the other rows."""
        sliding = self._is_searched(positions.games[rows])
        for part in portions(rows[sliding]):
            found = self.guided.run(positions.games[part], GameRandom(positions.streams[part]))
            policy[part], values[part] = policy_targets(found.visits, 1.0), found.values
        return rows[~sliding]

    def branches(self, positions: Positions) -> Numbers:
        """Return the first kept slide position of each two-player game."""
        if not self.branch_games:
            return super().branches(positions)
        slides = np.flatnonzero(solvable(positions.games))
        return slides[np.unique(positions.origins[slides], return_index=True)[1]]

    def learned(self, positions: Positions, winners: Numbers, policy: Floats, families: Numbers) -> Learned:
        """Return the targets, with the results of the solver and of the searches at first slides."""
        known = find_known(positions.games, self.settings.exact_nodes, self.threads, families)
        decisive = (known.moves == WON).any(1) & (known.moves == LOST).any(1)
        outcomes = outcome_shares(next_known(known.winners, positions.origins, winners), MAX_PLAYERS)
        self._value_placements(positions, outcomes)
        return Learned(outcomes, only_winning(policy, known), known.winners >= 0, decisive)

    def _is_searched(self, games: Records) -> Bools:
        """Return (N,) bool: the positions that the guided search searches."""
        return np.asarray((games["phase"] == MOVEMENT) & (self.settings.slide_playouts > 0))

    def _slides(self, games: Records) -> Bools:
        """Return (N,) bool: the games in which a search slides; with `exact_share`, the policy slides in some."""
        return self._is_searched(games) & ~(solvable(games) & (self.settings.exact_share > 0))

    def _is_valued(self, games: Records) -> Bools:
        """Return (N,) bool: the first slides that a search evaluates, which are those that are not solved."""
        if not self.settings.first_slide_playouts:
            return np.zeros(len(games), np.bool_)
        all_placed = (games["board"][:, SLOT_SQUARE] != 0).all(1)
        solved = solvable(games) & (self.settings.exact_nodes > 0)
        return np.asarray((games["phase"] == MOVEMENT) & all_placed & ~solved)

    def _value_placements(self, positions: Positions, outcomes: Floats) -> None:
        """Overwrite outcomes up to the first slide of each game with the values of a search at that slide."""
        games, index = positions.games, positions.origins
        firsts = np.flatnonzero(self._is_valued(games))
        firsts = firsts[np.unique(index[firsts], return_index=True)[1]]  # after a pass, all stones are still in place
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
    """The exact results of N positions."""

    winners: npt.NDArray[np.int8]
    """(N,) int8: the seat that wins under perfect play, `UNFINISHED` if unknown."""
    moves: npt.NDArray[np.int8]
    """(N, 122) int8: values of the mover's actions; see `ninetka_agents.ninetka.solver.solver.Solution.moves`."""


def find_known(games: Records, nodes: int, threads: int, families: npt.NDArray[np.int64]) -> Known:
    """Solve the two-player positions of the movement phase; the results of all other positions are unknown.

    Args:
        games: (N,) positions; those of one game are in the order of play.
        nodes: maximum number of solver nodes per position; 0 solves nothing.
        threads: maximum number of threads; results do not depend on it.
        families: (N,) int64, equal for positions that share the solver's table.
    """
    known = Known(np.full(len(games), UNFINISHED, np.int8), np.zeros((len(games), NUM_ACTIONS), np.int8))
    chosen = np.flatnonzero(solvable(games))[::-1]  # last positions first, as they help the others
    if nodes and len(chosen):
        found = solve_batch(games[chosen], nodes, threads, families=families[chosen])
        known.winners[chosen], known.moves[chosen] = found
    return known


def only_winning(policy: npt.NDArray[np.float32], known: Known) -> npt.NDArray[np.float32]:
    """Return (N, 122) float32 policies with only winning moves in positions that have any, renormalised.

    If a policy has almost no probability on winning moves, each winning move gets 1.

    Args:
        policy: (N, 122) float32; each row sums to 1, or is all 0 for a position that was not searched.
        known: the exact results of the positions.
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
    """Return (N,) int64: for each position, the winner of the first solved position from it on in its game.

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
