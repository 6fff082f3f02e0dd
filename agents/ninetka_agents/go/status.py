"""Estimate by playouts which stones are dead at the end of a game. The rules themselves remove no dead stones.

A chain is dead if the opponent owns its points at the end of at least `DEAD_SHARE` of `NUM_PLAYOUTS` playouts (mean
over the points), unless it is in seki. Dead chains are removed and the remaining chains are evaluated again, until none
is dead, because chains that seem alive next to a dead chain often are not.

`python -m benchmarks.dead_stones` measures this on finished games whose results were determined by players or servers.

Start reading at `find_statuses`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit
from ninetka_env.core.random_streams import Streams, make_streams
from ninetka_env.core.verbs import StateArray, playout, write_targets
from ninetka_env.games.go.game import Game
from ninetka_env.games.go.geometry import NEIGHBOURS, table_offset
from ninetka_env.games.go.repetition import MAX_PLIES

NUM_PLAYOUTS = 500
DEAD_SHARE = 0.6
"""With this value, the recorded winner is found in 98.6 % of 2,240 finished 9 x 9 games of GoQuest, CGOS and programs.
With 0.55 it is found in 99.0 %, but then stones in sekis that `_is_seki` does not detect would be dead: in
seki_nakade1.sgf of GNU Go's regression tests, they belong to the opponent in up to 58 % of the playouts."""


class Statuses(NamedTuple):
    """The chains of a position by status; a chain is an ascending list of points."""

    alive: list[list[int]]
    dead: list[list[int]]
    seki: list[list[int]]


def owner_shares(game: Game, seed: int, playouts: int = NUM_PLAYOUTS) -> npt.NDArray[np.float64]:
    """Return the share of random playouts in which each seat owns each point at the end, (2, points) float64."""
    counts, plies = np.zeros((2, game.size**2), np.int64), min(game.ply + 2 * game.size**2, MAX_PLIES)
    start = game.with_options(max_plies=plies)  # the limit of the game could end the playouts early
    start.hand_turn(game.to_move)
    _count_owners(start.records, playouts, make_streams(seed), counts)
    return counts / playouts


@jit
def _count_owners(games: StateArray, playouts: int, streams: Streams, counts: npt.NDArray[np.int64]) -> None:
    scratch, owners = games[:1].copy(), np.zeros(counts.shape[1], np.int8)
    for _ in range(playouts):
        scratch[0] = games[0]
        playout(scratch[0], streams, 0)
        write_targets(scratch[0], owners)
        for point in range(len(owners)):
            if owners[point] >= 0:
                counts[owners[point], point] += 1


def find_statuses(game: Game, seed: int = 0) -> Statuses:
    """Return the chains of a position by status; the same seed gives the same result."""
    cleared, found = _remove_dead(game, seed), Statuses([], [], [])
    for chain in _chains(game):
        if not cleared.board.flat[chain[0]]:
            found.dead.append(chain)
        else:
            (found.seki if _is_seki(cleared, chain) else found.alive).append(chain)
    return found


def _remove_dead(game: Game, seed: int) -> Game:
    """Return the position after removing its dead chains, in rounds until none is left."""
    cleared = remove_chains(game, [])
    while True:
        shares = owner_shares(cleared, seed)
        dead = [chain for chain in _chains(cleared) if _is_dead(cleared, chain, shares)]
        if not dead:
            return cleared
        cleared = remove_chains(cleared, dead)


def _is_dead(game: Game, chain: list[int], shares: npt.NDArray[np.float64]) -> bool:
    """Return whether a chain is dead, given `owner_shares` of the position."""
    other = 1 - _seat_at(game, chain[0])
    return bool(shares[other, chain].mean() >= DEAD_SHARE) and not _is_seki(game, chain)


def remove_chains(game: Game, dead: list[list[int]]) -> Game:
    """Return the position after removing chains from the board, counted as captured."""
    board, captured = game.board.copy(), game.captured()
    for chain in dead:
        captured[1 - _seat_at(game, chain[0])] += len(chain)
        board.flat[chain] = 0
    options = {"komi": game.komi, "ko": game.ko, "scoring": game.scoring, "max_plies": game.max_plies}
    cleared = Game.from_board(board, game.to_move, **options)
    cleared.records["captured"][0] = captured
    return cleared


def agreed_result(game: Game, seed: int = 0) -> str:
    """Return the result, such as `B+2`, as if both seats had passed and the dead stones were removed."""
    return agreed_position(game, find_statuses(game, seed).dead).result()


def agreed_position(game: Game, dead: list[list[int]]) -> Game:
    """Return the finished position after removing dead chains: its scores and winner are the agreed result."""
    cleared = remove_chains(game, dead)
    cleared.records["plies"][0], cleared.records["passes"][0] = 2, 2
    return cleared


def _seat_at(game: Game, point: int) -> int:
    return int(game.board.flat[point]) - 1


def _chains(game: Game) -> list[list[int]]:
    heads = game.records["chain"][0][: game.size**2]
    stones = np.flatnonzero(game.board)
    return [stones[heads[stones] == head].tolist() for head in dict.fromkeys(heads[stones].tolist())]


def _liberties(game: Game, chain: list[int]) -> set[int]:
    """Return the empty points next to a chain."""
    around = NEIGHBOURS[table_offset(game.size**2) + np.array(chain)].ravel().tolist()
    return {point for point in around if point < game.size**2 and not game.board.flat[point]}


def _is_seki(game: Game, chain: list[int]) -> bool:
    """Return whether a chain is in seki, by a rule that does not detect all sekis.

    At least two of the chain's liberties must be self-atari for the opponent, and one of them must be a neutral point
    that is self-atari for the chain's seat, too. One liberty that is self-atari for the opponent is not enough, because
    the opponent could fill the other liberties and then capture the chain.
    """
    seat, owners = _seat_at(game, chain[0]), game.owners().ravel()
    safe = [point for point in _liberties(game, chain) if _is_self_atari(game, 1 - seat, point)]
    return len(safe) > 1 and any(owners[point] < 0 and _is_self_atari(game, seat, point) for point in safe)


def _is_self_atari(game: Game, seat: int, point: int) -> bool:
    """Return whether a stone of a seat on a point would be illegal or have at most one liberty."""
    after = game.copy()
    after.hand_turn(seat)
    if not after.legal_mask()[point]:
        return True
    after.play(point)
    return any(point in chain and len(_liberties(after, chain)) <= 1 for chain in _chains(after))
