"""`Case`, the game under test: it plays games for the checks, compares values and reports failures.

The checks are in `rules.py`, `environments.py`, `searchable.py` and `serialization.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from ninetka_env.core import verbs
from ninetka_env.core.game import Game
from ninetka_env.core.options import short_repr
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import Mask, StateArray

GUARD_SIZE = 64
"""Number of guard elements after an array that a game writes to; they detect writes out of bounds."""


class ConformanceError(AssertionError):
    """A game violates the contract; the message gives the check, the game, the seed and the ply."""


class Case:
    """The game under test, and the seed and ply that a check has reached."""

    def __init__(self, variant: Variant, games: int = 2, seed: int = 0) -> None:
        """Prepare to check `games` random games with the seeds `seed`, `seed` + 1, ..."""
        self.variant, self.games = variant, games
        self._first_seed = self.seed = seed
        self.ply = 0
        """Number of actions played so far in the current game."""

    def fail(self, message: str) -> NoReturn:
        """Raise `ConformanceError`."""
        raise ConformanceError(message)

    def start(self) -> Game:
        """Start a game from the current seed."""
        self.ply = 0
        game: Game = self.variant.game_class.start(self.variant, self.seed)
        return game

    def seeds(self) -> Iterator[int]:
        """Yield the seed of each game and set `seed` and `ply`."""
        for number in range(self.games):
            self.seed, self.ply = self._first_seed + number, 0
            yield self.seed

    def positions(self) -> Iterator[Game]:
        """Play random games; yield each game at its start and after each action. The `Game` is changed in place."""
        for seed in self.seeds():
            rng = np.random.default_rng(seed)
            yield from self.play(lambda legal, rng=rng: int(rng.choice(legal)))  # type: ignore[misc]

    def play(self, choose: Callable[[npt.NDArray[np.int64]], int]) -> Iterator[Game]:
        """Play one game with actions that `choose` selects from the legal actions; yield as `positions` does."""
        game, max_plies = self.start(), self.variant.sizes.max_plies
        yield game
        while not game.is_over:
            if self.ply == max_plies:
                self.fail(f"the game is not over after {max_plies} actions, the maximum in Sizes.max_plies")
            game.play(choose(self.legal_actions(game)))
            self.ply += 1
            yield game

    def legal_actions(self, game: Game) -> npt.NDArray[np.int64]:
        """Return the legal actions; fail if there are none."""
        legal = game.legal_actions()
        if len(legal) == 0:
            self.fail("no action is legal, but the game is not over")
        return legal

    def check_equal(self, found: Any, expected: Any, what: str) -> None:
        """Fail unless two values are equal; arrays are compared bit for bit."""
        if isinstance(expected, np.ndarray):
            equal = np.shape(found) == expected.shape and found.tobytes() == expected.tobytes()
        else:
            equal = bool(found == expected)
        if not equal:
            self.fail(f"{what}: found {_on_one_line(found)}, expected {_on_one_line(expected)}")

    def check_same_states(self, found: StateArray, expected: StateArray, what: str) -> None:
        """Fail unless two arrays of one state are equal byte for byte."""
        if found.tobytes() != expected.tobytes():
            names = [name for name in found.dtype.names or () if found[name].tobytes() != expected[name].tobytes()]
            where = f"in {', '.join(names)}" if names else "in the padding: replace padding by fields"
            self.fail(f"{what}, {where}")

    def check_same_planes(self, found: npt.NDArray[np.int8], expected: npt.NDArray[np.int8], what: str) -> None:
        """Fail unless two observations are equal."""
        if found.shape != expected.shape or (found != expected).any():
            planes = np.flatnonzero((found != expected).any(axis=(1, 2))) if found.shape == expected.shape else [-1]
            self.fail(f"{what}; the first plane that differs is {int(planes[0])}")

    def observe(self, game: Game, viewer: int) -> npt.NDArray[np.int8]:
        """Return the observation of a seat, (C, H, W) int8; elements that the game does not write are 2."""
        size = int(np.prod(self.variant.sizes.planes))
        planes = np.full(size + GUARD_SIZE, 2, np.int8)[:size]
        verbs.write_observation(game.records[0], viewer, planes)
        return planes.reshape(self.variant.sizes.planes)

    def mask_of(self, game: Game, seat: int) -> Mask:
        """Return the expected mask of a seat: all zero unless the seat is to move."""
        shown = seat == game.to_move and not game.is_over
        return game.legal_mask() if shown else np.zeros(self.variant.num_actions, np.int8)


Check: TypeAlias = Callable[[Case], None]
"""A check; it raises `ConformanceError`, or another exception, if the game violates the contract."""


def _on_one_line(value: Any) -> str:
    return " ".join(short_repr(value).split())
