"""Regions: what a point encloses, the least chain round a core, and what drawing it changes.

The *core* of a node for a seat is what is reached from it by orthogonal steps through nodes that are no live points of
that seat; a core without a node of the edge is *enclosed*. An enclosed core that holds opposing points, and is not
drawn yet, may be drawn: then its *inside* becomes a region of the seat, that is all that the least simple closed chain
round the core encloses.

The bits `ENCLOSED` of a record are exact at every time, and `held` counts the opposing points in cores that a seat
encloses and has not drawn. Both follow from points and regions alone, so that equal positions are equal records.
"""

from __future__ import annotations

import numpy as np

from ninetka_env.core.jit import inner, jit, lowest
from ninetka_env.core.verbs import Record
from ninetka_env.games.kropki.geometry import (
    ARC,
    EDGE,
    ENCLOSED,
    LIVE,
    MARK,
    NUM_ARCS,
    NUM_SECTORS,
    ON_BOARD,
    POINT,
    REGION,
    SECTOR_ENTRY,
    SOUTH,
    STEP_COLUMNS,
    STEP_ROWS,
)

UNMARKED = MARK - 1
"""All bits but `MARK`."""
WORD = 8
"""Cells of a word."""
EACH = np.uint64(0x0101010101010101)
"""A word with 1 in each byte."""
LOW, HIGH = EACH * np.uint64(127), EACH << np.uint64(7)
"""The low bits and the high bit of each byte."""
BLOCK = 32
"""Cells that loops go through at once; a record has a whole number of blocks."""
at = np.uint64
"""Makes an int an index that compiled code takes as it is; one with a sign it would test, and count from the end."""


@inner
def step(game: Record, direction: int) -> int:
    """Return the step from a cell to its neighbour in a direction."""
    return int(STEP_ROWS[direction]) * int(game.width) + int(STEP_COLUMNS[direction])


@inner
def ring_of(game: Record, place: int, bits: int, value: int) -> int:
    """Return the directions, as bits, of the neighbours of cell `place` whose `bits` are `value`."""
    cell, w = game.cell, int(game.width)
    return int(ON_BOARD[w, at(place)]) & (
        int(cell[at(place - w)] & bits == value)
        | int(cell[at(place - w + 1)] & bits == value) << 1
        | int(cell[at(place + 1)] & bits == value) << 2
        | int(cell[at(place + w + 1)] & bits == value) << 3
        | int(cell[at(place + w)] & bits == value) << 4
        | int(cell[at(place + w - 1)] & bits == value) << 5
        | int(cell[at(place - 1)] & bits == value) << 6
        | int(cell[at(place - w - 1)] & bits == value) << 7
    )


# Groups: the points of a seat that king's steps join, live or not. A group's label is its lowest cell. Points never go
# away, so groups never split.


@inner
def join_groups(game: Record, place: int) -> bool:
    """Label a new point, and make one group of all that it joins.

    Returns:
        Whether two arcs of its ring were in one group already: only then can it close a chain. (Beside a node without
        a region an inert point joins no arcs: it is met across a corner, between two links of its region's chain.)
    """
    label = game.label
    ring, closing = ring_of(game, place, POINT, int(game.cell[place]) & POINT), False
    label[place] = place
    for arc in range(NUM_ARCS[ring]):
        there = place + step(game, ARC[ring, arc])
        if label[there] == label[place]:
            closing = True
        elif label[there] > label[place]:
            _relabel(game, there, place)
        elif arc == 0:  # still alone
            label[place] = label[there]
        else:
            _relabel(game, place, there)
    return closing


@inner
def _relabel(game: Record, there: int, place: int) -> None:
    """Give the group of one cell the label of another one; all its cells are from the old label on."""
    label = game.label
    old, change = label[there], label[there] ^ label[place]
    for i in range(len(label)):  # a store in every turn, and no branch, is what lets this loop vectorise
        label[i] ^= change * (label[i] == old)


# Enclosing


@inner
def enclose(game: Record, seat: int, place: int) -> None:
    """Mark what a new live point of `seat` on cell `place` newly encloses.

    The point itself must not lie in a core that the seat encloses already: then nothing is new.
    """
    ring = ring_of(game, place, LIVE, seat + 1)
    sectors, closed = int(NUM_SECTORS[ring]), 0
    for sector in range(sectors):
        if closed + 1 == sectors:  # the point was not enclosed, so one way leads out
            break
        entry = place + step(game, SECTOR_ENTRY[ring, sector])
        value = int(game.cell[entry])
        if value & (ENCLOSED << seat):  # two sectors may lead into one core
            closed += 1
        elif value & EDGE == 0:
            size = flood(game, seat, entry, len(game.walk))
            closed += size > 0
            _mark_enclosed(game, seat, size)


@inner
def flood(game: Record, seat: int, start: int, top: int) -> int:
    """Visit the core of cell `start`, which is no node of the edge, for `seat`; `walk[top:]` is left alone.

    Returns:
        The number of its cells; they are marked, and stand at the front of `walk`. 0 if the core has a node of the
        edge; then nothing has changed.
    """
    cell, walk, live = game.cell, game.walk, seat + 1
    size, waiting, met = 0, top - 1, 0  # who waits stands at the back: both together are never more than the nodes
    cell[at(start)] |= MARK
    if _is_alone(game, seat, start):  # the most frequent case by far
        walk[0] = start
        return 1
    near, aside = _ways_out(game, start)
    walk[at(waiting)] = start
    while waiting < top:
        here = int(walk[at(waiting)])
        walk[at(size)] = here
        size, waiting = size + 1, waiting + 1
        for there in (here - near, here - aside, here + aside, here + near):  # no branches: chance would mislead them
            value = int(cell[at(there)])
            new = int(value & MARK == 0) & int(value & LIVE != live)
            cell[at(there)] = value | new * MARK
            walk[at(waiting - 1)] = there
            waiting -= new
            met |= new * value
        walk[at(waiting - 1)] = 0
        if met & EDGE:
            unmark(game, 0, size)
            unmark(game, waiting, top)
            return 0
    return size


@jit(inline=True)
def _ways_out(game: Record, place: int) -> tuple[int, int]:
    """Return the step to the nearest edge from a cell that is on none, and that to the nearer one of the others."""
    w = int(game.width)
    row = int(at(place - 1) // at(w))
    column, below = place - 1 - row * w, int(game.height) + 1 - row
    up_or_down, left_or_right = w if below < row else -w, 1 if w - 1 - column < column else -1
    if min(row - 1, below - 1) < min(column, w - 1 - column):
        return up_or_down, left_or_right
    return left_or_right, up_or_down


@jit(inline=True)
def _is_alone(game: Record, seat: int, place: int) -> bool:
    """Tell whether all four orthogonal neighbours are live points of `seat`."""
    cell, w, live = game.cell, int(game.width), seat + 1
    others = int(cell[place - w]) ^ live | int(cell[place + 1]) ^ live
    others |= int(cell[place + w]) ^ live | int(cell[place - 1]) ^ live
    return others & LIVE == 0


@inner
def unmark(game: Record, first: int, stop: int) -> None:
    """Forget the cells `walk[first:stop]`."""
    for i in range(first, stop):
        game.cell[int(game.walk[i])] &= UNMARKED
        game.walk[i] = 0


@jit(inline=True)
def _mark_enclosed(game: Record, seat: int, size: int) -> None:
    """Note that the seat encloses the first cells of `walk`, and forget them."""
    cell, walk, enclosed = game.cell, game.walk, ENCLOSED << seat
    for i in range(size):
        value = int(cell[int(walk[i])])
        game.held[seat] += value & POINT == 2 - seat
        cell[int(walk[i])] = (value | enclosed) & UNMARKED
        walk[i] = 0


@inner
def is_held(value: int, seat: int) -> bool:
    """Tell whether a cell's value is that of an opposing point in a core that `seat` encloses and has not drawn."""
    return value & _held_bits(seat) == (2 - seat | ENCLOSED << seat)


@jit(inline=True)
def _held_bits(seat: int) -> int:
    """Return the bits that tell whether a cell is held: of `REGION` there is one for each seat, and none are both."""
    return POINT | ENCLOSED << seat | seat + 1 << 2


# What may be drawn: while a seat is drawing, the lowest opposing point of each core that it may draw stands at the end
# of `walk`, the lowest of all last. So nobody who asks needs to visit cores, and asking writes nothing.


@inner
def list_drawable(game: Record, seat: int) -> None:
    """Note what `seat` may draw."""
    cell, walk = game.cell, game.walk
    top, left, place = len(walk), np.int64(game.held[seat]), np.int64(0)
    while left > 1:
        place = next_held(game, seat, place)
        for i in range(flood(game, seat, place, top)):  # marked until all are found
            left -= is_held(int(cell[int(walk[i])]), seat)
            walk[i] = 0
        top -= 1  # each core leaves out more of `walk` than it takes
        walk[top] = place
    if left:  # a core of its own
        walk[top - 1] = next_held(game, seat, place)
    if game.held[seat] > 1:
        for i in range(len(cell)):
            cell[i] &= UNMARKED


@inner
def next_held(game: Record, seat: int, place: int) -> int:
    """Return the first cell from `place` on that is held and not marked; there must be one.

    Looks at eight cells at once: a byte of a word is 0 if all its bits are as wanted (H. S. Warren, "Hacker's Delight",
    6-1: the high bit of a byte is set unless the byte is 0, and no carry leaves it).
    """
    words, byte = game.cell.view(np.uint64), place // WORD
    bits, held = EACH * np.uint64(_held_bits(seat) | MARK), EACH * np.uint64(2 - seat | ENCLOSED << seat)
    skipped = ~np.uint64(0) << np.uint64(place % WORD * 8)
    while True:
        other = words[byte] & bits ^ held
        found = ~((other & LOW) + LOW | other) & HIGH & skipped
        if found:
            return byte * WORD + (lowest(np.int64(found)) >> 3)  # type: ignore[arg-type]
        byte, skipped = byte + 1, ~np.uint64(0)


@jit(inline=True)
def forget_drawable(game: Record) -> None:
    """Forget what `list_drawable` noted."""
    for number in range(count_drawable(game)):
        game.walk[len(game.walk) - 1 - number] = 0


@inner
def count_drawable(game: Record) -> int:
    """Count the cores that may be drawn."""
    count, last = 0, len(game.walk) - 1
    while game.walk[last - count]:
        count += 1
    return count


@inner
def drawable_node(game: Record, number: int) -> int:
    """Return the node that tells core `number` of those that may be drawn, in rising order."""
    return int(game.walk[len(game.walk) - 1 - number]) - int(game.width) - 1


# Drawing


@inner
def draw_region(game: Record, seat: int, start: int) -> None:
    """Draw the least chain of `seat` round the drawable core of cell `start`; its inside becomes a region."""
    core = flood(game, seat, start, len(game.walk))
    chain, stop = core, core
    if core > 1:  # round a single node the chain is its four neighbours, and nothing else lies inside
        chain = trace_chain(game, seat, core)
        stop = _fill_inside(game, core, chain)
    broken = _take(game, seat, core, chain, stop)
    if broken:
        if core == 1:
            chain = stop = trace_chain(game, seat, core)
        _join_cores(game, 1 - seat, core, chain, stop)
    unmark(game, 0, stop)


@inner
def trace_chain(game: Record, seat: int, core: int) -> int:
    """Append the least simple closed chain round the core `walk[:core]` to `walk`, marked; return where it ends.

    It goes round the core along its live points, the core on the right, and whenever a node comes up again it cuts the
    loop off: what hangs on a single node is no part of the chain. It starts above a highest node of the core, which
    cannot hang on anything: up from there no core is in the way.
    """
    cell, walk = game.cell, game.walk
    here = int(walk[0])
    for i in range(1, core):
        here = min(here, int(walk[i]))
    here -= int(game.width)
    start, stop = here, core
    direction = _next_link(game, seat, here, SOUTH)
    first = direction
    while True:
        if cell[here] & MARK:
            while walk[stop - 1] != here:
                stop -= 1
                cell[int(walk[stop])] &= UNMARKED
                walk[stop] = 0
        else:
            cell[here] |= MARK
            walk[stop] = here
            stop += 1
        here += step(game, direction)
        core_side = direction + 2 + direction % 2 & 7  # where the last node of the core that was seen lies from here
        direction = _next_link(game, seat, here, core_side)
        if here == start and direction == first:
            return stop


@jit(inline=True)
def _next_link(game: Record, seat: int, here: int, direction: int) -> int:
    """Turn left from a direction that leads into the core, until the next link of the chain is ahead."""
    while game.cell[here + step(game, direction)] & LIVE != seat + 1:
        direction = direction - 1 & 7
    return direction


@inner
def _fill_inside(game: Record, core: int, chain: int) -> int:
    """Append to `walk` what is reached from the core `walk[:core]` before the chain, marked; return where it ends."""
    cell, walk, w = game.cell, game.walk, int(game.width)
    i, stop = 0, chain
    while i < stop:
        if i == core:
            i = chain
            continue
        here = int(walk[i])
        i += 1
        for there in (here - w, here + 1, here + w, here - 1):
            if cell[there] & MARK == 0:
                cell[there] |= MARK
                walk[stop] = there
                stop += 1
    return stop


@inner
def _take(game: Record, seat: int, core: int, chain: int, stop: int) -> bool:
    """Put the cells `walk[:core]` and `walk[chain:stop]` into a region of `seat`, and count.

    Returns:
        Whether cores of the opponent that it encloses are joined to others, as a point of it beside them is inert now.
    """
    cell, own, opposing, broken = game.cell, seat + 1, 2 - seat, False
    for i in range(stop):
        if core <= i < chain:
            continue
        place = np.int64(game.walk[i])
        value = int(cell[place])
        point, region = value & POINT, (value & REGION) >> 2
        game.held[seat] -= is_held(value, seat)
        game.free -= value & LIVE == 0
        if point == opposing and region != own:
            game.score[seat] += 1
            broken |= region == 0 and beside(game, place, ENCLOSED << 1 - seat)
        if point == own and region == opposing:
            game.score[1 - seat] -= 1
            game.held[1 - seat] += 1
        cell[place] = value & ~REGION | own << 2 | ENCLOSED << seat
    return broken


@inner
def _join_cores(game: Record, seat: int, core: int, chain: int, stop: int) -> None:
    """Find anew what `seat` encloses, after the cells `walk[:core]` and `walk[chain:stop]` became an opposing region.

    The region and its chain `walk[core:chain]` lie in one core of `seat` now, together with each core that had a node
    there. Whoever gets out of the region crosses the chain: so that core is enclosed if all cells of the chain were.
    """
    cell, bit, enclosed = game.cell, ENCLOSED << seat, ENCLOSED << seat
    for i in range(core, chain):
        enclosed &= int(cell[int(game.walk[i])])
    if enclosed:
        for i in range(stop):
            cell[int(game.walk[i])] |= bit
    else:
        _open_cores(game, seat, stop)


@inner
def _open_cores(game: Record, seat: int, stop: int) -> None:
    """Note that `seat` does not enclose the cells `walk[:stop]` any more, nor what of its cores is joined to them."""
    walk, w, bit = game.walk, int(game.width), ENCLOSED << seat
    for i in range(stop):
        _open(game, seat, int(walk[i]))
    waiting = stop
    for i in range(stop):
        here = int(walk[i])
        while True:
            for there in (here - w, here + 1, here + w, here - 1):  # beyond the end of a row nothing is enclosed
                if game.cell[there] & bit:
                    _open(game, seat, there)
                    walk[waiting] = there
                    waiting += 1
            if waiting == stop:
                break
            waiting -= 1
            here = int(walk[waiting])
            walk[waiting] = 0


@jit(inline=True)
def _open(game: Record, seat: int, place: int) -> None:
    """Note that `seat` does not enclose a cell any more."""
    value = int(game.cell[place])
    game.held[seat] -= is_held(value, seat)
    game.cell[place] = value & ~(ENCLOSED << seat)


@inner
def beside(game: Record, place: int, bit: int) -> bool:
    """Tell whether a bit is set on one of the four orthogonal neighbours."""
    cell, w = game.cell, int(game.width)
    return (int(cell[place - w]) | int(cell[place + 1]) | int(cell[place + w]) | int(cell[place - 1])) & bit != 0
