"""Reduce the states that the solver searches to what can still change the result.

`reduce` applies the following rules to states (see `states`). Each rule is given with the reason why it is sound.

**Possible landings.** A stone comes to rest on the last square of its current run. Runs only get shorter. A run gets a
new end only if a stone that crosses its line lands one square beyond that end. (A stone that slides the other way on
the same line stops at an obstacle that already ends the run, or blocks the stone altogether.) So all squares on which
stones can ever land are in the smallest set that contains the end of each run and, for each of its squares, the square
before it in every run that crosses there. The set may be too large but never too small, and it only shrinks during the
game.

**Isolated stones.** Take a set of stones such that (1) none of them can be blocked: no other stone can land on the
first square of its run; (2) all possible landings of a stone are in one section, or all are in decided sections; (3) no
stone of the set has a possible landing in the run of a stone outside the set. Each of these stones slides in the end,
because a seat that can slide must, and it settles in that section even if other stones shorten its run. Nothing that
these stones do affects a stone outside the set. So they are counted at once, and each leaves only a *tempo*: a move
that does nothing but pass the turn. To find the largest such set, start with all stones that satisfy (1) and (2), and
remove those that violate (3) until none does.

**Tempi cancel.** With one more tempo for each seat, the seat that wins without them still wins, because it answers a
tempo with its own. If it must spend its own tempo first, because it cannot slide, it never gets another stone to slide,
and the other seat plays the rest alone, with or without a tempo. So only the difference counts.

**Tempi are clipped.** While the opponent can still slide, it does so after each turn of the seat with tempi. So a seat
with as many tempi as the opponent has stones still has a tempo until the opponent has no stones left, and after that
the order of moves does not matter. More tempi are worth no more.

**Section bounds.** A stone's *arrivals* are the sections of its possible landings. A stone is *sure* if it cannot be
blocked and has a single arrival. A seat gets into a section at most all its stones with an arrival there, and at least
those that are sure. This bounds the lead in the section (stones of seat 0 minus those of seat 1). If both bounds give
the same result (won, lost or tied), the section is decided and its lead is dropped.

**Total bounds.** A stone that is not sure settles in at most one section, so a seat cannot reach the bounds of all
sections at once. In the best case for a seat, its opponent's unsure stones never arrive. Start from the leads with the
sure stones alone. In a section where the seat leads by -1 or 0, each step (to tied, to won) takes one of its unsure
stones; in a section where it is further behind, one step takes at least two stones and two steps take at least three.
So the number of the seat's unsure stones bounds its steps in all sections together; the bound takes the steps that need
one stone first. If seat 0 does not exceed the margin in its own best case, or exceeds it in seat 1's best case, the
game is decided.

The solver spends nearly all its time here, so four states are reduced at once; see
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
"""Verdicts. `FIRST_WINS`: seat 0 leads by more sections than the margin. -1: it does not."""

_ONES = sum(1 << 7 * s for s in range(NUM_SECTIONS))
_FOUR_FIELDS = (1 << 28) - 1
_FEET = frozen([sum(1 << 7 * s for s in range(NUM_SECTIONS) if open_ >> s & 1) for open_ in range(512)], np.int64)
"""(512,) int64: the lowest bit of the field of `LEADS` of each section in a set of sections."""
UNIT = 64
"""The value of one section in the static estimate."""


def _expected_outcome(high: int, low: int) -> int:
    """Estimate the owner of a section with a final lead in `low`..`high`, both plus 32: from -UNIT to UNIT (seat 0)."""
    if high < low:
        return 0
    deviation = max(0.35, 0.42 * math.sqrt(high - low))
    middle = (high + low) / 2 - 32

    def below(bound: float) -> float:
        return 0.5 * (1 + math.erf((bound - middle) / (deviation * math.sqrt(2))))

    return round(UNIT * ((1 - below(0.5)) - below(-0.5)))


EXPECTED = frozen([[_expected_outcome(high, low) for low in range(64)] for high in range(64)], np.int8)
"""(64, 64) int8: the estimate for a section by the upper and the lower bound of its lead, both plus 32."""


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


class Lines(NamedTuple):
    """Information on the stones of four states, stored by line.

    The words hold either flags, in bit 8 of the rows for stones that slide right and left and in 9 bits for the columns
    of stones that slide down and up; or the arrivals of the stones, as thirds in the form of `row_thirds` and
    `column_thirds`.
    """

    right_lo: Lanes
    right_hi: Lanes
    left_lo: Lanes
    left_hi: Lanes
    down: Lanes
    up: Lanes


class Bounds(NamedTuple):
    """Bounds of four states. The first three are leads in fields like those of `LEADS`."""

    upper: Lanes
    lower: Lanes
    lead: Lanes
    """The lead with the sure stones alone."""
    free0: Lanes
    free1: Lanes
    """The number of stones of each seat that are not sure."""


@jit(counted=False)
def reduce(states: States, row: int, owned: States, landed: States) -> Lanes:
    """Reduce the states in rows `row` to `row + 3` in place, see the module docstring; return their verdicts.

    Some of the rows may hold old states. The possible landings are written to `landed`, (4, 8) int64, as the boards of
    each state.

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
        if not any_set((column_lo ^ before_lo) | (column_hi ^ before_hi)):
            return Boards(right_lo, right_hi, left_lo, left_hi, down_lo, down_hi, up_lo, up_hi)


@jit(inline=True)
def _find_arrivals(landings: Boards) -> Lines:
    """Return the arrivals of all stones, as thirds of lines."""
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
    """Flag the stones that can be blocked: another stone can land on the first square of their run."""
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
    """Bound the lead in every section by all arrivals of each seat and by those of the sure stones."""
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
    """Count the stones with an arrival in each section."""
    return count_arrivals(
        arrivals.right_lo, arrivals.right_hi, arrivals.left_lo, arrivals.left_hi, arrivals.down, arrivals.up
    )


@jit(inline=True)
def _count_own(arrivals: Lines, owned: States) -> Lanes:
    """Count the stones of seat 0 with an arrival in each section."""
    return count_arrivals(
        arrivals.right_lo & owned[0], arrivals.right_hi & owned[1], arrivals.left_lo & owned[2],
        arrivals.left_hi & owned[3], arrivals.down & owned[OWN_DOWN], arrivals.up & owned[OWN_UP],
    )  # fmt: skip


@jit
def _sum_of_fields(fields: Lanes) -> Lanes:
    """Return the sum of the nine 7-bit fields; it must fit in 7 bits."""
    halves = (fields & _FOUR_FIELDS) + ((fields >> 28) & _FOUR_FIELDS)
    pairs = halves + (halves >> 14)
    return (pairs + (pairs >> 7) + (fields >> 56)) & 127


@jit(inline=True)
def _decide_sections(bounds: Bounds, decided: Lanes, open_: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Decide states and sections by the bounds of the leads.

    All sections are compared at once. A mask has the lowest bit of a field set if the field's lead is above a number:
    31 for tied or won, 32 for won. A step between two leads, from lost to tied or from tied to won, is a bit that
    differs between their masks.

    Args:
        bounds: the bounds of the leads.
        decided: the lead of seat 0 in decided sections, minus the margin.
        open_: the lowest bits of the fields of the undecided sections.

    Returns:
        The verdicts; the lowest bits of the fields of sections that are newly decided, 0 in decided states; the lead of
        seat 0 in these sections.
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
    """Return the lowest bits of the fields above a bound near 32; all fields must be between 0 and 64."""
    return ((fields + (63 - bound) * _ONES) >> 6) & _ONES


@jit
def _most_gain(near: Lanes, far: Lanes, stones: Lanes) -> Lanes:
    """Bound the number of steps of `stones` stones: a `near` step takes one stone, two `far` steps take three."""
    left = stones - near
    return smaller(near, stones) + smaller(far, ((left & above_zero(left)) * 171) >> 8)  # two thirds, up to 127


@jit
def _sections_at(feet: Lanes) -> Lanes:
    """Gather the lowest bits of the nine fields into 9 bits."""
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
    """Return the flagged stones that can land in the run of a stone that is not flagged."""
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
    """Count the isolated stones in their sections, remove them and add their tempi."""
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
    """Return the static estimate of seat 0's final lead in sections minus the margin, multiplied by `UNIT`."""
    estimate, bits = UNIT * states[row, DECIDED], states[row, OPEN]
    while bits:
        shift = 7 * lowest(bits)
        estimate += EXPECTED[(states[row, UPPER] >> shift) & 63, (states[row, LOWER] >> shift) & 63]
        bits &= bits - 1
    return estimate


@jit(inline=True)
def _settle_turn(states: States, row: int, owned: States) -> None:
    """Clip the tempi and give the turn to the seat that can move."""
    stones = states[row, STONES]
    first = popcount(stones & owned[OWN_SLOTS])
    second = popcount(stones) - first
    if first == 0 or second == 0:  # only one seat can still slide
        states[row, TEMPI] = 0
        states[row, MOVER] = int(first == 0)
    else:
        states[row, TEMPI] = min(max(states[row, TEMPI], -first), second)
