"""A UCT search that grows bit by bit and tells at any time what it has found: for analysis, and thinking by a clock.

Grown by as many simulations as `ninetka_agents.search.uct.MctsAgent` takes, from the same stream, it plays the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ninetka_agents.agent import game_streams
from ninetka_agents.search.prover import Prover, clear_prover, make_prover
from ninetka_agents.search.tree import init_root, most_visited, node_dtype
from ninetka_agents.search.uct import EXPLORATION, grow_tree
from ninetka_env.core.chance import Streams
from ninetka_env.core.game import Game
from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import Records, choice_action, forced_action

LONGEST_LINE = 12
"""Actions of a candidate's line."""


class Candidate(NamedTuple):
    """What a search found out about an action."""

    action: int
    visits: int
    share: float
    """Of the simulations through it, those that the seat to move won, draws shared."""
    line: list[int]
    """The action, and what was visited most after it."""


class WatchedTree:
    """One search of one position."""

    def __init__(
        self, game: Game, most: int, rng: np.random.Generator, exploration: float = EXPLORATION, exact: int = 0
    ) -> None:
        """Prepare a search of at most so many simulations; the options are those of `MctsAgent`.

        Raises:
            ValueError: if the game is over.
        """
        if game.is_over:
            raise ValueError("the game is over: there is nothing to search")
        self._games, self._exploration = game.records.copy(), exploration
        self._streams, self._seat = game_streams(self._games, rng), game.to_move
        self._nodes = np.zeros(most + 1, node_dtype(self._games.dtype))
        self._scratch, self._prover = self._games.copy(), make_prover(self._games[0], exact)
        self._next, self._failures = 1, 0
        _begin(self._games, self._nodes, self._scratch, self._prover)

    @property
    def simulations(self) -> int:
        """Simulations so far."""
        return self._next - 1

    @property
    def is_done(self) -> bool:
        """Whether more simulations would be of no use, or there is no room for them."""
        return self._next == len(self._nodes) or bool(self._nodes["winner"][0] >= 0)

    def grow(self, simulations: int) -> None:
        """Search on by at most so many simulations; without effect once the search is done."""
        if self.is_done:
            return
        stop = min(self._next + simulations, len(self._nodes))
        self._next, self._failures = _grow(
            self._games, self._streams, self._exploration, self._nodes, self._scratch, self._prover, self._next, stop,
            self._failures,
        )  # fmt: skip

    def best(self) -> int:
        """Return the action to play; there must have been a simulation."""
        return int(_best(self._games, self._nodes))

    def candidates(self) -> list[Candidate]:
        """Return the actions that were tried: the one to play first, then the most visited ones."""
        nodes = self._nodes
        found = [self._candidate(child) for child in self._children(0)]
        best = self.best()
        if not found:  # a forced action, which has no node
            found = [Candidate(best, int(nodes["visits"][0]), self._share(0), [best])]
        return sorted(found, key=lambda one: (one.action != best, -one.visits, one.action))

    def _children(self, index: int) -> list[int]:
        children, child = [], int(self._nodes["child"][index])
        while child:
            children.append(child)
            child = int(self._nodes["sibling"][child])
        return children

    def _candidate(self, child: int) -> Candidate:
        nodes, path = self._nodes, [child]
        while len(path) < LONGEST_LINE and (children := self._children(path[-1])):
            path.append(max(children, key=lambda one: (nodes["visits"][one], -nodes["choice"][one])))
        line = [int(_action(self._games, nodes["choice"][node])) for node in path]
        return Candidate(line[0], int(nodes["visits"][child]), self._share(child), line)

    def _share(self, index: int) -> float:
        return float(self._nodes["wins"][index, self._seat] / self._nodes["visits"][index])


@jit
def _begin(games: Records, nodes: Records, scratch: Records, prover: Prover) -> None:
    clear_prover(games[0], prover)
    init_root(games[0], nodes, scratch)


@jit
def _grow(
    games: Records,
    streams: Streams,
    exploration: float,
    nodes: Records,
    scratch: Records,
    prover: Prover,
    first: int,
    stop: int,
    failures: int,
) -> tuple[int, int]:
    return grow_tree(games[0], streams, 0, exploration, nodes, scratch, prover, first, stop, failures)


@jit
def _best(games: Records, nodes: Records) -> int:
    return most_visited(games[0], nodes)


@jit
def _action(games: Records, choice: int) -> int:
    forced = forced_action(games[0])
    return forced if forced >= 0 else choice_action(games[0], choice)
