"""Make states of Go from a board or from the text of a position (`text`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_env.core.batch import new_games
from ninetka_env.core.chance import make_streams
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_count
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import Records
from ninetka_env.games.go.geometry import LARGEST, NEIGHBOURS, SMALLEST, WALL, first_row, point_name, wide
from ninetka_env.games.go.repetition import forget_boards, has_superko, hash_of, see
from ninetka_env.games.go.rules import NOBODY, put
from ninetka_env.games.go.text import Position


def check_board(board: npt.ArrayLike) -> npt.NDArray[np.int8]:
    """Return a square array of cell codes (0 empty, 1 black, 2 white), rank 1 first, as int8.

    Raises:
        ValueError: if the shape or a code is not valid.
    """
    cells = np.asarray(board)
    if cells.ndim != 2 or cells.shape[0] != cells.shape[1] or not SMALLEST <= len(cells) <= LARGEST:
        raise ValueError(f"board: expected shape (size, size), size {SMALLEST} to {LARGEST}, got {cells.shape}")
    if cells.dtype.kind not in "iu" or not np.isin(cells, (0, 1, 2)).all():
        raise ValueError("board: expected the integers 0 (empty), 1 (black) and 2 (white)")
    return np.ascontiguousarray(cells, np.int8)


def set_up(variant: Variant, board: npt.NDArray[np.int8], to_move: int) -> Records:
    """Return the (1,) state of a game of a variant that starts from a board.

    Raises:
        ValueError: if a chain has no liberty; the message names one of its points.
    """
    games = new_games(variant.replaced(handicap=0), make_streams(0))
    _put_all(games, board.reshape(-1), check_count("to_move", to_move, 0, 1))
    game = games[0]
    for point in np.flatnonzero(board.reshape(-1)):
        if game["liberties"][game["chain"][point]] == 0:
            raise ValueError(f"{point_name(int(point), len(board))}: the chain there has no liberty")
    return games


def read_records(variant: Variant, found: Position) -> Records:
    """Return the (1,) state of a parsed position.

    Raises:
        ValueError: if the ply, the passes or the ko point cannot occur in a game.
    """
    games = set_up(variant, found.board, found.to_move)
    most = int(games["max_plies"][0])
    if found.plies > most:
        raise ValueError(f"ply={found.plies}: the game ends after {most} plies")
    if found.passes > found.plies:
        raise ValueError(f"passes={found.passes}: expected at most as many as plies, {found.plies}")
    if found.ko_point >= 0 and (found.passes or not _may_be_ko(games, found.ko_point)):
        name = point_name(found.ko_point, len(found.board))
        raise ValueError(f"ko={name}: the last turn cannot have captured a stone there in a ko")
    games["captured"][0] = found.captured
    games["plies"][0], games["passes"][0], games["ko_point"][0] = found.plies, found.passes, found.ko_point
    games["handicap"][0], games["resigned"][0] = found.handicap, found.resigned * (found.to_move + 1)
    return games


def _may_be_ko(games: Records, point: int) -> bool:
    """Return whether a lone stone of the seat to move on a point would capture exactly one lone stone."""
    game = games[0]
    points, other = len(game["empty"]), 2 - int(game["to_move"])
    around = [int(one) for one in NEIGHBOURS[first_row(points) + point]]
    if game["board"][point] or any(game["board"][one] not in (other, WALL) for one in around):
        return False
    heads = {int(game["chain"][one]) for one in around if one < points}
    taken = [head for head in heads if game["liberties"][head] == sum(game["chain"][one] == head for one in around)]
    return len(taken) == 1 and game["stones"][taken[0]] == 1


@jit
def _put_all(games: Records, board: npt.NDArray[np.int8], to_move: int) -> None:
    """Put the stones of a board of cell codes on the empty board of the first game, and make it the start position."""
    game = games[0]
    for point in range(len(board)):
        if board[point]:
            put(game, point, wide(board[point]))
    game.to_move = to_move
    if has_superko(game):
        forget_boards(game)
        see(game, hash_of(game))


@jit
def hand_turn(games: Records, index: int, seat: int) -> None:
    """Give the turn to a seat without playing one; see `Game.hand_turn`.

    For superko, the current board is now one with `seat` to move. A game at its limit of plies restarts its count of
    plies and forgets its earlier boards, because a state has space for one board per ply.
    """
    game = games[index]
    if game.to_move != seat:
        game.ko_point = NOBODY
    game.to_move = seat
    game.passes = game.resigned = 0
    begins_anew = game.plies >= game.max_plies
    if begins_anew:
        game.plies = 0
        forget_boards(game)
    if has_superko(game):
        game.num_seen -= int(not begins_anew)
        see(game, hash_of(game))
