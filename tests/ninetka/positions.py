"""Helpers for tests of 9tka: options, random games, drawn boards, comparisons with the slow reference."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from ninetka.reference import ReferenceGame

from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.observation import SHAPE, write_observation
from ninetka_env.games.ninetka.rules import Phase


class Options(NamedTuple):
    """The options of a game, with methods that start games with them."""

    num_players: int
    neutral_placement: str = "players"
    turn_order: str = "restart"
    auto_pass: bool = True

    def __str__(self) -> str:
        passes = "auto_pass" if self.auto_pass else "pass"
        return f"{self.num_players}-{self.neutral_placement}-{self.turn_order}-{passes}"

    def new_game(self, seed: int = 0) -> Game:
        """Start a game."""
        return Game.new(**self._asdict(), seed=seed)

    def from_board(self, board: npt.ArrayLike, to_move: int) -> Game:
        """Return a game with these options that starts from a board."""
        return Game.from_board(board, to_move, **self._asdict())

    def reference_of(self, game: Game) -> ReferenceGame:
        """Return a game of the slow reference in the position of `game`."""
        reference = ReferenceGame(self.num_players, self.turn_order, self.auto_pass)
        reference.board = game.board.tolist()
        reference.to_move, reference.phase, reference.passed = game.to_move, int(game.phase), list(game.passed)
        return reference


ALL_OPTIONS = [
    Options(*choice)
    for choice in itertools.product((2, 3, 4), ("players", "random"), ("restart", "continue"), (True, False))
]


def random_action(game: Game, rng: np.random.Generator) -> int:
    """Return a random legal action."""
    return int(rng.choice(game.legal_actions()))


def random_positions(options: Options, seed: int) -> Iterator[Game]:
    """Play a random game and yield it, the same object, at the start and after each action."""
    rng = np.random.default_rng(seed)
    game = options.new_game(seed)
    yield game
    while not game.is_over:
        game.play(random_action(game, rng))
        yield game


def random_position(options: Options, seed: int, plies: int) -> Game:
    """Return a random game after `plies` actions, or at its end if that comes first."""
    return next(game for ply, game in enumerate(random_positions(options, seed)) if ply == plies or game.is_over)


def position_after(options: Options, seed: int, phase: Phase, plies: int) -> Game:
    """Return a random game `plies` actions into `phase`, or at its end if that comes first."""
    played = 0
    for game in random_positions(options, seed):
        if game.phase == phase and (played == plies or game.is_over):
            break
        played += game.phase == phase
    return game


any_options = st.sampled_from(ALL_OPTIONS)
seeds = st.integers(0, 2**32 - 1)


@st.composite
def positions(draw: st.DrawFn) -> tuple[Options, Game]:
    """Draw options, and any position of a random game with these options."""
    options = draw(any_options)
    game = random_position(options, draw(seeds), draw(st.integers(0, 84)))
    return options, game


@jit
def _draw(games: StateArray, viewer: int, planes: npt.NDArray[np.int8]) -> None:
    write_observation(games[0], viewer, planes)


def observe(game: Game, viewer: int) -> npt.NDArray[np.int8]:
    """Return the observation of a viewer. The array is filled with 7 first, to show values that are not written."""
    planes = np.full(SHAPE, 7, np.int8)
    _draw(game.records, viewer, planes.reshape(-1))
    return planes


def assert_equal(game: Game, reference: ReferenceGame) -> None:
    """Compare everything that the slow reference computes about a position."""
    legal = reference.legal_actions()
    assert game.board.tolist() == reference.board
    assert game.is_over == reference.is_over()
    assert game.to_move == reference.to_move
    assert game.phase == reference.phase
    assert list(game.passed) == sorted(reference.passed)
    assert game.legal_actions().tolist() == legal
    assert game.legal_mask().tolist() == [int(action in legal) for action in range(122)]
    if game.phase == Phase.MOVEMENT:
        assert_equal_scores(game, reference)
    else:
        assert not game.counts().any()
        assert (game.section_owners() == -1).all()


def assert_equal_scores(game: Game, reference: ReferenceGame) -> None:
    """Compare the counts and owners of sections; every five plies and at the end, compare scores and winner as well."""
    assert game.counts().tolist() == reference.section_counts()
    assert game.section_owners().tolist() == reference.owners()
    if game.ply % 5 == 0 or game.is_over:  # in the reference, these two are the slowest
        assert game.scores().tolist() == reference.scores()
        assert game.winner() == reference.winner()


def board_of(picture: str) -> npt.NDArray[np.int8]:
    """Return the board of a drawing, eleven rows: `.` empty, 1..4 stones of seats 0..3 (cell codes), `#` neutral."""
    return np.array([[".1234#".index(cell) for cell in row] for row in picture.split()], np.int8)


def picture_of(game: Game) -> list[str]:
    """Return the board of a game as `board_of` reads it, one text per row."""
    return ["".join(".1234#"[cell] for cell in row) for row in game.board.tolist()]


TWO_PLAYERS = """
.121212121.
1.........2
2.#..#..#.1
1.........2
2.........1
1.#..#..#.2
2.........1
1.........2
2.#..#..#.1
1.........2
.212121212.
"""
"""The start of the movement phase: a full edge."""


def square(row: int, col: int) -> int:
    """Return the index of a square, which is also its action."""
    return 11 * row + col
