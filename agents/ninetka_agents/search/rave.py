"""Monte Carlo tree search with rapid action value estimation (RAVE), for any game.

While an action has few visits at a node, its value is estimated from all simulations that visit the node and play the
action later. See S. Gelly and D. Silver, "Combining online and offline knowledge in UCT", ICML 2007, and their survey
of 2011, cited at `rave_tree.best_child`. A game's heuristics, if it has any, provide better playouts and priors:
see `ninetka_agents.search.heuristics`. `rave_tree` contains the tree.
"""

from __future__ import annotations

import numpy as np

from ninetka_agents.agent import game_streams
from ninetka_agents.search.heuristics import Scratch, heavy_playout, make_scratch
from ninetka_agents.search.rave_tree import (
    EXPAND_VISITS,
    MAX_DEPTH,
    NODE_DTYPE,
    RaveNodes,
    RaveOptions,
    Workspace,
    back_up,
    best_child,
    copy_root,
    expand,
    init_root,
    keep_subtree,
    make_nodes,
    make_workspace,
    most_visited,
)
from ninetka_agents.search.tree import MAX_SIMULATIONS, Child, TreeResult
from ninetka_agents.search.uct import UctResult
from ninetka_env.core.game import Game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_count, check_nonnegative
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.random_streams import Streams
from ninetka_env.core.registry import limits_of
from ninetka_env.core.verbs import (
    State,
    StateArray,
    append_to_trace,
    forced_action,
    is_over,
    play,
    traced_playout,
    winner_of,
)

EQUIVALENCE = 1000.0
"""Default of k: a child's own win rate after k visits has the same weight as an AMAF value of many simulations."""
MAX_TREE_BYTES = 1 << 29
"""Maximum bytes of the nodes of a tree; a full tree gets no more nodes, but continues to count simulations."""


@jit(refcount=False)
def _simulate(
    root: State,
    streams: Streams,
    index: int,
    options: RaveOptions,
    tree: RaveNodes,
    used: int,
    workspace: Workspace,
    scratch: Scratch,
) -> int:
    """Make one simulation: descend, play out, and back up; return the number of nodes in use."""
    game, nodes, node, depth = copy_root(root, workspace), tree.nodes, 0, 0
    workspace.trace[0] = workspace.path[0] = 0
    while depth < MAX_DEPTH:
        if nodes[node].count == 0:
            if nodes[node].visits < EXPAND_VISITS:
                break
            used = expand(game, tree, node, used, workspace, options, scratch)
            if nodes[node].count == 0:
                break
        node = best_child(tree, node, options)
        append_to_trace(workspace.trace, game.to_move, nodes[node].action)
        play(game, nodes[node].action)
        depth += 1
        workspace.path[depth] = node
    winner = _finish(game, streams, index, options.heavy, workspace, scratch)
    players = int(game.num_players)
    for seat in range(players):
        workspace.shares[seat] = np.float32(1.0 / players) if winner < 0 else np.float32(seat == winner)
    back_up(nodes, depth, workspace)
    return used


@jit(refcount=False)
def _finish(game: State, streams: Streams, index: int, heavy: bool, workspace: Workspace, scratch: Scratch) -> int:
    """Play a game to its end; return the winner."""
    if is_over(game):
        return winner_of(game)
    if heavy:
        return heavy_playout(game, streams, index, workspace.trace, scratch)
    traced_playout(game, streams, index, workspace.trace)
    return winner_of(game)


def search(
    game: Game,
    simulations: int,
    rng: np.random.Generator,
    equivalence: float = EQUIVALENCE,
    exploration: float = 0.0,
    heavy: bool = False,
    local: bool = False,
) -> UctResult:
    """Search an unfinished position and return statistics of each action; nothing is proven.

    Raises:
        ValueError: if the game is over or an option is out of range.
    """
    if game.is_over:
        raise ValueError("the game is over: there is nothing to search")
    count = check_count("simulations", simulations, maximum=MAX_SIMULATIONS)
    options = RaveOptions(
        check_nonnegative("equivalence", equivalence), check_nonnegative("exploration", exploration), heavy, local
    )
    tree = RaveTree(game.records, count, options)
    tree.reset(game.records)
    tree.grow(game_streams(game.records, rng), 0, count)
    return tree.result(game)


class RaveTree:
    """The tree of one search, grown step by step; a `ninetka_agents.search.mcts.SearchTree`."""

    def __init__(self, games: StateArray, simulations: int, options: RaveOptions, has_policy: bool = False) -> None:
        """Allocate a tree for games of this dtype and `simulations` simulations, of at most `MAX_TREE_BYTES` bytes."""
        max_nodes = 2 + (1 + simulations // EXPAND_VISITS) * limits_of(games.dtype).choices
        self._nodes, self._spare_nodes = (
            make_nodes(min(max_nodes, MAX_TREE_BYTES // NODE_DTYPE.itemsize), has_policy),
            make_nodes(0, has_policy),
        )
        self.workspace, self.options, self._scratch = make_workspace(games), options, make_scratch(games[0])

    @property
    def nodes(self) -> StateArray:
        """The nodes; node 0 is the root."""
        return self._nodes.nodes

    def reset(self, games: StateArray) -> None:
        """Restart the tree with the position `games[0]` as its root."""
        self._games = games
        self._used = _reset(games, self._nodes, self.workspace, self.options, self._scratch)

    def grow(self, streams: Streams, index: int, simulations: int) -> bool:
        """Make `simulations` simulations, drawing from stream `index`; return whether more of them would be useful."""
        options = (self.options, self._nodes, self._used, self.workspace, self._scratch)
        self._used = _grow(self._games, streams, index, *options, simulations)
        return int(self.nodes[0].visits) < MAX_SIMULATIONS

    def best_action(self) -> int:
        """Return the action to play."""
        return int(_best_action(self._games, self.nodes))

    def report(self, result: TreeResult, index: int) -> None:
        """Write the result of the search to row `index` of `result`."""
        _report(self._games, self.nodes, self.workspace, result, index)

    def children(self, node: int) -> list[Child]:
        """Return the tried actions of a node; see `ninetka_agents.search.tree`."""
        first, count = int(self.nodes[node].first), int(self.nodes[node].count)
        tried = [(child, self.nodes[child]) for child in range(first, first + count) if self.nodes[child].visits]
        return [Child(child, int(one.action), int(one.visits), float(one.wins / one.visits)) for child, one in tried]

    def advance(self, action: int) -> None:
        """Keep the subtree below an action; the array passed to `reset` must already contain the position after it."""
        if len(self._spare_nodes.nodes) == 0:
            self._spare_nodes = make_nodes(len(self.nodes), len(self._nodes.policy) > 0)
        used = keep_subtree(self._nodes, self._spare_nodes, action)
        if used:
            self._nodes, self._spare_nodes, self._used = self._spare_nodes, self._nodes, used
            self.workspace.root_wins[:] = 0.0
        else:
            self.reset(self._games)

    def result(self, game: Game) -> UctResult:
        """Return statistics of each action of `game`, which must be the searched position."""
        visits, sums = (
            np.zeros(game.num_actions, np.int64),
            self.workspace.root_wins[: game.num_actions, : game.num_players],
        )
        root, forced = self.nodes[0], forced_action(game.records[0])
        children = self.nodes[root.first : root.first + root.count]
        visits[children["action"]] = children["visits"]
        if forced >= 0:
            sums = np.where(np.arange(len(visits))[:, None] == forced, sums.sum(axis=0), 0.0)
            visits = np.where(np.arange(len(visits)) == forced, visits.sum(), 0)
        with np.errstate(invalid="ignore"):
            return UctResult(visits, sums / visits[:, None], np.full(len(visits), UNFINISHED, np.int8))


@jit(refcount=False)
def _reset(games: StateArray, tree: RaveNodes, workspace: Workspace, options: RaveOptions, scratch: Scratch) -> int:
    return init_root(games[0], tree, workspace, options, scratch)


@jit(refcount=False)
def _grow(
    games: StateArray,
    streams: Streams,
    index: int,
    options: RaveOptions,
    tree: RaveNodes,
    used: int,
    workspace: Workspace,
    scratch: Scratch,
    simulations: int,
) -> int:
    """Make a number of simulations in a tree with `used` nodes in use; return the new number."""
    for _ in range(simulations):
        used = _simulate(games[0], streams, index, options, tree, used, workspace, scratch)
    return used


@jit(refcount=False)
def _best_action(games: StateArray, nodes: StateArray) -> int:
    forced = forced_action(games[0])
    return forced if forced >= 0 else most_visited(nodes)


@jit
def _report(games: StateArray, nodes: StateArray, workspace: Workspace, result: TreeResult, index: int) -> None:
    root, forced = nodes[0], forced_action(games[0])
    result.actions[index] = forced if forced >= 0 else most_visited(nodes)
    if forced >= 0:
        result.visits[index, forced] = root.visits
    else:
        for child in range(root.first, root.first + root.count):
            result.visits[index, nodes[child].action] = nodes[child].visits
    for seat in range(len(workspace.shares)):
        known = root.count > 0  # otherwise the forced turn ends the game, and every simulation has the same result
        result.values[index, seat] = (
            workspace.root_wins[:, seat].sum() / root.visits if known else workspace.shares[seat]
        )
