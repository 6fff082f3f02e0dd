"""The agents `paranoid` and `brs`: alpha-beta searches of the movement phase for any number of players.

Both searches turn a game of n players into a game of two sides: the seat that searches maximises a value, all other
seats together minimise it. They differ in who slides when:

* Paranoid search: turns are those of the game. Sturtevant and Korf, "On pruning techniques for multi-player games",
  AAAI 2000.
* Best-reply search: the seat and the other side slide alternately, and of all slides of all other seats, one is played.
  Schadd and Winands, "Best Reply Search for multiplayer games", IEEE Transactions on Computational Intelligence and AI
  in Games 3(1), 2011. The seat looks further ahead, at positions that the game cannot reach.

With two players, both are plain alpha-beta. The value of a leaf is the lead: by the evaluation of `maxn`, the seat's
value minus that of another seat, summed over all other seats. (The value minus that of the best other seat wins fewer
games.) If the game is over, or bounds of the final scores decide whether the seat wins, `WIN` is added or subtracted;
the lead then only chooses among wins, or among losses.

A search deepens iteratively and can be continued: `_advance` visits some more nodes. So one loop serves for budgets of
nodes, of plies and of seconds.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from ninetka_agents.agent import Actions, Agent, as_unfinished_states, check_threads, game_streams
from ninetka_agents.ninetka.force import NO, UNDECIDED, YES, answer_from_bounds
from ninetka_agents.ninetka.maxn import CONQUEST, place, slide_gain, write_evaluation
from ninetka_env.core.game import check_game
from ninetka_env.core.jit import jit, lowest_bit
from ninetka_env.core.options import check_choice, check_count, check_nonnegative
from ninetka_env.core.random_streams import Streams
from ninetka_env.core.threads import Control, claim, run_shared
from ninetka_env.core.verbs import State, StateArray
from ninetka_env.games.ninetka.choices import prepare_root
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import MAX_PLAYERS, NUM_SLOTS, PASS, SECTION, SLOT_SQUARE
from ninetka_env.games.ninetka.rules import (
    MOVEMENT,
    STATE_DTYPE,
    end_turn,
    landing_square,
    legal_bits,
    movable_slots,
    must_pass,
    slide,
)

TREES = ("paranoid", "brs")
"""The names of the two searches. Compiled code uses the index in this tuple."""
PARANOID, BEST_REPLY = 0, 1
DEFAULT_NODES = 4000
WIN = 1 << 20
"""Added to the lead if the seat wins, subtracted if it does not win; larger than twice any lead."""
NODES_PER_SLICE = 2000
"""Nodes between two checks of the time; these take a few tenths of a millisecond."""
_INFINITY = 1 << 40


class AlphaBetaResult(NamedTuple):
    """The result of a search for the seat to move."""

    action: int
    """The action to play; pass if the seat must pass."""
    value: int
    """The value of the position for the seat at `depth` plies: the lead, plus or minus `WIN` if the end is known."""
    depth: int
    """The depth of the last finished search, in plies."""
    nodes: int
    """Positions visited below the root, at all depths together."""


class AlphaBetaAgent(Agent):
    """Base class of the two agents: the placement rules of `maxn`, then an alpha-beta search."""

    tree: int
    """The search, as an index in `TREES`."""

    def __init__(self, nodes: int = DEFAULT_NODES, depth: int = 0, seconds: float = 0.0, threads: int = 0) -> None:
        """Set up the search.

        Args:
            nodes: maximum number of positions to visit per move. The first ply is always searched.
            depth: maximum number of plies to search; 0 for no limit.
            seconds: time per move, instead of `nodes`; 0 for no time limit. With a time limit, the moves depend on the
                machine, even with the same seed.
            threads: maximum number of threads; 0 for one per core.

        Raises:
            ValueError: if an option is out of range.
        """
        self.name = TREES[self.tree]
        self._nodes = check_count("nodes", nodes)
        self._depth = check_count("depth", depth, minimum=0)
        self._seconds = check_nonnegative("seconds", seconds)
        self._threads = check_threads(threads)

    def act(self, games: StateArray, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        games = as_unfinished_states(games, Game.name)
        actions, streams = np.empty(len(games), np.int64), game_streams(games, rng)
        threads, max_depth = min(self._threads, len(games)), _max_depth(self._depth)
        if self._seconds:
            run_shared(self._act_in_time, threads, games, streams, max_depth, actions)
        else:
            run_shared(_act, threads, games, streams, self.tree, max_depth, self._nodes, actions)
        return actions

    def _act_in_time(
        self, control: Control, games: StateArray, streams: Streams, max_depth: int, actions: Actions
    ) -> None:
        """Choose actions for the games that this thread claims, within `seconds` for each."""
        workspace = _make_workspace()
        while True:
            index, stop = claim(control, 0, len(games), 1)
            if index == stop:
                return
            end, nodes = time.perf_counter() + self._seconds, NODES_PER_SLICE
            actions[index] = _begin(games, index, streams, self.tree, max_depth, workspace)
            if actions[index] < 0:
                while not _advance(workspace, nodes) and time.perf_counter() < end:
                    nodes += NODES_PER_SLICE
                actions[index] = SLOT_SQUARE[_best_slot(workspace)]


class ParanoidAgent(AlphaBetaAgent):
    """Places stones like MaxN; searches slides as if all other seats played against its seat: paranoid search."""

    tree = PARANOID


class BestReplyAgent(AlphaBetaAgent):
    """Places stones like MaxN; searches slides as if one of the other seats replied to each: best-reply search."""

    tree = BEST_REPLY


def search(game: Game, tree: str = TREES[0], nodes: int = DEFAULT_NODES, depth: int = 0) -> AlphaBetaResult:
    """Search a position of the movement phase for the seat to move.

    Args:
        game: the position.
        tree: `"paranoid"` or `"brs"`.
        nodes: maximum number of positions to visit. The first ply is always searched.
        depth: maximum number of plies; 0 for no limit.

    Raises:
        ValueError: if the game has ended or is not in its movement phase, or if an option is out of range.
    """
    check_game(game, Game)
    if game.phase != MOVEMENT or game.is_over:
        where = "over" if game.is_over else f"in phase {game.phase.name}"
        raise ValueError(f"the search plays the movement phase; this game is {where}")
    code, max_depth = check_choice("tree", tree, TREES), _max_depth(check_count("depth", depth, minimum=0))
    workspace = _make_workspace()
    _start(game.records, 0, code, max_depth, workspace)
    _advance(workspace, check_count("nodes", nodes))
    action = PASS if PASS in game.legal_actions() else int(SLOT_SQUARE[_best_slot(workspace)])
    progress = workspace.progress[0]
    return AlphaBetaResult(action, *(int(progress[field]) for field in ("value", "depth", "nodes")))


def _max_depth(depth: int) -> int:
    """Return the maximum depth in plies for the option `depth`. No search is deeper than the number of slides."""
    return min(depth, NUM_SLOTS) if depth else NUM_SLOTS


NODE = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("game", STATE_DTYPE),  # best-reply search ignores `to_move`
                ("lead", np.int64),  # see `_lead`
                ("changes", np.int64, (NUM_SLOTS,)),  # per slot: the change in the lead by sliding its stone
                ("keys", np.int64, (NUM_SLOTS,)),  # per slot: children are visited in descending order of their keys
                ("untried", np.int64),  # bits of the slots whose children are not visited yet
                ("tried", np.int64),  # the slot of the child being visited
                ("maximises", np.bool_),  # whether the seat that searches is to slide
                ("value", np.int64),  # the value of the best child so far
                ("best_slot", np.int64),  # -1 if no child has a value yet
                ("alpha", np.int64),
                ("beta", np.int64),
            ],
            align=True,
        ),
    )
)
"""A position on the current path of the search, one per level."""

PROGRESS = np.dtype(
    (
        np.record,
        np.dtype(
            [
                ("tree", np.int64),
                ("max_depth", np.int64),
                ("seat", np.int64),  # the seat that searches
                ("level", np.int64),  # the level of the current position
                ("nodes", np.int64),  # positions visited below the root
                ("depth", np.int64),  # the depth of the last finished search
                ("value", np.int64),  # its value
                ("best_slot", np.int64),  # its best slot; -1 before the first one
            ],
            align=True,
        ),
    )
)
"""How far a search has come. The search can be continued from this and the path."""


class Workspace(NamedTuple):
    """The memory of a search."""

    progress: StateArray
    """(1,) `PROGRESS`."""
    path: StateArray
    """(37,) `NODE`: at most 36 stones slide after the root."""


@jit
def _make_workspace() -> Workspace:
    return Workspace(np.zeros(1, PROGRESS), np.zeros(NUM_SLOTS + 1, NODE))


@jit
def _act(
    control: Control,
    games: StateArray,
    streams: Streams,
    tree: int,
    max_depth: int,
    nodes: int,
    actions: Actions,
) -> None:
    """Choose actions for the games that this thread claims."""
    workspace = _make_workspace()
    while True:
        index, stop = claim(control, 0, len(games), 1)
        if index == stop:
            return
        actions[index] = _begin(games, index, streams, tree, max_depth, workspace)
        if actions[index] < 0:
            _advance(workspace, nodes)
            actions[index] = SLOT_SQUARE[_best_slot(workspace)]


@jit
def _begin(
    games: StateArray,
    index: int,
    streams: Streams,
    tree: int,
    max_depth: int,
    workspace: Workspace,
) -> int:
    """Return the action in a game if it needs no search; otherwise start a search and return -1."""
    game = games[index]
    if game.phase != MOVEMENT:
        return place(game, streams, index)
    if must_pass(game):
        return PASS
    bits = legal_bits(game)
    if bits & (bits - 1) == 0:
        return int(SLOT_SQUARE[lowest_bit(bits)])
    _start(games, index, tree, max_depth, workspace)
    return -1


@jit
def _start(games: StateArray, index: int, tree: int, max_depth: int, workspace: Workspace) -> None:
    """Start a search of an unfinished game of the movement phase, for the seat to move."""
    progress, root = workspace.progress[0], workspace.path[0]
    progress.tree, progress.max_depth, progress.seat = tree, max_depth, games[index].to_move
    progress.level = progress.nodes = progress.depth = progress.value = 0
    progress.best_slot = -1
    root.game = games[index]
    prepare_root(root.game)  # forced passes cost no depth
    root.lead = _lead(root.game, progress.seat)
    _restart(progress, root)


@jit
def _restart(progress: State, root: State) -> None:
    """Begin the search of the next depth. The root is never a leaf, because an action is needed in any case."""
    root.maximises = True
    root.alpha, root.beta = -_INFINITY, _INFINITY
    _expand(root, progress.tree, progress.seat)
    if progress.best_slot >= 0:
        root.keys[progress.best_slot] = _INFINITY


@jit
def _advance(workspace: Workspace, nodes: int) -> bool:
    """Continue a search until it has visited `nodes` nodes in total; return whether it has finished.

    The search finishes at the maximum depth, or if the value is a win or a loss, which greater depths do not change.
    The first ply is always searched. This is a loop, because numba cannot safely load recursive functions from its
    cache.
    """
    path, progress, root = workspace.path, workspace.progress[0], workspace.path[0]
    while True:
        node = path[progress.level]
        slot = _next_child(node) if node.alpha < node.beta else -1
        if slot >= 0:
            if progress.nodes >= nodes and progress.depth > 0:
                return False
            progress.nodes += 1
            progress.level += 1
            child = path[progress.level]
            _descend(node, child, slot)
            if _enter(child, progress.tree, progress.seat, progress.depth + 1 - progress.level):
                progress.level -= 1
                _back_up(node, child.value)
        elif progress.level > 0:
            progress.level -= 1
            _back_up(path[progress.level], node.value)
        else:
            progress.depth += 1
            progress.value, progress.best_slot = root.value, root.best_slot
            if progress.depth == progress.max_depth or abs(progress.value) > WIN // 2:
                return True
            _restart(progress, root)


@jit
def _best_slot(workspace: Workspace) -> int:
    """Return the best slot of the current depth or, if none has a value at this depth yet, of the last one.

    The search of a depth starts with the best slot of the last depth, so another best slot is better at this depth.
    """
    progress, root = workspace.progress[0], workspace.path[0]
    return root.best_slot if root.best_slot >= 0 else progress.best_slot


@jit
def _next_child(node: State) -> int:
    """Return the slot of the unvisited child with the highest key, or -1 if all children were visited."""
    best, key, bits = -1, -_INFINITY, node.untried
    while bits:
        slot = lowest_bit(bits)
        if node.keys[slot] > key:
            best, key = slot, node.keys[slot]
        bits &= bits - 1
    return best


@jit
def _descend(node: State, child: State, slot: int) -> None:
    """Slide the stone of `slot`; write the new position with its evaluation, side and window to `child`."""
    node.untried &= ~(1 << slot)
    node.tried = slot
    child.game = node.game
    child.lead = node.lead + node.changes[slot]
    child.maximises = not node.maximises
    child.alpha, child.beta = node.alpha, node.beta
    child.game.to_move = _owner(node.game, slot)
    slide(child.game, slot)
    end_turn(child.game)


@jit
def _owner(game: State, slot: int) -> int:
    """Return the seat of the stone on the edge square of `slot`."""
    return game.board[SLOT_SQUARE[slot]] - 1


@jit
def _enter(node: State, tree: int, seat: int, depth: int) -> bool:
    """Write the value of a leaf, or prepare the visits of a node's children; return whether the node is a leaf."""
    answer = answer_from_bounds(node.game, seat)
    if answer == UNDECIDED and depth > 0:
        _expand(node, tree, seat)
        return False
    node.value = node.lead
    if answer == YES:
        node.value += WIN
    elif answer == NO:
        node.value -= WIN
    return True


@jit
def _lead(game: State, seat: int) -> int:
    """Return the sum, over the other seats, of the evaluation of `seat` minus that of the other seat."""
    values = np.zeros(MAX_PLAYERS, np.int64)
    write_evaluation(game, values)
    return game.num_players * values[seat] - values.sum()


@jit
def _lead_change(game: State, slot: int, seat: int) -> int:
    """Return the change in the lead of `seat` if the seat to move slides the stone of `slot`."""
    mover, section = game.to_move, SECTION[landing_square(game, slot)]
    gain, count = slide_gain(game, slot), game.counts[game.to_move, section] + 1
    change = (game.num_players - 1) * gain if mover == seat else -gain
    for other in range(game.num_players):  # the owner of the section may lose it
        if other != mover and game.owned[other] >> section & 1 and count >= game.counts[other, section]:
            change += CONQUEST if other != seat else -CONQUEST * (game.num_players - 1)
    return change


@jit
def _expand(node: State, tree: int, seat: int) -> None:
    """Determine which side slides, and the order of its slides: the best lead for the side first."""
    game = node.game
    if tree == PARANOID:
        node.maximises = game.to_move == seat
        node.untried = game.movable[game.to_move]
    else:  # a side that cannot slide is passed over
        own = game.movable[seat]
        others = movable_slots(game) & ~own
        node.maximises = own != 0 and (node.maximises or others == 0)
        node.untried = own if node.maximises else others
    node.best_slot = -1
    node.value = -_INFINITY if node.maximises else _INFINITY
    bits = node.untried
    while bits:
        slot = lowest_bit(bits)
        game.to_move = _owner(game, slot)
        node.changes[slot] = _lead_change(game, slot, seat)
        node.keys[slot] = 64 * (node.changes[slot] if node.maximises else -node.changes[slot]) - slot
        bits &= bits - 1


@jit
def _back_up(node: State, value: int) -> None:
    """Back up the value of the child that was visited last if it is the best so far."""
    if node.maximises:
        if value > node.value:
            node.value, node.best_slot = value, node.tried
            node.alpha = max(node.alpha, value)
    elif value < node.value:
        node.value, node.best_slot = value, node.tried
        node.beta = min(node.beta, value)
