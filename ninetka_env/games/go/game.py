"""`Game`: the readable Python face of one position of Go."""

from __future__ import annotations

from typing import Any, Self, Unpack

import numpy as np
import numpy.typing as npt

from ninetka_env.core import game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_count, shortened, takes_options
from ninetka_env.core.registry import Variant
from ninetka_env.core.stated import counted_result
from ninetka_env.core.verbs import Records
from ninetka_env.games.go.definition import OPTIONS, GoOptions
from ninetka_env.games.go.geometry import action_index, action_name, wide
from ninetka_env.games.go.position import check_board, hand_turn, read_records, set_up
from ninetka_env.games.go.repetition import has_superko, repeats
from ninetka_env.games.go.rules import KO_RULES, PLANE_SETS, SCORINGS, is_over, is_suicide
from ninetka_env.games.go.scoring import write_targets
from ninetka_env.games.go.text import SEATS, Position, read_position, write_position

_COMPARED = (
    "board", "to_move", "ko_point", "captured", "plies", "passes", "resigned", "komi", "max_plies", "ko", "scoring",
    "planes", "handicap", "allow_resign",
)  # fmt: skip
"""The fields that make a position, as its text tells them. The others follow from the board, but for what depends on
how it came about: orders (which stone is the head of a chain, how empty points are listed), the turns before, and the
earlier boards that superko forbids."""


class Game(game.Game):
    """One position of Go, and the game that goes on from it.

    Seat 0 is Black, seat 1 White. Actions are the points `size * (rank - 1) + file`, then the pass, then, if it is an
    action, to resign.

    Examples:
        >>> game = Game.new(komi=6.5)
        >>> game.play(game.action_index("E5"))
        >>> game.to_move, game.ply, game.scores().tolist()
        (1, 1, [81.0, 6.5])
    """

    __slots__ = ()

    name = "go"

    @classmethod
    @takes_options(OPTIONS, by_name=True)
    def new(cls, **options: Unpack[GoOptions]) -> Self:
        """Start a game.

        Args:
            **options: see `ninetka_env.games.go.definition.GoOptions`.

        Raises:
            ValueError: naming the option that is wrong and the values it may have.
        """
        return cls.start(cls.definition().variant(**options))

    @classmethod
    def from_board(cls, board: npt.ArrayLike, to_move: int = 0, **options: Any) -> Self:
        """Start from a (size, size) array of cell codes, rank 1 first: 0 empty, 1 black, 2 white.

        Args:
            board: the stones.
            to_move: the seat that acts next.
            options: as for `new`, but for `size` and `handicap`.

        Raises:
            ValueError: naming the option that is wrong, or a chain without a liberty.
        """
        cells = check_board(board)
        for name in {"size", "handicap"} & {*options}:
            raise ValueError(f"{name}={options[name]!r}: the board tells, expected nothing")
        return cls(set_up(cls.definition().variant(size=len(cells), **options), cells, to_move))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what `str(game)` wrote, or its first line; raises `ValueError` naming the word that is wrong."""
        found = read_position(text)
        variant = cls.definition().variant(
            size=len(found.board), komi=found.komi, ko=found.ko, scoring=found.scoring, max_plies=found.max_plies,
            handicap=found.handicap, planes=found.planes, allow_resign=found.allow_resign,
        )  # fmt: skip
        return cls(read_records(variant, found))

    # The position

    @property
    def board(self) -> npt.NDArray[np.int8]:
        """(size, size) int8 cell codes, rank 1 first: 0 empty, 1 black, 2 white. A read-only view, not a copy."""
        view: npt.NDArray[np.int8] = self.records["board"][0, :-1].reshape(self.size, self.size)
        view.flags.writeable = False
        return view

    @property
    def passes(self) -> int:
        """Turns passed in a row, up to now."""
        return int(self.records["passes"][0])

    def captured(self) -> npt.NDArray[np.int64]:
        """Return how many opposing stones each seat took, (2,) int64."""
        return self.records["captured"][0].astype(np.int64)

    def owners(self) -> npt.NDArray[np.int8]:
        """Return whose stone or territory each point is as the board stands, (size, size) int8 seats; -1 nobody's."""
        owners = np.zeros(self.size**2, np.int8)
        _write_owners(self.records, 0, owners)
        return owners.reshape(self.size, self.size)

    def ko_points(self) -> npt.NDArray[np.int64]:
        """Return the points, ascending, that the ko rule and nothing else forbids the seat to move to place on."""
        points = np.zeros(self.size**2, np.bool_)
        if not self.is_over:
            _write_ko_points(self.records, 0, points)
        return np.flatnonzero(points)

    @property
    def scored(self) -> bool:
        """Whether scores decide who wins: not where a seat resigned, by an event or an action."""
        return super().scored and not self.records["resigned"][0]

    def result(self) -> str:
        """Return the result as records write it: `B+2`, `W+1.5`, `B+R` by resignation, `W+T` on time, `0` if drawn.

        After a seat has left it is `B+F`; while the game is on `?`.
        """
        return counted_result(self)

    # What can be done

    def hand_turn(self, seat: int) -> None:
        """Let a seat move next, whoever's turn it is, also in a game that is over: it goes on.

        Protocols and records may show two turns of a seat in a row. The other's turn between them is not played: no
        pass, no ply; what the simple ko rule forbade it forbids no more. Passes before count no more either.
        """
        seat = check_count("seat", seat, 0, 1)
        if seat != self.to_move or self.is_over:
            self.check_writeable()
            self.event = None
            hand_turn(self.records, 0, seat)

    def with_options(self, **options: Unpack[GoOptions]) -> Self:
        """Return this position in a game with other options; it is over if its plies are at the new limit.

        Args:
            **options: all but `ko`, `size` and `handicap`, which are fixed from the start on.

        Raises:
            ValueError: naming the option that is wrong and the values it may have.
        """
        if fixed := {"ko", "size", "handicap"} & options.keys():
            raise ValueError(f"{min(fixed)}: expected none, a game that has begun keeps it")
        variant, game = self.definition().variant(**{"size": self.size, "komi": self.komi, **options}), self.copy()
        for one, code in zip(OPTIONS, variant.codes, strict=True):
            if one.name in options:
                game.records[one.name] = variant.sizes.most_plies if one.name == "max_plies" else code
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
        """How many handicap stones were on the board at the start."""
        return int(self.records["handicap"][0])

    @property
    def max_plies(self) -> int:
        """The game ends after so many plies."""
        return int(self.records["max_plies"][0])

    @property
    def allow_resign(self) -> bool:
        """Whether resigning is an action."""
        return bool(self.records["allow_resign"][0])

    @property
    def planes(self) -> str:
        """`"standard"` or `"alphazero"`."""
        return PLANE_SETS[self.records["planes"][0]]

    # What people read

    def action_name(self, action: int) -> str:
        """Name an action: the point it is played on, such as `"E5"`, `"pass"` or `"resign"`."""
        return action_name(action, self.size)

    def action_index(self, name: str) -> int:
        """Return the action of a name, in any case; raises `ValueError` for other text."""
        action = action_index(name, self.size)
        if action >= self.num_actions:
            raise ValueError(f"no action {name!r}: resigning is an action with allow_resign=True only")
        return action

    def describe_illegal(self, action: int) -> str:
        """Say why an action is illegal: over, occupied, suicide, ko or superko."""
        if not 0 <= action < self.num_actions:
            return f"action {shortened(action)} is illegal: expected 0..{self.num_actions - 1}"
        what = f"action {action} ({self.action_name(action)}) is illegal"
        if self.is_over:
            return f"{what}: the game is over"
        return f"{what} for {SEATS[self.to_move]} at ply {self.ply}: {self._reason(action)}"

    def _reason(self, point: int) -> str:
        """Say what forbids the seat to move to place a stone on a point."""
        if self.board.flat[point]:
            return "the point is occupied"
        if point == self.records["ko_point"][0]:
            return "ko, the stone just played there may not be taken back at once"
        if _is_suicide(self.records, 0, point):
            return "suicide, the stone would have no liberty"
        return f"superko ({self.ko}), the board would be one that was there before"

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
        """Compare positions, options included, and events."""
        return isinstance(other, Game) and self._key() == other._key()

    def __hash__(self) -> int:
        """Hash the position as it stands now."""
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.event, *(self.records[name].tobytes() for name in _COMPARED)

    @classmethod
    def start(cls, variant: Variant, seed: int | None = None) -> Self:
        """Start a game of a variant; nothing is drawn before the first turn, so any seed gives the same."""
        return super().start(variant, 0 if seed is None else seed)


# Entries from Python, as in `ninetka_env.core.game`


@jit
def _write_owners(games: Records, index: int, owners: npt.NDArray[np.int8]) -> None:
    write_targets(games[index], owners)


@jit
def _is_suicide(games: Records, index: int, point: int) -> bool:
    return is_suicide(games[index], point)


@jit
def _write_ko_points(games: Records, index: int, points: npt.NDArray[np.bool_]) -> None:
    game = games[index]
    if is_over(game):
        return
    for place in range(game.num_empty):
        point = wide(game.empty[place])
        if not is_suicide(game, point):
            points[point] = point == game.ko_point or (has_superko(game) and repeats(game, point))
