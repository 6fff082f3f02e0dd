"""The compiled rules of Go. The state of a game is one element of a structured array; a batch is an array of states.

Each board size has its own dtype, and a second one for superko, which stores all earlier boards. So the board size is a
constant for the compiler. The functions do not check their arguments (use `is_legal`) and draw no random numbers.

The stones of a chain form a ring (`after`). One of them is the *head* of the chain; values of the chain are stored at
the index of its head. `liberties` are pseudo-liberties, as in libEGO, the library of L. Lew: an empty point counts once
for each adjacent stone of the chain. This number is updated by one addition, and it is 0 exactly if the chain has no
liberty. Empty points and the cell off the board belong to an unused chain, whose head is off the board, so that loops
over neighbours need no branches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_env.core.chance import Streams
from ninetka_env.core.jit import inner, jit, lowest
from ninetka_env.core.verbs import Codes, Record
from ninetka_env.games.go.geometry import BLACK, HANDICAP_POINTS, LARGEST, NEIGHBOURS, SMALLEST, WALL, first_row, wide
from ninetka_env.games.go.repetition import (
    MAX_PLIES,
    SKETCH_WORDS,
    forget_boards,
    has_superko,
    hash_after,
    hash_after_pass,
    hash_of,
    repeats,
    see,
    touching,
)

KO_RULES = ("simple", "positional", "situational")
SCORINGS = ("area", "document", "territory")
PLANE_SETS = ("standard", "alphazero")
"""The values of three options; a state stores their indices in these tuples."""

NOBODY = -1
"""Represents no point."""


def _record_type(size: int, superko: bool) -> np.dtype[Any]:
    """Make the dtype of the states for a board size."""
    points = size * size
    number = np.uint8 if points + 1 < 256 else np.uint16
    fields: list[Any] = [
        ("seen", np.uint64, (MAX_PLIES + 1 if superko else 1,)),  # hashes of all boards so far: see `repetition`
        ("sketch", np.uint64, (SKETCH_WORDS if superko else 1,)),
        ("trail", np.uint16, (points,)),  # the cell 1 to 7 turns ago, two bits each, for the planes "alphazero" only
        ("liberties", np.int16, (points + 1,)),  # by head: pseudo-liberties
        ("captured", np.int16, (2,)),  # the opponent's stones that each seat has captured
        ("komi", np.int16),  # in half points
        ("plies", np.int16),
        ("max_plies", np.int16),
        ("num_empty", np.int16),
        ("num_seen", np.int16),
        ("ko_point", np.int16),  # the point that the simple ko rule forbids to the seat to move, or -1
        ("last", np.int16),  # the points of the last two turns, -1 for a pass or none
        ("before_last", np.int16),
        ("chain", number, (points + 1,)),  # the head of each stone's chain; off the board for empty points
        ("after", number, (points,)),  # the next stone of the ring
        ("stones", number, (points,)),  # by head: the number of stones
        ("empty", number, (points,)),  # the first `num_empty` are the empty points, in any order
        ("place", number, (points,)),  # the index of an empty point in `empty`
        ("board", np.int8, (points + 1,)),  # cell codes: 0 empty, seat + 1; the last one is `WALL`
        ("crowd", np.int8, (points + 1,)),  # the number of neighbours that are stones or off the board
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
    fields.append(("spare", np.int8, (-bytes_used % 8 or 8,)))  # always 0, so that equal games are equal byte for byte
    return np.dtype((np.record, np.dtype(fields, align=True)))


_SIZES = range(SMALLEST, LARGEST + 1)
_TYPES = {(size, superko): _record_type(size, superko) for size in _SIZES for superko in (False, True)}


def record_type(size: int, superko: bool = False) -> np.dtype[Any]:
    """Return the dtype of the states for a board size, with or without the earlier boards that superko needs."""
    return _TYPES[size, superko]


@jit(counted=False)
def start(game: Record, options: Codes, streams: Streams, index: int) -> None:
    """Start a game with option codes in the order of `definition.OPTIONS`; the random streams are not used."""
    game.komi, game.ko, game.scoring, game.handicap = options[0], options[1], options[2], 0
    game.max_plies = options[4] if options[4] else 2 * len(game.empty)
    game.allow_resign, game.planes = options[6], options[7]
    clear(game)
    if options[3]:
        _give_handicap(game, options[3] + 1)
    if has_superko(game):
        see(game, hash_of(game))


@inner
def _give_handicap(game: Record, stones: int) -> None:
    """Put black stones on the first of `HANDICAP_POINTS`, with White to move."""
    for point in HANDICAP_POINTS[:stones]:
        put(game, wide(point), wide(BLACK))
    game.handicap = stones
    game.to_move = 1


@inner
def clear(game: Record) -> None:
    """Reset `game` to an empty board with seat 0 to move; its options do not change."""
    points = len(game.empty)
    row = first_row(points)
    for point in range(points):
        game.trail[point] = game.board[point] = 0
        game.after[point] = game.stones[point] = game.liberties[point] = game.crowd[point] = 0
        game.empty[point] = game.place[point] = point
        game.chain[point] = points
        for k in range(4):
            game.crowd[point] += NEIGHBOURS[row + point, k] == points
    game.board[points], game.chain[points] = WALL, points
    game.liberties[points] = game.crowd[points] = 0
    game.captured[0] = game.captured[1] = 0
    game.plies = game.to_move = game.passes = game.resigned = 0
    game.num_players = 2
    game.num_empty = points
    game.ko_point = game.last = game.before_last = NOBODY
    for place in range(len(game.spare)):
        game.spare[place] = 0
    forget_boards(game)


# What is legal


@jit(counted=False)
def is_over(game: Record) -> bool:
    """Return whether the game is over: by two passes in a row, the limit of plies or a resignation."""
    return game.passes >= 2 or game.plies >= game.max_plies or game.resigned != 0


@jit(counted=False)
def num_actions(game: Record) -> int:
    """Return the number of actions: the points, the pass, and resigning with `allow_resign`."""
    return len(game.empty) + 1 + int(game.allow_resign)


@jit(counted=False)
def is_legal(game: Record, action: int) -> bool:
    """Return whether `action` is legal for the seat to move; out-of-range integers return False."""
    if action < 0 or action >= num_actions(game) or is_over(game):
        return False
    return action >= len(game.empty) or (game.board[action] == 0 and may_place(game, action))


@inner
def may_place(game: Record, point: int) -> bool:
    """Return whether the seat to move may place a stone on an empty point; the game must not be over."""
    if point == game.ko_point or is_suicide(game, point):
        return False
    return not (has_superko(game) and repeats(game, point))


@inner
def is_suicide(game: Record, point: int) -> bool:
    """Return whether a stone of the seat to move on an empty point would capture nothing and have no liberty."""
    if game.crowd[point] < 4:
        return False
    row, own = first_row(len(game.empty)) + point, game.to_move + 1
    breathes = False  # the loop is branch-free, because random data would defeat branch prediction
    for k in range(4):
        neighbour = NEIGHBOURS[row, k]
        head = game.chain[neighbour]
        last_liberty = game.liberties[head] == touching(game, row, head)  # never off the board
        breathes |= last_liberty != (game.board[neighbour] == own)
    return not breathes


@jit(counted=False)
def write_legal_mask(game: Record, mask: npt.NDArray[np.int8]) -> None:
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
            point = wide(game.empty[place])
            mask[point] = may_place(game, point)
        return
    for first in range(0, points, 64):
        shut = 0  # a bit set: only a stone on a point without empty neighbours can be suicide
        for k in range(min(64, points - first)):
            shut |= int((game.board[first + k] == 0) & (game.crowd[first + k] == 4)) << k
        while shut:
            point = first + lowest(shut)
            shut &= shut - 1
            mask[point] = not is_suicide(game, point)
    if game.ko_point >= 0:
        mask[game.ko_point] = 0


# Turns


@jit(counted=False)
def play(game: Record, action: int) -> int:
    """Play a legal action and give the turn to the other seat. Returns 0, because no seat is passed over in Go."""
    if action > len(game.empty):
        game.resigned = game.to_move + 1
        return 0
    if game.planes:
        _remember(game)
    take_turn(game, action)
    return 0


@inner
def _remember(game: Record) -> None:
    """Add the current board to `trail`, which stores the last seven boards."""
    for point in range(len(game.trail)):
        game.trail[point] = ((game.trail[point] << 2) | game.board[point]) & 0x3FFF


@inner
def take_turn(game: Record, action: int) -> None:
    """Place a stone or pass, and give the turn to the other seat. Unlike `play`, do not update `trail`."""
    game.ko_point = NOBODY
    game.before_last = game.last
    if action == len(game.empty):
        if has_superko(game):
            see(game, hash_after_pass(game))
        game.last = NOBODY
        game.passes += 1
    else:
        if has_superko(game):
            see(game, hash_after(game, action))
        game.last = action
        game.passes = 0
        place_stone(game, action)
    game.plies += 1
    game.to_move = 1 - game.to_move


@inner
def place_stone(game: Record, point: int) -> None:
    """Place a stone of the seat to move, remove what it captures, and set the ko point."""
    put(game, point, game.to_move + 1)
    captured = _capture_around(game, point)
    if captured:
        game.captured[game.to_move] += captured
        if captured == 1 and game.stones[game.chain[point]] == 1 and game.liberties[point] == 1:
            game.ko_point = game.empty[game.num_empty - 1]  # the point of the captured stone


@inner
def put(game: Record, point: int, colour: int) -> None:
    """Put a stone on an empty point without capturing: chains without a liberty stay."""
    points = len(game.empty)
    row = first_row(points) + point
    _fill(game, point)
    game.board[point] = colour
    game.chain[point] = game.after[point] = point
    game.stones[point] = 1
    game.liberties[point] = 4 - game.crowd[point]
    friends = 0  # a bit set, because four branches on random data would be mispredicted
    for k in range(4):
        neighbour = NEIGHBOURS[row, k]
        game.crowd[neighbour] += 1
        game.liberties[game.chain[neighbour]] -= 1
        friends |= (game.board[neighbour] == colour) << k
    game.crowd[points] = game.liberties[points] = 0
    while friends:
        neighbour = NEIGHBOURS[row, lowest(friends)]
        friends &= friends - 1
        if game.chain[neighbour] != game.chain[point]:
            _join(game, game.chain[neighbour], game.chain[point])


@inner
def _fill(game: Record, point: int) -> None:
    """Remove a point from the list of empty points; the last point of the list takes its index."""
    game.num_empty -= 1
    moved, place = game.empty[game.num_empty], game.place[point]
    game.empty[place] = moved
    game.place[moved] = place


@inner
def _join(game: Record, one: int, other: int) -> None:
    """Join two chains, given by their heads; the head of the chain with more stones becomes the common head."""
    if game.stones[one] < game.stones[other]:
        one, other = other, one
    game.stones[one] += game.stones[other]
    game.liberties[one] += game.liberties[other]
    stone = other
    for _ in range(game.stones[other]):
        game.chain[stone] = one
        stone = game.after[stone]
    game.after[one], game.after[other] = game.after[other], game.after[one]


@inner
def _capture_around(game: Record, point: int) -> int:
    """Remove the opponent's chains next to a point that have no liberty; return the number of their stones."""
    row, captured, dead = first_row(len(game.empty)) + point, 0, 0
    for k in range(4):
        neighbour = NEIGHBOURS[row, k]
        dead |= ((game.board[neighbour] == 2 - game.to_move) & (game.liberties[game.chain[neighbour]] == 0)) << k
    while dead:
        neighbour = NEIGHBOURS[row, lowest(dead)]
        dead &= dead - 1
        if game.board[neighbour]:  # a chain next to the point twice is removed once
            captured += _remove(game, game.chain[neighbour])
    return captured


@inner
def _remove(game: Record, head: int) -> int:
    """Remove a chain from the board; return the number of its stones."""
    points, stone = len(game.empty), head
    first = first_row(points)
    for _ in range(game.stones[head]):
        game.board[stone] = 0
        game.chain[stone] = points
        game.place[stone] = game.num_empty
        game.empty[game.num_empty] = stone
        game.num_empty += 1
        for k in range(4):
            neighbour = NEIGHBOURS[first + wide(stone), k]
            game.crowd[neighbour] -= 1
            game.liberties[game.chain[neighbour]] += 1
        stone = game.after[stone]
    game.crowd[points] = game.liberties[points] = 0
    return game.stones[head]
