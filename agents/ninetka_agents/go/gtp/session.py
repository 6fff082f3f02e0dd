"""The state of a GTP engine between commands: the position, earlier positions for `undo`, the time, the agent.

`commands.py` calls the methods of `Session`; `move_chooser.py` chooses its moves.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from ninetka_agents.go.gtp.move_chooser import MoveChooser
from ninetka_agents.go.gtp.protocol import MAX_GTP_SIZE, MIN_GTP_SIZE, GtpError
from ninetka_agents.go.gtp.time_control import TimeControl
from ninetka_env.core.registry import Variant
from ninetka_env.games.go.game import Game
from ninetka_env.games.go.geometry import BLACK
from ninetka_env.games.go.repetition import MAX_PLIES

MAX_UNDO = MAX_PLIES
"""The maximum number of turns that can be undone."""
RESIGN_THRESHOLD, RESIGN_TURNS = 0.05, 3
"""An engine resigns if its share of won simulations is below `RESIGN_THRESHOLD` in `RESIGN_TURNS` of its turns in a
row. The values correspond to KataGo's defaults (`resignThreshold`, `resignConsecTurns`)."""


class Session:
    """The state of an engine. If a method raises `GtpError`, the session is unchanged."""

    def __init__(
        self, thinker: MoveChooser, variant: Variant, version: str = "", resign_threshold: float = RESIGN_THRESHOLD
    ) -> None:
        """Start with an empty board.

        Args:
            thinker: chooses the moves.
            variant: the variant of Go; if its option `max_plies` is 0, it is set to `MAX_PLIES`.
            version: the version of the package, for the command `version`.
            resign_threshold: see `RESIGN_THRESHOLD`; 0 for never.
        """
        self.move_chooser, self.version = thinker, version
        self._resign_threshold, self._hopeless_turns = resign_threshold, [0, 0]
        self._ponder_game: Game | None = None
        """The position after the agent's latest move, in which the opponent is to move."""
        self._pondering: Iterator[None] = iter(())
        self.clock = TimeControl()
        self.is_interrupted: Callable[[], bool] = lambda: False
        """Returns whether the running command must stop its search and respond."""
        self.has_pending_command: Callable[[], bool] = lambda: False
        """Returns whether another command is waiting."""
        self._set_variant(
            variant.replace_options(max_plies=variant.options["max_plies"] or MAX_PLIES, allow_resign=False)
        )
        self.game: Game = self._variant.game_class.start(self._variant)
        self.clear()

    @property
    def size(self) -> int:
        """The number of rows, and of columns, of the board."""
        return self.game.size

    @property
    def is_empty(self) -> bool:
        """Whether there is no stone on the board."""
        return not self.game.board.any()

    # A new game

    def resize(self, size: int) -> None:
        """Clear the board and change its size."""
        if not MIN_GTP_SIZE <= size <= MAX_GTP_SIZE:
            raise GtpError("unacceptable size")
        self._change(size=size, handicap=0)
        self.clear()

    def clear(self) -> None:
        """Clear the board; size, komi, rules and time settings do not change."""
        self._start_from(self._variant.game_class.start(self._variant))
        self.clock.reset()

    def set_rules(self, ko: str, scoring: str) -> None:
        """Change the rules and start a new game. The board must be empty: moves on it were played by the old rules."""
        if not self.is_empty:
            raise GtpError("board not empty")
        self._change(ko=ko, scoring=scoring)
        self.clear()

    def set_komi(self, komi: float) -> None:
        """Change the komi of this game and of later games."""
        self._change(komi=komi)
        self._apply_komi()

    def set_up_stones(self, stones: Iterable[tuple[int, int]], to_move: int) -> None:
        """Add stones, given as (seat, point), to the board, with seat `to_move` to move; this cannot be undone."""
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
        self._start_from(game)

    def place_handicap(self, points: list[int]) -> None:
        """Place black stones on an empty board, and give the turn to White."""
        if not self.is_empty:
            raise GtpError("board not empty")
        if not 2 <= len(points) < self.size**2 or len(set(points)) < len(points):
            raise GtpError("bad vertex list")
        self.set_up_stones([(BLACK - 1, point) for point in points], 1)

    def load(self, games: list[Game]) -> None:
        """Continue from the last of `games`, the positions of one game; `undo` returns to the earlier positions.

        The size, the komi and the rules are taken from that game.
        """
        game = games[-1]
        self._change(size=game.size, komi=game.komi, ko=game.ko, scoring=game.scoring, handicap=0)
        own = self._variant.options
        games = [
            one.with_options(max_plies=own["max_plies"], allow_resign=False, planes=own["planes"]) for one in games
        ]
        for one in games:
            one.event = None
        self._start_from(games[-1])
        self._undo_stack.extend(games[:-1])
        self.clock.reset()

    def _change(self, **options: object) -> None:
        try:
            self._set_variant(self._variant.replace_options(**options))
        except ValueError as error:
            raise GtpError(str(error)) from None

    def _set_variant(self, variant: Variant) -> None:
        self._variant = variant

    def _start_from(self, game: Game) -> None:
        if game.records.dtype != self.game.records.dtype:
            self.move_chooser.warm_up(game)
        self.game = game
        self._undo_stack: deque[Game] = deque(maxlen=MAX_UNDO)
        self._hopeless_turns = [0, 0]

    def _apply_komi(self) -> None:
        """Set the komi of the current position to the komi of the session."""
        if self.game.komi != self._variant.options["komi"]:
            self.game = self.game.with_options(komi=self._variant.options["komi"])

    # Turns

    def position_with_turn(self, seat: int) -> Game:
        """Return the current position with `seat` to move, even if it is the other seat's turn or the game is over."""
        if seat == self.game.to_move and not self.game.is_over:
            return self.game
        game = self.game.copy()
        game.hand_turn(seat)
        return game

    def play(self, seat: int, action: int) -> None:
        """Play a move of a seat, even if it is the other seat's turn."""
        position = self.position_with_turn(seat)
        game = position.copy()
        try:
            game.play(action)
        except ValueError:
            raise GtpError("illegal move") from None
        self._undo_stack.append(self.game)
        self.game = game
        self.move_chooser.observe(position, action, game)

    def undo(self) -> None:
        """Return to the position before the last turn."""
        if not self._undo_stack:
            raise GtpError("cannot undo")
        self.game = self._undo_stack.pop()
        self._hopeless_turns = [0, 0]
        self._apply_komi()

    @contextmanager
    def rollback_on_error(self) -> Iterator[None]:
        """Return a context manager that restores the position if the body raises `GtpError`."""
        game, before = self.game, self._undo_stack.copy()
        try:
            yield
        except GtpError:
            self.game, self._undo_stack = game, before
            raise

    def choose(self, seat: int) -> int:
        """Return the agent's action for a seat, within the seat's time; see `MoveChooser.choose`."""
        start = time.perf_counter()
        action = self.move_chooser.choose(self.position_with_turn(seat), self.seconds_for(seat), self.is_interrupted)
        self.clock.spend(seat, time.perf_counter() - start)
        return action

    def play_or_resign(self, seat: int, action: int) -> int:
        """Play the chosen action of a seat and return it, or return the action to resign.

        The seat resigns if `action` resigns, or if its share of won simulations has been below the threshold in
        `RESIGN_TURNS` turns in a row.
        """
        self._hopeless_turns[seat] = (
            self._hopeless_turns[seat] + 1 if self.move_chooser.win_share < self._resign_threshold else 0
        )
        resign = self.size**2 + 1
        if action == resign or self._hopeless_turns[seat] >= RESIGN_TURNS:
            return resign
        self.play(seat, action)
        self._ponder_game, self._pondering = self.game, self.move_chooser.ponder(self.game)
        return action

    def ponder(self) -> Iterator[None]:
        """Return an iterator that ponders, one chunk per step; it is empty unless the agent has just moved."""
        return self._pondering if self.game is self._ponder_game else iter(())

    def seconds_for(self, seat: int) -> float | None:
        """Return the time of a seat for its next move in seconds, None for no limit."""
        moves_left = (0.9 * self.size**2 - self.game.ply) / 2
        return self.clock.seconds_for(seat, moves_left)
