"""The tree of a search with AMAF statistics ("all moves as first") for any game: storage, selection and backup.

The search is in `rave.py`, or with a network in `guided_rave.py`. The tree of UCT is in `tree.py`.

The children of a node are next to each other in one array. They are created together, when the node has been visited a
few times, so memory is used for legal actions only; most nodes are leaves. Nodes store no game states: each
simulation replays the moves from the root.

A simulation through a node counts for the AMAF statistics of some children of the node. Only the plies from the node
on matter: the simulation counts for a child if the first seat that plays the child's action is the seat to move at the
node. This seat's share of the win is added to the child's AMAF wins. Values are never negated, so seats that
move several times in a row and games of more than two players are no special cases.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents.search.choices import next_choice, words_for
from ninetka_agents.search.heuristics import Priors, Scratch, add_priors, keep_local
from ninetka_env.core.jit import jit
from ninetka_env.core.registry import limits_of
from ninetka_env.core.verbs import (
    BitSet,
    State,
    StateArray,
    Trace,
    choice_action,
    is_over,
    prepare_root,
    trace_action,
    trace_seat,
    write_choices,
)

NODE_DTYPE = np.dtype(
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
                ("amaf_wins", np.float32),  # of the same seat, in simulations that count for AMAF (see above)
                ("prior_visits", np.float32),
                ("prior_wins", np.float32),
            ],
            align=True,
        ),
    )
)
EXPAND_VISITS = 2
"""Number of visits of a node before its children are created, at its next visit."""
PRIOR_VISITS = 2.0
"""Initial virtual visits of every action, with 1 / n of them won."""
MAX_DEPTH = 512
"""Maximum depth of a simulation in the tree, more than this project's games need."""


class RaveOptions(NamedTuple):
    """Options of a RAVE search; see `ninetka_agents.search.mcts.MctsAgent`."""

    equivalence: float
    """The constant k of `best_child`; 0 for no AMAF values."""
    exploration: float
    heavy: bool
    local: bool
    prior_weight: float = 0.2
    """Weight of a network's policy at evaluated nodes: the constant c of `best_child`."""
    value_weight: float = 0.5
    """Weight of a network's values: they count as `value_weight` times the playouts per evaluated position."""


class RaveNodes(NamedTuple):
    """The nodes of a tree; node 0 is the root."""

    nodes: StateArray
    policy: npt.NDArray[np.float32]
    """(nodes,) float32: a network's probability of the action that leads to a node, 0 if the parent is not evaluated;
    (0,) in a search without a network."""


class Workspace(NamedTuple):
    """Scratch arrays of one search."""

    games: StateArray
    """(1,) state of the game in a simulation."""
    path: npt.NDArray[np.int32]
    """The nodes of a simulation, from the root on."""
    trace: Trace
    """The plies of the simulation."""
    first_seat: npt.NDArray[np.int8]
    """(actions,) the first seat that plays each action, -1 for none."""
    choices: BitSet
    priors: Priors
    shares: npt.NDArray[np.float32]
    """(players,) each seat's share of the win in the simulation."""
    root_wins: npt.NDArray[np.float64]
    """(actions, players) sums of `shares` by action of the root."""


def make_nodes(nodes: int, has_policy: bool) -> RaveNodes:
    """Allocate a number of nodes; `has_policy` allocates the policy for a search with a network."""
    return RaveNodes(np.empty(nodes, NODE_DTYPE), np.empty(nodes if has_policy else 0, np.float32))


def make_workspace(games: StateArray) -> Workspace:
    """Allocate the scratch arrays for games of this dtype."""
    limits = limits_of(games.dtype)
    return Workspace(
        np.zeros(1, games.dtype),
        np.zeros(MAX_DEPTH + 1, np.int32),
        np.zeros(1 + 4 * limits.actions + MAX_DEPTH, np.int32),
        np.zeros(limits.actions, np.int8),
        np.zeros(words_for(limits.choices), np.int64),
        np.zeros((limits.actions, 2), np.float32),
        np.zeros(limits.players, np.float32),
        np.zeros((limits.actions, limits.players), np.float64),
    )


@jit(refcount=False)
def init_root(root: State, tree: RaveNodes, workspace: Workspace, options: RaveOptions, scratch: Scratch) -> int:
    """Initialise node 0 as the position after forced turns, create its children, and return the number of nodes."""
    game = copy_root(root, workspace)
    workspace.root_wins[:] = 0.0
    workspace.shares[:] = 0.0
    node = tree.nodes[0]
    node.first, node.count, node.action, node.visits = 0, 0, -1, 0
    return expand(game, tree, 0, 1, workspace, options, scratch)


@jit(refcount=False)
def copy_root(root: State, workspace: Workspace) -> State:
    """Return a copy of the root after forced turns, for a simulation to play in."""
    workspace.games[0] = root
    game = workspace.games[0]
    prepare_root(game)
    return game


@jit(refcount=False)
def expand(
    game: State, tree: RaveNodes, index: int, used: int, workspace: Workspace, options: RaveOptions, scratch: Scratch
) -> int:
    """Create the children of a node, if there is memory for all of them; return the number of nodes in use."""
    if is_over(game):
        return used
    nodes, choices, priors = tree.nodes, workspace.choices, workspace.priors
    write_choices(game, choices)
    if options.local:
        keep_local(game, choices)
    stop, choice = used, next_choice(choices, -1)
    while choice >= 0 and stop < len(nodes):
        action = choice_action(game, choice)
        nodes[stop].action = action
        priors[action, 0], priors[action, 1] = PRIOR_VISITS, PRIOR_VISITS / game.num_players
        stop, choice = stop + 1, next_choice(choices, choice)
    if choice >= 0 or stop == used:
        return used
    if options.heavy:
        add_priors(game, priors, scratch)
    for child in range(used, stop):
        node = nodes[child]
        node.first, node.count, node.visits, node.wins = 0, 0, 0, 0.0
        node.amaf_visits, node.amaf_wins = 0.0, 0.0
        node.prior_visits, node.prior_wins = priors[node.action, 0], priors[node.action, 1]
        if len(tree.policy):
            tree.policy[child] = 0.0
    nodes[index].first, nodes[index].count = used, stop - used
    return stop


@jit(refcount=False)
def best_child(tree: RaveNodes, index: int, options: RaveOptions) -> int:
    """Return the child with the highest value, which the search visits next.

    The value of a child is (1 - beta) Q + beta AMAF. The child has n visits, with virtual visits, and m AMAF visits; Q
    is its wins / n, AMAF is its AMAF wins / m, and beta = m / (n + m + n m / k). This beta minimises the mean squared
    error if AMAF values have an average bias of 1 / sqrt(4 k) (S. Gelly and D. Silver, "Monte-Carlo tree search and
    rapid action value estimation in computer Go", Artificial Intelligence, 2011, section 5.2; k is 1 / (4 b**2) there).
    So the value is ((1 + m / k) wins + AMAF wins) / ((1 + m / k) n + m). Exploration adds c sqrt(ln(N + 1) / n).

    At nodes that a network has evaluated, its policy P adds c P sqrt(N) / (1 + v), as in PUCT, where v is the number of
    real visits.
    """
    nodes, node = tree.nodes, tree.nodes[index]
    prior_weight = np.float32(options.prior_weight * np.sqrt(float(node.visits)) if is_evaluated(tree, index) else 0.0)
    log_visits, weight = np.log(node.visits + 1.0), np.float32(1.0 / max(options.equivalence, 1e-9))
    best, highest = node.first, np.float32(-1.0)
    for child in range(node.first, node.first + node.count):
        one = nodes[child]
        scale = np.float32(1.0) + one.amaf_visits * weight
        visits = one.visits + one.prior_visits
        value = (scale * (one.wins + one.prior_wins) + one.amaf_wins) / (scale * visits + one.amaf_visits)
        if options.exploration > 0.0:
            value += options.exploration * np.sqrt(log_visits / visits)
        if prior_weight > 0.0:
            value += prior_weight * tree.policy[child] / (np.float32(1.0) + one.visits)
        if value > highest:
            best, highest = child, value
    return best


@jit(refcount=False)
def is_evaluated(tree: RaveNodes, index: int) -> bool:
    """Return whether a network has evaluated a node; the node must have children."""
    return len(tree.policy) > 0 and tree.policy[tree.nodes[index].first] > 0.0


@jit(refcount=False)
def back_up(nodes: StateArray, depth: int, workspace: Workspace) -> None:
    """Count a simulation that descended `depth` nodes; the workspace has its path, trace and shares of the win."""
    path, trace, first_seat, shares = workspace.path, workspace.trace, workspace.first_seat, workspace.shares
    for action in range(len(first_seat)):
        first_seat[action] = -1
    for turn in range(trace[0] - 1, -1, -1):
        seat, action = trace_seat(trace, turn), trace_action(trace, turn)
        first_seat[action] = seat
        if turn < depth:
            child = nodes[path[turn + 1]]
            child.visits += 1
            child.wins += shares[seat]
            _count_amaf(nodes, path[turn], first_seat, seat, shares[seat])
    nodes[0].visits += 1
    if depth:
        for seat in range(len(shares)):
            workspace.root_wins[nodes[path[1]].action, seat] += shares[seat]


@jit(refcount=False)
def _count_amaf(nodes: StateArray, index: int, first_seat: npt.NDArray[np.int8], seat: int, share: np.float32) -> None:
    """Count a simulation for the children of node `index` whose action was first played by `seat`, the seat to move."""
    first = nodes[index].first
    for child in range(first, first + nodes[index].count):
        first_to_play = np.float32(
            first_seat[nodes[child].action] == seat
        )  # branch-free: a branch would be mispredicted
        nodes[child].amaf_visits += first_to_play
        nodes[child].amaf_wins += first_to_play * share


@jit(refcount=False)
def keep_subtree(old: RaveNodes, new: RaveNodes, action: int) -> int:
    """Copy the subtree of the root's child for `action` to `new`, where the child becomes node 0.

    Return the number of nodes, 0 if there is no such child or if it has no children.
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


@jit(refcount=False)
def most_visited(nodes: StateArray) -> int:
    """Return the root's most visited action; ties are broken by the mover's wins, then by the lowest action."""
    first = nodes[0].first
    best = first
    for child in range(first + 1, first + nodes[0].count):
        one, other = nodes[child], nodes[best]
        if one.visits > other.visits or (one.visits == other.visits and one.wins > other.wins):
            best = child
    return nodes[best].action
