"""Decide whether a seat can force a win against all others together, near the end of the movement phase.

This is meant for three and four players; see `ninetka_agents.ninetka.solver` for two. The search is an AND/OR search:
on the seat's turns, one of its slides must win; on other turns, the seat must win after every slide (the "paranoid"
assumption of Sturtevant and Korf, "On pruning techniques for multi-player games", AAAI 2000). A table with 128-bit
hashes stores the answers for visited positions. The search stops early where bounds of the final scores decide: a slide
wins the moving seat at most one section, and takes at most one section from another seat.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_env.core.game import check_game
from ninetka_env.core.jit import jit, lowest_bit, popcount
from ninetka_env.core.options import check_count
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.verbs import State, StateArray
from ninetka_env.games.ninetka.choices import prepare_root
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import NUM_LINES, NUM_SECTIONS, NUM_SLOTS
from ninetka_env.games.ninetka.rules import (
    MOVEMENT,
    STATE_DTYPE,
    is_over,
    legal_bits,
    movable_slots,
    play_bit,
    winner_of,
)

AnswerTable = npt.NDArray[np.uint64]
"""(`TABLE_ENTRIES`, 2) uint64: a 128-bit hash with the answer in the lowest 4 bits of word 0; (0, 0) if empty."""
TABLE_ENTRIES = 1 << 20
NO, YES, UNDECIDED = 0, 1, -1

_MIX_A, _MIX_B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_GOLDEN, _S4, _S29, _S32 = np.uint64(0x9E3779B97F4A7C15), np.uint64(4), np.uint64(29), np.uint64(32)
_ANSWER = np.uint64(15)


def can_force_win(game: Game, seat: int, nodes: int = 10_000_000) -> bool | None:
    """Return whether `seat` can force a win if all others play together; None if `nodes` visits are not enough.

    Raises:
        ValueError: if the movement phase has not started or there is no such seat.
    """
    check_game(game, Game)
    if game.phase != MOVEMENT:
        raise ValueError(f"the search plays the movement phase; this game is in phase {game.phase.name}")
    seat = check_count("seat", seat, 0, game.num_players - 1)
    answer = int(_search(game.records, seat, check_count("nodes", nodes), np.zeros((TABLE_ENTRIES, 2), np.uint64)))
    return None if answer == UNDECIDED else answer == YES


@jit
def _search(games: StateArray, seat: int, limit: int, table: AnswerTable) -> int:
    """Return whether `seat` can force a win in `games[0]`: `YES`, `NO`, or `UNDECIDED` after `limit` nodes."""
    path, untried = np.zeros(NUM_SLOTS + 2, STATE_DTYPE), np.zeros(NUM_SLOTS + 2, np.int64)
    keys = np.zeros((NUM_SLOTS + 2, 2), np.uint64)
    path[0] = games[0]
    prepare_root(path[0])
    level, nodes, entering, answer = 0, 0, True, NO
    while True:
        game = path[level]
        if entering:
            nodes += 1
            if nodes > limit:
                return UNDECIDED
            answer = answer_from_bounds(game, seat)
            if answer == UNDECIDED:
                write_key(game, keys, level)
                answer = look_up(table, keys, level)
            untried[level] = legal_bits(game) if answer == UNDECIDED else 0
        decisive = YES if game.to_move == seat else NO
        if answer != decisive and untried[level]:
            play_next(path, untried, level)
            level, entering = level + 1, True
            continue
        if not entering:  # all slides were tried or one was decisive, so the last answer holds for this position
            store(table, keys, level, answer)
        if level == 0:
            return answer
        level, entering = level - 1, False


@jit
def answer_from_bounds(game: State, seat: int) -> int:
    """Return whether `seat` wins, `YES` or `NO`, if the game is over or score bounds decide it, else `UNDECIDED`."""
    if is_over(game):
        return YES if winner_of(game) == seat else NO
    stones = popcount(movable_slots(game))
    own, own_stones = popcount(game.owned[seat]), popcount(game.movable[seat])
    surely = True
    for other in range(game.num_players):
        if other != seat:
            score, slides = popcount(game.owned[other]), popcount(game.movable[other])
            later = other > seat  # the later seat wins ties
            if own + own_stones < score - (stones - slides) + later:
                return NO
            surely &= own - (stones - own_stones) >= score + slides + later
    return YES if surely else UNDECIDED


@jit
def decided_winner(game: State) -> int:
    """Return the seat that wins in any case, by the end of the game or bounds of the final scores, or `UNFINISHED`."""
    for seat in range(game.num_players):
        if answer_from_bounds(game, seat) == YES:
            return seat
    return UNFINISHED


@jit
def play_next(path: StateArray, untried: npt.NDArray[np.int64], level: int) -> None:
    """Play the lowest untried slide of the position at `level` into the next level, and mark it as tried."""
    bit = lowest_bit(untried[level])
    untried[level] &= untried[level] - 1
    path[level + 1] = path[level]
    play_bit(path[level + 1], bit)


@jit
def write_key(game: State, keys: AnswerTable, row: int) -> None:
    """Write a hash of all fields that influence the rest of the game to row `row` of `keys`."""
    one, two = np.uint64(game.to_move + 1), np.uint64(77)
    for place in range(NUM_LINES + 4 + 4 * NUM_SECTIONS):
        if place < NUM_LINES:
            word = np.uint64(game.lines[place])
        elif place < NUM_LINES + 4:
            word = np.uint64(game.movable[place - NUM_LINES])
        else:
            rest = place - NUM_LINES - 4
            word = np.uint64(game.counts[rest // NUM_SECTIONS, rest % NUM_SECTIONS])
        one = (one ^ word) * _MIX_A
        one ^= one >> _S32
        two = (two + word + _GOLDEN) * _MIX_B
        two ^= two >> _S29
    keys[row, 0] = one & ~_ANSWER
    keys[row, 1] = two | np.uint64(1)


@jit
def look_up(table: AnswerTable, keys: AnswerTable, row: int) -> int:
    """Return the stored answer for a position, or `UNDECIDED`."""
    place = np.int64((keys[row, 0] >> _S4) & np.uint64(TABLE_ENTRIES - 1))
    if table[place, 1] == keys[row, 1] and table[place, 0] & ~_ANSWER == keys[row, 0]:
        return np.int64(table[place, 0] & _ANSWER)  # type: ignore[return-value]
    return UNDECIDED


@jit
def store(table: AnswerTable, keys: AnswerTable, row: int, answer: int) -> None:
    """Store the answer, 0 to 15, for a position; this overwrites any other position in the same entry."""
    place = np.int64((keys[row, 0] >> _S4) & np.uint64(TABLE_ENTRIES - 1))
    table[place, 0] = keys[row, 0] | np.uint64(answer)
    table[place, 1] = keys[row, 1]
