"""What an engine keeps between commands: the board, the turns that can be taken back, the time, who thinks."""

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
"""Turns that can be taken back."""
RESIGN_BELOW, RESIGN_TURNS = 0.05, 3
"""An engine resigns when its simulations win less than this share so many own turns in a row: what KataGo does unless
told otherwise (`resignThreshold`, `resignConsecTurns`)."""


class Session:
    """One board and all that belongs to it. Methods raise `GtpError` and then have changed nothing."""

    def __init__(
        self, thinker: Thinker, variant: Variant, version: str = "", resign_below: float = RESIGN_BELOW
    ) -> None:
        """Begin with an empty board.

        Args:
            thinker: who chooses moves.
            variant: the game; unless it has a limit of plies, it ends by passes alone.
            version: what the engine answers when asked for its version.
            resign_below: see `RESIGN_BELOW`; 0 for never.
        """
        self.thinker, self.version = thinker, version
        self._resign_below, self._hopeless = resign_below, [0, 0]
        self._answered: Game | None = None
        """The position after the agent's latest move, where it waits for the opponent's."""
        self._pondering: Iterator[None] = iter(())
        self.clock = Clock()
        self.interrupted: Callable[[], bool] = lambda: False
        """Tells whether the command under way is to stop thinking, and answer."""
        self.pending: Callable[[], bool] = lambda: False
        """Tells whether another command is waiting."""
        self._set_variant(variant.replaced(max_plies=variant.options["max_plies"] or MAX_PLIES, allow_resign=False))
        self.game: Game = self._variant.game_class.start(self._variant)
        self.clear()

    @property
    def size(self) -> int:
        """Of the board."""
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
        """Clear the board; size, komi, rules and time settings stay."""
        self._begin_with(self._variant.game_class.start(self._variant))
        self.clock.reset()

    def set_rules(self, ko: str, scoring: str) -> None:
        """Change the rules; only on an empty board, since what was played was played by others."""
        if not self.is_empty:
            raise GtpError("board not empty")
        self._change(ko=ko, scoring=scoring)
        self.clear()

    def set_komi(self, komi: float) -> None:
        """Change the komi of this game and of those to come."""
        self._change(komi=komi)
        self._apply_komi()

    def set_up(self, stones: Iterable[tuple[int, int]], to_move: int) -> None:
        """Put stones, (seat, point), on points that are empty; it cannot be taken back."""
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
        """Put black stones on an empty board, and let White move."""
        if not self.is_empty:
            raise GtpError("board not empty")
        if not 2 <= len(points) < self.size**2 or len(set(points)) < len(points):
            raise GtpError("bad vertex list")
        self.set_up([(BLACK - 1, point) for point in points], 1)

    def load(self, games: list[Game]) -> None:
        """Go on from the last of the positions of a game; its turns can be taken back to those before."""
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
        """Let the position have the komi that was set."""
        if self.game.komi != self._variant.options["komi"]:
            self.game = self.game.with_options(komi=self._variant.options["komi"])

    # Turns

    def turn_of(self, seat: int) -> Game:
        """Return the position with a seat to move, whoever's turn it is; a game that is over goes on."""
        if seat == self.game.to_move and not self.game.is_over:
            return self.game
        game = self.game.copy()
        game.hand_turn(seat)
        return game

    def play(self, seat: int, action: int) -> None:
        """Play a move of a seat, whoever's turn it is."""
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
        """Take the last turn back."""
        if not self._before:
            raise GtpError("cannot undo")
        self.game = self._before.pop()
        self._hopeless = [0, 0]
        self._apply_komi()

    @contextmanager
    def unless_it_fails(self) -> Iterator[None]:
        """Change nothing if what is done in the context fails."""
        game, before = self.game, self._before.copy()
        try:
            yield
        except GtpError:
            self.game, self._before = game, before
            raise

    def choose(self, seat: int) -> int:
        """Return what the agent plays for a seat, within its time; the action after the pass resigns."""
        start = time.perf_counter()
        action = self.thinker.choose(self.turn_of(seat), self.seconds_for(seat), self.interrupted)
        self.clock.spend(seat, time.perf_counter() - start)
        return action

    def play_or_resign(self, seat: int, action: int) -> int:
        """Play what a seat has chosen, unless it resigns by that, or has seen no hope for some turns; return which."""
        self._hopeless[seat] = self._hopeless[seat] + 1 if self.thinker.share < self._resign_below else 0
        resign = self.size**2 + 1
        if action == resign or self._hopeless[seat] >= RESIGN_TURNS:
            return resign
        self.play(seat, action)
        self._answered, self._pondering = self.game, self.thinker.ponder(self.game)
        return action

    def ponder(self) -> Iterator[None]:
        """Think on bit by bit about the position after a move of the agent's, if it is one that ponders."""
        return self._pondering if self.game is self._answered else iter(())

    def seconds_for(self, seat: int) -> float | None:
        """Return how long a seat may think now; None for as long as it likes."""
        moves_left = (0.9 * self.size**2 - self.game.ply) / 2
        return self.clock.seconds_for(seat, moves_left)
