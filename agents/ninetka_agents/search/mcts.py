"""The agent `mcts`: Monte Carlo tree search, UCT or RAVE, with a number of simulations or a time limit.

Plain UCT with a number of simulations is one compiled call for a whole batch, see `uct`. All other searches grow one
tree after another per thread, several simulations per compiled call.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ninetka_agents.agent import Actions, Agent, as_unfinished_states, check_threads, game_streams
from ninetka_agents.search import uct
from ninetka_agents.search.rave import EQUIVALENCE, RaveTree
from ninetka_agents.search.rave_tree import RaveOptions
from ninetka_agents.search.tree import MAX_SIMULATIONS, Child, TreeResult, empty_result
from ninetka_agents.search.uct import UctTree
from ninetka_env.core.game import Game
from ninetka_env.core.options import check_choice, check_count, check_nonnegative
from ninetka_env.core.random_streams import Streams
from ninetka_env.core.registry import limits_of
from ninetka_env.core.threads import Control, claim, run_shared
from ninetka_env.core.verbs import StateArray, forced_action

PLAYOUT_POLICIES = ("random", "heavy")
"""Policies of the playouts: uniformly random, or by the game's heuristics."""
MAX_CHUNK = 64
"""Maximum number of simulations between two time checks."""
SHORT_CHUNK_S = 0.001
"""Seconds: if a chunk of simulations takes less, the next one is twice as large, otherwise half as large."""


class SearchTree(Protocol):
    """The tree of one search, grown step by step."""

    def reset(self, games: StateArray) -> None:
        """Restart the tree with the position `games[0]` as its root."""
        ...

    def grow(self, streams: Streams, index: int, simulations: int) -> bool:
        """Make `simulations` simulations, drawing from stream `index`; return whether more of them would be useful."""
        ...

    def best_action(self) -> int:
        """Return the action to play at the root."""
        ...

    def report(self, result: TreeResult, index: int) -> None:
        """Write the result of the search to row `index` of `result`."""
        ...

    def children(self, node: int) -> list[Child]:
        """Return the tried actions of a node; the root is node 0."""
        ...


class MoveBudget(NamedTuple):
    """The budget of a search for one move; exactly one of the fields is None."""

    simulations: int | None
    seconds: float | None


@runtime_checkable
class TreeSearch(Protocol):
    """An agent whose tree can be grown step by step, so that a caller can inspect or stop the search."""

    @property
    def budget(self) -> MoveBudget:
        """The budget of a move."""
        ...

    def make_tree(self, games: StateArray, max_simulations: int | None = None) -> SearchTree:
        """Allocate a tree for games of this dtype and `max_simulations` simulations; None for the agent's budget."""
        ...


class MctsAgent(Agent):
    """Plays the most visited action of a Monte Carlo tree search; searches batches of games on several threads."""

    def __init__(
        self,
        simulations: int = 1000,
        exploration: float | None = None,
        threads: int = 0,
        exact: int = 0,
        seconds: float = 0.0,
        rave: bool = False,
        equivalence: float = EQUIVALENCE,
        playouts: str = PLAYOUT_POLICIES[0],
        local: bool = False,
        reuse: bool = False,
    ) -> None:
        """Create the agent.

        Args:
            simulations: simulations per move.
            exploration: the constant c in wins / visits + c * sqrt(ln(parent's visits) / visits); None for 0.7 without
                `rave` and 0 with it.
            threads: maximum number of threads; 0 for one per core.
            exact: with two players, maximum number of nodes that the game's prover visits per proof; 0 for no proofs.
            seconds: time per move, instead of `simulations`; 0 for no time limit. With a time limit, the moves depend
                on the machine, even with the same seed.
            rave: estimate an action also by the simulations that play it later.
            equivalence: with `rave`, number of visits of an action at which its own simulations and those that play it
                later have equal weight; k of `rave_tree.best_child`.
            playouts: `"random"`, or `"heavy"` for playouts and priors by the game's heuristics, if it has any.
            local: search only actions near the stones on the board, if the game defines what is near.
            reuse: when playing a whole game, keep the tree from move to move; see `start`. Without `rave`, a move
                then takes about twice the time, because the tree is a `RaveTree` without AMAF values instead of a
                `UctTree`.

        Raises:
            ValueError: if an option is out of range or contradicts another one.
        """
        self.name = "mcts"
        self._simulations = check_count("simulations", simulations, maximum=MAX_SIMULATIONS)
        default_exploration = 0.0 if rave else uct.EXPLORATION
        self._exploration = check_nonnegative(
            "exploration", default_exploration if exploration is None else exploration
        )
        self._threads = check_threads(threads)
        self._exact = check_count("exact", exact, minimum=0)
        self._seconds = check_nonnegative("seconds", seconds)
        heavy = check_choice("playouts", playouts, PLAYOUT_POLICIES) == 1
        for name, flag in (("rave", rave), ("local", local), ("reuse", reuse)):
            check_choice(name, flag, (False, True))
        if check_nonnegative("equivalence", equivalence) < 1:
            raise ValueError(f"equivalence={equivalence!r}: expected a number of at least 1")
        if exact and (rave or heavy or local or reuse):
            raise ValueError(f"exact={exact}: proofs are for UCT alone, without rave, playouts, local and reuse")
        self._is_plain_uct = not (rave or heavy or local or reuse)
        self.rave_options = RaveOptions(float(equivalence) if rave else 0.0, self._exploration, heavy, local)
        self.has_seat_agents = bool(reuse)

    def act(self, games: StateArray, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        return self.run(games, rng).actions

    def run(self, games: StateArray, rng: np.random.Generator) -> TreeResult:
        """Search (N,) positions; see `act` for the arguments."""
        games = as_unfinished_states(games)
        result, streams = empty_result(len(games), limits_of(games.dtype)), game_streams(games, rng)
        if len(games):
            threads = min(self._threads, len(games))
            if self._is_plain_uct and not self._seconds:
                options = (self._simulations, self._exploration, self._exact)
                uct.search_all(threads, games, streams, options, result)
            else:
                run_shared(self._search, threads, games, streams, result)
        return result

    def _search(self, control: Control, games: StateArray, streams: Streams, result: TreeResult) -> None:
        """Search the games that this thread claims."""
        tree = self.make_tree(games)
        while True:
            index, stop = claim(control, 0, len(games), 1)
            if index == stop:
                return
            tree.reset(games[index : index + 1])
            self.search_move(tree, streams, index)
            tree.report(result, index)

    def start(self, game: Game) -> TreeSeatAgent | None:
        """Start to play a game, if `reuse` is set; see `ninetka_agents.agent.Agent.start`."""
        if not self.has_seat_agents:
            return None
        return TreeSeatAgent(self.make_tree(game.records, MAX_SIMULATIONS), self._choose, game)

    def _choose(self, tree: RaveTree, streams: Streams) -> int:
        self.search_move(tree, streams, 0)
        return tree.best_action()

    @property
    def budget(self) -> MoveBudget:
        """The budget of a move."""
        return MoveBudget(None, self._seconds) if self._seconds else MoveBudget(self._simulations, None)

    def make_tree(self, games: StateArray, max_simulations: int | None = None) -> SearchTree:
        """Allocate a tree for games of this dtype and `max_simulations` simulations; None for the agent's budget."""
        max_simulations = max_simulations or self.budget.simulations or MAX_SIMULATIONS
        if self._is_plain_uct:
            return UctTree(games, max_simulations, self._exploration, self._exact)
        return RaveTree(games, max_simulations, self.rave_options)

    def search_move(self, tree: SearchTree, streams: Streams, index: int) -> None:
        """Grow the tree by the budget of a move, drawing from stream `index`."""
        if not self._seconds:
            tree.grow(streams, index, self._simulations)
            return
        now, chunk = time.perf_counter(), 1 if self._exact else MAX_CHUNK
        end = now + self._seconds
        while tree.grow(streams, index, chunk):
            before, now = now, time.perf_counter()
            if now >= end:
                return
            chunk = next_chunk(chunk, now - before) if self._exact else MAX_CHUNK


def next_chunk(chunk: int, seconds: float) -> int:
    """Return the number of simulations before the next time check; the last `chunk` simulations took `seconds`.

    A simulation with a proof may take long, a simulation without a proof is fast.
    """
    return min(MAX_CHUNK, 2 * chunk) if seconds < SHORT_CHUNK_S else max(1, chunk // 2)


class TreeSeatAgent:
    """A `SeatAgent` that plays one game with a tree search and keeps its tree from move to move."""

    def __init__(self, tree: Any, choose: Callable[[Any, Streams], int], game: Game) -> None:
        """Start a game.

        Args:
            tree: a `RaveTree`, large enough for the whole game.
            choose: continues the search in the tree, drawing from a stream, and returns the action to play.
            game: the position at the start; see `ninetka_agents.agent.SeatAgent`.
        """
        self.tree, self._choose, self._game = tree, choose, game.copy()
        tree.reset(self._game.records)

    def act(self, rng: np.random.Generator) -> int:
        """Continue the search and choose an action; see `ninetka_agents.agent.SeatAgent.act`."""
        return self._choose(self.tree, game_streams(self._game.records, rng))

    def observe(self, action: int) -> None:
        """Play an action and keep the subtree below it."""
        forced = forced_action(self._game.records[0]) >= 0  # the root is already the position after a forced turn
        self._game.play(action)
        if not forced and not self._game.is_over:
            self.tree.advance(action)

    def close(self) -> None:
        """Do nothing, since there are no resources to release."""
