"""Plain max^n without pruning or incremental evaluation, compiled to reach the depth of Stefani et al. (2019).

`benchmarks.search` compares the faster search of the agent MaxN with it.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from ninetka_agents.ninetka.maxn import write_evaluation
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka.geometry import MAX_PLAYERS, NUM_SLOTS, PASS, SLOT_SQUARE
from ninetka_env.games.ninetka.rules import STATE_DTYPE, end_turn, is_over, must_pass, pass_over, slide


@numba.njit  # not cached: numba cannot cache recursion
def _visit(stack: StateArray, values: npt.NDArray[np.int64], level: int, depth: int) -> int:
    """Write the values of `stack[level]` to `values[level]`, evaluating every leaf from scratch; return the best slot.

    Return -1 at a leaf.
    """
    game = stack[level]
    if depth == 0 or is_over(game):
        write_evaluation(game, values[level])
        return -1
    best = -1
    for slot in range(NUM_SLOTS):
        if game.movable[game.to_move] >> slot & 1:
            stack[level + 1] = game
            slide(stack[level + 1], slot)
            end_turn(stack[level + 1])
            _visit(stack, values, level + 1, depth - 1)
            if best < 0 or values[level + 1, game.to_move] > values[level, game.to_move]:
                best = slot
                values[level] = values[level + 1]
    return best


@numba.njit
def _start(games: StateArray, stack: StateArray, values: npt.NDArray[np.int64], depth: int) -> int:
    stack[0] = games[0]
    stack[0].auto_pass = 1
    pass_over(stack[0])
    slot = _visit(stack, values, 0, depth)
    return PASS if must_pass(games[0]) else SLOT_SQUARE[slot]


def plain_search(games: StateArray, depth: int) -> tuple[int, npt.NDArray[np.int64]]:
    """Return the action and the values, (4,) int64, of plain max^n for the state in `games`, (1,)."""
    stack, values = np.zeros(depth + 1, STATE_DTYPE), np.zeros((depth + 1, MAX_PLAYERS), np.int64)
    return int(_start(games, stack, values, depth)), values[0]
