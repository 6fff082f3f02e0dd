"""Who chooses the moves of an engine: an agent, within the time that it has, as far as it lets itself be told.

A tree search is grown bit by bit, so that it can be watched, stopped by the clock and interrupted; one that keeps its
tree may go on in it while the opponent thinks (pondering). Any other agent is asked as it is; one that remembers games
keeps its memory as long as turns follow one another.
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
"""Seconds of an analysis, which has no other end than the next command."""
MOST_PONDERED = 60.0
"""Seconds after which pondering about a position ends, the same as in KataGo's configurations (`maxTimePondering`): the
opponent may have gone to bed."""


class Thinker:
    """Chooses moves."""

    def __init__(self, spec: str, seed: int | None = None, ponders: bool = False) -> None:
        """Make the agent.

        Args:
            spec: of the agent; see `ninetka_agents.make_agent`.
            seed: of its random numbers; None draws fresh entropy.
            ponders: whether it thinks on while the opponent does.

        Raises:
            ValueError: if the spec is wrong, or no such agent can ponder.
        """
        self.name = spec
        self.explanation = ""
        """What was thought about the last move, in a line."""
        self.share = 1.0
        """Of the simulations with the last move, those that its seat won, draws shared; 1 if there were none."""
        self._agent = make_agent(spec, Game.name)
        if ponders and not (self.can_analyse and self._agent.remembers):
            raise ValueError(f"agent {spec!r} cannot ponder: expected one that keeps its tree, such as mcts:rave,reuse")
        self._ponders = ponders
        self._rng = np.random.default_rng(seed)
        self._player: Player | None = None
        self._tree: Tree | None = None
        """The tree that is kept from move to move, if the agent wants that, of the position `_root`."""
        self._root: Game | None = None
        self._followed: Game | None = None
        """The position that the player, or the tree, is at."""

    @property
    def can_analyse(self) -> bool:
        """Whether the agent is a tree search, which can be watched."""
        return isinstance(self._agent.searcher, TreeSearch)

    def warm_up(self, game: Game) -> None:
        """Compile all that moves in games of this kind need, before clocks run; forget the game that was played."""
        if self.can_analyse:
            tree = next(self.watch(game, lambda: True, 1.0))
            find_candidates(tree)
            if self._tree is not None and isinstance(tree, RaveTree):
                tree.go_on(tree.best())
            self.close()

    def choose(self, game: Game, seconds: float | None, interrupted: Callable[[], bool]) -> int:
        """Return an action for the seat to move, or the one after the pass to resign.

        Args:
            game: not over; not changed.
            seconds: how long to think at most, None for as long as the agent's options say.
            interrupted: tells whether to stop thinking at once.
        """
        if not self.can_analyse:
            return self._ask(game)
        return deque(self.think(game, interrupted, seconds), maxlen=1).pop().best()

    def think(self, game: Game, stop: Callable[[], bool], seconds: float | None) -> Iterator[Tree]:
        """Think about a move; as `watch`, but no longer than the agent's options say."""
        most, own = self._searcher.budget
        for tree in self.watch(game, stop, min(one for one in (own, seconds, ENDLESS) if one is not None), most):
            yield tree
        best = tree.best()
        self.share = next((one.share for one in tree.children(0) if one.action == best), 1.0)

    def ponder(self, game: Game) -> Iterator[None]:
        """Search on bit by bit in a tree that is kept for this position, if the agent ponders."""
        if not self._ponders:
            return
        end, streams, is_growing = time.perf_counter() + MOST_PONDERED, game_streams(game.records, self._rng), True
        while is_growing and self._tree is not None and self._followed is game and time.perf_counter() < end:
            is_growing = self._tree.grow(streams, 0, CHUNK)
            yield

    def watch(
        self, game: Game, stop: Callable[[], bool], seconds: float = ENDLESS, most: int | None = None
    ) -> Iterator[Tree]:
        """Search and yield the tree again and again while it grows, at least once.

        Args:
            game: not over; not changed.
            stop: tells whether to end at once.
            seconds: how long to search.
            most: simulations; None for any number.
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
        """Return the tree that is kept, if it is at this position, or a new one for so many simulations."""
        if self._tree is not None and self._followed is game:
            return self._tree
        keeps, root = self._agent.remembers, game.copy()
        tree = self._searcher.make_tree(root.records, MOST_SIMULATIONS if keeps or most is None else most)
        tree.begin(root.records)
        if keeps:
            self._tree, self._root, self._followed = tree, root, game
        return tree

    def _ask(self, game: Game) -> int:
        """Ask the agent, or the player that remembers this game."""
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
        """Take note that an action led from one position to another."""
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
        """Forget the game that is played."""
        if self._player is not None:
            self._player.close()
        self._player = self._tree = self._root = self._followed = None
