"""Play external GTP engines as agents: `gtp:gnugo --level 10`, `gtp:[katago -config a.cfg],timeout=30`.

Start reading at `GtpAgent`. `process.py` runs the engine; `engine.py` is the other direction, an agent as a GTP engine.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ninetka_agents.agent import Actions, Agent, Forfeit, as_unfinished_states
from ninetka_agents.go.gtp.known_engines import first_timeout
from ninetka_agents.go.gtp.process import EngineError, EngineProcess, find_engine
from ninetka_agents.go.gtp.protocol import MAX_GTP_SIZE, MIN_GTP_SIZE, GtpError, format_colour, format_move, parse_move
from ninetka_env.core.game import Game as AnyGame
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.go.game import Game

DEFAULT_TIMEOUT_S = 60.0
"""The maximum time in seconds for each response but the first, if `timeout` is not given."""
SEED_LIMIT = 1 << 31
"""Exclusive upper bound of the seeds that are sent to engines."""


class GtpAgent(Agent):
    """An agent that plays the moves of an external GTP engine, with one process for each game."""

    has_seat_agents = True

    def __init__(self, command: str = "", timeout: float | None = None, keep: bool = False) -> None:
        """Find the program of the engine.

        Args:
            command: the command line, in brackets if it contains commas. Engines score by the rules that they are
                started with, so choose area scoring without removal of dead stones. For GNU Go, Pachi and KataGo, the
                name of the program is enough, with or without options; see `ninetka_agents.go.gtp.known_engines`.
            timeout: the maximum time for each response, in seconds. By default, it is 60 s, and for the first response
                10 s, because programs that are not in GTP mode never respond; more for engines that load a network.
            keep: whether a process plays several games one after the other, for engines that are slow to start. Then
                the state of an engine after one game may influence the next.

        Raises:
            ValueError: if there is no such program, or the timeout is not a positive number.
        """
        self.name = "gtp"
        self._words = find_engine(command)
        if timeout is not None and not 0 < timeout < math.inf:
            raise ValueError(f"timeout={timeout!r}: expected a number of seconds above 0")
        self._timeout = DEFAULT_TIMEOUT_S if timeout is None else timeout
        self._first_timeout = first_timeout(self._words[0]) if timeout is None else timeout
        self._keep = keep
        self._idle: list[EngineProcess] = []
        weakref.finalize(self, _close_all, self._idle)

    def start(self, game: AnyGame) -> GtpSeatAgent:
        """Start a process, or take an idle one, and set up a game.

        Raises:
            Forfeit: if the engine cannot be started or refuses the game.
        """
        assert isinstance(game, Game)
        try:
            process = self._idle.pop() if self._idle else EngineProcess(self._words, self._timeout, self._first_timeout)
        except EngineError as error:
            raise Forfeit("left", str(error)) from None
        return GtpSeatAgent(process, game, self._idle if self._keep else None)

    def act(self, games: StateArray, rng: np.random.Generator) -> Actions:
        """Choose actions; the engine gets each position as a new game. See `ninetka_agents.agent.Agent.act`.

        Raises:
            RuntimeError: if an engine fails or resigns.
        """
        games = as_unfinished_states(games, Game.name)
        chosen = [self._act_once(Game(games[index : index + 1].copy()), rng) for index in range(len(games))]
        return np.array(chosen, np.int64)

    def _act_once(self, game: Game, rng: np.random.Generator) -> int:
        try:
            player = self.start(game)
            try:
                return player.act(rng)
            finally:
                player.close()
        except Forfeit as event:
            raise RuntimeError(f"agent {self.name!r}: {str(event) or event.kind}") from None


class GtpSeatAgent:
    """An engine process that plays one game, for one or both seats; see `ninetka_agents.agent.SeatAgent`."""

    def __init__(self, process: EngineProcess, game: Game, idle: list[EngineProcess] | None) -> None:
        """Set up a game in an engine process; `close` appends the process to `idle`, or ends it if `idle` is None."""
        self._process, self._game, self._idle = process, game.copy(), idle
        self._is_seeded = self._has_failed = False
        self._chosen: int | None = None
        """The action that the engine has just generated, which it has already played on its own board."""
        try:
            self._set_up()
        except Forfeit:
            self.close()
            raise

    def act(self, rng: np.random.Generator) -> int:
        """Return the action that the engine generates.

        Raises:
            Forfeit: if the engine resigns, fails or plays an illegal move.
        """
        game = self._game
        if not self._is_seeded:
            seed = int(
                rng.integers(SEED_LIMIT)
            )  # always drawn, so that the stream does not depend on the engine's commands
            self._is_seeded = True
            if self._knows("set_random_seed"):
                self._ask("set_random_seed", seed)
        answer = self._ask("genmove", format_colour(game.to_move))
        if answer.lower() == "resign":
            raise Forfeit("resigned")
        try:
            action = parse_move(answer, game.size)
        except GtpError:
            raise self._make_forfeit(f"answered genmove with {answer[:40]!r}") from None
        if not game.legal_mask()[action]:
            raise self._make_forfeit(game.describe_illegal(action))
        self._chosen = action
        return action

    def observe(self, action: int) -> None:
        """Send an action to the engine, unless the engine has just generated it.

        If the engine generated another action, set up the new position instead.
        """
        seat, chosen = self._game.to_move, self._chosen
        self._game.play(action)
        self._chosen = None
        if chosen is None:
            self._ask("play", format_colour(seat), format_move(action, self._game.size))
        elif chosen != action:
            self._set_up()

    def close(self) -> None:
        """Make the process idle for another game if `keep` is set and the engine has not failed; otherwise end it."""
        if self._idle is None or self._has_failed:
            self._process.close()
        else:
            self._idle.append(self._process)

    def _set_up(self) -> None:
        """Send the size, the komi and the stones to the engine."""
        game = self._game
        if not MIN_GTP_SIZE <= game.size <= MAX_GTP_SIZE:
            raise self._make_forfeit(f"size {game.size}: engines play {MIN_GTP_SIZE} to {MAX_GTP_SIZE}")
        self._ask("boardsize", game.size)
        self._ask("clear_board")
        self._ask("komi", f"{game.komi:g}")
        stones = np.flatnonzero(game.board)
        names = [format_move(point, game.size) for point in stones.tolist()]
        if game.handicap and game.ply == 0 and self._knows("set_free_handicap"):
            self._ask("set_free_handicap", *names)
            return
        for point, name in zip(stones, names, strict=True):
            self._ask("play", format_colour(int(game.board.flat[point]) - 1), name)

    def _ask(self, name: str, *arguments: object) -> str:
        with self._errors_as_forfeit():
            return self._process.ask(name, *arguments)

    def _knows(self, name: str) -> bool:
        with self._errors_as_forfeit():
            return self._process.supports(name)

    @contextmanager
    def _errors_as_forfeit(self) -> Iterator[None]:
        """Convert an `EngineError` into a `Forfeit`."""
        try:
            yield
        except EngineError as error:
            raise self._make_forfeit(str(error), "time" if error.is_timeout else "left") from None

    def _make_forfeit(self, text: str, kind: str = "left") -> Forfeit:
        self._has_failed = True
        return Forfeit(kind, text)


def _close_all(processes: list[EngineProcess]) -> None:
    """Close idle engine processes."""
    while processes:
        processes.pop().close()
