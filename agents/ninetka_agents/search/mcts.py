"""The agent that plays what a Monte Carlo tree search finds: UCT or RAVE, by a number of simulations or by the clock.

Plain UCT by simulations is `uct`, whole batches in one compiled call. Everything else grows one tree after another from
here, so many simulations at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ninetka_agents.agent import Actions, Agent, as_positions, check_threads, game_streams
from ninetka_agents.search import uct
from ninetka_agents.search.rave import EQUIVALENCE, RaveTree
from ninetka_agents.search.rave_tree import Rules
from ninetka_agents.search.tree import MOST_SIMULATIONS, Child, TreeResult, empty_result
from ninetka_agents.search.uct import UctTree
from ninetka_env.core.chance import Streams
from ninetka_env.core.game import Game
from ninetka_env.core.options import check_choice, check_count, check_scale
from ninetka_env.core.registry import limits_of
from ninetka_env.core.threads import Control, claim, run_shared
from ninetka_env.core.verbs import Records, forced_action

PLAYOUTS = ("random", "heavy")
"""How simulated games are played on below the tree: by the rules alone, or by what the game's knowledge says."""
CHUNK = 64
"""Simulations between two looks at the clock, at most."""
QUICK = 0.001
"""Seconds: if they take less, twice as many come before the next look, else half as many."""


class Tree(Protocol):
    """One search under way."""

    def begin(self, games: Records) -> None:
        """Start anew at the first game."""
        ...

    def grow(self, streams: Streams, index: int, simulations: int) -> bool:
        """Search on by so many simulations, drawing from stream `index`; tell whether more of them would be of use."""
        ...

    def best(self) -> int:
        """Return the action to play."""
        ...

    def report(self, result: TreeResult, index: int) -> None:
        """Write what was found out into a row of the result."""
        ...

    def children(self, node: int) -> list[Child]:
        """Return the actions of a node that were tried; the root is node 0."""
        ...


class MoveBudget(NamedTuple):
    """What a search for a move may cost; one of both is None."""

    simulations: int | None
    seconds: float | None


@runtime_checkable
class TreeSearch(Protocol):
    """An agent whose tree for a move can be grown bit by bit, so that others may watch it or end it."""

    @property
    def budget(self) -> MoveBudget:
        """What a move may cost."""
        ...

    def make_tree(self, games: Records, most: int | None = None) -> Tree:
        """Make room for a search in games like these: of so many simulations, None for what the agent takes."""
        ...


class MctsAgent(Agent):
    """Plays the most visited action of a Monte Carlo tree search, batched over games and threads."""

    def __init__(
        self,
        simulations: int = 1000,
        exploration: float | None = None,
        threads: int = 0,
        exact: int = 0,
        seconds: float = 0.0,
        rave: bool = False,
        equivalence: float = EQUIVALENCE,
        playouts: str = PLAYOUTS[0],
        local: bool = False,
        reuse: bool = False,
    ) -> None:
        """Set the search up.

        Args:
            simulations: simulated games per move.
            exploration: the constant c in wins / visits + c * sqrt(ln(parent's visits) / visits); None for what is
                usual, 0.7 without `rave` and 0 with it.
            threads: at most this many threads; 0 for one per core.
            exact: with two players, most nodes to prove who wins after each slide that is tried; 0 for none.
            seconds: how long to think about a move, in place of `simulations`; 0 goes by those. What is played then
                depends on the machine, whatever the seed.
            rave: estimate actions by all simulations in which they are played later, too.
            equivalence: k of `rave_tree.best_child`.
            playouts: `"random"`, or `"heavy"` for the game's own policy and priors, if it brings any.
            local: search only what is near to what stands on the board, if the game says what that means.
            reuse: keep the tree from move to move where whole games are played; see `start`. Without `rave`, this is
                not UCT but the tree of RAVE with its AMAF values left out, which takes about twice the time per move.

        Raises:
            ValueError: if an option is out of range, or does not go with another one.
        """
        self.name = "mcts"
        self._simulations = check_count("simulations", simulations, most=MOST_SIMULATIONS)
        usual = 0.0 if rave else uct.EXPLORATION
        self._exploration = check_scale("exploration", usual if exploration is None else exploration)
        self._threads = check_threads(threads)
        self._exact = check_count("exact", exact, least=0)
        self._seconds = check_scale("seconds", seconds)
        heavy = check_choice("playouts", playouts, PLAYOUTS) == 1
        for name, flag in (("rave", rave), ("local", local), ("reuse", reuse)):
            check_choice(name, flag, (False, True))
        if check_scale("equivalence", equivalence) < 1:
            raise ValueError(f"equivalence={equivalence!r}: expected a number of at least 1")
        if exact and (rave or heavy or local or reuse):
            raise ValueError(f"exact={exact}: proofs are for UCT alone, without rave, playouts, local and reuse")
        self._plain = not (rave or heavy or local or reuse)
        self.rules = Rules(float(equivalence) if rave else 0.0, self._exploration, heavy, local)
        self.remembers = bool(reuse)

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        return self.run(games, rng).actions

    def run(self, games: Records, rng: np.random.Generator) -> TreeResult:
        """Search (N,) games and return what was found out about each; arguments as of `act`."""
        games = as_positions(games)
        result, streams = empty_result(len(games), limits_of(games.dtype)), game_streams(games, rng)
        if len(games):
            threads = min(self._threads, len(games))
            if self._plain and not self._seconds:
                options = (self._simulations, self._exploration, self._exact)
                uct.search_all(threads, games, streams, options, result)
            else:
                run_shared(self._search, threads, games, streams, result)
        return result

    def _search(self, control: Control, games: Records, streams: Streams, result: TreeResult) -> None:
        """Search the games that this thread claims."""
        tree = self.make_tree(games)
        while True:
            index, stop = claim(control, 0, len(games), 1)
            if index == stop:
                return
            tree.begin(games[index : index + 1])
            self.think(tree, streams, index)
            tree.report(result, index)

    def start(self, game: Game) -> TreePlayer | None:
        """Start to play a game, if the tree is kept; see `ninetka_agents.agent.Agent.start`."""
        if not self.remembers:
            return None
        return TreePlayer(self.make_tree(game.records, MOST_SIMULATIONS), self._choose, game)

    def _choose(self, tree: RaveTree, streams: Streams) -> int:
        self.think(tree, streams, 0)
        return tree.best()

    @property
    def budget(self) -> MoveBudget:
        """What a move may cost."""
        return MoveBudget(None, self._seconds) if self._seconds else MoveBudget(self._simulations, None)

    def make_tree(self, games: Records, most: int | None = None) -> Tree:
        """Make room for a search in games like these: of so many simulations, None for what the agent takes."""
        most = most or self.budget.simulations or MOST_SIMULATIONS
        if self._plain:
            return UctTree(games, most, self._exploration, self._exact)
        return RaveTree(games, most, self.rules)

    def think(self, tree: Tree, streams: Streams, index: int) -> None:
        """Search as long as the agent does about a move."""
        if not self._seconds:
            tree.grow(streams, index, self._simulations)
            return
        now, chunk = time.perf_counter(), 1 if self._exact else CHUNK
        end = now + self._seconds
        while tree.grow(streams, index, chunk):
            before, now = now, time.perf_counter()
            if now >= end:
                return
            chunk = next_chunk(chunk, now - before) if self._exact else CHUNK


def next_chunk(chunk: int, seconds: float) -> int:
    """Return how many simulations come before the next look at the clock, where the last `chunk` took so long.

    One with a proof may take long, one without is quick.
    """
    return min(CHUNK, 2 * chunk) if seconds < QUICK else max(1, chunk // 2)


class TreePlayer:
    """A search in one game, with a tree that is kept from move to move."""

    def __init__(self, tree: Any, choose: Callable[[Any, Streams], int], game: Game) -> None:
        """Sit down to a game.

        Args:
            tree: a `RaveTree` that has room for the whole game.
            choose: searches on in it, drawing from a stream, and returns the action to play.
            game: the position at the start; see `ninetka_agents.agent.Player`.
        """
        self.tree, self._choose, self._game = tree, choose, game.copy()
        tree.begin(self._game.records)

    def act(self, rng: np.random.Generator) -> int:
        """Search on and choose an action; see `ninetka_agents.agent.Player.act`."""
        return self._choose(self.tree, game_streams(self._game.records, rng))

    def observe(self, action: int) -> None:
        """Go on in what the tree holds below an action."""
        forced = forced_action(self._game.records[0]) >= 0  # the tree has played it already
        self._game.play(action)
        if not forced and not self._game.is_over:
            self.tree.go_on(action)

    def close(self) -> None:
        """Nothing runs beside the game."""
