"""`Game`: the readable Python face of one record."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ninetka_env import rules
from ninetka_env._jit import jit
from ninetka_env.chance import Streams, make_streams, place_neutrals_at_random
from ninetka_env.geometry import EDGE, NUM_ACTIONS, NUM_SECTIONS, NUM_SLOTS, PASS, SIZE, SQUARE_SLOT, action_name
from ninetka_env.position import read_board
from ninetka_env.rules import GAME, TURN_ORDERS, Phase, Records

NEUTRAL_PLACEMENTS = ("players", "random")
"""Who places the neutral stones: the players in turn, or the seeded generator before the first turn."""


class Game:
    """One position of 9tka, and the game that goes on from it.

    Seats count from 0, sections from 0, actions are the squares 0..120 that are touched, or 121 to pass.

    >>> game = Game.new(2)
    >>> game.play(24)  # a neutral stone on C9
    >>> game.to_move, game.phase.name, game.ply
    (1, 'NEUTRAL', 1)
    """

    __slots__ = ("last_action", "passed", "records")

    records: Records
    """(1,) structured array of dtype `ninetka_env.rules.GAME`: the position itself."""
    last_action: int | None
    """The action played last, None at the start."""
    passed: tuple[int, ...]
    """The seats that the rules passed over after the last action because none of their stones can slide."""

    def __init__(self, records: Records) -> None:
        """Wrap a (1,) array of `GAME` without copying it; `Game.new` and `Game.from_board` make games."""
        self.records = records
        self.last_action = None
        self.passed = ()

    @classmethod
    def new(
        cls,
        num_players: int = 2,
        *,
        neutral_placement: str = "players",
        turn_order: str = "restart",
        auto_pass: bool = True,
        seed: int | None = None,
    ) -> Self:
        """Start a game.

        Args:
            num_players: 2, 3 or 4.
            neutral_placement: `"players"` place the neutral stones in turn; `"random"` draws one uniformly random
                legal square per section and starts with the placement phase, seat 0 to move.
            turn_order: `"restart"`: seat 0 opens every phase; `"continue"`: turns go on from phase to phase.
            auto_pass: play forced passes at once; if off, the seat to move must pass by action 121.
            seed: for `neutral_placement="random"`; None draws fresh entropy.

        Raises:
            ValueError: naming the option that is wrong and the values it may have.
        """
        options = check_options(num_players, neutral_placement, turn_order, auto_pass)
        game = cls(np.zeros(1, GAME))
        begin(game.records, 0, *options, make_streams(seed))
        return game

    @classmethod
    def from_board(
        cls,
        board: npt.ArrayLike,
        to_move: int,
        num_players: int,
        *,
        neutral_placement: str = "players",
        turn_order: str = "restart",
        auto_pass: bool = True,
    ) -> Self:
        """Set up the position of an (11, 11) array of cell codes (0 empty, seat + 1, 5 neutral), `to_move` to act.

        The phase follows from the board. With `auto_pass`, a seat that cannot slide is passed over at once.

        Raises:
            ValueError: if no game can reach the board by what counting and blocking tell; see `position.read_board`.
        """
        options = check_options(num_players, neutral_placement, turn_order, auto_pass)
        game = cls(read_board(np.asarray(board), to_move, num_players, *options[1:]))
        game.passed = _seats(_pass_over(game.records, 0))
        return game

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what `str(game)` wrote; raises `ValueError` naming the line that is wrong."""
        from ninetka_env.notation import read_game  # notation knows Game

        return read_game(text, cls)

    @property
    def board(self) -> npt.NDArray[np.int8]:
        """(11, 11) int8 cell codes: 0 empty, `seat + 1` a seat's stone, 5 neutral. A read-only view, not a copy."""
        view: npt.NDArray[np.int8] = self.records["board"][0].reshape(SIZE, SIZE)
        view.flags.writeable = False
        return view

    @property
    def num_players(self) -> int:
        """2, 3 or 4."""
        return int(self.records["num_players"][0])

    @property
    def turn_order(self) -> str:
        """`"restart"` or `"continue"`."""
        return TURN_ORDERS[self.records["turn_order"][0]]

    @property
    def auto_pass(self) -> bool:
        """Whether the rules play forced passes."""
        return bool(self.records["auto_pass"][0])

    @property
    def to_move(self) -> int:
        """The seat that acts next; when the game is over, the seat after the one that moved last."""
        return int(self.records["to_move"][0])

    @property
    def phase(self) -> Phase:
        """NEUTRAL, PLACEMENT or MOVEMENT; a finished game stays in MOVEMENT."""
        return Phase(int(self.records["phase"][0]))

    @property
    def is_over(self) -> bool:
        """Whether nobody can move any more."""
        return bool(_is_over(self.records, 0))

    @property
    def ply(self) -> int:
        """Stones set or slid so far, neutral stones included: the phases start at 0, 9 and 45. Passes do not count."""
        return int(_plies(self.records, 0))

    def legal_actions(self) -> npt.NDArray[np.int64]:
        """Return the legal actions of the seat to move, ascending, int64; empty when the game is over."""
        return np.flatnonzero(self.legal_mask())

    def legal_mask(self) -> npt.NDArray[np.int8]:
        """Return the legal actions of the seat to move as a fresh (122,) int8 array of 0 and 1."""
        mask = np.empty(NUM_ACTIONS, np.int8)
        _write_legal_mask(self.records, 0, mask)
        return mask

    def play(self, action: int) -> None:
        """Play an action for the seat to move, in place; `passed` then names the seats that were passed over.

        Raises:
            ValueError: if the action is illegal, naming the square and the phase; nothing is changed.
            TypeError: if it is no integer.
        """
        action = as_action(action)
        passed = _play_if_legal(self.records, 0, action) if 0 <= action <= PASS else -1
        if passed < 0:
            raise ValueError(describe_illegal(self, action))
        self.last_action = action
        self.passed = _seats(passed) if passed else ()

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = type(self)(self.records.copy())
        twin.last_action, twin.passed = self.last_action, self.passed
        return twin

    __copy__ = copy

    def counts(self) -> npt.NDArray[np.int8]:
        """Return the settled stones per seat and section, (n, 9) int8."""
        counts: npt.NDArray[np.int8] = self.records["counts"][0, : self.num_players].copy()
        return counts

    def section_owners(self) -> npt.NDArray[np.int8]:
        """Return the seat that owns each section, (9,) int8; -1 where nobody has strictly most stones."""
        owners = np.full(NUM_SECTIONS, -1, np.int8)
        for seat in range(self.num_players):
            owners[(self.records["owned"][0, seat] >> np.arange(NUM_SECTIONS)) & 1 == 1] = seat
        return owners

    def scores(self) -> npt.NDArray[np.int64]:
        """Return the number of sections that each seat owns, (n,) int64."""
        owners = self.section_owners()
        return np.bincount(owners[owners >= 0], minlength=self.num_players)

    def winner(self) -> int:
        """Return the seat with the highest score, among equals the latest in seat order: as the board stands now."""
        return int(_winner_of(self.records, 0))

    def movable(self) -> npt.NDArray[np.bool_]:
        """Return an (11, 11) bool array of the edge stones, of all seats, that can still slide."""
        slots = int(np.bitwise_or.reduce(self.records["movable"][0]))
        board = np.zeros(SIZE * SIZE, np.bool_)
        board[EDGE] = (slots >> np.arange(NUM_SLOTS)) & 1 == 1
        return board.reshape(SIZE, SIZE)

    def landing(self, square: int) -> int:
        """Return the square where the movable stone on edge square `square` would come to rest.

        Raises:
            ValueError: if no movable stone stands there.
        """
        if not (0 <= square < SIZE * SIZE and self.movable().flat[square]):
            name = action_name(square) if 0 <= square < PASS else f"square {square}"
            raise ValueError(f"{name}: no stone that can slide stands there")
        return int(_landing(self.records, 0, int(square)))

    def __str__(self) -> str:
        """Return the position as text that `from_text` reads back."""
        from ninetka_env.notation import write_game

        return write_game(self)

    def __repr__(self) -> str:
        """Name the place of the game in a line."""
        state = "over" if self.is_over else f"seat {self.to_move} to move"
        return f"<Game of {self.num_players}: {self.phase.name}, ply {self.ply}, {state}>"

    def __eq__(self, other: object) -> bool:
        """Compare positions, options included; how they were reached does not count."""
        return isinstance(other, Game) and self.records.tobytes() == other.records.tobytes()

    def __hash__(self) -> int:
        """Hash the position as it stands now."""
        return hash(self.records.tobytes())

    def __getstate__(self) -> tuple[Records, int | None, tuple[int, ...]]:
        return self.records, self.last_action, self.passed

    def __setstate__(self, state: tuple[Records, int | None, tuple[int, ...]]) -> None:
        self.records, self.last_action, self.passed = state


def check_options(
    num_players: Any, neutral_placement: Any, turn_order: Any, auto_pass: Any
) -> tuple[int, int, int, int]:
    """Return the four options as the ints of the compiled code; `ValueError` names the first that is wrong."""
    return (
        check_choice("num_players", num_players, (2, 3, 4)) + 2,
        check_choice("neutral_placement", neutral_placement, NEUTRAL_PLACEMENTS),
        check_choice("turn_order", turn_order, TURN_ORDERS),
        check_choice("auto_pass", auto_pass, (False, True)),
    )


def check_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> int:
    """Return the place of an option's value among the allowed ones; `ValueError` names option, value and choices."""
    is_bool = isinstance(value, (bool, np.bool_))
    for place, choice in enumerate(allowed):
        scalar = isinstance(value, (str, int, np.integer, np.bool_, type(None)))
        if scalar and isinstance(choice, bool) == is_bool and value == choice:
            return place
    raise ValueError(f"{name}={value!r}: expected one of {', '.join(map(repr, allowed))}")


def check_count(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Return an option that counts something as int; `ValueError` unless it is an integer within the bounds."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        limit = "" if most is None else f" and at most {most}"
        raise ValueError(f"{name}={value!r}: expected an integer of at least {least}{limit}")
    return int(value)


def check_scale(name: str, value: Any) -> float:
    """Return an option that scales something as float; `ValueError` unless it is a finite number of at least 0."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not 0 <= value < math.inf:
        raise ValueError(f"{name}={value!r}: expected a finite number of at least 0")
    return float(value)


def check_actions(actions: npt.ArrayLike, count: int) -> npt.NDArray[np.int64]:
    """Return one action per game as (count,) int64; `TypeError` or `ValueError` if they are no such integers."""
    chosen = np.asarray(actions)
    if chosen.dtype.kind not in "iu":
        raise TypeError(f"actions: expected integers, got {chosen.dtype}")
    if chosen.shape != (count,):
        raise ValueError(f"actions: expected shape ({count},), got {chosen.shape}")
    return np.ascontiguousarray(chosen, np.int64)


def as_action(action: Any) -> int:
    """Return an int or integer scalar as int; `TypeError` for anything else, such as floats, bools and arrays."""
    if isinstance(action, (int, np.integer)) and not isinstance(action, bool):
        return int(action)
    if isinstance(action, np.ndarray) and action.ndim == 0 and np.issubdtype(action.dtype, np.integer):
        return int(action)
    raise TypeError(f"an action is an integer 0..{PASS}, got {action!r}")


def describe_illegal(game: Game, action: int) -> str:
    """Say why `action` is illegal in `game`: the square, the phase and what is allowed."""
    what = f"action {action} ({action_name(action)})" if 0 <= action <= PASS else f"action {action}"
    if game.is_over:
        return f"{what} is illegal in phase {game.phase.name}: the game is over"
    legal = ", ".join(action_name(a) for a in game.legal_actions())
    return f"{what} is illegal for seat {game.to_move} in phase {game.phase.name}: legal are {legal}"


def _seats(bits: int) -> tuple[int, ...]:
    return tuple(seat for seat in range(bits.bit_length()) if bits >> seat & 1)


# Entries from Python into the compiled rules take an array and an index: passing a single record costs five times as
# much as passing an array.


@jit
def begin(
    games: Records,
    index: int,
    num_players: int,
    random_neutrals: int,
    turn_order: int,
    auto_pass: int,
    streams: Streams,
) -> None:
    """Start game `index` anew; with random neutrals, draw them from stream `index`."""
    rules.start(games[index], num_players, turn_order, auto_pass)
    if random_neutrals:
        place_neutrals_at_random(games[index], streams, index)


@jit
def _play_if_legal(games: Records, index: int, action: int) -> int:
    """Play and return the seats passed over, as bits; -1 if the action is illegal."""
    if not rules.is_legal(games[index], action):
        return -1
    return rules.play(games[index], action)


@jit
def _pass_over(games: Records, index: int) -> int:
    return rules.pass_over(games[index]) if games[index].phase == rules.MOVEMENT else 0


@jit
def _is_over(games: Records, index: int) -> bool:
    return rules.is_over(games[index])


@jit
def _plies(games: Records, index: int) -> int:
    return rules.plies(games[index])


@jit
def _winner_of(games: Records, index: int) -> int:
    return rules.winner_of(games[index])


@jit
def _landing(games: Records, index: int, square: int) -> int:
    return rules.landing_square(games[index], int(SQUARE_SLOT[square]))


@jit
def _write_legal_mask(games: Records, index: int, mask: npt.NDArray[np.int8]) -> None:
    rules.write_legal_mask(games[index], mask)
