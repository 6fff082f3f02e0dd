"""Superko: no placing may lead back to a board that was there before.

Positional superko forbids every earlier board of the game, situational superko those with the same player to move. Both
know boards by Zobrist hashes of 64 bits: A. L. Zobrist, "A new hashing method with application for game playing",
University of Wisconsin, 1970. Two boards of a game that share a hash by chance would forbid a placing wrongly; with a
thousand boards that happens in fewer than one of 10**12 games.

Records of games with superko keep the hashes of all their boards in `seen`, in order, and in `sketch` one bit for each:
where its bit is not set, a hash need not be looked for. Records of other games have both too, of length 1, always 0.
"""

from __future__ import annotations

import numpy as np

from ninetka_env.core.jit import frozen, inner
from ninetka_env.core.verbs import Record
from ninetka_env.games.go.geometry import LARGEST, NEIGHBOURS, first_row

MAX_PLIES = 1024
"""No game is longer."""
SKETCH_WORDS = 64
SITUATIONAL = 2
"""The place of situational superko in `rules.KO_RULES`."""

_RANDOM = np.random.PCG64(1970).random_raw(2 * LARGEST**2 + 1)
STONE_KEYS = frozen(_RANDOM[1:].reshape(2, LARGEST**2), np.uint64)
"""(2, 361) uint64: the key of each seat's stone on each point, by number whatever the size."""
TURN_KEY = _RANDOM[0]
"""What seat 1 to move adds to a hash under situational superko."""

_WORD_SHIFT, _BIT_SHIFT, _BIT_MASK, _ONE = np.uint64(58), np.uint64(52), np.uint64(63), np.uint64(1)


@inner
def has_superko(game: Record) -> bool:
    """Tell whether the game keeps its boards; the compiler knows the answer."""
    return len(game.seen) > 1


@inner
def forget_boards(game: Record) -> None:
    """Forget all boards that superko forbids to lead back to."""
    game.num_seen = 0
    for place in range(len(game.seen)):
        game.seen[place] = 0
    for place in range(len(game.sketch)):
        game.sketch[place] = 0


@inner
def see(game: Record, hash_: np.uint64) -> None:
    """Add a board, by its hash, to those that were there."""
    game.seen[game.num_seen] = hash_
    game.num_seen += 1
    game.sketch[np.int64(hash_ >> _WORD_SHIFT)] |= _ONE << ((hash_ >> _BIT_SHIFT) & _BIT_MASK)


@inner
def was_seen(game: Record, hash_: np.uint64) -> bool:
    """Tell whether a board was there before."""
    if not (game.sketch[np.int64(hash_ >> _WORD_SHIFT)] >> ((hash_ >> _BIT_SHIFT) & _BIT_MASK)) & _ONE:
        return False
    for place in range(game.num_seen):
        if game.seen[place] == hash_:
            return True
    return False


@inner
def hash_of(game: Record) -> np.uint64:
    """Compute the hash of the board as it stands, with its player to move."""
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
    """Return the hash after the seat to move has placed a stone on an empty point and taken what it captures."""
    hash_ = hash_after_pass(game) ^ STONE_KEYS[game.to_move, point]
    row = first_row(len(game.empty)) + point
    for k in range(4):
        neighbour = NEIGHBOURS[row, k]
        head = game.chain[neighbour]
        captured = game.board[neighbour] == 2 - game.to_move and game.liberties[head] == touching(game, row, head)
        if captured and _is_first(game, row, k):  # a chain that is next to the point twice is taken once
            hash_ ^= _chain_hash(game, head, 1 - game.to_move)
    return hash_


@inner
def touching(game: Record, row: int, head: int) -> int:
    """Count the neighbours of the point in `row` of the tables that belong to the chain of `head`."""
    count = 0
    for k in range(4):
        count += game.chain[NEIGHBOURS[row, k]] == head
    return count


@inner
def _is_first(game: Record, row: int, k: int) -> bool:
    """Tell whether no neighbour before neighbour `k` of the point in `row` belongs to the same chain."""
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
    """Tell whether placing a stone on an empty point leads back to an earlier board; the placing must not be suicide.

    Until somebody has captured something, no stone has left the board, so the point was empty on all earlier boards:
    none of them can come back, not even by the first capture.
    """
    if game.captured[0] + game.captured[1] == 0:
        return False
    return was_seen(game, hash_after(game, point))
