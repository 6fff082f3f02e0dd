"""Gumbel search with a time limit: one position after another, with several leaves of a tree evaluated at once.

A network evaluates sixteen positions together in a quarter of the time that it needs for one after another. A single
tree has no other games to fill a batch with, so several of its leaves wait for a common evaluation. A waiting leaf
counts as visited, with the current mean value of its parent; when it is evaluated, the difference is added. These
visits steer the search away from the same leaf, as in "virtual loss", but without a penalty. If the search reaches a
waiting leaf nevertheless, the waiting leaves are evaluated first.

No evaluation starts after the time is up. Leaves that are still waiting then keep the value of their parent, which does
not change the mean of any action, so the choice depends on evaluated leaves only. To have few of them, waiting leaves
are evaluated early once their evaluation would take longer than the remaining time.
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
    GumbelSearch,
    Ints,
    Rollouts,
    SearchOptions,
    SearchResult,
    Trees,
    play_out,
    select,
)
from ninetka_agents.search.gumbel_tree import Floats, back_up, expand, mean, node_dtype
from ninetka_agents.search.knowledge import make_prover
from ninetka_agents.search.selection import Scales, halving_by_clock, root_choice, score_choices
from ninetka_env.core.chance import Streams
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_scale
from ninetka_env.core.registry import limits_of
from ninetka_env.core.verbs import Records, write_choices

BATCH = 16
"""Maximum number of waiting leaves."""
MEMORY = 1 << 28
"""Maximum bytes of a tree."""
COLLISION = -1  # the result of `_go_to_leaf` if it reaches a waiting leaf


class _Waiting(NamedTuple):
    """Leaves that wait for their evaluation by the network."""

    leaves: Records
    """(BATCH,) games: their positions."""
    at: Ints
    """(BATCH,) int64: their nodes."""


class GumbelByClock(GumbelSearch):
    """Searches positions one after another with a time limit; results depend on the machine."""

    def __init__(self, evaluate: Evaluate, options: SearchOptions, seconds: float) -> None:
        """Set the search up.

        Args:
            evaluate: policy and values of leaves.
            options: options of the search; `simulations` is not used.
            seconds: time per position.

        Raises:
            ValueError: if the time is out of range.
        """
        super().__init__(evaluate, options)
        self._seconds, self._start = check_scale("seconds", seconds), 0.0
        self._pace = 0.0
        """Seconds per leaf of the latest evaluation, including playouts."""

    def _run(self, games: Records, streams: Streams, result: SearchResult) -> None:
        for index in range(len(games)):
            self._start, part = time.perf_counter(), slice(index, index + 1)
            super()._run(games[part], streams[part], SearchResult._make(array[part] for array in result))

    def _room(self, games: Records) -> int:
        return max(2, MEMORY // node_dtype(games.dtype).itemsize)

    def _grow(self, trees: Trees, scales: Scales) -> None:
        """Make simulations until the time is up or the tree is full."""
        considered = min(self.options.considered, int(count_choices(trees.nodes[0, 0].legal)))
        waiting = _Waiting(np.empty(BATCH, trees.roots.dtype), np.zeros(BATCH, np.int64))
        new, count, exact = 1, 0, self.options.exact
        limits = limits_of(trees.roots.dtype)
        nothing = np.empty((0, limits.actions), np.float32), np.empty((0, limits.players), np.float32)
        self._expand(trees, waiting, 0, 0, nothing)  # compile in the first search, even if its time is up
        self._pace = time.perf_counter() - self._start  # the time of the root's evaluation
        for visits in islice(halving_by_clock(considered, self._start, self._seconds), trees.nodes.shape[1] - 1):
            at = _go_to_leaf(trees, visits, waiting, count, new, scales, exact)
            if at == COLLISION:
                if not self._take_in(trees, waiting, count):
                    return
                count = 0
                at = _go_to_leaf(trees, visits, waiting, count, new, scales, exact)
            new, count = new + (at == new), count + (trees.nodes[0, at].decided == 0)
            if count and (count == BATCH or self._time_left() < count * self._pace):
                if not self._take_in(trees, waiting, count):
                    return
                count = 0
        if count:
            self._take_in(trees, waiting, count)

    def _time_left(self) -> float:
        return self._start + self._seconds - time.perf_counter()

    def _take_in(self, trees: Trees, waiting: _Waiting, count: int) -> bool:
        """Evaluate the waiting leaves if there is time; return whether there is time left afterwards."""
        left = self._time_left()
        if left <= 0:
            return False
        answer = self.evaluate(waiting.leaves[:count])
        step = 1 if self.options.playouts else count  # playouts take long, so check the time in between
        for first in range(0, count, step):
            if first and self._time_left() <= 0:
                return False
            self._expand(trees, waiting, first, first + step, answer)
        self._pace = (left - self._time_left()) / count
        return self._time_left() > 0

    def _expand(self, trees: Trees, waiting: _Waiting, first: int, stop: int, answer: tuple[Floats, Floats]) -> None:
        rollouts = Rollouts(self.options.playouts, self.options.playout_share)
        like = np.empty(0, tree.node_dtype(trees.roots.dtype))
        _expand_waiting(trees, waiting, first, stop, *answer, rollouts, like)


@jit
def _go_to_leaf(trees: Trees, visits: int, waiting: _Waiting, count: int, new: int, scales: Scales, exact: int) -> int:
    """Descend from the root to a leaf, first by an action with `visits` visits, and back up the leaf's value.

    The value of an undecided leaf is an estimate, the mean value of its parent. Return the leaf's node, which is `new`
    unless the game ends at an older node. Return `COLLISION` and change no counts if the leaf is already waiting.
    """
    nodes, scores, prover = trees.nodes[0], np.empty(trees.noise.shape[1]), make_prover(trees.roots[0], exact)
    score_choices(nodes, 0, scales, scores)
    choice = root_choice(nodes, trees.noise[0], scores, visits)
    waiting.leaves[count] = trees.roots[0]
    at = select(waiting.leaves[count], nodes, choice, new, scales, scores, prover)
    node = nodes[at]
    if not node.decided:
        if node.visits:
            return COLLISION
        waiting.at[count] = at
        node.legal[:] = 0  # so that no search descends below the leaf until it is expanded
        for seat in range(len(node.values)):
            node.values[seat] = mean(nodes, node.parent, seat)
    back_up(nodes, at)
    return at


@jit
def _expand_waiting(
    trees: Trees,
    waiting: _Waiting,
    first: int,
    stop: int,
    logits: Floats,
    values: Floats,
    rollouts: Rollouts,
    like: Records,
) -> None:
    """Expand evaluated leaves, and replace their estimated values by those of the network and of playouts."""
    nodes = trees.nodes[0]
    desk = np.zeros(rollouts.playouts + 1, like.dtype), trees.roots[:1].copy(), make_prover(trees.roots[0], 0)
    for row in range(first, stop):
        game, at = waiting.leaves[row], waiting.at[row]
        node = nodes[at]
        seemed = node.values.copy()
        write_choices(game, node.legal)
        expand(game, node, logits[row], values[row])
        if rollouts.playouts:
            play_out(game, node, trees.streams, 0, rollouts.share, desk)
        _correct(nodes, at, node.values - seemed)


@jit
def _correct(nodes: Records, leaf: int, difference: Floats) -> None:
    """Add a difference, seat by seat, to the sums of a node and all its ancestors."""
    index = leaf
    while True:
        for seat in range(len(difference)):
            nodes[index].sums[seat] += difference[seat]
        if index == 0:
            return
        index = nodes[index].parent
