"""Tic-tac-toe as a complete game: only the required functions of `ninetka_env.core.verbs`, and symmetries."""

from __future__ import annotations

from typing import Self

import numpy as np

from ninetka_env.core import game
from ninetka_env.core.jit import jit, readonly_array
from ninetka_env.core.outcome import DRAWN
from ninetka_env.core.random_streams import Streams
from ninetka_env.core.registry import Definition, Limits, Sizes, register
from ninetka_env.core.verbs import Mask, OptionCodes, State

FIELDS = [("board", np.int8, (9,)), ("num_players", np.int8), ("to_move", np.int8), ("plies", np.int8)]
"""A square is 0 if empty, else seat + 1. Fields of single bytes need no padding, so equal games have equal bytes."""
TICTACTOE = np.dtype((np.record, np.dtype(FIELDS)))

SQUARES = np.arange(9).reshape(3, 3)
LINES = readonly_array([*SQUARES, *SQUARES.T, SQUARES.diagonal(), SQUARES[::-1].diagonal()], np.int64)
SYMMETRIES = readonly_array([np.rot90(board, k).ravel() for board in (SQUARES, SQUARES.T) for k in range(4)], np.int64)
"""(8, 9): the image of each square under each symmetry of the board; the first is the identity."""
MARKS = ".XO"


# The rules


@jit
def start(game: State, options: OptionCodes, streams: Streams, index: int) -> None:
    """Clear the board; there are no options and no random draws."""
    for square in range(9):
        game.board[square] = 0
    game.num_players, game.to_move, game.plies = 2, 0, 0


@jit
def num_actions(game: State) -> int:
    """Return 9: the squares."""
    return 9


@jit
def winner_of(game: State) -> int:
    """Return the seat that has three in a row, or `DRAWN`."""
    for line in range(len(LINES)):
        first = game.board[LINES[line, 0]]
        if first != 0 and first == game.board[LINES[line, 1]] and first == game.board[LINES[line, 2]]:
            return first - 1
    return DRAWN


@jit
def is_over(game: State) -> bool:
    """Return whether the board is full or a seat has three in a row."""
    return game.plies == 9 or winner_of(game) != DRAWN


@jit
def is_legal(game: State, action: int) -> bool:
    """Return whether the square is empty and the game is not over."""
    return 0 <= action < 9 and game.board[action] == 0 and not is_over(game)


@jit
def write_legal_mask(game: State, mask: Mask) -> None:
    """Write 1 for each legal square, 0 for the others."""
    for square in range(9):
        mask[square] = is_legal(game, square)


@jit
def play(game: State, action: int) -> int:
    """Put a mark on a square."""
    game.board[action] = game.to_move + 1
    game.to_move = 1 - game.to_move
    game.plies += 1
    return 0


@jit
def write_observation(game: State, viewer: int, planes: Mask) -> None:
    """Write three planes: the viewer's marks, the opponent's marks, ones."""
    for square in range(9):
        planes[square] = game.board[square] == viewer + 1
        planes[9 + square] = game.board[square] == 2 - viewer
        planes[18 + square] = 1


# The class Game


class Game(game.Game):
    """One position of tic-tac-toe."""

    __slots__ = ()

    name = "tictactoe"

    @classmethod
    def new(cls) -> Self:
        """Start a game."""
        return cls.start(cls.definition().variant())

    def action_name(self, action: int) -> str:
        """Name a square, such as `"b3"`: column b, third row from the top."""
        return "abc"[action % 3] + "123"[action // 3]

    def action_index(self, name: str) -> int:
        """Return the square with this name."""
        if len(name) != 2 or name[0] not in "abc" or name[1] not in "123":
            raise ValueError(f"no square {name!r}: expected a1 to c3")
        return "abc".index(name[0]) + 3 * "123".index(name[1])

    def __str__(self) -> str:
        """Return the three rows; the number of marks determines the seat to move."""
        return "\n".join("".join(MARKS[code] for code in row) for row in self.records["board"][0].reshape(3, 3))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Parse a position from three rows, as `str` writes them."""
        if len(text.split()) != 3 or any(len(row) != 3 or set(row) - set(MARKS) for row in text.split()):
            raise ValueError("expected three rows of three characters, each one of . X O")
        codes = [MARKS.index(mark) for mark in "".join(text.split())]
        if not 0 <= codes.count(1) - codes.count(2) <= 1:
            raise ValueError(f"{codes.count(1)} X and {codes.count(2)} O: expected equal numbers, or one X more")
        found = cls.new()
        found.records["board"][0] = codes
        found.records["plies"] = 9 - codes.count(0)
        found.records["to_move"] = found.ply % 2
        return found


DEFINITION = register(
    Definition(
        name="tictactoe",
        title="Tic-tac-toe",
        version="tictactoe_v0",
        options=(),
        sizes=lambda options: Sizes(TICTACTOE, num_players=2, num_actions=9, planes=(3, 3, 3), max_plies=9),
        dtypes={TICTACTOE: Limits(players=2, actions=9, choices=9)},
        compiled=(start, num_actions, winner_of, is_over, is_legal, write_legal_mask, play, write_observation),
        class_path="toy.tictactoe:Game",
        seats=("crosses", "noughts"),
        symmetries=lambda options: SYMMETRIES,
    )
)
