"""Gumbel AlphaZero search for any game and any number of players, over many games at once.

Start reading at `GumbelSearch`. The tree is in `gumbel_tree.py`, the choice of actions in `selection.py`;
`timed_gumbel.py` searches with a time limit.

Each simulation adds a leaf to the trees of all games; the network then evaluates these leaves in one batch.

The algorithm is from Danihelka, Guez, Schrittwieser and Silver, "Policy improvement by planning with Gumbel", ICLR
2022; equation numbers below refer to this paper. As in Petosa and Balch, "Multiplayer AlphaZero", 2019, every node has
one value per seat, and the seat to move maximises its own value. Values are win probabilities, with draws shared.
Forced turns are played automatically and have no nodes.

The value of a position is a mix of the network's value and the result of playouts, as in Silver et al., "Mastering the
game of Go with deep neural networks and tree search", Nature 2016. The errors of both are nearly independent, and here
dozens of playouts take less time than one network evaluation. The playouts of a position are made by a small tree
search (see `ninetka_agents.search.uct`).

If the game has a prover, it may find the certain winner at a leaf. Such a leaf counts as a finished game.

Trees are not kept from move to move. Sequential halving compares actions with equal numbers of visits. Visits from an
earlier search, which had another root, would decide which actions are eliminated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, Agent, as_unfinished_states, check_threads, game_streams
from ninetka_agents.search import tree, uct
from ninetka_agents.search.choices import count_choices, is_empty, next_choice
from ninetka_agents.search.evaluation import Evaluate as Evaluate
from ninetka_agents.search.evaluation import checked
from ninetka_agents.search.gumbel_tree import (
    Floats,
    back_up,
    expand,
    mean,
    mix_in_values,
    node_dtype,
    reset_node,
    visits_of,
)
from ninetka_agents.search.heuristics import Prover, clear_prover, make_prover, proven_winner
from ninetka_agents.search.selection import (
    MAX_SCALE,
    Doubles,
    Scales,
    gumbel_noise,
    halving_schedule,
    interior_choice,
    mixed_value,
    root_choice,
    score_choices,
    softmax,
)
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_count, check_nonnegative
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.random_streams import Streams
from ninetka_env.core.registry import limits_of
from ninetka_env.core.threads import Control, claim, run_shared
from ninetka_env.core.verbs import (
    State,
    StateArray,
    choice_action,
    forced_action,
    is_over,
    play_choice,
    prepare_root,
    winner_of,
)

Ints: TypeAlias = npt.NDArray[np.int64]

ScheduleColumn: TypeAlias = npt.NDArray[np.int32]
"""A column of `halving_schedule`, indexed by the number of legal root actions; larger numbers use the last entry."""

PlayoutWorkspace: TypeAlias = tuple[StateArray, StateArray, Prover]
"""Workspace of the playouts from a leaf: nodes of a tree, a (1,) state, and a prover that proves nothing."""

GAMES_PER_CLAIM = 8
"""Number of games that a thread claims at once."""
MAX_TREE_BYTES = 1 << 30
"""Maximum bytes of trees in memory; larger batches are searched in parts."""
MAX_SIMULATIONS, MAX_CONSIDERED = 1 << 20, 1 << 10
"""Maximum values of `simulations` and `considered` in `GumbelOptions`; `halving_schedule` is an array of this size."""


@dataclass(frozen=True)
class GumbelOptions:
    """Options of the Gumbel search."""

    simulations: int = 64
    """Simulations per search. Each evaluates a position with the network or reaches a certain winner. The evaluation of
    the root does not count."""
    considered: int = 16
    """Number of root actions in sequential halving (the paper's m)."""
    gumbel_scale: float = 1.0
    """Factor of the root's Gumbel noise; 0 searches without noise, for play."""
    visit_offset: float = 50.0
    """c_visit of equation 8, as in the paper."""
    value_scale: float = 1.0
    """c_scale of equation 8, as in the paper for board games; values here are win probabilities, 0..1."""
    playouts: int = 128
    """Playouts from each position that the network evaluates; 0 for none."""
    playout_share: float = 0.5
    """Weight of the playouts in the value of a position (lambda of Silver et al., 2016); not used without playouts."""
    exact: int = 0
    """With two players, maximum number of nodes that the game's prover visits per leaf; 0 for no proofs."""

    def __post_init__(self) -> None:
        """Raise `ValueError` for an option out of range."""
        check_count("simulations", self.simulations, maximum=MAX_SIMULATIONS)
        check_count("considered", self.considered, maximum=MAX_CONSIDERED)
        check_count("playouts", self.playouts, minimum=0, maximum=tree.MAX_SIMULATIONS)
        check_count("exact", self.exact, minimum=0)
        for name in ("gumbel_scale", "visit_offset", "value_scale"):
            check_nonnegative(name, getattr(self, name))
        if not 0 <= self.playout_share <= 1:
            raise ValueError(f"playout_share={self.playout_share!r}: expected a number from 0 to 1")


class GumbelResult(NamedTuple):
    """Result of a search for N positions, of a game of A actions and at most P players."""

    actions: Actions
    """(N,) int64: the chosen action, the one with the highest g + logits + sigma(q) among the most visited."""
    policy: Floats
    """(N, A) float32: the improved policy, softmax(logits + sigma(completed Q)), equation 11; the policy target."""
    values: Floats
    """(N, P) float32: win probability per absolute seat, draws shared, if the improved policy makes the next move."""
    visits: Ints
    """(N, A) int64: simulations per action; each row sums to the number of simulations."""
    prior: Floats
    """(N, A) float32: the network's policy."""


class PlayoutOptions(NamedTuple):
    """The playouts from each position that the network evaluates."""

    playouts: int
    share: float
    """Weight of the playouts in the value of a position."""


class GumbelTrees(NamedTuple):
    """The trees of N games, and the leaves of the latest simulation."""

    roots: StateArray
    """(N,) games after forced turns."""
    nodes: StateArray
    """(N, simulations + 1) nodes."""
    streams: Streams
    """(N,) uint64: one random stream per game."""
    noise: Doubles
    """(N, choices) float64: the root's Gumbel noise per legal choice."""
    leaves: StateArray
    """(N,) games: the leaf position of the latest simulation."""
    leaf_nodes: Ints
    """(N,) int64: the node of the leaf position."""
    batch_rows: Ints
    """(N,) int64: the row of the leaf in the network's batch, -1 if its winner is certain."""


class GumbelSearch(Agent):
    """Searches batches of positions. Calls share the memory of trees, so use an object in one thread only."""

    name = "gumbel"

    def __init__(self, evaluate: Evaluate, options: GumbelOptions | None = None, threads: int = 1) -> None:
        """Create the search.

        Args:
            evaluate: policy and values of leaves. `ninetka_agents.search.evaluation.observation_evaluate` makes one of
                your own network, `ninetka_agents.net_agent.network_evaluate` of a network of this project. The search
                checks what it returns, see `ninetka_agents.search.evaluation.checked`.
            options: options of the search.
            threads: maximum number of threads; 0 for one per core. Results do not depend on it.
        """
        self.options = options or GumbelOptions()
        self.evaluate = checked(evaluate)
        self.threads = check_threads(threads)
        self._schedule = halving_schedule(self.options.considered, self.options.simulations).T.copy()
        self._nodes: npt.NDArray[Any] = np.empty((0, 0))

    def act(self, games: StateArray, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        return self.run(games, rng).actions

    def run(self, games: StateArray, rng: np.random.Generator) -> GumbelResult:
        """Search positions.

        Args:
            games: (N,) states of one game, none of them over; not changed.
            rng: the source of random numbers; each game has its own stream (see `game_streams`), so the result of a
                game does not depend on the others. Not used without noise and playouts.
        """
        games = as_unfinished_states(games)
        games, streams, result = games.copy(), np.zeros(len(games), np.uint64), _empty_result(games)
        if len(games) and (self.options.gumbel_scale or self.options.playouts):
            streams[:] = game_streams(games, rng)
        at_once = max(1, MAX_TREE_BYTES // (self._max_nodes(games) * node_dtype(games.dtype).itemsize))
        for first in range(0, len(games), at_once):
            part = slice(first, first + at_once)
            self._run(games[part], streams[part], GumbelResult._make(array[part] for array in result))
        return result

    def _run(self, games: StateArray, streams: Streams, result: GumbelResult) -> None:
        """Search positions together and write the result."""
        offset, scale = float(self.options.visit_offset), float(self.options.value_scale)
        scales = Scales(min(offset, MAX_SCALE), min(scale, MAX_SCALE))
        trees = self._make_trees(games, streams)
        _init_roots(games, trees)
        if self.options.gumbel_scale or self.options.playouts:
            _draw_gumbel(trees, min(float(self.options.gumbel_scale), MAX_SCALE))
        self._expand_and_back_up(trees)
        self._grow(trees, scales)
        _report_all(games, trees, scales, result)

    def _grow(self, trees: GumbelTrees, scales: Scales) -> None:
        """Make all simulations, each in all trees at once."""
        for new, column in enumerate(self._schedule, 1):
            self._run_kernel(_select_all, trees, column, new, scales, self.options.exact)
            self._expand_and_back_up(trees)

    def _max_nodes(self, games: StateArray) -> int:
        """Return the maximum number of nodes of a tree."""
        return 1 + self.options.simulations

    def _make_trees(self, games: StateArray, streams: Streams) -> GumbelTrees:
        """Return trees for these games; their nodes are not initialised."""
        count, dtype = len(games), node_dtype(games.dtype)
        if len(self._nodes) < count or self._nodes.dtype != dtype:
            self._nodes = np.empty((count, self._max_nodes(games)), dtype)
        (roots, leaves), (leaf_nodes, batch_rows) = np.empty((2, count), games.dtype), np.zeros((2, count), np.int64)
        noise = np.zeros((count, limits_of(games.dtype).choices))
        return GumbelTrees(roots, self._nodes[:count], streams, noise, leaves, leaf_nodes, batch_rows)

    def _expand_and_back_up(self, trees: GumbelTrees) -> None:
        """Expand each game's leaf and back up its values; leaves with a certain winner are not evaluated."""
        _number_undecided(trees)
        leaves, limits = trees.leaves[trees.batch_rows >= 0], limits_of(trees.leaves.dtype)
        no_outputs = np.empty((0, limits.actions), np.float32), np.empty((0, limits.players), np.float32)
        playout_options = PlayoutOptions(
            self.options.playouts, self.options.playout_share if self.options.playouts else 0.0
        )
        like = np.empty(0, tree.node_dtype(leaves.dtype))
        outputs = self.evaluate(leaves) if len(leaves) else no_outputs
        self._run_kernel(_expand_all, trees, *outputs, playout_options, like)

    def _run_kernel(self, kernel: Callable[..., None], trees: GumbelTrees, *arguments: object) -> None:
        run_shared(kernel, min(self.threads, -(-len(trees.roots) // GAMES_PER_CLAIM)), trees, *arguments)


def _empty_result(games: StateArray) -> GumbelResult:
    count, limits = len(games), limits_of(games.dtype)
    by_action, by_seat = (count, limits.actions), (count, limits.players)
    policy, values, prior = (np.zeros(shape, np.float32) for shape in (by_action, by_seat, by_action))
    return GumbelResult(np.zeros(count, np.int64), policy, values, np.zeros(by_action, np.int64), prior)


@jit
def _init_roots(games: StateArray, trees: GumbelTrees) -> None:
    """Initialise the root of each tree, at the position after forced turns."""
    for index in range(len(games)):
        trees.roots[index] = games[index]
        prepare_root(trees.roots[index])
        trees.leaves[index] = trees.roots[index]
        reset_node(trees.nodes[index, 0], trees.roots[index], 0, UNFINISHED)


@jit
def _draw_gumbel(trees: GumbelTrees, scale: float) -> None:
    """Draw Gumbel(0) noise times `scale` for the legal choices of each root."""
    for index in range(len(trees.streams)):
        legal = trees.nodes[index, 0].legal
        choice = next_choice(legal, -1)
        while choice >= 0:
            trees.noise[index, choice] = scale * gumbel_noise(trees.streams, index)
            choice = next_choice(legal, choice)


@jit
def _number_undecided(trees: GumbelTrees) -> None:
    """Number the leaves whose winner is not certain, and write the numbers to `batch_rows`."""
    count = 0
    for index in range(len(trees.leaf_nodes)):
        undecided = trees.nodes[index, trees.leaf_nodes[index]].decided == 0
        trees.batch_rows[index] = count if undecided else -1
        count += undecided


@jit
def _select_all(
    control: Control, trees: GumbelTrees, column: ScheduleColumn, new: int, scales: Scales, exact: int
) -> None:
    """Descend to a leaf in each game that this thread claims: the new node `new`, or a node whose winner is certain."""
    scores, prover = np.empty(trees.noise.shape[1]), make_prover(trees.roots[0], exact)
    while True:
        first, stop = claim(control, 0, len(trees.roots), GAMES_PER_CLAIM)
        if first == stop:
            return
        for index in range(first, stop):
            nodes = trees.nodes[index]
            visits = column[min(len(column) - 1, count_choices(nodes[0].legal))]
            score_choices(nodes, 0, scales, scores)
            choice = root_choice(nodes, trees.noise[index], scores, visits)
            trees.leaves[index] = trees.roots[index]
            trees.leaf_nodes[index] = select(trees.leaves[index], nodes, choice, new, scales, scores, prover)


@jit
def select(
    game: State, nodes: StateArray, choice: int, new: int, scales: Scales, scores: Doubles, prover: Prover
) -> int:
    """Play `choice` at the root and the selected choice at each further node, in `game`; return the leaf.

    The leaf is the added node `new`, or an existing node without legal choices.
    """
    index = 0
    while True:
        play_choice(game, choice)
        child = nodes[index].children[choice]
        if child == 0:
            nodes[index].children[choice] = new
            reset_node(nodes[new], game, index, _certain_winner(game, prover))
            return new
        index = child
        if is_empty(nodes[index].legal):
            return index
        score_choices(nodes, index, scales, scores)
        choice = interior_choice(nodes, index, scores)


@jit
def _certain_winner(game: State, prover: Prover) -> int:
    """Return the winner of a finished game or the proven winner: a seat, `DRAWN`, or `UNFINISHED` if unknown."""
    if is_over(game):
        return winner_of(game)
    clear_prover(game, prover)  # the prover serves several games; results must not depend on other games
    return proven_winner(game, prover)


@jit
def _expand_all(
    control: Control,
    trees: GumbelTrees,
    logits: Floats,
    values: Floats,
    playout_options: PlayoutOptions,
    like: StateArray,
) -> None:
    """Expand and back up the leaves of the games that this thread claims; `like` has the dtype of playouts' nodes."""
    workspace = (
        np.zeros(playout_options.playouts + 1, like.dtype),
        trees.roots[:1].copy(),
        make_prover(trees.roots[0], 0),
    )
    while True:
        first, stop = claim(control, 0, len(trees.roots), GAMES_PER_CLAIM)
        if first == stop:
            return
        for index in range(first, stop):
            leaf, row = trees.leaf_nodes[index], trees.batch_rows[index]
            if row >= 0:
                node, game = trees.nodes[index, leaf], trees.leaves[index]
                expand(game, node, logits[row], values[row])
                if playout_options.playouts:
                    mix_in_playouts(game, node, trees.streams, index, playout_options.share, workspace)
            back_up(trees.nodes[index], leaf)


@jit
def mix_in_playouts(
    game: State, node: State, streams: Streams, index: int, share: float, workspace: PlayoutWorkspace
) -> None:
    """Make playouts and mix their result into the values of a node.

    The number of playouts is the number of nodes in `workspace` minus 1.
    """
    nodes, scratch, prover = workspace
    uct.search_tree(game, streams, index, uct.EXPLORATION, nodes, scratch, prover)
    mix_in_values(node, nodes[0], share)


@jit
def _report_all(games: StateArray, trees: GumbelTrees, scales: Scales, result: GumbelResult) -> None:
    """Write the results of all trees to `result`."""
    scores = np.empty(trees.noise.shape[1])
    for index in range(len(games)):
        game, nodes = games[index], trees.nodes[index]
        best = root_choice(nodes, trees.noise[index], scores, score_choices(nodes, 0, scales, scores))
        softmax(nodes[0].legal, scores)
        _write_values(nodes, scores, result.values[index])
        forced = forced_action(game)
        if forced >= 0:
            result.actions[index] = forced
            result.visits[index, forced] = nodes[0].visits - 1
            result.policy[index, forced] = result.prior[index, forced] = 1.0
        else:
            result.actions[index] = choice_action(game, best)
            _write_actions(game, nodes, scores, result.policy[index], result.visits[index], result.prior[index])


@jit
def _write_values(nodes: StateArray, policy: Doubles, values: Floats) -> None:
    """Write each seat's mean of completed Q at the root, weighted by `policy`, to `values`."""
    legal = nodes[0].legal
    for seat in range(len(values)):
        value, mixed = 0.0, mixed_value(nodes, 0, seat)
        choice = next_choice(legal, -1)
        while choice >= 0:
            child = nodes[0].children[choice]
            value += policy[choice] * (mean(nodes, child, seat) if child else mixed)
            choice = next_choice(legal, choice)
        values[seat] = value


@jit
def _write_actions(
    game: State, nodes: StateArray, scores: Doubles, policy: Floats, visits: Ints, prior: Floats
) -> None:
    """Write the improved policy, the visits and the network's policy at the root by action."""
    legal = nodes[0].legal
    choice = next_choice(legal, -1)
    while choice >= 0:
        action = choice_action(game, choice)
        policy[action] = scores[choice]
        visits[action] = visits_of(nodes, 0, choice)
        prior[action] = np.exp(nodes[0].logits[choice])
        choice = next_choice(legal, choice)
