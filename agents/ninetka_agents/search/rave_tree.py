"""The tree of a search with AMAF statistics ("all moves as first") for any game: storage, selection and backup.

The children of a node are next to each other in one array. They are created together, when the node has been visited a
few times, so memory is used for legal actions only, and most nodes are leaves. Nodes store no game states: each
simulation replays the moves from the root.

An action counts for a child of a node in every simulation through the node in which the seat to move at the node is the
first to play this action later. The share of the win of that seat is counted. Values are never negated, so seats that
move several times in a row and games of more than two players are no special cases.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents.search.choices import next_choice, words_for
from ninetka_agents.search.knowledge import Memory, Priors, add_priors, keep_local
from ninetka_env.core.jit import jit
from ninetka_env.core.registry import limits_of
from ninetka_env.core.verbs import (
    Record,
    Records,
    Trace,
    Words,
    choice_action,
    is_over,
    noted_action,
    noted_seat,
    prepare_root,
    write_choices,
)

NODE = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("first", np.int32),  # the first child, 0 if there is none
                ("count", np.int16),  # number of children
                ("action", np.int16),  # the action that leads to this node
                ("visits", np.int32),
                ("wins", np.float32),  # of the seat that played `action`, in the simulations through this node
                ("amaf_visits", np.float32),
                ("amaf_wins", np.float32),  # of that seat, in simulations in which it was the first to play `action`
                ("prior_visits", np.float32),
                ("prior_wins", np.float32),
            ],
            align=True,
        ),
    )
)
EXPAND_VISITS = 2
"""A node gets children at its next visit after this number of visits."""
EVEN_PRIOR = 2.0
"""Initial virtual visits of every action, with 1 / n of them won."""
LONGEST_PATH = 512
"""Maximum depth of a simulation in the tree, more than this project's games need."""


class Rules(NamedTuple):
    """Options of a RAVE search; see `ninetka_agents.search.mcts.MctsAgent`."""

    equivalence: float
    """0 for no AMAF values."""
    exploration: float
    heavy: bool
    local: bool
    advice: float = 0.2
    """Weight of a network's policy at evaluated nodes: the constant c of `best_child`."""
    trust: float = 0.5
    """Weight of a network's values, relative to the playouts that are made per evaluation."""


class Tree(NamedTuple):
    """The nodes of a tree; node 0 is the root."""

    nodes: Records
    policy: npt.NDArray[np.float32]
    """(nodes,) float32: a network's probability of the action that leads to a node, 0 if the parent is not evaluated;
    (0,) in a search without a network."""


class Desk(NamedTuple):
    """Scratch arrays of one search."""

    games: Records
    """(1,) state of the game in a simulation."""
    path: npt.NDArray[np.int32]
    """The nodes of a simulation, from the root on."""
    trace: Trace
    """The turns of the simulation."""
    owner: npt.NDArray[np.int8]
    """(actions,) the seat that plays an action first, -1 for none."""
    choices: Words
    priors: Priors
    shares: npt.NDArray[np.float32]
    """(players,) each seat's share of the win in the simulation."""
    root_wins: npt.NDArray[np.float64]
    """(actions, players) sums of `shares` by action of the root."""


def make_tree(nodes: int, is_advised: bool) -> Tree:
    """Allocate a number of nodes; `is_advised` allocates the policy for a search with a network."""
    return Tree(np.empty(nodes, NODE), np.empty(nodes if is_advised else 0, np.float32))


def make_desk(games: Records) -> Desk:
    """Allocate the scratch arrays for games of this dtype."""
    limits = limits_of(games.dtype)
    return Desk(
        np.zeros(1, games.dtype),
        np.zeros(LONGEST_PATH + 1, np.int32),
        np.zeros(1 + 4 * limits.actions + LONGEST_PATH, np.int32),
        np.zeros(limits.actions, np.int8),
        np.zeros(words_for(limits.choices), np.int64),
        np.zeros((limits.actions, 2), np.float32),
        np.zeros(limits.players, np.float32),
        np.zeros((limits.actions, limits.players), np.float64),
    )


@jit(counted=False)
def init_root(root: Record, tree: Tree, desk: Desk, rules: Rules, memory: Memory) -> int:
    """Make node 0 the position after forced turns, with its children; return the number of nodes."""
    game = copy_root(root, desk)
    desk.root_wins[:] = 0.0
    desk.shares[:] = 0.0
    node = tree.nodes[0]
    node.first, node.count, node.action, node.visits = 0, 0, -1, 0
    return expand(game, tree, 0, 1, desk, rules, memory)


@jit(counted=False)
def copy_root(root: Record, desk: Desk) -> Record:
    """Return a copy of the root after forced turns, for a simulation to play in."""
    desk.games[0] = root
    game = desk.games[0]
    prepare_root(game)
    return game


@jit(counted=False)
def expand(game: Record, tree: Tree, index: int, used: int, desk: Desk, rules: Rules, memory: Memory) -> int:
    """Create the children of a node, if there is memory for them; return the number of nodes in use."""
    if is_over(game):
        return used
    nodes, choices, priors = tree.nodes, desk.choices, desk.priors
    write_choices(game, choices)
    if rules.local:
        keep_local(game, choices)
    stop, choice = used, next_choice(choices, -1)
    while choice >= 0 and stop < len(nodes):
        action = choice_action(game, choice)
        nodes[stop].action = action
        priors[action, 0], priors[action, 1] = EVEN_PRIOR, EVEN_PRIOR / game.num_players
        stop, choice = stop + 1, next_choice(choices, choice)
    if choice >= 0 or stop == used:
        return used
    if rules.heavy:
        add_priors(game, priors, memory)
    for child in range(used, stop):
        node = nodes[child]
        node.first, node.count, node.visits, node.wins = 0, 0, 0, 0.0
        node.amaf_visits, node.amaf_wins = 0.0, 0.0
        node.prior_visits, node.prior_wins = priors[node.action, 0], priors[node.action, 1]
        if len(tree.policy):
            tree.policy[child] = 0.0
    nodes[index].first, nodes[index].count = used, stop - used
    return stop


@jit(counted=False)
def best_child(tree: Tree, index: int, rules: Rules) -> int:
    """Return the child with the highest value, which the search visits next.

    The value of a child is (1 - beta) Q + beta AMAF, where Q is its wins / n of n visits (virtual ones included), AMAF
    is its AMAF wins / m of m AMAF visits, and beta = m / (n + m + n m / k). This beta minimises the mean squared error
    if AMAF values have an average bias of 1 / sqrt(4 k) (S. Gelly and D. Silver, "Monte-Carlo tree search and rapid
    action value estimation in computer Go", Artificial Intelligence, 2011, section 5.2; k is 1 / (4 b**2) there). So
    the value is ((1 + m / k) wins + AMAF wins) / ((1 + m / k) n + m). Exploration adds c sqrt(ln N / n).

    At nodes that a network has evaluated, its policy P adds c P sqrt(N) / (1 + n), as in PUCT.
    """
    nodes, node = tree.nodes, tree.nodes[index]
    advice = np.float32(rules.advice * np.sqrt(float(node.visits)) if is_asked(tree, index) else 0.0)
    log_visits, weight = np.log(node.visits + 1.0), np.float32(1.0 / max(rules.equivalence, 1e-9))
    best, highest = node.first, np.float32(-1.0)
    for child in range(node.first, node.first + node.count):
        one = nodes[child]
        scale = np.float32(1.0) + one.amaf_visits * weight
        visits = one.visits + one.prior_visits
        value = (scale * (one.wins + one.prior_wins) + one.amaf_wins) / (scale * visits + one.amaf_visits)
        if rules.exploration > 0.0:
            value += rules.exploration * np.sqrt(log_visits / visits)
        if advice > 0.0:
            value += advice * tree.policy[child] / (np.float32(1.0) + one.visits)
        if value > highest:
            best, highest = child, value
    return best


@jit(counted=False)
def is_asked(tree: Tree, index: int) -> bool:
    """Return whether a network has evaluated a node; the node must have children."""
    return len(tree.policy) > 0 and tree.policy[tree.nodes[index].first] > 0.0


@jit(counted=False)
def back_up(nodes: Records, depth: int, desk: Desk) -> None:
    """Count a simulation that descended `depth` nodes and recorded its turns in `desk.trace`."""
    path, trace, owner, shares = desk.path, desk.trace, desk.owner, desk.shares
    for action in range(len(owner)):
        owner[action] = -1
    for turn in range(trace[0] - 1, -1, -1):
        seat, action = noted_seat(trace, turn), noted_action(trace, turn)
        owner[action] = seat
        if turn < depth:
            child = nodes[path[turn + 1]]
            child.visits += 1
            child.wins += shares[seat]
            _count_amaf(nodes, path[turn], owner, seat, shares[seat])
    nodes[0].visits += 1
    if depth:
        for seat in range(len(shares)):
            desk.root_wins[nodes[path[1]].action, seat] += shares[seat]


@jit(counted=False)
def _count_amaf(nodes: Records, index: int, owner: npt.NDArray[np.int8], seat: int, share: np.float32) -> None:
    """Count a simulation for the children whose action was first played by the seat to move at their parent."""
    first = nodes[index].first
    for child in range(first, first + nodes[index].count):
        first_to_play = np.float32(owner[nodes[child].action] == seat)  # branch-free: a branch would be mispredicted
        nodes[child].amaf_visits += first_to_play
        nodes[child].amaf_wins += first_to_play * share


@jit(counted=False)
def keep_subtree(old: Tree, new: Tree, action: int) -> int:
    """Copy the subtree of the root's child for an action to `new`, as node 0; return the number of nodes.

    Return 0 if there is no such child or if it has no children.
    """
    nodes, spare = old.nodes, new.nodes
    child, last = nodes[0].first, nodes[0].first + nodes[0].count
    while child < last and nodes[child].action != action:
        child += 1
    if child == last or nodes[child].count == 0:
        return 0
    spare[0] = nodes[child]
    used, index = 1, 0
    while index < used:
        node = spare[index]
        if node.count:
            for offset in range(node.count):
                spare[used + offset] = nodes[node.first + offset]
                if len(old.policy):
                    new.policy[used + offset] = old.policy[node.first + offset]
            node.first = used
            used += node.count
        index += 1
    return used


@jit(counted=False)
def most_visited(nodes: Records) -> int:
    """Return the root's most visited action; ties are broken by the mover's wins, then by the lowest action."""
    first = nodes[0].first
    best = first
    for child in range(first + 1, first + nodes[0].count):
        one, other = nodes[child], nodes[best]
        if one.visits > other.visits or (one.visits == other.visits and one.wins > other.wins):
            best = child
    return nodes[best].action
