"""`Game`: the Python API of one position of 9tka. Compiled code uses `rules` instead."""

from __future__ import annotations

from typing import Self, Unpack

import numpy as np
import numpy.typing as npt

from ninetka_env.core import game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import takes_options
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka import rules
from ninetka_env.games.ninetka.definition import OPTIONS, NinetkaOptions
from ninetka_env.games.ninetka.geometry import (
    EDGE,
    NEUTRAL_STONE,
    NUM_NEUTRALS,
    NUM_SECTIONS,
    NUM_SLOTS,
    NUM_SQUARES,
    PASS,
    SIZE,
    SQUARE_SLOT,
    action_index,
    action_name,
    square_name,
)
from ninetka_env.games.ninetka.position import read_board
from ninetka_env.games.ninetka.rules import NEUTRAL_PLACEMENTS, TURN_ORDERS, Phase
from ninetka_env.games.ninetka.text import read_position, seat_label, write_position


class Game(game.Game):
    """A game of 9tka: one position, which `play` advances in place.

    Seats and sections count from 0. Actions 0..120 are squares: the square that gets a neutral stone, the edge square
    that gets a stone, or the edge square whose stone slides. Action 121 passes.

    Examples:
        >>> game = Game.new(2)
        >>> game.play(24)  # a neutral stone on C9
        >>> game.to_move, game.phase.name, game.ply
        (1, 'NEUTRAL', 1)
    """

    __slots__ = ()

    name = "ninetka"

    @classmethod
    @takes_options(OPTIONS, keyword_only=True)
    def new(cls, num_players: int = 2, *, seed: int | None = None, **options: Unpack[NinetkaOptions]) -> Self:
        """Start a game.

        Args:
            num_players: 2, 3 or 4.
            seed: for `neutral_placement="random"`; None uses fresh entropy.
            **options: see `ninetka_env.games.ninetka.definition.NinetkaOptions`.

        Raises:
            ValueError: if an option is wrong; the message names the option and its allowed values.
        """
        return cls.start(cls.definition().variant(num_players=num_players, **options), seed)

    @classmethod
    @takes_options(OPTIONS[1:], keyword_only=True)
    def from_board(
        cls, board: npt.ArrayLike, to_move: int, num_players: int, **options: Unpack[NinetkaOptions]
    ) -> Self:
        """Return a position with this board and seat `to_move` to move.

        The phase follows from the board. With `auto_pass`, a seat that cannot slide is passed over at once.

        Args:
            board: (11, 11) cell codes: 0 empty, seat + 1, 5 neutral.
            to_move: the seat to move.
            num_players: 2, 3 or 4.
            **options: as for `new`.

        Raises:
            ValueError: if an option is wrong, or a check of `position.read_board` finds the position impossible.
        """
        codes = cls.definition().variant(num_players=num_players, **options).codes
        game = cls(read_board(np.asarray(board), to_move, num_players, *codes[1:]))
        passed = int(_pass_over(game.records, 0))
        game.passed = tuple(seat for seat in range(num_players) if passed >> seat & 1)
        return game

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Parse a position that `str(game)` returned; raise `ValueError` with the number of a wrong line."""
        found = read_position(text)
        errors = []
        for neutral_placement in NEUTRAL_PLACEMENTS:  # the text does not contain this option
            try:
                game = cls.from_board(
                    found.board, found.to_move, found.num_players, neutral_placement=neutral_placement,
                    turn_order=found.turn_order, auto_pass=found.auto_pass,
                )  # fmt: skip
            except ValueError as error:
                errors.append(error)
                continue
            if game.to_move == found.to_move:
                return game
            errors = [ValueError(f"{seat_label(found.to_move)}: none of its stones can slide, so it is passed over")]
            break
        raise ValueError(f"{found.source_lines}: {errors[0]}")

    def drawn_actions(self) -> tuple[int, ...]:
        """Return the squares of the randomly placed neutral stones; this must be a start position."""
        return tuple(np.flatnonzero(self.records["board"][0] == NEUTRAL_STONE).tolist())

    @classmethod
    def start_from(cls, variant: Variant, drawn: tuple[int, ...]) -> Self:
        """Return the start position of `variant` with randomly placed neutral stones on the squares `drawn`.

        Raises:
            ValueError: if the squares are not possible for the neutral stones; or if squares are given, but the players
                place the neutral stones.
        """
        if variant.options["neutral_placement"] == "players":
            if drawn:
                raise ValueError(f"{len(drawn)} neutral stones are given, but the players place them")
            return cls.start(variant)
        if PASS in drawn:
            raise ValueError(f"no square {action_name(PASS)!r}: expected {NUM_NEUTRALS} squares of neutral stones")
        if len(drawn) != NUM_NEUTRALS or len({*drawn} & {*range(NUM_SQUARES)}) != NUM_NEUTRALS:
            named = " ".join(square_name(square) for square in drawn[: 2 * NUM_NEUTRALS])
            raise ValueError(f"neutral stones on {named or 'no square'}: expected {NUM_NEUTRALS} different squares")
        board = np.zeros((SIZE, SIZE), np.int8)
        board.flat[list(drawn)] = NEUTRAL_STONE
        return cls.from_board(board, 0, **variant.options)

    @property
    def board(self) -> npt.NDArray[np.int8]:
        """(11, 11) int8 cell codes: 0 empty, `seat + 1` a seat's stone, 5 neutral. A read-only view, not a copy."""
        view: npt.NDArray[np.int8] = self.records["board"][0].reshape(SIZE, SIZE)
        view.flags.writeable = False
        return view

    @property
    def turn_order(self) -> str:
        """`"restart"` or `"continue"`."""
        return TURN_ORDERS[self.records["turn_order"][0]]

    @property
    def auto_pass(self) -> bool:
        """Whether the rules play forced passes."""
        return bool(self.records["auto_pass"][0])

    @property
    def phase(self) -> Phase:
        """NEUTRAL, PLACEMENT or MOVEMENT; a finished game stays in MOVEMENT."""
        return Phase(int(self.records["phase"][0]))

    def counts(self) -> npt.NDArray[np.int8]:
        """Return the settled stones per seat and section, (n, 9) int8."""
        counts: npt.NDArray[np.int8] = self.records["counts"][0, : self.num_players].copy()
        return counts

    def section_owners(self) -> npt.NDArray[np.int8]:
        """Return the seat that owns each section, (9,) int8; -1 where no seat has strictly most stones."""
        owners = np.full(NUM_SECTIONS, -1, np.int8)
        for seat in range(self.num_players):
            owners[(self.records["owned"][0, seat] >> np.arange(NUM_SECTIONS)) & 1 == 1] = seat
        return owners

    def movable(self) -> npt.NDArray[np.bool_]:
        """Return an (11, 11) bool array of the edge stones, of all seats, that can still slide."""
        slots = int(np.bitwise_or.reduce(self.records["movable"][0]))
        board = np.zeros(SIZE * SIZE, np.bool_)
        board[EDGE] = (slots >> np.arange(NUM_SLOTS)) & 1 == 1
        return board.reshape(SIZE, SIZE)

    def landing(self, square: int) -> int:
        """Return the square where the movable stone on edge square `square` would come to rest.

        Raises:
            ValueError: if there is no movable stone on `square`.
        """
        if not (0 <= square < SIZE * SIZE and self.movable().flat[square]):
            name = action_name(square) if 0 <= square < PASS else f"square {square}"
            raise ValueError(f"{name}: no stone that can slide stands there")
        return int(_landing(self.records, 0, int(square)))

    def action_name(self, action: int) -> str:
        """Return the name of an action: its square, such as `"C11"`, or `"pass"`."""
        return action_name(action)

    def action_index(self, name: str) -> int:
        """Return the action with a name; raise `ValueError` if there is none."""
        return action_index(name)

    def __str__(self) -> str:
        """Return the position as text that `from_text` reads back."""
        return write_position(self.board, self.to_move, self.num_players, self.turn_order, self.auto_pass)

    def __repr__(self) -> str:
        """Return a summary: number of players, phase, ply and seat to move."""
        state = "over" if self.is_over else f"seat {self.to_move} to move"
        return f"<Game of {self.num_players}: {self.phase.name}, ply {self.ply}, {state}>"

    def _where(self) -> str:
        return f" in phase {self.phase.name}"


@jit
def _pass_over(games: StateArray, index: int) -> int:
    return rules.pass_over(games[index])


@jit
def _landing(games: StateArray, index: int, square: int) -> int:
    return rules.landing_square(games[index], int(SQUARE_SLOT[square]))
