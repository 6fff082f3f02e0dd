"""Monte Carlo tree search with rapid action value estimation (RAVE), for any game.

S. Gelly and D. Silver, "Combining online and offline knowledge in UCT", ICML 2007, and the survey of 2011 cited at
`rave_tree.best_child`: while there are few simulations in which an action is played now, its value is estimated from
all simulations in which it is played later. A game's heuristics, if it has any, provide better playouts and priors: see
`ninetka_agents.search.knowledge`. `rave_tree` has the tree.
"""

from __future__ import annotations

import numpy as np

from ninetka_agents.agent import game_streams
from ninetka_agents.search.knowledge import Memory, heavy_playout, make_memory
from ninetka_agents.search.rave_tree import (
    EXPAND_VISITS,
    LONGEST_PATH,
    NODE,
    Desk,
    Rules,
    Tree,
    back_up,
    best_child,
    copy_root,
    expand,
    init_root,
    keep_subtree,
    make_desk,
    make_tree,
    most_visited,
)
from ninetka_agents.search.tree import MOST_SIMULATIONS, Child, TreeResult
from ninetka_agents.search.uct import SearchResult
from ninetka_env.core.chance import Streams
from ninetka_env.core.game import Game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_count, check_scale
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.registry import limits_of
from ninetka_env.core.verbs import Record, Records, forced_action, is_over, note, play, traced_playout, winner_of

EQUIVALENCE = 1000.0
"""k, the number of simulations at which a child's own wins count as much as a well-known AMAF value."""
MEMORY = 1 << 29
"""Maximum bytes of the nodes of a tree; a full tree gets no more nodes, but continues to count simulations."""


@jit(counted=False)
def _simulate(
    root: Record,
    streams: Streams,
    index: int,
    rules: Rules,
    tree: Tree,
    used: int,
    desk: Desk,
    memory: Memory,
) -> int:
    """Make one simulation: descend, play out, and back up; return the number of nodes in use."""
    game, nodes, node, depth = copy_root(root, desk), tree.nodes, 0, 0
    desk.trace[0] = desk.path[0] = 0
    while depth < LONGEST_PATH:
        if nodes[node].count == 0:
            if nodes[node].visits < EXPAND_VISITS:
                break
            used = expand(game, tree, node, used, desk, rules, memory)
            if nodes[node].count == 0:
                break
        node = best_child(tree, node, rules)
        note(desk.trace, game.to_move, nodes[node].action)
        play(game, nodes[node].action)
        depth += 1
        desk.path[depth] = node
    winner = _finish(game, streams, index, rules.heavy, desk, memory)
    players = int(game.num_players)
    for seat in range(players):
        desk.shares[seat] = np.float32(1.0 / players) if winner < 0 else np.float32(seat == winner)
    back_up(nodes, depth, desk)
    return used


@jit(counted=False)
def _finish(game: Record, streams: Streams, index: int, heavy: bool, desk: Desk, memory: Memory) -> int:
    """Play a game to its end; return the winner."""
    if is_over(game):
        return winner_of(game)
    if heavy:
        return heavy_playout(game, streams, index, desk.trace, memory)
    traced_playout(game, streams, index, desk.trace)
    return winner_of(game)


def search(
    game: Game,
    simulations: int,
    rng: np.random.Generator,
    equivalence: float = EQUIVALENCE,
    exploration: float = 0.0,
    heavy: bool = False,
    local: bool = False,
) -> SearchResult:
    """Search a position that is not over and return statistics of each action; nothing is proven.

    Raises:
        ValueError: if the game is over or an option is out of range.
    """
    if game.is_over:
        raise ValueError("the game is over: there is nothing to search")
    count = check_count("simulations", simulations, most=MOST_SIMULATIONS)
    rules = Rules(check_scale("equivalence", equivalence), check_scale("exploration", exploration), heavy, local)
    tree = RaveTree(game.records, count, rules)
    tree.begin(game.records)
    tree.grow(game_streams(game.records, rng), 0, count)
    return tree.result(game)


class RaveTree:
    """The tree of one search, grown step by step; a `ninetka_agents.search.mcts.Tree`."""

    def __init__(self, games: Records, simulations: int, rules: Rules, is_advised: bool = False) -> None:
        """Allocate a tree for games of this dtype and a number of simulations, of at most `MEMORY` bytes."""
        most = 2 + (1 + simulations // EXPAND_VISITS) * limits_of(games.dtype).choices
        self._tree, self._spare = make_tree(min(most, MEMORY // NODE.itemsize), is_advised), make_tree(0, is_advised)
        self.desk, self.rules, self._memory = make_desk(games), rules, make_memory(games[0])

    @property
    def nodes(self) -> Records:
        """The nodes; node 0 is the root."""
        return self._tree.nodes

    def begin(self, games: Records) -> None:
        """Restart the tree at the first game."""
        self._games = games
        self._used = _begin(games, self._tree, self.desk, self.rules, self._memory)

    def grow(self, streams: Streams, index: int, simulations: int) -> bool:
        """Make a number of simulations, drawing from stream `index`; return whether more would be of use."""
        options = (self.rules, self._tree, self._used, self.desk, self._memory)
        self._used = _grow(self._games, streams, index, *options, simulations)
        return int(self.nodes[0].visits) < MOST_SIMULATIONS

    def best(self) -> int:
        """Return the action to play."""
        return int(_best(self._games, self.nodes))

    def report(self, result: TreeResult, index: int) -> None:
        """Write the result of the search to row `index` of `result`."""
        _report(self._games, self.nodes, self.desk, result, index)

    def children(self, node: int) -> list[Child]:
        """Return the tried actions of a node; see `ninetka_agents.search.tree`."""
        first, count = int(self.nodes[node].first), int(self.nodes[node].count)
        tried = [(child, self.nodes[child]) for child in range(first, first + count) if self.nodes[child].visits]
        return [Child(child, int(one.action), int(one.visits), float(one.wins / one.visits)) for child, one in tried]

    def go_on(self, action: int) -> None:
        """Keep the subtree below an action; the game must have been advanced to its next position already."""
        if len(self._spare.nodes) == 0:
            self._spare = make_tree(len(self.nodes), len(self._tree.policy) > 0)
        used = keep_subtree(self._tree, self._spare, action)
        if used:
            self._tree, self._spare, self._used = self._spare, self._tree, used
            self.desk.root_wins[:] = 0.0
        else:
            self.begin(self._games)

    def result(self, game: Game) -> SearchResult:
        """Return statistics of each action of `game`, the position that has been searched."""
        visits, sums = np.zeros(game.num_actions, np.int64), self.desk.root_wins[: game.num_actions, : game.num_players]
        root, forced = self.nodes[0], forced_action(game.records[0])
        children = self.nodes[root.first : root.first + root.count]
        visits[children["action"]] = children["visits"]
        if forced >= 0:
            sums = np.where(np.arange(len(visits))[:, None] == forced, sums.sum(axis=0), 0.0)
            visits = np.where(np.arange(len(visits)) == forced, visits.sum(), 0)
        with np.errstate(invalid="ignore"):
            return SearchResult(visits, sums / visits[:, None], np.full(len(visits), UNFINISHED, np.int8))


@jit(counted=False)
def _begin(games: Records, tree: Tree, desk: Desk, rules: Rules, memory: Memory) -> int:
    return init_root(games[0], tree, desk, rules, memory)


@jit(counted=False)
def _grow(
    games: Records,
    streams: Streams,
    index: int,
    rules: Rules,
    tree: Tree,
    used: int,
    desk: Desk,
    memory: Memory,
    simulations: int,
) -> int:
    """Make a number of simulations in a tree with `used` nodes in use; return the new number."""
    for _ in range(simulations):
        used = _simulate(games[0], streams, index, rules, tree, used, desk, memory)
    return used


@jit(counted=False)
def _best(games: Records, nodes: Records) -> int:
    forced = forced_action(games[0])
    return forced if forced >= 0 else most_visited(nodes)


@jit
def _report(games: Records, nodes: Records, desk: Desk, result: TreeResult, index: int) -> None:
    root, forced = nodes[0], forced_action(games[0])
    result.actions[index] = forced if forced >= 0 else most_visited(nodes)
    if forced >= 0:
        result.visits[index, forced] = root.visits
    else:
        for child in range(root.first, root.first + root.count):
            result.visits[index, nodes[child].action] = nodes[child].visits
    for seat in range(len(desk.shares)):
        known = root.count > 0  # otherwise the forced turn ends the game, and every simulation has the same result
        result.values[index, seat] = desk.root_wins[:, seat].sum() / root.visits if known else desk.shares[seat]
