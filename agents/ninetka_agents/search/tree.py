"""The tree of a search with playouts, for any game: storage, the roots, what is counted, proven and shown.

Games are not kept in it: each simulation plays down from the root again. Every node has one value per seat and belongs
to the seat that moves there; nothing is ever negated, so a seat that moves twice in a row needs no special care.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions
from ninetka_agents.search.choices import is_empty, next_choice, remove_choice, words_for
from ninetka_agents.search.knowledge import Prover, proven_winner
from ninetka_env.core.chance import Streams
from ninetka_env.core.jit import jit
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.registry import Limits, limits_of
from ninetka_env.core.verbs import (
    Record,
    Records,
    choice_action,
    forced_action,
    is_over,
    play_choice,
    playout,
    prepare_root,
    winner_of,
    write_choices,
)

MOST_SIMULATIONS = 1 << 24
"""Of a tree: its nodes count wins by float32, exactly up to here."""
LONGEST_LINE = 12
"""Actions of a candidate's line."""
MOST_FAILURES = 16
"""Failed proofs after which a search stops to try, beyond 4 for each that succeeded: early slides are out of reach."""


class TreeResult(NamedTuple):
    """What searches with playouts found out about N positions, of a game of A actions and at most P players."""

    actions: Actions
    """(N,) int64: the action to play."""
    visits: npt.NDArray[np.int64]
    """(N, A) int64: simulations per action."""
    values: npt.NDArray[np.float32]
    """(N, P) float32: chance to win per seat (absolute), the share of the simulations that it won, draws shared."""


def empty_result(count: int, limits: Limits) -> TreeResult:
    """Return room for what is found out about so many positions, zeros."""
    visits, values = np.zeros((count, limits.actions), np.int64), np.zeros((count, limits.players), np.float32)
    return TreeResult(np.zeros(count, np.int64), visits, values)


@functools.cache
def node_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of the nodes of a tree over games whose records have type `dtype`."""
    limits = limits_of(dtype)
    fields = [
        ("untried", np.int64, (words_for(limits.choices),)),  # the legal choices that have no child yet
        ("visits", np.int32),
        ("wins", np.float32, (limits.players,)),  # of the playouts through this node, those that each seat won
        ("parent", np.int32),
        ("child", np.int32),  # the newest child, 0 for none; its `sibling` is the one before, and so on
        ("sibling", np.int32),
        ("choice", np.int16),  # what led here, among the parent's choices
        ("mover", np.int8),  # the seat that played it
        ("winner", np.int8),  # the seat that wins for certain from here on, `UNFINISHED` where that is not proven
    ]
    return np.dtype((np.record, np.dtype(fields, align=True)))


@jit(counted=False)
def init_root(root: Record, nodes: Records, scratch: Records) -> None:
    """Make node 0 that of the position after the root's forced turns."""
    _reset_node(nodes[0], copy_root(root, scratch), 0, 0, 0)


@jit(counted=False)
def copy_root(root: Record, scratch: Records) -> Record:
    """Return a copy of the root to play down from, in which the rules play forced turns."""
    scratch[0] = root
    game = scratch[0]
    prepare_root(game)
    return game


@jit(counted=False)
def simulate(
    game: Record,
    streams: Streams,
    index: int,
    nodes: Records,
    leaf: int,
    choice: int,
    new: int,
    failures: int,
    prover: Prover,
) -> int:
    """Play `choice` at a leaf, which makes the node `new`, and on to the end; count who wins.

    A `choice` of -1 makes no node: the game is over at the leaf. Return `failures`, how often proofs failed, see
    `MOST_FAILURES`, counted on.
    """
    winner = UNFINISHED
    if choice >= 0:
        _extend(game, nodes, leaf, choice, new)
        leaf = new
        if failures <= MOST_FAILURES:
            winner = proven_winner(game, prover)
            failures += 1 if winner < 0 else -4
    if winner < 0:
        playout(game, streams, index)
        _back_up(nodes, leaf, winner_of(game), game.num_players)
    else:
        _back_up(nodes, leaf, winner, game.num_players)
        _back_up_proof(nodes, leaf, winner)
    return failures


@jit(counted=False)
def _extend(game: Record, nodes: Records, leaf: int, choice: int, new: int) -> None:
    """Play an untried choice at a leaf and make `new` the node that it leads to."""
    mover = game.to_move
    remove_choice(nodes[leaf].untried, choice)
    play_choice(game, choice)
    _reset_node(nodes[new], game, leaf, choice, mover)
    nodes[new].sibling = nodes[leaf].child
    nodes[leaf].child = new


@jit(counted=False)
def _reset_node(node: Record, game: Record, parent: int, choice: int, mover: int) -> None:
    if is_over(game):
        for word in range(len(node.untried)):
            node.untried[word] = 0
    else:
        write_choices(game, node.untried)
    node.visits = 0
    for seat in range(len(node.wins)):
        node.wins[seat] = 0
    node.parent, node.child, node.sibling = parent, 0, 0
    node.choice, node.mover, node.winner = choice, mover, UNFINISHED


@jit(counted=False)
def _back_up(nodes: Records, leaf: int, winner: int, num_players: int) -> None:
    """Count a finished playout at the leaf and at every node above it; a draw counts 1 / n for each seat."""
    index = leaf
    while True:
        nodes[index].visits += 1
        if winner >= 0:
            nodes[index].wins[winner] += 1
        else:
            for seat in range(num_players):
                nodes[index].wins[seat] += np.float32(1.0 / num_players)
        if index == 0:
            return
        index = nodes[index].parent


@jit(counted=False)
def _back_up_proof(nodes: Records, leaf: int, winner: int) -> None:
    """Note who wins for certain at the leaf, and at every node above it that this decides, of two players."""
    nodes[leaf].winner = winner
    while leaf:
        parent = nodes[leaf].parent
        if nodes[leaf].mover != winner and not _all_lost(nodes, parent):
            return
        nodes[parent].winner = winner
        leaf = parent


@jit(counted=False)
def _all_lost(nodes: Records, index: int) -> bool:
    """Tell whether every action of a node is tried and proven; it is lost then, since one that wins proves the node."""
    child = nodes[index].child
    while child and nodes[child].winner >= 0:
        child = nodes[child].sibling
    return is_empty(nodes[index].untried) and child == 0


# What a finished search says


@jit(counted=False)
def most_visited(game: Record, nodes: Records) -> int:
    """Return the root's most visited action, among equals the one with more wins for the mover, then the lowest.

    One that is proven to win comes before all others, one that is proven to lose after them and what was not tried.
    """
    forced = forced_action(game)
    if forced >= 0:
        return forced
    best = child = nodes[0].child
    while child:
        one, other = nodes[child], nodes[best]
        if _rank(one) > _rank(other):
            best = child
        child = one.sibling
    is_lost = nodes[best].winner >= 0 and nodes[best].winner != nodes[best].mover
    if is_lost and not is_empty(nodes[0].untried):
        return choice_action(game, next_choice(nodes[0].untried, -1))
    return choice_action(game, nodes[best].choice)


@jit(counted=False)
def _rank(node: Record) -> tuple[int, int, float, int]:
    """Return what `most_visited` compares."""
    proven = 0 if node.winner < 0 else 1 if node.winner == node.mover else -1
    return proven, node.visits, node.wins[node.mover], -node.choice


@jit(counted=False)
def write_visits(game: Record, nodes: Records, visits: npt.NDArray[np.integer]) -> None:
    """Write how often the root's actions were visited into (num_actions,) zeros."""
    forced = forced_action(game)
    if forced >= 0:
        visits[forced] = nodes[0].visits
        return
    child = nodes[0].child
    while child:
        visits[choice_action(game, nodes[child].choice)] = nodes[child].visits
        child = nodes[child].sibling


@jit
def write_result(game: Record, nodes: Records, result: TreeResult, index: int) -> None:
    """Write what a finished search says of a game into its row of the result."""
    result.actions[index] = most_visited(game, nodes)
    write_visits(game, nodes, result.visits[index])
    for seat in range(len(nodes[0].wins)):
        result.values[index, seat] = nodes[0].wins[seat] / np.float32(nodes[0].visits)


# What a search under way thinks of the actions at its root


class Child(NamedTuple):
    """An action of a node that was tried."""

    node: int
    """Where in the tree it leads."""
    action: int
    visits: int
    share: float
    """Of the simulations through it, those that the seat which plays it won, draws shared."""


class Watched(Protocol):
    """A tree that tells what it holds."""

    def children(self, node: int) -> list[Child]:
        """Return the actions of a node that were tried; the root is node 0."""
        ...

    def best(self) -> int:
        """Return the action to play."""
        ...


class Candidate(NamedTuple):
    """What a search found out about an action."""

    action: int
    visits: int
    share: float
    """As of `Child`."""
    line: list[int]
    """The action, and what was visited most after it."""


def find_candidates(tree: Watched) -> list[Candidate]:
    """Return the actions that were tried: the one to play first, then the most visited ones."""
    best = tree.best()
    found = [Candidate(one.action, one.visits, one.share, _line(tree, one)) for one in tree.children(0)]
    return sorted(found, key=lambda one: (one.action != best, -one.visits, one.action))


def _line(tree: Watched, child: Child) -> list[int]:
    line = [child.action]
    while len(line) < LONGEST_LINE and (children := tree.children(child.node)):
        child = max(children, key=lambda one: (one.visits, -one.action))
        line.append(child.action)
    return line
