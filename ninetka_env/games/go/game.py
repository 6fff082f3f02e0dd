"""`Game`: the Python interface to one position of Go. The compiled rules are in `rules`."""

from __future__ import annotations

from typing import Any, Self, Unpack

import numpy as np
import numpy.typing as npt

from ninetka_env.core import game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_count, short_repr, takes_options
from ninetka_env.core.registry import Variant
from ninetka_env.core.stated_results import counted_result
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.go.definition import OPTIONS, GoOptions
from ninetka_env.games.go.geometry import action_index, action_name, i64
from ninetka_env.games.go.position import check_board, hand_turn, make_state, set_up
from ninetka_env.games.go.repetition import has_superko, violates_superko
from ninetka_env.games.go.rules import KO_RULES, PLANE_SETS, SCORINGS, is_over, is_suicide
from ninetka_env.games.go.scoring import write_targets
from ninetka_env.games.go.text import SEAT_NAMES, Position, read_position, write_position

_COMPARED_FIELDS = (
    "board", "to_move", "ko_point", "captured", "plies", "passes", "resigned", "komi", "max_plies", "ko", "scoring",
    "planes", "handicap", "allow_resign",
)  # fmt: skip
"""The fields that `==` compares: those that the text of a position contains. The other fields follow from the board or
from the history: which stone is the head of a chain, the order of the empty points, earlier turns and boards."""


class Game(game.Game):
    """A game of Go: one position, which `play` advances in place.

    Seat 0 is Black, seat 1 White. Actions are the points `size * (rank - 1) + file`, then the pass, then, with
    `allow_resign`, resigning.

    Examples:
        >>> game = Game.new(komi=6.5)
        >>> game.play(game.action_index("E5"))
        >>> game.to_move, game.ply, game.scores().tolist()
        (1, 1, [81.0, 6.5])
    """

    __slots__ = ()

    name = "go"

    @classmethod
    @takes_options(OPTIONS, keyword_only=True)
    def new(cls, **options: Unpack[GoOptions]) -> Self:
        """Start a game.

        Args:
            **options: see `ninetka_env.games.go.definition.GoOptions`.

        Raises:
            ValueError: if an option is invalid; the message names the option and its allowed values.
        """
        return cls.start(cls.definition().variant(**options))

    @classmethod
    def from_board(cls, board: npt.ArrayLike, to_move: int = 0, **options: Any) -> Self:
        """Start a game from a position.

        Args:
            board: (size, size) cell codes, rank 1 first: 0 empty, 1 black, 2 white.
            to_move: the seat to move.
            options: as for `new`, except `size` and `handicap`.

        Raises:
            ValueError: if an option is invalid, or a chain has no liberty.
        """
        cells = check_board(board)
        for name in {"size", "handicap"} & {*options}:
            raise ValueError(f"{name}={options[name]!r}: expected no {name}, the board determines it")
        return cls(set_up(cls.definition().variant(size=len(cells), **options), cells, to_move))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read a position from the text of `str(game)`, or from the first line of that text.

        Raises:
            ValueError: if the text is not valid; the message quotes the wrong word.
        """
        found = read_position(text)
        variant = cls.definition().variant(
            size=len(found.board), komi=found.komi, ko=found.ko, scoring=found.scoring, max_plies=found.max_plies,
            handicap=found.handicap, planes=found.planes, allow_resign=found.allow_resign,
        )  # fmt: skip
        return cls(make_state(variant, found))

    # The position

    @property
    def board(self) -> npt.NDArray[np.int8]:
        """(size, size) int8 cell codes, rank 1 first: 0 empty, 1 black, 2 white; a read-only view."""
        view: npt.NDArray[np.int8] = self.records["board"][0, :-1].reshape(self.size, self.size)
        view.flags.writeable = False
        return view

    @property
    def passes(self) -> int:
        """The number of passes in a row just before this position."""
        return int(self.records["passes"][0])

    def captured(self) -> npt.NDArray[np.int64]:
        """Return how many stones of the opponent each seat has captured, (2,) int64."""
        return self.records["captured"][0].astype(np.int64)

    def owners(self) -> npt.NDArray[np.int8]:
        """Return the seat that owns each point as stone or territory, (size, size) int8; -1 for neutral points.

        No stones count as dead.
        """
        owners = np.zeros(self.size**2, np.int8)
        _write_owners(self.records, 0, owners)
        return owners.reshape(self.size, self.size)

    def ko_points(self) -> npt.NDArray[np.int64]:
        """Return the points that only the ko rule forbids to the seat to move, ascending."""
        points = np.zeros(self.size**2, np.bool_)
        if not self.is_over:
            _write_ko_points(self.records, 0, points)
        return np.flatnonzero(points)

    @property
    def decided_by_scores(self) -> bool:
        """Whether the scores decide the winner. They do not if an event, or the action to resign, ended the game."""
        return super().decided_by_scores and not self.records["resigned"][0]

    def result(self) -> str:
        """Return the result in the notation of game records.

        Examples: `B+2`, `W+1.5`, `B+R` by resignation, `W+T` on time, `B+F` if White left the game, `0` for a draw,
        and `?` if the game is not over.
        """
        return counted_result(self)

    # Changing the turn and the options

    def hand_turn(self, seat: int) -> None:
        """Give the turn to a seat, even if the other seat is to move or the game is over; the game then continues.

        GTP and game records may contain two turns of a seat in a row. The other seat's turn between them counts neither
        as a pass nor as a ply. Earlier passes and a point forbidden by simple ko have no effect any more.
        """
        seat = check_count("seat", seat, 0, 1)
        if seat != self.to_move or self.is_over:
            self.check_writeable()
            self.event = None
            hand_turn(self.records, 0, seat)

    def with_options(self, **options: Unpack[GoOptions]) -> Self:
        """Return a copy of this position with other options; the copy is over if it has reached a new limit of plies.

        Args:
            **options: any options except `ko`, `size` and `handicap`, which are fixed at the start of a game.

        Raises:
            ValueError: if an option is invalid; the message names the option and its allowed values.
        """
        if fixed := {"ko", "size", "handicap"} & options.keys():
            raise ValueError(f"{min(fixed)}: expected none, it is fixed at the start of a game")
        variant, game = self.definition().variant(**{"size": self.size, "komi": self.komi, **options}), self.copy()
        for one, code in zip(OPTIONS, variant.codes, strict=True):
            if one.name in options:
                game.records[one.name] = variant.sizes.max_plies if one.name == "max_plies" else code
        return game

    # The options

    @property
    def size(self) -> int:
        """The board has size x size points."""
        return int(self.records["empty"].shape[1] ** 0.5)

    @property
    def komi(self) -> float:
        """Points added to White's score."""
        return float(self.records["komi"][0] / 2)

    @property
    def ko(self) -> str:
        """`"simple"`, `"positional"` or `"situational"`."""
        return KO_RULES[self.records["ko"][0]]

    @property
    def scoring(self) -> str:
        """`"area"`, `"document"` or `"territory"`."""
        return SCORINGS[self.records["scoring"][0]]

    @property
    def handicap(self) -> int:
        """The number of handicap stones at the start."""
        return int(self.records["handicap"][0])

    @property
    def max_plies(self) -> int:
        """The game ends after this many plies."""
        return int(self.records["max_plies"][0])

    @property
    def allow_resign(self) -> bool:
        """Whether resigning is an action."""
        return bool(self.records["allow_resign"][0])

    @property
    def planes(self) -> str:
        """`"standard"` or `"alphazero"`."""
        return PLANE_SETS[self.records["planes"][0]]

    # Names and texts

    def action_name(self, action: int) -> str:
        """Return the name of an action: its point, such as `"E5"`, `"pass"` or `"resign"`."""
        return action_name(action, self.size)

    def action_index(self, name: str) -> int:
        """Return the action with a name; case does not matter.

        Raises:
            ValueError: if there is no such action.
        """
        action = action_index(name, self.size)
        if action >= self.num_actions:
            raise ValueError(f"no action {name!r}: resigning is an action with allow_resign=True only")
        return action

    def describe_illegal(self, action: int) -> str:
        """Return a message that says why an action is illegal: range, game over, occupied, suicide, ko or superko."""
        if not 0 <= action < self.num_actions:
            return f"action {short_repr(action)} is illegal: expected 0..{self.num_actions - 1}"
        what = f"action {action} ({self.action_name(action)}) is illegal"
        if self.is_over:
            return f"{what}: the game is over"
        return f"{what} for {SEAT_NAMES[self.to_move]} at ply {self.ply}: {self._illegal_reason(action)}"

    def _illegal_reason(self, point: int) -> str:
        """Return the reason why the seat to move may not place a stone on a point."""
        if self.board.flat[point]:
            return "the point is occupied"
        if point == self.records["ko_point"][0]:
            return "ko, the stone that has just captured may not be captured back at once"
        if _is_suicide(self.records, 0, point):
            return "suicide, the stone would have no liberty"
        return f"superko ({self.ko}), the move would repeat an earlier board"

    def __str__(self) -> str:
        """Return the position as text that `from_text` reads back."""
        record = self.records[0]
        black, white = self.captured().tolist()
        position = Position(
            self.board, self.to_move, int(record["ko_point"]), self.komi, (black, white), self.ply, self.ko,
            self.scoring, self.max_plies, self.passes, self.handicap, self.planes, self.allow_resign,
            bool(record["resigned"]),
        )  # fmt: skip
        return write_position(position)

    def __eq__(self, other: object) -> bool:
        """Return whether `other` is a game of Go with the same position, options and event."""
        return isinstance(other, Game) and self._key() == other._key()

    def __hash__(self) -> int:
        """Return the hash of the current position; it changes when an action is played."""
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.event, *(self.records[name].tobytes() for name in _COMPARED_FIELDS)

    @classmethod
    def start(cls, variant: Variant, seed: int | None = None) -> Self:
        """Start a game of a variant; the seed has no effect, because the start of Go is not random."""
        return super().start(variant, 0 if seed is None else seed)


# Compiled functions that the methods above call


@jit
def _write_owners(games: StateArray, index: int, owners: npt.NDArray[np.int8]) -> None:
    write_targets(games[index], owners)


@jit
def _is_suicide(games: StateArray, index: int, point: int) -> bool:
    return is_suicide(games[index], point)


@jit
def _write_ko_points(games: StateArray, index: int, points: npt.NDArray[np.bool_]) -> None:
    game = games[index]
    if is_over(game):
        return
    for place in range(game.num_empty):
        point = i64(game.empty[place])
        if not is_suicide(game, point):
            points[point] = point == game.ko_point or (has_superko(game) and violates_superko(game, point))
