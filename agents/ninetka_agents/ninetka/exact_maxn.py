"""Exact max^n search to the end of the game, for any number of players: every seat plays for its own win.

The search follows Luckhardt and Irani, "An algorithmic solution of n-person games", AAAI 1986. A position's value is
the seat that wins, not the scores. **The rule**: the seat to move plays its lowest action after which it wins; if there
is none, it plays its lowest action. The result is one of several that max^n allows, because a seat that cannot win may
decide which other seat wins, and any rule for that choice is valid. Under every rule, a seat that can force a win
against all others (`ninetka_agents.ninetka.force`) wins.
"""

from __future__ import annotations

from typing import NamedTuple

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
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka.choices import prepare_root
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import NUM_ACTIONS, NUM_SLOTS
from ninetka_env.games.ninetka.rules import MOVEMENT, STATE_DTYPE, legal_bits


class MaxNResult(NamedTuple):
    """The result of exact max^n for a position."""

    winner: int
    """The seat that wins; `UNFINISHED` (-2) if the budget ran out before the winner was known."""
    winners: npt.NDArray[np.int8]
    """(122,) int8: the seat that wins after each legal action; -2 if it is unknown, and for illegal actions."""
    nodes: int
    """Positions visited."""


def solve_max_n(game: Game, nodes: int = 10_000_000) -> MaxNResult:
    """Find the winner of a position, and the winner after each action, by the rule in the module docstring.

    Args:
        game: a position of the movement phase. If the game has ended, the result is its winner.
        nodes: maximum number of positions to visit, for all actions together. Actions are searched in ascending order.

    Raises:
        ValueError: if the movement phase has not started or nodes is below 1.
    """
    check_game(game, Game)
    if game.phase != MOVEMENT:
        raise ValueError(f"max^n plays the movement phase; this game is in phase {game.phase.name}")
    remaining, table = check_count("nodes", nodes), np.zeros((TABLE_ENTRIES, 2), np.uint64)
    winners, legal = np.full(NUM_ACTIONS, UNFINISHED, np.int8), game.legal_actions()
    for action in legal:
        after = game.copy()
        after.play(int(action))
        winners[action], visited = _max_n(after.records, remaining, table)
        remaining -= visited
    if game.is_over:
        return MaxNResult(game.winner(), winners, 0)
    wins = (winners[legal] == game.to_move).any()
    known = wins or (winners[legal] >= 0).all()
    return MaxNResult(
        game.to_move if wins else int(winners[legal[0]]) if known else UNFINISHED, winners, nodes - remaining
    )


@jit
def _max_n(games: StateArray, limit: int, table: AnswerTable) -> tuple[int, int]:
    """Search game 0 without recursion; return the winner (`UNFINISHED` if `limit` is reached) and the nodes visited."""
    path, untried = np.zeros(NUM_SLOTS + 2, STATE_DTYPE), np.zeros(NUM_SLOTS + 2, np.int64)
    keys, answers = np.zeros((NUM_SLOTS + 2, 2), np.uint64), np.full(NUM_SLOTS + 2, -1, np.int64)
    path[0] = games[0]
    prepare_root(path[0])
    level, nodes, entering, winner = 0, 0, True, UNFINISHED
    while True:
        game = path[level]
        if entering:
            if nodes == limit:
                return UNFINISHED, nodes
            nodes += 1
            answers[level] = decided_winner(game)
            if answers[level] < 0:
                write_key(game, keys, level)
                answers[level] = look_up(table, keys, level)
            untried[level] = legal_bits(game) if answers[level] < 0 else 0
        elif answers[level] < 0 or winner == game.to_move:  # keep the first winner, unless the mover wins
            answers[level] = winner
        if untried[level] and answers[level] != game.to_move:
            play_next(path, untried, level)
            level, entering = level + 1, True
            continue
        winner = answers[level]
        if not entering:
            store(table, keys, level, winner)
        if level == 0:
            return winner, nodes
        level, entering = level - 1, False
