"""Exact results as targets: what perfect play says of two-player positions takes the place of what a search guessed.

A solved position has its winner as value, and if the mover wins, only winning moves in its policy: shared out as the
search did or, without a search, each of them right. Any other position of the game has the winner of the next solved
one: placement is learned against perfect movement, whatever mistakes were made after it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents.ninetka.solver.solver import WON, solvable, solve_batch
from ninetka_env.core.jit import jit
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.verbs import Records
from ninetka_env.games.ninetka.geometry import NUM_ACTIONS


class Known(NamedTuple):
    """What is known of N positions."""

    winners: npt.NDArray[np.int8]
    """(N,) int8: the seat that wins under perfect play, `UNFINISHED` where unknown."""
    moves: npt.NDArray[np.int8]
    """(N, 122) int8: values of the mover's actions; see `ninetka_agents.ninetka.solver.solver.Solution`."""


def find_known(games: Records, nodes: int, threads: int, families: npt.NDArray[np.int64]) -> Known:
    """Solve two-player positions of the movement phase within `nodes` each (0: none); all others stay unknown.

    Args:
        games: (N,) positions; those of one game stand in the order of play.
        nodes: most nodes of the solver's search for each of them.
        threads: at most so many; results do not depend on it.
        families: (N,) int64 the same number for positions that share what the solver remembers.
    """
    known = Known(np.full(len(games), UNFINISHED, np.int8), np.zeros((len(games), NUM_ACTIONS), np.int8))
    chosen = np.flatnonzero(solvable(games))[::-1]  # the last ones first: what is known of them helps the others
    if nodes and len(chosen):
        found = solve_batch(games[chosen], nodes, threads, families=families[chosen])
        known.winners[chosen], known.moves[chosen] = found
    return known


def only_winning(policy: npt.NDArray[np.float32], known: Known) -> npt.NDArray[np.float32]:
    """Return (N, 122) float32 policies without the moves that give a win away; 1 for each winning one if none is left.

    Args:
        policy: (N, 122) float32, each summing to 1, or all 0 for a position that was not searched.
        known: what is known of the positions.
    """
    winning = (known.moves == WON).astype(np.float32)
    kept = policy * winning
    left = kept.sum(1, keepdims=True)
    kept = np.where(left > 1e-3, kept / left.clip(1e-3), winning)
    return np.where(winning.any(1, keepdims=True), kept, policy)


@jit
def next_known(
    known: npt.NDArray[np.int8], index: npt.NDArray[np.int64], winners: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return (N,) int64: the winner of each position's game as the next position says that is solved, itself included.

    Args:
        known: (N,) int8 winners of positions, `UNFINISHED` where unknown; those of one game in the order of play.
        index: (N,) int64 the game of each position.
        winners: (G,) int64 who won in the end: for positions after which none is solved.
    """
    newest, found = winners.copy(), np.empty(len(known), np.int64)
    for place in range(len(known) - 1, -1, -1):
        if known[place] >= 0:
            newest[index[place]] = known[place]
        found[place] = newest[index[place]]
    return found
