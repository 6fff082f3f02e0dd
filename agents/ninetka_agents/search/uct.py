"""Monte Carlo tree search with random playouts: UCT for any game and any number of players.

Start reading at `search_tree` and `run_simulations`. The tree is in `tree.py`, the agent in `mcts.py`.

UCT is from Kocsis and Szepesvari, "Bandit based Monte-Carlo planning", ECML 2006. As in Sturtevant, "An analysis of UCT
in multi-player games", CG 2008, every node has one value per seat, and the seat to move maximises its own value.

If the game has a prover, positions of two players can be proven during the search (Winands, Bjornsson and Saito,
"Monte-Carlo tree search solver", CG 2008): the prover tries to find the certain winner at each new node, and no
simulation descends below a proven node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import game_streams
from ninetka_agents.search.choices import draw_choice, is_empty
from ninetka_agents.search.heuristics import Prover, clear_prover, make_prover
from ninetka_agents.search.logarithm import natural_log
from ninetka_agents.search.tree import (
    MAX_SIMULATIONS,
    Child,
    TreeResult,
    copy_root,
    init_root,
    most_visited,
    node_dtype,
    simulate,
    write_result,
)
from ninetka_env.core.game import Game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_count, check_nonnegative
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.random_streams import Streams
from ninetka_env.core.registry import limits_of
from ninetka_env.core.threads import Control, claim, run_shared
from ninetka_env.core.verbs import State, StateArray, choice_action, forced_action, play_choice

EXPLORATION = 0.7
"""The default exploration constant c; see `ninetka_agents.search.mcts.MctsAgent`."""
MAX_TREE_BYTES = 1 << 29
"""Maximum bytes of the nodes of a `UctTree`; pages of memory are used only when nodes are written to them."""


class UctResult(NamedTuple):
    """Statistics of the actions of a position."""

    visits: npt.NDArray[np.int64]
    """(num_actions,) int64: simulations per action."""
    wins: npt.NDArray[np.float64]
    """(num_actions, n) float64: share of the simulations of an action that a seat won, draws shared; nan for actions
    without simulations."""
    winners: npt.NDArray[np.int8]
    """(num_actions,) int8: the seat proven to win after each action, `UNFINISHED` (-2) if nothing is proven."""


def search_all(
    threads: int, games: StateArray, streams: Streams, options: tuple[int, float, int], result: TreeResult
) -> None:
    """Search each game and write the results; `options` is (simulations, exploration, exact)."""
    run_shared(_search_all, threads, games, streams, np.empty(0, node_dtype(games.dtype)), *options, result)


def search(
    game: Game, simulations: int, rng: np.random.Generator, exploration: float = EXPLORATION, exact: int = 0
) -> UctResult:
    """Search an unfinished position and return statistics of each action; see `mcts.MctsAgent` for the options.

    Raises:
        ValueError: if the game is over or an option is out of range.
    """
    if game.is_over:
        raise ValueError("the game is over: there is nothing to search")
    count, dtype = check_count("simulations", simulations, maximum=MAX_SIMULATIONS), game.records.dtype
    nodes, actions, seats = np.zeros(count + 1, node_dtype(dtype)), game.num_actions, limits_of(dtype).players
    visits, wins = np.zeros(actions, np.int64), np.zeros((actions, seats), np.float64)
    winners, streams = np.full(actions, UNFINISHED, np.int8), game_streams(game.records, rng)
    exploration, exact = check_nonnegative("exploration", exploration), check_count("exact", exact, minimum=0)
    _search_first(game.records, streams, exploration, exact, nodes, visits, wins, winners)
    with np.errstate(invalid="ignore"):
        return UctResult(visits, wins[:, : game.num_players] / visits[:, None], winners)


@jit
def _search_first(
    games: StateArray,
    streams: Streams,
    exploration: float,
    exact: int,
    nodes: StateArray,
    visits: npt.NDArray[np.int64],
    wins: npt.NDArray[np.float64],
    winners: npt.NDArray[np.int8],
) -> None:
    """Search game 0 and write visits, wins and proven winners by action of the root."""
    search_tree(games[0], streams, 0, exploration, nodes, games[:1].copy(), make_prover(games[0], exact))
    child, forced = nodes[0].child, forced_action(games[0])
    if forced >= 0:
        visits[forced] = nodes[0].visits
        wins[forced] = nodes[0].wins
        winners[forced] = nodes[0].winner
        return
    while child:
        action = choice_action(games[0], nodes[child].choice)
        visits[action] = nodes[child].visits
        wins[action] = nodes[child].wins
        winners[action] = nodes[child].winner
        child = nodes[child].sibling


@jit(refcount=False)
def search_tree(
    root: State,
    streams: Streams,
    index: int,
    exploration: float,
    nodes: StateArray,
    scratch: StateArray,
    prover: Prover,
) -> None:
    """Make `len(nodes) - 1` simulations, fewer if the winner at `root` is proven, drawing from stream `index`."""
    clear_prover(root, prover)
    init_root(root, nodes, scratch)
    run_simulations(root, streams, index, exploration, nodes, scratch, prover, 1, len(nodes), 0)


@jit(refcount=False)
def run_simulations(
    root: State,
    streams: Streams,
    index: int,
    exploration: float,
    nodes: StateArray,
    scratch: StateArray,
    prover: Prover,
    first: int,
    stop: int,
    failures: int,
) -> int:
    """Add the nodes `first` to `stop` - 1, one per simulation; return the updated count of failed proofs."""
    for new in range(first, stop):
        game = copy_root(root, scratch)
        leaf = _select(game, nodes, exploration)
        choice = -1 if is_empty(nodes[leaf].untried) else draw_choice(nodes[leaf].untried, streams, index)
        failures = simulate(game, streams, index, nodes, leaf, choice, new, failures, prover)
        if nodes[0].winner >= 0:
            break
    return failures


@jit(refcount=False)
def _select(game: State, nodes: StateArray, exploration: float) -> int:
    """Descend to the best child while all actions have children; return the last node."""
    index = 0
    while is_empty(nodes[index].untried) and nodes[index].child:
        index = best_child(nodes, index, exploration)
        play_choice(game, nodes[index].choice)
    return index


@jit(refcount=False)
def best_child(nodes: StateArray, index: int, exploration: float) -> int:
    """Return the child with the highest upper confidence bound for the seat that moves to it, 0 if there is none.

    Proven children are skipped. They are losses for this seat, because a proven win would have proven the node itself.
    """
    log_visits = natural_log(float(nodes[index].visits))
    best, highest = 0, -1.0
    child = nodes[index].child
    while child:
        node = nodes[child]
        weight = 1.0 / node.visits
        bound = node.wins[node.mover] * weight + exploration * np.sqrt(log_visits * weight)
        if bound > highest and node.winner < 0:
            best, highest = child, bound
        child = node.sibling
    return best


@jit
def _search_all(
    control: Control,
    games: StateArray,
    streams: Streams,
    like: StateArray,
    simulations: int,
    exploration: float,
    exact: int,
    result: TreeResult,
) -> None:
    """Search the games that this thread claims; `like` has the dtype of the nodes."""
    nodes = np.zeros(simulations + 1, like.dtype)
    scratch, prover, no_prover = games[:1].copy(), make_prover(games[0], exact), make_prover(games[0], 0)
    while True:
        index, stop = claim(control, 0, len(games), 1)
        if index == stop:
            return
        search_tree(games[index], streams, index, exploration, nodes, scratch, prover)
        # Search a lost position again without proofs, to find the move that is hardest to answer.
        if nodes[0].winner >= 0 and nodes[0].winner != nodes[nodes[0].child].mover:
            search_tree(games[index], streams, index, exploration, nodes, scratch, no_prover)
        write_result(games[index], nodes, result, index)


@jit(refcount=False)
def _reset(games: StateArray, nodes: StateArray, scratch: StateArray, prover: Prover) -> None:
    clear_prover(games[0], prover)
    init_root(games[0], nodes, scratch)


@jit(refcount=False)
def _grow(
    games: StateArray,
    streams: Streams,
    index: int,
    exploration: float,
    nodes: StateArray,
    scratch: StateArray,
    prover: Prover,
    first: int,
    stop: int,
    failures: int,
) -> int:
    return run_simulations(games[0], streams, index, exploration, nodes, scratch, prover, first, stop, failures)


@jit(refcount=False)
def _best_action(games: StateArray, nodes: StateArray) -> int:
    return most_visited(games[0], nodes)


@jit
def _report(games: StateArray, nodes: StateArray, result: TreeResult, index: int) -> None:
    write_result(games[0], nodes, result, index)


@jit
def _replay_to(games: StateArray, nodes: StateArray, scratch: StateArray, index: int) -> None:
    """Write the position of a node to `scratch[0]`, since the meaning of choices depends on the position."""
    game, depth, node = copy_root(games[0], scratch), 0, index
    while node:
        depth, node = depth + 1, nodes[node].parent
    for above in range(depth - 1, -1, -1):
        node = index
        for _ in range(above):
            node = nodes[node].parent
        play_choice(game, nodes[node].choice)


class UctTree:
    """The tree of one search, grown step by step; a `ninetka_agents.search.mcts.SearchTree`."""

    def __init__(self, games: StateArray, simulations: int, exploration: float, exact: int) -> None:
        """Allocate a tree for games of this dtype and `simulations` simulations, of at most `MAX_TREE_BYTES` bytes."""
        dtype = node_dtype(games.dtype)
        self._nodes = np.empty(1 + min(simulations, MAX_TREE_BYTES // dtype.itemsize), dtype)
        self._exploration, self._scratch = exploration, games[:1].copy()
        self._provers = [make_prover(games[0], nodes) for nodes in (exact, 0)]

    def reset(self, games: StateArray) -> None:
        """Restart the tree with the position `games[0]` as its root."""
        self._games = games
        self._reset_with(self._provers[0])

    def _reset_with(self, prover: Prover) -> None:
        self._prover, self._used, self._failures = prover, 1, 0
        _reset(self._games, self._nodes, self._scratch, prover)

    def grow(self, streams: Streams, index: int, simulations: int) -> bool:
        """Make `simulations` simulations, drawing from stream `index`; return whether more of them would be useful."""
        stop = min(self._used + simulations, len(self._nodes))
        self._failures = _grow(
            self._games, streams, index, self._exploration, self._nodes, self._scratch, self._prover, self._used, stop,
            self._failures,
        )  # fmt: skip
        self._used = stop
        winner = self._nodes[0].winner
        # Search a lost position again without proofs, to find the move that is hardest to answer.
        if winner >= 0 and winner != self._nodes[self._nodes[0].child].mover:
            self._reset_with(self._provers[1])
            return self.grow(streams, index, simulations)
        return stop < len(self._nodes) and winner < 0

    def best_action(self) -> int:
        """Return the action to play."""
        return int(_best_action(self._games, self._nodes))

    def report(self, result: TreeResult, index: int) -> None:
        """Write the result of the search to row `index` of `result`."""
        _report(self._games, self._nodes, result, index)

    def children(self, node: int) -> list[Child]:
        """Return the tried actions of a node; see `ninetka_agents.search.tree`."""
        _replay_to(self._games, self._nodes, self._scratch, node)
        found, child = [], int(self._nodes[node].child)
        while child:
            one = self._nodes[child]
            action = int(choice_action(self._scratch[0], one.choice))
            found.append(Child(child, action, int(one.visits), float(one.wins[one.mover] / one.visits)))
            child = int(one.sibling)
        return found
