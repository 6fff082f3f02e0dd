"""Replay a game of Kropki turn by turn, and convert SGF names of nodes; `sgf` reads and writes the files.

Start reading at `RecordReader.play_turn`.
"""

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
NODE_NAME = re.compile(r"[a-zA-Z]{2}")


def node_to_sgf(node: int, width: int) -> str:
    """Return the SGF name of a node: column, then row from the top, `a`..`z`, then `A`..`Z`."""
    row, column = divmod(node, width)
    return LETTERS[column] + LETTERS[row]


def node_from_sgf(name: str, width: int, height: int) -> int:
    """Return the node of an SGF name; raise `ValueError` if the board has no such node."""
    column, row = (LETTERS.find(letter) for letter in name) if NODE_NAME.fullmatch(name) else (-1, -1)
    if not (0 <= column < width and 0 <= row < height):
        raise ValueError(f"no node {quote(name)}: expected aa to {node_to_sgf(width * height - 1, width)}")
    return row * width + column


class RecordReader:
    """A game in progress that is replayed from a file, turn by turn."""

    def __init__(self, record: GameRecord, number: int = 0) -> None:
        """Start from the start position of `record`, which already contains the first `number` moves of the file."""
        start = record.start()
        assert isinstance(start, Game)
        self.game = start
        self.actions: list[int] = []
        self.turns_read = number
        """Number of moves of the file that have been read, for error messages."""

    def play_turn(
        self, seat: int | None, node: str, drawings: Iterable[str], draw: Callable[[str], None], may_draw_more: bool
    ) -> None:
        """Play a turn: place a point, draw regions, and end the turn.

        Args:
            seat: the seat that plays in the file; None if the file does not give it.
            node: SGF name of the node of the point.
            drawings: the regions to draw, in the form that `draw` takes.
            draw: called with each drawing, to play it.
            may_draw_more: do not end the turn if the seat may draw more.

        Raises:
            ValueError: if the turn is illegal; the message names the move.
        """
        self.turns_read += 1
        game, move_name = self.game, f"move {self.turns_read}"
        try:
            place = self._node(node)
            move_name += f" ({self._name(place)})"
            if seat is not None and seat != game.to_move and not game.is_over:
                raise ValueError(f"it is the turn of {SEATS[game.to_move]}")
            self._play(place)
            for drawing in drawings:
                draw(drawing)
        except ValueError as error:
            raise ValueError(f"{move_name}: {error}") from None
        if game.drawing and not may_draw_more:
            self._play(2 * game.width * game.height)

    def _play(self, action: int) -> None:
        self.game.play(action)
        self.actions.append(action)

    def draw_core(self, name: str) -> None:
        """Draw the core that contains the node with this SGF name."""
        game, node = self.game, self._node(name)
        action = int(game.drawable().flat[node])
        self._play(action if action >= 0 else game.width * game.height + node)

    def draw_chain(self, text: str) -> None:
        """Draw the core whose region has the same nodes as the inside of this chain.

        Nodes with own points and nodes in own regions are not compared.

        Args:
            text: the SGF names of the links, the first one repeated at the end.

        Raises:
            ValueError: if the chain is not valid, or there is no such core.
        """
        game, seat = self.game, self.game.to_move
        if not game.drawing:
            raise ValueError("there is nothing to draw")
        inside = self._nodes_inside(text, seat, game.region.ravel())
        in_file = inside & (game.board.ravel() != seat + 1) & (game.region.ravel() != seat + 1)
        for action in np.unique(game.drawable().ravel()[inside]):
            after = game.copy()
            if action >= 0:
                after.play(int(action))
                drawn = (after.region != game.region).ravel() & (after.region.ravel() == seat + 1)
                if (in_file == drawn & (game.board.ravel() != seat + 1)).all():
                    self._play(int(action))
                    return
        raise ValueError(f"the chain .{text} is not the smallest one round points that may be captured")

    def check_chains(self, seat: int, before: npt.NDArray[np.int8], chains: Sequence[str], strict: bool) -> None:
        """Check that the rules have drawn the chains of the file's last move.

        Args:
            seat: the seat that moved.
            before: (N,) the regions before the move.
            chains: the chains in the file, of the mover and possibly of the other seat.
            strict: also check that the file has a chain for every region that the rules drew for the mover. (This is
                always checked if the file has a chain of the mover.)

        Raises:
            ValueError: if the regions drawn and the chains differ; the message names the move.
        """
        now, board = self.game.region.ravel(), self.game.board.ravel()
        in_file = np.zeros((2, len(now)), bool)
        move_name = f"move {self.turns_read} ({self._name(int(self.game.records['last'][0]))})"
        for text in chains:
            owner = self.chain_seat(text, seat)
            try:
                in_file[owner] |= self._nodes_inside(text, owner, before)
            except ValueError as error:
                raise ValueError(f"{move_name}: {error}") from None
        if any((in_file[one] & (board != one + 1) & (now != one + 1)).any() for one in range(2)):
            raise ValueError(f"{move_name}: the chains enclose more than the rules draw")
        if (strict or in_file[seat].any()) and ((now == seat + 1) & (before != seat + 1) & ~in_file[seat]).any():
            raise ValueError(f"{move_name}: the rules draw more than the chains enclose")

    def chain_seat(self, chain: str, seat: int) -> int:
        """Return the owner of a chain in a move of `seat`.

        This is the other seat if it has a point on the first node of the chain, else `seat`.
        """
        board = self.game.board
        column, row = (LETTERS.find(letter) for letter in chain[:2])
        on_board = 0 <= column < self.game.width and 0 <= row < self.game.height
        return 1 - seat if on_board and board[row, column] == 2 - seat else seat

    def _nodes_inside(self, text: str, seat: int, region: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
        """Return which nodes lie inside a chain of `seat`, (N,) bool; `region` has the regions of the nodes, (N,).

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
        return _inside_polygon(rows, columns, game.width, game.height)

    def _node(self, name: str) -> int:
        return node_from_sgf(name, self.game.width, self.game.height)

    def _name(self, node: int) -> str:
        return node_name(node, self.game.width, self.game.height)

    def to_game_record(self, record: GameRecord) -> GameRecord:
        """Return a copy of `record` with the actions that were read, and the result."""
        record = replace(record, actions=tuple(self.actions))
        return record.with_result(record.final(), unfinished=True)


def _inside_polygon(
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
