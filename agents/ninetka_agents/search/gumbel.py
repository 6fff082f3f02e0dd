"""Gumbel AlphaZero search for any game and any number of players: trees of many games, one network batch per wave.

Danihelka, Guez, Schrittwieser and Silver, "Policy improvement by planning with Gumbel", ICLR 2022 (equation numbers
below are theirs), with one value per seat at every node and each node maximising its mover's, as in Petosa and Balch,
"Multiplayer AlphaZero", 2019. Values are chances to win, draws shared. Forced turns are played by the rules and have no
nodes.

A position is worth what the network says and what playouts from it say, mixed as in Silver et al., "Mastering the game
of Go with deep neural networks and tree search", Nature 2016: their errors have little to do with each other, and here
dozens of playouts cost less than asking the network once. The playouts of a position are those of a small tree search
(see `ninetka_agents.search.uct`).

Where the game brings a prover, it can tell of a leaf who wins for certain: such a leaf counts as a finished game.

No tree is kept from move to move: sequential halving compares actions that it has visited equally often, and visits
from before, which went where another root's halving sent them, would decide who falls out.
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
"""By the number of actions considered at the root, the last entry for all others: a column of `halving_schedule`."""

Desk: TypeAlias = tuple[Records, Records, Prover]
"""What playouts from a leaf are made with: nodes of a tree, a game, no prover to speak of."""

CHUNK = 8
"""Games that a thread claims at once."""
MEMORY = 1 << 30
"""Bytes of trees that grow at once; batches that need more are searched in parts."""
MOST_SIMULATIONS, MOST_CONSIDERED = 1 << 20, 1 << 10
"""Of a search: its schedule is a table of both."""


@dataclass(frozen=True)
class SearchOptions:
    """How to search."""

    simulations: int = 64
    """Network evaluations (or finished games) per search, beside that of the root."""
    considered: int = 16
    """Root actions among which sequential halving chooses (the paper's m)."""
    gumbel_scale: float = 1.0
    """Times the root's Gumbel noise; 0 searches without chance, for play."""
    visit_offset: float = 50.0
    """c_visit of equation 8, as in the paper."""
    value_scale: float = 1.0
    """c_scale of equation 8, as the paper has it for board games; values here are chances to win, 0..1."""
    playouts: int = 128
    """Playouts of the tree search from each position that the network evaluates; 0 for none."""
    playout_share: float = 0.5
    """What they count in its value (the paper's lambda); the rest is the network's. Without playouts, all is."""
    exact: int = 0
    """With two players, most nodes to prove who wins at each leaf of the movement phase; 0 for none."""

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
    """What a search found out about N positions, of a game of A actions and at most P players."""

    actions: Actions
    """(N,) int64: the chosen action, among the most visited the one of highest g + logits + sigma(q)."""
    policy: Floats
    """(N, A) float32: the improved policy, softmax(logits + sigma(completed Q)), equation 11; the target to learn."""
    values: Floats
    """(N, P) float32: chance to win per seat (absolute), draws shared, if the improved policy moves now."""
    visits: Ints
    """(N, A) int64: simulations per action; each row sums to the number of simulations."""
    prior: Floats
    """(N, A) float32: the network's own policy."""


class Rollouts(NamedTuple):
    """The playouts from each position that the network evaluates."""

    playouts: int
    share: float
    """What they count in its value."""


class Trees(NamedTuple):
    """The trees of N games and where they grow."""

    roots: Records
    """(N,) games, in which the rules play forced turns."""
    nodes: Records
    """(N, simulations + 1) nodes."""
    streams: Streams
    """(N,) uint64: each game's chance."""
    noise: Doubles
    """(N, choices) float64: the roots' Gumbel noise per legal choice."""
    leaves: Records
    """(N,) games, where the latest simulation ended."""
    at: Ints
    """(N,) int64: the node of that position."""
    rows: Ints
    """(N,) int64: where in the batch for the network it stands, -1 if its winner is certain."""


class GumbelSearch(Agent):
    """Searches batches of positions; keeps its trees' memory between calls, so one object serves one thread."""

    name = "gumbel"

    def __init__(self, evaluate: Evaluate, options: SearchOptions | None = None, threads: int = 1) -> None:
        """Set the search up.

        Args:
            evaluate: policy and values of leaves; `ninetka_agents.net_agent.network_evaluate(network)` makes one. The
                search checks what it returns, see `ninetka_agents.search.evaluation.checked`.
            options: how to search.
            threads: at most this many threads grow trees; 0 for one per core. Results do not depend on it.
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
            games: (N,) records of one game, none of them over; not changed.
            rng: the source of the root's noise and of the playouts; each game draws from a stream of its own (see
                `game_streams`), so what is found in a game does not depend on the others. Not touched if there is
                neither noise nor playout.
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
        """Search positions together and fill the result in."""
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
        """Go through the simulations, each in all trees at once."""
        for new, wanted in enumerate(self._schedule, 1):
            self._share(_select_all, trees, wanted, new, scales, self.options.exact)
            self._expand_and_back_up(trees)

    def _room(self, games: Records) -> int:
        """Return how many nodes a tree has at most."""
        return 1 + self.options.simulations

    def _make_trees(self, games: Records, streams: Streams) -> Trees:
        """Return trees of so many games, with old nodes."""
        count, dtype = len(games), node_dtype(games.dtype)
        if len(self._nodes) < count or self._nodes.dtype != dtype:
            self._nodes = np.empty((count, self._room(games)), dtype)
        (roots, leaves), (at, rows) = np.empty((2, count), games.dtype), np.zeros((2, count), np.int64)
        noise = np.zeros((count, limits_of(games.dtype).choices))
        return Trees(roots, self._nodes[:count], streams, noise, leaves, at, rows)

    def _expand_and_back_up(self, trees: Trees) -> None:
        """Expand each game's leaf and back its values up; where the winner is certain, it needs no evaluation."""
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
    """Make each tree a root; where a turn is forced, of the position after it."""
    for index in range(len(games)):
        trees.roots[index] = games[index]
        prepare_root(trees.roots[index])
        trees.leaves[index] = trees.roots[index]
        reset_node(trees.nodes[index, 0], trees.roots[index], 0, UNFINISHED)


@jit
def _draw_gumbel(trees: Trees, scale: float) -> None:
    """Draw Gumbel(0) noise, times `scale`, for the legal choices of each root."""
    for index in range(len(trees.streams)):
        legal = trees.nodes[index, 0].legal
        choice = next_choice(legal, -1)
        while choice >= 0:
            trees.noise[index, choice] = scale * gumbel_noise(trees.streams, index)
            choice = next_choice(legal, choice)


@jit
def _number_undecided(trees: Trees) -> None:
    """Number the leaves whose winner is not certain, in `rows`."""
    count = 0
    for index in range(len(trees.at)):
        undecided = trees.nodes[index, trees.at[index]].decided == 0
        trees.rows[index] = count if undecided else -1
        count += undecided


@jit
def _select_all(control: Control, trees: Trees, wanted: Wanted, new: int, scales: Scales, exact: int) -> None:
    """Play down to a leaf in each game that this thread claims, the node `new` unless the tree ends there."""
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
    """Play `choice` at the root and then whatever each node selects; return the decided or new node where that ends."""
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
    """Return who has won, or wins for certain; `DRAWN` for a draw, `UNFINISHED` where that is not known."""
    if is_over(game):
        return winner_of(game)
    clear_prover(game, prover)  # it goes from game to game, and one must not depend on another
    return proven_winner(game, prover)


@jit
def _expand_all(
    control: Control, trees: Trees, logits: Floats, values: Floats, rollouts: Rollouts, like: Records
) -> None:
    """Expand and back up the leaves of the games that this thread claims; `like` has the type of playouts' nodes."""
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
    """Let playouts from a position, as many as `desk` has nodes below its root, have their share of its values."""
    nodes, scratch, prover = desk
    uct.search_tree(game, streams, index, uct.EXPLORATION, nodes, scratch, prover)
    mix_in(node, nodes[0], share)


@jit
def _report_all(games: Records, trees: Trees, scales: Scales, result: SearchResult) -> None:
    """Fill the result in."""
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
    """Write each seat's mean completed Q at the root under `policy`."""
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
    """Write improved policy, visits and the network's policy of the root by action."""
    legal = nodes[0].legal
    choice = next_choice(legal, -1)
    while choice >= 0:
        action = choice_action(game, choice)
        policy[action] = scores[choice]
        visits[action] = visits_of(nodes, 0, choice)
        prior[action] = np.exp(nodes[0].logits[choice])
        choice = next_choice(legal, choice)
