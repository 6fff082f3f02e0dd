"""Gumbel AlphaZero search for 2, 3 and 4 players: trees of many games, one network batch per wave of simulations.

Danihelka, Guez, Schrittwieser and Silver, "Policy improvement by planning with Gumbel", ICLR 2022 (equation numbers
below are theirs), with one value per seat at every node and each node maximising its mover's, as in Petosa and Balch,
"Multiplayer AlphaZero", 2019. Values are chances to win; nothing is ever negated, so a seat that moves twice in a row
needs no special care. Forced passes are played by the rules and have no nodes.

A position is worth what the network says and what playouts from it say, mixed as in Silver et al., "Mastering the game
of Go with deep neural networks and tree search", Nature 2016: their errors have little to do with each other, and here
dozens of playouts cost less than asking the network once. The playouts of a position are those of a small tree search
(see `ninetka_agents.search.uct`): slides are won by reading ahead, for which simulations that each ask the network are too few.

Of a two-player movement phase, `ninetka_agents.ninetka.solver.proof` can tell who wins for certain: such a leaf counts as a finished game.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from ninetka_agents.search import uct as mcts
from ninetka_agents.agent import Actions, check_threads, game_streams
from ninetka_agents.ninetka.features import make_features
from ninetka_agents.ninetka.network import Network, as_inputs
from ninetka_agents.ninetka.solver.proof import Prover, forget, make_prover, proven_winner
from ninetka_env.core.jit import jit, lowest, popcount
from ninetka_env.core.threads import Control, claim, run_shared
from ninetka_env.core.chance import Streams, draw
from ninetka_env.games.ninetka.game import check_count, check_scale
from ninetka_env.games.ninetka.geometry import MAX_PLAYERS, NEUTRAL_SQUARE, NUM_ACTIONS, PASS
from ninetka_env.games.ninetka.rules import (
    GAME,
    Record,
    Records,
    bit_action,
    is_over,
    legal_bits,
    must_pass,
    pass_over,
    play_bit,
    winner_of,
)

Floats: TypeAlias = npt.NDArray[np.float32]
Doubles: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

Evaluate: TypeAlias = Callable[[Records], tuple[Floats, Floats]]
"""What a search asks of (N,) positions that are not over: (N, 122) float32 logarithms of the policy, any where
illegal, and (N, 4) float32 chances to win per relative seat, `(seat - to_move) % n`."""

Scales: TypeAlias = tuple[float, float]
"""c_visit and c_scale of equation 8."""

Rollouts: TypeAlias = tuple[int, float]
"""Playouts per position and their share of its value."""

BITS = len(NEUTRAL_SQUARE)
"""Bits of `legal_bits` at most."""
BATCH = 1024
"""Positions per forward pass."""
CHUNK = 8
"""Games that a thread claims at once."""

_FIELDS = np.dtype(
    [
        ("legal", np.int64),  # `legal_bits` of the position, 0 if its winner is certain
        ("sums", np.float64, (MAX_PLAYERS,)),  # per seat, the values backed up through this node, its own first
        ("values", np.float32, (MAX_PLAYERS,)),  # per seat, what network and playouts say here; the winner's is 1
        ("logits", np.float32, (BITS,)),  # per legal bit, the logarithm of the network's policy
        ("children", np.int32, (BITS,)),  # per legal bit, the node that it leads to, 0 for none yet
        ("visits", np.int32),
        ("parent", np.int32),
        ("mover", np.int8),  # the seat to move
    ],
    align=True,
)
_NOTHING = np.empty((0, NUM_ACTIONS), np.float32), np.empty((0, MAX_PLAYERS), np.float32)
NODE = np.dtype((np.record, _FIELDS))
"""A node of a tree. Games are not kept: each simulation plays down from the root again. Node 0 is the root."""


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
        check_count("simulations", self.simulations)
        check_count("considered", self.considered)
        check_count("playouts", self.playouts, least=0)
        check_count("exact", self.exact, least=0)
        for name in ("gumbel_scale", "visit_offset", "value_scale"):
            check_scale(name, getattr(self, name))
        if not 0 <= self.playout_share <= 1:
            raise ValueError(f"playout_share={self.playout_share!r}: expected a number from 0 to 1")


class SearchResult(NamedTuple):
    """What a search found out about N positions."""

    actions: Actions
    """(N,) int64: the chosen action, among the most visited the one of highest g + logits + sigma(q)."""
    policy: Floats
    """(N, 122) float32: the improved policy, softmax(logits + sigma(completed Q)), equation 11; the target to learn."""
    values: Floats
    """(N, 4) float32: chance to win per seat (absolute) if the improved policy moves now."""
    visits: Ints
    """(N, 122) int64: simulations per action; each row sums to the number of simulations."""
    prior: Floats
    """(N, 122) float32: the network's own policy."""


class _Trees(NamedTuple):
    """The trees of N games and where they grow."""

    roots: Records
    """(N,) games, in which the rules play forced passes."""
    nodes: Records
    """(N, simulations + 1) NODE."""
    streams: Streams
    """(N,) uint64: each game's chance."""
    noise: Doubles
    """(N, BITS) float64: the roots' Gumbel noise per legal bit."""
    leaves: Records
    """(N,) games, where the latest simulation ended."""
    at: Ints
    """(N,) int64: the node of that position."""
    rows: Ints
    """(N,) int64: where in the batch for the network it stands, -1 if its winner is certain."""


class GumbelSearch:
    """Searches batches of positions; keeps its trees' memory between calls, so one object serves one thread."""

    name = "gumbel"

    def __init__(self, evaluate: Evaluate, options: SearchOptions | None = None, threads: int = 1) -> None:
        """Set the search up.

        Args:
            evaluate: policy and values of leaves; `network_evaluate(network)` makes one.
            options: how to search.
            threads: at most this many threads grow trees; 0 for all that numba may use. Results do not depend on it.
        """
        self.options = options or SearchOptions()
        self.evaluate = evaluate
        self.threads = check_threads(threads)
        self._schedule = halving_schedule(self.options.considered, self.options.simulations)
        self._nodes = np.empty((0, self.options.simulations + 1), NODE)

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        return self.run(games, rng).actions

    def run(self, games: Records, rng: np.random.Generator) -> SearchResult:
        """Search positions.

        Args:
            games: (N,) records of dtype `ninetka_env.games.ninetka.rules.GAME`, none of them over, of any phase and number of
                players; not changed.
            rng: the source of the root's noise and of the playouts; each game draws from a stream of its own (see
                `game_streams`), so what is found in a game does not depend on the others. Not touched if there is
                neither noise nor playout.
        """
        count = len(games)
        result, scales = _empty_result(count), (float(self.options.visit_offset), float(self.options.value_scale))
        if count == 0:
            return result
        games, trees = games.copy(), self._make_trees(count)
        _plant(games, trees)
        if self.options.gumbel_scale or self.options.playouts:
            trees.streams[:] = game_streams(games, rng)
            _draw_gumbel(trees, float(self.options.gumbel_scale))
        self._absorb(trees)
        for simulation in range(self.options.simulations):
            self._share(_descend_all, trees, self._schedule, simulation, scales, self.options.exact)
            self._absorb(trees)
        _report_all(games, trees, scales, result)
        return result

    def _make_trees(self, count: int) -> _Trees:
        """Return trees of `count` games, with old nodes."""
        if len(self._nodes) < count:
            self._nodes = np.empty((count, self.options.simulations + 1), NODE)
        (roots, leaves), (at, rows) = np.empty((2, count), GAME), np.zeros((2, count), np.int64)
        streams, noise = np.zeros(count, np.uint64), np.zeros((count, BITS))
        return _Trees(roots, self._nodes[:count], streams, noise, leaves, at, rows)

    def _absorb(self, trees: _Trees) -> None:
        """Expand each game's leaf and back its values up; where the winner is certain, it needs no evaluation."""
        _number_unfinished(trees)
        leaves = trees.leaves[trees.rows >= 0]
        rollouts = (self.options.playouts, self.options.playout_share if self.options.playouts else 0.0)
        self._share(_absorb_all, trees, *(self.evaluate(leaves) if len(leaves) else _NOTHING), rollouts)

    def _share(self, kernel: Callable[..., None], trees: _Trees, *arguments: object) -> None:
        run_shared(kernel, min(self.threads, -(-len(trees.roots) // CHUNK)), trees, *arguments)


def network_evaluate(network: Network, batch: int = BATCH) -> Evaluate:
    """Return the function that asks a network, on its own device, `batch` positions at a time."""

    def evaluate(games: Records) -> tuple[Floats, Floats]:
        logits = np.empty((len(games), NUM_ACTIONS), np.float32)
        values = np.empty((len(games), MAX_PLAYERS), np.float32)
        with torch.inference_mode():
            for first in range(0, len(games), batch):
                part = slice(first, first + batch)
                outputs = network(as_inputs(make_features(games[part]), network.device))
                logits[part] = outputs.logits.log_softmax(-1).cpu().numpy()
                values[part] = outputs.values.cpu().numpy()
        return logits, values

    return evaluate


def halving_schedule(considered: int, simulations: int) -> npt.NDArray[np.int32]:
    """Return (considered + 1, simulations) int32: sequential halving at the root (Karnin, Koren and Somekh 2013).

    Row m is for m considered actions: each simulation goes to an action with exactly so many visits, the best one by
    g + logits + sigma(q). That picks the m best by g + logits first, then the better half of them, and so on, until the
    best two share what is left. Actions that fell out have fewer visits than any later entry. Row 0 is not used.
    """
    schedule = np.zeros((considered + 1, simulations), np.int32)
    schedule[1] = np.arange(simulations)
    for count in range(2, considered + 1):
        visits, left = [0] * count, count
        entries: list[int] = []
        while len(entries) < simulations:
            for _ in range(max(1, simulations // (math.ceil(math.log2(count)) * left))):
                entries += visits[:left]
                visits[:left] = [visit + 1 for visit in visits[:left]]
            left = max(2, left // 2)
        schedule[count] = entries[:simulations]
    return schedule


def _empty_result(count: int) -> SearchResult:
    by_action, by_seat = (count, NUM_ACTIONS), (count, MAX_PLAYERS)
    policy, values, prior = (np.zeros(shape, np.float32) for shape in (by_action, by_seat, by_action))
    return SearchResult(np.zeros(count, np.int64), policy, values, np.zeros(by_action, np.int64), prior)


@jit
def _plant(games: Records, trees: _Trees) -> None:
    """Make each tree a root; where the seat to move must pass, of the position after it."""
    for index in range(len(games)):
        trees.roots[index] = games[index]
        root = trees.roots[index]
        root.auto_pass = 1
        pass_over(root)
        trees.leaves[index] = trees.roots[index]
        _reset_node(trees.nodes[index, 0], root, 0, -1)


@jit
def _reset_node(node: Record, game: Record, parent: int, winner: int) -> None:
    """Make a node of a position; unless its winner is certain, the network's part is filled in when it is absorbed."""
    node.legal = legal_bits(game) if winner < 0 else 0
    node.visits, node.parent, node.mover = 0, parent, game.to_move
    for seat in range(MAX_PLAYERS):
        node.sums[seat] = 0.0
        node.values[seat] = 1.0 if seat == winner else 0.0


@jit
def _draw_gumbel(trees: _Trees, scale: float) -> None:
    """Draw Gumbel(0) noise, times `scale`, for the legal bits of each root."""
    for index in range(len(trees.streams)):
        bits = trees.nodes[index, 0].legal
        while bits:
            trees.noise[index, lowest(bits)] = scale * gumbel_noise(trees.streams, index)
            bits &= bits - 1


@jit
def gumbel_noise(streams: Streams, index: int) -> float:
    """Draw Gumbel(0) noise from stream `index`."""
    return float(-np.log(-np.log((float(draw(streams, index) >> np.uint64(11)) + 0.5) * 2.0**-53)))


@jit
def _number_unfinished(trees: _Trees) -> None:
    """Number the leaves whose winner is not certain, in `rows`."""
    count = 0
    for index in range(len(trees.at)):
        unfinished = trees.nodes[index, trees.at[index]].legal != 0
        trees.rows[index] = count if unfinished else -1
        count += unfinished


@jit
def _descend_all(
    control: Control, trees: _Trees, schedule: npt.NDArray[np.int32], simulation: int, scales: Scales, exact: int
) -> None:
    """Play down to a leaf in each game that this thread claims."""
    scores, prover = np.empty(BITS), make_prover(exact)
    while True:
        first, stop = claim(control, 0, len(trees.roots), CHUNK)
        if first == stop:
            return
        for index in range(first, stop):
            tree = trees.nodes[index]
            visits = schedule[min(len(schedule) - 1, popcount(tree[0].legal)), simulation]
            _score(tree, 0, scales, scores)
            bit = _root_bit(tree, trees.noise[index], scores, visits)
            trees.leaves[index] = trees.roots[index]
            trees.at[index] = _descend(trees.leaves[index], tree, bit, simulation + 1, scales, scores, prover)


@jit
def _descend(game: Record, tree: Records, bit: int, new: int, scales: Scales, scores: Doubles, prover: Prover) -> int:
    """Play `bit` at the root and then whatever each node selects; return the decided or new node where that ends."""
    index = 0
    while True:
        play_bit(game, bit)
        child = tree[index].children[bit]
        if child == 0:
            tree[index].children[bit] = new
            _reset_node(tree[new], game, index, _certain_winner(game, prover))
            return new
        index = child
        if tree[index].legal == 0:
            return index
        _score(tree, index, scales, scores)
        bit = _interior_bit(tree, index, scores)


@jit
def _certain_winner(game: Record, prover: Prover) -> int:
    """Return who has won, or wins for certain, -1 where that is not known."""
    if is_over(game):
        return winner_of(game)
    forget(prover)  # it goes from game to game, and one must not depend on another
    return proven_winner(game, prover)


@jit
def _root_bit(tree: Records, noise: Doubles, scores: Doubles, visits: int) -> int:
    """Return the action with so many visits that has the highest g + logits + sigma(q); see `halving_schedule`."""
    best, highest = -1, -np.inf
    bits = tree[0].legal
    while bits:
        bit = lowest(bits)
        bits &= bits - 1
        if _visits(tree, 0, bit) == visits and noise[bit] + scores[bit] > highest:
            best, highest = bit, noise[bit] + scores[bit]
    return best


@jit
def _interior_bit(tree: Records, index: int, scores: Doubles) -> int:
    """Return argmax over a of pi'(a) - N(a) / (1 + sum of N), equation 14; overwrites `scores` with pi'."""
    _softmax(tree[index].legal, scores)
    best, highest = -1, -np.inf
    weight = 1.0 / tree[index].visits
    bits = tree[index].legal
    while bits:
        bit = lowest(bits)
        bits &= bits - 1
        lag = scores[bit] - _visits(tree, index, bit) * weight
        if lag > highest:
            best, highest = bit, lag
    return best


@jit
def _visits(tree: Records, index: int, bit: int) -> int:
    """Return N(a)."""
    child = tree[index].children[bit]
    return tree[child].visits if child else 0


@jit
def _mean(tree: Records, index: int, seat: int) -> float:
    """Return the mean of a seat's values backed up through a node: q of the action that leads to it."""
    return tree[index].sums[seat] / tree[index].visits


@jit
def _score(tree: Records, index: int, scales: Scales, scores: Doubles) -> int:
    """Write logits + sigma(completed Q) of the mover per legal bit, equations 8 and 10; return the most visits."""
    mover, most = tree[index].mover, 0
    mixed = _mixed_value(tree, index, mover)
    bits = tree[index].legal
    while bits:
        bit = lowest(bits)
        bits &= bits - 1
        child = tree[index].children[bit]
        scores[bit] = _mean(tree, child, mover) if child else mixed
        most = max(most, _visits(tree, index, bit))
    scale = (scales[0] + most) * scales[1]
    bits = tree[index].legal
    while bits:
        bit = lowest(bits)
        bits &= bits - 1
        scores[bit] = tree[index].logits[bit] + scale * scores[bit]
    return most


@jit
def _mixed_value(tree: Records, index: int, seat: int) -> float:
    """Return v_mix of a seat, equation 33: the network's value and the visited actions' mean by prior, by visits."""
    weight = mean = 0.0
    bits = tree[index].legal
    while bits:
        child = tree[index].children[lowest(bits)]
        if child:
            prior = max(np.exp(tree[index].logits[lowest(bits)]), 1e-30)
            weight += prior
            mean += prior * _mean(tree, child, seat)
        bits &= bits - 1
    if weight == 0.0:
        return tree[index].values[seat]
    visits = tree[index].visits
    return (tree[index].values[seat] + (visits - 1) * mean / weight) / visits


@jit
def _softmax(legal: int, scores: Doubles) -> None:
    """Turn the scores of the legal bits into probabilities."""
    most, total = -np.inf, 0.0
    bits = legal
    while bits:
        most = max(most, scores[lowest(bits)])
        bits &= bits - 1
    bits = legal
    while bits:
        bit = lowest(bits)
        scores[bit] = np.exp(scores[bit] - most)
        total += scores[bit]
        bits &= bits - 1
    while legal:
        scores[lowest(legal)] /= total
        legal &= legal - 1


@jit
def _absorb_all(control: Control, trees: _Trees, logits: Floats, values: Floats, rollouts: Rollouts) -> None:
    """Expand and back up the leaves of the games that this thread claims."""
    nodes, scratch, prover = np.zeros(rollouts[0] + 1, mcts.NODE), np.zeros(1, GAME), make_prover(0)
    while True:
        first, stop = claim(control, 0, len(trees.roots), CHUNK)
        if first == stop:
            return
        for index in range(first, stop):
            leaf, row = trees.at[index], trees.rows[index]
            if row >= 0:
                _expand(trees.leaves[index], trees.nodes[index, leaf], logits[row], values[row])
                if rollouts[0]:
                    mcts.grow(trees.leaves[index], trees.streams, index, mcts.EXPLORATION, nodes, scratch, prover)
                    _mix_in(trees.nodes[index, leaf], nodes[0], rollouts[1])
            _back_up(trees.nodes[index], leaf)


@jit
def _expand(game: Record, node: Record, logits: Floats, values: Floats) -> None:
    """Fill in what the network says: the policy by legal bit, values by absolute seat."""
    bits = node.legal
    while bits:
        bit = lowest(bits)
        bits &= bits - 1
        node.logits[bit] = logits[bit_action(game, bit)]
        node.children[bit] = 0
    for seat in range(game.num_players):
        node.values[seat] = values[(seat - node.mover) % game.num_players]


@jit
def _mix_in(node: Record, root: Record, share: float) -> None:
    """Let the playouts counted at the root of a tree search have their share of the node's values."""
    for seat in range(MAX_PLAYERS):
        node.values[seat] += share * (root.wins[seat] / root.visits - node.values[seat])


@jit
def _back_up(tree: Records, leaf: int) -> None:
    """Add the leaf's values, seat by seat, to it and to every node above it."""
    index = leaf
    while True:
        tree[index].visits += 1
        for seat in range(MAX_PLAYERS):
            tree[index].sums[seat] += tree[leaf].values[seat]
        if index == 0:
            return
        index = tree[index].parent


@jit
def _report_all(games: Records, trees: _Trees, scales: Scales, result: SearchResult) -> None:
    """Fill the result in."""
    scores = np.empty(BITS)
    for index in range(len(games)):
        game, tree = games[index], trees.nodes[index]
        best = _root_bit(tree, trees.noise[index], scores, _score(tree, 0, scales, scores))
        _softmax(tree[0].legal, scores)
        _write_values(tree, scores, result.values[index])
        if must_pass(game):
            result.actions[index] = PASS
            result.visits[index, PASS] = tree[0].visits - 1
            result.policy[index, PASS] = result.prior[index, PASS] = 1.0
        else:
            result.actions[index] = bit_action(game, best)
            _write_actions(game, tree, scores, result.policy[index], result.visits[index], result.prior[index])


@jit
def _write_values(tree: Records, policy: Doubles, values: Floats) -> None:
    """Write each seat's mean completed Q at the root under `policy`."""
    for seat in range(MAX_PLAYERS):
        value, mixed = 0.0, _mixed_value(tree, 0, seat)
        bits = tree[0].legal
        while bits:
            bit = lowest(bits)
            child = tree[0].children[bit]
            value += policy[bit] * (_mean(tree, child, seat) if child else mixed)
            bits &= bits - 1
        values[seat] = value


@jit
def _write_actions(game: Record, tree: Records, scores: Doubles, policy: Floats, visits: Ints, prior: Floats) -> None:
    """Write improved policy, visits and the network's policy of the root by action."""
    bits = tree[0].legal
    while bits:
        bit = lowest(bits)
        action = bit_action(game, bit)
        policy[action] = scores[bit]
        visits[action] = _visits(tree, 0, bit)
        prior[action] = np.exp(tree[0].logits[bit])
        bits &= bits - 1
