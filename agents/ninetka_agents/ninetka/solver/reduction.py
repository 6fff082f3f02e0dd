"""What matters of a two-player movement phase, reduced until little is left: the states that the solver searches.

What follows from the states (see `states`), each with the reason why it is sound:

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

Nearly all of the solver's time is spent here, so four states are reduced at once, see
`ninetka_agents.ninetka.solver.lanes`.
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
    LINE_SLOTS,
    ROW,
    SECTION_HI,
    SECTION_LO,
    SECTION_OF,
    SLOT_BOARD,
    THIRDS,
    any_in_column,
    any_in_row,
    column_thirds,
    count_arrivals,
    nine_rows,
    row_thirds,
    rows_down,
    rows_up,
    several_in_column,
    several_in_row,
    whole_columns,
    whole_rows,
)
from ninetka_agents.ninetka.solver.lanes import (
    LANES,
    Lanes,
    above_zero,
    any_set,
    count_ones,
    lane,
    load,
    pick,
    smaller,
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
from ninetka_env.core.jit import frozen, jit, lowest, popcount
from ninetka_env.games.ninetka.geometry import NUM_SECTIONS

UNDECIDED = 0
FIRST_WINS = 1
"""Verdicts: seat 0 leads by more sections than the margin asked about, or it does not."""

_ONES = sum(1 << 7 * s for s in range(NUM_SECTIONS))
_FOUR_FIELDS = (1 << 28) - 1
_FEET = frozen([sum(1 << 7 * s for s in range(NUM_SECTIONS) if open_ >> s & 1) for open_ in range(512)], np.int64)
"""(512,) int64: the lowest bits of the fields of `LEADS` of a set of sections."""
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


class Boards(NamedTuple):
    """Runs, or where their stones may land: four bit boards of each of four states."""

    right_lo: Lanes
    right_hi: Lanes
    left_lo: Lanes
    left_hi: Lanes
    down_lo: Lanes
    down_hi: Lanes
    up_lo: Lanes
    up_hi: Lanes


class Lines(NamedTuple):
    """Something about each stone of four states, by line.

    Either flags: bit 8 of the rows of stones that slide right and left, the columns of those that slide down and up; or
    thirds as `row_thirds` and `column_thirds` return them, the sections that a stone may arrive in.
    """

    right_lo: Lanes
    right_hi: Lanes
    left_lo: Lanes
    left_hi: Lanes
    down: Lanes
    up: Lanes


class Bounds(NamedTuple):
    """Bounds of four states, in fields like `LEADS`."""

    upper: Lanes
    lower: Lanes
    lead: Lanes
    """With the sure arrivals alone."""
    free0: Lanes
    free1: Lanes
    """Numbers: the stones of each seat that are not sure."""


@jit(counted=False)
def reduce(states: States, row: int, owned: States, landed: States) -> Lanes:
    """Reduce the states of rows `row` to `row + 3` in place as the module's text says; return their verdicts.

    Old states among them do no harm. `landed`, (4, 8) int64, is left with the possible landings, boards as in a state.

    The bounds come first, since an isolated stone is a sure one or matters to no open section: they decide many states
    at once, and more stones are isolated once more sections are decided.
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
    verdicts, agreed, lead = _decide_sections(bounds, decided, pick(_FEET, open_))
    open_ = open_ & ~_sections_at(agreed)
    leads = (leads & ~(127 * agreed)) | (32 * agreed)
    store(states, row, STONES, stones, leads, tempi, mover)
    store(states, row, DECIDED, decided + lead, open_, bounds.upper, bounds.lower)
    isolated = _find_isolated(runs, landings, several, blockable, open_)
    store(landed, 0, 0, landings.right_lo, landings.right_hi, landings.left_lo, landings.left_hi)
    store(landed, 0, 4, landings.down_lo, landings.down_hi, landings.up_lo, landings.up_hi)
    for place in range(LANES):
        if lane(verdicts, place) == UNDECIDED:
            _take_out(states, row + place, landed, place, owned, lane(isolated, place))
            _settle_turn(states, row + place, owned)
    return verdicts


@jit(inline=True)
def _find_landings(runs: Boards) -> Boards:
    """Find the possible landings: from the ends of the runs to the least fixed point."""
    later_right_lo, later_right_hi = runs.right_lo & ~COL0, runs.right_hi & ~COL0  # runs without their first squares
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
        if not any_set((column_lo ^ before_lo) | (column_hi ^ before_hi)):
            return Boards(right_lo, right_hi, left_lo, left_hi, down_lo, down_hi, up_lo, up_hi)


@jit(inline=True)
def _find_arrivals(landings: Boards) -> Lines:
    """Return the sections in which there are possible landings, as thirds of lines."""
    return Lines(
        row_thirds(landings.right_lo),
        row_thirds(landings.right_hi),
        row_thirds(landings.left_lo),
        row_thirds(landings.left_hi),
        column_thirds(landings.down_lo, landings.down_hi),
        column_thirds(landings.up_lo, landings.up_hi),
    )


@jit(inline=True)
def _in_several(arrivals: Lines) -> Lines:
    """Flag the stones with arrivals in several sections."""
    return Lines(
        several_in_row(arrivals.right_lo),
        several_in_row(arrivals.right_hi),
        several_in_row(arrivals.left_lo),
        several_in_row(arrivals.left_hi),
        several_in_column(arrivals.down),
        several_in_column(arrivals.up),
    )


@jit(inline=True)
def _find_blockable(runs: Boards, landings: Boards) -> Lines:
    """Flag the stones that others can block: those that can land on the first square of their run."""
    row_lo, row_hi = landings.right_lo | landings.left_lo, landings.right_hi | landings.left_hi
    column_lo, column_hi = landings.down_lo | landings.up_lo, landings.down_hi | landings.up_hi
    return Lines(
        (runs.right_lo & COL0 & (column_lo | landings.left_lo)) << 8,
        (runs.right_hi & COL0 & (column_hi | landings.left_hi)) << 8,
        runs.left_lo & COL8 & (column_lo | landings.right_lo),
        runs.left_hi & COL8 & (column_hi | landings.right_hi),
        runs.down_lo & ROW & (row_lo | landings.up_lo),
        (runs.up_hi & (row_hi | landings.down_hi)) >> 18,
    )


@jit(inline=True)
def _bound_leads(
    arrivals: Lines, several: Lines, blockable: Lines, stones: Lanes, leads: Lanes, owned: States
) -> Bounds:
    """Bound the lead of every section by the most arrivals of each seat and by the sure ones."""
    most, most_own = _count_all(arrivals), _count_own(arrivals, owned)
    down, up = several.down | blockable.down, several.up | blockable.up
    arrivals = Lines(
        arrivals.right_lo & ~whole_rows(several.right_lo | blockable.right_lo),
        arrivals.right_hi & ~whole_rows(several.right_hi | blockable.right_hi),
        arrivals.left_lo & ~whole_rows(several.left_lo | blockable.left_lo),
        arrivals.left_hi & ~whole_rows(several.left_hi | blockable.left_hi),
        arrivals.down & ~(down | (down << 21) | (down << 42)),
        arrivals.up & ~(up | (up << 21) | (up << 42)),
    )
    sure, sure_own = _count_all(arrivals), _count_own(arrivals, owned)
    slots, leads = owned[OWN_SLOTS], leads + sure_own
    free0 = count_ones(stones & slots) - _sum_of_fields(sure_own)
    free1 = count_ones(stones & ~slots) - _sum_of_fields(sure - sure_own)
    return Bounds(leads + most_own - sure, leads + most_own - most, leads + sure_own - sure, free0, free1)


@jit(inline=True)
def _count_all(arrivals: Lines) -> Lanes:
    """Count arrivals in each section."""
    return count_arrivals(
        arrivals.right_lo, arrivals.right_hi, arrivals.left_lo, arrivals.left_hi, arrivals.down, arrivals.up
    )


@jit(inline=True)
def _count_own(arrivals: Lines, owned: States) -> Lanes:
    """Count those of seat 0."""
    return count_arrivals(
        arrivals.right_lo & owned[0], arrivals.right_hi & owned[1], arrivals.left_lo & owned[2],
        arrivals.left_hi & owned[3], arrivals.down & owned[OWN_DOWN], arrivals.up & owned[OWN_UP],
    )  # fmt: skip


@jit
def _sum_of_fields(fields: Lanes) -> Lanes:
    """Add up the nine fields of 7 bits; the sum fits in one."""
    halves = (fields & _FOUR_FIELDS) + ((fields >> 28) & _FOUR_FIELDS)
    pairs = halves + (halves >> 14)
    return (pairs + (pairs >> 7) + (fields >> 56)) & 127


@jit(inline=True)
def _decide_sections(bounds: Bounds, decided: Lanes, open_: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Compare the bounds of the leads of all undecided sections, `open_`.

    All sections are compared at once: a mask has a one at the foot of each field where the lead is above a number, 31
    for at least tied or 32 for won. A step between two leads, from lost to tied or from tied to won, is a one that only
    one of their masks has.

    Returns:
        The verdicts; the sections where the bounds agree, none in decided states; by how many of them seat 0 leads.
    """
    best_won, best_tied = open_ & _above(bounds.upper, 32), open_ & _above(bounds.upper, 31)
    worst_won, worst_tied = open_ & _above(bounds.lower, 32), open_ & _above(bounds.lower, 31)
    won, tied = open_ & _above(bounds.lead, 32), open_ & _above(bounds.lead, 31)
    total = decided + count_ones(won) + count_ones(tied) - count_ones(open_)
    steps, near = (won ^ worst_won) | ((tied ^ worst_tied) << 1), 3 * _above(bounds.lead, 33)
    first_wins = above_zero(total - _most_gain(count_ones(steps & ~near), count_ones(steps & near), bounds.free1))
    steps, near = (best_won ^ won) | ((best_tied ^ tied) << 1), 3 * _above(bounds.lead, 30)
    may_win = above_zero(total + _most_gain(count_ones(steps & near), count_ones(steps & ~near), bounds.free0))
    undecided = may_win & ~first_wins
    agreed = undecided & open_ & ~((best_won ^ worst_won) | (best_tied ^ worst_tied))
    lead = count_ones(agreed & won) + count_ones(agreed & tied) - count_ones(agreed)
    return (first_wins & FIRST_WINS) | (~first_wins & ~may_win), agreed, lead


@jit
def _above(fields: Lanes, bound: int) -> Lanes:
    """Return ones at the feet of the fields, all between 0 and 64, that are above a bound near 32."""
    return ((fields + (63 - bound) * _ONES) >> 6) & _ONES


@jit
def _most_gain(near: Lanes, far: Lanes, stones: Lanes) -> Lanes:
    """Bound what so many stones can win, if `near` steps take one stone each and `far` ones three for two."""
    left = stones - near
    return smaller(near, stones) + smaller(far, ((left & above_zero(left)) * 171) >> 8)  # two thirds, up to 127


@jit
def _sections_at(feet: Lanes) -> Lanes:
    """Gather ones at the feet of fields into 9 bits."""
    threes = (feet | (feet >> 6) | (feet >> 12)) & (7 * THIRDS)
    return (threes | (threes >> 18) | (threes >> 36)) & 511


@jit(inline=True)
def _find_isolated(runs: Boards, landings: Boards, several: Lines, blockable: Lines, open_: Lanes) -> Lanes:
    """Return the slots of the isolated stones."""
    open_lo, open_hi = pick(SECTION_LO, open_), pick(SECTION_HI, open_)
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
    while any_set(right_lo | right_hi | left_lo | left_hi | down | up):
        bad = _find_harmful(runs, landings, Lines(right_lo, right_hi, left_lo, left_hi, down, up))
        right_lo, right_hi, left_lo = right_lo ^ bad.right_lo, right_hi ^ bad.right_hi, left_lo ^ bad.left_lo
        left_hi, down, up = left_hi ^ bad.left_hi, down ^ bad.down, up ^ bad.up
        if not any_set(bad.right_lo | bad.right_hi | bad.left_lo | bad.left_hi | bad.down | bad.up):
            break
    rows = pick(LINE_SLOTS[0], nine_rows(right_lo, right_hi)) | pick(LINE_SLOTS[1], nine_rows(left_lo, left_hi))
    return rows | pick(LINE_SLOTS[2], down) | pick(LINE_SLOTS[3], up)


@jit(inline=True)
def _find_harmful(runs: Boards, landings: Boards, flags: Lines) -> Lines:
    """Return those of the flagged stones that can land in the run of one that is not flagged."""
    right_lo, right_hi = runs.right_lo & ~whole_rows(flags.right_lo), runs.right_hi & ~whole_rows(flags.right_hi)
    left_lo, left_hi = runs.left_lo & ~whole_rows(flags.left_lo), runs.left_hi & ~whole_rows(flags.left_hi)
    out_lo, out_hi = whole_columns(flags.down)
    down_lo, down_hi = runs.down_lo & ~out_lo, runs.down_hi & ~out_hi
    out_lo, out_hi = whole_columns(flags.up)
    up_lo, up_hi = runs.up_lo & ~out_lo, runs.up_hi & ~out_hi
    row_lo, row_hi, column_lo, column_hi = right_lo | left_lo, right_hi | left_hi, down_lo | up_lo, down_hi | up_hi
    return Lines(
        flags.right_lo & any_in_row(landings.right_lo & (column_lo | left_lo)),
        flags.right_hi & any_in_row(landings.right_hi & (column_hi | left_hi)),
        flags.left_lo & any_in_row(landings.left_lo & (column_lo | right_lo)),
        flags.left_hi & any_in_row(landings.left_hi & (column_hi | right_hi)),
        flags.down & any_in_column(landings.down_lo & (row_lo | up_lo), landings.down_hi & (row_hi | up_hi)),
        flags.up & any_in_column(landings.up_lo & (row_lo | down_lo), landings.up_hi & (row_hi | down_hi)),
    )


@jit(counted=False)
def _take_out(states: States, row: int, landings: States, place: int, owned: States, isolated: int) -> None:
    """Count isolated stones in their sections and turn them into tempi."""
    while isolated:
        slot = lowest(isolated)
        board, line_lo, line_hi = DIRECTION[slot], SLOT_BOARD[slot, 0], SLOT_BOARD[slot, 1]
        lo, hi = landings[place, board] & line_lo, landings[place, board + 1] & line_hi
        section = SECTION_OF[lowest(lo) if lo else 54 + lowest(hi)]
        sign = 2 * ((owned[OWN_SLOTS] >> slot) & 1) - 1
        states[row, LEADS] += (sign * ((states[row, OPEN] >> section) & 1)) << (7 * section)
        states[row, TEMPI] += sign
        states[row, STONES] &= ~(1 << slot)
        states[row, board] &= ~line_lo
        states[row, board + 1] &= ~line_hi
        isolated &= isolated - 1


@jit(counted=False)
def estimate_lead(states: States, row: int) -> int:
    """Return the static estimate of by how much seat 0 leads more than the margin asked about, in `UNIT` a section."""
    estimate, bits = UNIT * states[row, DECIDED], states[row, OPEN]
    while bits:
        shift = 7 * lowest(bits)
        estimate += EXPECTED[(states[row, UPPER] >> shift) & 63, (states[row, LOWER] >> shift) & 63]
        bits &= bits - 1
    return estimate


@jit(inline=True)
def _settle_turn(states: States, row: int, owned: States) -> None:
    """Clip the tempi, and hand the turn to the seat that can move."""
    stones = states[row, STONES]
    first = popcount(stones & owned[OWN_SLOTS])
    second = popcount(stones) - first
    if first == 0 or second == 0:  # one seat plays the rest alone
        states[row, TEMPI] = 0
        states[row, MOVER] = int(first == 0)
    else:
        states[row, TEMPI] = min(max(states[row, TEMPI], -first), second)
