"""Choose the moves of a GTP engine with an agent, within time limits.

Start reading at `MoveChooser.choose`. `time_control.py` computes the time limits.

A tree search runs in chunks of simulations. After each chunk it can be reported, interrupted, or stopped because the
time is up. A tree search that reuses its tree can also search during the opponent's turn (pondering). Other agents
ignore time limits. An agent with state per game (`SeatAgent`) keeps the state as long as each position follows from the
previous one.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from ninetka_agents.agent import Forfeit, SeatAgent, game_streams, make_agent
from ninetka_agents.go.gtp.protocol import GtpError
from ninetka_agents.search.mcts import MAX_CHUNK, SearchTree, TreeSearch
from ninetka_agents.search.rave import RaveTree
from ninetka_agents.search.tree import MAX_SIMULATIONS, find_candidates
from ninetka_env.games.go.game import Game

ANALYSIS_TIMEOUT_S = 1e6
"""The time limit of an analysis in seconds. In practice, the next command ends the analysis earlier."""
MAX_PONDER_S = 60.0
"""The time limit of pondering about a position in seconds, as in KataGo's configurations (`maxTimePondering`), because
the opponent may never move."""


class MoveChooser:
    """Chooses moves with an agent, within time limits."""

    def __init__(self, spec: str, seed: int | None = None, ponders: bool = False) -> None:
        """Create the agent.

        Args:
            spec: the spec of the agent; see `ninetka_agents.make_agent`.
            seed: the seed of the agent's random numbers; None uses fresh entropy.
            ponders: whether the agent searches during the opponent's turn.

        Raises:
            ValueError: if the spec is not valid, or the agent cannot ponder.
        """
        self.name = spec
        self.explanation = ""
        """A line about the last move: the number of simulations and the time; without a tree search, only the time."""
        self.win_share = 1.0
        """The share of the last move's simulations that the mover won; draws count as half; 1 without simulations."""
        self._agent = make_agent(spec, Game.name)
        if ponders and not (self.can_analyse and self._agent.has_seat_agents):
            raise ValueError(
                f"agent {spec!r} cannot ponder: expected one that reuses its tree, such as mcts:rave,reuse"
            )
        self._ponders = ponders
        self._rng = np.random.default_rng(seed)
        self._seat_agent: SeatAgent | None = None
        self._tree: SearchTree | None = None
        """The search tree, if the agent reuses it from move to move; `_root` is the position at its root."""
        self._root: Game | None = None
        self._position: Game | None = None
        """The current position of `_seat_agent` or `_tree`."""

    @property
    def can_analyse(self) -> bool:
        """Whether the agent is a tree search, whose statistics can be reported."""
        return isinstance(self._agent.searcher, TreeSearch)

    def warm_up(self, game: Game) -> None:
        """Compile the functions of a tree search for games of this dtype, before a clock runs; end the current game.

        For other agents, do nothing.
        """
        if self.can_analyse:
            tree = next(self.search(game, lambda: True, 1.0))
            find_candidates(tree)
            if self._tree is not None and isinstance(tree, RaveTree):
                tree.advance(tree.best_action())
            self.close()

    def choose(self, game: Game, seconds: float | None, interrupted: Callable[[], bool]) -> int:
        """Return an action for the seat to move; size * size + 1, the action after the pass, resigns.

        Args:
            game: the position, which must not be over; it is not changed.
            seconds: the time limit; with None, only the agent's options limit the search.
            interrupted: returns whether to stop the search at once.
        """
        if not self.can_analyse:
            return self._ask(game)
        return deque(self.think(game, interrupted, seconds), maxlen=1).pop().best_action()

    def think(self, game: Game, stop: Callable[[], bool], seconds: float | None) -> Iterator[SearchTree]:
        """Search as `search` does, within `seconds` and the limits of the agent's options; then set `win_share`."""
        max_simulations, own = self._searcher.budget
        for tree in self.search(
            game, stop, min(one for one in (own, seconds, ANALYSIS_TIMEOUT_S) if one is not None), max_simulations
        ):
            yield tree
        best = tree.best_action()
        self.win_share = next((one.share for one in tree.children(0) if one.action == best), 1.0)

    def ponder(self, game: Game) -> Iterator[None]:
        """If the agent ponders, continue the search in the tree of this position, one chunk of simulations per step."""
        if not self._ponders:
            return
        end, streams, is_growing = time.perf_counter() + MAX_PONDER_S, game_streams(game.records, self._rng), True
        while is_growing and self._tree is not None and self._position is game and time.perf_counter() < end:
            is_growing = self._tree.grow(streams, 0, MAX_CHUNK)
            yield

    def search(
        self,
        game: Game,
        stop: Callable[[], bool],
        seconds: float = ANALYSIS_TIMEOUT_S,
        max_simulations: int | None = None,
    ) -> Iterator[SearchTree]:
        """Search and yield the tree after each chunk of simulations, at least once.

        Args:
            game: the position, which must not be over; it is not changed.
            stop: returns whether to stop at once.
            seconds: the time limit.
            max_simulations: the maximum number of simulations; None for no limit.
        """
        start, count = time.perf_counter(), 0
        tree, streams = self._tree_of(game, max_simulations), game_streams(game.records, self._rng)
        while True:
            chunk = MAX_CHUNK if max_simulations is None else min(MAX_CHUNK, max_simulations - count)
            is_growing = tree.grow(streams, 0, chunk)
            spent = time.perf_counter() - start
            count += chunk
            self.explanation = f"{count} simulations in {spent:.1f} s"
            yield tree
            if not is_growing or spent >= seconds or count == max_simulations or stop():
                return

    @property
    def _searcher(self) -> TreeSearch:
        assert isinstance(self._agent.searcher, TreeSearch)
        return self._agent.searcher

    def _tree_of(self, game: Game, max_simulations: int | None) -> SearchTree:
        """Return the reused tree if its root is this position, else a new tree for `max_simulations` simulations."""
        if self._tree is not None and self._position is game:
            return self._tree
        keeps, root = self._agent.has_seat_agents, game.copy()
        tree = self._searcher.make_tree(
            root.records, MAX_SIMULATIONS if keeps or max_simulations is None else max_simulations
        )
        tree.reset(root.records)
        if keeps:
            self._tree, self._root, self._position = tree, root, game
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
        if self._seat_agent is None or self._position is not game:
            self.close()
            self._seat_agent, self._position = self._agent.start(game.copy()), game
        if self._seat_agent is None:
            return int(self._agent.act(game.records, self._rng)[0])
        return int(self._seat_agent.act(self._rng))

    def observe(self, before: Game, action: int, after: Game) -> None:
        """Advance the seat agent or the tree by the action from `before` to `after`; drop both if the game is over."""
        if self._position is not before:
            return
        if after.is_over:
            self.close()
            return
        try:
            if self._seat_agent is not None:
                self._seat_agent.observe(action)
            elif self._root is not None and isinstance(self._tree, RaveTree):
                self._root.play(action)
                self._tree.advance(action)
            self._position = after
        except Forfeit:
            self.close()

    def close(self) -> None:
        """End the current game: close the seat agent and drop the tree."""
        if self._seat_agent is not None:
            self._seat_agent.close()
        self._seat_agent = self._tree = self._root = self._position = None
