"""Who chooses the moves of an engine: an agent, within the time that it has, as far as it lets itself be told.

A tree search is grown bit by bit, so that it can be watched, stopped by the clock and interrupted. Any other agent is
asked as it is; one that remembers games keeps its memory as long as turns follow one another.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from ninetka_agents.agent import Forfeit, Player, agent_options, game_streams, make_agent
from ninetka_agents.go.gtp.protocol import GtpError
from ninetka_agents.search.mcts import CHUNK, MctsAgent, Tree
from ninetka_env.games.go.game import Game

ENDLESS = 1e6
"""Seconds of an analysis, which has no other end than the next command."""


class Thinker:
    """Chooses moves."""

    def __init__(self, spec: str, seed: int | None = None) -> None:
        """Make the agent.

        Args:
            spec: of the agent; see `ninetka_agents.make_agent`.
            seed: of its random numbers; None draws fresh entropy.

        Raises:
            ValueError: if the spec is wrong.
        """
        self.name = spec
        self.explanation = ""
        """What was thought about the last move, in a line."""
        self._agent = make_agent(spec, Game.name)
        self._options = agent_options(spec, Game.name)
        self._rng = np.random.default_rng(seed)
        self._player: Player | None = None
        self._followed: Game | None = None
        """The position that the player knows."""

    @property
    def can_analyse(self) -> bool:
        """Whether the agent is a tree search, which can be watched."""
        return isinstance(self._agent, MctsAgent)

    def warm_up(self, game: Game) -> None:
        """Compile what games of this kind need, before clocks run."""
        if self.can_analyse:
            next(self.watch(game, lambda: True, 1.0))

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
        limit = self._options["seconds"] or np.inf
        most = None if self._options["seconds"] else self._options["simulations"]
        return self.watch(game, stop, min(limit, np.inf if seconds is None else seconds), most)

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
        start, count = time.monotonic(), 0
        agent = make_agent(self.name, Game.name, seconds=ENDLESS if most is None else 0.0)
        assert isinstance(agent, MctsAgent)
        tree, streams = agent.make_tree(game.records), game_streams(game.records, self._rng)
        tree.begin(game.records)
        while True:
            chunk = CHUNK if most is None else min(CHUNK, most - count)
            is_growing = tree.grow(streams, 0, chunk)
            spent = time.monotonic() - start
            count += chunk
            self.explanation = f"{count} simulations in {spent:.1f} s"
            yield tree
            if not is_growing or spent >= seconds or count == most or stop():
                return

    def _ask(self, game: Game) -> int:
        """Ask the agent, or the player that remembers this game."""
        start = time.monotonic()
        try:
            action = self._act(game)
        except Forfeit as event:
            self.close()
            if event.kind == "resigned":
                return game.size**2 + 1
            raise GtpError(str(event)) from None
        self.explanation = f"{time.monotonic() - start:.1f} s"
        return action

    def _act(self, game: Game) -> int:
        if not hasattr(self._agent, "start"):
            return int(self._agent.act(game.records, self._rng)[0])
        if self._player is None or self._followed is not game:
            self.close()
            self._player, self._followed = self._agent.start(game.copy()), game
        return int(self._player.act(self._rng))

    def observe(self, before: Game, action: int, after: Game) -> None:
        """Take note that an action led from one position to another."""
        if self._player is not None and self._followed is before:
            try:
                self._player.observe(action)
                self._followed = after
            except Forfeit:
                self.close()

    def close(self) -> None:
        """Forget the game that is played."""
        if self._player is not None:
            self._player.close()
        self._player = self._followed = None
