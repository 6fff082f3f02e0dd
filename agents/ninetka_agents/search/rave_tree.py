"""The tree of a search with AMAF statistics ("all moves as first"), for any game: storage, selection, what is counted.

Children of a node lie side by side in one array and are made all at once, when the node has been visited a few times;
so a tree takes room for legal actions only, and most nodes, at its rim, have no children. Games are not kept: each
simulation plays down from the root again.

An action counts for a child, as if it had been played at the node itself, in every simulation through the node in which
the seat to move there is the first to play it from there on. What that seat won counts; nothing is ever negated, so a
seat that moves several times in a row, or one of more than two, needs no special care.
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
                ("first", np.int32),  # its first child, 0 while it has none
                ("count", np.int16),  # its children
                ("action", np.int16),  # what led here
                ("visits", np.int32),
                ("wins", np.float32),  # of the simulations through this node, those that the seat that moved here won
                ("amaf_visits", np.float32),
                ("amaf_wins", np.float32),  # the same for the action, whenever that seat was the first to play it
                ("prior_visits", np.float32),
                ("prior_wins", np.float32),
            ],
            align=True,
        ),
    )
)
EXPAND_VISITS = 2
"""A node gets children when it is visited once more than so many times."""
EVEN_PRIOR = 2.0
"""Virtual visits, won as often as by chance, with which every action begins."""
LONGEST_PATH = 512
"""No simulation goes further down; no game of ours has so many turns that matter."""


class Rules(NamedTuple):
    """How a search goes about it; see `ninetka_agents.search.mcts.MctsAgent`."""

    equivalence: float
    """0 to leave AMAF values aside."""
    exploration: float
    heavy: bool
    local: bool
    advice: float = 0.2
    """What a network's policy counts where it was asked: the constant c of `best_child`."""
    trust: float = 0.5
    """What its value of a position counts, in times of the playouts that are made for it."""


class Tree(NamedTuple):
    """Room for nodes; node 0 is the root."""

    nodes: Records
    policy: npt.NDArray[np.float32]
    """(nodes,) float32: how probable a network finds what led to a node, 0 where it was not asked about the node above;
    (0,) in a search without one."""


class Desk(NamedTuple):
    """What one search works with, beside its tree."""

    games: Records
    """(1,) the game that a simulation plays."""
    path: npt.NDArray[np.int32]
    """The nodes of a simulation, from the root."""
    trace: Trace
    """What it played."""
    owner: npt.NDArray[np.int8]
    """(actions,) the seat that plays an action first, -1 for none."""
    choices: Words
    priors: Priors
    shares: npt.NDArray[np.float32]
    """(players,) how much of the simulated game each seat won."""
    root_wins: npt.NDArray[np.float64]
    """(actions, players) the sums of these by the root's action."""


def make_tree(nodes: int, is_advised: bool) -> Tree:
    """Make room for so many nodes, in a search with a network or without one."""
    return Tree(np.empty(nodes, NODE), np.empty(nodes if is_advised else 0, np.float32))


def make_desk(games: Records) -> Desk:
    """Make a desk for searching games like these."""
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
    """Make node 0 that of a position after its forced turns, with its children; return how many nodes there are."""
    game = copy_root(root, desk)
    desk.root_wins[:] = 0.0
    desk.shares[:] = 0.0
    node = tree.nodes[0]
    node.first, node.count, node.action, node.visits = 0, 0, -1, 0
    return expand(game, tree, 0, 1, desk, rules, memory)


@jit(counted=False)
def copy_root(root: Record, desk: Desk) -> Record:
    """Return a copy of the root to play down from."""
    desk.games[0] = root
    game = desk.games[0]
    prepare_root(game)
    return game


@jit(counted=False)
def expand(game: Record, tree: Tree, index: int, used: int, desk: Desk, rules: Rules, memory: Memory) -> int:
    """Give a node its children, if there is room for them; return how many nodes are used then."""
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
    """Return the child that the search tries next.

    The value of a child is (1 - beta) Q + beta AMAF, where Q are its wins by its n visits, virtual ones included, AMAF
    its AMAF wins by its m AMAF visits, and beta = m / (n + m + n m / k), which makes the mean squared error least if
    AMAF values are off by 1 / sqrt(4 k) on average (S. Gelly and D. Silver, "Monte-Carlo tree search and rapid action
    value estimation in computer Go", Artificial Intelligence, 2011, section 5.2; k is 1 / (4 b**2) there). So it is
    ((1 + m / k) wins + AMAF wins) / ((1 + m / k) n + m), to which exploration may add c sqrt(ln N / n).

    Where a network was asked, its policy P adds c P sqrt(N) / (1 + n), as in PUCT.
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
    """Tell whether a network was asked about a node, which has children."""
    return len(tree.policy) > 0 and tree.policy[tree.nodes[index].first] > 0.0


@jit(counted=False)
def back_up(nodes: Records, depth: int, desk: Desk) -> None:
    """Count a simulation that went `depth` nodes below the root and noted its turns in `desk.trace`."""
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
    """Count a simulation for the children of a node whose actions the seat to move there was first to play."""
    first = nodes[index].first
    for child in range(first, first + nodes[index].count):
        first_to_play = np.float32(owner[nodes[child].action] == seat)  # chance would mislead a branch
        nodes[child].amaf_visits += first_to_play
        nodes[child].amaf_wins += first_to_play * share


@jit(counted=False)
def keep_subtree(old: Tree, new: Tree, action: int) -> int:
    """Copy what is below the root's child of an action into `new`, that child as node 0; return how many nodes.

    It is 0 if there is no such child, or it has none itself.
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
    """Return the root's most visited action, among equals the one with more wins for the mover, then the lowest."""
    first = nodes[0].first
    best = first
    for child in range(first + 1, first + nodes[0].count):
        one, other = nodes[child], nodes[best]
        if one.visits > other.visits or (one.visits == other.visits and one.wins > other.wins):
            best = child
    return nodes[best].action
