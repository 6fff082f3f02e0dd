"""Regions of Kropki: what a point encloses, the smallest chain round a core, and how drawing it changes the state.

The *core* of a node for a seat is the set of nodes that orthogonal steps reach from the node without crossing a live
point of that seat. A core without an edge node is *enclosed*. A seat may draw an enclosed core that contains opposing
points and is not drawn yet. Then all nodes inside the smallest simple closed chain round the core become a region of
the seat.

The `ENCLOSED` bits of a state are always exact. `held` counts, per seat, the opposing points in cores that the seat
encloses and has not drawn. Both follow from points and regions alone, so equal positions have equal states.
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
"""Cells in a 64-bit word."""
EACH = np.uint64(0x0101010101010101)
"""A word with 1 in each byte."""
LOW, HIGH = EACH * np.uint64(127), EACH << np.uint64(7)
"""The low bits and the high bit of each byte."""
BLOCK = 32
"""Cells that a vectorised loop handles at once. A state has a whole number of blocks."""
at = np.uint64
"""Converts an index to uint64. Compiled code tests a signed index for negative values, which count from the end."""


@inner
def step(game: Record, direction: int) -> int:
    """Return the step from a cell to its neighbour in a direction."""
    return int(STEP_ROWS[direction]) * int(game.width) + int(STEP_COLUMNS[direction])


@inner
def ring_of(game: Record, place: int, bits: int, value: int) -> int:
    """Return the bit set of the directions in which the neighbour of cell `place` has `cell & bits == value`."""
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


# Groups: sets of points of one seat, live or not, that are connected orthogonally or diagonally. A group's label is its
# lowest cell. Points are never removed, so groups never split.


@inner
def join_groups(game: Record, place: int) -> bool:
    """Label a new point, and merge the groups that it connects.

    Returns:
        Whether two arcs of the point's ring were in one group already. Only then can the point close a chain. (Inert
        points do not connect arcs: a node without a region touches an inert point only diagonally, between two links
        of the chain round that region.)
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
        elif arc == 0:  # the point is still a group of its own
            label[place] = label[there]
        else:
            _relabel(game, place, there)
    return closing


@inner
def _relabel(game: Record, there: int, place: int) -> None:
    """Give the group of cell `there` the label of cell `place`."""
    label = game.label
    old, change = label[there], label[there] ^ label[place]
    for i in range(len(label)):  # an unconditional store without a branch lets this loop vectorise
        label[i] ^= change * (label[i] == old)


# Enclosing


@inner
def enclose(game: Record, seat: int, place: int) -> None:
    """Mark what a new live point of `seat` on cell `place` newly encloses.

    The point must not lie in a core that the seat enclosed before. (In such a core nothing is newly enclosed.)
    """
    ring = ring_of(game, place, LIVE, seat + 1)
    sectors, closed = int(NUM_SECTORS[ring]), 0
    for sector in range(sectors):
        if closed + 1 == sectors:  # the point was not enclosed, so at least one sector leads to the edge
            break
        entry = place + step(game, SECTOR_ENTRY[ring, sector])
        value = int(game.cell[entry])
        if value & (ENCLOSED << seat):  # already marked: two sectors may lead into the same core
            closed += 1
        elif value & EDGE == 0:
            size = flood(game, seat, entry, len(game.walk))
            closed += size > 0
            _mark_enclosed(game, seat, size)


@inner
def flood(game: Record, seat: int, start: int, top: int) -> int:
    """Find the core of cell `start`, which must not be an edge node, for `seat`; `walk[top:]` is left alone.

    Returns:
        The number of cells of the core. The cells are marked, and written to the front of `walk`. If the core has an
        edge node, 0, and nothing has changed.
    """
    cell, walk, live = game.cell, game.walk, seat + 1
    # The queue is at the back of `walk`, because found and waiting cells together are never more than the nodes.
    size, waiting, met = 0, top - 1, 0
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
        # Branch-free, because random data defeats branch prediction. The step to the nearest edge is followed first.
        for there in (here - near, here - aside, here + aside, here + near):
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
    """Return two steps from a cell that is not on the edge: to the nearest edge, and to the nearer edge sideways."""
    w = int(game.width)
    row = int(at(place - 1) // at(w))
    column, below = place - 1 - row * w, int(game.height) + 1 - row
    up_or_down, left_or_right = w if below < row else -w, 1 if w - 1 - column < column else -1
    if min(row - 1, below - 1) < min(column, w - 1 - column):
        return up_or_down, left_or_right
    return left_or_right, up_or_down


@jit(inline=True)
def _is_alone(game: Record, seat: int, place: int) -> bool:
    """Return whether all four orthogonal neighbours are live points of `seat`."""
    cell, w, live = game.cell, int(game.width), seat + 1
    others = int(cell[place - w]) ^ live | int(cell[place + 1]) ^ live
    others |= int(cell[place + w]) ^ live | int(cell[place - 1]) ^ live
    return others & LIVE == 0


@inner
def unmark(game: Record, first: int, stop: int) -> None:
    """Unmark the cells `walk[first:stop]` and remove them from `walk`."""
    for i in range(first, stop):
        game.cell[int(game.walk[i])] &= UNMARKED
        game.walk[i] = 0


@jit(inline=True)
def _mark_enclosed(game: Record, seat: int, size: int) -> None:
    """Mark the first `size` cells of `walk` as enclosed by the seat, and remove them from `walk`."""
    cell, walk, enclosed = game.cell, game.walk, ENCLOSED << seat
    for i in range(size):
        value = int(cell[int(walk[i])])
        game.held[seat] += value & POINT == 2 - seat
        cell[int(walk[i])] = (value | enclosed) & UNMARKED
        walk[i] = 0


@inner
def is_held(value: int, seat: int) -> bool:
    """Return whether a cell's value is that of an opposing point in a core that `seat` encloses and has not drawn."""
    return value & _held_bits(seat) == (2 - seat | ENCLOSED << seat)


@jit(inline=True)
def _held_bits(seat: int) -> int:
    """Return the mask of the bits that decide `is_held`; of `REGION` only the seat's bit, as each seat has its own."""
    return POINT | ENCLOSED << seat | seat + 1 << 2


# What may be drawn: while a seat is drawing, the end of `walk` lists the lowest opposing point of each core that the
# seat may draw, the lowest of all last. So queries need not search for cores, and do not change the state.


@inner
def list_drawable(game: Record, seat: int) -> None:
    """Write the list of cores that `seat` may draw to the end of `walk`."""
    cell, walk = game.cell, game.walk
    top, left, place = len(walk), np.int64(game.held[seat]), np.int64(0)
    while left > 1:
        place = next_held(game, seat, place)
        for i in range(flood(game, seat, place, top)):  # cells stay marked until all cores are found
            left -= is_held(int(cell[int(walk[i])]), seat)
            walk[i] = 0
        top -= 1  # `walk` stays long enough: a core takes one entry, and later fills do not visit its cells again
        walk[top] = place
    if left:  # the last point is a core that needs no flood fill
        walk[top - 1] = next_held(game, seat, place)
    if game.held[seat] > 1:
        for i in range(len(cell)):
            cell[i] &= UNMARKED


@inner
def next_held(game: Record, seat: int, place: int) -> int:
    """Return the first cell from `place` on for which `is_held` is true and which is not marked; there must be one.

    Tests eight cells at once: after the XOR, a byte of the word is 0 if the cell has the wanted bits. Zero bytes are
    found as in H. S. Warren, "Hacker's Delight", 6-1: the high bit of a byte is set unless the byte is 0, without
    carries between bytes.
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
    """Clear the list that `list_drawable` wrote."""
    for number in range(count_drawable(game)):
        game.walk[len(game.walk) - 1 - number] = 0


@inner
def count_drawable(game: Record) -> int:
    """Return the number of cores that may be drawn."""
    count, last = 0, len(game.walk) - 1
    while game.walk[last - count]:
        count += 1
    return count


@inner
def drawable_node(game: Record, number: int) -> int:
    """Return the node that names drawable core `number`; the nodes ascend."""
    return int(game.walk[len(game.walk) - 1 - number]) - int(game.width) - 1


# Drawing


@inner
def draw_region(game: Record, seat: int, start: int) -> None:
    """Draw the smallest chain of `seat` round the drawable core of cell `start`; its inside becomes a region."""
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
    """Append the smallest simple closed chain round the core `walk[:core]` to `walk`, marked; return the chain's end.

    The trace follows the live points round the core, with the core on the right. Whenever it reaches a node a second
    time, it removes the loop in between, because what is attached by a single node is no part of the chain. It starts
    above a highest node of the core. That link cannot be part of such a loop, because no node of the core is above it.
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
        core_side = direction + 2 + direction % 2 & 7  # direction from here to the core node that was seen last
        direction = _next_link(game, seat, here, core_side)
        if here == start and direction == first:
            return stop


@jit(inline=True)
def _next_link(game: Record, seat: int, here: int, direction: int) -> int:
    """Return the direction of the next link: turn left from a direction into the core until a live point is ahead."""
    while game.cell[here + step(game, direction)] & LIVE != seat + 1:
        direction = direction - 1 & 7
    return direction


@inner
def _fill_inside(game: Record, core: int, chain: int) -> int:
    """Append the other cells inside the chain to `walk`, marked; return their end.

    `walk[:core]` is the core and `walk[core:chain]` the chain.
    """
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
    """Put the cells `walk[:core]` and `walk[chain:stop]` into a region of `seat`, and update the counts.

    Returns:
        Whether an opposing point next to a core that the opponent encloses has become inert, so that the core may be
        connected to others now.
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
    """Update what `seat` encloses after the cells `walk[:core]` and `walk[chain:stop]` became an opposing region.

    The region, its chain `walk[core:chain]`, and each core that had a node there, are one core of `seat` now. Every
    path out of the region crosses the chain, so this core is enclosed if all cells of the chain were enclosed.
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
    """Clear the enclosed bits of `seat` on the cells `walk[:stop]` and on all enclosed cells connected to them."""
    walk, w, bit = game.walk, int(game.width), ENCLOSED << seat
    for i in range(stop):
        _open(game, seat, int(walk[i]))
    waiting = stop
    for i in range(stop):
        here = int(walk[i])
        while True:
            for there in (here - w, here + 1, here + w, here - 1):  # steps beyond a row's end reach no enclosed node
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
    """Clear the enclosed bit of `seat` on a cell."""
    value = int(game.cell[place])
    game.held[seat] -= is_held(value, seat)
    game.cell[place] = value & ~(ENCLOSED << seat)


@inner
def beside(game: Record, place: int, bit: int) -> bool:
    """Return whether a bit is set on any of the four orthogonal neighbours."""
    cell, w = game.cell, int(game.width)
    return (int(cell[place - w]) | int(cell[place + 1]) | int(cell[place + w]) | int(cell[place - 1])) & bit != 0
