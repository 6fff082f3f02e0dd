"""RAVE, guided by a network at the most visited nodes.

RAVE makes dozens of simulations in the time of one network evaluation, and a network knows what playouts never find
out. As in `ninetka_agents.search.guided`, the network evaluates the most visited nodes of a tree of playouts: its
policy then guides the choice among their actions, and its values count as virtual visits. All other nodes are plain
RAVE nodes. The network evaluates several nodes of a tree at once, because one at a time takes several times as long.

Trees are grown one after another, so results do not depend on the other games of a batch. In one game, the subtree of
the actions that were played can be kept from move to move: see `GuidedRaveSearch`.
"""

from __future__ import annotations

import math
import time
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, Agent, as_positions, game_streams
from ninetka_agents.search.evaluation import Evaluate, checked
from ninetka_agents.search.mcts import CHUNK, MoveBudget, TreePlayer
from ninetka_agents.search.rave import EQUIVALENCE, RaveTree
from ninetka_agents.search.rave_tree import Desk, Rules, Tree, copy_root, is_asked, most_visited
from ninetka_agents.search.selection import MOST_SCALE, gumbel_noise
from ninetka_agents.search.tree import MOST_SIMULATIONS, TreeResult, empty_result
from ninetka_env.core.chance import Streams
from ninetka_env.core.game import Game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_choice, check_count, check_scale
from ninetka_env.core.registry import limits_of
from ninetka_env.core.verbs import Records, forced_action, play, relative_seat

Floats: TypeAlias = npt.NDArray[np.float32]
Rows: TypeAlias = npt.NDArray[np.int32]
"""(K, 2) int32: nodes, each with the row of its parent; row 0 is the root, whose parent is -1."""

BATCH = 32
"""Maximum number of nodes of a tree that the network evaluates at once."""
USUAL_RULES = Rules(EQUIVALENCE, 0.0, heavy=True, local=False)
"""Default options, which use the game's heuristics if there are any."""
MOST_TRUST = 100
"""Maximum `trust`, so that the visits of the largest tree, virtual visits included, fit into int32."""
LEAST_PRIOR = 1e-6
"""Minimum prior probability of an action."""


class GuidedRaveTree(RaveTree):
    """The tree of one search, grown step by step."""

    def __init__(self, games: Records, simulations: int, rules: Rules, evaluate: Evaluate, playouts: int) -> None:
        """Allocate a tree.

        Args:
            games: (N,) states of the dtype to search.
            simulations: number of RAVE simulations; a tree is limited to `rave.MEMORY` bytes.
            rules: options of RAVE, and the weight of the network's policy and values.
            evaluate: returns policy and values of positions; wrapped in `ninetka_agents.search.evaluation.checked`.
            playouts: simulations per node that the network evaluates.

        Raises:
            ValueError: if a number of `rules` is out of range.
        """
        super().__init__(games, simulations, _check_rules(rules), is_advised=True)
        self._evaluate, self._playouts = checked(evaluate), playouts
        self._asked = self._granted = 0
        self.left = self._most = -(-simulations // playouts)
        """Number of nodes that the network may still evaluate in the search of this position."""

    def begin(self, games: Records) -> None:
        """Restart the tree at the first game."""
        super().begin(games)
        self._asked, self._granted, self.left = 0, 0, self._most

    def go_on(self, action: int) -> None:
        """Keep the subtree below an action; the game must have been advanced to its next position already."""
        super().go_on(action)
        self._granted, self.left = 0, self._most

    @property
    def until_evaluation(self) -> int:
        """Number of simulations that call the network at most once, before the first of them."""
        return self._granted or self._playouts

    def grow(self, streams: Streams, index: int, simulations: int) -> bool:
        """Make a number of simulations, drawing from stream `index`; return whether more of them would be of use.

        The network evaluates some nodes, then `playouts` simulations are made per evaluated node, and so on.
        """
        goes_on = True
        while simulations and goes_on:
            if self._granted == 0:
                self._ask()
            count = min(simulations, self._granted)
            goes_on = super().grow(streams, index, count)
            self._granted, simulations = self._granted - count, simulations - count
        return goes_on

    def _ask(self) -> None:
        """Evaluate some nodes with the network and allow simulations for them (for one if there are none)."""
        most = max(1, min(BATCH, self.left, self._asked))  # a small tree has few nodes to choose from
        asked, wanted = np.empty((self._asked + 1, 2), np.int32), np.empty((most, 2), np.int32)
        self._asked, count = _find_wanted(self._tree, asked, wanted)
        if count:
            place = self._games, self._tree, self.desk, asked, wanted[:count]
            leaves = np.empty(count, self._games.dtype)
            _write_positions(*place, leaves)
            _take_in(*place, leaves, *self._evaluate(leaves), math.ceil(self.rules.trust * self._playouts))
            self._asked += count
        self.left -= max(1, count)
        self._granted = max(1, count) * self._playouts

    def draw(self, scale: float, streams: Streams, index: int) -> int:
        """Return the action with the highest log(visits) + `scale` times Gumbel noise."""
        return int(_draw(self._games, self._tree, scale, streams, index))

    def report(self, result: TreeResult, index: int) -> None:
        """Write the result of the search to row `index` of `result`."""
        super().report(result, index)
        counted = self.desk.root_wins.sum(axis=0)
        result.values[index] = counted / counted.sum() if counted.any() else self.desk.shares


class GuidedRaveSearch(Agent):
    """Searches positions by RAVE guided by a network, one after another."""

    name = "guided-rave"

    def __init__(
        self,
        evaluate: Evaluate,
        simulations: int = 64,
        playouts: int = 32,
        gumbel_scale: float = 0.0,
        rules: Rules = USUAL_RULES,
        seconds: float = 0.0,
        reuse: bool = False,
    ) -> None:
        """Set the search up.

        Args:
            evaluate: policy and values of positions; `ninetka_agents.net_agent.network_evaluate(network)` makes one.
                The search checks what it returns, see `ninetka_agents.search.evaluation.checked`.
            simulations: positions per search that the network evaluates, including the root.
            playouts: RAVE simulations per evaluation.
            gumbel_scale: factor of the Gumbel noise in the choice of the action: 0 plays the most visited action, 1
                draws in proportion to visits.
            rules: options of RAVE, and the weight of the network's policy and values.
            seconds: time per position, instead of `simulations`; 0 for no time limit.
            reuse: keep the tree from move to move where whole games are played; see `start`.

        Raises:
            ValueError: if an option is out of range.
        """
        self._evaluate = evaluate
        self._simulations, self._playouts = check_count("simulations", simulations), check_count("playouts", playouts)
        if self._simulations * self._playouts > MOST_SIMULATIONS:
            raise ValueError(
                f"simulations={simulations}: with {playouts} playouts each in one tree, expected at most "
                f"{MOST_SIMULATIONS} playouts in all"
            )
        self._gumbel_scale = min(check_scale("gumbel_scale", gumbel_scale), MOST_SCALE)
        self._seconds = check_scale("seconds", seconds)
        self._rules = _check_rules(rules)
        check_choice("reuse", reuse, (False, True))
        self.remembers = bool(reuse)

    def start(self, game: Game) -> TreePlayer | None:
        """Start to play a game, if `reuse` is set; see `ninetka_agents.agent.Agent.start`."""
        if not self.remembers:
            return None
        return TreePlayer(self.make_tree(game.records, MOST_SIMULATIONS), self._choose, game)

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        return self.run(games, rng).actions

    def run(self, games: Records, rng: np.random.Generator) -> TreeResult:
        """Search positions.

        Args:
            games: (N,) states of one game, none of them over; not changed.
            rng: the source of random numbers; each game has its own stream (see `game_streams`), so the result of a
                game does not depend on the others.
        """
        games = as_positions(games)
        result, streams = empty_result(len(games), limits_of(games.dtype)), game_streams(games, rng)
        if len(games):
            tree = self.make_tree(games)
            for index in range(len(games)):
                tree.begin(games[index : index + 1])
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

    def make_tree(self, games: Records, most: int | None = None) -> GuidedRaveTree:
        """Allocate a tree for games of this dtype and `most` simulations; None for the simulations of one search."""
        most = most or self.budget.simulations or MOST_SIMULATIONS
        return GuidedRaveTree(games, most, self._rules, self._evaluate, self._playouts)

    def think(self, tree: GuidedRaveTree, streams: Streams, index: int) -> None:
        """Grow the tree by the budget of a move, drawing from stream `index`."""
        if not self._seconds:
            tree.left = self._simulations
            tree.grow(streams, index, self._simulations * self._playouts)
            return
        end = time.perf_counter() + self._seconds
        while tree.grow(streams, index, min(CHUNK, tree.until_evaluation)) and time.perf_counter() < end:
            pass

    def _choose(self, tree: GuidedRaveTree, streams: Streams, index: int = 0) -> int:
        self.think(tree, streams, index)
        return tree.draw(self._gumbel_scale, streams, index)


def _check_rules(rules: Rules) -> Rules:
    """Return `rules`; raise `ValueError` if one of its numbers is out of range."""
    for name in ("equivalence", "exploration", "advice", "trust"):
        check_scale(name, getattr(rules, name))
    if rules.trust > MOST_TRUST:
        raise ValueError(f"trust={rules.trust!r}: expected a number from 0 to {MOST_TRUST}")
    return rules


@jit
def _find_wanted(tree: Tree, asked: Rows, wanted: Rows) -> tuple[int, int]:
    """Write the evaluated nodes to `asked` and the most visited other nodes to `wanted`; return both numbers.

    A node has at most as many visits as its parent, so the other nodes are the root or children of evaluated nodes.
    """
    nodes = tree.nodes
    if nodes[0].count == 0:
        return 0, 0
    if not is_asked(tree, 0):
        wanted[0, 0], wanted[0, 1] = 0, -1
        return 0, 1
    asked[0, 0], asked[0, 1] = 0, -1
    known, row, count, least = 1, 0, 0, 0
    while row < known:
        node = nodes[asked[row, 0]]
        for child in range(node.first, node.first + node.count):
            if nodes[child].count == 0:
                continue
            if is_asked(tree, child):
                asked[known, 0], asked[known, 1] = child, row
                known += 1
            elif count < len(wanted) or nodes[child].visits > nodes[wanted[least, 0]].visits:
                place = count if count < len(wanted) else least
                wanted[place, 0], wanted[place, 1] = child, row
                count = min(count + 1, len(wanted))
                least = _least_visited(nodes, wanted[:count])
        row += 1
    return known, count


@jit
def _least_visited(nodes: Records, wanted: Rows) -> int:
    least = 0
    for place in range(1, len(wanted)):
        if nodes[wanted[place, 0]].visits < nodes[wanted[least, 0]].visits:
            least = place
    return least


@jit
def _find_path(asked: Rows, wanted: Rows, place: int, desk: Desk) -> int:
    """Write the path from the root to node `place` of `wanted` to `desk.path`; return its depth."""
    depth, row = 0, wanted[place, 1]
    while row >= 0:
        depth, row = depth + 1, asked[row, 1]
    desk.path[depth], row = wanted[place, 0], wanted[place, 1]
    for step in range(depth - 1, -1, -1):
        desk.path[step], row = asked[row, 0], asked[row, 1]
    return depth


@jit
def _write_positions(games: Records, tree: Tree, desk: Desk, asked: Rows, wanted: Rows, leaves: Records) -> None:
    """Write the positions of the wanted nodes to `leaves`, by replaying the moves from the root."""
    for place in range(len(wanted)):
        game = copy_root(games[0], desk)
        for step in range(1, _find_path(asked, wanted, place, desk) + 1):
            play(game, tree.nodes[desk.path[step]].action)
        leaves[place] = game


@jit
def _take_in(
    games: Records,
    tree: Tree,
    desk: Desk,
    asked: Rows,
    wanted: Rows,
    leaves: Records,
    logits: Floats,
    values: Floats,
    visits: int,
) -> None:
    """Store the network's outputs for `wanted`; values count as `visits` visits of the node and its ancestors."""
    for place in range(len(wanted)):
        leaf = leaves[place]
        _keep_policy(tree, wanted[place, 0], logits[place])
        game = copy_root(games[0], desk)
        for step in range(1, _find_path(asked, wanted, place, desk) + 1):
            node = tree.nodes[desk.path[step]]
            relative = relative_seat(game.to_move, leaf.to_move, game.num_players)
            node.visits += visits
            node.wins += np.float32(visits * values[place, relative])
            if step == 1:
                for seat in range(game.num_players):
                    relative = relative_seat(seat, leaf.to_move, game.num_players)
                    desk.root_wins[node.action, seat] += visits * values[place, relative]
            play(game, node.action)
        tree.nodes[0].visits += visits


@jit
def _keep_policy(tree: Tree, index: int, logits: Floats) -> None:
    """Store the network's policy for the children of a node, normalised to sum to 1."""
    node, total = tree.nodes[index], 0.0
    for child in range(node.first, node.first + node.count):
        total += np.exp(logits[tree.nodes[child].action])
    for child in range(node.first, node.first + node.count):
        tree.policy[child] = max(np.exp(logits[tree.nodes[child].action]) / max(total, LEAST_PRIOR), LEAST_PRIOR)


@jit
def _draw(games: Records, tree: Tree, scale: float, streams: Streams, index: int) -> int:
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
