"""A slow, simple implementation of Kropki for comparisons: the definitions as sets of nodes, without derived state."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

Node = tuple[int, int]
ORTHOGONAL = ((-1, 0), (0, 1), (1, 0), (0, -1))
KING = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))


class Core(NamedTuple):
    """The nodes reached from a node by orthogonal steps that avoid the live points of a seat.

    `enclosed`: whether none of these nodes is on the edge of the board.
    """

    nodes: frozenset[Node]
    enclosed: bool


class ReferenceGame:
    """A game of Kropki on sets and dictionaries; actions are numbered as in `Game`."""

    def __init__(self, width: int, height: int, territory: str = "declared", start: str = "empty") -> None:
        self.width, self.height, self.territory = width, height, territory
        self.nodes = [(row, column) for row in range(height) for column in range(width)]
        self.number = {node: number for number, node in enumerate(self.nodes)}
        self.edge = {node for node in self.nodes if self.on_edge(node)}
        self.neighbours = {
            (row, column): [(row + r, column + c) for r, c in ORTHOGONAL if (row + r, column + c) in self.number]
            for row, column in self.nodes
        }
        self.board = dict.fromkeys(self.nodes, 0)
        self.region = dict.fromkeys(self.nodes, 0)
        self.to_move, self.placed, self.last, self.plies = 0, False, None, 0
        if start == "cross":
            row, column = height // 2 - 1, width // 2 - 1
            self.board[row, column] = self.board[row + 1, column + 1] = 1
            self.board[row, column + 1] = self.board[row + 1, column] = 2

    # Sets

    def on_edge(self, node: Node) -> bool:
        return node[0] in (0, self.height - 1) or node[1] in (0, self.width - 1)

    def live(self, seat: int) -> set[Node]:
        return {node for node in self.nodes if self.board[node] == seat + 1 and self.region[node] == 0}

    def free(self) -> list[Node]:
        return [node for node in self.nodes if self.board[node] == 0 and self.region[node] == 0]

    def core(self, start: Node, live: set[Node]) -> Core:
        found, waiting = {start}, [start]
        while waiting:
            for there in self.neighbours[waiting.pop()]:
                if there not in live and there not in found:
                    found.add(there)
                    waiting.append(there)
        return Core(frozenset(found), self.edge.isdisjoint(found))

    def cores(self, seat: int) -> Iterator[Core]:
        """Yield all enclosed cores of a seat, in the order of their first nodes."""
        live, seen = self.live(seat), set()
        for node in self.nodes:
            if node not in live and node not in seen:
                core = self.core(node, live)
                seen |= core.nodes
                if core.enclosed:
                    yield core

    def points_to_take(self, core: Core, seat: int) -> list[Node]:
        return sorted(n for n in core.nodes if self.board[n] == 2 - seat and self.region[n] != seat + 1)

    def drawable_cores(self, seat: int) -> list[Core]:
        return [core for core in self.cores(seat) if self.points_to_take(core, seat)]

    # The inside, by its definition

    def inside(self, core: frozenset[Node]) -> set[Node]:
        """Return the nodes that become a region when a core is drawn.

        These are the core and all nodes for which `gets_out` is false. Only nodes in the bounding rectangle of the core
        are tried, because from every other node three straight paths lead away from the core.
        """
        rows, columns = sorted(row for row, _ in core), sorted(column for _, column in core)
        near = itertools.product(range(rows[0], rows[-1] + 1), range(columns[0], columns[-1] + 1))
        return set(core) | {x for x in near if x not in core and not self.gets_out(x, core)}

    def gets_out(self, start: Node, core: frozenset[Node]) -> bool:
        """Return whether king's steps that avoid the core lead from `start` to the edge.

        They must also do so if any single node other than `start` is closed.
        """
        path = self.path_out(start, core, frozenset())
        return path is not None and all(
            self.path_out(start, core, frozenset([node])) is not None for node in path if node != start
        )

    def path_out(self, start: Node, core: frozenset[Node], closed: frozenset[Node]) -> list[Node] | None:
        """Return a path of king's steps to the edge that avoids the core and the closed nodes, or None."""
        came: dict[Node, Node | None] = {start: None}
        waiting = [start]
        while waiting:
            here = waiting.pop(0)
            if here in self.edge:
                path: list[Node] = []
                step: Node | None = here
                while step is not None:
                    path.append(step)
                    step = came[step]
                return path
            for rows, columns in KING:
                there = here[0] + rows, here[1] + columns
                if there not in core and there not in closed and there not in came:
                    came[there] = here
                    waiting.append(there)
        return None

    # Rules

    def draw(self, core: Core, seat: int) -> None:
        for node in self.inside(core.nodes):
            self.region[node] = seat + 1

    def draw_all(self, seat: int) -> None:
        while cores := self.drawable_cores(seat):
            self.draw(cores[0], seat)

    def num_actions(self) -> int:
        nodes = len(self.nodes)
        return nodes if self.territory == "immediate" else 2 * nodes + 1

    def legal_actions(self) -> list[int]:
        if not self.placed:
            return [self.number[node] for node in self.free()]
        firsts = [self.points_to_take(core, self.to_move)[0] for core in self.drawable_cores(self.to_move)]
        return [*sorted(len(self.nodes) + self.number[node] for node in firsts), 2 * len(self.nodes)]

    def play(self, action: int) -> None:
        assert action in self.legal_actions()
        nodes, seat = len(self.nodes), self.to_move
        if action < nodes:
            self.last = self.nodes[action]
            self.board[self.last] = seat + 1
            self.plies += 1
            if self.territory == "immediate":
                self.draw_all(seat)
                self.draw_all(1 - seat)
            self.placed = True
        elif action < 2 * nodes:
            self.draw(self.core(self.nodes[action - nodes], self.live(seat)), seat)
        if action == 2 * nodes or not self.drawable_cores(seat):
            self.end_turn()

    def end_turn(self) -> None:
        self.placed, self.to_move = False, 1 - self.to_move
        if not self.free():
            self.draw_all(self.to_move)
            self.draw_all(1 - self.to_move)

    def is_over(self) -> bool:
        return not self.placed and not self.free()

    def scores(self) -> list[int]:
        return [
            sum(self.board[node] == 2 - seat and self.region[node] == seat + 1 for node in self.nodes)
            for seat in range(2)
        ]

    def planes(self, viewer: int) -> list[list[bool]]:
        """Return the 14 planes, each as a list over the nodes. Written from the texts in the table of planes."""
        own, other, mover = viewer + 1, 2 - viewer, self.to_move
        own_live, other_live = self.live(viewer), self.live(1 - viewer)
        may_draw = self.drawable_cores(mover) if self.placed else []

        def undrawn(seat: int) -> set[Node]:
            return {node for core in self.cores(seat) for node in core.nodes if self.region[node] != seat + 1}

        sets = [
            own_live,
            other_live,
            {n for n in self.nodes if self.board[n] == own} - own_live,
            {n for n in self.nodes if self.board[n] == other} - other_live,
            {n for n in self.nodes if self.region[n] == own},
            {n for n in self.nodes if self.region[n] == other},
            set(self.free()),
            undrawn(viewer),
            undrawn(1 - viewer),
            {node for core in may_draw for node in core.nodes},
            set() if self.last is None else {self.last},
            set(self.nodes) if self.placed else set(),
            set(self.nodes) if viewer == 0 else set(),
            set(self.nodes) if viewer == mover else set(),
        ]
        return [[node in one for node in self.nodes] for one in sets]
