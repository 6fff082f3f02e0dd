"""How a game of Kropki begins: its options, and the cross."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_env.core.chance import Streams
from ninetka_env.core.jit import jit
from ninetka_env.core.options import Choice, Whole
from ninetka_env.core.verbs import Codes, Record
from ninetka_env.games.kropki.geometry import LEAST_SIDE, MOST_HEIGHT, MOST_WIDTH
from ninetka_env.games.kropki.rules import TERRITORIES, clear

STARTS = ("empty", "cross")
"""What stands on the board before the first turn: nothing, or two points of each seat in the middle."""
CROSS_POINTS = 4

OPTIONS = (
    Whole("width", 10, "columns of the board", LEAST_SIDE, MOST_WIDTH),
    Whole("height", 10, "rows of the board", LEAST_SIDE, MOST_HEIGHT),
    Choice("territory", "declared", "regions are drawn by the players after they have placed a point, or all at once "
           "by the rules", TERRITORIES),
    Choice("start", "empty", "the board begins empty, or with a cross of four points in the middle", STARTS),
)  # fmt: skip
"""The options of the game; compiled code knows the sides as they are and the others by the places of their values."""


@jit
def start(game: Record, options: Codes, streams: Streams, index: int) -> None:
    """Start a game; nothing is drawn from `streams`. See `OPTIONS`."""
    clear(game, options[0], options[1], options[2])
    if options[3]:
        place_cross(game)


@jit
def place_cross(game: Record) -> None:
    """Put the cross of match rules (tensu.ru, 4.2) on an empty board: Black up left and down right of its middle."""
    game.crossed = 1
    game.free -= CROSS_POINTS
    width = int(game.width)
    corner = (int(game.height) // 2) * width + width // 2  # the row above the middle is row height // 2 - 1
    for seat in range(2):
        for place in (corner + seat, corner + width + 1 - seat):  # two of a seat are one group, and enclose nothing
            game.cell[place] = int(game.cell[place]) | seat + 1
            game.label[place] = corner + seat


def start_points(width: int, height: int) -> npt.NDArray[np.int8]:
    """Return whose point stands on each node after `place_cross`, (N,) int8: 0 nobody's, seat + 1."""
    points = np.zeros((height, width), np.int8)
    points[height // 2 - 1 : height // 2 + 1, width // 2 - 1 : width // 2 + 1] = [[1, 2], [2, 1]]
    return points.ravel()
