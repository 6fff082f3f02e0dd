"""Functions of Kropki for searches: legal actions as choices, random actions and random playouts.

Choice n places a point on node n. While the seat to move is drawing, choice n draws the core that node n names, and
choice N (the number of nodes) ends the turn. See `ninetka_env.core.verbs` for what choices are.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_env.core.chance import Streams, draw_below
from ninetka_env.core.jit import inner, jit
from ninetka_env.core.verbs import WORD, Record, Trace, Words, note
from ninetka_env.games.kropki.geometry import LIVE
from ninetka_env.games.kropki.regions import count_drawable, drawable_node
from ninetka_env.games.kropki.rules import num_nodes, place_point, play

Places = npt.NDArray[np.int16]
"""Cell indices; see `geometry`."""


@jit(counted=False)
def write_choices(game: Record, choices: Words) -> None:
    """Write the set of legal choices: the free nodes, or the drawable cores and the end of the turn."""
    for word in range(len(choices)):
        choices[word] = 0
    if game.placed:
        _add(choices, num_nodes(game))
        for number in range(count_drawable(game)):
            _add(choices, drawable_node(game, number))
        return
    nodes, place = num_nodes(game), int(game.width) + 1
    for word in range((nodes + WORD - 1) // WORD):
        bits = np.int64(0)
        for bit in range(min(WORD, nodes - word * WORD)):
            bits |= np.int64(game.cell[place] & LIVE == 0) << bit
            place += 1
        choices[word] = bits


@inner
def _add(choices: Words, choice: int) -> None:
    choices[choice // WORD] |= np.int64(1) << (choice % WORD)


@jit(counted=False)
def choice_action(game: Record, choice: int) -> int:
    """Return the action of a choice."""
    return choice + num_nodes(game) if game.placed else choice


@jit(counted=False)
def random_action(game: Record, streams: Streams, index: int) -> int:
    """Return a uniformly random legal action, drawn from stream `index`."""
    return _random_drawing(game, streams, index) if game.placed else _random_node(game, streams, index)


@inner
def _random_node(game: Record, streams: Streams, index: int) -> int:
    """Return a random free node, by rejection sampling if more than an eighth of the nodes are free."""
    nodes, place = num_nodes(game), int(game.width) + 1
    if int(game.free) * 8 > nodes:
        while True:
            node = draw_below(streams, index, nodes)
            if game.cell[place + node] & LIVE == 0:
                return node
    left = draw_below(streams, index, int(game.free))
    while left >= 0:
        left -= game.cell[place] & LIVE == 0
        place += 1
    return place - int(game.width) - 2


@inner
def _random_drawing(game: Record, streams: Streams, index: int) -> int:
    """Return a random action that draws a core or ends the turn."""
    nodes, count = num_nodes(game), count_drawable(game)
    number = draw_below(streams, index, count + 1)
    return 2 * nodes if number == count else nodes + drawable_node(game, number)


@jit
def playout(game: Record, streams: Streams, index: int) -> None:
    """Play `game` to its end with uniformly random actions."""
    _play_out(game, streams, index, None)


@jit
def traced_playout(game: Record, streams: Streams, index: int, trace: Trace) -> None:
    """Play `game` to its end with uniformly random actions, and record each action in `trace`."""
    _play_out(game, streams, index, trace)


@jit
def _play_out(game: Record, streams: Streams, index: int, trace: Trace | None) -> None:
    """Play `game` to its end at random; record the actions if there is a trace. numba compiles each case separately."""
    places, count, first = np.empty(num_nodes(game), np.int16), 0, int(game.width) + 1
    for place in range(first, first + num_nodes(game)):
        places[count] = place
        count += game.cell[place] & LIVE == 0
    play_places(game, streams, index, places[:count], trace)


@jit
def play_places(game: Record, streams: Streams, index: int, places: Places, trace: Trace | None) -> None:
    """Place points on these cells in a random order, skipping cells that are no longer free, and draw at random.

    `places` is shuffled in place. Nodes never become free again, so this is the same as drawing uniformly from the free
    nodes in each turn. It is faster, because the order is known in advance.
    """
    _finish_turn(game, streams, index, trace)
    for left in range(len(places), 1, -1):
        chosen = draw_below(streams, index, left)
        places[chosen], places[left - 1] = places[left - 1], places[chosen]
    for place in places:
        if game.cell[place] & LIVE == 0:
            if trace is not None:
                note(trace, int(game.to_move), int(place) - int(game.width) - 1)
            place_point(game, int(place))
            _finish_turn(game, streams, index, trace)


@inner
def _finish_turn(game: Record, streams: Streams, index: int, trace: Trace | None) -> None:
    """Play random drawing actions until the turn of the seat that is drawing has ended."""
    while game.placed:
        action = _random_drawing(game, streams, index)
        if trace is not None:
            note(trace, int(game.to_move), action)
        play(game, action)
