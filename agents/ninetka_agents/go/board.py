"""A board for fast playouts of Go: what the playout policy needs is updated incrementally with each stone.

The rules are in `ninetka_env.games.go.rules`; `load` copies a state onto this board. Points are cells in rows of
`STRIDE` with walls between and around them, so that the offsets of neighbours do not depend on the board size.

Each cell has a *code*, 16 bits with the colours of its eight neighbours: the index in the tables of `patterns`. Each
chain has the number, the sum and the sum of squares of its liberties, where a liberty counts once for each adjacent
stone of the chain. The chain is in atari exactly if number * squares = sum**2; its last liberty is then sum / number.
The three values are packed into one word, so that one addition updates them. Codes and sums are those of libEGO, the
library of L. Lew.
"""

from __future__ import annotations

import numpy as np

from ninetka_agents.go.patterns import EMPTY_SIDES
from ninetka_env.core.jit import frozen, jit, lowest
from ninetka_env.core.verbs import Record
from ninetka_env.games.go.geometry import BLACK, LARGEST, WALL, WHITE, wide

STRIDE = LARGEST + 1
CELLS = STRIDE * (LARGEST + 2) + 1
STEPS = frozen([STRIDE, 1, -STRIDE, -1, STRIDE + 1, 1 - STRIDE, -1 - STRIDE, STRIDE - 1], np.int64)
"""(8,) int64: up, right, down, left, then the diagonal steps, clockwise: the order of the neighbours in a code."""

NUMBER_BITS, SUM_BITS = 11, 20
"""A chain has fewer than 2**11 liberties, counted once for each adjacent stone; their cells sum to less than 2**20."""
LIBERTY = frozen([1 | cell << NUMBER_BITS | cell * cell << NUMBER_BITS + SUM_BITS for cell in range(CELLS)], np.int64)
"""(421,) int64: the packed value of a liberty on each cell: 1, the cell, and its square."""
_TWELFTHS = frozen([0, 12, 6, 4, 3, 0, 0, 0], np.int64)

BOARD = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("liberties", np.int64, (CELLS,)),  # by head: the sum of `LIBERTY` over the chain's liberties
                ("free", np.int64, (CELLS,)),  # `LIBERTY` of each empty cell, 0 for all others
                ("code", np.uint16, (CELLS,)),  # the colours of the eight neighbours
                ("chain", np.uint16, (CELLS,)),  # the head of a stone's chain; 0 for cells without a stone
                ("after", np.uint16, (CELLS,)),  # the next stone of the chain, in a ring
                ("stones", np.int16, (CELLS,)),  # by head: the number of stones
                ("place", np.uint16, (CELLS,)),  # the index of an empty cell in `empty`
                ("empty", np.uint16, (LARGEST**2,)),  # the first `num_empty` are the empty cells, in any order
                ("found", np.uint16, (2 * LARGEST**2,)),  # candidate moves; also the queue of a search
                ("cells", np.uint16, (LARGEST**2 + 1,)),  # the cell of each point, 0 for off the board
                ("mark", np.int8, (CELLS,)),  # cells that a search has visited
                ("colour", np.int8, (CELLS,)),  # 0 empty, 1 black, 2 white, 3 wall
                ("num_empty", np.int32),
                ("num_found", np.int32),
                ("size", np.int32),
                ("to_move", np.int32),  # a colour
                ("ko", np.int32),  # the cell that the ko rule forbids to the colour to move, 0 for none
                ("last", np.int32),  # the cells of the last two turns, 0 for a pass or none
                ("before_last", np.int32),
                ("passes", np.int32),
                ("captured", np.int32, (3,)),  # stones captured by each colour
                ("lead", np.int32),  # black stones minus white stones
            ],
            align=True,
        ),
    )
)


@jit(counted=False)
def beside(cell: int, k: int) -> int:
    """Return the neighbour of a cell at `STEPS[k]`. The mask tells the compiler that the index is not negative."""
    return (cell + STEPS[k]) & 511


@jit(counted=False)
def free_beside(b: Record, cell: int) -> int:
    """Return the sum of `LIBERTY` over the empty neighbours of a cell."""
    return b.free[beside(cell, 0)] + b.free[beside(cell, 1)] + b.free[beside(cell, 2)] + b.free[beside(cell, 3)]


@jit(counted=False)
def cell_of(point: int, size: int) -> int:
    """Return the cell of a point (an action)."""
    return (point // size + 1) * STRIDE + point % size + 1


@jit(counted=False)
def point_of(cell: int, size: int) -> int:
    """Return the point (the action) of a cell."""
    return (cell // STRIDE - 1) * size + cell % STRIDE - 1


@jit(counted=False)
def load(b: Record, game: Record, size: int) -> None:
    """Copy the state of a game with this board size to the board."""
    if b.size != size:
        _lay_out(b, size)
    b.num_empty, b.passes, b.lead = 0, game.passes, 0
    b.to_move, b.captured[1], b.captured[2] = game.to_move + 1, game.captured[0], game.captured[1]
    b.ko = 0 if game.ko_point < 0 else b.cells[game.ko_point]
    b.last = 0 if game.last < 0 else b.cells[game.last]
    b.before_last = 0 if game.before_last < 0 else b.cells[game.before_last]
    for point in range(len(game.empty)):  # branch-free, because random data would defeat branch prediction
        cell, colour = wide(b.cells[point]), game.board[point]
        b.colour[cell] = colour
        b.free[cell] = LIBERTY[cell] * int(colour == 0)
        b.liberties[cell] = 0
        b.chain[cell] = b.cells[game.chain[point]]
        b.after[cell] = b.cells[game.after[point]]
        b.stones[cell] = game.stones[point]
        b.lead += int(colour == BLACK) - int(colour == WHITE)
        b.empty[b.num_empty] = cell
        b.place[cell] = b.num_empty
        b.num_empty += int(colour == 0)
    _write_codes(b, size)
    for point in range(len(game.empty)):
        if game.board[point]:
            cell = wide(b.cells[point])
            b.liberties[b.chain[cell]] += free_beside(b, cell)


@jit(counted=False)
def _lay_out(b: Record, size: int) -> None:
    """Initialise the fields that depend only on the board size."""
    b.size = size
    for cell in range(CELLS):
        b.colour[cell] = WALL
        b.chain[cell] = 0
        b.free[cell] = 0
    for point in range(size * size):
        b.cells[point] = cell_of(point, size)
    b.cells[size * size] = 0


@jit(counted=False)
def _write_codes(b: Record, size: int) -> None:
    """Write the codes of all cells from the first point to the last, walls included, so that loops are vectorised."""
    first, cells = STRIDE + 1, (size - 1) * STRIDE + size
    for place in range(cells):
        b.code[first + place] = 0
    for k in range(8):
        start = first + STEPS[k]
        for place in range(cells):
            b.code[first + place] |= wide(b.colour[start + place]) << (2 * k)


@jit(counted=False)
def _on_one_cell(liberties: int) -> bool:
    """Return whether packed liberties are all on the same cell; True for no liberties."""
    total = (liberties >> NUMBER_BITS) & ((1 << SUM_BITS) - 1)
    return (liberties & ((1 << NUMBER_BITS) - 1)) * (liberties >> (NUMBER_BITS + SUM_BITS)) == total * total


@jit(counted=False)
def _share(total: int, number: int) -> int:
    """Divide `total` by the number of liberties, 1 to 4, with a table of reciprocals; `total` must be a multiple."""
    return total * _TWELFTHS[number & 7] // 12


@jit(counted=False)
def in_atari(b: Record, head: int) -> bool:
    """Return whether a chain has exactly one liberty."""
    return _on_one_cell(b.liberties[head])


@jit(counted=False)
def last_liberty(b: Record, head: int) -> int:
    """Return the liberty of a chain in atari."""
    liberties = b.liberties[head]
    return _share((liberties >> NUMBER_BITS) & ((1 << SUM_BITS) - 1), liberties & ((1 << NUMBER_BITS) - 1))


@jit(inline=True, counted=False)
def place(b: Record, cell: int) -> None:
    """Place a stone of the colour to move on a legal cell, remove what it captures, and switch the colour to move."""
    colour = wide(b.to_move)
    other, head = 3 - colour, cell
    single, taken = 0, 0
    _put(b, cell, colour)
    friends, dead = 0, 0  # bit sets, because four branches on random data would be mispredicted
    for k in range(4):
        b.liberties[b.chain[beside(cell, k)]] -= LIBERTY[cell]
    for k in range(4):
        found = b.colour[beside(cell, k)]
        friends |= int(found == colour) << k
        dead |= int((found == other) & (b.liberties[b.chain[beside(cell, k)]] == 0)) << k
    while friends:
        neighbour = beside(cell, lowest(friends))
        friends &= friends - 1
        if b.chain[neighbour] != head:
            head = _join(b, wide(b.chain[neighbour]), head)
    while dead:
        neighbour = beside(cell, lowest(dead))
        dead &= dead - 1
        if b.colour[neighbour]:  # a chain next to the cell twice is removed once
            taken += b.stones[b.chain[neighbour]]
            single = neighbour
            _remove(b, wide(b.chain[neighbour]), other)
    b.ko = single if taken == 1 and b.stones[head] == 1 and in_atari(b, head) else 0
    b.captured[colour] += taken
    b.lead += (taken + 1) * (3 - 2 * colour)
    b.before_last, b.last, b.passes, b.to_move = b.last, cell, 0, other


@jit(counted=False)
def pass_turn(b: Record) -> None:
    """Pass, and switch the colour to move."""
    b.ko, b.passes, b.to_move = 0, b.passes + 1, 3 - b.to_move
    b.before_last, b.last = b.last, 0


@jit(inline=True, counted=False)
def _put(b: Record, cell: int, colour: int) -> None:
    """Put a stone on an empty cell as a separate chain, and count its liberties."""
    b.num_empty -= 1
    moved, hole = wide(b.empty[b.num_empty]), wide(b.place[cell])
    b.empty[hole] = moved
    b.place[moved] = hole
    b.colour[cell] = colour
    b.chain[cell] = b.after[cell] = cell
    b.stones[cell] = 1
    b.free[cell] = 0
    for k in range(8):
        b.code[beside(cell, k)] ^= colour << (2 * ((k & 4) | (k + 2) & 3))
    b.liberties[cell] = free_beside(b, cell)


@jit(inline=True, counted=False)
def _join(b: Record, one: int, other: int) -> int:
    """Join two chains, given by their heads; return the common head, which is that of the chain with more stones."""
    if b.stones[one] < b.stones[other]:
        one, other = other, one
    b.stones[one] += b.stones[other]
    b.liberties[one] += b.liberties[other]
    stone = other
    for _ in range(b.stones[other]):
        b.chain[stone] = one
        stone = wide(b.after[stone])
    b.after[one], b.after[other] = b.after[other], b.after[one]
    return one


@jit(inline=True, counted=False)
def _remove(b: Record, head: int, colour: int) -> None:
    """Remove a chain from the board."""
    stone = head
    for _ in range(b.stones[head]):
        b.colour[stone] = 0
        b.free[stone] = LIBERTY[stone]
        b.chain[stone] = 0
        b.place[stone] = b.num_empty
        b.empty[b.num_empty] = stone
        b.num_empty += 1
        for k in range(8):
            b.code[beside(stone, k)] ^= colour << (2 * ((k & 4) | (k + 2) & 3))
        for k in range(4):
            b.liberties[b.chain[beside(stone, k)]] += LIBERTY[stone]
        stone = wide(b.after[stone])


@jit(counted=False)
def liberties_after(b: Record, cell: int, colour: int) -> int:
    """Return the number of liberties of a stone placed on an empty cell: 0 (suicide), 1 (self-atari) or 2 (or more).

    A placement that captures returns 2. The loop is branch-free, because random data would defeat branch prediction.
    """
    if EMPTY_SIDES[b.code[cell] & 255] > 1:
        return 2
    liberties, captures = free_beside(b, cell), False
    for k in range(4):
        neighbour = beside(cell, k)
        found, head = wide(b.colour[neighbour]), wide(b.chain[neighbour])
        known = False  # a chain that is next to the cell twice is counted once
        for before in range(k):
            known |= b.chain[beside(cell, before)] == head
        own = found == colour
        liberties += b.liberties[head] * int(own & (not known)) - LIBERTY[cell] * int(own)
        captures |= (found == 3 - colour) & in_atari(b, head)
    return 2 if captures else int(liberties != 0) + int(not _on_one_cell(liberties))
