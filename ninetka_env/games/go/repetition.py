"""Superko: a placement must not repeat an earlier board.

Positional superko forbids every earlier board of the game; situational superko forbids every earlier board with the
same player to move.

Boards are identified by 64-bit Zobrist hashes: A. L. Zobrist, "A new hashing method with application for game playing",
University of Wisconsin, 1970. A hash collision would wrongly forbid a placement; with a thousand boards in a game, this
happens in fewer than one of 10**12 games.

The state of a game with superko stores the hashes of all its boards in `board_hashes`, in order. `hash_filter` is a
Bloom filter with one bit per hash: if the bit of a hash is not set, `board_hashes` need not be searched. In the state
of a game without superko, both fields have length 1 and are always 0.
"""

from __future__ import annotations

import numpy as np

from ninetka_env.core.jit import jit, readonly_array
from ninetka_env.core.verbs import State
from ninetka_env.games.go.geometry import MAX_SIZE, NEIGHBOURS, table_offset

MAX_PLIES = 1024
"""The maximum length of a game in plies."""
FILTER_WORDS = 64
SITUATIONAL = 2
"""The index of situational superko in `rules.KO_RULES`."""

_RANDOM = np.random.PCG64(1970).random_raw(2 * MAX_SIZE**2 + 1)
STONE_KEYS = readonly_array(_RANDOM[1:].reshape(2, MAX_SIZE**2), np.uint64)
"""(2, 361) uint64: the key of each seat's stone on each point; point numbers of all board sizes share the keys."""
TURN_KEY = _RANDOM[0]
"""The key for seat 1 to move, used by situational superko."""

_WORD_SHIFT, _BIT_SHIFT, _BIT_MASK, _ONE = np.uint64(58), np.uint64(52), np.uint64(63), np.uint64(1)


@jit(refcount=False)
def has_superko(game: State) -> bool:
    """Return whether the state stores earlier boards (superko). Resolved at compile time from the dtype."""
    return len(game.board_hashes) > 1


@jit(refcount=False)
def clear_boards(game: State) -> None:
    """Clear the stored boards."""
    game.num_board_hashes = 0
    for place in range(len(game.board_hashes)):
        game.board_hashes[place] = 0
    for place in range(len(game.hash_filter)):
        game.hash_filter[place] = 0


@jit(refcount=False)
def add_board(game: State, hash_: np.uint64) -> None:
    """Add the hash of a board to the stored boards."""
    game.board_hashes[game.num_board_hashes] = hash_
    game.num_board_hashes += 1
    game.hash_filter[np.int64(hash_ >> _WORD_SHIFT)] |= _ONE << ((hash_ >> _BIT_SHIFT) & _BIT_MASK)


@jit(refcount=False)
def is_earlier_board(game: State, hash_: np.uint64) -> bool:
    """Return whether a board with this hash is stored."""
    if not (game.hash_filter[np.int64(hash_ >> _WORD_SHIFT)] >> ((hash_ >> _BIT_SHIFT) & _BIT_MASK)) & _ONE:
        return False
    for place in range(game.num_board_hashes):
        if game.board_hashes[place] == hash_:
            return True
    return False


@jit(refcount=False)
def hash_of(game: State) -> np.uint64:
    """Compute the hash of the current board; with situational superko, it includes the player to move."""
    hash_ = np.uint64(0)
    for point in range(len(game.empty)):
        if game.board[point]:
            hash_ ^= STONE_KEYS[game.board[point] - 1, point]
    if game.ko == SITUATIONAL and game.to_move:
        hash_ ^= TURN_KEY
    return hash_


@jit(refcount=False)
def hash_after_pass(game: State) -> np.uint64:
    """Return the hash of the board after a pass of the seat to move."""
    hash_ = game.board_hashes[game.num_board_hashes - 1]
    if game.ko == SITUATIONAL:
        hash_ ^= TURN_KEY
    return hash_


@jit(refcount=False)
def hash_after(game: State, point: int) -> np.uint64:
    """Return the hash of the board after the seat to move has placed a stone on an empty point and captured."""
    hash_ = hash_after_pass(game) ^ STONE_KEYS[game.to_move, point]
    row = table_offset(len(game.empty)) + point
    for k in range(4):
        neighbour = NEIGHBOURS[row, k]
        head = game.chain[neighbour]
        captured = game.board[neighbour] == 2 - game.to_move and game.liberties[head] == count_neighbours_in_chain(
            game, row, head
        )
        if captured and _is_first_of_chain(game, row, k):  # a chain may be next to the point twice
            hash_ ^= _chain_hash(game, head, 1 - game.to_move)
    return hash_


@jit(refcount=False)
def count_neighbours_in_chain(game: State, row: int, head: int) -> int:
    """Return how many neighbours of the point in `row` of the tables belong to the chain with head `head`."""
    count = 0
    for k in range(4):
        count += game.chain[NEIGHBOURS[row, k]] == head
    return count


@jit(refcount=False)
def _is_first_of_chain(game: State, row: int, k: int) -> bool:
    """Return whether none of the neighbours 0..k-1 of the point in `row` belongs to the chain of neighbour `k`."""
    for before in range(k):
        if game.chain[NEIGHBOURS[row, before]] == game.chain[NEIGHBOURS[row, k]]:
            return False
    return True


@jit(refcount=False)
def _chain_hash(game: State, head: int, seat: int) -> np.uint64:
    hash_, stone = STONE_KEYS[seat, head], game.next_stone[head]
    while stone != head:
        hash_ ^= STONE_KEYS[seat, stone]
        stone = game.next_stone[stone]
    return hash_


@jit(refcount=False)
def violates_superko(game: State, point: int) -> bool:
    """Return whether a stone on an empty point repeats an earlier board; the placement must not be suicide.

    Without an earlier capture the answer is False: no stone has left the board, so the point was empty on all earlier
    boards. A placement that makes the first capture cannot repeat a board either.
    """
    if game.captured[0] + game.captured[1] == 0:
        return False
    return is_earlier_board(game, hash_after(game, point))
