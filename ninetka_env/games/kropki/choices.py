"""Functions of Kropki for searches: legal actions as choices, random actions and random playouts.

`ninetka_env.core.verbs` defines choices. Choice n places a point on node n. While the seat to move is drawing, choice n
draws the core that node n names (see `rules.num_actions`), and choice N, the number of nodes, ends the turn.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit
from ninetka_env.core.random_streams import Streams, draw_below
from ninetka_env.core.verbs import BITS_PER_WORD, BitSet, State, Trace, append_to_trace
from ninetka_env.games.kropki.geometry import LIVE_MASK
from ninetka_env.games.kropki.regions import count_drawable, drawable_node
from ninetka_env.games.kropki.rules import num_nodes, place_point, play

CellIndices = npt.NDArray[np.int16]
"""Cell indices; see `geometry`."""


@jit(refcount=False)
def write_choices(game: State, choices: BitSet) -> None:
    """Write the set of legal choices: the free nodes, or the drawable cores and the end of the turn."""
    for word in range(len(choices)):
        choices[word] = 0
    if game.drawing:
        _add_choice(choices, num_nodes(game))
        for number in range(count_drawable(game)):
            _add_choice(choices, drawable_node(game, number))
        return
    nodes, place = num_nodes(game), int(game.width) + 1
    for word in range((nodes + BITS_PER_WORD - 1) // BITS_PER_WORD):
        bits = np.int64(0)
        for bit in range(min(BITS_PER_WORD, nodes - word * BITS_PER_WORD)):
            bits |= np.int64(game.cell[place] & LIVE_MASK == 0) << bit
            place += 1
        choices[word] = bits


@jit(refcount=False)
def _add_choice(choices: BitSet, choice: int) -> None:
    choices[choice // BITS_PER_WORD] |= np.int64(1) << (choice % BITS_PER_WORD)


@jit(refcount=False)
def choice_action(game: State, choice: int) -> int:
    """Return the action of a choice."""
    return choice + num_nodes(game) if game.drawing else choice


@jit(refcount=False)
def random_action(game: State, streams: Streams, index: int) -> int:
    """Return a uniformly random legal action, drawn from stream `index`."""
    return _random_drawing(game, streams, index) if game.drawing else _random_node(game, streams, index)


@jit(refcount=False)
def _random_node(game: State, streams: Streams, index: int) -> int:
    """Return a uniformly random free node, by rejection sampling if more than an eighth of the nodes are free."""
    nodes, place = num_nodes(game), int(game.width) + 1
    if int(game.free) * 8 > nodes:
        while True:
            node = draw_below(streams, index, nodes)
            if game.cell[place + node] & LIVE_MASK == 0:
                return node
    remaining = draw_below(streams, index, int(game.free))
    while remaining >= 0:
        remaining -= game.cell[place] & LIVE_MASK == 0
        place += 1
    return place - int(game.width) - 2


@jit(refcount=False)
def _random_drawing(game: State, streams: Streams, index: int) -> int:
    """Return a uniformly random action among those that draw a core or end the turn."""
    nodes, count = num_nodes(game), count_drawable(game)
    number = draw_below(streams, index, count + 1)
    return 2 * nodes if number == count else nodes + drawable_node(game, number)


@jit
def playout(game: State, streams: Streams, index: int) -> None:
    """Play `game` to its end with uniformly random actions."""
    _random_playout(game, streams, index, None)


@jit
def traced_playout(game: State, streams: Streams, index: int, trace: Trace) -> None:
    """Play `game` to its end with uniformly random actions, and record each action in `trace`."""
    _random_playout(game, streams, index, trace)


@jit
def _random_playout(game: State, streams: Streams, index: int, trace: Trace | None) -> None:
    """Play `game` to its end at random; record the actions unless `trace` is None. numba compiles both cases."""
    places, count, first = np.empty(num_nodes(game), np.int16), 0, int(game.width) + 1
    for place in range(first, first + num_nodes(game)):
        places[count] = place
        count += game.cell[place] & LIVE_MASK == 0
    play_random_cells(game, streams, index, places[:count], trace)


@jit
def play_random_cells(game: State, streams: Streams, index: int, cells: CellIndices, trace: Trace | None) -> None:
    """Place points on `cells` in random order, skipping cells that are no longer free, and draw random regions.

    `cells` is shuffled in place. Nodes never become free again, so this is the same as choosing uniformly among the
    free nodes in each turn, but it is faster.
    """
    _finish_turn_at_random(game, streams, index, trace)
    for remaining in range(len(cells), 1, -1):
        chosen = draw_below(streams, index, remaining)
        cells[chosen], cells[remaining - 1] = cells[remaining - 1], cells[chosen]
    for place in cells:
        if game.cell[place] & LIVE_MASK == 0:
            if trace is not None:
                append_to_trace(trace, int(game.to_move), int(place) - int(game.width) - 1)
            place_point(game, int(place))
            _finish_turn_at_random(game, streams, index, trace)


@jit(refcount=False)
def _finish_turn_at_random(game: State, streams: Streams, index: int, trace: Trace | None) -> None:
    """Play random drawing actions until the turn of the seat that is drawing has ended."""
    while game.drawing:
        action = _random_drawing(game, streams, index)
        if trace is not None:
            append_to_trace(trace, int(game.to_move), action)
        play(game, action)
