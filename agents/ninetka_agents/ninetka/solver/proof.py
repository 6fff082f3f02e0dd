"""Depth-first proof-number search over reduced states, with a table that grows.

Nagai, "Df-pn algorithm for searching AND/OR trees and its applications", 2002, with weak sums (Ueda et al., "Weak
proof-number search", CG 2008: the largest number plus how many others there are, since many children share their
difficulties) and a little slack in the thresholds (Pawlewicz and Lew, "Improving depth-first PN-search: 1 + epsilon
trick", CG 2006). Numbers are absolute: the proof number tells how hard it looks to show that seat 0 wins, the disproof
number that seat 1 does; at a node of seat 0 the first is a minimum over the children and the second a sum, at a node
of seat 1 the other way round. So a seat that moves twice in a row needs no special care.

The table holds 64 bits of a 128-bit hash of the whole reduced state and another 26 by place and check, so that in a
search of 1e9 look-ups, each against 4 entries, the chance of any false hit is 4e9 / 2**90 < 1e-17.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents.ninetka.solver.lanes import LANES, lane
from ninetka_agents.ninetka.solver.reduction import FIRST_WINS, UNDECIDED, UNIT, estimate_lead, reduce
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
    read_state,
    slide,
    spend_tempo,
    write_owned,
)
from ninetka_env.core.jit import frozen, jit, lowest, prefetch
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.verbs import Record
from ninetka_env.games.ninetka.geometry import NUM_SLOTS
from ninetka_env.games.ninetka.rules import MOVEMENT

Table = npt.NDArray[np.uint64]
"""(entries, 2) uint64: per entry the key, and packed numbers: proof, disproof, work, check. 0, 0 is an empty entry."""

INFINITY = (1 << 20) - 1
"""A number that stands for 'proven impossible'; others stay below."""
WIDTH = 20
"""Rows per level of the search: at most 18 slides and a tempo, in fours."""
LEVELS = NUM_SLOTS + 2
WAYS = 4
"""Entries per bucket, a cache line of the table."""
LEAST_BUCKETS = 1 << 10
"""The check holds the 16 bits of the hash from here on, so that a growing table knows where its entries go."""

_ONE = np.uint64(1)
_SALT = frozen(np.random.SeedSequence(9).generate_state(8, np.uint64), np.uint64)
_MULTIPLIER = frozen(np.random.SeedSequence(36).generate_state(8, np.uint64) | _ONE, np.uint64)
_MIX_A, _MIX_B, _MIX_C = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB), np.uint64(0xD6E8FEB86659FD93)
_S20, _S29, _S31, _S32, _S40, _S48, _S10 = (np.uint64(s) for s in (20, 29, 31, 32, 40, 48, 10))
_NUMBER = np.uint64(INFINITY)
_BYTE = np.uint64(255)

EXPECTED_SPAN = 18 * UNIT


def _first_number(margin: int) -> int:
    """Return the proof number of a state that nothing is known about, by half a section's estimated margin."""
    return int(min(max(1, round(8 * 2 ** (-2 * margin / UNIT))), 100_000))


FIRST_NUMBER = frozen([_first_number(x) for x in range(-2 * EXPECTED_SPAN, 2 * EXPECTED_SPAN + 1)], np.int64)


@jit(inline=True)
def _hash(states: States, row: int, keys: Table, owned: States) -> None:
    """Write the 128-bit hash of a reduced state."""
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
    keys[row, 1] = two ^ (two >> _S31) | _ONE  # never 0, the mark of an empty entry


@jit(counted=False)
def _bucket(table: Table, place: np.uint64) -> np.int64:
    """Return the first entry of a state's bucket."""
    return np.int64(place & np.uint64(len(table) // WAYS - 1)) * WAYS


@jit(counted=False)
def _find(table: Table, place: np.uint64, key: np.uint64) -> int:
    """Return the entry of a state, or -1."""
    first = _bucket(table, place)
    check = (place >> _S10) & np.uint64(0xFFFF)
    for entry in range(first, first + WAYS):
        if table[entry, 0] == key and table[entry, 1] >> _S48 == check:
            return entry
    return -1


@jit(counted=False)
def _store(table: Table, place: np.uint64, key: np.uint64, proof: int, disproof: int, work: int) -> int:
    """Store what is known of a state, in place of an empty entry or the one with least work; return 1 for a new one."""
    entry, new = _find(table, place, key), 0
    if entry < 0:
        first = _bucket(table, place)
        entry, least = first, 1 << 60
        for other in range(first, first + WAYS):
            amount = int((table[other, 1] >> _S40) & _BYTE) if table[other, 0] else -1
            if amount < least:
                entry, least = other, amount
        new = int(least < 0)
    effort = np.uint64(min(255, int(8 * np.log2(work + 1.0))))
    check = (place >> _S10) & np.uint64(0xFFFF)
    table[entry, 0] = key
    table[entry, 1] = np.uint64(proof) | np.uint64(disproof) << _S20 | effort << _S40 | check << _S48
    return new


@jit
def _grow(table: Table, most: int) -> Table:
    """Return a table up to four times as large, of at most `most` entries, with the same contents."""
    wider = np.zeros((min(4 * len(table), most), 2), np.uint64)
    for entry in range(len(table)):
        if table[entry, 0]:
            low = np.uint64((entry // WAYS) & (LEAST_BUCKETS - 1))
            place = low | (table[entry, 1] >> _S48) << _S10
            first = _bucket(wider, place)
            for other in range(first, first + WAYS):
                if wider[other, 0] == 0:
                    wider[other, 0] = table[entry, 0]
                    wider[other, 1] = table[entry, 1]
                    break
    return wider


Memory = tuple[States, Table, States]
"""What one search works in: (rows, `NUM_WORDS`) int64 states, (rows, 2) uint64 hashes, (rows, 2) int64 proof and
disproof numbers; `WIDTH` rows per level for the children of the node above, row 0 for the root."""


@jit
def make_memory() -> Memory:
    """Return what a search works in."""
    rows = (LEVELS + 1) * WIDTH
    return np.zeros((rows, NUM_WORDS), np.int64), np.zeros((rows, 2), np.uint64), np.zeros((rows, 2), np.int64)


@jit
def make_table() -> Table:
    """Return the smallest table, empty."""
    return np.zeros((WAYS * LEAST_BUCKETS, 2), np.uint64)


@jit
def find_winner(
    game: Record, margin: int, memory: Memory, table: Table, stored: int, most: int, limit: int
) -> tuple[int, int, int, Table]:
    """Solve a two-player movement phase; with a margin, seat 0 wins if it leads by more than so many sections.

    The game may be over. Arguments are those of `prove`. Returns the winning seat, `UNFINISHED` if it is not known
    after `limit` nodes; the nodes visited, the number of entries in use, and the table.
    """
    states, _, numbers = memory
    owned, landed = np.zeros(NUM_OWNED, np.int64), np.zeros((LANES, 8), np.int64)
    write_owned(game.movable[0], owned)
    read_state(game, margin, states, 0)
    verdict, nodes = lane(reduce(states, 0, owned, landed), 0), 0
    if verdict != UNDECIDED or limit <= 0:
        return (UNFINISHED if verdict == UNDECIDED else 0 if verdict == FIRST_WINS else 1), 0, stored, table
    nodes, stored, table = prove(memory, owned, table, stored, most, limit)
    return (0 if numbers[0, 0] == 0 else 1 if numbers[0, 1] == 0 else UNFINISHED), nodes, stored, table


class Prover(NamedTuple):
    """What proves positions on the way of another search."""

    limit: int
    """Most nodes to visit per position; 0 to prove nothing."""
    memory: Memory
    table: Table


@jit
def make_prover(game: Record, nodes: int) -> Prover:
    """Return a prover, for one thread, that visits at most `nodes` nodes per position."""
    return Prover(nodes, make_memory(), make_table())


@jit
def proven_winner(game: Record, prover: Prover) -> int:
    """Return who wins a two-player movement phase for certain, `UNFINISHED` where it is not proven in time."""
    if prover.limit == 0 or game.num_players != 2 or game.phase != MOVEMENT:
        return UNFINISHED
    table = prover.table
    return find_winner(game, 0, prover.memory, table, 0, len(table), prover.limit)[0]


@jit
def clear_prover(game: Record, prover: Prover) -> None:
    """Empty the table, so that later answers do not depend on what was asked before."""
    if prover.limit:
        prover.table[:] = 0


@jit
def prove(memory: Memory, owned: States, table: Table, stored: int, most: int, limit: int) -> tuple[int, int, Table]:
    """Search the reduced state in row 0 until it is decided or `limit` nodes are visited; leave its numbers in row 0.

    Args:
        memory: see `make_memory`; row 0 of its states is reduced and undecided.
        owned: see `ninetka_agents.ninetka.solver.states.write_owned`.
        table: what is known of other states; `stored` of its entries are in use. It grows up to `most` entries.
        stored: see `table`.
        most: see `table`; a power of two.
        limit: most nodes to visit.

    Returns:
        The nodes visited, the number of entries in use now, and the table or the one that took its place.
    """
    states, keys, numbers = memory
    landed, path = np.zeros((LANES, 8), np.int64), np.zeros((LEVELS, 5), np.int64)
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
        best, second, alive = _summarise(numbers, row, first, path[level, COUNT], mover)
        own, other = numbers[row, mover], numbers[row, 1 - mover]
        descend = own < own_bound and other < other_bound and nodes < limit
        if descend:
            level += 1
            path[level, NODE] = best
            path[level, THRESHOLDS + mover] = max(min(own_bound, second + second // 4 + 1), numbers[best, mover] + 1)
            path[level, THRESHOLDS + 1 - mover] = max(other_bound - alive + 1, numbers[best, 1 - mover] + 1)
            continue
        work = nodes - path[level, WORK]
        stored += _store(table, keys[row, 0], keys[row, 1], numbers[row, 0], numbers[row, 1], work)
        if 2 * stored > len(table) and len(table) < most:
            table = _grow(table, most)
        if level == 0:
            return nodes, stored, table
        level -= 1


NODE, COUNT, WORK, THRESHOLDS = 0, 1, 2, 3
"""What the path keeps per level: the row of its node, how many children it has, the nodes visited before it, and the
two numbers at which the search turns away from it."""


@jit(counted=False)
def _expand(
    states: States,
    keys: Table,
    numbers: States,
    row: int,
    first: int,
    owned: States,
    landed: States,
    table: Table,
    killers: States,
) -> int:
    """Write the undecided children of a node from row `first` on; return their number.

    If a child is won for the mover, it stands alone; children that are lost are left out. The slide that won last on
    this level, for each seat in `killers`, (2,) int64, is tried first.
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
                if four + place > child:  # close ranks
                    copy_state(states, four + place, child)
                _hash(states, child, keys, owned)
                prefetch(table, _bucket(table, keys[child, 0]))
                child += 1
            elif (verdict == FIRST_WINS) == (mover == 0):
                numbers[first, mover], numbers[first, 1 - mover] = 0, INFINITY
                killers[mover] = (slots >> 6 * place) & 63
                return 1
    for new in range(first, child):  # only now that the processor has fetched their entries
        _look_up(states, keys, numbers, new, table)
    return child - first


@jit(inline=True)
def _write_four(states: States, row: int, four: int, bits: int, tempo: bool, killer: int) -> tuple[int, bool, int, int]:
    """Write up to four states after a slide from `bits`, the killer first, or after a tempo, from row `four` on.

    Returns:
        The slides and the tempo that are left, how many states were written, and their slots, 6 bits each.
    """
    count, slots = 0, 0
    while count < LANES and (bits or tempo):
        slot = killer
        if bits:
            slot = killer if (bits >> killer) & 1 else lowest(bits)
            slide(states, row, four + count, slot)
            bits &= ~(1 << slot)
        else:
            spend_tempo(states, row, four + count)
            tempo = False
        slots |= slot << 6 * count
        count += 1
    return bits, tempo, count, slots


@jit(inline=True)
def _look_up(states: States, keys: Table, numbers: States, row: int, table: Table) -> None:
    """Take a state's numbers from the table, or from the static estimate."""
    entry = _find(table, keys[row, 0], keys[row, 1])
    if entry >= 0:
        numbers[row, 0] = np.int64(table[entry, 1] & _NUMBER)
        numbers[row, 1] = np.int64((table[entry, 1] >> _S20) & _NUMBER)
    else:
        margin = estimate_lead(states, row) - UNIT // 2
        numbers[row, 0] = FIRST_NUMBER[2 * EXPECTED_SPAN + margin]
        numbers[row, 1] = FIRST_NUMBER[2 * EXPECTED_SPAN - margin]


@jit(counted=False)
def _summarise(numbers: States, row: int, first: int, count: int, mover: int) -> tuple[int, int, int]:
    """Write a node's numbers from its children's.

    Returns:
        The row of the best child for the mover, the mover's number of the second best, and how many are not lost.
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
