"""A board for fast playouts of Go: each stone updates the data of the playout policy incrementally.

The rules are in `ninetka_env.games.go.rules`; `load` copies a state onto this board. Points are cells in rows of
`STRIDE` with walls between and around them, so that the offsets of neighbours do not depend on the board size.

Each cell has a *code*, 16 bits with the colours of its eight neighbours: the index in the tables of `patterns`. A
chain is identified by its *head*, the cell of one of its stones. For each chain, the board stores the number of its
liberties, the sum of their cells, and the sum of the squares of their cells; a liberty counts once for each adjacent
stone of the chain. The chain is in atari exactly if number * squares = sum**2; its last liberty is then sum / number.
The three values are packed into one word, so that one addition updates them. Codes and sums are taken from libEGO,
L. Lew's library.
"""

from __future__ import annotations

import numpy as np

from ninetka_agents.go.patterns import EMPTY_NEIGHBOURS
from ninetka_env.core.jit import jit, lowest_bit, readonly_array
from ninetka_env.core.verbs import State
from ninetka_env.games.go.geometry import BLACK, MAX_SIZE, WALL, WHITE, i64

STRIDE = MAX_SIZE + 1
CELLS = STRIDE * (MAX_SIZE + 2) + 1
STEPS = readonly_array([STRIDE, 1, -STRIDE, -1, STRIDE + 1, 1 - STRIDE, -1 - STRIDE, STRIDE - 1], np.int64)
"""(8,) int64: up, right, down, left, then the diagonal steps, clockwise: the order of the neighbours in a code."""

NUMBER_BITS, SUM_BITS = 11, 20
"""Bits of the number and of the sum in a packed value. A chain has fewer than 2**11 liberties, counted once for each
adjacent stone, and their cells sum to less than 2**20."""
PACKED_LIBERTY = readonly_array(
    [1 | cell << NUMBER_BITS | cell * cell << NUMBER_BITS + SUM_BITS for cell in range(CELLS)], np.int64
)
"""(421,) int64: the packed value of a liberty on each cell: 1, the cell, and its square."""
_TWELFTHS = readonly_array([0, 12, 6, 4, 3, 0, 0, 0], np.int64)

BOARD_DTYPE = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("liberties", np.int64, (CELLS,)),  # by head: the sum of `PACKED_LIBERTY` over the chain's liberties
                ("empty_liberty", np.int64, (CELLS,)),  # `PACKED_LIBERTY` of each empty cell, 0 for all others
                ("code", np.uint16, (CELLS,)),  # the colours of the eight neighbours
                ("chain", np.uint16, (CELLS,)),  # the head of a stone's chain; 0 for cells without a stone
                ("next_stone", np.uint16, (CELLS,)),  # the next stone of the chain, in a ring
                ("stones", np.int16, (CELLS,)),  # by head: the number of stones
                ("empty_index", np.uint16, (CELLS,)),  # the index of an empty cell in `empty`
                ("empty", np.uint16, (MAX_SIZE**2,)),  # the first `num_empty` are the empty cells, in any order
                ("candidates", np.uint16, (2 * MAX_SIZE**2,)),  # candidate moves; also the queue of a search
                ("cells", np.uint16, (MAX_SIZE**2 + 1,)),  # the cell of each point, 0 for off the board
                ("mark", np.int8, (CELLS,)),  # cells that a search has visited
                ("colour", np.int8, (CELLS,)),  # 0 empty, 1 black, 2 white, 3 wall
                ("num_empty", np.int32),
                ("num_candidates", np.int32),
                ("size", np.int32),
                ("to_move", np.int32),  # a colour
                ("ko", np.int32),  # the cell that the ko rule forbids to the colour to move, 0 for none
                ("last", np.int32),  # the cells of the last two turns, 0 for a pass or none
                ("before_last", np.int32),
                ("passes", np.int32),
                ("captured", np.int32, (3,)),  # stones captured by each colour
                ("stone_lead", np.int32),  # black stones minus white stones
            ],
            align=True,
        ),
    )
)


@jit(refcount=False)
def neighbour_of(cell: int, k: int) -> int:
    """Return the neighbour of a cell at `STEPS[k]`. The mask shows the compiler that the index is not negative."""
    return (cell + STEPS[k]) & 511


@jit(refcount=False)
def liberties_next_to(b: State, cell: int) -> int:
    """Return the sum of `PACKED_LIBERTY` over the empty neighbours of a cell."""
    return (
        b.empty_liberty[neighbour_of(cell, 0)]
        + b.empty_liberty[neighbour_of(cell, 1)]
        + b.empty_liberty[neighbour_of(cell, 2)]
        + b.empty_liberty[neighbour_of(cell, 3)]
    )


@jit(refcount=False)
def cell_of(point: int, size: int) -> int:
    """Return the cell of a point (an action)."""
    return (point // size + 1) * STRIDE + point % size + 1


@jit(refcount=False)
def point_of(cell: int, size: int) -> int:
    """Return the point (the action) of a cell."""
    return (cell // STRIDE - 1) * size + cell % STRIDE - 1


@jit(refcount=False)
def load(b: State, game: State, size: int) -> None:
    """Copy the state of a game with this board size to the board."""
    if b.size != size:
        _init_size(b, size)
    b.num_empty, b.passes, b.stone_lead = 0, game.passes, 0
    b.to_move, b.captured[1], b.captured[2] = game.to_move + 1, game.captured[0], game.captured[1]
    b.ko = 0 if game.ko_point < 0 else b.cells[game.ko_point]
    b.last = 0 if game.last < 0 else b.cells[game.last]
    b.before_last = 0 if game.before_last < 0 else b.cells[game.before_last]
    for point in range(len(game.empty)):  # branch-free, because random data would defeat branch prediction
        cell, colour = i64(b.cells[point]), game.board[point]
        b.colour[cell] = colour
        b.empty_liberty[cell] = PACKED_LIBERTY[cell] * int(colour == 0)
        b.liberties[cell] = 0
        b.chain[cell] = b.cells[game.chain[point]]
        b.next_stone[cell] = b.cells[game.next_stone[point]]
        b.stones[cell] = game.stones[point]
        b.stone_lead += int(colour == BLACK) - int(colour == WHITE)
        b.empty[b.num_empty] = cell
        b.empty_index[cell] = b.num_empty
        b.num_empty += int(colour == 0)
    _write_codes(b, size)
    for point in range(len(game.empty)):
        if game.board[point]:
            cell = i64(b.cells[point])
            b.liberties[b.chain[cell]] += liberties_next_to(b, cell)


@jit(refcount=False)
def _init_size(b: State, size: int) -> None:
    """Initialise the fields that depend only on the board size."""
    b.size = size
    for cell in range(CELLS):
        b.colour[cell] = WALL
        b.chain[cell] = 0
        b.empty_liberty[cell] = 0
    for point in range(size * size):
        b.cells[point] = cell_of(point, size)
    b.cells[size * size] = 0


@jit(refcount=False)
def _write_codes(b: State, size: int) -> None:
    """Write the codes of all cells from the first point to the last, walls included, so that loops are vectorised."""
    first, cells = STRIDE + 1, (size - 1) * STRIDE + size
    for place in range(cells):
        b.code[first + place] = 0
    for k in range(8):
        start = first + STEPS[k]
        for place in range(cells):
            b.code[first + place] |= i64(b.colour[start + place]) << (2 * k)


@jit(refcount=False)
def _all_on_one_cell(liberties: int) -> bool:
    """Return whether all liberties in a packed value are on the same cell; True if it contains none."""
    total = (liberties >> NUMBER_BITS) & ((1 << SUM_BITS) - 1)
    return (liberties & ((1 << NUMBER_BITS) - 1)) * (liberties >> (NUMBER_BITS + SUM_BITS)) == total * total


@jit(refcount=False)
def _divide_by_number(total: int, number: int) -> int:
    """Divide `total` by the number of liberties, 1 to 4, with a table of reciprocals; `total` must be a multiple."""
    return total * _TWELFTHS[number & 7] // 12


@jit(refcount=False)
def in_atari(b: State, head: int) -> bool:
    """Return whether the chain with head `head` has exactly one liberty."""
    return _all_on_one_cell(b.liberties[head])


@jit(refcount=False)
def last_liberty(b: State, head: int) -> int:
    """Return the cell of the only liberty of the chain with head `head`, which must be in atari."""
    liberties = b.liberties[head]
    return _divide_by_number((liberties >> NUMBER_BITS) & ((1 << SUM_BITS) - 1), liberties & ((1 << NUMBER_BITS) - 1))


@jit(inline=True, refcount=False)
def place_stone(b: State, cell: int) -> None:
    """Place a stone of the colour to move on a legal cell, remove what it captures, and switch the colour to move."""
    colour = i64(b.to_move)
    other, head = 3 - colour, cell
    single, taken = 0, 0
    _add_stone(b, cell, colour)
    friends, dead = 0, 0  # bit sets, because four branches on random data would be mispredicted
    for k in range(4):
        b.liberties[b.chain[neighbour_of(cell, k)]] -= PACKED_LIBERTY[cell]
    for k in range(4):
        found = b.colour[neighbour_of(cell, k)]
        friends |= int(found == colour) << k
        dead |= int((found == other) & (b.liberties[b.chain[neighbour_of(cell, k)]] == 0)) << k
    while friends:
        neighbour = neighbour_of(cell, lowest_bit(friends))
        friends &= friends - 1
        if b.chain[neighbour] != head:
            head = _join_chains(b, i64(b.chain[neighbour]), head)
    while dead:
        neighbour = neighbour_of(cell, lowest_bit(dead))
        dead &= dead - 1
        if b.colour[neighbour]:  # a chain next to the cell twice is removed once
            taken += b.stones[b.chain[neighbour]]
            single = neighbour
            _remove_chain(b, i64(b.chain[neighbour]), other)
    b.ko = single if taken == 1 and b.stones[head] == 1 and in_atari(b, head) else 0
    b.captured[colour] += taken
    b.stone_lead += (taken + 1) * (3 - 2 * colour)
    b.before_last, b.last, b.passes, b.to_move = b.last, cell, 0, other


@jit(refcount=False)
def pass_turn(b: State) -> None:
    """Pass, and switch the colour to move."""
    b.ko, b.passes, b.to_move = 0, b.passes + 1, 3 - b.to_move
    b.before_last, b.last = b.last, 0


@jit(inline=True, refcount=False)
def _add_stone(b: State, cell: int, colour: int) -> None:
    """Place a stone on an empty cell as a separate chain, and count its liberties."""
    b.num_empty -= 1
    moved, hole = i64(b.empty[b.num_empty]), i64(b.empty_index[cell])
    b.empty[hole] = moved
    b.empty_index[moved] = hole
    b.colour[cell] = colour
    b.chain[cell] = b.next_stone[cell] = cell
    b.stones[cell] = 1
    b.empty_liberty[cell] = 0
    for k in range(8):
        b.code[neighbour_of(cell, k)] ^= colour << (2 * ((k & 4) | (k + 2) & 3))
    b.liberties[cell] = liberties_next_to(b, cell)


@jit(inline=True, refcount=False)
def _join_chains(b: State, one: int, other: int) -> int:
    """Join two chains, given by their heads; return the common head: the head of the chain with more stones."""
    if b.stones[one] < b.stones[other]:
        one, other = other, one
    b.stones[one] += b.stones[other]
    b.liberties[one] += b.liberties[other]
    stone = other
    for _ in range(b.stones[other]):
        b.chain[stone] = one
        stone = i64(b.next_stone[stone])
    b.next_stone[one], b.next_stone[other] = b.next_stone[other], b.next_stone[one]
    return one


@jit(inline=True, refcount=False)
def _remove_chain(b: State, head: int, colour: int) -> None:
    """Remove a chain from the board."""
    stone = head
    for _ in range(b.stones[head]):
        b.colour[stone] = 0
        b.empty_liberty[stone] = PACKED_LIBERTY[stone]
        b.chain[stone] = 0
        b.empty_index[stone] = b.num_empty
        b.empty[b.num_empty] = stone
        b.num_empty += 1
        for k in range(8):
            b.code[neighbour_of(stone, k)] ^= colour << (2 * ((k & 4) | (k + 2) & 3))
        for k in range(4):
            b.liberties[b.chain[neighbour_of(stone, k)]] += PACKED_LIBERTY[stone]
        stone = i64(b.next_stone[stone])


@jit(refcount=False)
def liberties_after(b: State, cell: int, colour: int) -> int:
    """Return the number of liberties of a stone placed on an empty cell: 0 (suicide), 1 (self-atari) or 2 (or more).

    A placement that captures returns 2. The loop is branch-free, because random data would defeat branch prediction.
    """
    if EMPTY_NEIGHBOURS[b.code[cell] & 255] > 1:
        return 2
    liberties, captures = liberties_next_to(b, cell), False
    for k in range(4):
        neighbour = neighbour_of(cell, k)
        found, head = i64(b.colour[neighbour]), i64(b.chain[neighbour])
        known = False  # a chain that is next to the cell twice is counted once
        for before in range(k):
            known |= b.chain[neighbour_of(cell, before)] == head
        own = found == colour
        liberties += b.liberties[head] * int(own & (not known)) - PACKED_LIBERTY[cell] * int(own)
        captures |= (found == 3 - colour) & in_atari(b, head)
    return 2 if captures else int(liberties != 0) + int(not _all_on_one_cell(liberties))
