"""Monte Carlo tree search with random playouts: UCT for any number of players, in all three phases.

Kocsis and Szepesvari, "Bandit based Monte-Carlo planning", ECML 2006; with one value per seat at every node and each
node maximising its mover's, as in Sturtevant, "An analysis of UCT in multi-player games", CG 2008. Nothing is ever
negated, so a seat that moves twice in a row needs no special care.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agents.agent import Actions, check_threads, game_streams
from agents.random_agent import playout
from ninetka_env._jit import jit
from ninetka_env._threads import Control, claim, run_shared
from ninetka_env.chance import Streams, draw_bit
from ninetka_env.game import Game, check_count
from ninetka_env.geometry import MAX_PLAYERS, NUM_ACTIONS, PASS
from ninetka_env.rules import (
    GAME,
    Record,
    Records,
    bit_action,
    is_over,
    legal_bits,
    must_pass,
    pass_over,
    play_bit,
    winner_of,
)

NODE = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("untried", np.int64),  # bits of the legal actions that have no child yet
                ("visits", np.int32),
                ("wins", np.int32, (MAX_PLAYERS,)),  # of the playouts through this node, those that each seat won
                ("parent", np.int32),
                ("child", np.int32),  # the newest child, 0 for none; its `sibling` is the one before, and so on
                ("sibling", np.int32),
                ("bit", np.int8),  # the action that led here, as a bit of the parent's `legal_bits`
                ("mover", np.int8),  # the seat that played it
            ],
            align=True,
        ),
    )
)
"""A node of the tree. Games are not kept: each simulation plays down from the root again."""


class SearchResult(NamedTuple):
    """What a search found out about a position."""

    visits: npt.NDArray[np.int64]
    """(122,) int64: simulations per action."""
    wins: npt.NDArray[np.float64]
    """(122, n) float64: share of them that each seat won; nan where there were none."""


class MctsAgent:
    """Plays the most visited action of a UCT search, batched over games and threads."""

    def __init__(self, simulations: int = 1000, exploration: float = 0.7, threads: int = 0) -> None:
        """Set the search up.

        Args:
            simulations: playouts per move.
            exploration: the constant c in wins / visits + c * sqrt(ln(parent's visits) / visits).
            threads: at most this many threads; 0 for all that numba may use.

        Raises:
            ValueError: if simulations or threads is out of range, or exploration is negative.
        """
        self.name = "mcts"
        self._simulations = check_count("simulations", simulations)
        self._exploration = _check_exploration(exploration)
        self._threads = check_threads(threads)

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions; see `agents.agent.Agent.act`."""
        actions = np.empty(len(games), np.int64)
        threads, streams = min(self._threads, len(games)), game_streams(games, rng)
        run_shared(_act, threads, games, streams, self._simulations, self._exploration, actions)
        return actions


def search(game: Game, simulations: int, rng: np.random.Generator, exploration: float = 0.7) -> SearchResult:
    """Search a position that is not over and return what is known of each action.

    Raises:
        ValueError: if the game is over or simulations is below 1.
    """
    if game.is_over:
        raise ValueError("the game is over: there is nothing to search")
    nodes = np.zeros(check_count("simulations", simulations) + 1, NODE)
    visits, wins = np.zeros(NUM_ACTIONS, np.int64), np.zeros((NUM_ACTIONS, MAX_PLAYERS), np.float64)
    _search_first(game.records, game_streams(game.records, rng), _check_exploration(exploration), nodes, visits, wins)
    with np.errstate(invalid="ignore"):
        return SearchResult(visits, wins[:, : game.num_players] / visits[:, None])


def _check_exploration(exploration: float) -> float:
    if not 0 <= exploration < np.inf:
        raise ValueError(f"exploration={exploration!r}: expected a finite number of at least 0")
    return float(exploration)


@jit
def _search_first(
    games: Records,
    streams: Streams,
    exploration: float,
    nodes: Records,
    visits: npt.NDArray[np.int64],
    wins: npt.NDArray[np.float64],
) -> None:
    """Search game 0 and write what the root's children know."""
    grow(games[0], streams, 0, exploration, nodes, np.zeros(1, GAME))
    child = nodes[0].child
    if must_pass(games[0]):
        visits[PASS] = nodes[0].visits
        wins[PASS] = nodes[0].wins
        return
    while child:
        action = bit_action(games[0], nodes[child].bit)
        visits[action] = nodes[child].visits
        wins[action] = nodes[child].wins
        child = nodes[child].sibling


@jit
def grow(root: Record, streams: Streams, index: int, exploration: float, nodes: Records, scratch: Records) -> None:
    """Grow a tree of `len(nodes) - 1` simulations from `root`, drawing from stream `index`."""
    game = scratch[0]
    _reset_node(nodes[0], root, 0, 0, 0)
    for new in range(1, len(nodes)):
        scratch[0] = root
        game.auto_pass = 1
        pass_over(game)
        if new == 1:
            nodes[0].untried = legal_bits(game)
        leaf = _play_down(game, nodes, exploration)
        if nodes[leaf].untried:
            bit, mover = draw_bit(streams, index, nodes[leaf].untried), game.to_move
            nodes[leaf].untried &= ~(1 << bit)
            play_bit(game, bit)
            _reset_node(nodes[new], game, leaf, bit, mover)
            nodes[new].sibling = nodes[leaf].child
            nodes[leaf].child = new
            leaf = new
        playout(game, streams, index)
        _back_up(nodes, leaf, winner_of(game))


@jit
def _reset_node(node: Record, game: Record, parent: int, bit: int, mover: int) -> None:
    node.untried = 0 if is_over(game) else legal_bits(game)
    node.visits = 0
    for seat in range(MAX_PLAYERS):
        node.wins[seat] = 0
    node.parent, node.child, node.sibling = parent, 0, 0
    node.bit, node.mover = bit, mover


@jit
def _play_down(game: Record, nodes: Records, exploration: float) -> int:
    """Follow the best children while every action has one; return the node where that ends."""
    index = 0
    while nodes[index].untried == 0 and nodes[index].child:
        index = _best_child(nodes, index, exploration)
        play_bit(game, int(nodes[index].bit))
    return index


@jit
def _best_child(nodes: Records, index: int, exploration: float) -> int:
    """Return the child with the highest upper confidence bound for the seat that moves to it."""
    log_visits = np.log(nodes[index].visits)
    best, highest = 0, -1.0
    child = nodes[index].child
    while child:
        node = nodes[child]
        weight = 1.0 / node.visits
        bound = node.wins[node.mover] * weight + exploration * np.sqrt(log_visits * weight)
        if bound > highest:
            best, highest = child, bound
        child = node.sibling
    return best


@jit
def _back_up(nodes: Records, leaf: int, winner: int) -> None:
    """Count a finished playout at the leaf and at every node above it."""
    index = leaf
    while True:
        nodes[index].visits += 1
        nodes[index].wins[winner] += 1
        if index == 0:
            return
        index = nodes[index].parent


@jit
def most_visited(game: Record, nodes: Records) -> int:
    """Return the root's most visited action, among equals the one with more wins for the mover, then the lowest."""
    if must_pass(game):
        return PASS
    best = child = nodes[0].child
    while child:
        one, other = nodes[child], nodes[best]
        if (one.visits, one.wins[one.mover], -one.bit) > (other.visits, other.wins[other.mover], -other.bit):
            best = child
        child = one.sibling
    return bit_action(game, nodes[best].bit)


@jit
def _act(
    control: Control, games: Records, streams: Streams, simulations: int, exploration: float, actions: Actions
) -> None:
    """Choose actions for the games that this thread claims."""
    nodes, scratch = np.zeros(simulations + 1, NODE), np.zeros(1, GAME)
    while True:
        index, stop = claim(control, 0, len(games), 1)
        if index == stop:
            return
        grow(games[index], streams, index, exploration, nodes, scratch)
        actions[index] = most_visited(games[index], nodes)
