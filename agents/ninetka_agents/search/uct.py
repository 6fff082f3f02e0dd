"""Monte Carlo tree search with random playouts: UCT for any number of players, in all three phases.

Kocsis and Szepesvari, "Bandit based Monte-Carlo planning", ECML 2006; with one value per seat at every node and each
node maximising its mover's, as in Sturtevant, "An analysis of UCT in multi-player games", CG 2008. Nothing is ever
negated, so a seat that moves twice in a row needs no special care.

With two players, slides can be proven on the way (Winands, Bjornsson and Saito, "Monte-Carlo tree search solver", CG
2008): `ninetka_agents.ninetka.solver.proof` tells who wins at a new node, if it can within some nodes, and no simulation goes below it again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, check_threads, game_streams
from ninetka_agents.ninetka.solver.proof import Prover, forget, make_prover, proven_winner
from ninetka_agents.random_agent import playout
from ninetka_env.core.jit import jit
from ninetka_env.core.threads import Control, claim, run_shared
from ninetka_env.core.chance import Streams, draw_bit
from ninetka_env.games.ninetka.game import Game, check_count, check_scale
from ninetka_env.games.ninetka.geometry import MAX_PLAYERS, NUM_ACTIONS, PASS
from ninetka_env.games.ninetka.rules import (
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
                ("wins", np.float32, (MAX_PLAYERS,)),  # of the playouts through this node, those that each seat won
                ("parent", np.int32),
                ("child", np.int32),  # the newest child, 0 for none; its `sibling` is the one before, and so on
                ("sibling", np.int32),
                ("bit", np.int8),  # the action that led here, as a bit of the parent's `legal_bits`
                ("mover", np.int8),  # the seat that played it
                ("winner", np.int8),  # the seat that wins for certain from here on, -1 where that is not proven
            ],
            align=True,
        ),
    )
)
"""A node of the tree. Games are not kept: each simulation plays down from the root again."""


EXPLORATION = 0.7
"""The usual exploration constant c: see `MctsAgent`."""
MOST_SIMULATIONS = 1 << 24
"""Of a tree: its nodes count wins by float32, exactly up to here."""
PATIENCE = 16
"""Failed proofs after which a search stops to try, beyond 4 for each that succeeded: early slides are out of reach."""


class SearchResult(NamedTuple):
    """What a search found out about a position."""

    visits: npt.NDArray[np.int64]
    """(122,) int64: simulations per action."""
    wins: npt.NDArray[np.float64]
    """(122, n) float64: share of them that each seat won; nan where there were none."""
    winners: npt.NDArray[np.int8]
    """(122,) int8: the seat proven to win after each action, -1 where none is."""


class MctsAgent:
    """Plays the most visited action of a UCT search, batched over games and threads."""

    def __init__(
        self, simulations: int = 1000, exploration: float = EXPLORATION, threads: int = 0, exact: int = 0
    ) -> None:
        """Set the search up.

        Args:
            simulations: playouts per move.
            exploration: the constant c in wins / visits + c * sqrt(ln(parent's visits) / visits).
            threads: at most this many threads; 0 for all that numba may use.
            exact: with two players, most nodes to prove who wins after each slide that is tried; 0 for none.

        Raises:
            ValueError: if simulations, threads or exact is out of range, or exploration is negative.
        """
        self.name = "mcts"
        self._simulations = check_count("simulations", simulations, most=MOST_SIMULATIONS)
        self._exploration = check_scale("exploration", exploration)
        self._threads = check_threads(threads)
        self._exact = check_count("exact", exact, least=0)

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        actions = np.empty(len(games), np.int64)
        threads, streams = min(self._threads, len(games)), game_streams(games, rng)
        run_shared(_act, threads, games, streams, self._simulations, self._exploration, self._exact, actions)
        return actions


def search(
    game: Game, simulations: int, rng: np.random.Generator, exploration: float = EXPLORATION, exact: int = 0
) -> SearchResult:
    """Search a position that is not over and return what is known of each action; options as of `MctsAgent`.

    Raises:
        ValueError: if the game is over or an option is out of range.
    """
    if game.is_over:
        raise ValueError("the game is over: there is nothing to search")
    nodes = np.zeros(check_count("simulations", simulations, most=MOST_SIMULATIONS) + 1, NODE)
    visits, wins = np.zeros(NUM_ACTIONS, np.int64), np.zeros((NUM_ACTIONS, MAX_PLAYERS), np.float64)
    winners, streams = np.full(NUM_ACTIONS, -1, np.int8), game_streams(game.records, rng)
    exploration, exact = check_scale("exploration", exploration), check_count("exact", exact, least=0)
    _search_first(game.records, streams, exploration, exact, nodes, visits, wins, winners)
    with np.errstate(invalid="ignore"):
        return SearchResult(visits, wins[:, : game.num_players] / visits[:, None], winners)


@jit
def _search_first(
    games: Records,
    streams: Streams,
    exploration: float,
    exact: int,
    nodes: Records,
    visits: npt.NDArray[np.int64],
    wins: npt.NDArray[np.float64],
    winners: npt.NDArray[np.int8],
) -> None:
    """Search game 0 and write what the root's children know."""
    grow(games[0], streams, 0, exploration, nodes, np.zeros(1, GAME), make_prover(exact))
    child = nodes[0].child
    if must_pass(games[0]):
        visits[PASS] = nodes[0].visits
        wins[PASS] = nodes[0].wins
        winners[PASS] = nodes[0].winner
        return
    while child:
        action = bit_action(games[0], nodes[child].bit)
        visits[action] = nodes[child].visits
        wins[action] = nodes[child].wins
        winners[action] = nodes[child].winner
        child = nodes[child].sibling


@jit
def grow(
    root: Record,
    streams: Streams,
    index: int,
    exploration: float,
    nodes: Records,
    scratch: Records,
    prover: Prover,
) -> None:
    """Grow a tree of `len(nodes) - 1` simulations from `root`, fewer if it is proven, drawing from stream `index`."""
    failures = 0
    forget(prover)
    plant(root, nodes, scratch)
    for new in range(1, len(nodes)):
        game = set_out(root, scratch)
        leaf = _play_down(game, nodes, exploration)
        bit = draw_bit(streams, index, nodes[leaf].untried) if nodes[leaf].untried else -1
        failures = simulate(game, streams, index, nodes, leaf, bit, new, failures, prover)
        if nodes[0].winner >= 0:
            return


@jit
def plant(root: Record, nodes: Records, scratch: Records) -> None:
    """Make node 0 that of the position after the root's forced passes."""
    _reset_node(nodes[0], set_out(root, scratch), 0, 0, 0)


@jit
def set_out(root: Record, scratch: Records) -> Record:
    """Return a copy of the root to play down from, which plays forced passes itself."""
    scratch[0] = root
    game = scratch[0]
    game.auto_pass = 1
    pass_over(game)
    return game


@jit
def simulate(
    game: Record,
    streams: Streams,
    index: int,
    nodes: Records,
    leaf: int,
    bit: int,
    new: int,
    failures: int,
    prover: Prover,
) -> int:
    """Play `bit` at a leaf, which makes the node `new`, and on to the end; count who wins.

    A `bit` of -1 makes no node: the game is over at the leaf. Return `failures`, how often proofs failed, see
    `PATIENCE`, counted on.
    """
    winner = -1
    if bit >= 0:
        _extend(game, nodes, leaf, bit, new)
        leaf = new
        if failures <= PATIENCE:
            winner = proven_winner(game, prover)
            failures += 1 if winner < 0 else -4
    if winner < 0:
        playout(game, streams, index)
        _back_up(nodes, leaf, winner_of(game))
    else:
        _back_up(nodes, leaf, winner)
        _back_up_proof(nodes, leaf, winner)
    return failures


@jit
def _extend(game: Record, nodes: Records, leaf: int, bit: int, new: int) -> None:
    """Play an untried action at a leaf and make `new` the node that it leads to."""
    mover = game.to_move
    nodes[leaf].untried &= ~(1 << bit)
    play_bit(game, bit)
    _reset_node(nodes[new], game, leaf, bit, mover)
    nodes[new].sibling = nodes[leaf].child
    nodes[leaf].child = new


@jit
def _reset_node(node: Record, game: Record, parent: int, bit: int, mover: int) -> None:
    node.untried = 0 if is_over(game) else legal_bits(game)
    node.visits = 0
    for seat in range(MAX_PLAYERS):
        node.wins[seat] = 0
    node.parent, node.child, node.sibling = parent, 0, 0
    node.bit, node.mover, node.winner = bit, mover, -1


@jit
def _play_down(game: Record, nodes: Records, exploration: float) -> int:
    """Follow the best children while every action has one; return the node where that ends."""
    index = 0
    while nodes[index].untried == 0 and nodes[index].child:
        index = best_child(nodes, index, exploration)
        play_bit(game, int(nodes[index].bit))
    return index


@jit
def best_child(nodes: Records, index: int, exploration: float) -> int:
    """Return the child with the highest upper confidence bound for the seat that moves to it, 0 if there is none.

    Children that are proven are left out: below a node that is not, they are lost.
    """
    log_visits = np.log(nodes[index].visits)
    best, highest = 0, -1.0
    child = nodes[index].child
    while child:
        node = nodes[child]
        weight = 1.0 / node.visits
        bound = node.wins[node.mover] * weight + exploration * np.sqrt(log_visits * weight)
        if bound > highest and node.winner < 0:
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
def _back_up_proof(nodes: Records, leaf: int, winner: int) -> None:
    """Note who wins for certain at the leaf, and at every node above it that this decides, of two players."""
    nodes[leaf].winner = winner
    while leaf:
        parent = nodes[leaf].parent
        if nodes[leaf].mover != winner and not _all_lost(nodes, parent):
            return
        nodes[parent].winner = winner
        leaf = parent


@jit
def _all_lost(nodes: Records, index: int) -> bool:
    """Tell whether every action of a node is tried and proven; it is lost then, since one that wins proves the node."""
    child = nodes[index].child
    while child and nodes[child].winner >= 0:
        child = nodes[child].sibling
    return nodes[index].untried == 0 and child == 0


@jit
def most_visited(game: Record, nodes: Records) -> int:
    """Return the root's most visited action, among equals the one with more wins for the mover, then the lowest.

    One that is proven to win comes before all others, one that is proven to lose after them.
    """
    if must_pass(game):
        return PASS
    best = child = nodes[0].child
    while child:
        one, other = nodes[child], nodes[best]
        if _rank(one) > _rank(other):
            best = child
        child = one.sibling
    return bit_action(game, nodes[best].bit)


@jit
def write_visits(game: Record, nodes: Records, visits: npt.NDArray[np.integer]) -> None:
    """Write how often the root's actions were visited into (122,) zeros."""
    if must_pass(game):
        visits[PASS] = nodes[0].visits
        return
    child = nodes[0].child
    while child:
        visits[bit_action(game, nodes[child].bit)] = nodes[child].visits
        child = nodes[child].sibling


@jit
def _rank(node: Record) -> tuple[int, int, int, int]:
    """Return what `most_visited` compares."""
    proven = 0 if node.winner < 0 else 1 if node.winner == node.mover else -1
    return proven, node.visits, node.wins[node.mover], -node.bit


@jit
def _act(
    control: Control,
    games: Records,
    streams: Streams,
    simulations: int,
    exploration: float,
    exact: int,
    actions: Actions,
) -> None:
    """Choose actions for the games that this thread claims."""
    nodes, scratch = np.zeros(simulations + 1, NODE), np.zeros(1, GAME)
    prover, nobody = make_prover(exact), make_prover(0)
    while True:
        index, stop = claim(control, 0, len(games), 1)
        if index == stop:
            return
        grow(games[index], streams, index, exploration, nodes, scratch, prover)
        if nodes[0].winner >= 0 and nodes[0].winner != nodes[nodes[0].child].mover:  # lost: set the opponent problems
            grow(games[index], streams, index, exploration, nodes, scratch, nobody)
        actions[index] = most_visited(games[index], nodes)
