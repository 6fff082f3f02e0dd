"""What searches ask of Kropki: the legal actions as choices, and random playouts.

A choice is a node: to place a point there, or, when the seat is drawing, to draw the core told by that node; N ends
the turn.
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
"""Cells."""


@jit(counted=False)
def write_choices(game: Record, choices: Words) -> None:
    """Write the free nodes, or the drawable cores and the end of the turn."""
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
    """Return the action that a choice stands for."""
    return choice + num_nodes(game) if game.placed else choice


@jit(counted=False)
def random_action(game: Record, streams: Streams, index: int) -> int:
    """Draw a uniformly random legal action from stream `index`."""
    return _random_drawing(game, streams, index) if game.placed else _random_node(game, streams, index)


@inner
def _random_node(game: Record, streams: Streams, index: int) -> int:
    """Draw a free node: by trying while that is quick, else by counting."""
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
    """Draw one of the cores that may be drawn, or the end of the turn."""
    nodes, count = num_nodes(game), count_drawable(game)
    number = draw_below(streams, index, count + 1)
    return 2 * nodes if number == count else nodes + drawable_node(game, number)


@jit
def playout(game: Record, streams: Streams, index: int) -> None:
    """Play `game` to its end with uniformly random actions."""
    _play_out(game, streams, index, None)


@jit
def traced_playout(game: Record, streams: Streams, index: int, trace: Trace) -> None:
    """Play `game` to its end with uniformly random actions, and note each turn."""
    _play_out(game, streams, index, trace)


@jit
def _play_out(game: Record, streams: Streams, index: int, trace: Trace | None) -> None:
    """Play at random, and note each turn if there is where: numba compiles both ways apart."""
    places, count, first = np.empty(num_nodes(game), np.int16), 0, int(game.width) + 1
    for place in range(first, first + num_nodes(game)):
        places[count] = place
        count += game.cell[place] & LIVE == 0
    play_places(game, streams, index, places[:count], trace)


@jit
def play_places(game: Record, streams: Streams, index: int, places: Places, trace: Trace | None) -> None:
    """Place points on all of these cells that are free when their turn comes, in a random order, and draw at random.

    Nodes never become free again. So the free ones are tried in a random order, and those no longer free left out:
    that draws from the free nodes uniformly at each turn. Which comes next is known long before, and so quickly met.
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
    """Draw or end the turn at random, as long as the seat to move is drawing."""
    while game.placed:
        action = _random_drawing(game, streams, index)
        if trace is not None:
            note(trace, int(game.to_move), action)
        play(game, action)
