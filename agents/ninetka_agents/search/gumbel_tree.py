"""The tree of the Gumbel search, which evaluates every node with a network: storage, expansion and backup.

The search is in `gumbel.py`. Trees of searches with playouts are in `tree.py` and `rave_tree.py`.

Nodes store no game states: each simulation replays the moves from the root. Node 0 is the root. Every node has one
value per seat, a win probability with draws shared. Values are never negated, so a seat that moves twice in a row is no
special case.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_agents.search.choices import next_choice, words_for
from ninetka_env.core.jit import jit
from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_env.core.registry import limits_of
from ninetka_env.core.verbs import State, StateArray, choice_action, relative_seat, write_choices

Floats = npt.NDArray[np.float32]


@functools.cache
def node_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the nodes of a tree for games of `dtype`."""
    limits = limits_of(dtype)
    fields = [
        ("legal", np.int64, (words_for(limits.choices),)),  # the legal choices, none if the winner is certain
        ("sums", np.float64, (limits.players,)),  # per seat, the sum of the values backed up, including the node's own
        ("values", np.float32, (limits.players,)),  # per seat, from network and playouts, or from the certain winner
        ("logits", np.float32, (limits.choices,)),  # per legal choice, the log of the network's policy
        ("children", np.int32, (limits.choices,)),  # per legal choice, its child node, 0 for none
        ("visits", np.int32),
        ("parent", np.int32),
        ("mover", np.int8),  # the seat to move
        ("decided", np.int8),  # 1 if the winner is certain
    ]
    return np.dtype((np.record, np.dtype(fields, align=True)))


@jit
def reset_node(node: State, game: State, parent: int, winner: int) -> None:
    """Initialise the node of a position; without a certain winner, `expand` adds the network's outputs later.

    `winner` is a seat, `DRAWN`, or `UNFINISHED`.
    """
    players = int(game.num_players)
    node.decided = winner != UNFINISHED
    if winner == UNFINISHED:
        write_choices(game, node.legal)
    else:
        for word in range(len(node.legal)):
            node.legal[word] = 0
    node.visits, node.parent, node.mover = 0, parent, game.to_move
    for seat in range(len(node.sums)):
        node.sums[seat] = 0.0
        node.values[seat] = 1.0 if seat == winner else 0.0
        if winner == DRAWN and seat < players:
            node.values[seat] = 1.0 / players


@jit
def expand(game: State, node: State, logits: Floats, values: Floats) -> None:
    """Store the network's outputs in a node: the policy by legal choice, values by absolute seat."""
    choice = next_choice(node.legal, -1)
    while choice >= 0:
        node.logits[choice] = logits[choice_action(game, choice)]
        node.children[choice] = 0
        choice = next_choice(node.legal, choice)
    for seat in range(game.num_players):
        node.values[seat] = values[relative_seat(seat, node.mover, game.num_players)]


@jit
def mix_in_values(node: State, root: State, share: float) -> None:
    """Mix the result of playouts into a node's values with weight `share`; `root` is the root of the playouts' tree."""
    for seat in range(len(node.values)):
        node.values[seat] += share * (root.wins[seat] / root.visits - node.values[seat])


@jit
def back_up(tree: StateArray, leaf: int) -> None:
    """Add the leaf's values, seat by seat, to the sums of the leaf and all its ancestors."""
    index = leaf
    while True:
        tree[index].visits += 1
        for seat in range(len(tree[index].sums)):
            tree[index].sums[seat] += tree[leaf].values[seat]
        if index == 0:
            return
        index = tree[index].parent


@jit
def visits_of(tree: StateArray, index: int, choice: int) -> int:
    """Return N(a), the visits of a choice."""
    child = tree[index].children[choice]
    return tree[child].visits if child else 0


@jit
def mean(tree: StateArray, index: int, seat: int) -> float:
    """Return the mean of a seat's values at a node: q of the action that leads to it."""
    return tree[index].sums[seat] / tree[index].visits
