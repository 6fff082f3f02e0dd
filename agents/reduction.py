"""What matters of a two-player movement phase, reduced until little is left: the states that the solver searches.

A stone that has settled is forgotten; of a stone on the edge only its *free run* counts, the empty squares that it
would slide over. Four bit boards hold the runs of the stones that come from the left, right, top and bottom; a slide
is one mask per board. What follows from them, each with the reason why it is sound:

**Possible landings.** A stone comes to rest on the last square of its run as it is then. Runs only get shorter, and the
run of a stone gets a new end only where a stone that crosses its line lands one square further (one that comes the
other way either has an end of its own there, or blocks the stone altogether). So the squares where stones can ever
land are in the least set that holds the ends of all runs and, with a square, also the one before it in each run that
crosses there. The set is too large rather than too small, and only shrinks as the game goes on.

**Isolated stones.** Take a set of stones none of which can be blocked (no other stone can land on the first square of
its run), each with all its possible landings in one section, or in decided sections only, and none of them with a
possible landing in the run of a stone outside the set. Each slides in the end, since a seat that can slide must, and
settles in that section, wherever others cut its run; and whatever the set does changes nothing for a stone outside. So
its stones are counted at once, and what remains of each is a *tempo*: a move that only hands the turn on. The largest
such set is what is left of all stones that meet the first two conditions when those that break the third are dropped
again and again.

**Tempi cancel.** With one more tempo for each seat, who wins without them still wins: he answers a tempo with his
own. If he must spend his own first, having nothing else to move, he never gets another stone to slide, and the other
seat plays the rest alone with or without a tempo. So only the difference counts.

**Tempi are clipped.** While the opponent can still slide, he does so after each turn of the seat with tempi, so as many
tempi as he has stones are never used up before he has run out; and then order is all one's own. More are worth no more.

**Section bounds.** Let a stone's *arrivals* be the sections of its possible landings. A seat gets at most one stone
into a section from each of its stones with an arrival there, and one for sure from each that cannot be blocked and has
no other arrival. So the lead in the section (stones of seat 0 less those of seat 1) stays within bounds; if both say
the same (won, lost, tied) the section is decided and its lead forgotten.

**Total bounds.** Each stone that is not sure settles in one section at most, so it cannot take a seat to the bounds of
all that it reaches. At its best for a seat, its opponent's stones that are not sure never arrive. Then from the leads
with the sure stones alone, a section at -1 or 0 for the seat takes one stone for each step (to tied, to won), and one
that is further behind at least three for two steps or two for one; so the number of its other stones bounds the steps
that it takes in all, those of one stone first. Where that is not enough, or more than enough, the game is decided.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from agents.bitboard import (
    BLOCKED_BY,
    COL0,
    COL8,
    DIRECTION,
    DOWN,
    HIGH,
    LEFT,
    LINE_SLOTS,
    ROW,
    SECTION_BOARD,
    SECTION_OF,
    SIX_ROWS,
    SLOT_BOARD,
    STAYS_FREE,
    THREE_ROWS,
    UP,
    any_in_column,
    any_in_row,
    column_thirds,
    count_arrivals,
    highest,
    nine_bits,
    row_thirds,
    rows_down,
    rows_up,
    several_in_column,
    several_in_row,
    whole_rows,
)
from ninetka_env._jit import jit, lowest, popcount
from ninetka_env.geometry import (
    NUM_SECTIONS,
    SIZE,
    SLOT_SQUARE,
    frozen,
)
from ninetka_env.rules import Record, landing_square

States = npt.NDArray[np.int64]
"""(rows, `NUM_WORDS`) int64: a state per row, see the constants below."""

STONES, LEADS, TEMPI, MOVER, DECIDED, OPEN, UPPER, LOWER = 8, 9, 10, 11, 12, 13, 14, 15
"""The other words of a state: the movable stones as bits of slots; the lead of seat 0 per section, 7 bits each, plus
32, decided sections at 32; the tempi, positive for seat 0; the seat to move; the lead of seat 0 in decided sections,
less the margin that is asked about; the undecided sections as bits; bounds of their leads, in fields like `LEADS`."""
NUM_WORDS = 16

UNDECIDED = 0
FIRST_WINS, SECOND_WINS = 1, -1
"""Verdicts: seat 0 leads by more sections than the margin asked about, or it does not."""

_ONES = sum(1 << 7 * s for s in range(NUM_SECTIONS))
_BIAS = 32 * _ONES
FIELDS = frozen([sum(127 << 7 * s for s in range(NUM_SECTIONS) if open_ >> s & 1) for open_ in range(512)], np.int64)
"""(512,) int64: the fields of `LEADS` of a set of sections."""
UNIT = 64
"""The estimate's value of one section."""


def _expected_outcome(high: int, low: int) -> int:
    """Estimate who gets a section whose lead ends between `low` and `high`, both plus 32: from -UNIT to UNIT."""
    if high < low:
        return 0
    deviation = max(0.35, 0.42 * math.sqrt(high - low))
    middle = (high + low) / 2 - 32

    def below(bound: float) -> float:
        return 0.5 * (1 + math.erf((bound - middle) / (deviation * math.sqrt(2))))

    return round(UNIT * ((1 - below(0.5)) - below(-0.5)))


EXPECTED = frozen([[_expected_outcome(high, low) for low in range(64)] for high in range(64)], np.int8)
"""(64, 64) int8: the estimate for one section by the upper and the lower bound of its lead, both plus 32."""


@jit
def write_owned(seat0_slots: int, owned: States) -> None:
    """Write the lines of seat 0's stones into `owned`, (9,) int64: boards as in a state, then the slots as bits."""
    for word in range(8):
        owned[word] = 0
    owned[8] = seat0_slots
    bits = seat0_slots
    while bits:
        slot = lowest(bits)
        owned[DIRECTION[slot]] |= SLOT_BOARD[slot, 0]
        owned[DIRECTION[slot] + 1] |= SLOT_BOARD[slot, 1]
        bits &= bits - 1


@jit
def read_state(game: Record, margin: int, states: States, row: int) -> None:
    """Write a two-player movement phase into a row of `states`, not reduced yet."""
    for word in range(8):
        states[row, word] = 0
    states[row, STONES] = game.movable[0] | game.movable[1]
    bits = states[row, STONES]
    while bits:
        slot = lowest(bits)
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
def _write_run(game: Record, slot: int, states: States, row: int) -> None:
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


@jit(counted=False)
def slide(states: States, parent: int, child: int, slot: int) -> None:
    """Write the state after sliding the stone of `slot`, the opponent to move, not reduced yet, into row `child`."""
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


@jit(counted=False)
def spend_tempo(states: States, parent: int, child: int) -> None:
    """Write the state after the mover, who has one, spends a tempo into row `child`."""
    for word in range(NUM_WORDS):
        states[child, word] = states[parent, word]
    mover = states[parent, MOVER]
    states[child, TEMPI] -= 1 - 2 * mover
    states[child, MOVER] = 1 - mover


@jit(counted=False)
def run_end(states: States, row: int, slot: int) -> int:
    """Return the inner square 0..80 where the stone of `slot` would come to rest."""
    direction = DIRECTION[slot]
    lo, hi = states[row, direction] & SLOT_BOARD[slot, 0], states[row, direction + 1] & SLOT_BOARD[slot, 1]
    if direction in (LEFT, UP):
        return lowest(lo) if lo else 54 + lowest(hi)
    if hi:
        return 54 + highest(hi)
    return highest(lo)


SEVERAL, BLOCKABLE, ISOLATED, SCRATCH = 8, 14, 20, 26
"""Parts of the scratch memory of `reduce`: from 0 the boards of possible landings, as the runs in a state; then flags
of the stones with arrivals in several sections, of those that others can block, and of those that may be isolated.
Flags are six words: bit 8 of the rows of stones that slide right (lo, hi) and left, the columns of those that slide
down and up. Last, the size of it all."""


@jit(counted=False)
def reduce(states: States, row: int, owned: States, scratch: States) -> int:
    """Reduce a state in place as the module's text says; return the verdict. `scratch` is (`SCRATCH`,) int64.

    The bounds come first, since an isolated stone is a sure one or matters to no open section: they decide many states
    at once, and more stones are isolated once more sections are decided.
    """
    _write_landings(states, row, scratch)
    _write_flags(states, row, scratch)
    verdict = _decide_sections(states, row, owned, scratch)
    if verdict == UNDECIDED:
        isolated = _isolated_slots(states, row, scratch)
        if isolated:
            _take_out(states, row, scratch, owned, isolated)
        _settle_turn(states, row, owned)
    return verdict


@jit(inline=True)
def _write_landings(states: States, row: int, scratch: States) -> None:
    """Find the possible landings: from the ends of the runs to the least fixed point."""
    right_lo, right_hi, left_lo, left_hi = states[row, 0], states[row, 1], states[row, 2], states[row, 3]
    down_lo, down_hi, up_lo, up_hi = states[row, 4], states[row, 5], states[row, 6], states[row, 7]
    later_right_lo, later_right_hi = right_lo & ~COL0, right_hi & ~COL0  # runs without their first squares
    later_left_lo, later_left_hi = left_lo & ~COL8, left_hi & ~COL8
    later_down_lo, later_up_hi = down_lo & ~ROW, up_hi & (HIGH >> 9)
    end_right_lo, end_right_hi = right_lo & ~(later_right_lo >> 1), right_hi & ~(later_right_hi >> 1)
    end_left_lo, end_left_hi = left_lo & ~(later_left_lo << 1), left_hi & ~(later_left_hi << 1)
    moved_lo, moved_hi = rows_up(later_down_lo, down_hi)
    end_down_lo, end_down_hi = down_lo & ~moved_lo, down_hi & ~moved_hi
    moved_lo, moved_hi = rows_down(up_lo, later_up_hi)
    end_up_lo, end_up_hi = up_lo & ~moved_lo, up_hi & ~moved_hi
    column_lo, column_hi = end_down_lo | end_up_lo, end_down_hi | end_up_hi
    while True:
        land_right_lo = end_right_lo | ((column_lo & later_right_lo) >> 1)
        land_right_hi = end_right_hi | ((column_hi & later_right_hi) >> 1)
        land_left_lo = end_left_lo | ((column_lo & later_left_lo) << 1)
        land_left_hi = end_left_hi | ((column_hi & later_left_hi) << 1)
        row_lo, row_hi = land_right_lo | land_left_lo, land_right_hi | land_left_hi
        moved_lo, moved_hi = rows_up(row_lo & later_down_lo, row_hi & down_hi)
        land_down_lo, land_down_hi = end_down_lo | moved_lo, end_down_hi | moved_hi
        moved_lo, moved_hi = rows_down(row_lo & up_lo, row_hi & later_up_hi)
        land_up_lo, land_up_hi = end_up_lo | moved_lo, end_up_hi | moved_hi
        before_lo, before_hi = column_lo, column_hi
        column_lo, column_hi = land_down_lo | land_up_lo, land_down_hi | land_up_hi
        if column_lo == before_lo and column_hi == before_hi:
            break
    scratch[0], scratch[1], scratch[2], scratch[3] = land_right_lo, land_right_hi, land_left_lo, land_left_hi
    scratch[4], scratch[5], scratch[6], scratch[7] = land_down_lo, land_down_hi, land_up_lo, land_up_hi


@jit(inline=True)
def _write_flags(states: States, row: int, scratch: States) -> None:
    """Flag the stones with arrivals in several sections, and those that others can block."""
    right_lo, right_hi, left_lo, left_hi = states[row, 0], states[row, 1], states[row, 2], states[row, 3]
    down_lo, up_hi = states[row, 4], states[row, 7]
    scratch[8], scratch[9] = several_in_row(row_thirds(scratch[0])), several_in_row(row_thirds(scratch[1]))
    scratch[10], scratch[11] = several_in_row(row_thirds(scratch[2])), several_in_row(row_thirds(scratch[3]))
    scratch[12] = several_in_column(column_thirds(scratch[4]), column_thirds(scratch[5]))
    scratch[13] = several_in_column(column_thirds(scratch[6]), column_thirds(scratch[7]))
    land_row_lo, land_row_hi = scratch[0] | scratch[2], scratch[1] | scratch[3]
    land_column_lo, land_column_hi = scratch[4] | scratch[6], scratch[5] | scratch[7]
    scratch[14] = (right_lo & COL0 & (land_column_lo | scratch[2])) << 8
    scratch[15] = (right_hi & COL0 & (land_column_hi | scratch[3])) << 8
    scratch[16] = left_lo & COL8 & (land_column_lo | scratch[0])
    scratch[17] = left_hi & COL8 & (land_column_hi | scratch[1])
    scratch[18] = down_lo & ROW & (land_row_lo | scratch[6])
    scratch[19] = (up_hi & (land_row_hi | scratch[5])) >> 18


@jit(inline=True)
def _isolated_slots(states: States, row: int, scratch: States) -> int:
    """Return the slots of the isolated stones."""
    open_lo, open_hi = SECTION_BOARD[states[row, OPEN], 0], SECTION_BOARD[states[row, OPEN], 1]
    down = any_in_column(scratch[4] & open_lo, scratch[5] & open_hi)
    up = any_in_column(scratch[6] & open_lo, scratch[7] & open_hi)
    right_lo = scratch[14] | (scratch[8] & any_in_row(scratch[0] & open_lo))
    right_hi = scratch[15] | (scratch[9] & any_in_row(scratch[1] & open_hi))
    left_lo = scratch[16] | (scratch[10] & any_in_row(scratch[2] & open_lo))
    left_hi = scratch[17] | (scratch[11] & any_in_row(scratch[3] & open_hi))
    scratch[20] = ((states[row, 0] & COL0) << 8) & ~right_lo
    scratch[21] = ((states[row, 1] & COL0) << 8) & ~right_hi
    scratch[22] = states[row, 2] & COL8 & ~left_lo
    scratch[23] = states[row, 3] & COL8 & ~left_hi
    scratch[24] = states[row, 4] & ROW & ~(scratch[18] | (scratch[12] & down))
    scratch[25] = (states[row, 7] >> 18) & ~(scratch[19] | (scratch[13] & up))
    harmful = True
    while harmful:
        harmful = _drop_harmful(states, row, scratch)
    rows = LINE_SLOTS[0, nine_bits(scratch[20], scratch[21])] | LINE_SLOTS[1, nine_bits(scratch[22], scratch[23])]
    return rows | LINE_SLOTS[2, scratch[24]] | LINE_SLOTS[3, scratch[25]]


@jit(inline=True)
def _drop_harmful(states: States, row: int, scratch: States) -> bool:
    """Drop from the flagged stones those that can land in the run of one that is not; tell whether there were any."""
    one, two, three, four, five, six = scratch[20], scratch[21], scratch[22], scratch[23], scratch[24], scratch[25]
    if (one | two | three | four | five | six) == 0:
        return False
    right_lo, right_hi = states[row, 0] & ~whole_rows(one), states[row, 1] & ~whole_rows(two)
    left_lo, left_hi = states[row, 2] & ~whole_rows(three), states[row, 3] & ~whole_rows(four)
    down_lo, down_hi = states[row, 4] & ~(five * SIX_ROWS), states[row, 5] & ~(five * THREE_ROWS)
    up_lo, up_hi = states[row, 6] & ~(six * SIX_ROWS), states[row, 7] & ~(six * THREE_ROWS)
    row_lo, row_hi, column_lo, column_hi = right_lo | left_lo, right_hi | left_hi, down_lo | up_lo, down_hi | up_hi
    one &= any_in_row(scratch[0] & (column_lo | left_lo))
    two &= any_in_row(scratch[1] & (column_hi | left_hi))
    three &= any_in_row(scratch[2] & (column_lo | right_lo))
    four &= any_in_row(scratch[3] & (column_hi | right_hi))
    five &= any_in_column(scratch[4] & (row_lo | up_lo), scratch[5] & (row_hi | up_hi))
    six &= any_in_column(scratch[6] & (row_lo | down_lo), scratch[7] & (row_hi | down_hi))
    scratch[20] ^= one
    scratch[21] ^= two
    scratch[22] ^= three
    scratch[23] ^= four
    scratch[24] ^= five
    scratch[25] ^= six
    return (one | two | three | four | five | six) != 0


@jit(counted=False)
def _take_out(states: States, row: int, scratch: States, owned: States, isolated: int) -> None:
    """Count isolated stones in their sections and turn them into tempi."""
    while isolated:
        slot = lowest(isolated)
        board, line_lo, line_hi = DIRECTION[slot], SLOT_BOARD[slot, 0], SLOT_BOARD[slot, 1]
        lo, hi = scratch[board] & line_lo, scratch[board + 1] & line_hi
        section = SECTION_OF[lowest(lo) if lo else 54 + lowest(hi)]
        sign = 2 * ((owned[8] >> slot) & 1) - 1
        states[row, LEADS] += (sign * ((states[row, OPEN] >> section) & 1)) << (7 * section)
        states[row, TEMPI] += sign
        states[row, STONES] &= ~(1 << slot)
        states[row, board] &= ~line_lo
        states[row, board + 1] &= ~line_hi
        isolated &= isolated - 1


@jit(inline=True)
def _decide_sections(states: States, row: int, owned: States, scratch: States) -> int:
    """Bound the lead of every undecided section, forget it where the bounds agree; return the verdict.

    All sections are compared at once: a mask has a one at the foot of each field where the lead is above a number, 31
    for at least tied or 32 for won. A step between two leads, from lost to tied or from tied to won, is a one that only
    one of their masks has.
    """
    upper, lower, lead, free0, free1 = _lead_bounds(states, row, owned, scratch)
    open_ = _ONES & FIELDS[states[row, OPEN]]
    best_won, best_tied = open_ & _above(upper, 32), open_ & _above(upper, 31)
    worst_won, worst_tied = open_ & _above(lower, 32), open_ & _above(lower, 31)
    won, tied = open_ & _above(lead, 32), open_ & _above(lead, 31)
    total = states[row, DECIDED] + popcount(won) + popcount(tied) - popcount(open_)
    steps, near = (won ^ worst_won) | (tied ^ worst_tied) << 1, 3 * _above(lead, 33)
    if total - _most_gain(popcount(steps & ~near), popcount(steps & near), free1) > 0:
        return FIRST_WINS
    steps, near = (best_won ^ won) | (best_tied ^ tied) << 1, 3 * _above(lead, 30)
    if total + _most_gain(popcount(steps & near), popcount(steps & ~near), free0) <= 0:
        return SECOND_WINS
    agreed = open_ & ~((best_won ^ worst_won) | (best_tied ^ worst_tied))
    states[row, DECIDED] += popcount(agreed & won) + popcount(agreed & tied) - popcount(agreed)
    while agreed:
        states[row, OPEN] &= ~(1 << (lowest(agreed) // 7))
        agreed &= agreed - 1
    fields = FIELDS[states[row, OPEN]]
    states[row, LEADS] = (states[row, LEADS] & fields) | (_BIAS & ~fields)
    states[row, UPPER], states[row, LOWER] = upper, lower
    return UNDECIDED


@jit
def _above(fields: int, bound: int) -> int:
    """Return ones at the feet of the fields, all between 0 and 64, that are above a bound near 32."""
    return ((fields + (63 - bound) * _ONES) >> 6) & _ONES


@jit(counted=False)
def estimate_lead(states: States, row: int) -> int:
    """Return the static estimate of by how much seat 0 leads more than the margin asked about, in `UNIT` a section."""
    estimate, bits = UNIT * states[row, DECIDED], states[row, OPEN]
    while bits:
        shift = 7 * lowest(bits)
        estimate += EXPECTED[(states[row, UPPER] >> shift) & 63, (states[row, LOWER] >> shift) & 63]
        bits &= bits - 1
    return estimate


@jit
def _most_gain(near: int, far: int, stones: int) -> int:
    """Bound what so many stones can win, if `near` steps take one stone each and `far` ones three for two."""
    return min(near, stones) + min(far, max(0, stones - near) * 2 // 3)


@jit(inline=True)
def _lead_bounds(states: States, row: int, owned: States, scratch: States) -> tuple[int, int, int, int, int]:
    """Return upper and lower bounds of the leads, and the leads with the sure arrivals alone, in fields like `LEADS`.

    After them comes how many stones each seat has that are not sure.
    """
    right_lo, right_hi = row_thirds(scratch[0]), row_thirds(scratch[1])
    left_lo, left_hi = row_thirds(scratch[2]), row_thirds(scratch[3])
    down_lo, down_hi = column_thirds(scratch[4]), column_thirds(scratch[5])
    up_lo, up_hi = column_thirds(scratch[6]), column_thirds(scratch[7])
    most = count_arrivals(right_lo, right_hi, left_lo, left_hi, down_lo, down_hi, up_lo, up_hi)
    most_own = count_arrivals(
        right_lo & owned[0], right_hi & owned[1], left_lo & owned[2], left_hi & owned[3],
        down_lo & owned[4], down_hi & owned[5], up_lo & owned[6], up_hi & owned[7],
    )  # fmt: skip
    right_lo &= ~whole_rows(scratch[8] | scratch[14])
    right_hi &= ~whole_rows(scratch[9] | scratch[15])
    left_lo &= ~whole_rows(scratch[10] | scratch[16])
    left_hi &= ~whole_rows(scratch[11] | scratch[17])
    down, up = scratch[12] | scratch[18], scratch[13] | scratch[19]
    down_lo, down_hi = down_lo & ~(down | down << 27), down_hi & ~down
    up_lo, up_hi = up_lo & ~(up | up << 27), up_hi & ~up
    sure = count_arrivals(right_lo, right_hi, left_lo, left_hi, down_lo, down_hi, up_lo, up_hi)
    sure_own = count_arrivals(
        right_lo & owned[0], right_hi & owned[1], left_lo & owned[2], left_hi & owned[3],
        down_lo & owned[4], down_hi & owned[5], up_lo & owned[6], up_hi & owned[7],
    )  # fmt: skip
    stones, leads = states[row, STONES], states[row, LEADS] + sure_own
    first, second = popcount(stones & owned[8]), popcount(stones & ~owned[8])
    free0, free1 = first - _sum_of_fields(sure_own), second - _sum_of_fields(sure - sure_own)
    return leads + most_own - sure, leads + most_own - most, leads + sure_own - sure, free0, free1


@jit
def _sum_of_fields(fields: int) -> int:
    """Add up fields of 7 bits: times one in every field, the last field is the sum."""
    return ((fields * _ONES) >> 56) & 127


@jit(inline=True)
def _settle_turn(states: States, row: int, owned: States) -> None:
    """Clip the tempi, and hand the turn to the seat that can move."""
    stones = states[row, STONES]
    first = popcount(stones & owned[8])
    second = popcount(stones) - first
    if first == 0 or second == 0:  # one seat plays the rest alone
        states[row, TEMPI] = 0
        states[row, MOVER] = int(first == 0)
    else:
        states[row, TEMPI] = min(max(states[row, TEMPI], -first), second)
