"""Gumbel AlphaZero search for any game and any number of players, over many games at once.

Each simulation adds a leaf to the trees of all games; the network then evaluates these leaves in one batch.

The algorithm is that of Danihelka, Guez, Schrittwieser and Silver, "Policy improvement by planning with Gumbel", ICLR
2022 (equation numbers below are theirs), with one value per seat at every node, where each node maximises the value of
the seat to move, as in Petosa and Balch, "Multiplayer AlphaZero", 2019. Values are win probabilities, with draws
shared. Forced turns are played automatically and have no nodes.

The value of a position is a mix of the network's value and the result of playouts, as in Silver et al., "Mastering the
game of Go with deep neural networks and tree search", Nature 2016. Their errors are nearly independent, and here dozens
of playouts take less time than one network evaluation. The playouts of a position are those of a small tree search (see
`ninetka_agents.search.uct`).

If the game has a prover, it may find the certain winner at a leaf. Such a leaf counts as a finished game.

Trees are not kept from move to move. Sequential halving compares actions with equal numbers of visits; earlier visits,
which another root's halving distributed, would decide which actions are eliminated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, Agent, as_positions, check_threads, game_streams
from ninetka_agents.search import tree, uct
from ninetka_agents.search.choices import count_choices, is_empty, next_choice
from ninetka_agents.search.evaluation import Evaluate as Evaluate
from ninetka_agents.search.evaluation import checked
from ninetka_agents.search.gumbel_tree import (
    Floats,
    back_up,
    expand,
    mean,
    mix_in,
    node_dtype,
    reset_node,
    visits_of,
)
from ninetka_agents.search.knowledge import Prover, clear_prover, make_prover, proven_winner
from ninetka_agents.search.selection import (
    MOST_SCALE,
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
from ninetka_env.core.chance import Streams
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_count, check_scale
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.registry import limits_of
from ninetka_env.core.threads import Control, claim, run_shared
from ninetka_env.core.verbs import (
    Record,
    Records,
    choice_action,
    forced_action,
    is_over,
    play_choice,
    prepare_root,
    winner_of,
)

Ints: TypeAlias = npt.NDArray[np.int64]

Wanted: TypeAlias = npt.NDArray[np.int32]
"""A column of `halving_schedule`: entries by number of legal root actions, the last entry for all larger numbers."""

Desk: TypeAlias = tuple[Records, Records, Prover]
"""Workspace of the playouts from a leaf: nodes of a tree, a (1,) state, and a prover that proves nothing."""

CHUNK = 8
"""Number of games that a thread claims at once."""
MEMORY = 1 << 30
"""Maximum bytes of trees in memory; larger batches are searched in parts."""
MOST_SIMULATIONS, MOST_CONSIDERED = 1 << 20, 1 << 10
"""Maximum values of `SearchOptions`, because the schedule is an array of both dimensions."""


@dataclass(frozen=True)
class SearchOptions:
    """Options of the Gumbel search."""

    simulations: int = 64
    """Network evaluations (or finished games) per search, not counting the root."""
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
    """With two players, maximum number of nodes to prove the winner at each leaf; 0 for no proofs."""

    def __post_init__(self) -> None:
        """Raise `ValueError` for an option out of range."""
        check_count("simulations", self.simulations, most=MOST_SIMULATIONS)
        check_count("considered", self.considered, most=MOST_CONSIDERED)
        check_count("playouts", self.playouts, least=0, most=tree.MOST_SIMULATIONS)
        check_count("exact", self.exact, least=0)
        for name in ("gumbel_scale", "visit_offset", "value_scale"):
            check_scale(name, getattr(self, name))
        if not 0 <= self.playout_share <= 1:
            raise ValueError(f"playout_share={self.playout_share!r}: expected a number from 0 to 1")


class SearchResult(NamedTuple):
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


class Rollouts(NamedTuple):
    """The playouts from each position that the network evaluates."""

    playouts: int
    share: float
    """Their weight in the value of the position."""


class Trees(NamedTuple):
    """The trees of N games, and the leaves of the latest simulation."""

    roots: Records
    """(N,) games, in which forced turns are played automatically."""
    nodes: Records
    """(N, simulations + 1) nodes."""
    streams: Streams
    """(N,) uint64: one random stream per game."""
    noise: Doubles
    """(N, choices) float64: the root's Gumbel noise per legal choice."""
    leaves: Records
    """(N,) games: the leaf position of the latest simulation."""
    at: Ints
    """(N,) int64: the node of the leaf position."""
    rows: Ints
    """(N,) int64: the row of the leaf in the network's batch, -1 if its winner is certain."""


class GumbelSearch(Agent):
    """Searches batches of positions. Calls share the memory of trees, so use an object in one thread only."""

    name = "gumbel"

    def __init__(self, evaluate: Evaluate, options: SearchOptions | None = None, threads: int = 1) -> None:
        """Set the search up.

        Args:
            evaluate: policy and values of leaves; `ninetka_agents.net_agent.network_evaluate(network)` makes one. The
                search checks what it returns, see `ninetka_agents.search.evaluation.checked`.
            options: options of the search.
            threads: maximum number of threads; 0 for one per core. Results do not depend on it.
        """
        self.options = options or SearchOptions()
        self.evaluate = checked(evaluate)
        self.threads = check_threads(threads)
        self._schedule = halving_schedule(self.options.considered, self.options.simulations).T.copy()
        self._nodes: npt.NDArray[Any] = np.empty((0, 0))

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        return self.run(games, rng).actions

    def run(self, games: Records, rng: np.random.Generator) -> SearchResult:
        """Search positions.

        Args:
            games: (N,) states of one game, none of them over; not changed.
            rng: the source of random numbers; each game has its own stream (see `game_streams`), so the result of a
                game does not depend on the others. Not used without noise and playouts.
        """
        games = as_positions(games)
        games, streams, result = games.copy(), np.zeros(len(games), np.uint64), _empty_result(games)
        if len(games) and (self.options.gumbel_scale or self.options.playouts):
            streams[:] = game_streams(games, rng)
        at_once = max(1, MEMORY // (self._room(games) * node_dtype(games.dtype).itemsize))
        for first in range(0, len(games), at_once):
            part = slice(first, first + at_once)
            self._run(games[part], streams[part], SearchResult._make(array[part] for array in result))
        return result

    def _run(self, games: Records, streams: Streams, result: SearchResult) -> None:
        """Search positions together and write the result."""
        offset, scale = float(self.options.visit_offset), float(self.options.value_scale)
        scales = Scales(min(offset, MOST_SCALE), min(scale, MOST_SCALE))
        trees = self._make_trees(games, streams)
        _init_roots(games, trees)
        if self.options.gumbel_scale or self.options.playouts:
            _draw_gumbel(trees, min(float(self.options.gumbel_scale), MOST_SCALE))
        self._expand_and_back_up(trees)
        self._grow(trees, scales)
        _report_all(games, trees, scales, result)

    def _grow(self, trees: Trees, scales: Scales) -> None:
        """Make all simulations, each in all trees at once."""
        for new, wanted in enumerate(self._schedule, 1):
            self._share(_select_all, trees, wanted, new, scales, self.options.exact)
            self._expand_and_back_up(trees)

    def _room(self, games: Records) -> int:
        """Return the maximum number of nodes of a tree."""
        return 1 + self.options.simulations

    def _make_trees(self, games: Records, streams: Streams) -> Trees:
        """Return trees for these games; their nodes are not initialised."""
        count, dtype = len(games), node_dtype(games.dtype)
        if len(self._nodes) < count or self._nodes.dtype != dtype:
            self._nodes = np.empty((count, self._room(games)), dtype)
        (roots, leaves), (at, rows) = np.empty((2, count), games.dtype), np.zeros((2, count), np.int64)
        noise = np.zeros((count, limits_of(games.dtype).choices))
        return Trees(roots, self._nodes[:count], streams, noise, leaves, at, rows)

    def _expand_and_back_up(self, trees: Trees) -> None:
        """Expand each game's leaf and back up its values; leaves with a certain winner are not evaluated."""
        _number_undecided(trees)
        leaves, limits = trees.leaves[trees.rows >= 0], limits_of(trees.leaves.dtype)
        nothing = np.empty((0, limits.actions), np.float32), np.empty((0, limits.players), np.float32)
        rollouts = Rollouts(self.options.playouts, self.options.playout_share if self.options.playouts else 0.0)
        like = np.empty(0, tree.node_dtype(leaves.dtype))
        found = self.evaluate(leaves) if len(leaves) else nothing
        self._share(_expand_all, trees, *found, rollouts, like)

    def _share(self, kernel: Callable[..., None], trees: Trees, *arguments: object) -> None:
        run_shared(kernel, min(self.threads, -(-len(trees.roots) // CHUNK)), trees, *arguments)


def _empty_result(games: Records) -> SearchResult:
    count, limits = len(games), limits_of(games.dtype)
    by_action, by_seat = (count, limits.actions), (count, limits.players)
    policy, values, prior = (np.zeros(shape, np.float32) for shape in (by_action, by_seat, by_action))
    return SearchResult(np.zeros(count, np.int64), policy, values, np.zeros(by_action, np.int64), prior)


@jit
def _init_roots(games: Records, trees: Trees) -> None:
    """Initialise the root of each tree, at the position after forced turns."""
    for index in range(len(games)):
        trees.roots[index] = games[index]
        prepare_root(trees.roots[index])
        trees.leaves[index] = trees.roots[index]
        reset_node(trees.nodes[index, 0], trees.roots[index], 0, UNFINISHED)


@jit
def _draw_gumbel(trees: Trees, scale: float) -> None:
    """Draw Gumbel(0) noise times `scale` for the legal choices of each root."""
    for index in range(len(trees.streams)):
        legal = trees.nodes[index, 0].legal
        choice = next_choice(legal, -1)
        while choice >= 0:
            trees.noise[index, choice] = scale * gumbel_noise(trees.streams, index)
            choice = next_choice(legal, choice)


@jit
def _number_undecided(trees: Trees) -> None:
    """Number the leaves whose winner is not certain, and write the numbers to `rows`."""
    count = 0
    for index in range(len(trees.at)):
        undecided = trees.nodes[index, trees.at[index]].decided == 0
        trees.rows[index] = count if undecided else -1
        count += undecided


@jit
def _select_all(control: Control, trees: Trees, wanted: Wanted, new: int, scales: Scales, exact: int) -> None:
    """Descend to a leaf in each game that this thread claims: the node `new`, or a node where the game has ended."""
    scores, prover = np.empty(trees.noise.shape[1]), make_prover(trees.roots[0], exact)
    while True:
        first, stop = claim(control, 0, len(trees.roots), CHUNK)
        if first == stop:
            return
        for index in range(first, stop):
            nodes = trees.nodes[index]
            visits = wanted[min(len(wanted) - 1, count_choices(nodes[0].legal))]
            score_choices(nodes, 0, scales, scores)
            choice = root_choice(nodes, trees.noise[index], scores, visits)
            trees.leaves[index] = trees.roots[index]
            trees.at[index] = select(trees.leaves[index], nodes, choice, new, scales, scores, prover)


@jit
def select(game: Record, nodes: Records, choice: int, new: int, scales: Scales, scores: Doubles, prover: Prover) -> int:
    """Play `choice` at the root, then the selected choice of each node; return the new or decided node at the end."""
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
def _certain_winner(game: Record, prover: Prover) -> int:
    """Return the actual or proven winner; `DRAWN` for a draw, `UNFINISHED` if the winner is not known."""
    if is_over(game):
        return winner_of(game)
    clear_prover(game, prover)  # it serves several games, and results must not depend on other games
    return proven_winner(game, prover)


@jit
def _expand_all(
    control: Control, trees: Trees, logits: Floats, values: Floats, rollouts: Rollouts, like: Records
) -> None:
    """Expand and back up the leaves of the games that this thread claims; `like` has the dtype of playouts' nodes."""
    desk = np.zeros(rollouts.playouts + 1, like.dtype), trees.roots[:1].copy(), make_prover(trees.roots[0], 0)
    while True:
        first, stop = claim(control, 0, len(trees.roots), CHUNK)
        if first == stop:
            return
        for index in range(first, stop):
            leaf, row = trees.at[index], trees.rows[index]
            if row >= 0:
                node, game = trees.nodes[index, leaf], trees.leaves[index]
                expand(game, node, logits[row], values[row])
                if rollouts.playouts:
                    play_out(game, node, trees.streams, index, rollouts.share, desk)
            back_up(trees.nodes[index], leaf)


@jit
def play_out(game: Record, node: Record, streams: Streams, index: int, share: float, desk: Desk) -> None:
    """Make playouts, as many as `desk` has nodes below the root, and mix their result into the values of a node."""
    nodes, scratch, prover = desk
    uct.search_tree(game, streams, index, uct.EXPLORATION, nodes, scratch, prover)
    mix_in(node, nodes[0], share)


@jit
def _report_all(games: Records, trees: Trees, scales: Scales, result: SearchResult) -> None:
    """Write the result."""
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
def _write_values(nodes: Records, policy: Doubles, values: Floats) -> None:
    """Write each seat's mean of completed Q at the root under `policy`."""
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
def _write_actions(game: Record, nodes: Records, scores: Doubles, policy: Floats, visits: Ints, prior: Floats) -> None:
    """Write the improved policy, the visits and the network's policy at the root by action."""
    legal = nodes[0].legal
    choice = next_choice(legal, -1)
    while choice >= 0:
        action = choice_action(game, choice)
        policy[action] = scores[choice]
        visits[action] = visits_of(nodes, 0, choice)
        prior[action] = np.exp(nodes[0].logits[choice])
        choice = next_choice(legal, choice)
