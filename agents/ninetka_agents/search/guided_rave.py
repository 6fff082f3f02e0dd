"""RAVE, guided by a network at the most visited nodes.

RAVE makes dozens of simulations in the time of one network evaluation; a network knows what playouts cannot show. As in
`ninetka_agents.search.guided`, the network evaluates the most visited nodes of a tree of playouts: its policy then
guides the choice among their actions, and its values count as virtual visits. All other nodes are plain RAVE nodes. The
network evaluates several nodes of a tree at once, because one at a time takes several times as long.

Trees are grown one after another, so results do not depend on the other games of a batch. While one game is played, the
subtree below the played actions can be kept from move to move: see `GuidedRaveSearch`.
"""

from __future__ import annotations

import math
import time
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, Agent, as_unfinished_states, game_streams
from ninetka_agents.search.evaluation import Evaluate, checked
from ninetka_agents.search.mcts import MAX_CHUNK, MoveBudget, TreeSeatAgent
from ninetka_agents.search.rave import EQUIVALENCE, RaveTree
from ninetka_agents.search.rave_tree import RaveNodes, RaveOptions, Workspace, copy_root, is_evaluated, most_visited
from ninetka_agents.search.selection import MAX_SCALE, gumbel_noise
from ninetka_agents.search.tree import MAX_SIMULATIONS, TreeResult, empty_result
from ninetka_env.core.game import Game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_choice, check_count, check_nonnegative
from ninetka_env.core.random_streams import Streams
from ninetka_env.core.registry import limits_of
from ninetka_env.core.verbs import StateArray, forced_action, play, relative_seat

Floats: TypeAlias = npt.NDArray[np.float32]
Rows: TypeAlias = npt.NDArray[np.int32]
"""(K, 2) int32: column 0 has nodes; column 1 has the row of the node's parent among the evaluated nodes, -1 for the
root."""

BATCH_SIZE = 32
"""Maximum number of nodes of a tree that the network evaluates at once."""
DEFAULT_OPTIONS = RaveOptions(EQUIVALENCE, 0.0, heavy=True, local=False)
"""Default options, which use the game's heuristics if there are any."""
MAX_VALUE_WEIGHT = 100
"""Maximum `value_weight`, so that the visits of the largest tree, virtual visits included, fit into int32."""
MIN_PRIOR = 1e-6
"""Minimum prior probability of an action."""


class GuidedRaveTree(RaveTree):
    """The tree of one search, grown step by step."""

    def __init__(
        self, games: StateArray, simulations: int, options: RaveOptions, evaluate: Evaluate, playouts: int
    ) -> None:
        """Allocate a tree.

        Args:
            games: (N,) states of the dtype to search.
            simulations: number of RAVE simulations; a tree is limited to `rave.MAX_TREE_BYTES` bytes.
            options: options of RAVE, and the weight of the network's policy and values.
            evaluate: returns policy and values of positions; wrapped in `ninetka_agents.search.evaluation.checked`.
            playouts: simulations per node that the network evaluates.

        Raises:
            ValueError: if a value in `options` is out of range.
        """
        super().__init__(games, simulations, _check_options(options), has_policy=True)
        self._evaluate, self._playouts = checked(evaluate), playouts
        self._num_evaluated = self._simulations_left = 0
        self.evaluations_left = self._max_evaluations = -(-simulations // playouts)
        """Number of nodes that the network may still evaluate in the search for this move."""

    def reset(self, games: StateArray) -> None:
        """Restart the tree with the position `games[0]` as its root."""
        super().reset(games)
        self._num_evaluated, self._simulations_left, self.evaluations_left = 0, 0, self._max_evaluations

    def advance(self, action: int) -> None:
        """Keep the subtree below an action; see `RaveTree.advance`."""
        super().advance(action)
        self._simulations_left, self.evaluations_left = 0, self._max_evaluations

    @property
    def until_evaluation(self) -> int:
        """Number of simulations before the next call of the network; a call that is due now does not count."""
        return self._simulations_left or self._playouts

    def grow(self, streams: Streams, index: int, simulations: int) -> bool:
        """Make `simulations` simulations, drawing from stream `index`; return whether more of them would be useful.

        The network evaluates some nodes, then `playouts` simulations are made per evaluated node, and so on.
        """
        can_continue = True
        while simulations and can_continue:
            if self._simulations_left == 0:
                self._evaluate_nodes()
            count = min(simulations, self._simulations_left)
            can_continue = super().grow(streams, index, count)
            self._simulations_left, simulations = self._simulations_left - count, simulations - count
        return can_continue

    def _evaluate_nodes(self) -> None:
        """Evaluate the next nodes by the network, then allow `playouts` simulations per evaluated node.

        If there is no node to evaluate, allow `playouts` simulations.
        """
        max_nodes = max(
            1, min(BATCH_SIZE, self.evaluations_left, self._num_evaluated)
        )  # a small tree has few nodes to choose from
        evaluated, to_evaluate = np.empty((self._num_evaluated + 1, 2), np.int32), np.empty((max_nodes, 2), np.int32)
        self._num_evaluated, count = _find_nodes_to_evaluate(self._nodes, evaluated, to_evaluate)
        if count:
            arguments = self._games, self._nodes, self.workspace, evaluated, to_evaluate[:count]
            leaves = np.empty(count, self._games.dtype)
            _write_positions(*arguments, leaves)
            _store_evaluations(
                *arguments, leaves, *self._evaluate(leaves), math.ceil(self.options.value_weight * self._playouts)
            )
            self._num_evaluated += count
        self.evaluations_left -= max(1, count)
        self._simulations_left = max(1, count) * self._playouts

    def draw(self, scale: float, streams: Streams, index: int) -> int:
        """Return the root's action with the highest log(visits) + `scale` times Gumbel noise."""
        return int(_draw_action(self._games, self._nodes, scale, streams, index))

    def report(self, result: TreeResult, index: int) -> None:
        """Write the result of the search to row `index` of `result`."""
        super().report(result, index)
        total = self.workspace.root_wins.sum(axis=0)
        result.values[index] = total / total.sum() if total.any() else self.workspace.shares


class GuidedRaveSearch(Agent):
    """Searches positions one after another, by RAVE guided by a network."""

    name = "guided-rave"

    def __init__(
        self,
        evaluate: Evaluate,
        simulations: int = 64,
        playouts: int = 32,
        gumbel_scale: float = 0.0,
        options: RaveOptions = DEFAULT_OPTIONS,
        seconds: float = 0.0,
        reuse: bool = False,
    ) -> None:
        """Create the search.

        Args:
            evaluate: policy and values of positions; `ninetka_agents.net_agent.network_evaluate(network)` makes one.
                The search checks what it returns, see `ninetka_agents.search.evaluation.checked`.
            simulations: positions per search that the network evaluates, including the root.
            playouts: RAVE simulations per evaluation.
            gumbel_scale: factor of the Gumbel noise in the choice of the action: 0 plays the most visited action, 1
                draws in proportion to visits.
            options: options of RAVE, and the weight of the network's policy and values.
            seconds: time per position, instead of `simulations`; 0 for no time limit.
            reuse: when playing a whole game, keep the tree from move to move; see `start`.

        Raises:
            ValueError: if an option is out of range.
        """
        self._evaluate = evaluate
        self._simulations, self._playouts = check_count("simulations", simulations), check_count("playouts", playouts)
        if self._simulations * self._playouts > MAX_SIMULATIONS:
            raise ValueError(
                f"simulations={simulations}: with {playouts} playouts each in one tree, expected at most "
                f"{MAX_SIMULATIONS} playouts in all"
            )
        self._gumbel_scale = min(check_nonnegative("gumbel_scale", gumbel_scale), MAX_SCALE)
        self._seconds = check_nonnegative("seconds", seconds)
        self._options = _check_options(options)
        check_choice("reuse", reuse, (False, True))
        self.has_seat_agents = bool(reuse)

    def start(self, game: Game) -> TreeSeatAgent | None:
        """Start to play a game, if `reuse` is set; see `ninetka_agents.agent.Agent.start`."""
        if not self.has_seat_agents:
            return None
        return TreeSeatAgent(self.make_tree(game.records, MAX_SIMULATIONS), self._choose, game)

    def act(self, games: StateArray, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        return self.run(games, rng).actions

    def run(self, games: StateArray, rng: np.random.Generator) -> TreeResult:
        """Search positions.

        Args:
            games: (N,) states of one game, none of them over; not changed.
            rng: the source of random numbers; each game has its own stream (see `game_streams`), so the result of a
                game does not depend on the others.
        """
        games = as_unfinished_states(games)
        result, streams = empty_result(len(games), limits_of(games.dtype)), game_streams(games, rng)
        if len(games):
            tree = self.make_tree(games)
            for index in range(len(games)):
                tree.reset(games[index : index + 1])
                action = self._choose(tree, streams, index)
                tree.report(result, index)
                result.actions[index] = action
        return result

    @property
    def budget(self) -> MoveBudget:
        """The budget of a move, in RAVE simulations or in seconds."""
        if self._seconds:
            return MoveBudget(None, self._seconds)
        return MoveBudget(self._simulations * self._playouts, None)

    def make_tree(self, games: StateArray, max_simulations: int | None = None) -> GuidedRaveTree:
        """Allocate a tree for games of this dtype and `max_simulations` simulations; None for the budget of a move."""
        max_simulations = max_simulations or self.budget.simulations or MAX_SIMULATIONS
        return GuidedRaveTree(games, max_simulations, self._options, self._evaluate, self._playouts)

    def search_move(self, tree: GuidedRaveTree, streams: Streams, index: int) -> None:
        """Grow the tree by the budget of a move, drawing from stream `index`."""
        if not self._seconds:
            tree.evaluations_left = self._simulations
            tree.grow(streams, index, self._simulations * self._playouts)
            return
        end = time.perf_counter() + self._seconds
        while tree.grow(streams, index, min(MAX_CHUNK, tree.until_evaluation)) and time.perf_counter() < end:
            pass

    def _choose(self, tree: GuidedRaveTree, streams: Streams, index: int = 0) -> int:
        self.search_move(tree, streams, index)
        return tree.draw(self._gumbel_scale, streams, index)


def _check_options(options: RaveOptions) -> RaveOptions:
    """Return `options`; raise `ValueError` if one of its numbers is out of range."""
    for name in ("equivalence", "exploration", "prior_weight", "value_weight"):
        check_nonnegative(name, getattr(options, name))
    if options.value_weight > MAX_VALUE_WEIGHT:
        raise ValueError(f"value_weight={options.value_weight!r}: expected a number from 0 to {MAX_VALUE_WEIGHT}")
    return options


@jit
def _find_nodes_to_evaluate(tree: RaveNodes, evaluated: Rows, to_evaluate: Rows) -> tuple[int, int]:
    """Write the evaluated nodes to `evaluated` and the most visited other nodes to `to_evaluate`; return both numbers.

    A node has at most as many visits as its parent, so only the root and children of evaluated nodes are considered.
    """
    nodes = tree.nodes
    if nodes[0].count == 0:
        return 0, 0
    if not is_evaluated(tree, 0):
        to_evaluate[0, 0], to_evaluate[0, 1] = 0, -1
        return 0, 1
    evaluated[0, 0], evaluated[0, 1] = 0, -1
    num_evaluated, row, count, least = 1, 0, 0, 0
    while row < num_evaluated:
        node = nodes[evaluated[row, 0]]
        for child in range(node.first, node.first + node.count):
            if nodes[child].count == 0:
                continue
            if is_evaluated(tree, child):
                evaluated[num_evaluated, 0], evaluated[num_evaluated, 1] = child, row
                num_evaluated += 1
            elif count < len(to_evaluate) or nodes[child].visits > nodes[to_evaluate[least, 0]].visits:
                place = count if count < len(to_evaluate) else least
                to_evaluate[place, 0], to_evaluate[place, 1] = child, row
                count = min(count + 1, len(to_evaluate))
                least = _least_visited(nodes, to_evaluate[:count])
        row += 1
    return num_evaluated, count


@jit
def _least_visited(nodes: StateArray, to_evaluate: Rows) -> int:
    least = 0
    for place in range(1, len(to_evaluate)):
        if nodes[to_evaluate[place, 0]].visits < nodes[to_evaluate[least, 0]].visits:
            least = place
    return least


@jit
def _find_path(evaluated: Rows, to_evaluate: Rows, place: int, workspace: Workspace) -> int:
    """Write the path from the root to node `place` of `to_evaluate` to `workspace.path`; return the node's depth."""
    depth, row = 0, to_evaluate[place, 1]
    while row >= 0:
        depth, row = depth + 1, evaluated[row, 1]
    workspace.path[depth], row = to_evaluate[place, 0], to_evaluate[place, 1]
    for step in range(depth - 1, -1, -1):
        workspace.path[step], row = evaluated[row, 0], evaluated[row, 1]
    return depth


@jit
def _write_positions(
    games: StateArray, tree: RaveNodes, workspace: Workspace, evaluated: Rows, to_evaluate: Rows, leaves: StateArray
) -> None:
    """Write the positions of the nodes `to_evaluate` to `leaves`, by replaying the moves from the root."""
    for place in range(len(to_evaluate)):
        game = copy_root(games[0], workspace)
        for step in range(1, _find_path(evaluated, to_evaluate, place, workspace) + 1):
            play(game, tree.nodes[workspace.path[step]].action)
        leaves[place] = game


@jit
def _store_evaluations(
    games: StateArray,
    tree: RaveNodes,
    workspace: Workspace,
    evaluated: Rows,
    to_evaluate: Rows,
    leaves: StateArray,
    logits: Floats,
    values: Floats,
    visits: int,
) -> None:
    """Store the network's outputs for `to_evaluate`; values count as `visits` visits of the node and its ancestors."""
    for place in range(len(to_evaluate)):
        leaf = leaves[place]
        _store_policy(tree, to_evaluate[place, 0], logits[place])
        game = copy_root(games[0], workspace)
        for step in range(1, _find_path(evaluated, to_evaluate, place, workspace) + 1):
            node = tree.nodes[workspace.path[step]]
            relative = relative_seat(game.to_move, leaf.to_move, game.num_players)
            node.visits += visits
            node.wins += np.float32(visits * values[place, relative])
            if step == 1:
                for seat in range(game.num_players):
                    relative = relative_seat(seat, leaf.to_move, game.num_players)
                    workspace.root_wins[node.action, seat] += visits * values[place, relative]
            play(game, node.action)
        tree.nodes[0].visits += visits


@jit
def _store_policy(tree: RaveNodes, index: int, logits: Floats) -> None:
    """Store the network's policy for the children of a node, normalised to sum to 1."""
    node, total = tree.nodes[index], 0.0
    for child in range(node.first, node.first + node.count):
        total += np.exp(logits[tree.nodes[child].action])
    for child in range(node.first, node.first + node.count):
        tree.policy[child] = max(np.exp(logits[tree.nodes[child].action]) / max(total, MIN_PRIOR), MIN_PRIOR)


@jit
def _draw_action(games: StateArray, tree: RaveNodes, scale: float, streams: Streams, index: int) -> int:
    forced = forced_action(games[0])
    if forced >= 0 or scale == 0:
        return forced if forced >= 0 else most_visited(tree.nodes)
    root, best, highest = tree.nodes[0], most_visited(tree.nodes), -np.inf
    for child in range(root.first, root.first + root.count):
        one = tree.nodes[child]
        score = np.log(float(one.visits)) + scale * gumbel_noise(streams, index)
        if score > highest:
            best, highest = one.action, score
    return best
