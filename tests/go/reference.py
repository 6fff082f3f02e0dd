"""A slow and simple reference implementation of Go, written from the specification alone."""

from __future__ import annotations

from itertools import product

FILES = "ABCDEFGHJKLMNOPQRST"
HANDICAP = ("C3", "G7", "C7", "G3", "E5")

Point = tuple[int, int]
"""Rank and file, from 0."""
Board = tuple[tuple[int, ...], ...]


class ReferenceGame:
    """A game of Go; stones are 1 (Black, seat 0) and 2 (White, seat 1)."""

    def __init__(
        self, size=9, komi=7.0, ko="simple", scoring="area", handicap=0, max_plies=None, allow_resign=False, planes=None
    ):
        self.size, self.komi, self.ko, self.scoring = size, komi, ko, scoring
        self.max_plies = max_plies or 2 * size * size
        self.allow_resign = allow_resign
        board = [[0] * size for _ in range(size)]
        for name in HANDICAP[:handicap]:
            board[int(name[1:]) - 1][FILES.index(name[0])] = 1
        self.begin(tuple(map(tuple, board)), 1 if handicap else 0)

    def begin(self, board: Board, to_move: int) -> None:
        self.turns = [(board, to_move)]
        """All boards of the game, each with the seat to move."""
        self.moves: list[Point | str] = []
        self.captured = [0, 0]
        self.resigned = None

    @property
    def board(self) -> Board:
        return self.turns[-1][0]

    @property
    def to_move(self) -> int:
        return self.turns[-1][1]

    def points(self) -> list[Point]:
        return list(product(range(self.size), repeat=2))

    def neighbours(self, point: Point) -> list[Point]:
        rank, file = point
        near = [(rank - 1, file), (rank + 1, file), (rank, file - 1), (rank, file + 1)]
        return [(r, f) for r, f in near if 0 <= r < self.size and 0 <= f < self.size]

    def region(self, board: Board, point: Point) -> set[Point]:
        """Return the points that are connected with a point and have the same content."""
        found, edge = {point}, [point]
        while edge:
            for near in self.neighbours(edge.pop()):
                if near not in found and board[near[0]][near[1]] == board[point[0]][point[1]]:
                    found.add(near)
                    edge.append(near)
        return found

    def liberties(self, board: Board, chain: set[Point]) -> set[Point]:
        return {near for stone in chain for near in self.neighbours(stone) if board[near[0]][near[1]] == 0}

    def board_after(self, point: Point) -> tuple[Board | None, int]:
        """Return the board after the seat to move placed a stone (None for suicide), and the number of captures."""
        board = [list(rank) for rank in self.board]
        board[point[0]][point[1]] = self.to_move + 1
        dead: set[Point] = set()
        for near in self.neighbours(point):
            if board[near[0]][near[1]] == 2 - self.to_move:
                chain = self.region(board, near)
                if not self.liberties(board, chain):
                    dead |= chain
        for rank, file in dead:
            board[rank][file] = 0
        if not self.liberties(board, self.region(board, point)):
            return None, 0
        return tuple(map(tuple, board)), len(dead)

    def why_not(self, point: Point) -> str | None:
        """Return the rule that forbids placing a stone on a point, None if the placement is legal."""
        if self.board[point[0]][point[1]]:
            return "occupied"
        board, _ = self.board_after(point)
        if board is None:
            return "suicide"
        if len(self.turns) > 1 and self.moves[-1] != "pass" and self._simple_ko(board):
            return "ko"
        if self.ko == "positional" and any(board == earlier for earlier, _ in self.turns):
            return "superko"
        if self.ko == "situational" and (board, 1 - self.to_move) in self.turns:
            return "superko"
        return None

    def _simple_ko(self, board: Board) -> bool:
        return board == self.turns[-2][0]

    def is_over(self) -> bool:
        return self.resigned is not None or self.moves[-2:] == ["pass"] * 2 or len(self.moves) >= self.max_plies

    def legal_actions(self) -> list[int]:
        if self.is_over():
            return []
        legal = [rank * self.size + file for rank, file in self.points() if self.why_not((rank, file)) is None]
        return [*legal, self.size**2, *([self.size**2 + 1] if self.allow_resign else [])]

    def ko_points(self) -> list[int]:
        if self.is_over():
            return []
        return [r * self.size + f for r, f in self.points() if self.why_not((r, f)) in ("ko", "superko")]

    def play(self, action: int) -> None:
        board = self.board
        if action > self.size**2:
            self.resigned = self.to_move
            return
        if action == self.size**2:
            self.moves.append("pass")
        else:
            point = divmod(action, self.size)
            board, captured = self.board_after(point)
            assert board is not None
            self.captured[self.to_move] += captured
            self.moves.append(point)
        self.turns.append((board, 1 - self.to_move))

    def owners(self) -> list[list[int]]:
        owners = [[-1] * self.size for _ in range(self.size)]
        for rank, file in self.points():
            colour = self.board[rank][file]
            if not colour:
                region = self.region(self.board, (rank, file))
                around = {self.board[r][f] for point in region for r, f in self.neighbours(point)} - {0}
                colour = around.pop() if len(around) == 1 else 0
            owners[rank][file] = colour - 1
        return owners

    def scores(self) -> list[float]:
        owners, scores = self.owners(), []
        for seat in range(2):
            area = sum(rank.count(seat) for rank in owners)
            stones = sum(rank.count(seat + 1) for rank in self.board)
            points = {
                "area": area,
                "document": area + self.captured[seat],
                "territory": area - stones + self.captured[seat],
            }
            scores.append(points[self.scoring] + (self.komi if seat else 0.0))
        return scores

    def winner(self) -> int:
        if self.resigned is not None:
            return 1 - self.resigned
        black, white = self.scores()
        return -1 if black == white else int(white > black)

    def reward(self, seat: int, kind: str) -> float:
        winner = self.winner()
        if kind == "win" or self.resigned is not None:
            return 0.0 if winner < 0 else 1.0 if winner == seat else -1.0
        scores = self.scores()
        return max(-1.0, min(1.0, (scores[seat] - scores[1 - seat]) / self.size**2))

    def is_own_eye(self, point: Point) -> bool:
        """Return whether an empty point is an eye of the seat to move. Uniform playouts do not fill such eyes."""
        own = self.to_move + 1
        if any(self.board[r][f] != own for r, f in self.neighbours(point)):
            return False
        rank, file = point
        corners = [(rank + a, file + b) for a in (-1, 1) for b in (-1, 1)]
        inside = [(r, f) for r, f in corners if 0 <= r < self.size and 0 <= f < self.size]
        others = sum(self.board[r][f] == 3 - own for r, f in inside)
        return others <= (1 if len(inside) == 4 else 0)

    def planes(self, kind: str, viewer: int) -> list[list[list[int]]]:
        return self._alphazero(viewer) if kind == "alphazero" else self._standard(viewer)

    def _plane(self, marked) -> list[list[int]]:
        """Return a plane: 1 at the points where the function `marked(rank, file)` is true, or `marked` everywhere."""
        pick = marked if callable(marked) else lambda r, f: marked
        return [[int(pick(r, f)) for f in range(self.size)] for r in range(self.size)]

    def _alphazero(self, viewer: int) -> list[list[list[int]]]:
        nothing = ((0,) * self.size,) * self.size
        boards = [board for board, _ in self.turns[::-1]][:8]
        boards += [nothing] * (8 - len(boards))
        planes = []
        for colour in (viewer + 1, 2 - viewer):
            planes += [self._plane(lambda r, f, b=board, c=colour: b[r][f] == c) for board in boards]
        return [*planes, self._plane(self.to_move == 0)]

    def _standard(self, viewer: int) -> list[list[list[int]]]:
        own, other, board = viewer + 1, 2 - viewer, self.board
        count = {p: len(self.liberties(board, self.region(board, p))) for p in self.points() if board[p[0]][p[1]]}
        mine = self.to_move == viewer and not self.is_over()
        forbidden = self.ko_points() if mine else []
        last = [*["none"] * 2, *self.moves][-1:-3:-1]
        scores = self.scores()
        planes = [lambda r, f, c=colour: board[r][f] == c for colour in (own, other)]
        for colour in (own, other):
            for n in (1, 2, 3):
                planes.append(lambda r, f, c=colour, n=n: board[r][f] == c and min(count[r, f], 3) == n)
        planes += [
            lambda r, f: r * self.size + f in forbidden,
            lambda r, f: (r, f) == last[0],
            lambda r, f: (r, f) == last[1],
            last[0] == "pass",
            viewer == 0,
            mine,
            self.max_plies - len(self.moves) <= 16,
            scores[viewer] > scores[1 - viewer],
        ]
        return [self._plane(plane) for plane in planes]
