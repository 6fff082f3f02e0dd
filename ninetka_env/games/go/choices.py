"""What searches ask of Go: the legal actions as bits, random actions, quick random games."""

from __future__ import annotations

from ninetka_env.core.chance import Streams, draw_below
from ninetka_env.core.jit import inner, jit
from ninetka_env.core.verbs import WORD, Record, Trace, Words, note
from ninetka_env.games.go.geometry import DIAGONALS, NEIGHBOURS, WALL, first_row, wide
from ninetka_env.games.go.rules import is_legal, is_over, may_place, num_actions, take_turn


@jit(counted=False)
def write_choices(game: Record, choices: Words) -> None:
    """Write the legal actions but resigning: choices are actions."""
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
    """Draw a uniformly random legal action from stream `index`; the game must be on."""
    points, left = len(game.empty), int(game.num_empty)
    while True:
        place = draw_below(streams, index, left + num_actions(game) - points)
        action = wide(game.empty[place]) if place < left else points + place - left
        if is_legal(game, action):
            return action


@jit(counted=False)
def playout(game: Record, streams: Streams, index: int) -> None:
    """Play `game` to its end: uniformly random placings that fill no own eye; a pass where there is none.

    What observations know of earlier boards is not kept up, and the order of the empty points changes.
    """
    while not is_over(game):
        take_turn(game, _random_point(game, streams, index))


@jit(counted=False)
def traced_playout(game: Record, streams: Streams, index: int, trace: Trace) -> None:
    """Play `game` to its end as `playout` does, and note each turn."""
    while not is_over(game):
        action = _random_point(game, streams, index)
        note(trace, game.to_move, action)
        take_turn(game, action)


@inner
def _random_point(game: Record, streams: Streams, index: int) -> int:
    """Draw a legal point that is no own eye, uniformly; return the pass if there is none.

    Points that are refused are put behind those that are left to draw from.
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
    """Tell whether an empty point is a single-point eye of the seat to move.

    All neighbours are its stones or off the board, and of the diagonal ones at most one is the opponent's, on the edge
    of the board none.
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
