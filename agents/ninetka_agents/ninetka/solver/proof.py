"""Depth-first proof-number search over reduced states (see `reduction`), with a transposition table that grows.

Start reading at `find_winner`, which `solver.py` calls, then at `prove`. `proven_winner` is the interface for tree
searches.

The search is df-pn (Nagai, "Df-pn algorithm for searching AND/OR trees and its applications", 2002) with two changes:

- weak sums (Ueda et al., "Weak proof-number search", CG 2008): the sum of the children's numbers is replaced by the
  largest of these numbers plus the number of other children, because children often share the same difficulty;
- a little slack in the thresholds (Pawlewicz and Lew, "Improving depth-first PN-search: 1 + epsilon trick", CG 2006).

Proof and disproof numbers do not depend on the seat to move: the proof number estimates how hard it is to prove that
seat 0 wins, the disproof number that seat 1 wins. At a node of seat 0 the proof number is a minimum over the children
and the disproof number a sum; at a node of seat 1 it is the other way round. A seat may therefore move twice in a row.

A table entry identifies a state by 90 bits of its 128-bit hash: 64 in the key, 26 in the bucket's index and the check.
In a search with 1e9 look-ups, each of 4 entries, the probability of any false match is 4e9 / 2**90 < 1e-17.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents.ninetka.solver.reduction import ESTIMATE_UNIT, SEAT0_WINS, UNDECIDED, estimate_lead, reduce
from ninetka_agents.ninetka.solver.simd import NUM_LANES, lane
from ninetka_agents.ninetka.solver.states import (
    DECIDED,
    LEADS,
    MOVER,
    NUM_OWNED,
    NUM_WORDS,
    OPEN,
    OWN_SLOTS,
    STONES,
    TEMPI,
    States,
    copy_state,
    slide,
    spend_tempo,
    write_owned,
    write_state,
)
from ninetka_env.core.jit import jit, lowest_bit, prefetch, readonly_array
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.verbs import State
from ninetka_env.games.ninetka.geometry import NUM_SLOTS
from ninetka_env.games.ninetka.rules import MOVEMENT

TranspositionTable = npt.NDArray[np.uint64]
"""(entries, 2) uint64: the key; proof number, disproof number, work and check, packed. (0, 0) is an empty entry."""

INFINITY = (1 << 20) - 1
"""The proof or disproof number that means 'proven impossible'; all other numbers are smaller."""
WIDTH = 20
"""Rows per level of the search: room for 18 slides and a tempo, as a multiple of 4."""
LEVELS = NUM_SLOTS + 2
WAYS = 4
"""Entries per bucket; a bucket fills one cache line."""
MIN_BUCKETS = 1 << 10
"""The minimum number of buckets; 10 bits of the hash are the bucket's index. The check stores the next 16 bits, from
which `_grow` computes the index in a larger table."""

_ONE = np.uint64(1)
_SALT = readonly_array(np.random.SeedSequence(9).generate_state(8, np.uint64), np.uint64)
_MULTIPLIER = readonly_array(np.random.SeedSequence(36).generate_state(8, np.uint64) | _ONE, np.uint64)
_MIX_A, _MIX_B, _MIX_C = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB), np.uint64(0xD6E8FEB86659FD93)
_S20, _S29, _S31, _S32, _S40, _S48, _S10 = (np.uint64(s) for s in (20, 29, 31, 32, 40, 48, 10))
_NUMBER = np.uint64(INFINITY)
_BYTE = np.uint64(255)

MAX_ESTIMATE = 18 * ESTIMATE_UNIT


def _initial_number(margin: int) -> int:
    """Return the initial proof number for an estimated margin: 8 for margin 0, halved for each half section more."""
    return int(min(max(1, round(8 * 2 ** (-2 * margin / ESTIMATE_UNIT))), 100_000))


INITIAL_NUMBERS = readonly_array([_initial_number(x) for x in range(-2 * MAX_ESTIMATE, 2 * MAX_ESTIMATE + 1)], np.int64)


@jit(inline=True)
def _hash(states: States, row: int, keys: TranspositionTable, owned: States) -> None:
    """Write the 128-bit hash of the reduced state in row `row` to the same row of `keys`."""
    turn = (states[row, TEMPI] + 32) << 36 | states[row, MOVER] << 42 | (states[row, DECIDED] + 32) << 43
    turn |= states[row, OPEN] << 49
    one = two = np.uint64(0)
    for place in range(8):
        if place < 4:
            word = states[row, 2 * place]
        elif place == 4:
            word = states[row, 1] | states[row, 3] << 27
        elif place == 5:
            word = states[row, 5] | states[row, 7] << 27
        elif place == 6:
            word = states[row, LEADS]
        else:
            word = (states[row, STONES] & owned[OWN_SLOTS]) | turn
        mixed = (np.uint64(word) ^ _SALT[place]) * _MULTIPLIER[place]
        mixed = (mixed ^ (mixed >> _S32)) * _MIX_A
        mixed ^= mixed >> _S29
        one += mixed
        mixed = mixed * _MULTIPLIER[7 - place]
        mixed ^= mixed >> _S31
        two += mixed * _MIX_C
    one = (one ^ (one >> _S31)) * _MIX_B
    keys[row, 0] = one ^ (one >> _S29)
    two = (two ^ (two >> _S32)) * _MIX_A
    keys[row, 1] = two ^ (two >> _S31) | _ONE  # never 0, since 0 marks an empty entry


@jit(refcount=False)
def _bucket(table: TranspositionTable, place: np.uint64) -> np.int64:
    """Return the index of the first entry of a state's bucket; `place` is the first word of the state's hash."""
    return np.int64(place & np.uint64(len(table) // WAYS - 1)) * WAYS


@jit(refcount=False)
def _find(table: TranspositionTable, place: np.uint64, key: np.uint64) -> int:
    """Return the index of a state's entry, or -1 if the table has none."""
    first = _bucket(table, place)
    check = (place >> _S10) & np.uint64(0xFFFF)
    for entry in range(first, first + WAYS):
        if table[entry, 0] == key and table[entry, 1] >> _S48 == check:
            return entry
    return -1


@jit(refcount=False)
def _store(table: TranspositionTable, place: np.uint64, key: np.uint64, proof: int, disproof: int, work: int) -> int:
    """Store a state's numbers in the table; return 1 if this fills an empty entry, else 0.

    The numbers go to the state's own entry, else to an empty entry of its bucket, else to the one with the least work.
    """
    entry, new = _find(table, place, key), 0
    if entry < 0:
        first = _bucket(table, place)
        entry, least_work = first, 1 << 60
        for other in range(first, first + WAYS):
            amount = int((table[other, 1] >> _S40) & _BYTE) if table[other, 0] else -1
            if amount < least_work:
                entry, least_work = other, amount
        new = int(least_work < 0)
    effort = np.uint64(min(255, int(8 * np.log2(work + 1.0))))
    check = (place >> _S10) & np.uint64(0xFFFF)
    table[entry, 0] = key
    table[entry, 1] = np.uint64(proof) | np.uint64(disproof) << _S20 | effort << _S40 | check << _S48
    return new


@jit
def _grow(table: TranspositionTable, max_entries: int) -> TranspositionTable:
    """Return a table with the same contents, up to four times as large but with at most `max_entries` entries."""
    larger = np.zeros((min(4 * len(table), max_entries), 2), np.uint64)
    for entry in range(len(table)):
        if table[entry, 0]:
            low = np.uint64((entry // WAYS) & (MIN_BUCKETS - 1))
            place = low | (table[entry, 1] >> _S48) << _S10
            first = _bucket(larger, place)
            for other in range(first, first + WAYS):
                if larger[other, 0] == 0:
                    larger[other, 0] = table[entry, 0]
                    larger[other, 1] = table[entry, 1]
                    break
    return larger


Workspace = tuple[States, TranspositionTable, States]
"""The arrays of one search: (rows, `NUM_WORDS`) int64 states, (rows, 2) uint64 hashes, (rows, 2) int64 proof and
disproof numbers. Row 0 is the root; each level has `WIDTH` rows for the children of its node."""


@jit
def make_workspace() -> Workspace:
    """Return new arrays for a search."""
    rows = (LEVELS + 1) * WIDTH
    return np.zeros((rows, NUM_WORDS), np.int64), np.zeros((rows, 2), np.uint64), np.zeros((rows, 2), np.int64)


@jit
def make_table() -> TranspositionTable:
    """Return an empty table of the smallest size."""
    return np.zeros((WAYS * MIN_BUCKETS, 2), np.uint64)


@jit
def find_winner(
    game: State,
    margin: int,
    workspace: Workspace,
    table: TranspositionTable,
    stored: int,
    max_entries: int,
    max_nodes: int,
) -> tuple[int, int, int, TranspositionTable]:
    """Solve a two-player position of the movement phase; seat 0 wins if it leads by more than `margin` sections.

    The game may have ended. For the other arguments, see `prove`.

    Returns:
        The winning seat, or `UNFINISHED` if it is unknown after `max_nodes` nodes; the nodes visited; the number of
        table entries in use; the table.
    """
    states, _, numbers = workspace
    owned, landed = np.zeros(NUM_OWNED, np.int64), np.zeros((NUM_LANES, 8), np.int64)
    write_owned(game.movable[0], owned)
    write_state(game, margin, states, 0)
    verdict, nodes = lane(reduce(states, 0, owned, landed), 0), 0
    if verdict != UNDECIDED or max_nodes <= 0:
        return (UNFINISHED if verdict == UNDECIDED else 0 if verdict == SEAT0_WINS else 1), 0, stored, table
    nodes, stored, table = prove(workspace, owned, table, stored, max_entries, max_nodes)
    return (0 if numbers[0, 0] == 0 else 1 if numbers[0, 1] == 0 else UNFINISHED), nodes, stored, table


class Prover(NamedTuple):
    """The solver's node limit and arrays, for use inside another search."""

    max_nodes: int
    """Maximum number of nodes to visit per position; 0 disables the solver."""
    workspace: Workspace
    table: TranspositionTable


@jit
def make_prover(game: State, nodes: int) -> Prover:
    """Return a prover, for one thread, that visits at most `nodes` nodes per position."""
    return Prover(nodes, make_workspace(), make_table())


@jit
def proven_winner(game: State, prover: Prover) -> int:
    """Return the proven winner of a two-player position of the movement phase, or `UNFINISHED` without a proof.

    All other positions are `UNFINISHED`, too.
    """
    if prover.max_nodes == 0 or game.num_players != 2 or game.phase != MOVEMENT:
        return UNFINISHED
    table = prover.table
    return find_winner(game, 0, prover.workspace, table, 0, len(table), prover.max_nodes)[0]


@jit
def clear_prover(game: State, prover: Prover) -> None:
    """Clear the table, so that later results do not depend on earlier positions."""
    if prover.max_nodes:
        prover.table[:] = 0


@jit
def prove(
    workspace: Workspace, owned: States, table: TranspositionTable, stored: int, max_entries: int, max_nodes: int
) -> tuple[int, int, TranspositionTable]:
    """Search the reduced state in row 0 until it is decided or `max_nodes` nodes are visited.

    The state's proof and disproof numbers are written to row 0 of the numbers.

    Args:
        workspace: the arrays of the search; the state in row 0 must be reduced and undecided.
        owned: see `ninetka_agents.ninetka.solver.states.write_owned`.
        table: the transposition table. If it gets too full, it is replaced by a larger one.
        stored: number of entries of `table` in use.
        max_entries: maximum number of entries of the table, a power of two.
        max_nodes: maximum number of nodes to visit.

    Returns:
        The nodes visited, the number of entries in use, and the table, which may be a new one.
    """
    states, keys, numbers = workspace
    landed, path = np.zeros((NUM_LANES, 8), np.int64), np.zeros((LEVELS, 5), np.int64)
    killers = np.zeros((LEVELS, 2), np.int64)
    _hash(states, 0, keys, owned)
    nodes, level, descend = 0, 0, True
    path[0, THRESHOLDS] = path[0, THRESHOLDS + 1] = INFINITY
    while True:
        row, first = path[level, NODE], (level + 1) * WIDTH
        mover = states[row, MOVER]
        if descend:
            path[level, COUNT] = _expand(states, keys, numbers, row, first, owned, landed, table, killers[level])
            path[level, WORK] = nodes
            nodes += 1
        own_bound, other_bound = path[level, THRESHOLDS + mover], path[level, THRESHOLDS + 1 - mover]
        best, second, alive = _update_numbers(numbers, row, first, path[level, COUNT], mover)
        own, other = numbers[row, mover], numbers[row, 1 - mover]
        descend = own < own_bound and other < other_bound and nodes < max_nodes
        if descend:
            level += 1
            path[level, NODE] = best
            path[level, THRESHOLDS + mover] = max(min(own_bound, second + second // 4 + 1), numbers[best, mover] + 1)
            path[level, THRESHOLDS + 1 - mover] = max(other_bound - alive + 1, numbers[best, 1 - mover] + 1)
            continue
        work = nodes - path[level, WORK]
        stored += _store(table, keys[row, 0], keys[row, 1], numbers[row, 0], numbers[row, 1], work)
        if 2 * stored > len(table) and len(table) < max_entries:
            table = _grow(table, max_entries)
        if level == 0:
            return nodes, stored, table
        level -= 1


NODE, COUNT, WORK, THRESHOLDS = 0, 1, 2, 3
"""Columns of `path`, per level: the row of the node, its number of children, the nodes visited before it, and two
columns for the thresholds of its proof and disproof number, at which the search leaves the node."""


@jit(refcount=False)
def _expand(
    states: States,
    keys: TranspositionTable,
    numbers: States,
    row: int,
    first: int,
    owned: States,
    landed: States,
    table: TranspositionTable,
    killers: States,
) -> int:
    """Write the undecided children of a node into the rows from `first` on; return their number.

    If the mover wins in a child, return 1; row `first` then holds only the numbers of a win. Children in which the
    mover loses are left out. `killers`, (2,) int64, holds for each seat the slide that last won on this level; this
    slide is tried first.
    """
    mover, child = states[row, MOVER], first
    bits = states[row, STONES] & owned[OWN_SLOTS] if mover == 0 else states[row, STONES] & ~owned[OWN_SLOTS]
    tempo = states[row, TEMPI] > 0 if mover == 0 else states[row, TEMPI] < 0
    while bits or tempo:
        four = child
        bits, tempo, count, slots = _write_four(states, row, four, bits, tempo, killers[mover])
        verdicts = reduce(states, four, owned, landed)
        for place in range(count):
            verdict = lane(verdicts, place)
            if verdict == UNDECIDED:
                if four + place > child:  # keep the rows contiguous
                    copy_state(states, four + place, child)
                _hash(states, child, keys, owned)
                prefetch(table, _bucket(table, keys[child, 0]))
                child += 1
            elif (verdict == SEAT0_WINS) == (mover == 0):
                numbers[first, mover], numbers[first, 1 - mover] = 0, INFINITY
                killers[mover] = (slots >> 6 * place) & 63
                return 1
    for new in range(first, child):  # in a second pass, when the prefetched entries have arrived
        _look_up(states, keys, numbers, new, table)
    return child - first


@jit(inline=True)
def _write_four(states: States, row: int, four: int, bits: int, tempo: bool, killer: int) -> tuple[int, bool, int, int]:
    """Write up to four child states to the rows from `four` on: the slides in `bits`, the killer first, then a tempo.

    Returns:
        The remaining slides and tempo, the number of states written, and their slots, 6 bits each.
    """
    count, slots = 0, 0
    while count < NUM_LANES and (bits or tempo):
        slot = killer
        if bits:
            slot = killer if (bits >> killer) & 1 else lowest_bit(bits)
            slide(states, row, four + count, slot)
            bits &= ~(1 << slot)
        else:
            spend_tempo(states, row, four + count)
            tempo = False
        slots |= slot << 6 * count
        count += 1
    return bits, tempo, count, slots


@jit(inline=True)
def _look_up(states: States, keys: TranspositionTable, numbers: States, row: int, table: TranspositionTable) -> None:
    """Write a state's numbers from its table entry or, without one, from the static estimate."""
    entry = _find(table, keys[row, 0], keys[row, 1])
    if entry >= 0:
        numbers[row, 0] = np.int64(table[entry, 1] & _NUMBER)
        numbers[row, 1] = np.int64((table[entry, 1] >> _S20) & _NUMBER)
    else:
        margin = estimate_lead(states, row) - ESTIMATE_UNIT // 2
        numbers[row, 0] = INITIAL_NUMBERS[2 * MAX_ESTIMATE + margin]
        numbers[row, 1] = INITIAL_NUMBERS[2 * MAX_ESTIMATE - margin]


@jit(refcount=False)
def _update_numbers(numbers: States, row: int, first: int, count: int, mover: int) -> tuple[int, int, int]:
    """Compute a node's proof and disproof numbers from the numbers of its children.

    Returns:
        The row of the best child for the mover, the mover's number at the second best child, and the number of children
        that are not lost for the mover.
    """
    best, least, second, most, alive = -1, INFINITY, INFINITY, 0, 0
    for child in range(first, first + count):
        own, other = numbers[child, mover], numbers[child, 1 - mover]
        if other == 0:
            continue
        alive += 1
        most = max(most, other)
        if own < least:
            best, least, second = child, own, least
        elif own < second:
            second = own
    numbers[row, mover] = least
    if least == 0 or alive == 0:
        numbers[row, 1 - mover] = INFINITY if least == 0 else 0
    else:
        numbers[row, 1 - mover] = min(most + alive - 1, INFINITY - 1)
    return best, second, alive
