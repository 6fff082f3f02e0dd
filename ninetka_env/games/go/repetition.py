"""Superko: a placement must not repeat an earlier board.

Positional superko forbids every earlier board of the game, situational superko those with the same player to move.
Boards are identified by 64-bit Zobrist hashes: A. L. Zobrist, "A new hashing method with application for game playing",
University of Wisconsin, 1970. A hash collision would wrongly forbid a placement; with a thousand boards in a game, this
happens in fewer than one of 10**12 games.

The state of a game with superko stores the hashes of all its boards in `seen`, in order. `sketch` is a Bloom filter
with one bit per hash: if the bit of a hash is not set, `seen` need not be searched. In the state of a game without
superko, both fields have length 1 and are always 0.
"""

from __future__ import annotations

import numpy as np

from ninetka_env.core.jit import frozen, inner
from ninetka_env.core.verbs import Record
from ninetka_env.games.go.geometry import LARGEST, NEIGHBOURS, first_row

MAX_PLIES = 1024
"""The maximum length of a game."""
SKETCH_WORDS = 64
SITUATIONAL = 2
"""The index of situational superko in `rules.KO_RULES`."""

_RANDOM = np.random.PCG64(1970).random_raw(2 * LARGEST**2 + 1)
STONE_KEYS = frozen(_RANDOM[1:].reshape(2, LARGEST**2), np.uint64)
"""(2, 361) uint64: the key of each seat's stone on each point; point numbers of all board sizes share the keys."""
TURN_KEY = _RANDOM[0]
"""The key for seat 1 to move, used by situational superko."""

_WORD_SHIFT, _BIT_SHIFT, _BIT_MASK, _ONE = np.uint64(58), np.uint64(52), np.uint64(63), np.uint64(1)


@inner
def has_superko(game: Record) -> bool:
    """Return whether the state stores earlier boards (superko). Resolved at compile time from the dtype."""
    return len(game.seen) > 1


@inner
def forget_boards(game: Record) -> None:
    """Clear the stored boards."""
    game.num_seen = 0
    for place in range(len(game.seen)):
        game.seen[place] = 0
    for place in range(len(game.sketch)):
        game.sketch[place] = 0


@inner
def see(game: Record, hash_: np.uint64) -> None:
    """Add the hash of a board to the stored boards."""
    game.seen[game.num_seen] = hash_
    game.num_seen += 1
    game.sketch[np.int64(hash_ >> _WORD_SHIFT)] |= _ONE << ((hash_ >> _BIT_SHIFT) & _BIT_MASK)


@inner
def was_seen(game: Record, hash_: np.uint64) -> bool:
    """Return whether a board with this hash is stored."""
    if not (game.sketch[np.int64(hash_ >> _WORD_SHIFT)] >> ((hash_ >> _BIT_SHIFT) & _BIT_MASK)) & _ONE:
        return False
    for place in range(game.num_seen):
        if game.seen[place] == hash_:
            return True
    return False


@inner
def hash_of(game: Record) -> np.uint64:
    """Compute the hash of the current board; with situational superko, it includes the player to move."""
    hash_ = np.uint64(0)
    for point in range(len(game.empty)):
        if game.board[point]:
            hash_ ^= STONE_KEYS[game.board[point] - 1, point]
    if game.ko == SITUATIONAL and game.to_move:
        hash_ ^= TURN_KEY
    return hash_


@inner
def hash_after_pass(game: Record) -> np.uint64:
    """Return the hash after a pass."""
    hash_ = game.seen[game.num_seen - 1]
    if game.ko == SITUATIONAL:
        hash_ ^= TURN_KEY
    return hash_


@inner
def hash_after(game: Record, point: int) -> np.uint64:
    """Return the hash after the seat to move has placed a stone on an empty point, with its captures."""
    hash_ = hash_after_pass(game) ^ STONE_KEYS[game.to_move, point]
    row = first_row(len(game.empty)) + point
    for k in range(4):
        neighbour = NEIGHBOURS[row, k]
        head = game.chain[neighbour]
        captured = game.board[neighbour] == 2 - game.to_move and game.liberties[head] == touching(game, row, head)
        if captured and _is_first(game, row, k):  # a chain may be next to the point twice
            hash_ ^= _chain_hash(game, head, 1 - game.to_move)
    return hash_


@inner
def touching(game: Record, row: int, head: int) -> int:
    """Return how many neighbours of the point in `row` of the tables belong to the chain with head `head`."""
    count = 0
    for k in range(4):
        count += game.chain[NEIGHBOURS[row, k]] == head
    return count


@inner
def _is_first(game: Record, row: int, k: int) -> bool:
    """Return whether no neighbour before neighbour `k` of the point in `row` belongs to the same chain."""
    for before in range(k):
        if game.chain[NEIGHBOURS[row, before]] == game.chain[NEIGHBOURS[row, k]]:
            return False
    return True


@inner
def _chain_hash(game: Record, head: int, seat: int) -> np.uint64:
    hash_, stone = STONE_KEYS[seat, head], game.after[head]
    while stone != head:
        hash_ ^= STONE_KEYS[seat, stone]
        stone = game.after[stone]
    return hash_


@inner
def repeats(game: Record, point: int) -> bool:
    """Return whether a stone on an empty point repeats an earlier board; the placement must not be suicide.

    Before the first capture no stone has left the board, so the point was empty on all earlier boards. Then no earlier
    board can be repeated, not even by the first capture.
    """
    if game.captured[0] + game.captured[1] == 0:
        return False
    return was_seen(game, hash_after(game, point))
