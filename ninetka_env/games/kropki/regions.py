"""Regions of Kropki: what a point encloses, the smallest chain round a core, and how drawing it changes the state.

A point is *live* if it is in no region, else *inert*. The *core* of a node for a seat is the set of nodes that
orthogonal steps reach from the node without crossing a live point of that seat. A core without an edge node is
*enclosed*. A seat may draw an enclosed core that contains opposing points and is not drawn yet. Then all nodes inside
the smallest simple closed chain round the core become a region of the seat.

In a state, the `ENCLOSED` bits mark exactly the enclosed nodes. `capturable` counts, per seat, the opposing points in
cores that the seat encloses and has not drawn. Both follow from points and regions alone, so equal positions have equal
states.
"""

from __future__ import annotations

import numpy as np

from ninetka_env.core.jit import jit, lowest_bit
from ninetka_env.core.verbs import State
from ninetka_env.games.kropki.geometry import (
    ARC_DIRECTION,
    DIRECTIONS_IN_ROW,
    EDGE,
    ENCLOSED,
    LIVE_MASK,
    MARKED,
    NUM_ARCS,
    NUM_SECTORS,
    POINT_MASK,
    REGION_MASK,
    SECTOR_ENTRY,
    SOUTH,
    STEP_COLUMNS,
    STEP_ROWS,
)

NOT_MARKED = MARKED - 1
"""All bits but `MARKED`."""
CELLS_PER_WORD = 8
"""Cells in a 64-bit word."""
ONE_PER_BYTE = np.uint64(0x0101010101010101)
"""A word with 1 in each byte."""
LOW_BITS, HIGH_BITS = ONE_PER_BYTE * np.uint64(127), ONE_PER_BYTE << np.uint64(7)
"""The low bits and the high bit of each byte."""
CELLS_PER_BLOCK = 32
"""Cells that a vectorised loop handles at once. A state has a whole number of blocks."""
u64 = np.uint64
"""Converts an index to uint64, which is faster: compiled code tests whether a signed index counts from the end."""


@jit(refcount=False)
def direction_step(game: State, direction: int) -> int:
    """Return the step from a cell to its neighbour in a direction."""
    return int(STEP_ROWS[direction]) * int(game.width) + int(STEP_COLUMNS[direction])


@jit(refcount=False)
def ring_of(game: State, place: int, bits: int, value: int) -> int:
    """Return the bit set of the directions in which the neighbour of cell `place` has `cell & bits == value`."""
    cell, w = game.cell, int(game.width)
    return int(DIRECTIONS_IN_ROW[w, u64(place)]) & (
        int(cell[u64(place - w)] & bits == value)
        | int(cell[u64(place - w + 1)] & bits == value) << 1
        | int(cell[u64(place + 1)] & bits == value) << 2
        | int(cell[u64(place + w + 1)] & bits == value) << 3
        | int(cell[u64(place + w)] & bits == value) << 4
        | int(cell[u64(place + w - 1)] & bits == value) << 5
        | int(cell[u64(place - 1)] & bits == value) << 6
        | int(cell[u64(place - w - 1)] & bits == value) << 7
    )


# Groups: points are never removed, so groups never split.


@jit(refcount=False)
def join_groups(game: State, place: int) -> bool:
    """Label the new point on cell `place`, and merge the groups that it connects.

    A group is a set of points of one seat, live or not, that are connected orthogonally or diagonally. Its label is its
    lowest cell.

    Returns:
        Whether two arcs of the point's ring (see `geometry.NUM_ARCS`) were already in the same group. Only then can the
        point close a chain. (Inert points do not connect arcs: the new point touches an inert point only diagonally,
        between two links of the chain round the inert point's region.)
    """
    label = game.label
    ring, closing = ring_of(game, place, POINT_MASK, int(game.cell[place]) & POINT_MASK), False
    label[place] = place
    for arc in range(NUM_ARCS[ring]):
        there = place + direction_step(game, ARC_DIRECTION[ring, arc])
        if label[there] == label[place]:
            closing = True
        elif label[there] > label[place]:
            _relabel(game, there, place)
        elif arc == 0:  # the point is still alone in its group
            label[place] = label[there]
        else:
            _relabel(game, place, there)
    return closing


@jit(refcount=False)
def _relabel(game: State, there: int, place: int) -> None:
    """Give the group of cell `there` the label of cell `place`."""
    label = game.label
    old, change = label[there], label[there] ^ label[place]
    for i in range(len(label)):  # an unconditional store without a branch lets this loop vectorise
        label[i] ^= change * (label[i] == old)


# Enclosing


@jit(refcount=False)
def mark_newly_enclosed(game: State, seat: int, place: int) -> None:
    """Mark the nodes that `seat` encloses by its new live point on cell `place` and did not enclose before.

    The point must not lie in a core that the seat already enclosed, because there it encloses no further nodes.
    """
    ring = ring_of(game, place, LIVE_MASK, seat + 1)
    sectors, closed = int(NUM_SECTORS[ring]), 0
    for sector in range(sectors):
        if closed + 1 == sectors:  # the point was not enclosed, so at least one sector leads to the edge
            break
        entry = place + direction_step(game, SECTOR_ENTRY[ring, sector])
        value = int(game.cell[entry])
        if value & (ENCLOSED << seat):  # already marked: two sectors may lead into the same core
            closed += 1
        elif value & EDGE == 0:
            size = flood_fill(game, seat, entry, len(game.cell_list))
            closed += size > 0
            _mark_enclosed(game, seat, size)


@jit(refcount=False)
def flood_fill(game: State, seat: int, start: int, stop: int) -> int:
    """Find the core of cell `start` for `seat`: mark its cells and write them to the front of `cell_list`.

    `start` must not be an edge node. `cell_list[stop:]` does not change.

    Returns:
        The number of cells of the core; 0 if the core has an edge node, and then the state does not change.
    """
    cell, walk, live = game.cell, game.cell_list, seat + 1
    # The stack of waiting cells is `walk[waiting:stop]`. There are never more found and waiting cells than nodes.
    size, waiting, seen_bits = 0, stop - 1, 0
    cell[u64(start)] |= MARKED
    if _is_single_node(game, seat, start):  # the most frequent case by far
        walk[0] = start
        return 1
    near, aside = _steps_to_edge(game, start)
    walk[u64(waiting)] = start
    while waiting < stop:
        here = int(walk[u64(waiting)])
        walk[u64(size)] = here
        size, waiting = size + 1, waiting + 1
        # Branch-free, because random data defeats branch prediction. The step to the nearest edge is followed first.
        for there in (here - near, here - aside, here + aside, here + near):
            value = int(cell[u64(there)])
            new = int(value & MARKED == 0) & int(value & LIVE_MASK != live)
            cell[u64(there)] = value | new * MARKED
            walk[u64(waiting - 1)] = there
            waiting -= new
            seen_bits |= new * value
        walk[u64(waiting - 1)] = 0
        if seen_bits & EDGE:
            unmark(game, 0, size)
            unmark(game, waiting, stop)
            return 0
    return size


@jit(inline=True)
def _steps_to_edge(game: State, place: int) -> tuple[int, int]:
    """Return two steps from a cell not on the edge: to the nearest edge, and to the nearer edge of the other axis."""
    w = int(game.width)
    row = int(u64(place - 1) // u64(w))
    column, below = place - 1 - row * w, int(game.height) + 1 - row
    up_or_down, left_or_right = w if below < row else -w, 1 if w - 1 - column < column else -1
    if min(row - 1, below - 1) < min(column, w - 1 - column):
        return up_or_down, left_or_right
    return left_or_right, up_or_down


@jit(inline=True)
def _is_single_node(game: State, seat: int, place: int) -> bool:
    """Return whether all four orthogonal neighbours are live points of `seat`."""
    cell, w, live = game.cell, int(game.width), seat + 1
    others = int(cell[place - w]) ^ live | int(cell[place + 1]) ^ live
    others |= int(cell[place + w]) ^ live | int(cell[place - 1]) ^ live
    return others & LIVE_MASK == 0


@jit(refcount=False)
def unmark(game: State, first: int, stop: int) -> None:
    """Unmark the cells `cell_list[first:stop]` and remove them from `cell_list`."""
    for i in range(first, stop):
        game.cell[int(game.cell_list[i])] &= NOT_MARKED
        game.cell_list[i] = 0


@jit(inline=True)
def _mark_enclosed(game: State, seat: int, size: int) -> None:
    """Mark the first `size` cells of `cell_list` as enclosed by the seat, and remove them from `cell_list`."""
    cell, walk, enclosed = game.cell, game.cell_list, ENCLOSED << seat
    for i in range(size):
        value = int(cell[int(walk[i])])
        game.capturable[seat] += value & POINT_MASK == 2 - seat
        cell[int(walk[i])] = (value | enclosed) & NOT_MARKED
        walk[i] = 0


@jit(refcount=False)
def is_capturable(value: int, seat: int) -> bool:
    """Return whether a cell with this value has an opposing point in a core that `seat` encloses and has not drawn."""
    return value & _capturable_mask(seat) == (2 - seat | ENCLOSED << seat)


@jit(inline=True)
def _capturable_mask(seat: int) -> int:
    """Return the mask of the bits that `is_capturable` compares: point, enclosed by `seat`, in a region of `seat`."""
    return POINT_MASK | ENCLOSED << seat | seat + 1 << 2


# Drawable cores: while a seat is drawing, the end of `cell_list` has one cell for each core that the seat may draw, in
# descending order. It is the first cell of the core for which `is_capturable` is true. So queries need not search for
# cores, and do not change the state.


@jit(refcount=False)
def list_drawable(game: State, seat: int) -> None:
    """Write the cores that `seat` may draw to the end of `cell_list`: one cell per core, in descending order."""
    cell, walk = game.cell, game.cell_list
    top, remaining, place = len(walk), np.int64(game.capturable[seat]), np.int64(0)
    while remaining > 1:
        place = next_capturable(game, seat, place)
        for i in range(flood_fill(game, seat, place, top)):  # cells stay marked until all cores are found
            remaining -= is_capturable(int(cell[int(walk[i])]), seat)
            walk[i] = 0
        top -= 1  # later flood fills need one entry less, because they do not visit the cells of this core again
        walk[top] = place
    if remaining:  # a single point that remains needs no flood fill
        walk[top - 1] = next_capturable(game, seat, place)
    if game.capturable[seat] > 1:
        for i in range(len(cell)):
            cell[i] &= NOT_MARKED


@jit(refcount=False)
def next_capturable(game: State, seat: int, place: int) -> int:
    """Return the first unmarked cell at or after `place` for which `is_capturable` is true. Such a cell must exist.

    Tests eight cells at once: after the XOR, a byte of the word is 0 if the cell has the wanted bits. Zero bytes are
    found as in H. S. Warren, "Hacker's Delight", 6-1: the high bit of a byte is set unless the byte is 0, without
    carries between bytes.
    """
    words, byte = game.cell.view(np.uint64), place // CELLS_PER_WORD
    bits, held = (
        ONE_PER_BYTE * np.uint64(_capturable_mask(seat) | MARKED),
        ONE_PER_BYTE * np.uint64(2 - seat | ENCLOSED << seat),
    )
    included = ~np.uint64(0) << np.uint64(place % CELLS_PER_WORD * 8)
    while True:
        difference = words[byte] & bits ^ held
        found = ~((difference & LOW_BITS) + LOW_BITS | difference) & HIGH_BITS & included
        if found:
            return byte * CELLS_PER_WORD + (lowest_bit(np.int64(found)) >> 3)  # type: ignore[arg-type]
        byte, included = byte + 1, ~np.uint64(0)


@jit(inline=True)
def clear_drawable(game: State) -> None:
    """Clear the list that `list_drawable` wrote."""
    for number in range(count_drawable(game)):
        game.cell_list[len(game.cell_list) - 1 - number] = 0


@jit(refcount=False)
def count_drawable(game: State) -> int:
    """Return the number of cores that the seat to move may draw now."""
    count, last = 0, len(game.cell_list) - 1
    while game.cell_list[last - count]:
        count += 1
    return count


@jit(refcount=False)
def drawable_node(game: State, number: int) -> int:
    """Return the node that names drawable core `number`, counted from 0 in ascending order of these nodes."""
    return int(game.cell_list[len(game.cell_list) - 1 - number]) - int(game.width) - 1


# Drawing


@jit(refcount=False)
def draw_region(game: State, seat: int, start: int) -> None:
    """Draw the smallest chain of `seat` round the drawable core of cell `start`; its inside becomes a region."""
    core = flood_fill(game, seat, start, len(game.cell_list))
    chain, stop = core, core
    if core > 1:  # round a single node the chain is its four neighbours, and nothing else lies inside
        chain = trace_chain(game, seat, core)
        stop = _fill_inside(game, core, chain)
    broken = _add_to_region(game, seat, core, chain, stop)
    if broken:
        if core == 1:
            chain = stop = trace_chain(game, seat, core)
        _update_opposing_cores(game, 1 - seat, core, chain, stop)
    unmark(game, 0, stop)


@jit(refcount=False)
def trace_chain(game: State, seat: int, core: int) -> int:
    """Append the smallest simple closed chain round the core `cell_list[:core]` to `cell_list`, and mark its cells.

    The trace follows the live points round the core, with the core on the right. When it reaches a node a second time,
    it removes the loop in between: a loop that is attached by a single node is not part of the chain. The trace starts
    above a node in the top row of the core. This first link is in no such loop, because no node of the core is above.

    Returns:
        The end of the chain in `cell_list`; the chain is `cell_list[core:end]`.
    """
    cell, walk = game.cell, game.cell_list
    here = int(walk[0])
    for i in range(1, core):
        here = min(here, int(walk[i]))
    here -= int(game.width)
    start, stop = here, core
    direction = _next_link(game, seat, here, SOUTH)
    first = direction
    while True:
        if cell[here] & MARKED:
            while walk[stop - 1] != here:
                stop -= 1
                cell[int(walk[stop])] &= NOT_MARKED
                walk[stop] = 0
        else:
            cell[here] |= MARKED
            walk[stop] = here
            stop += 1
        here += direction_step(game, direction)
        core_side = direction + 2 + direction % 2 & 7  # direction from here to the core node that was seen last
        direction = _next_link(game, seat, here, core_side)
        if here == start and direction == first:
            return stop


@jit(inline=True)
def _next_link(game: State, seat: int, here: int, direction: int) -> int:
    """Return the direction of the next link: turning left from `direction`, the first one with a live point."""
    while game.cell[here + direction_step(game, direction)] & LIVE_MASK != seat + 1:
        direction = direction - 1 & 7
    return direction


@jit(refcount=False)
def _fill_inside(game: State, core: int, chain: int) -> int:
    """Append the cells inside the chain but not in the core to `cell_list`, and mark them; return the end of the list.

    `cell_list[:core]` is the core and `cell_list[core:chain]` the chain.
    """
    cell, walk, w = game.cell, game.cell_list, int(game.width)
    i, stop = 0, chain
    while i < stop:
        if i == core:
            i = chain
            continue
        here = int(walk[i])
        i += 1
        for there in (here - w, here + 1, here + w, here - 1):
            if cell[there] & MARKED == 0:
                cell[there] |= MARKED
                walk[stop] = there
                stop += 1
    return stop


@jit(refcount=False)
def _add_to_region(game: State, seat: int, core: int, chain: int, stop: int) -> bool:
    """Put the cells `cell_list[:core]` and `cell_list[chain:stop]` into a region of `seat`, and update the counts.

    Returns:
        Whether a live opposing point next to a core that the opponent encloses has become inert. Then the point no
        longer bounds this core, which may now be connected to other cores.
    """
    cell, own, opposing, broken = game.cell, seat + 1, 2 - seat, False
    for i in range(stop):
        if core <= i < chain:
            continue
        place = np.int64(game.cell_list[i])
        value = int(cell[place])
        point, region = value & POINT_MASK, (value & REGION_MASK) >> 2
        game.capturable[seat] -= is_capturable(value, seat)
        game.free -= value & LIVE_MASK == 0
        if point == opposing and region != own:
            game.score[seat] += 1
            broken |= region == 0 and any_neighbour_has(game, place, ENCLOSED << 1 - seat)
        if point == own and region == opposing:
            game.score[1 - seat] -= 1
            game.capturable[1 - seat] += 1
        cell[place] = value & ~REGION_MASK | own << 2 | ENCLOSED << seat
    return broken


@jit(refcount=False)
def _update_opposing_cores(game: State, seat: int, core: int, chain: int, stop: int) -> None:
    """Update which nodes `seat` encloses after the opponent has drawn a region.

    The region is `cell_list[:core]` and `cell_list[chain:stop]`, its chain `cell_list[core:chain]`. The region, its
    chain and all cores of `seat` that overlapped them are now a single core of `seat`. Every path out of the region
    crosses the chain, so the single core is enclosed if all cells of the chain were enclosed.
    """
    cell, bit, enclosed = game.cell, ENCLOSED << seat, ENCLOSED << seat
    for i in range(core, chain):
        enclosed &= int(cell[int(game.cell_list[i])])
    if enclosed:
        for i in range(stop):
            cell[int(game.cell_list[i])] |= bit
    else:
        _unmark_open_cores(game, seat, stop)


@jit(refcount=False)
def _unmark_open_cores(game: State, seat: int, stop: int) -> None:
    """Clear the enclosed bits of `seat` on the cells `cell_list[:stop]` and all enclosed cells connected to them."""
    walk, w, bit = game.cell_list, int(game.width), ENCLOSED << seat
    for i in range(stop):
        _unmark_enclosed(game, seat, int(walk[i]))
    waiting = stop
    for i in range(stop):
        here = int(walk[i])
        while True:
            for there in (here - w, here + 1, here + w, here - 1):  # steps beyond a row's end lead to edge nodes
                if game.cell[there] & bit:
                    _unmark_enclosed(game, seat, there)
                    walk[waiting] = there
                    waiting += 1
            if waiting == stop:
                break
            waiting -= 1
            here = int(walk[waiting])
            walk[waiting] = 0


@jit(inline=True)
def _unmark_enclosed(game: State, seat: int, place: int) -> None:
    """Clear the enclosed bit of `seat` on a cell."""
    value = int(game.cell[place])
    game.capturable[seat] -= is_capturable(value, seat)
    game.cell[place] = value & ~(ENCLOSED << seat)


@jit(refcount=False)
def any_neighbour_has(game: State, place: int, bit: int) -> bool:
    """Return whether `bit` is set in any of the four orthogonal neighbours of cell `place`."""
    cell, w = game.cell, int(game.width)
    return (int(cell[place - w]) | int(cell[place + 1]) | int(cell[place + w]) | int(cell[place - 1])) & bit != 0
