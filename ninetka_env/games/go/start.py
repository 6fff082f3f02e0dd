"""How a game of Go begins: its options, and handicap stones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ninetka_env.core.chance import Streams
from ninetka_env.core.jit import inner, jit
from ninetka_env.core.options import Choice, Option, Whole, shortened
from ninetka_env.core.verbs import Codes, Record
from ninetka_env.games.go.geometry import BLACK, HANDICAP_POINTS, LARGEST, SMALLEST, USUAL, wide
from ninetka_env.games.go.repetition import MAX_PLIES, has_superko, hash_of, see
from ninetka_env.games.go.rules import KO_RULES, PLANE_SETS, SCORINGS, clear, put

HANDICAPS = (0, 2, 3, 4, 5)


FAR_TOO_MANY = 1e6
"""Points."""


@dataclass(frozen=True)
class HalfPoints(Option):
    """An option that is a number of points, halves allowed; compiled code knows it in half points.

    How many there may be depends on the size of the board: `definition` looks after that.
    """

    def encode(self, value: Any) -> int:
        """Return the number of half points."""
        number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        if not number or not abs(value) <= FAR_TOO_MANY or 2 * value != int(2 * value):
            raise ValueError(f"{self.name}={shortened(value)}: expected {self.allowed}")
        return int(2 * value)

    def decode(self, code: int) -> float:
        """Return the number of points."""
        return code / 2

    def parse(self, text: str) -> float:
        """Return the number that the text shows."""
        try:
            return self.decode(self.encode(float(text)))
        except ValueError:
            raise ValueError(f"{self.name}={shortened(text)}: expected {self.allowed}") from None

    @property
    def allowed(self) -> str:
        """The bounds."""
        return "a multiple of 0.5, for either side at most as many points as the board has"


@dataclass(frozen=True)
class PlyLimit(Whole):
    """An option that is a number of plies, or None for what is usual; compiled code knows that as 0."""

    def encode(self, value: Any) -> int:
        """Return the number."""
        return 0 if value is None else super().encode(value)

    def decode(self, code: int) -> int | None:
        """Return the number, or None."""
        return code or None

    def parse(self, text: str) -> int | None:
        """Return the number that the text shows, or None for `None`."""
        return None if text == "None" else super().parse(text)

    @property
    def allowed(self) -> str:
        """The bounds."""
        return f"{super().allowed}, or None"


OPTIONS = (
    HalfPoints("komi", 7.0, "points added to White's score, at most as many as the board has"),
    Choice("ko", "simple", "what may not be played again: the board of one move ago; by superko any earlier board, or "
           "any with the same player to move", KO_RULES),
    Choice("scoring", "area", "stones and territory; those and captured stones; or territory and captured stones",
           SCORINGS),
    Choice("handicap", 0, "black stones that are on the board at the start, White moves first; on 9 x 9 only",
           HANDICAPS),
    PlyLimit("max_plies", None, "the game ends after so many plies, unless told twice the number of points", 1,
             MAX_PLIES),
    Whole("size", USUAL, "the board has size x size points", SMALLEST, LARGEST),
    Choice("allow_resign", False, "whether resigning is an action, the one after the pass", (False, True)),
    Choice("planes", "standard", "what observations show: see `ninetka_env.games.go.observation`", PLANE_SETS),
)  # fmt: skip
"""The options of the game; compiled code knows each as an int."""


@jit(counted=False)
def start(game: Record, options: Codes, streams: Streams, index: int) -> None:
    """Start a game; nothing is drawn from the streams. See `OPTIONS`."""
    game.komi, game.ko, game.scoring, game.handicap = options[0], options[1], options[2], 0
    game.max_plies = options[4] if options[4] else 2 * len(game.empty)
    game.allow_resign, game.planes = options[6], options[7]
    clear(game)
    if options[3]:
        _give_handicap(game, options[3] + 1)
    if has_superko(game):
        see(game, hash_of(game))


@inner
def _give_handicap(game: Record, stones: int) -> None:
    """Put black stones on the first so many of `HANDICAP_POINTS`, with White to move."""
    for point in HANDICAP_POINTS[:stones]:
        put(game, wide(point), wide(BLACK))
    game.handicap = stones
    game.to_move = 1
