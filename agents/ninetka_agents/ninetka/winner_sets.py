"""Which actions surely win or lose in positions of three and four players, whatever the other seats want.

Max^n does not say what a seat plays that cannot win, although such a seat may decide who does (see `exact_maxn`). This
search finds the set of all seats that can come to win: at a node, the mover alone if some slide surely wins for it,
and otherwise every seat that can come to win after any slide. A seat is alone in the set of a position exactly if it
can force a win against all others together (`ninetka_agents.ninetka.force`): on its turns some slide must lead to such
a position, and on all other turns every slide must.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_agents.ninetka.force import (
    TABLE_ENTRIES,
    AnswerTable,
    decided_winner,
    look_up,
    play_next,
    store,
    write_key,
)
from ninetka_env.core.game import check_game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_count
from ninetka_env.core.verbs import State, StateArray
from ninetka_env.games.ninetka.choices import prepare_root
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import NUM_ACTIONS, NUM_SLOTS
from ninetka_env.games.ninetka.rules import MOVEMENT, STATE_DTYPE, legal_bits

NO_SEAT = 0
"""The set that means that the answer is unknown."""


def winner_sets(game: Game, nodes: int = 3_000_000) -> npt.NDArray[np.int8]:
    """Return, for each action, the seats that can come to win after it, as bits: (122,) int8.

    Action a surely wins for seat s if the bits are `1 << s`. The bits are 0 for illegal actions, and where `nodes`
    visited positions are not enough.

    Args:
        game: an unfinished position of the movement phase.
        nodes: maximum number of positions to visit, for each action.

    Raises:
        ValueError: if the movement phase has not started or the game is over, or nodes is below 1.
    """
    check_game(game, Game)
    if game.phase != MOVEMENT or game.is_over:
        state = "over" if game.is_over else f"in phase {game.phase.name}"
        raise ValueError(f"winner sets are those of the movement phase; this game is {state}")
    limit = check_count("nodes", nodes)
    sets, table = np.zeros(NUM_ACTIONS, np.int8), np.zeros((TABLE_ENTRIES, 2), np.uint64)
    for action in game.legal_actions():
        after = game.copy()
        after.play(int(action))
        sets[action] = _winner_set(after.records, limit, table)
    return sets


@jit
def _winner_set(games: StateArray, limit: int, table: AnswerTable) -> int:
    """Search game 0 without recursion; return the bits of its set, `NO_SEAT` if `limit` is reached."""
    path, untried = np.zeros(NUM_SLOTS + 2, STATE_DTYPE), np.zeros(NUM_SLOTS + 2, np.int64)
    keys, sets = np.zeros((NUM_SLOTS + 2, 2), np.uint64), np.zeros(NUM_SLOTS + 2, np.int64)
    path[0] = games[0]
    prepare_root(path[0])
    level, nodes, entering, below = 0, 0, True, NO_SEAT
    while True:
        game = path[level]
        mover = 1 << int(game.to_move)
        if entering:
            nodes += 1
            if nodes > limit:
                return NO_SEAT
            sets[level] = _known_set(game, keys, level, table)
            untried[level] = legal_bits(game) if sets[level] == NO_SEAT else 0
        elif below == mover:  # a sure win
            sets[level], untried[level] = mover, 0
        else:
            sets[level] |= below
        if untried[level]:
            play_next(path, untried, level)
            level, entering = level + 1, True
            continue
        below = sets[level]
        if not entering:
            store(table, keys, level, below)
        if level == 0:
            return int(below)
        level, entering = level - 1, False


@jit
def _known_set(game: State, keys: AnswerTable, row: int, table: AnswerTable) -> int:
    """Return the set of a position if it follows from the end of the game, from bounds or from the table."""
    winner = decided_winner(game)
    if winner >= 0:
        return 1 << winner
    write_key(game, keys, row)
    return max(NO_SEAT, look_up(table, keys, row))
