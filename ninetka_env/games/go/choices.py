"""Compiled functions of Go that searches call: legal actions as a bit set, random actions, random playouts.

Stronger playouts are in `ninetka_agents.go.playout`.
"""

from __future__ import annotations

from ninetka_env.core.chance import Streams, draw_below
from ninetka_env.core.jit import inner, jit
from ninetka_env.core.verbs import WORD, Record, Trace, Words, note
from ninetka_env.games.go.geometry import DIAGONALS, NEIGHBOURS, WALL, first_row, wide
from ninetka_env.games.go.rules import is_legal, is_over, may_place, num_actions, take_turn


@jit(counted=False)
def write_choices(game: Record, choices: Words) -> None:
    """Write the legal actions without resigning as a bit set; the number of a choice is the action."""
    for word in range(len(choices)):
        choices[word] = 0
    if is_over(game):
        return
    for place in range(game.num_empty):
        point = wide(game.empty[place])
        choices[point // WORD] |= int(may_place(game, point)) << (point % WORD)
    choices[len(game.empty) // WORD] |= 1 << (len(game.empty) % WORD)


@jit(counted=False)
def random_action(game: Record, streams: Streams, index: int) -> int:
    """Return a uniformly random legal action, drawn from stream `index`; the game must not be over."""
    points, left = len(game.empty), int(game.num_empty)
    while True:
        place = draw_below(streams, index, left + num_actions(game) - points)
        action = wide(game.empty[place]) if place < left else points + place - left
        if is_legal(game, action):
            return action


@jit(counted=False)
def playout(game: Record, streams: Streams, index: int) -> None:
    """Play `game` to its end: uniformly random placements that fill no own eye, or a pass if there is none.

    The earlier boards that observations show (`trail`) are not updated, and the order of `empty` changes.
    """
    while not is_over(game):
        take_turn(game, _random_point(game, streams, index))


@jit(counted=False)
def traced_playout(game: Record, streams: Streams, index: int, trace: Trace) -> None:
    """Play `game` to its end as `playout` does, and record each ply in `trace`."""
    while not is_over(game):
        action = _random_point(game, streams, index)
        note(trace, game.to_move, action)
        take_turn(game, action)


@inner
def _random_point(game: Record, streams: Streams, index: int) -> int:
    """Return a uniformly random legal point that is not an own eye, or the pass if there is none.

    Rejected points are moved behind the remaining candidates in `empty`.
    """
    left = int(game.num_empty)
    while left:
        place = draw_below(streams, index, left)
        point = wide(game.empty[place])
        if not is_eye(game, point) and may_place(game, point):
            return point
        left -= 1
        last = game.empty[left]
        game.empty[place], game.empty[left] = last, point
        game.place[last], game.place[point] = place, left
    return len(game.empty)


@inner
def is_eye(game: Record, point: int) -> bool:
    """Return whether an empty point is a single-point eye of the seat to move.

    All neighbours are stones of the seat or off the board. At most one diagonal neighbour is a stone of the opponent;
    none is if the point is on the edge of the board.
    """
    if game.crowd[point] < 4:
        return False
    row, own = first_row(len(game.empty)) + point, game.to_move + 1
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
