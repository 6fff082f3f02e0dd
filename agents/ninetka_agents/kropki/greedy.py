"""A greedy agent for Kropki: it maximises its immediate gain minus the opponent's best gain in reply.

The agent in `exact.py` plays like `GreedyAgent` while many choices remain, and perfectly afterwards.
"""

from __future__ import annotations

import numpy as np

from ninetka_agents.agent import Actions, Agent, as_unfinished_states, game_streams
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_nonnegative
from ninetka_env.core.random_streams import Streams, draw_below
from ninetka_env.core.verbs import State, StateArray
from ninetka_env.games.kropki.game import Game
from ninetka_env.games.kropki.geometry import LIVE_MASK, NUM_SECTORS
from ninetka_env.games.kropki.regions import drawable_node, ring_of
from ninetka_env.games.kropki.rules import draw_all, mover, num_nodes, play


class GreedyAgent(Agent):
    """Places where its gain minus `caution` times the reply's best gain is largest; draws every region that it may."""

    name = "greedy"

    def __init__(self, caution: float = 0.9) -> None:
        """Create the agent.

        Args:
            caution: weight of the reply's best gain; 0 ignores the reply.

        Raises:
            ValueError: if `caution` is negative or not finite.
        """
        self.caution = check_nonnegative("caution", caution)

    def act(self, games: StateArray, rng: np.random.Generator) -> Actions:
        """Choose actions, at random among equally good ones; see `ninetka_agents.agent.Agent.act`."""
        games = as_unfinished_states(games, Game.name)
        actions, scratch = np.empty(len(games), np.int64), np.empty(2, games.dtype)
        _act(games, scratch, self.caution, game_streams(games, rng), actions)
        return actions


@jit
def _act(games: StateArray, scratch: StateArray, caution: float, streams: Streams, actions: Actions) -> None:
    for index in range(len(games)):
        game = games[index]
        if game.drawing:
            actions[index] = num_nodes(game) + drawable_node(game, 0)  # drawing never harms the seat that draws
        else:
            actions[index] = _best_node(games, index, scratch, caution, streams)


@jit
def _best_node(games: StateArray, index: int, scratch: StateArray, caution: float, streams: Streams) -> int:
    """Return the node with the highest value, at random among equal nodes; `scratch` (2 states) is overwritten."""
    game, best, most, equals = games[index], -1, -np.inf, 0
    first = int(game.width) + 1
    for node in range(num_nodes(game)):
        if game.cell[first + node] & LIVE_MASK:
            continue
        scratch[0] = game
        worth = gain(scratch[0], node) - caution * best_gain(scratch)
        if worth > most:
            best, most, equals = node, worth, 1
        elif worth == most:
            equals += 1
            if draw_below(streams, index, equals) == 0:  # reservoir sampling: equal nodes are equally likely
                best = node
    return best


@jit
def gain(game: State, node: int) -> int:
    """Place on a node and draw all regions that may be drawn; return the increase of the mover's lead."""
    seat = mover(game)
    before = lead(game, seat)
    play(game, node)
    while game.drawing:
        play(game, num_nodes(game) + drawable_node(game, 0))
    return lead(game, seat) - before


@jit
def lead(game: State, seat: int) -> int:
    """Return a seat's lead in points."""
    return int(game.score[seat]) - int(game.score[1 - seat])


@jit
def best_gain(scratch: StateArray) -> int:
    """Return the largest gain in one turn of the seat to move in `scratch[0]`; `scratch[1]` is overwritten.

    A new point can enclose something only if the mover's points around it separate its other neighbours into two or
    more groups (`NUM_SECTORS`). Placing on any other node gains as much as drawing what is already enclosed.
    """
    game = scratch[0]
    seat, before = mover(game), lead(scratch[0], mover(game))
    scratch[1] = game
    draw_all(scratch[1], seat)
    most, first = lead(scratch[1], seat) - before, int(game.width) + 1
    for node in range(num_nodes(game)):
        if (
            game.cell[first + node] & LIVE_MASK == 0
            and NUM_SECTORS[ring_of(game, first + node, LIVE_MASK, seat + 1)] > 1
        ):
            scratch[1] = game
            most = max(most, gain(scratch[1], node))
    return most
