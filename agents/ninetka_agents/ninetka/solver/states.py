"""States of the solver: a compact form of a two-player movement phase, and the state after a slide.

A state does not contain settled stones. It describes a stone on the edge by its *free run*: the empty squares that the
stone would slide over. Four bit boards hold the runs of the stones that come from the left, right, top and bottom. A
slide applies one mask to each board. Next, read `ninetka_agents.ninetka.solver.reduction`.

The *margin* is an argument of a search: seat 0 wins if it leads by more sections than the margin.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_agents.ninetka.solver.bitboard import (
    BLOCKED_BY,
    DIRECTION,
    DOWN,
    LEFT,
    ROW,
    SECTION_OF,
    SLOT_BOARD,
    STAYS_FREE,
    THIRDS,
    UP,
    highest,
)
from ninetka_env.core.jit import jit, lowest_bit
from ninetka_env.core.verbs import State
from ninetka_env.games.ninetka.geometry import NUM_SECTIONS, SIZE, SLOT_SQUARE
from ninetka_env.games.ninetka.rules import landing_square

States = npt.NDArray[np.int64]
"""(rows, `NUM_WORDS`) int64: one state per row. Words 0 to 7 are the boards of the runs; for the others see below."""

STONES, LEADS, TEMPI, MOVER, DECIDED, OPEN, UPPER, LOWER = 8, 9, 10, 11, 12, 13, 14, 15
"""The other words of a state:

- `STONES`: the slots of the movable stones, as bits;
- `LEADS`: a field of 7 bits per section: 32 plus the lead of seat 0 in stones; 32 in decided sections;
- `TEMPI`: the tempi of seat 0 minus the tempi of seat 1 (see `reduction`);
- `MOVER`: the seat to move;
- `DECIDED`: decided sections of seat 0 minus decided sections of seat 1, minus the margin;
- `OPEN`: the undecided sections, as bits;
- `UPPER`, `LOWER`: bounds of the leads in undecided sections, in fields like those of `LEADS`.
"""
NUM_WORDS = 16

OWN_DOWN, OWN_UP, OWN_SLOTS = 4, 5, 6
"""Words of `owned`, an array that describes seat 0's stones:

- 0 to 3: two boards of two words each: the rows with a stone that slides right, the rows with a stone that slides left;
- `OWN_DOWN`, `OWN_UP`: the columns with a stone that slides down, or up, in the form of `column_thirds`;
- `OWN_SLOTS`: the slots of all stones, as bits.
"""
NUM_OWNED = 7


@jit
def write_owned(seat0_slots: int, owned: States) -> None:
    """Write the description of seat 0's stones into `owned`, (`NUM_OWNED`,) int64."""
    owned[:] = 0
    owned[OWN_SLOTS] = seat0_slots
    bits = seat0_slots
    while bits:
        slot = lowest_bit(bits)
        board = DIRECTION[slot]
        if board < DOWN:
            owned[board] |= SLOT_BOARD[slot, 0]
            owned[board + 1] |= SLOT_BOARD[slot, 1]
        else:
            owned[OWN_DOWN if board == DOWN else OWN_UP] |= (SLOT_BOARD[slot, 0] & ROW) * THIRDS
        bits &= bits - 1


@jit
def write_state(game: State, margin: int, states: States, row: int) -> None:
    """Write a two-player position of the movement phase to a row of `states`, without reducing it."""
    for word in range(8):
        states[row, word] = 0
    states[row, STONES] = game.movable[0] | game.movable[1]
    bits = states[row, STONES]
    while bits:
        slot = lowest_bit(bits)
        _write_run(game, slot, states, row)
        bits &= bits - 1
    leads = 0
    for section in range(NUM_SECTIONS):
        leads += (32 + int(game.counts[0, section]) - int(game.counts[1, section])) << (7 * section)
    states[row, LEADS] = leads
    states[row, TEMPI] = 0
    states[row, MOVER] = game.to_move
    states[row, DECIDED] = -margin
    states[row, OPEN] = 511


@jit
def _write_run(game: State, slot: int, states: States, row: int) -> None:
    """Add the free run of a movable stone to the boards."""
    end = landing_square(game, slot)
    start = int(SLOT_SQUARE[slot])
    step = SIZE if DIRECTION[slot] >= DOWN else 1
    if end < start:
        step = -step
    square = start
    while square != end:
        square += step
        place = 9 * (square // SIZE - 1) + square % SIZE - 1
        if place < 54:
            states[row, DIRECTION[slot]] |= 1 << place
        else:
            states[row, DIRECTION[slot] + 1] |= 1 << (place - 54)


@jit(inline=True)
def slide(states: States, parent: int, child: int, slot: int) -> None:
    """Write to row `child` the state after a slide from `slot`; the opponent is to move, the state is not reduced."""
    square = run_end(states, parent, slot)
    for word in range(8):
        states[child, word] = states[parent, word] & STAYS_FREE[square, word]
    direction = DIRECTION[slot]
    states[child, direction] &= ~SLOT_BOARD[slot, 0]
    states[child, direction + 1] &= ~SLOT_BOARD[slot, 1]
    states[child, STONES] = states[parent, STONES] & ~(BLOCKED_BY[square] | (1 << slot))
    section, mover = SECTION_OF[square], states[parent, MOVER]
    gain = (states[parent, OPEN] >> section) & 1
    states[child, LEADS] = states[parent, LEADS] + ((1 - 2 * mover) * gain << (7 * section))
    states[child, TEMPI] = states[parent, TEMPI]
    states[child, MOVER] = 1 - mover
    states[child, DECIDED] = states[parent, DECIDED]
    states[child, OPEN] = states[parent, OPEN]


@jit(refcount=False)
def copy_state(states: States, source: int, target: int) -> None:
    """Copy the state in row `source` to row `target`."""
    for word in range(NUM_WORDS):
        states[target, word] = states[source, word]


@jit(refcount=False)
def spend_tempo(states: States, parent: int, child: int) -> None:
    """Write to row `child` the state after the mover spends a tempo; the mover must have a tempo."""
    copy_state(states, parent, child)
    mover = states[parent, MOVER]
    states[child, TEMPI] -= 1 - 2 * mover
    states[child, MOVER] = 1 - mover


@jit(refcount=False)
def run_end(states: States, row: int, slot: int) -> int:
    """Return the inner square, 0..80, on which the stone of `slot` would come to rest."""
    direction = DIRECTION[slot]
    lo, hi = states[row, direction] & SLOT_BOARD[slot, 0], states[row, direction + 1] & SLOT_BOARD[slot, 1]
    if direction in (LEFT, UP):
        return lowest_bit(lo) if lo else 54 + lowest_bit(hi)
    if hi:
        return 54 + highest(hi)
    return highest(lo)
