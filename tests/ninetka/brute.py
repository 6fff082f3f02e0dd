"""Brute-force solver of movement phases for tests: plain search to the end, without table, bounds or reduction."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit, lowest_bit
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka.rules import STATE_DTYPE, is_over, legal_bits, pass_over, play_bit, winner_of


@jit
def brute_force_winner(games: StateArray, index: int) -> int:
    """Return the seat that wins `games[index]` with best play: a two-player game in the movement phase."""
    path, untried = np.zeros(40, STATE_DTYPE), np.zeros(40, np.int64)
    path[0] = games[index]
    path[0].auto_pass = 1
    pass_over(path[0])
    untried[0] = legal_bits(path[0])
    level, winner = 0, -1
    while True:
        game = path[level]
        mover = int(game.to_move)
        if is_over(game):
            winner = winner_of(game)
        elif winner != mover and untried[level]:
            bit = lowest_bit(untried[level])
            untried[level] &= untried[level] - 1
            path[level + 1] = game
            play_bit(path[level + 1], bit)
            untried[level + 1] = legal_bits(path[level + 1])
            level, winner = level + 1, -1
            continue
        elif winner < 0:
            winner = 1 - mover
        if level == 0:
            return winner
        level -= 1
        if winner != path[level].to_move:
            winner = -1 if untried[level] else winner


@jit
def brute_force_margin(games: StateArray, index: int) -> int:
    """Return by how many sections seat 0 finally leads in `games[index]` if both seats maximise their lead."""
    path, untried, best = np.zeros(40, STATE_DTYPE), np.zeros(40, np.int64), np.zeros(40, np.int64)
    path[0] = games[index]
    path[0].auto_pass = 1
    pass_over(path[0])
    untried[0], best[0] = legal_bits(path[0]), -100
    level = 0
    while True:
        game = path[level]
        sign = 1 - 2 * int(game.to_move)
        if untried[level]:
            bit = lowest_bit(untried[level])
            untried[level] &= untried[level] - 1
            path[level + 1] = game
            play_bit(path[level + 1], bit)
            untried[level + 1], best[level + 1] = legal_bits(path[level + 1]), -100
            level += 1
            continue
        lead = sign * best[level] if best[level] > -100 else lead_of(path, level)
        if level == 0:
            return lead
        level -= 1
        best[level] = max(best[level], (1 - 2 * int(path[level].to_move)) * lead)


@jit
def lead_of(games: StateArray, index: int) -> int:
    """Return by how many sections seat 0 currently leads in `games[index]`."""
    lead = 0
    for section in range(9):
        lead += games[index].counts[0, section] > games[index].counts[1, section]
        lead -= games[index].counts[0, section] < games[index].counts[1, section]
    return lead


def winners_of_moves(game: StateArray, actions: npt.NDArray[np.int64]) -> list[int]:
    """Return the winners with best play: one seat for each action."""
    from ninetka_env.games.ninetka.game import Game

    found = []
    for action in actions:
        after = Game(game.copy())
        after.play(int(action))
        found.append(int(brute_force_winner(after.records, 0)))
    return found
