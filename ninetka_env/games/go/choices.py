"""Compiled functions of Go that searches call: legal actions as a bit set, random actions, random playouts.

Stronger playouts are in `ninetka_agents.go.playout`.
"""

from __future__ import annotations

from ninetka_env.core.jit import jit
from ninetka_env.core.random_streams import Streams, draw_below
from ninetka_env.core.verbs import BITS_PER_WORD, BitSet, State, Trace, append_to_trace
from ninetka_env.games.go.geometry import DIAGONALS, NEIGHBOURS, WALL, i64, table_offset
from ninetka_env.games.go.rules import is_legal, is_over, may_place, num_actions, take_turn


@jit(refcount=False)
def write_choices(game: State, choices: BitSet) -> None:
    """Write the legal actions, except resigning, as a bit set; the bit of an action is its number."""
    for word in range(len(choices)):
        choices[word] = 0
    if is_over(game):
        return
    for place in range(game.num_empty):
        point = i64(game.empty[place])
        choices[point // BITS_PER_WORD] |= int(may_place(game, point)) << (point % BITS_PER_WORD)
    choices[len(game.empty) // BITS_PER_WORD] |= 1 << (len(game.empty) % BITS_PER_WORD)


@jit(refcount=False)
def random_action(game: State, streams: Streams, index: int) -> int:
    """Return a uniformly random legal action, drawn from stream `index`; the game must not be over."""
    points, left = len(game.empty), int(game.num_empty)
    while True:
        place = draw_below(streams, index, left + num_actions(game) - points)
        action = i64(game.empty[place]) if place < left else points + place - left
        if is_legal(game, action):
            return action


@jit(refcount=False)
def playout(game: State, streams: Streams, index: int) -> None:
    """Play `game` to its end with uniformly random placements that do not fill an own eye; pass if there is none.

    The earlier boards that observations show (`board_history`) are not updated, and the order of `empty` changes.
    """
    while not is_over(game):
        take_turn(game, _draw_point(game, streams, index))


@jit(refcount=False)
def traced_playout(game: State, streams: Streams, index: int, trace: Trace) -> None:
    """Play `game` to its end as `playout` does, and record each ply in `trace`."""
    while not is_over(game):
        action = _draw_point(game, streams, index)
        append_to_trace(trace, game.to_move, action)
        take_turn(game, action)


@jit(refcount=False)
def _draw_point(game: State, streams: Streams, index: int) -> int:
    """Return a uniformly random legal point that is not an own eye, or the pass if there is none.

    Rejected points are moved behind the remaining candidates in `empty`.
    """
    left = int(game.num_empty)
    while left:
        place = draw_below(streams, index, left)
        point = i64(game.empty[place])
        if not is_eye(game, point) and may_place(game, point):
            return point
        left -= 1
        last = game.empty[left]
        game.empty[place], game.empty[left] = last, point
        game.empty_index[last], game.empty_index[point] = place, left
    return len(game.empty)


@jit(refcount=False)
def is_eye(game: State, point: int) -> bool:
    """Return whether an empty point is a single-point eye of the seat to move.

    All neighbours must be stones of the seat or off the board. One diagonal neighbour may be a stone of the opponent,
    except on the edge of the board.
    """
    if game.occupied_sides[point] < 4:
        return False
    row, own = table_offset(len(game.empty)) + point, game.to_move + 1
    shared = own
    for k in range(4):
        shared &= game.board[NEIGHBOURS[row, k]]
    if not shared:
        return False
    others, edge = 0, 0
    for k in range(4):
        others += game.board[DIAGONALS[row, k]] == 3 - own
        edge |= game.board[DIAGONALS[row, k]] == WALL
    return others + edge <= 1
