"""The tree of a search with playouts for any game: storage, backup of results and proofs, and reports.

The searches are in `uct.py`, and with a network in `guided.py`. The tree of RAVE is in `rave_tree.py`, the tree of the
Gumbel search in `gumbel_tree.py`.

Nodes store no game states: each simulation replays the moves from the root. Every node has one value per seat. Values
are never negated, so a seat that moves twice in a row is no special case.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions
from ninetka_agents.search.choices import is_empty, next_choice, remove_choice, words_for
from ninetka_agents.search.heuristics import Prover, proven_winner
from ninetka_env.core.jit import jit
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.random_streams import Streams
from ninetka_env.core.registry import Limits, limits_of
from ninetka_env.core.verbs import (
    State,
    StateArray,
    choice_action,
    forced_action,
    is_over,
    play_choice,
    playout,
    prepare_root,
    winner_of,
    write_choices,
)

MAX_SIMULATIONS = 1 << 24
"""Maximum simulations of a tree, because nodes count wins in float32, which is exact up to this number."""
MAX_VARIATION_LENGTH = 12
"""Maximum number of actions in a candidate's variation."""
MAX_FAILURES = 16
"""A search stops trying to prove positions when its number of failed proofs exceeds this number.

Every successful proof reduces the number of failed proofs by 4. Positions early in 9tka's slides cannot be proven.
"""


class TreeResult(NamedTuple):
    """Result of a search with playouts for N positions, of a game of A actions and at most P players."""

    actions: Actions
    """(N,) int64: the action to play."""
    visits: npt.NDArray[np.int64]
    """(N, A) int64: simulations per action."""
    values: npt.NDArray[np.float32]
    """(N, P) float32: win probability per absolute seat: the seat's share of wins in the simulations, draws shared."""


def empty_result(count: int, limits: Limits) -> TreeResult:
    """Return a result of zeros for `count` positions."""
    visits, values = np.zeros((count, limits.actions), np.int64), np.zeros((count, limits.players), np.float32)
    return TreeResult(np.zeros(count, np.int64), visits, values)


@functools.cache
def node_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the nodes of a tree for games of `dtype`."""
    limits = limits_of(dtype)
    fields = [
        ("untried", np.int64, (words_for(limits.choices),)),  # the legal choices without a child
        ("visits", np.int32),
        ("wins", np.float32, (limits.players,)),  # each seat's wins in the playouts through this node
        ("parent", np.int32),
        ("child", np.int32),  # the newest child, 0 for none; its `sibling` is the next older one, and so on
        ("sibling", np.int32),
        ("choice", np.int16),  # the parent's choice that leads to this node
        ("mover", np.int8),  # the seat that played this choice
        ("winner", np.int8),  # the proven winner, `UNFINISHED` if nothing is proven
    ]
    return np.dtype((np.record, np.dtype(fields, align=True)))


@jit(refcount=False)
def init_root(root: State, nodes: StateArray, scratch: StateArray) -> None:
    """Make node 0 the position after the root's forced turns."""
    _reset_node(nodes[0], copy_root(root, scratch), 0, 0, 0)


@jit(refcount=False)
def copy_root(root: State, scratch: StateArray) -> State:
    """Return a copy of the root after forced turns, for a simulation to play in."""
    scratch[0] = root
    game = scratch[0]
    prepare_root(game)
    return game


@jit(refcount=False)
def simulate(
    game: State,
    streams: Streams,
    index: int,
    nodes: StateArray,
    leaf: int,
    choice: int,
    new: int,
    failures: int,
    prover: Prover,
) -> int:
    """Finish a simulation at a leaf: play `choice`, which adds the node `new`, play the game out, back up the winner.

    A proven winner replaces the playout. A `choice` of -1 adds no node, because the game is over at the leaf. Return
    the updated `failures`, the count of failed proofs, see `MAX_FAILURES`.
    """
    winner = UNFINISHED
    if choice >= 0:
        _add_child(game, nodes, leaf, choice, new)
        leaf = new
        if failures <= MAX_FAILURES:
            winner = proven_winner(game, prover)
            failures += 1 if winner < 0 else -4
    if winner < 0:
        playout(game, streams, index)
        _back_up(nodes, leaf, winner_of(game), game.num_players)
    else:
        _back_up(nodes, leaf, winner, game.num_players)
        _back_up_proof(nodes, leaf, winner)
    return failures


@jit(refcount=False)
def _add_child(game: State, nodes: StateArray, leaf: int, choice: int, new: int) -> None:
    """Play an untried choice at a leaf and add its child as node `new`."""
    mover = game.to_move
    remove_choice(nodes[leaf].untried, choice)
    play_choice(game, choice)
    _reset_node(nodes[new], game, leaf, choice, mover)
    nodes[new].sibling = nodes[leaf].child
    nodes[leaf].child = new


@jit(refcount=False)
def _reset_node(node: State, game: State, parent: int, choice: int, mover: int) -> None:
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


@jit(refcount=False)
def _back_up(nodes: StateArray, leaf: int, winner: int, num_players: int) -> None:
    """Count a finished playout at the leaf and all its ancestors; a draw counts 1 / n for each seat."""
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


@jit(refcount=False)
def _back_up_proof(nodes: StateArray, leaf: int, winner: int) -> None:
    """Store the proven winner at the leaf and at all ancestors whose winner is then proven; for two players."""
    nodes[leaf].winner = winner
    while leaf:
        parent = nodes[leaf].parent
        if nodes[leaf].mover != winner and not _all_lost(nodes, parent):
            return
        nodes[parent].winner = winner
        leaf = parent


@jit(refcount=False)
def _all_lost(nodes: StateArray, index: int) -> bool:
    """Return whether all actions of a node are proven losses: a proven win would have proven the node already."""
    child = nodes[index].child
    while child and nodes[child].winner >= 0:
        child = nodes[child].sibling
    return is_empty(nodes[index].untried) and child == 0


# Results of a finished search


@jit(refcount=False)
def most_visited(game: State, nodes: StateArray) -> int:
    """Return the root's most visited action; ties are broken by the mover's wins, then by the lowest action.

    A proven win is preferred to all other actions, and a proven loss is played only if there is nothing else, not even
    an untried action.
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


@jit(refcount=False)
def _rank(node: State) -> tuple[int, int, float, int]:
    """Return the sort key of `most_visited`."""
    proven = 0 if node.winner < 0 else 1 if node.winner == node.mover else -1
    return proven, node.visits, node.wins[node.mover], -node.choice


@jit(refcount=False)
def write_visits(game: State, nodes: StateArray, visits: npt.NDArray[np.integer]) -> None:
    """Write the visits of the root's actions to `visits`, (num_actions,) zeros."""
    forced = forced_action(game)
    if forced >= 0:
        visits[forced] = nodes[0].visits
        return
    child = nodes[0].child
    while child:
        visits[choice_action(game, nodes[child].choice)] = nodes[child].visits
        child = nodes[child].sibling


@jit
def write_result(game: State, nodes: StateArray, result: TreeResult, index: int) -> None:
    """Write the result of a finished search to row `index` of `result`."""
    result.actions[index] = most_visited(game, nodes)
    write_visits(game, nodes, result.visits[index])
    for seat in range(len(nodes[0].wins)):
        result.values[index, seat] = nodes[0].wins[seat] / np.float32(nodes[0].visits)


# Candidate actions of a running search


class Child(NamedTuple):
    """A tried action of a node."""

    node: int
    """The node that the action leads to."""
    action: int
    visits: int
    share: float
    """Share of the simulations through `node` that were won by the seat that plays `action`, draws shared."""


class InspectableTree(Protocol):
    """A tree whose nodes can be read during the search."""

    def children(self, node: int) -> list[Child]:
        """Return the tried actions of a node; the root is node 0."""
        ...

    def best_action(self) -> int:
        """Return the action to play."""
        ...


class Candidate(NamedTuple):
    """Statistics of an action at the root."""

    action: int
    visits: int
    share: float
    """The same as `Child.share`."""
    variation: list[int]
    """The expected variation: the action, then the most visited action at each node."""


def find_candidates(tree: InspectableTree) -> list[Candidate]:
    """Return the tried actions of the root: first the action to play, then the others by decreasing visits."""
    best = tree.best_action()
    found = [Candidate(one.action, one.visits, one.share, _variation(tree, one)) for one in tree.children(0)]
    return sorted(found, key=lambda one: (one.action != best, -one.visits, one.action))


def _variation(tree: InspectableTree, child: Child) -> list[int]:
    variation = [child.action]
    while len(variation) < MAX_VARIATION_LENGTH and (children := tree.children(child.node)):
        child = max(children, key=lambda one: (one.visits, -one.action))
        variation.append(child.action)
    return variation
