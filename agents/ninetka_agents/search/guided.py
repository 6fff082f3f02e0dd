"""One tree of random playouts per game, guided by a network at its busiest nodes; trees of many games at once.

A UCT search as in `ninetka_agents.search.uct` reads far ahead for little time; a network knows what playouts never find out. As in
Silver et al., "Mastering the game of Go with deep neural networks and tree search", Nature 2016, the network is asked
about the nodes that are visited most: its policy then guides the choice among their actions (PUCT), and its values
count like playouts. All others stay plain UCT, so that a single tree keeps every playout. Between two questions, each
tree of a batch grows by some playouts, then the network answers for all of them together.

There is one value per seat at every node and each node maximises its mover's, as everywhere in this house.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents.search import uct as mcts
from ninetka_agents.agent import Actions, check_threads, game_streams
from ninetka_agents.search.gumbel import BITS, Evaluate, gumbel_noise
from ninetka_agents.ninetka.solver.proof import Prover, forget, make_prover
from ninetka_env.core.jit import jit, lowest
from ninetka_env.core.threads import Control, claim, run_shared
from ninetka_env.core.chance import Streams, draw_bit
from ninetka_env.games.ninetka.game import check_count, check_scale
from ninetka_env.games.ninetka.geometry import MAX_PLAYERS, NUM_ACTIONS
from ninetka_env.games.ninetka.rules import GAME, Record, Records, bit_action, legal_bits, must_pass, play_bit

PRIOR_WEIGHT = 1.0
"""The constant c of PUCT; values are chances to win, 0..1."""
ADVICE = 32
"""Playouts that the network's values of a position count for."""
MEMORY = 1 << 28
"""Bytes of trees that grow at once; batches that need more are searched in parts."""


class GuidedResult(NamedTuple):
    """What a search found out about N positions."""

    actions: Actions
    """(N,) int64: the most visited action, a proven win before all others and a proven loss after them; with Gumbel
    noise, the one of highest noise + log(visits)."""
    visits: npt.NDArray[np.int64]
    """(N, 122) int64: playouts per action, the network's advice counted like `ADVICE` of them."""
    values: npt.NDArray[np.float32]
    """(N, 4) float32: chance to win per seat (absolute), the share of them that it won."""


class _Trees(NamedTuple):
    """The trees of N games."""

    roots: Records
    """(N,) games."""
    nodes: Records
    """(N, simulations * playouts + 1) `mcts.NODE`."""
    advised: npt.NDArray[np.int32]
    """(N, simulations + 1) int32: in column k the node that the network was asked about k-th, from 1 on."""
    question: npt.NDArray[np.int32]
    """(N, simulations * playouts + 1) int32: the reverse, 0 for nodes that it was not asked about."""
    priors: npt.NDArray[np.float32]
    """(N, simulations + 1, BITS) float32: the network's policy there, per legal bit."""
    leaves: Records
    """(N,) games: the position of the latest question."""
    streams: Streams
    """(N,) uint64: each game's chance."""
    failures: npt.NDArray[np.int64]
    """(N,) int64: see `mcts.PATIENCE`."""


class GuidedSearch:
    """Searches batches of positions."""

    name = "guided"

    def __init__(
        self,
        evaluate: Evaluate,
        simulations: int = 64,
        playouts: int = 256,
        gumbel_scale: float = 0.0,
        exact: int = 0,
        threads: int = 1,
    ) -> None:
        """Set the search up.

        Args:
            evaluate: policy and values of positions; `ninetka_agents.search.gumbel.network_evaluate(network)` makes one.
            simulations: positions per search that the network is asked about, the root among them.
            playouts: random playouts after each of them.
            gumbel_scale: times the Gumbel noise of the choice at the root: 0 plays the most visited action, 1 draws by
                visits.
            exact: with two players, most nodes to prove who wins after each slide that is tried; 0 for none.
            threads: at most this many threads grow trees; 0 for all that numba may use. Results do not depend on it.

        Raises:
            ValueError: if an option is out of range.
        """
        self._evaluate = evaluate
        self._simulations = check_count("simulations", simulations)
        self._playouts = check_count("playouts", playouts, most=mcts.MOST_SIMULATIONS // self._simulations)
        self._gumbel_scale = check_scale("gumbel_scale", gumbel_scale)
        self._exact = check_count("exact", exact, least=0)
        self._threads = check_threads(threads)

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        return self.run(games, rng).actions

    def run(self, games: Records, rng: np.random.Generator) -> GuidedResult:
        """Search positions.

        Args:
            games: (N,) records of dtype `ninetka_env.games.ninetka.rules.GAME`, none of them over, of any phase and number of
                players; not changed.
            rng: the source of the playouts; each game draws from a stream of its own (see `game_streams`), so what is
                found in a game does not depend on the others.
        """
        streams = game_streams(games, rng)
        count = len(games)
        visits, values = np.zeros((count, NUM_ACTIONS), np.int64), np.zeros((count, MAX_PLAYERS), np.float32)
        result = GuidedResult(np.zeros(count, np.int64), visits, values)
        at_once = max(1, MEMORY // (self._simulations * self._playouts * mcts.NODE.itemsize))
        for first in range(0, count, at_once):
            part = slice(first, first + at_once)
            trees = self._make_trees(games[part], streams[part])
            for question in range(1, self._simulations + 1):
                self._ask(trees, question)
                self._grow(trees, question)
            found = GuidedResult(result.actions[part], result.visits[part], result.values[part])
            _report_all(trees, self._gumbel_scale, found)
        return result

    def _make_trees(self, games: Records, streams: Streams) -> _Trees:
        """Return trees that are roots alone."""
        count, size = len(games), self._simulations * self._playouts + 1
        nodes, question = np.empty((count, size), mcts.NODE), np.zeros((count, size), np.int32)
        advised = np.zeros((count, self._simulations + 1), np.int32)
        priors = np.zeros((count, self._simulations + 1, BITS), np.float32)
        leaves, failures = np.empty(count, GAME), np.zeros(count, np.int64)
        trees = _Trees(games, nodes, advised, question, priors, leaves, streams, failures)
        _plant_all(trees)
        return trees

    def _ask(self, trees: _Trees, question: int) -> None:
        """Ask the network about the busiest position of each tree that it was not asked about."""
        asking = np.zeros(len(trees.roots), np.bool_)
        _find_busiest(trees, question, asking)
        rows = np.flatnonzero(asking)
        if len(rows):
            _advise(trees, question, rows, *self._evaluate(trees.leaves[rows]))

    def _grow(self, trees: _Trees, question: int) -> None:
        """Let each tree grow by some playouts."""
        last = question * self._playouts
        first = last - self._playouts + 1
        run_shared(_grow_all, min(self._threads, len(trees.roots)), trees, first, last, self._exact)


@jit
def _plant_all(trees: _Trees) -> None:
    scratch = np.zeros(1, GAME)
    for index in range(len(trees.roots)):
        mcts.plant(trees.roots[index], trees.nodes[index], scratch)


@jit
def _find_busiest(trees: _Trees, question: int, asking: npt.NDArray[np.bool_]) -> None:
    """Note each tree's next question, its position in `leaves`, and whether there is one."""
    scratch = np.zeros(1, GAME)
    for index in range(len(trees.roots)):
        nodes = trees.nodes[index]
        node = 0 if question == 1 else _busiest(nodes, trees.advised[index, 1:question], trees.question[index])
        asking[index] = node >= 0 and nodes[0].winner < 0
        if asking[index]:
            trees.advised[index, question], trees.question[index, node] = node, question
            trees.leaves[index] = _position(trees.roots[index], nodes, node, scratch)


@jit
def _busiest(nodes: Records, advised: npt.NDArray[np.int32], question: npt.NDArray[np.int32]) -> int:
    """Return the most visited node that the network could still be asked about, -1 if there is none.

    Nodes have no more visits than those above them, so it is a child of one that it was asked about.
    """
    best, most = -1, 0
    for parent in advised:
        child = nodes[parent].child
        while child:
            node = nodes[child]
            open_ = node.winner < 0 and (node.untried != 0 or node.child != 0)
            if open_ and question[child] == 0 and node.visits > most:
                best, most = child, node.visits
            child = node.sibling
    return best


@jit
def _position(root: Record, nodes: Records, node: int, scratch: Records) -> Record:
    """Return the position of a node, played again from the root."""
    path = [node]
    while path[-1]:
        path.append(nodes[path[-1]].parent)
    game = mcts.set_out(root, scratch)
    for step in range(len(path) - 2, -1, -1):
        play_bit(game, int(nodes[path[step]].bit))
    return game


@jit
def _advise(
    trees: _Trees,
    question: int,
    rows: npt.NDArray[np.int64],
    logits: npt.NDArray[np.float32],
    values: npt.NDArray[np.float32],
) -> None:
    """Take the network's answers in, row k of them for tree `rows[k]`."""
    for row in range(len(rows)):
        index = rows[row]
        game = trees.leaves[index]
        bits = legal_bits(game)
        while bits:
            trees.priors[index, question, lowest(bits)] = np.exp(logits[row, bit_action(game, lowest(bits))])
            bits &= bits - 1
        _count_advice(game, trees.nodes[index], trees.advised[index, question], values[row])


@jit
def _count_advice(game: Record, nodes: Records, node: int, values: npt.NDArray[np.float32]) -> None:
    """Count the network's values, by relative seat, like `ADVICE` playouts at a node and at every node above it."""
    while True:
        nodes[node].visits += ADVICE
        for relative in range(game.num_players):
            nodes[node].wins[(game.to_move + relative) % game.num_players] += ADVICE * values[relative]
        if node == 0:
            return
        node = nodes[node].parent


@jit
def _grow_all(control: Control, trees: _Trees, first: int, last: int, exact: int) -> None:
    """Make the nodes `first` to `last` of the trees that this thread claims."""
    scratch, prover = np.zeros(1, GAME), make_prover(exact)
    while True:
        index, stop = claim(control, 0, len(trees.roots), 1)
        if index == stop:
            return
        _grow(trees, index, first, last, scratch, prover)


@jit
def _grow(trees: _Trees, index: int, first: int, last: int, scratch: Records, prover: Prover) -> None:
    """Grow a tree by playouts, until it is proven."""
    nodes = trees.nodes[index]
    forget(prover)  # it goes from game to game, and one must not depend on another
    for new in range(first, last + 1):
        if nodes[0].winner >= 0:
            return
        game = mcts.set_out(trees.roots[index], scratch)
        leaf, bit = _play_down(game, nodes, trees, index)
        trees.failures[index] = mcts.simulate(
            game, trees.streams, index, nodes, leaf, bit, new, trees.failures[index], prover
        )


@jit
def _play_down(game: Record, nodes: Records, trees: _Trees, index: int) -> tuple[int, int]:
    """Follow the tree to a leaf; return it and the untried action to play there, -1 if the game is over."""
    node = 0
    while True:
        question = trees.question[index, node]
        if question:
            child, bit = _guided_choice(nodes, node, game.to_move, trees.priors[index, question])
        elif nodes[node].untried:
            child, bit = 0, draw_bit(trees.streams, index, nodes[node].untried)
        else:
            child, bit = mcts.best_child(nodes, node, mcts.EXPLORATION), -1
        if child == 0:
            return node, bit
        play_bit(game, int(nodes[child].bit))
        node = child


@jit
def _guided_choice(nodes: Records, index: int, mover: int, priors: npt.NDArray[np.float32]) -> tuple[int, int]:
    """Return the child, or 0 and the untried action, of the highest Q + c P sqrt(N) / (1 + n) for the mover (PUCT).

    An untried action has the Q of the node itself. Children that are proven are left out: below a node that is not,
    they are lost.
    """
    node = nodes[index]
    weight = PRIOR_WEIGHT * np.sqrt(float(node.visits))
    best, best_bit, highest = 0, -1, -np.inf
    child = node.child
    while child:
        one = nodes[child]
        bound = one.wins[mover] / one.visits + weight * priors[one.bit] / (1.0 + one.visits)
        if bound > highest and one.winner < 0:
            best, highest = child, bound
        child = one.sibling
    value, bits = node.wins[mover] / node.visits, node.untried
    while bits:
        bit = lowest(bits)
        bits &= bits - 1
        if value + weight * priors[bit] > highest:
            best, best_bit, highest = 0, bit, value + weight * priors[bit]
    return best, best_bit


@jit
def _report_all(trees: _Trees, scale: float, result: GuidedResult) -> None:
    """Fill the result in, with so much Gumbel noise."""
    for index in range(len(trees.roots)):
        game, nodes = trees.roots[index], trees.nodes[index]
        mcts.write_visits(game, nodes, result.visits[index])
        result.values[index] = nodes[0].wins / np.float32(nodes[0].visits)
        if scale == 0 or must_pass(game):
            result.actions[index] = mcts.most_visited(game, nodes)
        else:
            result.actions[index] = _draw_by_visits(game, nodes, scale, trees.streams, index)


@jit
def _draw_by_visits(game: Record, nodes: Records, scale: float, streams: Streams, index: int) -> int:
    """Return the root's action of highest log(visits) + noise."""
    best, highest, child = 0, -np.inf, nodes[0].child
    while child:
        score = np.log(nodes[child].visits) + scale * gumbel_noise(streams, index)
        if score > highest:
            best, highest = child, score
        child = nodes[child].sibling
    return bit_action(game, nodes[best].bit)
