"""The compiled rules of Go. The state of a game is one element of a structured array; a batch is an array of states.

Each board size has two dtypes: one without and one with the earlier boards that superko needs. The board size is
therefore a constant for the compiler. The functions do not check their arguments (use `is_legal`) and draw no random
numbers.

The stones of a chain form a ring (`next_stone`). One of them is the *head* of the chain; values of the chain are stored
at the index of its head. `liberties` are pseudo-liberties, as in libEGO, the library of L. Lew: an empty point counts
once for each adjacent stone of the chain. This number is updated by one addition, and it is 0 exactly if the chain has
no liberty. Empty points and the cell off the board belong to an unused chain with the head
`size**2`, so that loops over neighbours need no branches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_env.core.bits import WORD_BITS, Words, clear_words, fill_bits
from ninetka_env.core.jit import jit, lowest_bit
from ninetka_env.core.random_streams import Streams
from ninetka_env.core.verbs import OptionCodes, State
from ninetka_env.games.go.geometry import (
    BLACK,
    HANDICAP_POINTS,
    MAX_SIZE,
    MIN_SIZE,
    NEIGHBOURS,
    WALL,
    i64,
    table_offset,
)
from ninetka_env.games.go.repetition import (
    FILTER_WORDS,
    MAX_PLIES,
    add_board,
    clear_boards,
    count_neighbours_in_chain,
    has_superko,
    hash_after,
    hash_after_pass,
    hash_of,
    violates_superko,
)

KO_RULES = ("simple", "positional", "situational")
SCORINGS = ("area", "document", "territory")
PLANE_SETS = ("standard", "alphazero")
"""The values of the options `ko`, `scoring` and `planes`; a state stores indices in these tuples."""

NO_POINT = -1
"""The value of the fields `ko_point`, `last` and `before_last` if there is no such point."""


def _make_state_dtype(size: int, superko: bool) -> np.dtype[Any]:
    """Make the dtype of the states for a board size."""
    points = size * size
    number = np.uint8 if points + 1 < 256 else np.uint16
    fields: list[Any] = [
        (
            "board_hashes",
            np.uint64,
            (MAX_PLIES + 1 if superko else 1,),
        ),  # hashes of all boards so far: see `repetition`
        ("hash_filter", np.uint64, (FILTER_WORDS if superko else 1,)),
        (
            "board_history",
            np.uint16,
            (points,),
        ),  # the cell codes 1 to 7 turns ago, two bits each; only for the planes "alphazero"
        ("liberties", np.int16, (points + 1,)),  # by head: pseudo-liberties
        ("captured", np.int16, (2,)),  # the opponent's stones that each seat has captured
        ("komi", np.int16),  # in half points
        ("plies", np.int16),
        ("max_plies", np.int16),
        ("num_empty", np.int16),
        ("num_board_hashes", np.int16),
        ("ko_point", np.int16),  # the point that the simple ko rule forbids to the seat to move, or -1
        ("last", np.int16),  # the points of the last two turns, -1 for a pass or none
        ("before_last", np.int16),
        ("chain", number, (points + 1,)),  # the head of each stone's chain; off the board for empty points
        ("next_stone", number, (points,)),  # the next stone of the ring
        ("stones", number, (points,)),  # by head: the number of stones
        ("empty", number, (points,)),  # the first `num_empty` are the empty points, in any order
        ("empty_index", number, (points,)),  # the index of an empty point in `empty`
        ("board", np.int8, (points + 1,)),  # cell codes: 0 empty, seat + 1; the last one is `WALL`
        ("occupied_sides", np.int8, (points + 1,)),  # the number of neighbours that are stones or off the board
        ("num_players", np.int8),
        ("to_move", np.int8),
        ("passes", np.int8),  # passes in a row
        ("resigned", np.int8),  # the seat that has resigned by an action, plus 1; else 0
        ("ko", np.int8),
        ("scoring", np.int8),
        ("planes", np.int8),
        ("handicap", np.int8),
        ("allow_resign", np.int8),
    ]
    bytes_used = np.dtype(fields).itemsize
    fields.append(
        ("padding", np.int8, (-bytes_used % 8 or 8,))
    )  # always 0, so that equal games are equal byte for byte
    return np.dtype((np.record, np.dtype(fields, align=True)))


_SIZES = range(MIN_SIZE, MAX_SIZE + 1)
_DTYPES = {(size, superko): _make_state_dtype(size, superko) for size in _SIZES for superko in (False, True)}


def state_dtype(size: int, superko: bool = False) -> np.dtype[Any]:
    """Return the dtype of the states for a board size, with or without the earlier boards that superko needs."""
    return _DTYPES[size, superko]


@jit(refcount=False)
def start(game: State, options: OptionCodes, streams: Streams, index: int) -> None:
    """Start a game with option codes in the order of `definition.OPTIONS`; the random streams are not used."""
    game.komi, game.ko, game.scoring, game.handicap = options[0], options[1], options[2], 0
    game.max_plies = options[4] if options[4] else 2 * len(game.empty)
    game.allow_resign, game.planes = options[6], options[7]
    clear(game)
    if options[3]:
        _give_handicap(game, options[3] + 1)
    if has_superko(game):
        add_board(game, hash_of(game))


@jit(refcount=False)
def _give_handicap(game: State, stones: int) -> None:
    """Put black stones on the first of `HANDICAP_POINTS`, with White to move."""
    for point in HANDICAP_POINTS[:stones]:
        add_stone(game, i64(point), i64(BLACK))
    game.handicap = stones
    game.to_move = 1


@jit(refcount=False)
def clear(game: State) -> None:
    """Reset `game` to an empty board with seat 0 to move; its options do not change."""
    points = len(game.empty)
    row = table_offset(points)
    for point in range(points):
        game.board_history[point] = game.board[point] = 0
        game.next_stone[point] = game.stones[point] = game.liberties[point] = game.occupied_sides[point] = 0
        game.empty[point] = game.empty_index[point] = point
        game.chain[point] = points
        for k in range(4):
            game.occupied_sides[point] += NEIGHBOURS[row + point, k] == points
    game.board[points], game.chain[points] = WALL, points
    game.liberties[points] = game.occupied_sides[points] = 0
    game.captured[0] = game.captured[1] = 0
    game.plies = game.to_move = game.passes = game.resigned = 0
    game.num_players = 2
    game.num_empty = points
    game.ko_point = game.last = game.before_last = NO_POINT
    for place in range(len(game.padding)):
        game.padding[place] = 0
    clear_boards(game)


# Legal actions


@jit(refcount=False)
def is_over(game: State) -> bool:
    """Return whether the game is over: by two passes in a row, the limit of plies or a resignation."""
    return game.passes >= 2 or game.plies >= game.max_plies or game.resigned != 0


@jit(refcount=False)
def num_actions(game: State) -> int:
    """Return the number of actions: the points, the pass, and resigning with `allow_resign`."""
    return len(game.empty) + 1 + int(game.allow_resign)


@jit(refcount=False)
def is_legal(game: State, action: int) -> bool:
    """Return whether `action` is legal for the seat to move; out-of-range integers return False."""
    if action < 0 or action >= num_actions(game) or is_over(game):
        return False
    return action >= len(game.empty) or (game.board[action] == 0 and may_place(game, action))


@jit(refcount=False)
def may_place(game: State, point: int) -> bool:
    """Return whether the seat to move may place a stone on an empty point; the game must not be over."""
    if point == game.ko_point or is_suicide(game, point):
        return False
    return not (has_superko(game) and violates_superko(game, point))


@jit(refcount=False)
def is_suicide(game: State, point: int) -> bool:
    """Return whether a stone of the seat to move on an empty point would capture nothing and have no liberty."""
    if game.occupied_sides[point] < 4:
        return False
    row, own = table_offset(len(game.empty)) + point, game.to_move + 1
    survives = False  # the loop is branch-free, because random data would defeat branch prediction
    for k in range(4):
        neighbour = NEIGHBOURS[row, k]
        head = game.chain[neighbour]
        last_liberty = game.liberties[head] == count_neighbours_in_chain(game, row, head)  # False off the board
        survives |= last_liberty != (game.board[neighbour] == own)
    return not survives


@jit(refcount=False)
def write_legal_mask(game: State, mask: npt.NDArray[np.int8]) -> None:
    """Write the legal actions of the seat to move into `mask`, (num_actions,) int8; all zero if the game is over."""
    points = len(game.empty)
    if is_over(game):
        mask[:] = 0
        return
    for point in range(points):
        mask[point] = game.board[point] == 0
    for action in range(points, len(mask)):
        mask[action] = 1
    if has_superko(game):
        for place in range(game.num_empty):
            point = i64(game.empty[place])
            mask[point] = may_place(game, point)
        return
    for first in range(0, points, 64):
        shut = 0  # a bit set: the empty points without empty neighbours, because only there a stone can be suicide
        for k in range(min(64, points - first)):
            shut |= int((game.board[first + k] == 0) & (game.occupied_sides[first + k] == 4)) << k
        while shut:
            point = first + lowest_bit(shut)
            shut &= shut - 1
            mask[point] = not is_suicide(game, point)
    if game.ko_point >= 0:
        mask[game.ko_point] = 0


@jit(refcount=False)
def write_legal_bits(game: State, words: Words) -> None:
    """Write the numbers of `write_legal_mask` as bits, (ceil(num_actions / 32),) uint32."""
    points = len(game.empty)
    clear_words(words)
    if is_over(game):
        return
    for first in range(0, points, WORD_BITS):
        legal, uncertain = 0, 0  # bit sets: without superko, points with an empty neighbour are legal
        for k in range(min(WORD_BITS, points - first)):
            is_empty = game.board[first + k] == 0
            legal |= int(is_empty) << k
            uncertain |= int(is_empty & (has_superko(game) | (game.occupied_sides[first + k] == 4))) << k
        while uncertain:
            k = lowest_bit(uncertain)
            uncertain &= uncertain - 1
            legal &= ~(int(not may_place(game, first + k)) << k)
        words[first >> 5] = legal
    fill_bits(words, points, num_actions(game) - points)


# Turns


@jit(refcount=False)
def play(game: State, action: int) -> int:
    """Play a legal action. The other seat is then to move, except after a resignation.

    Returns:
        0, because no seat is skipped in Go.
    """
    if action > len(game.empty):
        game.resigned = game.to_move + 1
        return 0
    if game.planes:
        _update_history(game)
    take_turn(game, action)
    return 0


@jit(refcount=False)
def _update_history(game: State) -> None:
    """Add the current board to `board_history`, which stores the last seven boards."""
    for point in range(len(game.board_history)):
        game.board_history[point] = ((game.board_history[point] << 2) | game.board[point]) & 0x3FFF


@jit(refcount=False)
def take_turn(game: State, action: int) -> None:
    """Place a stone or pass, and give the turn to the other seat. Unlike `play`, do not update `board_history`."""
    game.ko_point = NO_POINT
    game.before_last = game.last
    if action == len(game.empty):
        if has_superko(game):
            add_board(game, hash_after_pass(game))
        game.last = NO_POINT
        game.passes += 1
    else:
        if has_superko(game):
            add_board(game, hash_after(game, action))
        game.last = action
        game.passes = 0
        place_stone(game, action)
    game.plies += 1
    game.to_move = 1 - game.to_move


@jit(refcount=False)
def place_stone(game: State, point: int) -> None:
    """Place a stone of the seat to move, remove what it captures, and set the ko point."""
    add_stone(game, point, game.to_move + 1)
    captured = _capture_around(game, point)
    if captured:
        game.captured[game.to_move] += captured
        if captured == 1 and game.stones[game.chain[point]] == 1 and game.liberties[point] == 1:
            game.ko_point = game.empty[game.num_empty - 1]  # the point of the captured stone


@jit(refcount=False)
def add_stone(game: State, point: int, colour: int) -> None:
    """Put a stone on an empty point without capturing: chains without a liberty stay."""
    points = len(game.empty)
    row = table_offset(points) + point
    _remove_from_empty(game, point)
    game.board[point] = colour
    game.chain[point] = game.next_stone[point] = point
    game.stones[point] = 1
    game.liberties[point] = 4 - game.occupied_sides[point]
    friends = 0  # a bit set, because four branches on random data would be mispredicted
    for k in range(4):
        neighbour = NEIGHBOURS[row, k]
        game.occupied_sides[neighbour] += 1
        game.liberties[game.chain[neighbour]] -= 1
        friends |= (game.board[neighbour] == colour) << k
    game.occupied_sides[points] = game.liberties[points] = 0
    while friends:
        neighbour = NEIGHBOURS[row, lowest_bit(friends)]
        friends &= friends - 1
        if game.chain[neighbour] != game.chain[point]:
            _join_chains(game, game.chain[neighbour], game.chain[point])


@jit(refcount=False)
def _remove_from_empty(game: State, point: int) -> None:
    """Remove a point from the list of empty points; the last point of the list takes its index."""
    game.num_empty -= 1
    moved, place = game.empty[game.num_empty], game.empty_index[point]
    game.empty[place] = moved
    game.empty_index[moved] = place


@jit(refcount=False)
def _join_chains(game: State, one: int, other: int) -> None:
    """Join two chains, given by their heads; the head of the chain with more stones becomes the common head."""
    if game.stones[one] < game.stones[other]:
        one, other = other, one
    game.stones[one] += game.stones[other]
    game.liberties[one] += game.liberties[other]
    stone = other
    for _ in range(game.stones[other]):
        game.chain[stone] = one
        stone = game.next_stone[stone]
    game.next_stone[one], game.next_stone[other] = game.next_stone[other], game.next_stone[one]


@jit(refcount=False)
def _capture_around(game: State, point: int) -> int:
    """Remove the opponent's chains next to a point that have no liberty; return the number of their stones."""
    row, captured, dead = table_offset(len(game.empty)) + point, 0, 0
    for k in range(4):
        neighbour = NEIGHBOURS[row, k]
        dead |= ((game.board[neighbour] == 2 - game.to_move) & (game.liberties[game.chain[neighbour]] == 0)) << k
    while dead:
        neighbour = NEIGHBOURS[row, lowest_bit(dead)]
        dead &= dead - 1
        if game.board[neighbour]:  # a chain next to the point twice is removed once
            captured += _remove_chain(game, game.chain[neighbour])
    return captured


@jit(refcount=False)
def _remove_chain(game: State, head: int) -> int:
    """Remove a chain from the board; return the number of its stones."""
    points, stone = len(game.empty), head
    first = table_offset(points)
    for _ in range(game.stones[head]):
        game.board[stone] = 0
        game.chain[stone] = points
        game.empty_index[stone] = game.num_empty
        game.empty[game.num_empty] = stone
        game.num_empty += 1
        for k in range(4):
            neighbour = NEIGHBOURS[first + i64(stone), k]
            game.occupied_sides[neighbour] -= 1
            game.liberties[game.chain[neighbour]] += 1
        stone = game.next_stone[stone]
    game.occupied_sides[points] = game.liberties[points] = 0
    return game.stones[head]
