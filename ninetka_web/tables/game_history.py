"""The moves of a game at a table, its position, and the JSON of its moves for browsers.

`table.py` uses `GameHistory` to play and take back moves; `views.py` has the other JSON of a table.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence

from ninetka_env.core.game import Game
from ninetka_web.games.adapter import Adapter
from ninetka_web.games.offer import Json
from ninetka_web.tables.refusal import RefusedError

_VERSIONS = itertools.count()


class GameHistory:
    """The actions played from a first position, and the current position."""

    def __init__(
        self, adapter: Adapter, start_position: Game, actions: Sequence[int] = (), handed: Sequence[int] = ()
    ) -> None:
        """Play `actions` from a position; before the actions whose indices are in `handed`, a turn is skipped."""
        self._adapter, self._board = adapter, adapter.board
        self.start_position, self.game = start_position, start_position.copy()
        self.version = next(_VERSIONS)
        """A unique number that changes when moves are taken back. While it is the same, moves are only added."""
        self.actions: list[int] = []
        self.handed: list[int] = []
        self.moves_json: list[str] = []
        """The JSON text of each move. Thousands of small objects instead would slow down Python's garbage collector."""
        self._cells = self._board.cells(self.game)
        self.start_json: Json = {
            "cells": self._cells.tolist(),
            "scores": self._board.scores(self.game),
            "seat_notes": self._board.seat_notes(self.game),
        }
        for number, action in enumerate(actions):
            if number in handed:
                self.handed.append(number)
                self.game.hand_turn(1 - self.game.to_move)
            self.play(action)

    def play(self, action: int) -> None:
        """Play a legal action of the seat to move."""
        game, board = self.game, self._board
        before = game.copy()
        game.play(action)
        cell, landing = board.cell_of(before, action), board.landing(before, action)
        cells = board.cells(game)
        changed = (cells != self._cells).nonzero()[0]
        move = {
            "seat": before.to_move,
            "action": action,
            "name": board.move_name(before, action),
            "move_text": board.move_text(before, action, game),
            "stage": self._adapter.stage(before),
            "from": cell,
            "to": cell if landing is None else landing,
            "passed": list(game.passed),
            "cells": [[int(i), int(cells[i])] for i in changed],
            "scores": board.scores(game),
            "seat_notes": board.seat_notes(game),
        }
        self._cells = cells
        self.actions.append(action)
        self.moves_json.append(json.dumps(move))

    def rewind(self, ply: int) -> None:
        """Go back to the position before ply `ply`; the JSON of the earlier moves is reused."""
        self.game, self.version = self.position(ply), next(_VERSIONS)
        del self.actions[ply:], self.moves_json[ply:]
        self._cells = self._board.cells(self.game)

    @property
    def moves(self) -> list[Json]:
        """The moves so far as JSON for browsers."""
        return [json.loads(move) for move in self.moves_json]

    def positions(self) -> Iterator[Game]:
        """Yield the position before the first action and after each action."""
        game = self.start_position.copy()
        yield game.copy()
        for number, action in enumerate(self.actions):
            if number in self.handed:
                game.hand_turn(1 - game.to_move)
            game.play(action)
            yield game.copy()

    def position(self, ply: int) -> Game:
        """Return the position after `ply` actions; `RefusedError` if there are fewer."""
        if ply > len(self.actions):
            raise RefusedError(f"the game has {len(self.actions)} plies, not {ply}")
        return next(game for number, game in enumerate(self.positions()) if number == ply)
