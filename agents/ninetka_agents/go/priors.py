"""Priors of moves of Go for tree search: virtual visits and wins that a move has before its first simulation."""

from __future__ import annotations

import numpy as np

from ninetka_agents.go.board import STEPS, in_atari, last_liberty, liberties_after, point_of
from ninetka_agents.go.patterns import is_eye, is_pattern
from ninetka_agents.go.playout import save, winner
from ninetka_agents.search.knowledge import Priors
from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import Record
from ninetka_env.games.go.geometry import wide

ONE, MANY, SELF_ATARI, PATTERN, EYE, PASS, LINE = 15.0, 30.0, 10.0, 10.0, 40.0, 20.0, 10.0
"""Virtual visits for each kind of move: capturing or saving one stone, or several stones; self-atari; 3 x 3 patterns;
filling an own eye; the pass; and moves on the first three lines far from all stones. Most values are those of
P. Baudis's Michi."""
NEAR = (24.0, 22.0, 8.0)
"""Virtual visits, all won, for moves one, two and three steps from the last move."""


@jit(counted=False)
def add_all(b: Record, game: Record, priors: Priors) -> None:
    """Add the priors of all points and the pass; the position of `game` must be on board `b`."""
    size, colour = wide(b.size), wide(b.to_move)
    for k in range(b.num_empty):
        cell = wide(b.empty[k])
        point = point_of(cell, size)
        if is_eye(wide(b.code[cell]), colour):
            _add(priors, point, EYE, 0.0)
        elif liberties_after(b, cell, colour) < 2:
            _add(priors, point, SELF_ATARI, 0.0)
        elif is_pattern(wide(b.code[cell])):
            _add(priors, point, PATTERN, PATTERN)
        _add_line(b, priors, cell, point)
    wins_now = b.passes == 1 and winner(b, game) == colour - 1
    _add(priors, size * size, PASS, PASS if wins_now else 0.0)
    _add_captures(b, priors, colour)
    _add_near(b, priors)


@jit(counted=False)
def _add(priors: Priors, action: int, visits: float, wins: float) -> None:
    priors[action, 0] += np.float32(visits)
    priors[action, 1] += np.float32(wins)


@jit(counted=False)
def _add_line(b: Record, priors: Priors, cell: int, point: int) -> None:
    """Add the prior of a point without stones within three steps: bad on the first two lines, good on the third."""
    size = wide(b.size)
    rank, file = point // size, point % size
    height = min(rank, file, size - 1 - rank, size - 1 - file)
    if height > 2:
        return
    for up in range(-3, 4):
        reach = 3 - abs(up)
        for right in range(-reach, reach + 1):
            if 0 <= rank + up < size and 0 <= file + right < size and b.colour[cell + up * STEPS[0] + right]:
                return
    _add(priors, point, LINE, LINE if height == 2 else 0.0)


@jit(counted=False)
def _add_captures(b: Record, priors: Priors, colour: int) -> None:
    """Add the priors of moves that capture a chain in atari or save an own one."""
    size = wide(b.size)
    for row in range(1, size + 1):
        for cell in range(row * STEPS[0] + 1, row * STEPS[0] + 1 + size):
            if b.chain[cell] != cell or not in_atari(b, cell):
                continue
            weight = ONE if b.stones[cell] == 1 else MANY
            if b.colour[cell] != colour:
                _add(priors, point_of(last_liberty(b, cell), size), weight, weight)
                continue
            b.num_found = 0
            save(b, cell, colour)
            for k in range(b.num_found):
                _add(priors, point_of(wide(b.found[k]), size), weight, weight)


@jit(counted=False)
def _add_near(b: Record, priors: Priors) -> None:
    """Add the priors of points near the last move; a chain counts as one step ("common fate graph", T. Graepel)."""
    if b.last == 0:
        return
    size, mark, queue = wide(b.size), b.mark, b.found
    for cell in range((size + 2) * STEPS[0] + 1):
        mark[cell] = 0
    first, count = 0, _flood(b, wide(b.last), 0)
    for distance in range(3):
        stop = count
        while first < stop:
            cell = wide(queue[first])
            first += 1
            for k in range(4):
                neighbour = cell + STEPS[k]
                if b.colour[neighbour] != 3 and mark[neighbour] == 0:
                    empty = b.colour[neighbour] == 0
                    count = _flood(b, neighbour, count)
                    if empty:
                        _add(priors, point_of(neighbour, size), NEAR[distance], NEAR[distance])


@jit(counted=False)
def _flood(b: Record, cell: int, count: int) -> int:
    """Mark a cell, or all stones of its chain, and append it to the queue; return the new length of the queue."""
    stones = wide(b.stones[b.chain[cell]]) if b.colour[cell] else 1
    for _ in range(stones):
        b.mark[cell] = 1
        b.found[count] = cell
        count += 1
        cell = wide(b.after[cell])
    return count
