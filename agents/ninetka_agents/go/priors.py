"""Priors of moves of Go for tree search: virtual visits and wins that a move has before its first simulation.

Start reading at `add_move_priors`. Searches call `heuristics.py`, which calls this function.
"""

from __future__ import annotations

import numpy as np

from ninetka_agents.go.board import STEPS, in_atari, last_liberty, liberties_after, point_of
from ninetka_agents.go.patterns import is_eye, matches_pattern
from ninetka_agents.go.playout import collect_saving_moves, winner
from ninetka_agents.search.heuristics import Priors
from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import State
from ninetka_env.games.go.geometry import i64

CAPTURE_ONE, CAPTURE_MANY, SELF_ATARI, PATTERN, EYE, PASS, EMPTY_AREA = 15.0, 30.0, 10.0, 10.0, 40.0, 20.0, 10.0
"""Virtual visits for each kind of move: capturing or saving one stone, or several stones; self-atari; 3 x 3 patterns;
filling an own eye; the pass; and moves on the first three lines far from all stones. Most values are from
P. Baudis's Michi."""
NEAR_LAST_MOVE = (24.0, 22.0, 8.0)
"""Virtual visits, all won, for moves one, two and three steps from the last move."""


@jit(refcount=False)
def add_move_priors(b: State, game: State, priors: Priors) -> None:
    """Add the priors of all points and the pass; the position of `game` must be on board `b`."""
    size, colour = i64(b.size), i64(b.to_move)
    for k in range(b.num_empty):
        cell = i64(b.empty[k])
        point = point_of(cell, size)
        if is_eye(i64(b.code[cell]), colour):
            _add(priors, point, EYE, 0.0)
        elif liberties_after(b, cell, colour) < 2:
            _add(priors, point, SELF_ATARI, 0.0)
        elif matches_pattern(i64(b.code[cell])):
            _add(priors, point, PATTERN, PATTERN)
        _add_empty_area(b, priors, cell, point)
    wins_now = b.passes == 1 and winner(b, game) == colour - 1
    _add(priors, size * size, PASS, PASS if wins_now else 0.0)
    _add_captures(b, priors, colour)
    _add_near(b, priors)


@jit(refcount=False)
def _add(priors: Priors, action: int, visits: float, wins: float) -> None:
    priors[action, 0] += np.float32(visits)
    priors[action, 1] += np.float32(wins)


@jit(refcount=False)
def _add_empty_area(b: State, priors: Priors, cell: int, point: int) -> None:
    """Add the prior of a point without stones within three steps: bad on the first two lines, good on the third."""
    size = i64(b.size)
    rank, file = point // size, point % size
    height = min(rank, file, size - 1 - rank, size - 1 - file)
    if height > 2:
        return
    for up in range(-3, 4):
        reach = 3 - abs(up)
        for right in range(-reach, reach + 1):
            if 0 <= rank + up < size and 0 <= file + right < size and b.colour[cell + up * STEPS[0] + right]:
                return
    _add(priors, point, EMPTY_AREA, EMPTY_AREA if height == 2 else 0.0)


@jit(refcount=False)
def _add_captures(b: State, priors: Priors, colour: int) -> None:
    """Add the priors of moves that capture a chain in atari or save an own chain in atari."""
    size = i64(b.size)
    for row in range(1, size + 1):
        for cell in range(row * STEPS[0] + 1, row * STEPS[0] + 1 + size):
            if b.chain[cell] != cell or not in_atari(b, cell):
                continue
            weight = CAPTURE_ONE if b.stones[cell] == 1 else CAPTURE_MANY
            if b.colour[cell] != colour:
                _add(priors, point_of(last_liberty(b, cell), size), weight, weight)
                continue
            b.num_candidates = 0
            collect_saving_moves(b, cell, colour)
            for k in range(b.num_candidates):
                _add(priors, point_of(i64(b.candidates[k]), size), weight, weight)


@jit(refcount=False)
def _add_near(b: State, priors: Priors) -> None:
    """Add the priors of points near the last move; a chain counts as one step ("common fate graph", T. Graepel)."""
    if b.last == 0:
        return
    size, mark, queue = i64(b.size), b.mark, b.candidates
    for cell in range((size + 2) * STEPS[0] + 1):
        mark[cell] = 0
    first, count = 0, _flood(b, i64(b.last), 0)
    for distance in range(3):
        stop = count
        while first < stop:
            cell = i64(queue[first])
            first += 1
            for k in range(4):
                neighbour = cell + STEPS[k]
                if b.colour[neighbour] != 3 and mark[neighbour] == 0:
                    empty = b.colour[neighbour] == 0
                    count = _flood(b, neighbour, count)
                    if empty:
                        _add(priors, point_of(neighbour, size), NEAR_LAST_MOVE[distance], NEAR_LAST_MOVE[distance])


@jit(refcount=False)
def _flood(b: State, cell: int, count: int) -> int:
    """Mark an empty cell, or all stones of a cell's chain, and append them to the queue; return the queue's length."""
    stones = i64(b.stones[b.chain[cell]]) if b.colour[cell] else 1
    for _ in range(stones):
        b.mark[cell] = 1
        b.candidates[count] = cell
        count += 1
        cell = i64(b.next_stone[cell])
    return count
