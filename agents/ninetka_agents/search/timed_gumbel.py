"""Gumbel search with a time limit: one position after another, with several leaves of a tree evaluated at once.

Start reading at `TimedGumbelSearch`, which is derived from `GumbelSearch` in `gumbel.py`.

A network evaluates sixteen positions in one batch in a quarter of the time that sixteen separate calls take. A single
tree has no other games to fill a batch with, so several of its leaves wait for a common evaluation. A waiting leaf
counts as visited, with the current mean value of its parent; when it is evaluated, the difference is added. These
visits steer the search away from the same leaf, as in "virtual loss", but without a penalty. If the search reaches a
waiting leaf nevertheless, the waiting leaves are evaluated first.

No evaluation starts after the time is up. Leaves that are still waiting then keep the value of their parent, which does
not change the mean of any action, so the choice depends on evaluated leaves only. To leave few leaves waiting, they are
evaluated early once their evaluation would take longer than the remaining time.
"""

from __future__ import annotations

import time
from itertools import islice
from typing import NamedTuple

import numpy as np

from ninetka_agents.search import tree
from ninetka_agents.search.choices import count_choices
from ninetka_agents.search.evaluation import Evaluate
from ninetka_agents.search.gumbel import (
    GumbelOptions,
    GumbelResult,
    GumbelSearch,
    GumbelTrees,
    Ints,
    PlayoutOptions,
    mix_in_playouts,
    select,
)
from ninetka_agents.search.gumbel_tree import Floats, back_up, expand, mean, node_dtype
from ninetka_agents.search.heuristics import make_prover
from ninetka_agents.search.selection import Scales, root_choice, score_choices, timed_halving
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_nonnegative
from ninetka_env.core.random_streams import Streams
from ninetka_env.core.registry import limits_of
from ninetka_env.core.verbs import StateArray, write_choices

BATCH_SIZE = 16
"""Maximum number of waiting leaves."""
MAX_TREE_BYTES = 1 << 28
"""Maximum bytes of a tree."""
COLLISION = -1  # the result of `_select_leaf` if it reaches a waiting leaf


class _PendingLeaves(NamedTuple):
    """Leaves that wait for their evaluation by the network."""

    leaves: StateArray
    """(BATCH_SIZE,) games: the positions of the leaves."""
    nodes: Ints
    """(BATCH_SIZE,) int64: the nodes of the leaves."""


class TimedGumbelSearch(GumbelSearch):
    """Searches positions one after another with a time limit; results depend on the machine."""

    def __init__(self, evaluate: Evaluate, options: GumbelOptions, seconds: float) -> None:
        """Create the search.

        Args:
            evaluate: policy and values of leaves.
            options: options of the search; `simulations` is not used.
            seconds: time per position.

        Raises:
            ValueError: if the time is out of range.
        """
        super().__init__(evaluate, options)
        self._seconds, self._start = check_nonnegative("seconds", seconds), 0.0
        self._seconds_per_leaf = 0.0
        """Seconds per leaf of the latest evaluation, including playouts."""

    def _run(self, games: StateArray, streams: Streams, result: GumbelResult) -> None:
        for index in range(len(games)):
            self._start, part = time.perf_counter(), slice(index, index + 1)
            super()._run(games[part], streams[part], GumbelResult._make(array[part] for array in result))

    def _max_nodes(self, games: StateArray) -> int:
        return max(2, MAX_TREE_BYTES // node_dtype(games.dtype).itemsize)

    def _grow(self, trees: GumbelTrees, scales: Scales) -> None:
        """Make simulations until the time is up or the tree is full."""
        considered = min(self.options.considered, int(count_choices(trees.nodes[0, 0].legal)))
        pending = _PendingLeaves(np.empty(BATCH_SIZE, trees.roots.dtype), np.zeros(BATCH_SIZE, np.int64))
        new, count, exact = 1, 0, self.options.exact
        limits = limits_of(trees.roots.dtype)
        no_outputs = np.empty((0, limits.actions), np.float32), np.empty((0, limits.players), np.float32)
        self._expand(trees, pending, 0, 0, no_outputs)  # compile in the first search, even if its time is up
        self._seconds_per_leaf = time.perf_counter() - self._start  # the time of the root's evaluation
        for visits in islice(timed_halving(considered, self._start, self._seconds), trees.nodes.shape[1] - 1):
            node = _select_leaf(trees, visits, pending, count, new, scales, exact)
            if node == COLLISION:
                if not self._evaluate_pending(trees, pending, count):
                    return
                count = 0
                node = _select_leaf(trees, visits, pending, count, new, scales, exact)
            new, count = new + (node == new), count + (trees.nodes[0, node].decided == 0)
            if count and (count == BATCH_SIZE or self._time_left() < count * self._seconds_per_leaf):
                if not self._evaluate_pending(trees, pending, count):
                    return
                count = 0
        if count:
            self._evaluate_pending(trees, pending, count)

    def _time_left(self) -> float:
        return self._start + self._seconds - time.perf_counter()

    def _evaluate_pending(self, trees: GumbelTrees, pending: _PendingLeaves, count: int) -> bool:
        """Evaluate the waiting leaves if there is time; return whether there is time left afterwards."""
        time_left = self._time_left()
        if time_left <= 0:
            return False
        answer = self.evaluate(pending.leaves[:count])
        step = 1 if self.options.playouts else count  # playouts take long, so check the time in between
        for first in range(0, count, step):
            if first and self._time_left() <= 0:
                return False
            self._expand(trees, pending, first, first + step, answer)
        self._seconds_per_leaf = (time_left - self._time_left()) / count
        return self._time_left() > 0

    def _expand(
        self, trees: GumbelTrees, pending: _PendingLeaves, first: int, stop: int, answer: tuple[Floats, Floats]
    ) -> None:
        playout_options = PlayoutOptions(self.options.playouts, self.options.playout_share)
        like = np.empty(0, tree.node_dtype(trees.roots.dtype))
        _expand_pending(trees, pending, first, stop, *answer, playout_options, like)


@jit
def _select_leaf(
    trees: GumbelTrees, visits: int, pending: _PendingLeaves, count: int, new: int, scales: Scales, exact: int
) -> int:
    """Descend from the root to a leaf, first by an action with `visits` visits, and back up the leaf's value.

    The value of an undecided leaf is an estimate, the mean value of its parent. Return the leaf's node, which is `new`
    unless the game ends at an older node. Return `COLLISION` and change no counts if the leaf is already waiting.
    """
    nodes, scores, prover = trees.nodes[0], np.empty(trees.noise.shape[1]), make_prover(trees.roots[0], exact)
    score_choices(nodes, 0, scales, scores)
    choice = root_choice(nodes, trees.noise[0], scores, visits)
    pending.leaves[count] = trees.roots[0]
    leaf = select(pending.leaves[count], nodes, choice, new, scales, scores, prover)
    node = nodes[leaf]
    if not node.decided:
        if node.visits:
            return COLLISION
        pending.nodes[count] = leaf
        node.legal[:] = 0  # so that no search descends below the leaf until it is expanded
        for seat in range(len(node.values)):
            node.values[seat] = mean(nodes, node.parent, seat)
    back_up(nodes, leaf)
    return leaf


@jit
def _expand_pending(
    trees: GumbelTrees,
    pending: _PendingLeaves,
    first: int,
    stop: int,
    logits: Floats,
    values: Floats,
    playout_options: PlayoutOptions,
    like: StateArray,
) -> None:
    """Expand evaluated leaves and replace their estimated values by the values from the network and the playouts."""
    nodes = trees.nodes[0]
    workspace = (
        np.zeros(playout_options.playouts + 1, like.dtype),
        trees.roots[:1].copy(),
        make_prover(trees.roots[0], 0),
    )
    for row in range(first, stop):
        game, leaf = pending.leaves[row], pending.nodes[row]
        node = nodes[leaf]
        estimate = node.values.copy()
        write_choices(game, node.legal)
        expand(game, node, logits[row], values[row])
        if playout_options.playouts:
            mix_in_playouts(game, node, trees.streams, 0, playout_options.share, workspace)
        _add_to_path(nodes, leaf, node.values - estimate)


@jit
def _add_to_path(nodes: StateArray, leaf: int, difference: Floats) -> None:
    """Add a difference, seat by seat, to the sums of a node and all its ancestors."""
    index = leaf
    while True:
        for seat in range(len(difference)):
            nodes[index].sums[seat] += difference[seat]
        if index == 0:
            return
        index = nodes[index].parent
