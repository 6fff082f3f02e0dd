"""Remove from the states that the solver searches everything that can no longer change the result.

`reduce` applies the following rules to states (see `states`). Each rule is given with the reason why it is sound.

**Possible landings.** A stone comes to rest on the last square of its current *run*, the empty squares that it would
slide over. Runs only get shorter. A run gets a new end only if a stone that crosses its line lands one square beyond
the new end. (A stone that slides the other way on the same line stops at an obstacle that already ends the run, or
blocks the stone altogether.) So the possible landings are found as follows. Start with the end of each run. If a square
is a possible landing of one stone, then in each run that crosses its line there, add the square before it. Repeat this
until nothing changes. The result may be too large but never too small, and it only shrinks during the game.

**Isolated stones.** Take a set of stones such that (1) none of them can be blocked: no other stone can land on the
first square of its run; (2) all possible landings of a stone are in one section, or all are in decided sections; (3) no
stone of the set has a possible landing in the run of a stone outside the set. Each of these stones slides in the end,
because a seat that can slide must, and it settles in that section even if other stones shorten its run. Nothing that
these stones do affects a stone outside the set. So they are counted at once, and each leaves only a *tempo*: a move
that does nothing but pass the turn. To find the largest such set, start with all stones that satisfy (1) and (2), and
remove those that violate (3) until none does.

**Tempi cancel.** Give each seat one more tempo. The seat that won before still wins, because it answers the opponent's
extra tempo with its own. If it must spend its own extra tempo first, because it cannot slide, it never slides again,
and the opponent plays all remaining slides alone, with or without a tempo. So only the difference of the tempi counts.

**Tempi are clipped.** Then only one seat has tempi. After each of them, its opponent must slide while it can. So a seat
with as many tempi as the opponent has stones still has a tempo until the opponent has no stones left, and after that
the order of moves does not matter. More tempi change nothing.

**Section bounds.** A stone's *arrivals* are the sections of its possible landings. A stone is *sure* if it cannot be
blocked and has a single arrival. The number of a seat's stones that settle in a section is at most its number of
stones with an arrival there, and at least its number of sure stones with an arrival there. This bounds the lead in the
section (stones of seat 0 minus stones of seat 1). If both bounds give the same result (won, lost or tied), the section
is decided and its lead is dropped.

**Total bounds.** A stone that is not sure settles in at most one section, so a seat cannot reach the bounds of all
sections at once. In the best case for a seat, its opponent's unsure stones never arrive. Start from the leads with the
sure stones alone. In a section where the seat leads by -1 or 0, each step (to tied, to won) takes one of its unsure
stones; in a section where it is further behind, one step takes at least two stones and two steps take at least three.
So the number of the seat's unsure stones bounds its steps in all sections together; the bound takes the steps that need
one stone first. If seat 0 does not exceed the margin in its own best case, or exceeds it in seat 1's best case, the
game is decided.

The solver spends nearly all its time here, so four states are reduced at once; see
`ninetka_agents.ninetka.solver.simd`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ninetka_agents.ninetka.solver.bitboard import (
    COL0,
    COL8,
    DIRECTION,
    HIGH,
    ROW,
    SECTION_HI,
    SECTION_LO,
    SECTION_OF,
    SLOT_BITS_OF_LINES,
    SLOT_BOARD,
    THIRDS,
    any_in_column,
    any_in_row,
    column_thirds,
    count_arrivals,
    fill_columns,
    fill_rows,
    gather_row_flags,
    row_thirds,
    rows_down,
    rows_up,
    several_in_column,
    several_in_row,
)
from ninetka_agents.ninetka.solver.simd import (
    NUM_LANES,
    Lanes,
    any_nonzero,
    count_ones,
    gather,
    lane,
    load,
    minimum,
    positive_mask,
    store,
)
from ninetka_agents.ninetka.solver.states import (
    DECIDED,
    LEADS,
    LOWER,
    MOVER,
    OPEN,
    OWN_DOWN,
    OWN_SLOTS,
    OWN_UP,
    STONES,
    TEMPI,
    UPPER,
    States,
)
from ninetka_env.core.jit import jit, lowest_bit, popcount, readonly_array
from ninetka_env.games.ninetka.geometry import NUM_SECTIONS

UNDECIDED = 0
SEAT0_WINS = 1
"""Verdicts. `SEAT0_WINS`: seat 0 will lead by more sections than the margin. -1: seat 0 will not."""

_ONES = sum(1 << 7 * s for s in range(NUM_SECTIONS))
_FOUR_FIELDS = (1 << 28) - 1
_LOW_BITS = readonly_array(
    [sum(1 << 7 * s for s in range(NUM_SECTIONS) if open_ >> s & 1) for open_ in range(512)], np.int64
)
"""(512,) int64: the lowest bit of the field of `LEADS` of each section in a set of sections."""
ESTIMATE_UNIT = 64
"""The value of one section in the static estimate."""


def _expected_outcome(high: int, low: int) -> int:
    """Estimate the owner of a section whose final lead is from `low - 32` to `high - 32`.

    The result is between -`ESTIMATE_UNIT` (seat 1) and `ESTIMATE_UNIT` (seat 0).
    """
    if high < low:
        return 0
    deviation = max(0.35, 0.42 * math.sqrt(high - low))
    middle = (high + low) / 2 - 32

    def below(bound: float) -> float:
        return 0.5 * (1 + math.erf((bound - middle) / (deviation * math.sqrt(2))))

    return round(ESTIMATE_UNIT * ((1 - below(0.5)) - below(-0.5)))


EXPECTED = readonly_array([[_expected_outcome(high, low) for low in range(64)] for high in range(64)], np.int8)
"""(64, 64) int8: `_expected_outcome(high, low)` at index `[high, low]`."""


class Boards(NamedTuple):
    """Four bit boards, of runs or of possible landings, for each of four states."""

    right_lo: Lanes
    right_hi: Lanes
    left_lo: Lanes
    left_hi: Lanes
    down_lo: Lanes
    down_hi: Lanes
    up_lo: Lanes
    up_hi: Lanes


class LineMasks(NamedTuple):
    """Flags or arrivals of the stones of four states.

    The stones that slide right and left are stored by row, the stones that slide down and up by column. The flag
    of a row is its bit 8; the flags of the columns are bits 0 to 8. Arrivals are thirds in the form of `row_thirds` and
    `column_thirds`.
    """

    right_lo: Lanes
    right_hi: Lanes
    left_lo: Lanes
    left_hi: Lanes
    down: Lanes
    up: Lanes


class SectionBounds(NamedTuple):
    """Bounds of four states. `upper`, `lower` and `lead` have the form of `LEADS`: a lead per section, plus 32."""

    upper: Lanes
    lower: Lanes
    lead: Lanes
    """The lead with the sure stones alone."""
    unsure0: Lanes
    unsure1: Lanes
    """The number of stones of each seat that are not sure."""


@jit(refcount=False)
def reduce(states: States, row: int, owned: States, landed: States) -> Lanes:
    """Reduce the states in rows `row` to `row + 3` in place, see the module docstring; return their verdicts.

    A caller with fewer states leaves old states in the other rows. `owned` describes the stones of seat 0, see
    `OWN_SLOTS`. The possible landings of each state are written to a row of `landed`, (4, 8) int64, as eight boards.

    The bounds are computed before the isolated stones are found. This loses nothing, because an isolated stone is sure
    or can only land in decided sections. The bounds alone decide many states, and the more sections are decided, the
    more stones are isolated.
    """
    right_lo, right_hi, left_lo, left_hi = load(states, row, 0)
    down_lo, down_hi, up_lo, up_hi = load(states, row, 4)
    stones, leads, tempi, mover = load(states, row, STONES)
    decided, open_, _, _ = load(states, row, DECIDED)
    runs = Boards(right_lo, right_hi, left_lo, left_hi, down_lo, down_hi, up_lo, up_hi)
    landings = _find_landings(runs)
    arrivals = _find_arrivals(landings)
    several, blockable = _in_several(arrivals), _find_blockable(runs, landings)
    bounds = _bound_leads(arrivals, several, blockable, stones, leads, owned)
    verdicts, agreed, lead = _decide_sections(bounds, decided, gather(_LOW_BITS, open_))
    open_ = open_ & ~_sections_at(agreed)
    leads = (leads & ~(127 * agreed)) | (32 * agreed)
    store(states, row, STONES, stones, leads, tempi, mover)
    store(states, row, DECIDED, decided + lead, open_, bounds.upper, bounds.lower)
    isolated = _find_isolated(runs, landings, several, blockable, open_)
    store(landed, 0, 0, landings.right_lo, landings.right_hi, landings.left_lo, landings.left_hi)
    store(landed, 0, 4, landings.down_lo, landings.down_hi, landings.up_lo, landings.up_hi)
    for place in range(NUM_LANES):
        if lane(verdicts, place) == UNDECIDED:
            _remove_isolated(states, row + place, landed, place, owned, lane(isolated, place))
            _normalize_turn(states, row + place, owned)
    return verdicts


@jit(inline=True)
def _find_landings(runs: Boards) -> Boards:
    """Return the possible landings: the least fixed point that contains the ends of the runs."""
    later_right_lo, later_right_hi = runs.right_lo & ~COL0, runs.right_hi & ~COL0  # runs without first squares
    later_left_lo, later_left_hi = runs.left_lo & ~COL8, runs.left_hi & ~COL8
    later_down_lo, later_up_hi = runs.down_lo & ~ROW, runs.up_hi & (HIGH >> 9)
    end_right_lo, end_right_hi = runs.right_lo & ~(later_right_lo >> 1), runs.right_hi & ~(later_right_hi >> 1)
    end_left_lo, end_left_hi = runs.left_lo & ~(later_left_lo << 1), runs.left_hi & ~(later_left_hi << 1)
    moved_lo, moved_hi = rows_up(later_down_lo, runs.down_hi)
    end_down_lo, end_down_hi = runs.down_lo & ~moved_lo, runs.down_hi & ~moved_hi
    moved_lo, moved_hi = rows_down(runs.up_lo, later_up_hi)
    end_up_lo, end_up_hi = runs.up_lo & ~moved_lo, runs.up_hi & ~moved_hi
    column_lo, column_hi = end_down_lo | end_up_lo, end_down_hi | end_up_hi
    while True:
        right_lo = end_right_lo | ((column_lo & later_right_lo) >> 1)
        right_hi = end_right_hi | ((column_hi & later_right_hi) >> 1)
        left_lo = end_left_lo | ((column_lo & later_left_lo) << 1)
        left_hi = end_left_hi | ((column_hi & later_left_hi) << 1)
        row_lo, row_hi = right_lo | left_lo, right_hi | left_hi
        moved_lo, moved_hi = rows_up(row_lo & later_down_lo, row_hi & runs.down_hi)
        down_lo, down_hi = end_down_lo | moved_lo, end_down_hi | moved_hi
        moved_lo, moved_hi = rows_down(row_lo & runs.up_lo, row_hi & later_up_hi)
        up_lo, up_hi = end_up_lo | moved_lo, end_up_hi | moved_hi
        before_lo, before_hi = column_lo, column_hi
        column_lo, column_hi = down_lo | up_lo, down_hi | up_hi
        if not any_nonzero((column_lo ^ before_lo) | (column_hi ^ before_hi)):
            return Boards(right_lo, right_hi, left_lo, left_hi, down_lo, down_hi, up_lo, up_hi)


@jit(inline=True)
def _find_arrivals(landings: Boards) -> LineMasks:
    """Return the arrivals of all stones, as thirds of lines."""
    return LineMasks(
        row_thirds(landings.right_lo),
        row_thirds(landings.right_hi),
        row_thirds(landings.left_lo),
        row_thirds(landings.left_hi),
        column_thirds(landings.down_lo, landings.down_hi),
        column_thirds(landings.up_lo, landings.up_hi),
    )


@jit(inline=True)
def _in_several(arrivals: LineMasks) -> LineMasks:
    """Flag the stones with arrivals in several sections."""
    return LineMasks(
        several_in_row(arrivals.right_lo),
        several_in_row(arrivals.right_hi),
        several_in_row(arrivals.left_lo),
        several_in_row(arrivals.left_hi),
        several_in_column(arrivals.down),
        several_in_column(arrivals.up),
    )


@jit(inline=True)
def _find_blockable(runs: Boards, landings: Boards) -> LineMasks:
    """Flag the stones that can be blocked: another stone can land on the first square of their run."""
    row_lo, row_hi = landings.right_lo | landings.left_lo, landings.right_hi | landings.left_hi
    column_lo, column_hi = landings.down_lo | landings.up_lo, landings.down_hi | landings.up_hi
    return LineMasks(
        (runs.right_lo & COL0 & (column_lo | landings.left_lo)) << 8,
        (runs.right_hi & COL0 & (column_hi | landings.left_hi)) << 8,
        runs.left_lo & COL8 & (column_lo | landings.right_lo),
        runs.left_hi & COL8 & (column_hi | landings.right_hi),
        runs.down_lo & ROW & (row_lo | landings.up_lo),
        (runs.up_hi & (row_hi | landings.down_hi)) >> 18,
    )


@jit(inline=True)
def _bound_leads(
    arrivals: LineMasks, several: LineMasks, blockable: LineMasks, stones: Lanes, leads: Lanes, owned: States
) -> SectionBounds:
    """Bound the lead in every section.

    A bound counts all arrivals of one seat, but only the arrivals of the sure stones of its opponent.
    """
    max_all, max_seat0 = _count_all(arrivals), _count_seat0(arrivals, owned)
    down, up = several.down | blockable.down, several.up | blockable.up
    arrivals = LineMasks(
        arrivals.right_lo & ~fill_rows(several.right_lo | blockable.right_lo),
        arrivals.right_hi & ~fill_rows(several.right_hi | blockable.right_hi),
        arrivals.left_lo & ~fill_rows(several.left_lo | blockable.left_lo),
        arrivals.left_hi & ~fill_rows(several.left_hi | blockable.left_hi),
        arrivals.down & ~(down | (down << 21) | (down << 42)),
        arrivals.up & ~(up | (up << 21) | (up << 42)),
    )
    sure, sure_seat0 = _count_all(arrivals), _count_seat0(arrivals, owned)
    slots, leads = owned[OWN_SLOTS], leads + sure_seat0
    free0 = count_ones(stones & slots) - _sum_fields(sure_seat0)
    free1 = count_ones(stones & ~slots) - _sum_fields(sure - sure_seat0)
    return SectionBounds(leads + max_seat0 - sure, leads + max_seat0 - max_all, leads + sure_seat0 - sure, free0, free1)


@jit(inline=True)
def _count_all(arrivals: LineMasks) -> Lanes:
    """Count, for each section, the stones with an arrival there."""
    return count_arrivals(
        arrivals.right_lo, arrivals.right_hi, arrivals.left_lo, arrivals.left_hi, arrivals.down, arrivals.up
    )


@jit(inline=True)
def _count_seat0(arrivals: LineMasks, owned: States) -> Lanes:
    """Count, for each section, the stones of seat 0 with an arrival there."""
    return count_arrivals(
        arrivals.right_lo & owned[0], arrivals.right_hi & owned[1], arrivals.left_lo & owned[2],
        arrivals.left_hi & owned[3], arrivals.down & owned[OWN_DOWN], arrivals.up & owned[OWN_UP],
    )  # fmt: skip


@jit
def _sum_fields(fields: Lanes) -> Lanes:
    """Return the sum of the nine 7-bit fields; it must fit in 7 bits."""
    halves = (fields & _FOUR_FIELDS) + ((fields >> 28) & _FOUR_FIELDS)
    pairs = halves + (halves >> 14)
    return (pairs + (pairs >> 7) + (fields >> 56)) & 127


@jit(inline=True)
def _decide_sections(bounds: SectionBounds, decided: Lanes, open_: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Decide states and sections by the bounds of the leads.

    All sections are compared at once, by masks with one bit per section: the lowest bit of its field. In masks `tied`,
    the bit is set if the field is above 31 (the section is tied or won), in masks `won` if it is above 32. A step, from
    lost to tied or from tied to won, is a bit that differs between two masks `tied` or two masks `won`.

    Args:
        bounds: the bounds of the leads.
        decided: the lead of seat 0 in decided sections, minus the margin.
        open_: the lowest bits of the fields of the undecided sections.

    Returns:
        The verdicts; the lowest bits of the fields of sections that are newly decided, 0 in decided states; the lead of
        seat 0 in these sections.
    """
    best_won, best_tied = open_ & _fields_above(bounds.upper, 32), open_ & _fields_above(bounds.upper, 31)
    worst_won, worst_tied = open_ & _fields_above(bounds.lower, 32), open_ & _fields_above(bounds.lower, 31)
    won, tied = open_ & _fields_above(bounds.lead, 32), open_ & _fields_above(bounds.lead, 31)
    total = decided + count_ones(won) + count_ones(tied) - count_ones(open_)
    steps, near = (won ^ worst_won) | ((tied ^ worst_tied) << 1), 3 * _fields_above(bounds.lead, 33)
    first_wins = positive_mask(total - _max_gain(count_ones(steps & ~near), count_ones(steps & near), bounds.unsure1))
    steps, near = (best_won ^ won) | ((best_tied ^ tied) << 1), 3 * _fields_above(bounds.lead, 30)
    may_win = positive_mask(total + _max_gain(count_ones(steps & near), count_ones(steps & ~near), bounds.unsure0))
    undecided = may_win & ~first_wins
    agreed = undecided & open_ & ~((best_won ^ worst_won) | (best_tied ^ worst_tied))
    lead = count_ones(agreed & won) + count_ones(agreed & tied) - count_ones(agreed)
    return (first_wins & SEAT0_WINS) | (~first_wins & ~may_win), agreed, lead


@jit
def _fields_above(fields: Lanes, bound: int) -> Lanes:
    """Return the lowest bits of the fields above a bound near 32; all fields must be between 0 and 64."""
    return ((fields + (63 - bound) * _ONES) >> 6) & _ONES


@jit
def _max_gain(near: Lanes, far: Lanes, stones: Lanes) -> Lanes:
    """Return the maximum number of steps that `stones` unsure stones can make.

    `near` and `far` are numbers of possible steps. A near step takes one stone; two far steps take three stones
    together. See *Total bounds* in the module docstring.
    """
    left = stones - near
    return minimum(near, stones) + minimum(far, ((left & positive_mask(left)) * 171) >> 8)  # two thirds, up to 127


@jit
def _sections_at(low_bits: Lanes) -> Lanes:
    """Gather the lowest bits of the nine fields into 9 bits."""
    threes = (low_bits | (low_bits >> 6) | (low_bits >> 12)) & (7 * THIRDS)
    return (threes | (threes >> 18) | (threes >> 36)) & 511


@jit(inline=True)
def _find_isolated(runs: Boards, landings: Boards, several: LineMasks, blockable: LineMasks, open_: Lanes) -> Lanes:
    """Return the slots of the isolated stones (see the module docstring), as bits."""
    open_lo, open_hi = gather(SECTION_LO, open_), gather(SECTION_HI, open_)
    right_lo = ((runs.right_lo & COL0) << 8) & ~blockable.right_lo
    right_hi = ((runs.right_hi & COL0) << 8) & ~blockable.right_hi
    left_lo, left_hi = runs.left_lo & COL8 & ~blockable.left_lo, runs.left_hi & COL8 & ~blockable.left_hi
    down, up = runs.down_lo & ROW & ~blockable.down, (runs.up_hi >> 18) & ~blockable.up
    right_lo = right_lo & ~(several.right_lo & any_in_row(landings.right_lo & open_lo))
    right_hi = right_hi & ~(several.right_hi & any_in_row(landings.right_hi & open_hi))
    left_lo = left_lo & ~(several.left_lo & any_in_row(landings.left_lo & open_lo))
    left_hi = left_hi & ~(several.left_hi & any_in_row(landings.left_hi & open_hi))
    down = down & ~(several.down & any_in_column(landings.down_lo & open_lo, landings.down_hi & open_hi))
    up = up & ~(several.up & any_in_column(landings.up_lo & open_lo, landings.up_hi & open_hi))
    while any_nonzero(right_lo | right_hi | left_lo | left_hi | down | up):
        bad = _find_interfering(runs, landings, LineMasks(right_lo, right_hi, left_lo, left_hi, down, up))
        right_lo, right_hi, left_lo = right_lo ^ bad.right_lo, right_hi ^ bad.right_hi, left_lo ^ bad.left_lo
        left_hi, down, up = left_hi ^ bad.left_hi, down ^ bad.down, up ^ bad.up
        if not any_nonzero(bad.right_lo | bad.right_hi | bad.left_lo | bad.left_hi | bad.down | bad.up):
            break
    rows = gather(SLOT_BITS_OF_LINES[0], gather_row_flags(right_lo, right_hi)) | gather(
        SLOT_BITS_OF_LINES[1], gather_row_flags(left_lo, left_hi)
    )
    return rows | gather(SLOT_BITS_OF_LINES[2], down) | gather(SLOT_BITS_OF_LINES[3], up)


@jit(inline=True)
def _find_interfering(runs: Boards, landings: Boards, flags: LineMasks) -> LineMasks:
    """Return the flagged stones that can land in the run of a stone that is not flagged."""
    right_lo, right_hi = runs.right_lo & ~fill_rows(flags.right_lo), runs.right_hi & ~fill_rows(flags.right_hi)
    left_lo, left_hi = runs.left_lo & ~fill_rows(flags.left_lo), runs.left_hi & ~fill_rows(flags.left_hi)
    out_lo, out_hi = fill_columns(flags.down)
    down_lo, down_hi = runs.down_lo & ~out_lo, runs.down_hi & ~out_hi
    out_lo, out_hi = fill_columns(flags.up)
    up_lo, up_hi = runs.up_lo & ~out_lo, runs.up_hi & ~out_hi
    row_lo, row_hi, column_lo, column_hi = right_lo | left_lo, right_hi | left_hi, down_lo | up_lo, down_hi | up_hi
    return LineMasks(
        flags.right_lo & any_in_row(landings.right_lo & (column_lo | left_lo)),
        flags.right_hi & any_in_row(landings.right_hi & (column_hi | left_hi)),
        flags.left_lo & any_in_row(landings.left_lo & (column_lo | right_lo)),
        flags.left_hi & any_in_row(landings.left_hi & (column_hi | right_hi)),
        flags.down & any_in_column(landings.down_lo & (row_lo | up_lo), landings.down_hi & (row_hi | up_hi)),
        flags.up & any_in_column(landings.up_lo & (row_lo | down_lo), landings.up_hi & (row_hi | down_hi)),
    )


@jit(refcount=False)
def _remove_isolated(states: States, row: int, landings: States, place: int, owned: States, isolated: int) -> None:
    """Count the isolated stones in their sections, remove them and add their tempi."""
    while isolated:
        slot = lowest_bit(isolated)
        board, line_lo, line_hi = DIRECTION[slot], SLOT_BOARD[slot, 0], SLOT_BOARD[slot, 1]
        lo, hi = landings[place, board] & line_lo, landings[place, board + 1] & line_hi
        section = SECTION_OF[lowest_bit(lo) if lo else 54 + lowest_bit(hi)]
        sign = 2 * ((owned[OWN_SLOTS] >> slot) & 1) - 1
        states[row, LEADS] += (sign * ((states[row, OPEN] >> section) & 1)) << (7 * section)
        states[row, TEMPI] += sign
        states[row, STONES] &= ~(1 << slot)
        states[row, board] &= ~line_lo
        states[row, board + 1] &= ~line_hi
        isolated &= isolated - 1


@jit(refcount=False)
def estimate_lead(states: States, row: int) -> int:
    """Return the static estimate of seat 0's final lead in sections minus the margin, multiplied by `ESTIMATE_UNIT`."""
    estimate, bits = ESTIMATE_UNIT * states[row, DECIDED], states[row, OPEN]
    while bits:
        shift = 7 * lowest_bit(bits)
        estimate += EXPECTED[(states[row, UPPER] >> shift) & 63, (states[row, LOWER] >> shift) & 63]
        bits &= bits - 1
    return estimate


@jit(inline=True)
def _normalize_turn(states: States, row: int, owned: States) -> None:
    """Clip the tempi; if only one seat can still slide, drop the tempi and give the turn to that seat."""
    stones = states[row, STONES]
    first = popcount(stones & owned[OWN_SLOTS])
    second = popcount(stones) - first
    if first == 0 or second == 0:  # only one seat can still slide
        states[row, TEMPI] = 0
        states[row, MOVER] = int(first == 0)
    else:
        states[row, TEMPI] = min(max(states[row, TEMPI], -first), second)
