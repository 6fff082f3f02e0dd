"""`Game`: the Python API of one position of Kropki. Compiled code uses `rules` instead."""

from __future__ import annotations

from typing import Self, Unpack

import numpy as np
import numpy.typing as npt

from ninetka_env.core import game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import short_repr, takes_options
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.kropki import position
from ninetka_env.games.kropki.definition import OPTIONS, KropkiOptions
from ninetka_env.games.kropki.geometry import node_index, node_name
from ninetka_env.games.kropki.regions import count_drawable, drawable_node, flood_fill, unmark
from ninetka_env.games.kropki.rules import STARTS, TERRITORIES, mover, num_nodes
from ninetka_env.games.kropki.text import SEATS, Position, read_position, write_position


class Game(game.Game):
    """A game of Kropki: one position, which `play` advances in place.

    Seat 0 is Black and opens, seat 1 is White. Node n is row * width + column, row 0 on top. Action n places a point on
    node n. With `territory="declared"` the seat may then draw regions, each around a *core*: a connected set of nodes
    that the seat has enclosed. Action N + m draws the region around the core that node m names. N is the number of
    nodes; m is the lowest node of the core that has an opposing point and is in no own region. Action 2N ends the turn.
    If there is nothing to draw, the turn ends automatically.

    Examples:
        >>> game = Game.new(5, 4)
        >>> for name in ("B3", "B4", "C3", "A3", "C4", "B2", "D4", "D3", "E4", "C2"):
        ...     game.play(game.action_index(name))
        >>> [game.action_name(action) for action in game.legal_actions()]
        ['A4', 'E3', 'A2', 'D2', 'E2', 'A1', 'B1', 'C1', 'D1', 'E1']
    """

    __slots__ = ()

    name = "kropki"

    @classmethod
    @takes_options(OPTIONS, keyword_only=True)
    def new(cls, width: int = 10, height: int = 10, **options: Unpack[KropkiOptions]) -> Self:
        """Start a game.

        Args:
            width: columns, 3 to 39.
            height: rows, 3 to 32.
            **options: see `ninetka_env.games.kropki.definition.KropkiOptions`.

        Raises:
            ValueError: if an option is wrong; the message names the option and its allowed values.
        """
        return cls.start(cls.definition().variant(width=width, height=height, **options))

    @classmethod
    def from_board(
        cls,
        board: npt.ArrayLike,
        region: npt.ArrayLike | None = None,
        to_move: int = 0,
        *,
        drawing: bool = False,
        last: int | None = None,
        territory: str = "declared",
        start: str = "empty",
    ) -> Self:
        """Return a position with these points and regions.

        Args:
            board: (H, W) points: 0 for none, else seat + 1.
            region: (H, W) regions of the nodes: 0 for none, else seat + 1; None if the position has no regions.
            to_move: the seat that acts next.
            drawing: whether that seat has placed its point and may draw now.
            last: the node of the point placed last, None for none.
            territory: see `ninetka_env.games.kropki.definition.KropkiOptions`.
            start: how the game started: with `"cross"`, its four points must be on the board and do not count as plies.

        Raises:
            ValueError: if the position is impossible; see `position.read_board`.
        """
        points = np.asarray(board)
        if points.ndim != 2:
            raise ValueError(f"board: expected (H, W) integers 0, 1 or 2, got shape {points.shape}")
        height, width = points.shape
        variant = cls.definition().variant(width=width, height=height, territory=territory, start=start)
        regions = np.zeros(points.shape, np.int8) if region is None else region
        return cls(position.read_board(points, regions, to_move, drawing, last, variant))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Parse a position that `str(game)` returned; raise `ValueError` if the text is not valid."""
        found = read_position(text)
        return cls.from_board(
            found.board, found.region, found.to_move, drawing=found.drawing, last=found.last,
            territory=found.territory, start=found.start,
        )  # fmt: skip

    # Properties

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.records["width"][0])

    @property
    def height(self) -> int:
        """Number of rows."""
        return int(self.records["height"][0])

    @property
    def territory(self) -> str:
        """`"declared"` or `"immediate"`."""
        return TERRITORIES[self.records["territory"][0]]

    @property
    def start_option(self) -> str:
        """`"empty"` or `"cross"`: how the game started."""
        return STARTS[self.records["start"][0]]

    @property
    def drawing(self) -> bool:
        """Whether the seat to move has placed its point, and may draw regions or end its turn."""
        return bool(self.records["drawing"][0])

    @property
    def last_point(self) -> int | None:
        """The node of the point placed last in a turn, None at the start."""
        last = int(self.records["last"][0])
        return None if last < 0 else last

    @property
    def board(self) -> npt.NDArray[np.int8]:
        """(H, W) int8: whose point is on each node; 0 for none, else seat + 1. A copy."""
        return self._cells() & 3

    @property
    def region(self) -> npt.NDArray[np.int8]:
        """(H, W) int8: whose region each node lies in; 0 for no region, else seat + 1. A copy.

        The chain round a region is not part of the region.
        """
        return self._cells() >> 2 & 3

    def drawable(self) -> npt.NDArray[np.int64]:
        """Return the legal action that draws the core of each node, (H, W) int64; -1 if there is none."""
        actions = np.full(self.width * self.height, -1, np.int64)
        if self.drawing and self.event is None:
            _write_drawable(self.records.copy(), actions)
        return actions.reshape(self.height, self.width)

    def _cells(self) -> npt.NDArray[np.int8]:
        """Return the point and region bits of the nodes, (H, W) int8."""
        first, nodes = self.width + 1, self.width * self.height
        cells = self.records["cell"][0, first : first + nodes] & 15
        return cells.astype(np.int8).reshape(self.height, self.width)

    # Names and text

    def action_name(self, action: int) -> str:
        """Return the name of an action: `"C4"` (place a point), `"*C4"` (draw a region) or `"end"`; see `Game`."""
        nodes = self.width * self.height
        if action == 2 * nodes:
            return "end"
        drawing, node = divmod(action, nodes)
        return "*" * drawing + node_name(node, self.width, self.height)

    def action_index(self, name: str) -> int:
        """Return the action with a name; raise `ValueError` if there is none.

        A drawing may be named by any node of a core that may be drawn now.
        """
        nodes = self.width * self.height
        if name == "end" and self.num_actions > nodes:
            return 2 * nodes
        if not name.startswith("*") or self.num_actions == nodes:
            return node_index(name, self.width, self.height)
        node = node_index(name[1:], self.width, self.height)
        drawable = int(self.drawable().flat[node])
        return drawable if drawable >= 0 else nodes + node

    def describe_illegal(self, action: int) -> str:
        """Return why an action is illegal, as a message that names the action and the reason."""
        if not 0 <= action < self.num_actions:
            return f"action {short_repr(action)} is illegal: expected 0..{self.num_actions - 1}"
        what = f"action {action} ({self.action_name(action)}) is illegal for seat {self.to_move}"
        return f"{what}: {'the game is over' if self.is_over else self._reason(action)}"

    def _reason(self, action: int) -> str:
        """Return the reason why an action is illegal."""
        nodes = self.width * self.height
        if action >= nodes and not self.drawing:
            return "a turn begins with a point: place it first"
        if action < nodes and self.drawing:
            legal = " or ".join(self.action_name(int(one)) for one in self.legal_actions())
            return f"its point is placed: play {legal}"
        board, region = int(self.board.flat[action % nodes]), int(self.region.flat[action % nodes])
        if action < nodes:
            name = SEATS[(board or region) - 1]
            return f"the node is taken by {name}" if board else f"the node is inside a region of {name}"
        drawable = int(self.drawable().flat[action - nodes])
        if drawable >= 0:
            return f"that region is drawn by its lowest point, {self.action_name(drawable)}"
        return "nothing can be drawn there"

    def __str__(self) -> str:
        """Return the position as text that `from_text` reads back."""
        position = Position(
            self.board, self.region, self.to_move, self.drawing, self.last_point, self.territory, self.start_option
        )
        return write_position(position)


@jit
def _write_drawable(games: StateArray, actions: npt.NDArray[np.int64]) -> None:
    """Write the action that draws the core of each node. Changes `games[0]` temporarily, so pass a copy."""
    game = games[0]
    first, count = int(game.width) + 1, count_drawable(game)
    for number in range(count):
        node = drawable_node(game, number)
        size = flood_fill(game, mover(game), node + first, len(game.cell_list) - count)
        for i in range(size):
            actions[int(game.cell_list[i]) - first] = num_nodes(game) + node
        unmark(game, 0, size)
