"""RAVE, guided by a network at its most visited nodes.

RAVE plays dozens of simulations while a network judges once; a network knows what playouts never find out. As in
`ninetka_agents.search.guided`, one tree of playouts is grown, the network is asked about the nodes that are visited
most, its policy then guides the choice among their actions, and its values count as virtual visits. All others stay
plain RAVE. The network is asked about several nodes of a tree at once, since one alone costs several times as much.

Trees are grown one after another, so nothing depends on the other games of a batch. In one game, what a tree holds
below the actions that were played can be kept, see `GuidedRaveSearch`.
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
"""(K, 2) int32: nodes, each with the row of the node above it; row 0 is the root, which has none."""

BATCH = 32
"""Nodes of a tree that the network is asked about at once, at most."""
USUAL_RULES = Rules(EQUIVALENCE, 0.0, heavy=True, local=False)
"""By the game's own knowledge, if it brings any."""
MOST_TRUST = 100
"""Visits are counted in 32 bits: virtual ones may be this many times those of the largest tree."""
LEAST_PRIOR = 1e-6
"""No action is less probable."""


class GuidedRaveTree(RaveTree):
    """One search, grown bit by bit."""

    def __init__(self, games: Records, simulations: int, rules: Rules, evaluate: Evaluate, playouts: int) -> None:
        """Make room for so many simulations in games like these, or for as many as `rave.MEMORY` holds.

        Args:
            games: (N,) records of one game.
            simulations: of RAVE.
            rules: how RAVE goes about it, and what the network's word counts.
            evaluate: policy and values of positions; checked, see `ninetka_agents.search.evaluation.checked`.
            playouts: simulations for each node that the network is asked about.

        Raises:
            ValueError: if a number of the rules is out of range.
        """
        super().__init__(games, simulations, _check_rules(rules), is_advised=True)
        self._evaluate, self._playouts = checked(evaluate), playouts
        self._asked = self._granted = 0
        self.left = self._most = -(-simulations // playouts)
        """Nodes that the network is still to be asked about in this position's search."""

    def begin(self, games: Records) -> None:
        """Start anew at the first game."""
        super().begin(games)
        self._asked, self._granted, self.left = 0, 0, self._most

    def go_on(self, action: int) -> None:
        """Keep what is below an action that the game, which is at its next position now, went on with."""
        super().go_on(action)
        self._granted, self.left = 0, self._most

    @property
    def until_evaluation(self) -> int:
        """Simulations that can be made without asking the network a second time."""
        return self._granted or self._playouts

    def grow(self, streams: Streams, index: int, simulations: int) -> bool:
        """Search on by so many simulations; tell whether more of them would be of use.

        The network is asked about some nodes, then as many simulations are made as these are granted, and so on.
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
        """Have the network evaluate some nodes, and grant simulations for them, or for one if there is none left."""
        most = max(1, min(BATCH, self.left, self._asked))  # at first there is little to choose from
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
        """Return the action to play: that of highest log(visits) + `scale` Gumbel noise."""
        return int(_draw(self._games, self._tree, scale, streams, index))

    def report(self, result: TreeResult, index: int) -> None:
        """Write what was found out into a row of the result."""
        super().report(result, index)
        counted = self.desk.root_wins.sum(axis=0)
        result.values[index] = counted / counted.sum() if counted.any() else self.desk.shares


class GuidedRaveSearch(Agent):
    """Searches positions, one after another."""

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
            simulations: positions per search that the network evaluates, the root among them.
            playouts: simulations of RAVE for each of them.
            gumbel_scale: times the Gumbel noise of the choice at the root: 0 plays the most visited action, 1 draws by
                visits.
            rules: how RAVE goes about it, and what the network's word counts.
            seconds: how long to think about a position, in place of `simulations`; 0 goes by those.
            reuse: keep the tree from move to move where whole games are played, by players as of
                `ninetka_agents.agent.Player` that `start` gives.

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
        """Start to play a game, if the tree is kept; see `ninetka_agents.agent.Agent.start`."""
        if not self.remembers:
            return None
        return TreePlayer(self.make_tree(game.records, MOST_SIMULATIONS), self._choose, game)

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        return self.run(games, rng).actions

    def run(self, games: Records, rng: np.random.Generator) -> TreeResult:
        """Search positions.

        Args:
            games: (N,) records of one game, none of them over; not changed.
            rng: the source of the playouts; each game draws from a stream of its own (see `game_streams`), so what is
                found in a game does not depend on the others.
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
        """What a move may cost, in simulations of RAVE or in seconds."""
        if self._seconds:
            return MoveBudget(None, self._seconds)
        return MoveBudget(self._simulations * self._playouts, None)

    def make_tree(self, games: Records, most: int | None = None) -> GuidedRaveTree:
        """Make room for a search in games like these: of so many simulations, None for what the search takes."""
        most = most or self.budget.simulations or MOST_SIMULATIONS
        return GuidedRaveTree(games, most, self._rules, self._evaluate, self._playouts)

    def think(self, tree: GuidedRaveTree, streams: Streams, index: int) -> None:
        """Search on for as long as a move takes, drawing from stream `index`."""
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
    """Return rules whose numbers are in range, else raise `ValueError`."""
    for name in ("equivalence", "exploration", "advice", "trust"):
        check_scale(name, getattr(rules, name))
    if rules.trust > MOST_TRUST:
        raise ValueError(f"trust={rules.trust!r}: expected a number from 0 to {MOST_TRUST}")
    return rules


@jit
def _find_wanted(tree: Tree, asked: Rows, wanted: Rows) -> tuple[int, int]:
    """Write the nodes that the network was asked about and the most visited others; return how many of both there are.

    Nodes have no more visits than those above them, so what is wanted is the root or a child of one that was asked
    about.
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
    """Write the nodes from the root to a wanted one to `desk.path`; return how many there are below the root."""
    depth, row = 0, wanted[place, 1]
    while row >= 0:
        depth, row = depth + 1, asked[row, 1]
    desk.path[depth], row = wanted[place, 0], wanted[place, 1]
    for step in range(depth - 1, -1, -1):
        desk.path[step], row = asked[row, 0], asked[row, 1]
    return depth


@jit
def _write_positions(games: Records, tree: Tree, desk: Desk, asked: Rows, wanted: Rows, leaves: Records) -> None:
    """Write the positions of wanted nodes, played again from the root."""
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
    """Take the network's answers about wanted nodes in; its values count like so many visits there and above."""
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
    """Note how probable the network finds the children of a node; they share what others get, if there are any."""
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
