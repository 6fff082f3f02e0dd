"""Monte Carlo tree search with random playouts: UCT for any game and any number of players.

Kocsis and Szepesvari, "Bandit based Monte-Carlo planning", ECML 2006, with one value per seat at every node, where each
node maximises the value of the seat to move, as in Sturtevant, "An analysis of UCT in multi-player games", CG 2008.

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
from ninetka_agents.search.knowledge import Prover, clear_prover, make_prover
from ninetka_agents.search.tree import (
    MOST_SIMULATIONS,
    Child,
    TreeResult,
    copy_root,
    init_root,
    most_visited,
    node_dtype,
    simulate,
    write_result,
)
from ninetka_env.core.chance import Streams
from ninetka_env.core.game import Game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_count, check_scale
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.registry import limits_of
from ninetka_env.core.threads import Control, claim, run_shared
from ninetka_env.core.verbs import Record, Records, choice_action, forced_action, play_choice

EXPLORATION = 0.7
"""The default exploration constant c; see `ninetka_agents.search.mcts.MctsAgent`."""
MEMORY = 1 << 29
"""Maximum bytes of the nodes of a search with a time limit; memory pages are used only when needed."""


class SearchResult(NamedTuple):
    """Statistics of the actions of a position."""

    visits: npt.NDArray[np.int64]
    """(num_actions,) int64: simulations per action."""
    wins: npt.NDArray[np.float64]
    """(num_actions, n) float64: share of them that each seat won, draws shared; nan for actions without simulations."""
    winners: npt.NDArray[np.int8]
    """(num_actions,) int8: the seat proven to win after each action, `UNFINISHED` (-2) if nothing is proven."""


def search_all(
    threads: int, games: Records, streams: Streams, options: tuple[int, float, int], result: TreeResult
) -> None:
    """Search each game and write the results; `options` are simulations, exploration and exact."""
    run_shared(_search_all, threads, games, streams, np.empty(0, node_dtype(games.dtype)), *options, result)


def search(
    game: Game, simulations: int, rng: np.random.Generator, exploration: float = EXPLORATION, exact: int = 0
) -> SearchResult:
    """Search a position that is not over and return statistics of each action; see `mcts.MctsAgent` for the options.

    Raises:
        ValueError: if the game is over or an option is out of range.
    """
    if game.is_over:
        raise ValueError("the game is over: there is nothing to search")
    count, dtype = check_count("simulations", simulations, most=MOST_SIMULATIONS), game.records.dtype
    nodes, actions, seats = np.zeros(count + 1, node_dtype(dtype)), game.num_actions, limits_of(dtype).players
    visits, wins = np.zeros(actions, np.int64), np.zeros((actions, seats), np.float64)
    winners, streams = np.full(actions, UNFINISHED, np.int8), game_streams(game.records, rng)
    exploration, exact = check_scale("exploration", exploration), check_count("exact", exact, least=0)
    _search_first(game.records, streams, exploration, exact, nodes, visits, wins, winners)
    with np.errstate(invalid="ignore"):
        return SearchResult(visits, wins[:, : game.num_players] / visits[:, None], winners)


@jit
def _search_first(
    games: Records,
    streams: Streams,
    exploration: float,
    exact: int,
    nodes: Records,
    visits: npt.NDArray[np.int64],
    wins: npt.NDArray[np.float64],
    winners: npt.NDArray[np.int8],
) -> None:
    """Search game 0 and write the statistics of the root's children."""
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


@jit(counted=False)
def search_tree(
    root: Record,
    streams: Streams,
    index: int,
    exploration: float,
    nodes: Records,
    scratch: Records,
    prover: Prover,
) -> None:
    """Make `len(nodes) - 1` simulations from `root`, fewer if it is proven, drawing from stream `index`."""
    clear_prover(root, prover)
    init_root(root, nodes, scratch)
    search_on(root, streams, index, exploration, nodes, scratch, prover, 1, len(nodes), 0)


@jit(counted=False)
def search_on(
    root: Record,
    streams: Streams,
    index: int,
    exploration: float,
    nodes: Records,
    scratch: Records,
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


@jit(counted=False)
def _select(game: Record, nodes: Records, exploration: float) -> int:
    """Descend to the best child while all actions have children; return the last node."""
    index = 0
    while is_empty(nodes[index].untried) and nodes[index].child:
        index = best_child(nodes, index, exploration)
        play_choice(game, nodes[index].choice)
    return index


@jit(counted=False)
def best_child(nodes: Records, index: int, exploration: float) -> int:
    """Return the child with the highest upper confidence bound for the seat that moves to it, 0 if there is none.

    Proven children are skipped, because they are lost: a proven win would have proven the node.
    """
    log_visits = np.log(nodes[index].visits)
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
    games: Records,
    streams: Streams,
    like: Records,
    simulations: int,
    exploration: float,
    exact: int,
    result: TreeResult,
) -> None:
    """Search the games that this thread claims; `like` has the dtype of the nodes."""
    nodes = np.zeros(simulations + 1, like.dtype)
    scratch, prover, nobody = games[:1].copy(), make_prover(games[0], exact), make_prover(games[0], 0)
    while True:
        index, stop = claim(control, 0, len(games), 1)
        if index == stop:
            return
        search_tree(games[index], streams, index, exploration, nodes, scratch, prover)
        # Search a lost position again without proofs, to find the move that is hardest to answer.
        if nodes[0].winner >= 0 and nodes[0].winner != nodes[nodes[0].child].mover:
            search_tree(games[index], streams, index, exploration, nodes, scratch, nobody)
        write_result(games[index], nodes, result, index)


@jit(counted=False)
def _begin(games: Records, nodes: Records, scratch: Records, prover: Prover) -> None:
    clear_prover(games[0], prover)
    init_root(games[0], nodes, scratch)


@jit(counted=False)
def _grow(
    games: Records,
    streams: Streams,
    index: int,
    exploration: float,
    nodes: Records,
    scratch: Records,
    prover: Prover,
    first: int,
    stop: int,
    failures: int,
) -> int:
    return search_on(games[0], streams, index, exploration, nodes, scratch, prover, first, stop, failures)


@jit(counted=False)
def _best(games: Records, nodes: Records) -> int:
    return most_visited(games[0], nodes)


@jit
def _report(games: Records, nodes: Records, result: TreeResult, index: int) -> None:
    write_result(games[0], nodes, result, index)


@jit
def _go_to(games: Records, nodes: Records, scratch: Records, index: int) -> None:
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
    """The tree of one search, grown step by step; a `ninetka_agents.search.mcts.Tree`."""

    def __init__(self, games: Records, simulations: int, exploration: float, exact: int) -> None:
        """Allocate a tree for games of this dtype and a number of simulations, of at most `MEMORY` bytes."""
        dtype = node_dtype(games.dtype)
        self._nodes = np.empty(1 + min(simulations, MEMORY // dtype.itemsize), dtype)
        self._exploration, self._scratch = exploration, games[:1].copy()
        self._provers = [make_prover(games[0], nodes) for nodes in (exact, 0)]

    def begin(self, games: Records) -> None:
        """Restart the tree at the first game."""
        self._games = games
        self._begin_with(self._provers[0])

    def _begin_with(self, prover: Prover) -> None:
        self._prover, self._used, self._failures = prover, 1, 0
        _begin(self._games, self._nodes, self._scratch, prover)

    def grow(self, streams: Streams, index: int, simulations: int) -> bool:
        """Make a number of simulations, drawing from stream `index`; return whether more would be of use."""
        stop = min(self._used + simulations, len(self._nodes))
        self._failures = _grow(
            self._games, streams, index, self._exploration, self._nodes, self._scratch, self._prover, self._used, stop,
            self._failures,
        )  # fmt: skip
        self._used = stop
        winner = self._nodes[0].winner
        # Search a lost position again without proofs, to find the move that is hardest to answer.
        if winner >= 0 and winner != self._nodes[self._nodes[0].child].mover:
            self._begin_with(self._provers[1])
            return self.grow(streams, index, simulations)
        return stop < len(self._nodes) and winner < 0

    def best(self) -> int:
        """Return the action to play."""
        return int(_best(self._games, self._nodes))

    def report(self, result: TreeResult, index: int) -> None:
        """Write the result of the search to row `index` of `result`."""
        _report(self._games, self._nodes, result, index)

    def children(self, node: int) -> list[Child]:
        """Return the tried actions of a node; see `ninetka_agents.search.tree`."""
        _go_to(self._games, self._nodes, self._scratch, node)
        found, child = [], int(self._nodes[node].child)
        while child:
            one = self._nodes[child]
            action = int(choice_action(self._scratch[0], one.choice))
            found.append(Child(child, action, int(one.visits), float(one.wins[one.mover] / one.visits)))
            child = int(one.sibling)
        return found
