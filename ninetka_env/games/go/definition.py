"""The options of Go and its entry in the registry of games.

The rules are in `rules.py`, the class for one position in `game.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from ninetka_env.core.options import Choice, Integer, Option, short_repr
from ninetka_env.core.registry import Definition, Limits, OptionValues, Sizes, register
from ninetka_env.games.go import choices, observation, position, rules, scoring
from ninetka_env.games.go.geometry import DEFAULT_SIZE, MAX_SIZE, MIN_SIZE, action_symmetries
from ninetka_env.games.go.repetition import MAX_PLIES
from ninetka_env.games.go.rules import KO_RULES, PLANE_SETS, SCORINGS
from ninetka_env.games.go.text import SEAT_NAMES

HANDICAPS = (0, 2, 3, 4, 5)
MAX_POINTS = 1e6
"""The largest number of points that `HalfPoints` accepts."""


@dataclass(frozen=True)
class HalfPoints(Option):
    """An option that is a multiple of 0.5 points; its code in compiled functions is the number of half points.

    The bounds depend on the size of the board, so `_sizes` checks them.
    """

    def encode(self, value: Any) -> int:
        """Return the number of half points; raise `ValueError` if the value is not valid."""
        number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        if not number or not abs(value) <= MAX_POINTS or 2 * value != int(2 * value):
            raise ValueError(f"{self.name}={short_repr(value)}: expected {self.allowed}")
        return int(2 * value)

    def decode(self, code: int) -> float:
        """Return the number of points."""
        return code / 2

    def parse(self, text: str) -> float:
        """Parse a number of points; raise `ValueError` if it is not valid."""
        try:
            return self.decode(self.encode(float(text)))
        except ValueError:
            raise ValueError(f"{self.name}={short_repr(text)}: expected {self.allowed}") from None

    @property
    def allowed(self) -> str:
        """The allowed values, for messages."""
        return "a multiple of 0.5, for either side at most as many points as the board has"


@dataclass(frozen=True)
class PlyLimit(Integer):
    """An option that is a number of plies, or None (code 0) for the default limit."""

    def encode(self, value: Any) -> int:
        """Return the number of plies, 0 for None."""
        return 0 if value is None else super().encode(value)

    def decode(self, code: int) -> int | None:
        """Return the number of plies, None for 0."""
        return code or None

    def parse(self, text: str) -> int | None:
        """Parse a number of plies or `None`."""
        return None if text == "None" else super().parse(text)

    @property
    def allowed(self) -> str:
        """The allowed values, for messages."""
        return f"{super().allowed}, or None"


OPTIONS = (
    HalfPoints("komi", 7.0, "points added to White's score, at most as many as the board has"),
    Choice("ko", "simple", "boards that a move must not repeat: the one before the opponent's move; any earlier board; "
           "any earlier board with the same player to move", KO_RULES),
    Choice("scoring", "area", "stones and territory; stones, territory and captured stones; or territory and captured "
           "stones", SCORINGS),
    Choice("handicap", 0, "black stones on the board at the start, White moves first; on 9 x 9 only", HANDICAPS),
    PlyLimit("max_plies", None, "the game ends after this many plies; by default twice the number of points", 1,
             MAX_PLIES),
    Integer("size", DEFAULT_SIZE, "the board has size x size points", MIN_SIZE, MAX_SIZE),
    Choice("allow_resign", False, "whether resigning is an action, the one after the pass", (False, True)),
    Choice("planes", "standard", "the planes of observations: see `ninetka_env.games.go.observation`", PLANE_SETS),
)  # fmt: skip
"""The options of the game, in the order of their codes in compiled functions."""


class GoOptions(TypedDict, total=False):
    """The options of Go, for type checkers; `OPTIONS` defines their defaults and checks."""

    komi: float
    """Points added to White's score: a multiple of 0.5, in absolute value at most the number of points; default 7."""
    ko: str
    """Which boards a placement must not restore. `"simple"` (the default): the board before the opponent's move.
    `"positional"`: any earlier board. `"situational"`: any earlier board with the same player to move."""
    scoring: str
    """`"area"` (the default), `"document"` (stones, territory and captured stones) or `"territory"`."""
    handicap: int
    """Black stones at the start, 0 (the default) or 2 to 5, on 9 x 9 only; White then moves first."""
    max_plies: int | None
    """The game ends after this many plies, 1..1024; None (the default) for twice the number of points."""
    size: int
    """The board has size x size points, 2..19; default 9."""
    allow_resign: bool
    """Whether resigning is an action, `size * size + 1`; default False."""
    planes: str
    """`"standard"` (the default) or `"alphazero"`; see `ninetka_env.games.go.observation`."""


def _sizes(options: OptionValues) -> Sizes:
    size = options["size"]
    points = size * size
    if abs(options["komi"]) > points:
        expected = f"a multiple of 0.5 from -{points} to {points} on a board of size {size}, such as komi=0"
        raise ValueError(f"komi={options['komi']}: expected {expected}")
    if options["handicap"] and size != DEFAULT_SIZE:
        raise ValueError(
            f"handicap={options['handicap']}: expected 0 on a board of size {size}, handicaps are for {DEFAULT_SIZE}"
        )
    return Sizes(
        rules.state_dtype(size, options["ko"] != "simple"),
        2,
        num_actions(options),
        (observation.PLANE_COUNTS[PLANE_SETS.index(options["planes"])], size, size),
        options["max_plies"] or 2 * points,
    )


def num_actions(options: OptionValues) -> int:
    """Return the number of actions: the points, the pass, and resigning with `allow_resign`."""
    return int(options["size"]) ** 2 + 1 + int(options["allow_resign"])


def _limits(size: int) -> Limits:
    points = size * size
    return Limits(players=2, actions=points + 2, choices=points + 1, targets=points)


GO = register(
    Definition(
        name="go",
        title="Go",
        version="go_v0",
        options=OPTIONS,
        sizes=_sizes,
        dtypes={
            rules.state_dtype(size, superko): _limits(size)
            for size in range(MIN_SIZE, MAX_SIZE + 1)
            for superko in (False, True)
        },
        compiled=(
            rules.start, rules.is_over, rules.is_legal, rules.num_actions, rules.write_legal_mask, rules.play,
            scoring.winner_of, scoring.write_scores, scoring.write_score_rewards, scoring.write_targets,
            observation.write_observation, position.is_consistent,
            observation.write_observation_bits, rules.write_legal_bits,
            choices.write_choices, choices.random_action, choices.playout, choices.traced_playout,
        ),
        class_path="ninetka_env.games.go.game:Game",
        seats=SEAT_NAMES,
        score_dtype=np.float64,
        renderer="ninetka_env.games.go.render",
        sgf=(1, "ninetka_env.games.go.sgf"),
        symmetries=lambda options: action_symmetries(options["size"], num_actions(options)),
    )
)  # fmt: skip
