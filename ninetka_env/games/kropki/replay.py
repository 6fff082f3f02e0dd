"""Replay a game of Kropki turn by turn, and convert SGF names of nodes; `sgf` reads and writes the files."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ninetka_env.core.record import GameRecord
from ninetka_env.core.text import quote
from ninetka_env.games.kropki.game import Game
from ninetka_env.games.kropki.geometry import node_name
from ninetka_env.games.kropki.text import SEATS

LETTERS = string.ascii_letters
POINT = re.compile(r"[a-zA-Z]{2}")


def to_sgf(node: int, width: int) -> str:
    """Return the SGF name of a node: column, then row from the top, `a`..`z`, then `A`..`Z`."""
    row, column = divmod(node, width)
    return LETTERS[column] + LETTERS[row]


def from_sgf(name: str, width: int, height: int) -> int:
    """Return the node of an SGF name; raise `ValueError` if the board has no such node."""
    column, row = (LETTERS.find(letter) for letter in name) if POINT.fullmatch(name) else (-1, -1)
    if not (0 <= column < width and 0 <= row < height):
        raise ValueError(f"no node {quote(name)}: expected aa to {to_sgf(width * height - 1, width)}")
    return row * width + column


class Reading:
    """A game in progress that is replayed from a file, turn by turn."""

    def __init__(self, record: GameRecord, number: int = 0) -> None:
        """Start from the first position of `record`; `number` is the number of moves in the file that set it up."""
        start = record.start()
        assert isinstance(start, Game)
        self.game = start
        self.actions: list[int] = []
        self.number = number
        """Number of moves read, for messages."""

    def turn(
        self, seat: int | None, node: str, drawings: Iterable[str], draw: Callable[[str], None], goes_on: bool
    ) -> None:
        """Play a turn: place a point, draw regions, and end the turn.

        Args:
            seat: the seat that plays in the file; None if the file does not give it.
            node: SGF name of the node of the point.
            drawings: the regions to draw, in the form that `draw` takes.
            draw: called with each drawing; plays it.
            goes_on: leave the turn open if more may be drawn.

        Raises:
            ValueError: if the turn is illegal; the message names the move.
        """
        self.number += 1
        game, what = self.game, f"move {self.number}"
        try:
            place = self._node(node)
            what += f" ({self._name(place)})"
            if seat is not None and seat != game.to_move and not game.is_over:
                raise ValueError(f"it is the turn of {SEATS[game.to_move]}")
            self._play(place)
            for drawing in drawings:
                draw(drawing)
        except ValueError as error:
            raise ValueError(f"{what}: {error}") from None
        if game.drawing and not goes_on:
            self._play(2 * game.width * game.height)

    def _play(self, action: int) -> None:
        self.game.play(action)
        self.actions.append(action)

    def draw_core(self, name: str) -> None:
        """Draw the core of a node, given by its SGF name."""
        game, node = self.game, self._node(name)
        action = int(game.drawable().flat[node])
        self._play(action if action >= 0 else game.width * game.height + node)

    def draw_chain(self, text: str) -> None:
        """Draw the core round which a chain is the smallest one, ignoring own points and own regions inside."""
        game, seat = self.game, self.game.to_move
        if not game.drawing:
            raise ValueError("there is nothing to draw")
        inside = self._inside(text, seat, game.region.ravel())
        told = inside & (game.board.ravel() != seat + 1) & (game.region.ravel() != seat + 1)
        for action in np.unique(game.drawable().ravel()[inside]):
            after = game.copy()
            if action >= 0:
                after.play(int(action))
                drawn = (after.region != game.region).ravel() & (after.region.ravel() == seat + 1)
                if (told == drawn & (game.board.ravel() != seat + 1)).all():
                    self._play(int(action))
                    return
        raise ValueError(f"the chain .{text} is not the smallest one round points that may be captured")

    def check(self, seat: int, before: npt.NDArray[np.int8], chains: Sequence[str], strict: bool) -> None:
        """Check that the rules have drawn the chains of the file's last move.

        Args:
            seat: the seat that moved.
            before: (N,) the regions before the move.
            chains: the chains in the file, of the mover and possibly of the other seat.
            strict: also check that the file has a chain for every region that the rules drew for the mover. (This is
                always checked if the file has a chain of the mover.)

        Raises:
            ValueError: if they differ; the message names the move.
        """
        now, board = self.game.region.ravel(), self.game.board.ravel()
        told = np.zeros((2, len(now)), bool)
        what = f"move {self.number} ({self._name(int(self.game.records['last'][0]))})"
        for text in chains:
            owner = self.owner(text, seat)
            try:
                told[owner] |= self._inside(text, owner, before)
            except ValueError as error:
                raise ValueError(f"{what}: {error}") from None
        if any((told[one] & (board != one + 1) & (now != one + 1)).any() for one in range(2)):
            raise ValueError(f"{what}: the chains enclose more than the rules draw")
        if (strict or told[seat].any()) and ((now == seat + 1) & (before != seat + 1) & ~told[seat]).any():
            raise ValueError(f"{what}: the rules draw more than the chains enclose")

    def owner(self, chain: str, seat: int) -> int:
        """Return the seat of a chain in a move of `seat`: the other seat if the chain's first node holds its point."""
        board = self.game.board
        column, row = (LETTERS.find(letter) for letter in chain[:2])
        on_board = 0 <= column < self.game.width and 0 <= row < self.game.height
        return 1 - seat if on_board and board[row, column] == 2 - seat else seat

    def _inside(self, text: str, seat: int, region: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
        """Return which nodes lie inside a chain, (N,) bool.

        Raises:
            ValueError: if the chain is not closed, or a link is not a live point of the seat.
        """
        game = self.game
        links = [self._node(text[i : i + 2]) for i in range(0, len(text), 2)]
        rows, columns = np.divmod(np.array(links), game.width)
        if (
            links[0] != links[-1]
            or len(links) < 5
            or (abs(np.diff(rows)) > 1).any()
            or (abs(np.diff(columns)) > 1).any()
        ):
            raise ValueError(f"the chain .{text} is not closed")
        for link in links:
            if game.board.flat[link] != seat + 1 or region[link]:
                raise ValueError(f"the chain .{text}: no live point of {SEATS[seat]} stands on {self._name(link)}")
        return _inside(rows, columns, game.width, game.height)

    def _node(self, name: str) -> int:
        return from_sgf(name, self.game.width, self.game.height)

    def _name(self, node: int) -> str:
        return node_name(node, self.game.width, self.game.height)

    def finished(self, record: GameRecord) -> GameRecord:
        """Return the game record with the actions that were read, and its result."""
        record = replace(record, actions=tuple(self.actions))
        return record.with_result(record.final(), unfinished=True)


def _inside(
    rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], width: int, height: int
) -> npt.NDArray[np.bool_]:
    """Return which nodes lie strictly inside a closed polygon, by the even-odd rule, (N,) bool."""
    inside = np.zeros((height, width), bool)
    for row, column, next_row, next_column in zip(rows[:-1], columns[:-1], rows[1:], columns[1:], strict=True):
        if row != next_row:  # a ray to the right from nodes of the upper row crosses this side
            top = column if row < next_row else next_column
            inside[min(row, next_row), :top] ^= True
    inside[rows, columns] = False
    return inside.ravel()
