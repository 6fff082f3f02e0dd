"""A greedy agent for Kropki: it maximises its immediate gain, less the opponent's best gain in reply."""

from __future__ import annotations

import numpy as np

from ninetka_agents.agent import Actions, Agent, as_positions, game_streams
from ninetka_env.core.chance import Streams, draw_below
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_scale
from ninetka_env.core.verbs import Record, Records
from ninetka_env.games.kropki.game import Game
from ninetka_env.games.kropki.geometry import LIVE, NUM_SECTORS
from ninetka_env.games.kropki.regions import drawable_node, ring_of
from ninetka_env.games.kropki.rules import draw_all, mover, num_nodes, play


class GreedyAgent(Agent):
    """Places where its gain minus `caution` times the best gain of the reply is largest; draws all that it may."""

    name = "greedy"

    def __init__(self, caution: float = 0.9) -> None:
        """Weight the reply's best gain by `caution`; 0 ignores the reply."""
        self.caution = check_scale("caution", caution)

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions, at random among equally good ones; see `ninetka_agents.agent.Agent.act`."""
        games = as_positions(games, Game.name)
        actions, room = np.empty(len(games), np.int64), np.empty(2, games.dtype)
        _act(games, room, self.caution, game_streams(games, rng), actions)
        return actions


@jit
def _act(games: Records, room: Records, caution: float, streams: Streams, actions: Actions) -> None:
    for index in range(len(games)):
        game = games[index]
        if game.placed:
            actions[index] = num_nodes(game) + drawable_node(game, 0)  # drawing never harms the seat that draws
        else:
            actions[index] = _best_place(games, index, room, caution, streams)


@jit
def _best_place(games: Records, index: int, room: Records, caution: float, streams: Streams) -> int:
    """Return the node with the highest value, at random among equal ones; `room` is scratch for two states."""
    game, best, most, equals = games[index], -1, -np.inf, 0
    first = int(game.width) + 1
    for node in range(num_nodes(game)):
        if game.cell[first + node] & LIVE:
            continue
        room[0] = game
        worth = gain(room[0], node) - caution * best_gain(room)
        if worth > most:
            best, most, equals = node, worth, 1
        elif worth == most:
            equals += 1
            if draw_below(streams, index, equals) == 0:  # reservoir sampling: equal nodes are equally likely
                best = node
    return best


@jit
def gain(game: Record, node: int) -> int:
    """Place on a node and draw all that may be drawn; return the increase of the mover's lead."""
    seat = mover(game)
    before = lead(game, seat)
    play(game, node)
    while game.placed:
        play(game, num_nodes(game) + drawable_node(game, 0))
    return lead(game, seat) - before


@jit
def lead(game: Record, seat: int) -> int:
    """Return a seat's lead in points."""
    return int(game.score[seat]) - int(game.score[1 - seat])


@jit
def best_gain(room: Records) -> int:
    """Return the largest gain in one turn of the seat to move in `room[0]`; `room[1]` is overwritten.

    Only a point whose ring has at least two sectors can enclose anything new. With any other point the seat gains what
    it has enclosed already.
    """
    game = room[0]
    seat, before = mover(game), lead(room[0], mover(game))
    room[1] = game
    draw_all(room[1], seat)
    most, first = lead(room[1], seat) - before, int(game.width) + 1
    for node in range(num_nodes(game)):
        if game.cell[first + node] & LIVE == 0 and NUM_SECTORS[ring_of(game, first + node, LIVE, seat + 1)] > 1:
            room[1] = game
            most = max(most, gain(room[1], node))
    return most
