"""Outside engines as agents: `gtp:gnugo --mode gtp --level 10 --chinese-rules --capture-all-dead`."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ninetka_agents.agent import Actions, Agent, Forfeit, as_positions
from ninetka_agents.go.gtp.process import EngineError, EngineProcess, find_engine
from ninetka_agents.go.gtp.protocol import LARGEST, SMALLEST, GtpError, read_move, write_colour, write_move
from ninetka_env.core.game import Game as AnyGame
from ninetka_env.core.verbs import Records
from ninetka_env.games.go.game import Game

SEEDS = 1 << 31
"""Seeds that engines are given are below."""


class GtpAgent(Agent):
    """Has a program play that speaks the Go Text Protocol: one process for each game, which it follows as a player."""

    remembers = True

    def __init__(self, command: str = "", timeout: float = 60.0, keep: bool = False) -> None:
        """Find the engine.

        Args:
            command: its command line, in brackets if there are commas in it. Engines count by the rules that they are
                started with, so those must be told to count area on the board as it stands.
            timeout: seconds that it has for each answer.
            keep: whether processes play several games one after the other: for engines that are slow to start. What
                they learned in one game may then show in the next.

        Raises:
            ValueError: if there is no such program, or the timeout is no positive number.
        """
        self.name = "gtp"
        self._words = find_engine(command)
        if not 0 < timeout < math.inf:
            raise ValueError(f"timeout={timeout!r}: expected a number of seconds above 0")
        self._timeout, self._keep = timeout, keep
        self._idle: list[EngineProcess] = []
        weakref.finalize(self, _close_all, self._idle)

    def start(self, game: AnyGame) -> GtpPlayer:
        """Have an engine play a game; raises `Forfeit` if it does not want to."""
        assert isinstance(game, Game)
        try:
            process = self._idle.pop() if self._idle else EngineProcess(self._words, self._timeout)
        except EngineError as error:
            raise Forfeit("left", str(error)) from None
        return GtpPlayer(process, game, self._idle if self._keep else None)

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions, with a new game of the engine set up for each; see `ninetka_agents.agent.Agent.act`.

        Raises:
            RuntimeError: if an engine fails or resigns.
        """
        games = as_positions(games, Game.name)
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


class GtpPlayer:
    """An engine in one game; see `ninetka_agents.agent.Player`. It may hold both seats."""

    def __init__(self, process: EngineProcess, game: Game, idle: list[EngineProcess] | None) -> None:
        """Set an engine up for a game, and have it wait in `idle` afterwards, if that is given."""
        self._process, self._game, self._idle = process, game.copy(), idle
        self._is_seeded = self._has_failed = False
        self._chosen: int | None = None
        """What the engine has played, and so knows already."""
        try:
            self._set_up()
        except Forfeit:
            self.close()
            raise

    def act(self, rng: np.random.Generator) -> int:
        """Return what the engine plays; raises `Forfeit` if it resigns, fails or plays something illegal."""
        game = self._game
        if not self._is_seeded:
            seed = int(rng.integers(SEEDS))  # drawn for every engine, so that others draw the same
            self._is_seeded = True
            if self._knows("set_random_seed"):
                self._ask("set_random_seed", seed)
        answer = self._ask("genmove", write_colour(game.to_move))
        if answer.lower() == "resign":
            raise Forfeit("resigned")
        try:
            action = read_move(answer, game.size)
        except GtpError:
            raise self._failure(f"answered genmove with {answer[:40]!r}") from None
        if not game.legal_mask()[action]:
            raise self._failure(game.describe_illegal(action))
        self._chosen = action
        return action

    def observe(self, action: int) -> None:
        """Tell the engine of an action, unless it is what it has just chosen itself."""
        seat, chosen = self._game.to_move, self._chosen
        self._game.play(action)
        self._chosen = None
        if chosen is None:
            self._ask("play", write_colour(seat), write_move(action, self._game.size))
        elif chosen != action:
            self._set_up()

    def close(self) -> None:
        """Let the engine go, or keep it for another game if all was well."""
        if self._idle is None or self._has_failed:
            self._process.close()
        else:
            self._idle.append(self._process)

    def _set_up(self) -> None:
        """Tell the engine the size, the komi, and where stones stand."""
        game = self._game
        if not SMALLEST <= game.size <= LARGEST:
            raise self._failure(f"size {game.size}: engines play {SMALLEST} to {LARGEST}")
        self._ask("boardsize", game.size)
        self._ask("clear_board")
        self._ask("komi", f"{game.komi:g}")
        stones = np.flatnonzero(game.board)
        names = [write_move(point, game.size) for point in stones.tolist()]
        if game.handicap and game.ply == 0 and self._knows("set_free_handicap"):
            self._ask("set_free_handicap", *names)
            return
        for point, name in zip(stones, names, strict=True):
            self._ask("play", write_colour(int(game.board.flat[point]) - 1), name)

    def _ask(self, name: str, *arguments: object) -> str:
        with self._failing():
            return self._process.ask(name, *arguments)

    def _knows(self, name: str) -> bool:
        with self._failing():
            return self._process.knows(name)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Turn an engine's failure into the end of the game."""
        try:
            yield
        except EngineError as error:
            raise self._failure(str(error), "time" if error.is_late else "left") from None

    def _failure(self, text: str, kind: str = "left") -> Forfeit:
        self._has_failed = True
        return Forfeit(kind, text)


def _close_all(processes: list[EngineProcess]) -> None:
    """Let engines go that wait for another game."""
    while processes:
        processes.pop().close()
