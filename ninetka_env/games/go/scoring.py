"""Scores, winner, rewards and ownership of points in Go.

No stones are removed as dead (J. Tromp and B. Taylor, "The logical rules of Go"); `ninetka_agents.go.status` estimates
dead stones. An empty region is the territory of a seat if only stones of that seat are next to it; otherwise, as on the
empty board, it is neutral.

    "area"       stones + territory                Chinese scoring
    "document"   stones + territory + captured     the sum in the document that the project started from
    "territory"  territory + captured              Japanese scoring, without agreement about dead stones

The komi is added to White's score. With an integer komi the scores may be equal: the game is drawn, a *jigo*.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit
from ninetka_env.core.outcome import DRAWN
from ninetka_env.core.verbs import State
from ninetka_env.games.go.geometry import BLACK, NOT_FIRST_FILE, NOT_LAST_FILE, WHITE, table_offset
from ninetka_env.games.go.scratch import LENGTH, Bytes, scratch

AREA, DOCUMENT, TERRITORY = 0, 1, 2
"""Indices in `rules.SCORINGS`."""

_OFFSET = 32
"""The index of the board's first point in scratch arrays, so that the rank below the board can be read."""


@jit(refcount=False)
def winner_of(game: State) -> int:
    """Return the opponent of a seat that has resigned; else the seat with more points, or `DRAWN`."""
    if game.resigned:
        return 2 - game.resigned
    black, white = points_of(game)
    if 2 * black == 2 * white + game.komi:
        return DRAWN
    return int(2 * black < 2 * white + game.komi)


@jit(refcount=False)
def write_scores(game: State, scores: npt.NDArray[Any]) -> None:
    """Write the points of Black, and of White including komi, into `scores`, (2,) float."""
    black, white = points_of(game)
    scores[0] = black
    scores[1] = white + game.komi / 2


@jit(refcount=False)
def write_score_rewards(game: State, rewards: npt.NDArray[np.float32]) -> None:
    """Write the rewards (own score - other score) / number of points into `rewards`, (2,) float32.

    They are limited to -1..1. After a resignation, they are 1 for the winner and -1 for the loser.
    """
    black, white = points_of(game)
    lead = min(max((black - white - game.komi / 2) / len(game.empty), -1.0), 1.0)
    if game.resigned:
        lead = 1.0 if game.resigned == 2 else -1.0
    rewards[0] = lead
    rewards[1] = -lead


@jit(refcount=False)
def write_targets(game: State, targets: npt.NDArray[np.int8]) -> None:
    """Write the seat that owns each point, as stone or territory, into `targets`, (points,) int8; -1 if neutral."""
    reach = scratch()
    _write_reach(game, reach)
    for point in range(len(game.empty)):
        who = reach[_OFFSET + point]
        targets[point] = 0 if who == BLACK else 1 if who == WHITE else -1


@jit(refcount=False)
def points_of(game: State) -> tuple[int, int]:
    """Return the points of Black and White, without komi, by the game's option `scoring`."""
    reach = scratch()
    _write_reach(game, reach)
    here = reach[_OFFSET : _OFFSET + len(game.empty)]
    black, white = np.uint16(0), np.uint16(0)  # 16 bits, so that the loop uses vector instructions
    for point in range(len(here)):
        black = np.uint16(black + (here[point] == BLACK))
        white = np.uint16(white + (here[point] == WHITE))
    if game.scoring == AREA:
        return int(black), int(white)
    return int(black) + _points_beyond_area(game, 0), int(white) + _points_beyond_area(game, 1)


@jit(refcount=False)
def _points_beyond_area(game: State, seat: int) -> int:
    """Return the points, possibly negative, that `"document"` or `"territory"` scoring adds to the area of a seat."""
    stones = 0
    if game.scoring == TERRITORY:
        for point in range(len(game.empty)):
            stones += game.board[point] == seat + 1
    return game.captured[seat] - stones


@jit(refcount=False)
def _write_reach(game: State, reach: Bytes) -> None:
    """Write the colours that each point p reaches into `reach[_OFFSET + p]`, as a cell code, or 3 for both colours.

    A point reaches the colour of its own stone, or of the stones around its empty region. The colours spread over empty
    points from neighbour to neighbour, on the whole board at once, until nothing changes.
    """
    points = len(game.empty)
    empty, spread = scratch(), scratch()
    for place in range(LENGTH):
        reach[place] = spread[place] = empty[place] = 0
    here = reach[_OFFSET : _OFFSET + points]
    for point in range(points):
        here[point] = game.board[point]
        empty[point] = 255 if game.board[point] == 0 else 0
    changed, padded_length = 1, (points + 31) // 32 * 32
    while changed:
        changed = _spread(points, empty, reach, spread)
        for place in range(_OFFSET, _OFFSET + padded_length):
            reach[place] = spread[place]


@jit(inline=True, refcount=False)
def _spread(points: int, empty: Bytes, old: Bytes, new: Bytes) -> int:
    """Write `old` into `new`, with its colours spread by one step to empty points; return 0 if nothing changes.

    The loop also covers the cells after the last point, up to a multiple of 32. They are not empty, so they stay 0.
    """
    size, first, changed = int(math.sqrt(points)), table_offset(points), np.uint8(0)
    padded_length = (points + 31) // 32 * 32
    here, target = old[_OFFSET : _OFFSET + padded_length], new[_OFFSET : _OFFSET + padded_length]
    left, right = old[_OFFSET - 1 : _OFFSET - 1 + padded_length], old[_OFFSET + 1 : _OFFSET + 1 + padded_length]
    below, above = (
        old[_OFFSET - size : _OFFSET - size + padded_length],
        old[_OFFSET + size : _OFFSET + size + padded_length],
    )
    not_left, not_right = NOT_FIRST_FILE[first : first + padded_length], NOT_LAST_FILE[first : first + padded_length]
    for place in range(padded_length):
        around = (left[place] & not_left[place]) | (right[place] & not_right[place]) | below[place] | above[place]
        target[place] = here[place] | (around & empty[place])
        changed = np.uint8(changed | (target[place] ^ here[place]))
    return int(changed)
