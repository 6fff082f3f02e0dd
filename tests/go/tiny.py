"""Exact values of tiny Go boards: every position is solved by backward induction over the remaining plies.

Simple ko, komi 0, area scoring. Written from the specification alone, without code of the package.

A position is `(cells, ko point or -1)` from the view of the player to move: own stones are 1, the other player's 2. The
view of the other player swaps the stones and negates the value.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np
import numpy.typing as npt

Cells = tuple[int, ...]
Position = tuple[Cells, int]


def solve(size: int, max_plies: int) -> ExactValues:
    """Solve a board size for every number of remaining plies up to `max_plies`. On 3 x 3 this takes seconds."""
    return _board(size).solve(max_plies)


@functools.cache
def _board(size: int) -> Board:
    return Board(size)


class Board:
    """All reachable positions of a board size, and the successors of each position."""

    def __init__(self, size: int) -> None:
        self.size, self.points = size, size * size
        self.near = [self._neighbours(point) for point in range(self.points)]
        start = ((0,) * self.points, -1)
        self.number: dict[Position, int] = {start: 0}
        self.positions, rows = [start], []
        for cells, ko in self.positions:  # the list grows during the loop
            after = [None if point == ko else self.place(cells, point) for point in range(self.points)]
            rows.append([self._number_of(one) for one in [*after, (swapped(cells), -1)]])
        self.after = np.array(rows)
        """(positions, points + 1): the position after each action, -1 if the action is illegal; the pass is last."""
        self.scores = np.array([self.score(cells) for cells, _ in self.positions])

    def _neighbours(self, point: int) -> list[int]:
        rank, file = divmod(point, self.size)
        near = [(rank - 1, file), (rank + 1, file), (rank, file - 1), (rank, file + 1)]
        return [self.size * r + f for r, f in near if 0 <= r < self.size and 0 <= f < self.size]

    def _number_of(self, position: Position | None) -> int:
        if position is None:
            return -1
        if position not in self.number:
            self.number[position] = len(self.positions)
            self.positions.append(position)
        return self.number[position]

    def _region(self, cells: list[int] | Cells, point: int) -> tuple[set[int], set[int]]:
        """Return the connected points with the same content as a point, and the contents next to them."""
        found, edge, around = {point}, [point], set()
        while edge:
            for near in self.near[edge.pop()]:
                if cells[near] != cells[point]:
                    around.add(cells[near])
                elif near not in found:
                    found.add(near)
                    edge.append(near)
        return found, around

    def place(self, cells: Cells, point: int) -> Position | None:
        """Return the position after the player to move places a stone; None if the point is occupied or for suicide."""
        if cells[point]:
            return None
        board, dead = list(cells), set()
        board[point] = 1
        for near in self.near[point]:
            if board[near] == 2:
                chain, around = self._region(board, near)
                dead |= chain if 0 not in around else set()
        for stone in dead:
            board[stone] = 0
        chain, around = self._region(board, point)
        if 0 not in around:
            return None
        alone = len(chain) == len(dead) == 1 and all(board[near] or near in dead for near in self.near[point])
        return swapped(board), dead.pop() if alone else -1

    def score(self, cells: Cells) -> int:
        """Return the area of the player to move minus that of the other player."""
        total = 0
        for point in range(self.points):
            around = {cells[point]} if cells[point] else self._region(cells, point)[1]
            total += (around == {1}) - (around == {2})
        return total

    def solve(self, max_plies: int) -> ExactValues:
        """Compute the value of every position for the player to move, for each number of remaining plies."""
        values = [np.stack([self.scores, self.scores])]
        for _ in range(max_plies):
            values.append(self._one_more(values[-1]))
        return ExactValues(self, values)

    def action_values(self, later: npt.NDArray[np.int64], passed: int) -> npt.NDArray[np.int64]:
        """Return the value of each action in each position, (positions, points + 1), from the values for one ply less.

        The value of an illegal action is lower than that of all legal actions.

        Args:
            later: (2, positions) values for one ply less: row 0 after a placement, row 1 after a pass.
            passed: whether the previous turn was a pass, so that another pass ends the game.
        """
        worth = np.where(self.after < 0, -self.points - 1, -later[0][self.after])
        worth[:, -1] = self.scores if passed else -later[1][self.after[:, -1]]
        return worth

    def _one_more(self, later: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.stack([self.action_values(later, passed).max(axis=1) for passed in range(2)])


class ExactValues:
    """The values of all positions of a board, computed by `solve`."""

    def __init__(self, board: Board, values: list[npt.NDArray[np.int64]]) -> None:
        self.board, self._values = board, values

    def value(self, plies_left: int) -> int:
        """Return the points by which Black wins from the empty board with perfect play."""
        return int(self._values[plies_left][0, 0])

    def action_values(self, cells: Cells, to_move: int, ko: int, passed: bool, plies_left: int) -> dict[int, int]:
        """Return the points by which the player to move wins after each legal action, with perfect play.

        Args:
            cells: stones by point, 1 black, 2 white.
            to_move: 0 for Black.
            ko: the point that the ko rule forbids, or -1.
            passed: whether the previous turn was a pass.
            plies_left: the number of remaining plies, at least 1.
        """
        number = self.board.number[swapped(cells) if to_move else tuple(cells), ko]
        worth = self.board.action_values(self._values[plies_left - 1], int(passed))[number]
        legal = [*(self.board.after[number, :-1] >= 0), True]
        return {action: int(worth[action]) for action in itertools.compress(range(len(legal)), legal)}


def swapped(cells: list[int] | Cells) -> Cells:
    """Return the board with the colours of all stones swapped."""
    return tuple((0, 2, 1)[cell] for cell in cells)
