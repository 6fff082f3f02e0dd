"""The state of a GTP engine between commands: the position, earlier positions for `undo`, the time, the agent."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from ninetka_agents.go.gtp.clock import Clock
from ninetka_agents.go.gtp.protocol import LARGEST, SMALLEST, GtpError
from ninetka_agents.go.gtp.thinker import Thinker
from ninetka_env.core.registry import Variant
from ninetka_env.games.go.game import Game
from ninetka_env.games.go.geometry import BLACK
from ninetka_env.games.go.repetition import MAX_PLIES

MOST_UNDONE = MAX_PLIES
"""The maximum number of turns that can be undone."""
RESIGN_BELOW, RESIGN_TURNS = 0.05, 3
"""An engine resigns if its share of won simulations is below `RESIGN_BELOW` in `RESIGN_TURNS` own turns in a row. Like
KataGo's defaults (`resignThreshold`, `resignConsecTurns`)."""


class Session:
    """The state of an engine. A method that raises `GtpError` has changed nothing."""

    def __init__(
        self, thinker: Thinker, variant: Variant, version: str = "", resign_below: float = RESIGN_BELOW
    ) -> None:
        """Start with an empty board.

        Args:
            thinker: chooses the moves.
            variant: the game; without an option `max_plies`, the limit is `MAX_PLIES`.
            version: the version of the package, for the command `version`.
            resign_below: see `RESIGN_BELOW`; 0 for never.
        """
        self.thinker, self.version = thinker, version
        self._resign_below, self._hopeless = resign_below, [0, 0]
        self._answered: Game | None = None
        """The position after the agent's latest move, in which the opponent is to move."""
        self._pondering: Iterator[None] = iter(())
        self.clock = Clock()
        self.interrupted: Callable[[], bool] = lambda: False
        """Returns whether the running command must stop its search and respond."""
        self.pending: Callable[[], bool] = lambda: False
        """Returns whether another command is waiting."""
        self._set_variant(variant.replaced(max_plies=variant.options["max_plies"] or MAX_PLIES, allow_resign=False))
        self.game: Game = self._variant.game_class.start(self._variant)
        self.clear()

    @property
    def size(self) -> int:
        """The board has size x size points."""
        return self.game.size

    @property
    def is_empty(self) -> bool:
        """Whether there is no stone on the board."""
        return not self.game.board.any()

    # A new game

    def resize(self, size: int) -> None:
        """Clear the board and change its size."""
        if not SMALLEST <= size <= LARGEST:
            raise GtpError("unacceptable size")
        self._change(size=size, handicap=0)
        self.clear()

    def clear(self) -> None:
        """Clear the board; size, komi, rules and time settings do not change."""
        self._begin_with(self._variant.game_class.start(self._variant))
        self.clock.reset()

    def set_rules(self, ko: str, scoring: str) -> None:
        """Change the rules; only on an empty board, because earlier moves were played by the old rules."""
        if not self.is_empty:
            raise GtpError("board not empty")
        self._change(ko=ko, scoring=scoring)
        self.clear()

    def set_komi(self, komi: float) -> None:
        """Change the komi of this game and of later games."""
        self._change(komi=komi)
        self._apply_komi()

    def set_up(self, stones: Iterable[tuple[int, int]], to_move: int) -> None:
        """Place stones, given as (seat, point), on empty points; this cannot be undone."""
        board = self.game.board.copy()
        for seat, point in stones:
            if board.flat[point]:
                raise GtpError("illegal setup: a point is given twice, or occupied")
            board.flat[point] = seat + 1
        options = {key: value for key, value in self._variant.options.items() if key not in ("size", "handicap")}
        try:
            game = Game.from_board(board, to_move, **options)
        except ValueError as error:
            raise GtpError(f"illegal setup: {error}") from None
        self._begin_with(game)

    def place_handicap(self, points: list[int]) -> None:
        """Place black stones on an empty board, and give the turn to White."""
        if not self.is_empty:
            raise GtpError("board not empty")
        if not 2 <= len(points) < self.size**2 or len(set(points)) < len(points):
            raise GtpError("bad vertex list")
        self.set_up([(BLACK - 1, point) for point in points], 1)

    def load(self, games: list[Game]) -> None:
        """Continue from the last position of a game; `undo` returns to the earlier positions."""
        game = games[-1]
        self._change(size=game.size, komi=game.komi, ko=game.ko, scoring=game.scoring, handicap=0)
        own = self._variant.options
        games = [
            one.with_options(max_plies=own["max_plies"], allow_resign=False, planes=own["planes"]) for one in games
        ]
        for one in games:
            one.event = None
        self._begin_with(games[-1])
        self._before.extend(games[:-1])
        self.clock.reset()

    def _change(self, **options: object) -> None:
        try:
            self._set_variant(self._variant.replaced(**options))
        except ValueError as error:
            raise GtpError(str(error)) from None

    def _set_variant(self, variant: Variant) -> None:
        self._variant = variant

    def _begin_with(self, game: Game) -> None:
        if game.records.dtype != self.game.records.dtype:
            self.thinker.warm_up(game)
        self.game = game
        self._before: deque[Game] = deque(maxlen=MOST_UNDONE)
        self._hopeless = [0, 0]

    def _apply_komi(self) -> None:
        """Set the komi of the current position to that of the session."""
        if self.game.komi != self._variant.options["komi"]:
            self.game = self.game.with_options(komi=self._variant.options["komi"])

    # Turns

    def turn_of(self, seat: int) -> Game:
        """Return the position with a seat to move, also if it is the other seat's turn or the game is over."""
        if seat == self.game.to_move and not self.game.is_over:
            return self.game
        game = self.game.copy()
        game.hand_turn(seat)
        return game

    def play(self, seat: int, action: int) -> None:
        """Play a move of a seat, also if it is the other seat's turn."""
        position = self.turn_of(seat)
        game = position.copy()
        try:
            game.play(action)
        except ValueError:
            raise GtpError("illegal move") from None
        self._before.append(self.game)
        self.game = game
        self.thinker.observe(position, action, game)

    def undo(self) -> None:
        """Undo the last turn."""
        if not self._before:
            raise GtpError("cannot undo")
        self.game = self._before.pop()
        self._hopeless = [0, 0]
        self._apply_komi()

    @contextmanager
    def unless_it_fails(self) -> Iterator[None]:
        """Return a context manager that restores the position if the body raises `GtpError`."""
        game, before = self.game, self._before.copy()
        try:
            yield
        except GtpError:
            self.game, self._before = game, before
            raise

    def choose(self, seat: int) -> int:
        """Return the agent's action for a seat, within the seat's time; the action after the pass resigns."""
        start = time.perf_counter()
        action = self.thinker.choose(self.turn_of(seat), self.seconds_for(seat), self.interrupted)
        self.clock.spend(seat, time.perf_counter() - start)
        return action

    def play_or_resign(self, seat: int, action: int) -> int:
        """Play the chosen action of a seat and return it, or return the action to resign.

        The seat resigns by choice, or after `RESIGN_TURNS` turns below the resign threshold.
        """
        self._hopeless[seat] = self._hopeless[seat] + 1 if self.thinker.share < self._resign_below else 0
        resign = self.size**2 + 1
        if action == resign or self._hopeless[seat] >= RESIGN_TURNS:
            return resign
        self.play(seat, action)
        self._answered, self._pondering = self.game, self.thinker.ponder(self.game)
        return action

    def ponder(self) -> Iterator[None]:
        """Return an iterator that searches a chunk per step during the opponent's turn, or an empty iterator."""
        return self._pondering if self.game is self._answered else iter(())

    def seconds_for(self, seat: int) -> float | None:
        """Return the time of a seat for its next move in seconds, None for no limit."""
        moves_left = (0.9 * self.size**2 - self.game.ply) / 2
        return self.clock.seconds_for(seat, moves_left)
