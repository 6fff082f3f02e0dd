"""UCT with random playouts, guided by a network at the most visited nodes; searches many games at once.

As in Silver et al., "Mastering the game of Go with deep neural networks and tree search", Nature 2016, the network
evaluates the most visited nodes of a UCT search (`uct.py`): its policy guides the choice among their actions (PUCT),
and its values count as virtual visits. All other nodes are plain UCT nodes, so one tree holds all playouts. Each tree
of a batch grows by some playouts, then the network evaluates one node of each tree in one batch, and so on. The
subtree below the played actions can be kept from move to move: see `GuidedSearch`.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, Agent, as_unfinished_states, check_threads, game_streams
from ninetka_agents.search import tree
from ninetka_agents.search.choices import draw_choice, is_empty, next_choice
from ninetka_agents.search.evaluation import Evaluate, checked
from ninetka_agents.search.heuristics import Prover, clear_prover, make_prover
from ninetka_agents.search.mcts import MAX_CHUNK, next_chunk
from ninetka_agents.search.selection import MAX_SCALE, gumbel_noise
from ninetka_agents.search.uct import EXPLORATION, best_child
from ninetka_env.core.game import Game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_choice, check_count, check_nonnegative
from ninetka_env.core.random_streams import Streams
from ninetka_env.core.registry import limits_of
from ninetka_env.core.threads import Control, claim, run_shared
from ninetka_env.core.verbs import (
    State,
    StateArray,
    choice_action,
    forced_action,
    play_choice,
    relative_seat,
    write_choices,
)

PRIOR_WEIGHT = 1.0
"""The constant c of PUCT, for values that are win probabilities, 0..1."""
VIRTUAL_VISITS = 32
"""The network's values of a position count as much as this number of playouts."""
MAX_TREE_BYTES = 1 << 28
"""Maximum bytes of trees in memory; larger batches are searched in parts, and a single tree stops growing."""


class _GuidedTrees(NamedTuple):
    """The trees of N games."""

    roots: StateArray
    """(N,) games."""
    nodes: StateArray
    """(N, maximum nodes + 1) nodes."""
    evaluated: npt.NDArray[np.int32]
    """(N, maximum evaluations + 1) int32: column k is the k-th node that the network evaluated; k starts at 1."""
    evaluation: npt.NDArray[np.int32]
    """(N, maximum nodes + 1) int32: each node's column in `evaluated`, 0 if the node is not evaluated."""
    priors: npt.NDArray[np.float32]
    """(N, maximum evaluations + 1, choices) float32: the network's policy by column of `evaluated` and legal choice."""
    leaves: StateArray
    """(N,) games: the positions of the latest evaluation."""
    streams: Streams
    """(N,) uint64: one random stream per game."""
    failures: npt.NDArray[np.int64]
    """(N,) int64: failed proofs, see `tree.MAX_FAILURES`."""


class _TreeSize(NamedTuple):
    """The size of a tree."""

    evaluated: int = 0
    """Number of evaluations by the network."""
    nodes: int = 1
    """Number of nodes in use."""


class GuidedSearch(Agent):
    """Searches batches of positions by UCT guided by a network."""

    name = "guided"

    def __init__(
        self,
        evaluate: Evaluate,
        simulations: int = 64,
        playouts: int = 256,
        gumbel_scale: float = 0.0,
        exact: int = 0,
        threads: int = 1,
        seconds: float = 0.0,
        reuse: bool = False,
    ) -> None:
        """Create the search.

        Args:
            evaluate: policy and values of positions; `ninetka_agents.net_agent.network_evaluate(network)` makes one.
                The search checks what it returns, see `ninetka_agents.search.evaluation.checked`.
            simulations: positions per search that the network evaluates, including the root.
            playouts: random playouts after each evaluation.
            gumbel_scale: factor of the Gumbel noise in the choice of the action: 0 plays the most visited action, 1
                draws in proportion to visits.
            exact: with two players, maximum number of nodes that the game's prover visits per proof; 0 for no proofs.
            threads: maximum number of threads; 0 for one per core. Results do not depend on it.
            seconds: time per position, instead of `simulations`; positions are then searched one after another. 0 for
                no time limit.
            reuse: when playing a whole game, keep the tree from move to move; see `start`.

        Raises:
            ValueError: if an option is out of range.
        """
        self._evaluate = checked(evaluate)
        self._simulations, self._playouts = check_count("simulations", simulations), check_count("playouts", playouts)
        if self._simulations * self._playouts > tree.MAX_SIMULATIONS:
            raise ValueError(
                f"simulations={simulations}: with {playouts} playouts each in one tree, expected at most "
                f"{tree.MAX_SIMULATIONS} playouts in all"
            )
        self._gumbel_scale = min(check_nonnegative("gumbel_scale", gumbel_scale), MAX_SCALE)
        self._exact = check_count("exact", exact, minimum=0)
        self._threads = check_threads(threads)
        self._seconds = check_nonnegative("seconds", seconds)
        check_choice("reuse", reuse, (False, True))
        self.has_seat_agents = bool(reuse)

    def start(self, game: Game) -> GuidedSeatAgent | None:
        """Start to play a game, if `reuse` is set; see `ninetka_agents.agent.Agent.start`."""
        return GuidedSeatAgent(self, game) if self.has_seat_agents else None

    def act(self, games: StateArray, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        return self.run(games, rng).actions

    def run(self, games: StateArray, rng: np.random.Generator) -> tree.TreeResult:
        """Search positions.

        Args:
            games: (N,) states of one game, none of them over; not changed.
            rng: the source of random numbers; each game has its own stream (see `game_streams`), so the result of a
                game does not depend on the others.
        """
        games = as_unfinished_states(games)
        streams, max_size = game_streams(games, rng), self.max_size(games)
        result = tree.empty_result(len(games), limits_of(games.dtype))
        at_once = 1 if self._seconds else max(1, MAX_TREE_BYTES // (max_size.nodes * _node_bytes(games)))
        for first in range(0, len(games), at_once):
            start, part = time.perf_counter(), slice(first, first + at_once)
            trees = make_trees(games[part], streams[part], max_size)
            self.grow(trees, _TreeSize(), start)
            _report_all(trees, self._gumbel_scale, tree.TreeResult._make(array[part] for array in result))
        return result

    def max_size(self, games: StateArray, is_kept: bool = False) -> _TreeSize:
        """Return the maximum size of trees for games of this dtype.

        By default, the size allows the simulations of one move. With a time limit, or for trees that are kept from move
        to move (`is_kept`), only `MAX_TREE_BYTES` and `tree.MAX_SIMULATIONS` limit the size.
        """
        evaluated = self._simulations
        if self._seconds or is_kept:
            bytes_each = self._playouts * _node_bytes(games) + 4 * limits_of(games.dtype).choices
            evaluated = max(1, min(MAX_TREE_BYTES // bytes_each, tree.MAX_SIMULATIONS // self._playouts))
        return _TreeSize(evaluated, evaluated * self._playouts + 1)

    def grow(self, trees: _GuidedTrees, size: _TreeSize, start: float) -> _TreeSize:
        """Grow trees of size `size` for one move, started at `start` (`time.perf_counter`); return the new size."""
        (evaluated, used), max_evaluations, max_nodes = size, trees.evaluated.shape[1] - 1, trees.nodes.shape[1]
        if not self._seconds:
            max_evaluations = min(max_evaluations, evaluated + self._simulations)
        chunk, now = (1 if self._exact else MAX_CHUNK) if self._seconds else self._playouts, start
        while evaluated < max_evaluations and used < max_nodes:
            evaluated += 1
            self._evaluate_nodes(trees, evaluated)
            stop = min(max_nodes, used + self._playouts)
            while used < stop:
                first, used = used, min(stop, used + chunk)
                run_shared(_search_all, min(self._threads, len(trees.roots)), trees, first, used - 1, self._exact)
                if not self._seconds:
                    continue
                before, now = now, time.perf_counter()
                if now - start >= self._seconds or trees.nodes[0, 0].winner >= 0:
                    return _TreeSize(evaluated, used)
                chunk = next_chunk(chunk, now - before) if self._exact else MAX_CHUNK
        return _TreeSize(evaluated, used)

    def best_action(self, trees: _GuidedTrees) -> int:
        """Return the action to play in the first game."""
        result = tree.empty_result(len(trees.roots), limits_of(trees.roots.dtype))
        _report_all(trees, self._gumbel_scale, result)
        return int(result.actions[0])

    def _evaluate_nodes(self, trees: _GuidedTrees, number: int) -> None:
        """Let the network evaluate the most visited unevaluated node of each tree.

        `number` counts the evaluations of a tree, from 1.
        """
        wanted = np.zeros(len(trees.roots), np.bool_)
        _find_most_visited(trees, number, wanted)
        rows = np.flatnonzero(wanted)
        if len(rows):
            _store_evaluations(trees, number, rows, *self._evaluate(trees.leaves[rows]))


class GuidedSeatAgent:
    """A `SeatAgent` that plays one game with a `GuidedSearch` and keeps its tree from move to move."""

    def __init__(self, search: GuidedSearch, game: Game) -> None:
        """Start a game at the position `game`; see `ninetka_agents.agent.SeatAgent`."""
        self._search, self._game = search, game.copy()
        self._trees: _GuidedTrees | None = None
        self._size = _TreeSize()

    @property
    def visits(self) -> int:
        """Visits of the root; each evaluation of the network counts as `VIRTUAL_VISITS` visits."""
        return 0 if self._trees is None else int(self._trees.nodes[0, 0].visits)

    def act(self, rng: np.random.Generator) -> int:
        """Continue the search and choose an action; see `ninetka_agents.agent.SeatAgent.act`."""
        start, games, streams = time.perf_counter(), self._game.records, game_streams(self._game.records, rng)
        if self._trees is None:
            self._trees, self._size = (
                make_trees(games, streams, self._search.max_size(games, is_kept=True)),
                _TreeSize(),
            )
        self._trees.streams[:] = streams
        self._size = self._search.grow(self._trees, self._size, start)
        return self._search.best_action(self._trees)

    def observe(self, action: int) -> None:
        """Play an action and keep the subtree below it."""
        before = self._game.records.copy()
        self._game.play(action)
        # The root is already the position after a forced turn.
        if self._trees is None or forced_action(before[0]) >= 0:
            return
        old, self._trees = self._trees, None
        if not self._game.is_over:
            trees = _empty_trees(
                self._game.records, old.streams, _TreeSize(old.evaluated.shape[1] - 1, old.nodes.shape[1])
            )
            evaluated, used = _keep_subtree(before, old, trees, self._size.evaluated, self._size.nodes, action)
            if used:
                self._trees, self._size = trees, _TreeSize(evaluated, used)

    def close(self) -> None:
        """Release the tree."""
        self._trees = None


def _node_bytes(games: StateArray) -> int:
    return tree.node_dtype(games.dtype).itemsize


def make_trees(games: StateArray, streams: Streams, max_size: _TreeSize) -> _GuidedTrees:
    """Allocate trees; each consists of its root."""
    trees = _empty_trees(games, streams, max_size)
    _init_roots(trees)
    return trees


def _empty_trees(games: StateArray, streams: Streams, max_size: _TreeSize) -> _GuidedTrees:
    """Allocate trees; their nodes are not initialised."""
    count = len(games)
    nodes = np.empty((count, max_size.nodes), tree.node_dtype(games.dtype))
    evaluated = np.zeros((count, max_size.evaluated + 1), np.int32)
    evaluation = np.zeros((count, max_size.nodes), np.int32)
    priors = np.zeros((count, max_size.evaluated + 1, limits_of(games.dtype).choices), np.float32)
    leaves, failures = np.empty(count, games.dtype), np.zeros(count, np.int64)
    return _GuidedTrees(games, nodes, evaluated, evaluation, priors, leaves, streams, failures)


@jit
def _init_roots(trees: _GuidedTrees) -> None:
    scratch = trees.roots[:1].copy()
    for index in range(len(trees.roots)):
        tree.init_root(trees.roots[index], trees.nodes[index], scratch)


@jit
def _find_most_visited(trees: _GuidedTrees, number: int, wanted: npt.NDArray[np.bool_]) -> None:
    """Select the next node to evaluate in each tree: its most visited unevaluated node.

    Store the node as evaluation `number` of the tree and its position in `trees.leaves`. `wanted` is set to False for
    trees without such a node and for trees whose root is proven, otherwise to True.
    """
    scratch = trees.roots[:1].copy()
    for index in range(len(trees.roots)):
        nodes = trees.nodes[index]
        node = 0 if number == 1 else _most_visited(nodes, trees.evaluated[index, 1:number], trees.evaluation[index])
        wanted[index] = node >= 0 and nodes[0].winner < 0
        if wanted[index]:
            trees.evaluated[index, number], trees.evaluation[index, node] = node, number
            trees.leaves[index] = _position_at(trees.roots[index], nodes, node, scratch)


@jit
def _most_visited(nodes: StateArray, evaluated: npt.NDArray[np.int32], evaluation: npt.NDArray[np.int32]) -> int:
    """Return the most visited node that the network can still evaluate, -1 if there is none.

    A node has at most as many visits as its parent, so only the children of evaluated nodes are compared.
    """
    best, most = -1, 0
    for parent in evaluated:
        child = nodes[parent].child if nodes[parent].visits > most else 0
        while child:
            node = nodes[child]
            can_continue = node.winner < 0 and (not is_empty(node.untried) or node.child != 0)
            if can_continue and evaluation[child] == 0 and node.visits > most:
                best, most = child, node.visits
            child = node.sibling
    return best


@jit
def _position_at(root: State, nodes: StateArray, node: int, scratch: StateArray) -> State:
    """Return the position of a node, by replaying the moves from the root."""
    path = [node]
    while path[-1]:
        path.append(nodes[path[-1]].parent)
    game = tree.copy_root(root, scratch)
    for step in range(len(path) - 2, -1, -1):
        play_choice(game, nodes[path[step]].choice)
    return game


@jit
def _store_evaluations(
    trees: _GuidedTrees,
    number: int,
    rows: npt.NDArray[np.int64],
    logits: npt.NDArray[np.float32],
    values: npt.NDArray[np.float32],
) -> None:
    """Store the network's outputs: row k belongs to tree `rows[k]`."""
    legal = trees.nodes[0, 0].untried.copy()
    for row in range(len(rows)):
        index = rows[row]
        game = trees.leaves[index]
        write_choices(game, legal)
        choice = next_choice(legal, -1)
        while choice >= 0:
            trees.priors[index, number, choice] = np.exp(logits[row, choice_action(game, choice)])
            choice = next_choice(legal, choice)
        _count_values(game, trees.nodes[index], trees.evaluated[index, number], values[row])


@jit
def _count_values(game: State, nodes: StateArray, node: int, values: npt.NDArray[np.float32]) -> None:
    """Count the network's values, by relative seat, as `VIRTUAL_VISITS` playouts at a node and all its ancestors."""
    while True:
        nodes[node].visits += VIRTUAL_VISITS
        for seat in range(game.num_players):
            relative = relative_seat(seat, game.to_move, game.num_players)
            nodes[node].wins[seat] += VIRTUAL_VISITS * values[relative]
        if node == 0:
            return
        node = nodes[node].parent


@jit
def _search_all(control: Control, trees: _GuidedTrees, first: int, last: int, exact: int) -> None:
    """Add the nodes `first` to `last` to the trees that this thread claims."""
    scratch, prover = trees.roots[:1].copy(), make_prover(trees.roots[0], exact)
    while True:
        index, stop = claim(control, 0, len(trees.roots), 1)
        if index == stop:
            return
        _search_tree(trees, index, first, last, scratch, prover)


@jit
def _search_tree(trees: _GuidedTrees, index: int, first: int, last: int, scratch: StateArray, prover: Prover) -> None:
    """Grow a tree by playouts, until its root is proven."""
    nodes = trees.nodes[index]
    clear_prover(trees.roots[index], prover)  # the prover serves several games; results must not depend on other games
    for new in range(first, last + 1):
        if nodes[0].winner >= 0:
            return
        game = tree.copy_root(trees.roots[index], scratch)
        leaf, choice = _select(game, nodes, trees, index)
        trees.failures[index] = tree.simulate(
            game, trees.streams, index, nodes, leaf, choice, new, trees.failures[index], prover
        )


@jit
def _select(game: State, nodes: StateArray, trees: _GuidedTrees, index: int) -> tuple[int, int]:
    """Descend to a leaf; return the leaf and the untried choice to play there, -1 if the game is over."""
    node = 0
    while True:
        number = trees.evaluation[index, node]
        if number:
            child, choice = _guided_choice(nodes, node, game.to_move, trees.priors[index, number])
        elif not is_empty(nodes[node].untried):
            child, choice = 0, draw_choice(nodes[node].untried, trees.streams, index)
        else:
            child, choice = best_child(nodes, node, EXPLORATION), -1
        if child == 0:
            return node, choice
        play_choice(game, nodes[child].choice)
        node = child


@jit
def _guided_choice(nodes: StateArray, index: int, mover: int, priors: npt.NDArray[np.float32]) -> tuple[int, int]:
    """Return the option with the highest Q + c P sqrt(N) / (1 + n) for the mover (PUCT).

    The result is (child, -1) for a tried choice and (0, choice) for an untried choice, which has the Q of the node
    itself. Proven children are skipped. They are losses for the mover, because a proven win would have proven the node.
    """
    node = nodes[index]
    weight = PRIOR_WEIGHT * np.sqrt(float(node.visits))
    best, best_choice, highest = 0, -1, -np.inf
    child = node.child
    while child:
        one = nodes[child]
        bound = one.wins[mover] / one.visits + weight * priors[one.choice] / (1.0 + one.visits)
        if one.winner < 0 and (best == 0 or bound > highest):
            best, highest = child, bound
        child = one.sibling
    value, choice = node.wins[mover] / node.visits, next_choice(node.untried, -1)
    while choice >= 0:
        bound = value + weight * priors[choice]
        if bound > highest or (best == 0 and best_choice < 0):
            best, best_choice, highest = 0, choice, bound
        choice = next_choice(node.untried, choice)
    return best, best_choice


@jit
def _keep_subtree(
    games: StateArray, old: _GuidedTrees, new: _GuidedTrees, evaluated: int, used: int, action: int
) -> tuple[int, int]:
    """Copy the subtree below an action of the root from tree 0 of `old` to tree 0 of `new`.

    `games[0]` is the position at the root; `evaluated` and `used` are the size of the old tree. Return the size of the
    new tree. If the action was not tried, or its node is proven and so may have no children, keep nothing and return
    (0, 0).
    """
    nodes, copies = old.nodes[0], new.nodes[0]
    top = nodes[0].child
    while top and choice_action(games[0], nodes[top].choice) != action:
        top = nodes[top].sibling
    if top == 0 or nodes[top].winner >= 0:
        return 0, 0
    origin, place = np.zeros(used, np.int32), np.full(used, -1, np.int32)
    copies[0], origin[0], place[top] = nodes[top], top, 0
    copies[0].parent = copies[0].sibling = 0
    count, index = 1, 0
    while index < count:
        child, before = nodes[origin[index]].child, -1
        while child:
            copies[count], origin[count], place[child] = nodes[child], child, count
            copies[count].parent = index
            if before < 0:
                copies[index].child = count
            else:
                copies[before].sibling = count
            before, child, count = count, nodes[child].sibling, count + 1
        index += 1
    number = 0
    for evaluation in range(1, evaluated + 1):
        node = old.evaluated[0, evaluation]
        if place[node] >= 0 and old.evaluation[0, node] == evaluation:
            number += 1
            new.evaluated[0, number], new.evaluation[0, place[node]] = place[node], number
            new.priors[0, number] = old.priors[0, evaluation]
    return number, count


@jit
def _report_all(trees: _GuidedTrees, scale: float, result: tree.TreeResult) -> None:
    """Write the results of all trees to `result`; actions are chosen with Gumbel noise times `scale`."""
    for index in range(len(trees.roots)):
        game, nodes = trees.roots[index], trees.nodes[index]
        tree.write_visits(game, nodes, result.visits[index])
        result.values[index] = nodes[0].wins / np.float32(nodes[0].visits)
        if scale == 0 or forced_action(game) >= 0 or nodes[0].winner >= 0:
            result.actions[index] = tree.most_visited(game, nodes)
        else:
            result.actions[index] = _draw_by_visits(game, nodes, scale, trees.streams, index)


@jit
def _draw_by_visits(game: State, nodes: StateArray, scale: float, streams: Streams, index: int) -> int:
    """Return the root's action with the highest log(visits) + noise; actions that are proven to lose are skipped.

    If all tried actions are proven to lose, the result is the action of `tree.most_visited`.
    """
    best, highest, child = 0, -np.inf, nodes[0].child
    while child:
        score = np.log(nodes[child].visits) + scale * gumbel_noise(streams, index)
        if score > highest and nodes[child].winner < 0:
            best, highest = child, score
        child = nodes[child].sibling
    return choice_action(game, nodes[best].choice) if best else tree.most_visited(game, nodes)
