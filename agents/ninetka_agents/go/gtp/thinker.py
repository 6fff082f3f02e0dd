"""Who chooses the moves of an engine: an agent, within the time that it has, as far as it lets itself be told.

A tree search is grown bit by bit, so that it can be watched, stopped by the clock and interrupted. Any other agent is
asked as it is; one that remembers games keeps its memory as long as turns follow one another.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from ninetka_agents.agent import Agent, Forfeit, Player, agent_options, make_agent
from ninetka_agents.go.gtp.protocol import GtpError
from ninetka_agents.search.uct import MctsAgent
from ninetka_agents.search.watched import WatchedTree
from ninetka_env.games.go.game import Game

CHUNK = 100
"""Simulations between two looks at the clock."""
MOST_WATCHED = 1 << 20
"""Simulations of an analysis, which has no other end than the next command: the tree then takes about 100 MB."""


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
        self._agent: Agent = make_agent(spec, Game.name)
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
            deque(self.watch(game, lambda: False, 2), maxlen=0)

    def choose(self, game: Game, seconds: float | None, interrupted: Callable[[], bool]) -> int:
        """Return an action for the seat to move.

        Args:
            game: not over; not changed.
            seconds: how long to think at most, None for as long as the agent's options say.
            interrupted: tells whether to stop thinking at once.
        """
        if not self.can_analyse:
            return self._ask(game)
        return deque(self.watch(game, interrupted, self.simulations, seconds), maxlen=1).pop().best()

    @property
    def simulations(self) -> int:
        """How many the search takes for a move."""
        return int(self._options["simulations"])

    def watch(
        self, game: Game, stop: Callable[[], bool], most: int = MOST_WATCHED, seconds: float | None = None
    ) -> Iterator[WatchedTree]:
        """Think about a position and yield the tree again and again while it grows, at least once.

        Args:
            game: not over; not changed.
            stop: tells whether to end at once.
            most: simulations.
            seconds: how long; None for as long as there are simulations left.
        """
        start = time.monotonic()
        tree = WatchedTree(game, most, self._rng, self._options["exploration"], self._options["exact"])
        while not tree.is_done:
            tree.grow(CHUNK)
            spent = time.monotonic() - start
            self.explanation = f"{tree.simulations} simulations in {spent:.1f} s"
            yield tree
            if stop() or (seconds is not None and spent >= seconds):
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
