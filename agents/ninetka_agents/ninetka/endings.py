"""Exact max^n: how the last slides go if every seat plays for its own victory. For any number of players.

Luckhardt and Irani, "An algorithmic solution of n-person games", AAAI 1986, to the end of the game and for who wins
rather than for scores. **The rule**: the seat to move plays the first of its actions, in ascending order, after which
it wins; if there is none, its first action. So the answer is one of several that max^n allows: who cannot win may well
decide who does, and another rule for what it plays then is as good. What does not depend on it: a seat that can force
its win against all others (`ninetka_agents.ninetka.force`) wins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents.ninetka.force import ENTRIES, YES, Table, look_up, static_answer, store, write_key
from ninetka_env.core.game import check_game
from ninetka_env.core.jit import jit, lowest
from ninetka_env.core.options import check_count
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.verbs import Record, Records
from ninetka_env.games.ninetka.choices import prepare_root
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import NUM_ACTIONS, NUM_SLOTS
from ninetka_env.games.ninetka.rules import GAME, MOVEMENT, legal_bits, play_bit


class MaxN(NamedTuple):
    """What exact max^n says about a position."""

    winner: int
    """The seat that wins, `UNFINISHED`, -2, if the budget ran out before that was known."""
    winners: npt.NDArray[np.int8]
    """(122,) int8: the seat that wins after each legal action, -2 where that is unknown and for illegal ones."""
    nodes: int
    """Positions visited."""


def solve_max_n(game: Game, nodes: int = 10_000_000) -> MaxN:
    """Find who wins, and who wins after each action, as the module's text says; a game that is over has its winner.

    Args:
        game: a position of the movement phase.
        nodes: most positions to visit, for all actions together. They are searched in ascending order.

    Raises:
        ValueError: if the movement phase has not begun or nodes is below 1.
    """
    check_game(game, Game)
    if game.phase != MOVEMENT:
        raise ValueError(f"max^n plays the movement phase; this game is in phase {game.phase.name}")
    left, table = check_count("nodes", nodes), np.zeros((ENTRIES, 2), np.uint64)
    winners, legal = np.full(NUM_ACTIONS, UNFINISHED, np.int8), game.legal_actions()
    for action in legal:
        after = game.copy()
        after.play(int(action))
        winners[action], visited = _max_n(after.records, left, table)
        left -= visited
    if game.is_over:
        return MaxN(game.winner(), winners, 0)
    wins = (winners[legal] == game.to_move).any()
    known = wins or (winners[legal] >= 0).all()
    return MaxN(game.to_move if wins else int(winners[legal[0]]) if known else UNFINISHED, winners, nodes - left)


@jit
def _max_n(games: Records, limit: int, table: Table) -> tuple[int, int]:
    """Search game 0, a loop instead of a recursion; return who wins, `UNFINISHED` after `limit` nodes, and these."""
    path, untried = np.zeros(NUM_SLOTS + 2, GAME), np.zeros(NUM_SLOTS + 2, np.int64)
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
            answers[level] = _sure_winner(game)
            if answers[level] < 0:
                write_key(game, keys, level)
                answers[level] = look_up(table, keys, level)
            untried[level] = legal_bits(game) if answers[level] < 0 else 0
        elif answers[level] < 0 or winner == game.to_move:  # the first action's winner stands until the mover wins
            answers[level] = winner
        if untried[level] and answers[level] != game.to_move:
            bit = lowest(untried[level])
            untried[level] &= untried[level] - 1
            path[level + 1] = game
            play_bit(path[level + 1], bit)
            level, entering = level + 1, True
            continue
        winner = answers[level]
        if not entering:
            store(table, keys, level, winner)
        if level == 0:
            return winner, nodes
        level, entering = level - 1, False


@jit
def _sure_winner(game: Record) -> int:
    """Return the seat that wins whatever is played, as far as bounds of the final scores tell; else `UNFINISHED`."""
    for seat in range(game.num_players):
        if static_answer(game, seat) == YES:
            return seat
    return UNFINISHED
