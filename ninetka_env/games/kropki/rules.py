"""The rules of Kropki, compiled. A state is one element of a numpy structured array, a batch is such an array.

The functions do not check their arguments: use `is_legal` first. A state has room for boards up to some size and stores
its own width and height, so a few dtypes, `STATE_DTYPES`, serve boards of every size, and a new size needs no
compilation. An assignment copies a state: `games[1] = games[0]`.

Seat 0 is Black and opens, seat 1 is White. A turn places one point on a free node. With the rule `"declared"` the seat
may then draw regions, one by one, and ends its turn. With `"immediate"` the rules draw all regions at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_env.core.bits import WORD_BITS, Words, clear_words, set_bit
from ninetka_env.core.jit import jit
from ninetka_env.core.outcome import DRAWN
from ninetka_env.core.random_streams import Streams
from ninetka_env.core.verbs import OptionCodes, State
from ninetka_env.games.kropki.geometry import EDGE, ENCLOSED, LIVE_MASK, MAX_HEIGHT, MAX_WIDTH, POINT_MASK, REGION_MASK
from ninetka_env.games.kropki.regions import (
    CELLS_PER_BLOCK,
    clear_drawable,
    count_drawable,
    draw_region,
    drawable_node,
    join_groups,
    list_drawable,
    mark_newly_enclosed,
    next_capturable,
)

TERRITORIES = ("declared", "immediate")
"""Who draws regions: the players, after they have placed a point; or the rules, at once."""
DECLARED, IMMEDIATE = range(2)
STARTS = ("empty", "cross")
"""The board before the first turn: empty, or with two points of each seat in the middle."""
CROSS_POINTS = 4


def _state_dtype(width: int, height: int) -> np.dtype[Any]:
    """Return the dtype of states with room for boards up to this size."""
    nodes = width * height
    cells = -(-(nodes + 2 * (width + 1)) // CELLS_PER_BLOCK) * CELLS_PER_BLOCK
    index = np.uint8 if cells <= 256 else np.uint16
    fields = np.dtype(
        [
            ("cell", np.uint8, (cells,)),  # contents of each cell, see `geometry`; cells beyond the board are EDGE
            ("label", index, (cells,)),  # the lowest cell of the group that a point belongs to; 0 without a point
            ("cell_list", index, (nodes,)),  # scratch list of cells; between actions 0, except `list_drawable` entries
            ("score", np.int16, (2,)),  # per seat, the opposing points in its regions
            ("capturable", np.int16, (2,)),  # per seat, the opposing points in cores that it encloses and has not drawn
            ("free", np.int16),  # number of free nodes
            ("plies", np.int16),  # number of points placed in turns
            ("last", np.int16),  # node of the point placed last, -1 if there is none
            ("num_players", np.int8),  # always 2
            ("to_move", np.int8),
            ("drawing", np.int8),  # 1: the seat to move has placed its point, and may draw or end its turn
            ("width", np.int8),
            ("height", np.int8),
            ("territory", np.int8),  # index in TERRITORIES
            ("start", np.int8),  # index in STARTS
            ("padding", np.int8, (3,)),  # always 0; the size is a multiple of 8, because `next_capturable` reads words
        ],
        align=True,
    )
    return np.dtype((np.record, fields))


MAX_BOARD_SIZES = ((12, 12), (20, 20), (MAX_WIDTH, MAX_HEIGHT))
"""The largest board, (width, height), of each dtype."""
STATE_DTYPES = tuple(_state_dtype(*sides) for sides in MAX_BOARD_SIZES)
"""The dtypes of states. All fields but the options, `to_move`, `last` and `drawing` follow from points and regions."""


def state_dtype(width: int, height: int) -> np.dtype[Any]:
    """Return the smallest dtype that has room for a board."""
    return next(
        record
        for record, sides in zip(STATE_DTYPES, MAX_BOARD_SIZES, strict=True)
        if width <= sides[0] and height <= sides[1]
    )


@jit
def start(game: State, options: OptionCodes, streams: Streams, index: int) -> None:
    """Start a game; nothing is drawn from `streams`. See `definition.OPTIONS`."""
    clear(game, options[0], options[1], options[2])
    if options[3]:
        place_cross(game)


@jit
def place_cross(game: State) -> None:
    """Put the cross of the match rules of tensu.ru (4.2) on an empty board: Black top left and bottom right."""
    game.start = 1
    game.free -= CROSS_POINTS
    width = int(game.width)
    corner = (int(game.height) // 2) * width + width // 2  # the cell of row height // 2 - 1, column width // 2 - 1
    for seat in range(2):
        for place in (corner + seat, corner + width + 1 - seat):  # a seat's two points are one group, enclosing nothing
            game.cell[place] = int(game.cell[place]) | seat + 1
            game.label[place] = corner + seat


@jit
def has_start_points(game: State) -> bool:
    """Return whether the points that the game starts with are on the board; points are never removed."""
    if not game.start:
        return True
    width = int(game.width)
    corner, complete = (int(game.height) // 2) * width + width // 2, True
    for seat in range(2):
        for place in (corner + seat, corner + width + 1 - seat):
            complete &= game.cell[place] & POINT_MASK == seat + 1
    return complete


def start_points(width: int, height: int) -> npt.NDArray[np.int8]:
    """Return the points after `place_cross`, (N,) int8: 0 for none, else seat + 1."""
    points = np.zeros((height, width), np.int8)
    points[height // 2 - 1 : height // 2 + 1, width // 2 - 1 : width // 2 + 1] = [[1, 2], [2, 1]]
    return points.ravel()


@jit(refcount=False)
def clear(game: State, width: int, height: int, territory: int) -> None:
    """Make `game` an empty board with Black to place the first point."""
    game.num_players, game.to_move, game.drawing = 2, 0, 0
    game.width, game.height, game.territory, game.start = width, height, territory, 0
    game.free, game.plies, game.last = width * height, 0, -1
    for seat in range(2):
        game.score[seat] = game.capturable[seat] = 0
    for place in range(len(game.cell)):
        game.cell[place] = EDGE
        game.label[place] = 0
    for i in range(len(game.cell_list)):
        game.cell_list[i] = 0
    for i in range(len(game.padding)):
        game.padding[i] = 0
    for row in range(1, height - 1):
        for column in range(1, width - 1):
            game.cell[(row + 1) * width + column + 1] = 0


@jit(refcount=False)
def num_nodes(game: State) -> int:
    """Return N, the number of nodes."""
    return int(game.width) * int(game.height)


@jit(refcount=False)
def num_actions(game: State) -> int:
    """Return the number of actions: 2N + 1 with `"declared"`, N with `"immediate"`; N is the number of nodes.

    Action n places a point on node n. N + m draws the core (see `regions`) that node m names: m is the core's lowest
    node with an opposing point outside the seat's regions. 2N ends the turn.
    """
    return num_nodes(game) if game.territory == IMMEDIATE else 2 * num_nodes(game) + 1


@jit(refcount=False)
def is_over(game: State) -> bool:
    """Return whether no node is free and the last turn has ended."""
    return game.free == 0 and game.drawing == 0


@jit(refcount=False)
def is_legal(game: State, action: int) -> bool:
    """Return whether the seat to move may play `action`; False for integers that are out of range."""
    nodes = num_nodes(game)
    if game.drawing:
        legal = action == 2 * nodes
        for number in range(count_drawable(game)):
            legal |= action == nodes + drawable_node(game, number)
        return legal
    return 0 <= action < nodes and game.cell[action + int(game.width) + 1] & LIVE_MASK == 0


@jit(refcount=False)
def write_legal_mask(game: State, mask: npt.NDArray[np.int8]) -> None:
    """Write the legal actions of the seat to move into `mask`, (num_actions,) int8; all zero when the game is over."""
    nodes, first = num_nodes(game), int(game.width) + 1
    if game.drawing:
        mask[:] = 0
        mask[2 * nodes] = 1
        for number in range(count_drawable(game)):
            mask[nodes + drawable_node(game, number)] = 1
        return
    cell = game.cell[first : first + nodes]
    for node in range(nodes):
        mask[node] = cell[node] & LIVE_MASK == 0
    mask[nodes:] = 0


@jit(refcount=False)
def write_legal_bits(game: State, words: Words) -> None:
    """Write the numbers of `write_legal_mask` as bits, (ceil(num_actions / 32),) uint32."""
    nodes, cells = num_nodes(game), int(game.width) + 1
    clear_words(words)
    if game.drawing:
        set_bit(words, 2 * nodes)
        for number in range(count_drawable(game)):
            set_bit(words, nodes + drawable_node(game, number))
        return
    for first in range(0, nodes, WORD_BITS):
        free = 0
        for k in range(min(WORD_BITS, nodes - first)):
            free |= int(game.cell[cells + first + k] & LIVE_MASK == 0) << k
        words[first >> 5] = free


@jit(refcount=False)
def play(game: State, action: int) -> int:
    """Play a legal action; if the turn ends, the other seat is to move. Return 0, because no seat is ever skipped."""
    nodes = num_nodes(game)
    if action < nodes:
        place_point(game, action + int(game.width) + 1)
        return 0
    seat = mover(game)
    clear_drawable(game)
    if action < 2 * nodes:
        draw_region(game, seat, action - nodes + int(game.width) + 1)
    if action < 2 * nodes and game.capturable[seat]:
        list_drawable(game, seat)
    else:
        end_turn(game)
    return 0


@jit(refcount=False)
def mover(game: State) -> int:
    """Return the seat to move as an int64.

    In compiled code `int(game.to_move)` would stay an int8, and every function called with it would be compiled twice.
    """
    return np.int64(game.to_move)  # type: ignore[return-value]


@jit(inline=True)
def place_point(game: State, place: int) -> None:
    """Place a point of the seat to move on the free cell `place`, and end the turn unless the seat may draw now."""
    seat = mover(game)
    game.last = place - int(game.width) - 1
    game.plies += 1
    add_point(game, seat, place)
    if game.capturable[seat] and game.territory != IMMEDIATE:
        game.drawing = 1
        list_drawable(game, seat)
        return
    end_turn(game)


@jit(refcount=False)
def add_point(game: State, seat: int, place: int) -> None:
    """Put a live point of `seat` on the free cell `place`, and mark what it encloses. Does not end the turn."""
    value = int(game.cell[place])
    own, opposing = value & (ENCLOSED << seat), value & (ENCLOSED << (1 - seat))
    game.cell[place] = (value | seat + 1) & ~own
    game.free -= 1
    game.capturable[1 - seat] += opposing != 0
    closing = join_groups(game, place)
    if closing and own == 0:
        mark_newly_enclosed(game, seat, place)


@jit(refcount=False)
def end_turn(game: State) -> None:
    """End the turn: draw the regions that the rules draw, and give the turn to the other seat.

    With `"immediate"` the rules draw in every turn, the mover's regions first: "the mover captures before he is
    captured". With `"declared"` they draw only when the board is full, because there is no later turn in which the last
    point could be captured. Then the regions of the seat that would be to move come first.
    """
    seat = mover(game)
    game.drawing, game.to_move = 0, 1 - seat
    if game.territory == IMMEDIATE or game.free == 0:
        first = seat if game.territory == IMMEDIATE else 1 - seat
        for each in (first, 1 - first):
            draw_all(game, each)


@jit(inline=True)
def draw_all(game: State, seat: int) -> None:
    """Draw all drawable cores of a seat. Their order does not affect the result."""
    place = np.int64(0)
    while game.capturable[seat]:
        place = next_capturable(game, seat, place)
        draw_region(game, seat, place)


@jit(refcount=False)
def winner_of(game: State) -> int:
    """Return the seat with more points in its regions, or `DRAWN`."""
    if game.score[0] == game.score[1]:
        return DRAWN
    return int(game.score[1] > game.score[0])


@jit
def write_scores(game: State, scores: npt.NDArray[Any]) -> None:
    """Write the number of opposing points in each seat's regions, (2,)."""
    for seat in range(2):
        scores[seat] = game.score[seat]


@jit
def write_score_rewards(game: State, rewards: npt.NDArray[np.float32]) -> None:
    """Write (own score - other score) / N for each seat, (2,) float32; N is the number of nodes."""
    lead = (int(game.score[0]) - int(game.score[1])) / num_nodes(game)
    rewards[0], rewards[1] = lead, -lead


@jit
def write_targets(game: State, targets: npt.NDArray[np.int8]) -> None:
    """Write the seat whose region each node lies in, int8; -1 for no region and beyond the nodes of the board."""
    nodes, first = num_nodes(game), int(game.width) + 1
    for node in range(nodes):
        targets[node] = ((int(game.cell[first + node]) & REGION_MASK) >> 2) - 1
    for node in range(nodes, len(targets)):
        targets[node] = -1


@jit(refcount=False)
def plies(game: State) -> int:
    """Return the number of points placed in turns. Drawing a region and ending a turn do not count as plies."""
    return int(game.plies)
