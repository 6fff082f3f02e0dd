"""Choose the moves of a GTP engine with an agent, within time limits.

A tree search runs in chunks of simulations, so that it can be reported, interrupted and stopped by time. If it reuses
its tree, it can also search during the opponent's turn (pondering). For any other agent, time limits have no effect. An
agent that follows games continues as long as the turns follow one another.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from ninetka_agents.agent import Forfeit, Player, game_streams, make_agent
from ninetka_agents.go.gtp.protocol import GtpError
from ninetka_agents.search.mcts import CHUNK, Tree, TreeSearch
from ninetka_agents.search.rave import RaveTree
from ninetka_agents.search.tree import MOST_SIMULATIONS, find_candidates
from ninetka_env.games.go.game import Game

ENDLESS = 1e6
"""The time limit of an analysis in seconds: in practice, the next command ends it."""
MOST_PONDERED = 60.0
"""The time limit of pondering about a position in seconds, as in KataGo's configurations (`maxTimePondering`), because
the opponent may never move."""


class Thinker:
    """Chooses moves with an agent, within time limits."""

    def __init__(self, spec: str, seed: int | None = None, ponders: bool = False) -> None:
        """Make the agent.

        Args:
            spec: the spec of the agent; see `ninetka_agents.make_agent`.
            seed: the seed of its random numbers; None uses fresh entropy.
            ponders: whether the agent searches during the opponent's turn.

        Raises:
            ValueError: if the spec is not valid, or the agent cannot ponder.
        """
        self.name = spec
        self.explanation = ""
        """One line about the last move: the number of simulations and the time."""
        self.share = 1.0
        """The share of simulations with the last move that its seat won, draws counted half; 1 if there were none."""
        self._agent = make_agent(spec, Game.name)
        if ponders and not (self.can_analyse and self._agent.remembers):
            raise ValueError(
                f"agent {spec!r} cannot ponder: expected one that reuses its tree, such as mcts:rave,reuse"
            )
        self._ponders = ponders
        self._rng = np.random.default_rng(seed)
        self._player: Player | None = None
        self._tree: Tree | None = None
        """The search tree that is reused from move to move, if the agent reuses it; its root is `_root`."""
        self._root: Game | None = None
        self._followed: Game | None = None
        """The current position of the player or the tree."""

    @property
    def can_analyse(self) -> bool:
        """Whether the agent is a tree search, whose statistics can be reported."""
        return isinstance(self._agent.searcher, TreeSearch)

    def warm_up(self, game: Game) -> None:
        """Compile all functions that a move needs in games of this dtype, before a clock runs; end the current game."""
        if self.can_analyse:
            tree = next(self.watch(game, lambda: True, 1.0))
            find_candidates(tree)
            if self._tree is not None and isinstance(tree, RaveTree):
                tree.go_on(tree.best())
            self.close()

    def choose(self, game: Game, seconds: float | None, interrupted: Callable[[], bool]) -> int:
        """Return an action for the seat to move; the action after the pass resigns.

        Args:
            game: the position, which must not be over; it is not changed.
            seconds: the time limit; None for the limits of the agent's options alone.
            interrupted: returns whether to stop the search at once.
        """
        if not self.can_analyse:
            return self._ask(game)
        return deque(self.think(game, interrupted, seconds), maxlen=1).pop().best()

    def think(self, game: Game, stop: Callable[[], bool], seconds: float | None) -> Iterator[Tree]:
        """Search for a move as `watch` does, within `seconds` and the limits of the agent's options."""
        most, own = self._searcher.budget
        for tree in self.watch(game, stop, min(one for one in (own, seconds, ENDLESS) if one is not None), most):
            yield tree
        best = tree.best()
        self.share = next((one.share for one in tree.children(0) if one.action == best), 1.0)

    def ponder(self, game: Game) -> Iterator[None]:
        """Continue the search in the tree of this position, a chunk per step, if the agent ponders."""
        if not self._ponders:
            return
        end, streams, is_growing = time.perf_counter() + MOST_PONDERED, game_streams(game.records, self._rng), True
        while is_growing and self._tree is not None and self._followed is game and time.perf_counter() < end:
            is_growing = self._tree.grow(streams, 0, CHUNK)
            yield

    def watch(
        self, game: Game, stop: Callable[[], bool], seconds: float = ENDLESS, most: int | None = None
    ) -> Iterator[Tree]:
        """Search and yield the tree after each chunk of simulations, at least once.

        Args:
            game: the position, which must not be over; it is not changed.
            stop: returns whether to stop at once.
            seconds: the time limit.
            most: the maximum number of simulations; None for no limit.
        """
        start, count = time.perf_counter(), 0
        tree, streams = self._tree_of(game, most), game_streams(game.records, self._rng)
        while True:
            chunk = CHUNK if most is None else min(CHUNK, most - count)
            is_growing = tree.grow(streams, 0, chunk)
            spent = time.perf_counter() - start
            count += chunk
            self.explanation = f"{count} simulations in {spent:.1f} s"
            yield tree
            if not is_growing or spent >= seconds or count == most or stop():
                return

    @property
    def _searcher(self) -> TreeSearch:
        assert isinstance(self._agent.searcher, TreeSearch)
        return self._agent.searcher

    def _tree_of(self, game: Game, most: int | None) -> Tree:
        """Return the reused tree if its root is this position, else a new tree for at most `most` simulations."""
        if self._tree is not None and self._followed is game:
            return self._tree
        keeps, root = self._agent.remembers, game.copy()
        tree = self._searcher.make_tree(root.records, MOST_SIMULATIONS if keeps or most is None else most)
        tree.begin(root.records)
        if keeps:
            self._tree, self._root, self._followed = tree, root, game
        return tree

    def _ask(self, game: Game) -> int:
        """Return the action of an agent without a tree search; the action after the pass resigns."""
        start = time.perf_counter()
        try:
            action = self._act(game)
        except Forfeit as event:
            self.close()
            if event.kind == "resigned":
                return game.size**2 + 1
            raise GtpError(str(event)) from None
        self.explanation = f"{time.perf_counter() - start:.1f} s"
        return action

    def _act(self, game: Game) -> int:
        if self._player is None or self._followed is not game:
            self.close()
            self._player, self._followed = self._agent.start(game.copy()), game
        if self._player is None:
            return int(self._agent.act(game.records, self._rng)[0])
        return int(self._player.act(self._rng))

    def observe(self, before: Game, action: int, after: Game) -> None:
        """Follow an action from the position `before` to `after`; close the player and drop the tree at the end."""
        if self._followed is not before:
            return
        if after.is_over:
            self.close()
            return
        try:
            if self._player is not None:
                self._player.observe(action)
            elif self._root is not None and isinstance(self._tree, RaveTree):
                self._root.play(action)
                self._tree.go_on(action)
            self._followed = after
        except Forfeit:
            self.close()

    def close(self) -> None:
        """End the current game: close the player and drop the tree."""
        if self._player is not None:
            self._player.close()
        self._player = self._tree = self._root = self._followed = None
