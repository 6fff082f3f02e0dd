"""Make states of Go from a board or from the text of a position (`text`).

`Game.from_board` and `Game.from_text` in `game.py` call `set_up` and `make_state`. `is_consistent` checks states from
elsewhere.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_env.core.batch import new_games
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_count
from ninetka_env.core.random_streams import make_streams
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import State, StateArray
from ninetka_env.games.go.geometry import MAX_SIZE, MIN_SIZE, NEIGHBOURS, WALL, WHITE, i64, point_name, table_offset
from ninetka_env.games.go.repetition import (
    MAX_PLIES,
    add_board,
    clear_boards,
    count_neighbours_in_chain,
    has_superko,
    hash_of,
    is_earlier_board,
)
from ninetka_env.games.go.rules import NO_POINT, add_stone, clear
from ninetka_env.games.go.text import MAX_CAPTURED, Position


def check_board(board: npt.ArrayLike) -> npt.NDArray[np.int8]:
    """Check a (size, size) board of cell codes (0 empty, 1 black, 2 white), rank 1 first, and return it as int8.

    Raises:
        ValueError: if the shape or a code is not valid.
    """
    cells = np.asarray(board)
    if cells.ndim != 2 or cells.shape[0] != cells.shape[1] or not MIN_SIZE <= len(cells) <= MAX_SIZE:
        raise ValueError(f"board: expected shape (size, size), size {MIN_SIZE} to {MAX_SIZE}, got {cells.shape}")
    if cells.dtype.kind not in "iu" or not np.isin(cells, (0, 1, 2)).all():
        raise ValueError("board: expected the integers 0 (empty), 1 (black) and 2 (white)")
    return np.ascontiguousarray(cells, np.int8)


def set_up(variant: Variant, board: npt.NDArray[np.int8], to_move: int) -> StateArray:
    """Return a (1,) state array: the start of a game of `variant` from `board`, (size, size) cell codes.

    Raises:
        ValueError: if a chain has no liberty; the message names one of its points.
    """
    games = new_games(variant.replace_options(handicap=0), make_streams(0))
    _add_stones(games, board.reshape(-1), check_count("to_move", to_move, 0, 1))
    game = games[0]
    for point in np.flatnonzero(board.reshape(-1)):
        if game["liberties"][game["chain"][point]] == 0:
            raise ValueError(f"{point_name(int(point), len(board))}: the chain there has no liberty")
    return games


def make_state(variant: Variant, found: Position) -> StateArray:
    """Return a (1,) state array of a position that was read from text.

    Raises:
        ValueError: if the ply, the passes or the ko point are impossible, or a chain has no liberty.
    """
    games = set_up(variant, found.board, found.to_move)
    most = int(games["max_plies"][0])
    if found.plies > most:
        raise ValueError(f"ply={found.plies}: the game ends after {most} plies")
    if found.passes > found.plies:
        raise ValueError(f"passes={found.passes}: expected at most as many as plies, {found.plies}")
    games["captured"][0] = found.captured
    games["plies"][0], games["passes"][0], games["ko_point"][0] = found.plies, found.passes, found.ko_point
    if not _has_valid_ko(games[0]):
        name = point_name(found.ko_point, len(found.board))
        raise ValueError(f"ko={name}: the last turn cannot have captured a stone there in a ko")
    games["handicap"][0], games["resigned"][0] = found.handicap, found.resigned * (found.to_move + 1)
    return games


@jit
def _has_valid_ko(game: State) -> bool:
    """Return whether there is no ko point, or the last turn may have captured a stone on it in a ko."""
    return game.ko_point == NO_POINT or (game.passes == 0 and _may_be_ko(game, i64(game.ko_point)))


@jit(refcount=False)
def _may_be_ko(game: State, point: int) -> bool:
    """Return whether a stone of the seat to move on a point would stay a single stone and capture exactly one stone."""
    row, taken = table_offset(len(game.empty)) + point, -1
    if game.board[point]:
        return False
    for k in range(4):
        neighbour = NEIGHBOURS[row, k]
        head = i64(game.chain[neighbour])
        if game.board[neighbour] == WALL:
            continue
        if game.board[neighbour] != 2 - game.to_move:
            return False
        if head != taken and game.liberties[head] == count_neighbours_in_chain(game, row, head):
            if taken >= 0 or game.stones[head] > 1:
                return False
            taken = head
    return taken >= 0


@jit
def _add_stones(games: StateArray, board: npt.NDArray[np.int8], to_move: int) -> None:
    """Put the stones of `board`, (points,) cell codes, on the empty board of `games[0]` as its start position."""
    game = games[0]
    for point in range(len(board)):
        if board[point]:
            add_stone(game, point, i64(board[point]))
    game.to_move = to_move
    if has_superko(game):
        clear_boards(game)
        add_board(game, hash_of(game))


@jit
def hand_turn(games: StateArray, index: int, seat: int) -> None:
    """Give the turn to a seat without playing an action; see `Game.hand_turn`.

    For superko, the current board is stored again, with `seat` to move. At the limit of plies, the count of plies
    restarts at 0 and the earlier boards are removed, because a state has space for one board per ply.
    """
    game = games[index]
    if game.to_move != seat:
        game.ko_point = NO_POINT
    game.to_move = seat
    game.passes = game.resigned = 0
    restarts_count = game.plies >= game.max_plies
    if restarts_count:
        game.plies = 0
        clear_boards(game)
    if has_superko(game):
        game.num_board_hashes -= int(not restarts_count)
        add_board(game, hash_of(game))


# Checking a state


@jit
def is_consistent(game: State, scratch: StateArray) -> bool:
    """Return whether chains and empty points follow from the board, and all numbers are possible; see the verb."""
    if not (_has_valid_numbers(game) and _has_valid_history(game) and _has_valid_chains(game, scratch[0])):
        return False
    return _has_valid_ko(game)


@jit(refcount=False)
def _has_valid_chains(game: State, twin: State) -> bool:
    """Return whether chains and empty points follow from the board; `twin` is overwritten."""
    points = len(game.empty)
    clear(twin)
    for point in range(points):
        if game.board[point]:
            add_stone(twin, point, i64(game.board[point]))
    if game.num_empty != twin.num_empty:
        return False
    for place in range(game.num_empty):
        point = i64(game.empty[place])
        if point >= points or game.board[point] or game.empty_index[point] != place:
            return False
    for point in range(points + 1):
        if game.occupied_sides[point] != twin.occupied_sides[point]:
            return False
        if twin.chain[point] == points:
            if game.chain[point] != points:
                return False
        elif not _has_valid_chain(game, twin, point):
            return False
    return True


@jit(refcount=False)
def _has_valid_numbers(game: State) -> bool:
    """Return whether the board holds cell codes, and other fields are in their ranges."""
    points, valid = len(game.empty), True
    for point in range(points):
        valid &= 0 <= game.board[point] <= WHITE
    valid &= (game.board[points] == WALL) & (game.liberties[points] == 0)
    for point in (game.ko_point, game.last, game.before_last):
        valid &= NO_POINT <= point < points
    for flag in (game.to_move, game.planes, game.allow_resign):
        valid &= 0 <= flag <= 1
    for number in (game.passes, game.resigned, game.scoring, game.ko):
        valid &= 0 <= number <= 2
    for i in range(len(game.padding)):
        valid &= game.padding[i] == 0
    for seat in range(2):
        valid &= 0 <= game.captured[seat] <= MAX_CAPTURED
    valid &= (game.passes <= game.plies) & (game.max_plies <= MAX_PLIES)
    return valid and (game.last == NO_POINT or game.board[game.last] > 0)


@jit(refcount=False)
def _has_valid_history(game: State) -> bool:
    """Return whether the stored boards are possible; `_has_valid_numbers` must be true."""
    count, valid = i64(game.num_board_hashes), True
    for point in range(len(game.empty)):
        codes = i64(game.board_history[point])
        valid &= (codes < 1 << 14) & (codes & codes >> 1 & 0x1555 == 0)
    if not has_superko(game):
        return valid and game.ko == 0 and count == 0
    if game.ko == 0 or not 1 <= count <= game.plies + 1 or count > len(game.board_hashes):
        return False
    for place in range(count):
        valid &= is_earlier_board(game, game.board_hashes[place])
    return valid and game.board_hashes[count - 1] == hash_of(game)


@jit(refcount=False)
def _has_valid_chain(game: State, twin: State, point: int) -> bool:
    """Return whether the chain of the stone on a point has the same stones and liberties as in `twin`, and a liberty.

    The head can be another one, because it depends on the order in which the stones were placed.
    """
    points, head, twin_head = len(game.empty), i64(game.chain[point]), i64(twin.chain[point])
    if head >= points or twin.chain[head] != twin_head or game.chain[twin_head] != head:
        return False
    if game.stones[head] != twin.stones[twin_head] or game.liberties[head] != twin.liberties[twin_head]:
        return False
    if game.liberties[head] == 0:
        return False
    if point != head:
        return True
    stone, length = i64(game.next_stone[head]), 1
    while stone != head and length < game.stones[head] and stone < points and twin.chain[stone] == twin_head:
        stone, length = i64(game.next_stone[stone]), length + 1
    return stone == head and length == game.stones[head]
