"""Perfect play in the two-player movement phase: the winner, the winning moves and the margin; and an agent.

    solution = solve(game, Budget(seconds=5))
    solution.winner, solution.winning_moves()

If the budget runs out, values are unknown; the solver never guesses. See `ninetka_agents.ninetka.solver.reduction` for
the states that are searched and `ninetka_agents.ninetka.solver.proof` for the search.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, Agent, PerGameGenerator, as_unfinished_states, check_threads, game_streams
from ninetka_agents.ninetka.solver.proof import (
    MIN_BUCKETS,
    WAYS,
    TranspositionTable,
    Workspace,
    find_winner,
    make_table,
    make_workspace,
)
from ninetka_agents.search.mcts import MctsAgent
from ninetka_agents.search.uct import EXPLORATION
from ninetka_env.core.batch import as_states
from ninetka_env.core.game import check_game
from ninetka_env.core.jit import jit, lowest_bit
from ninetka_env.core.options import check_count
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.registry import Variant
from ninetka_env.core.threads import Control, claim, run_shared
from ninetka_env.core.verbs import State, StateArray
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import NUM_ACTIONS, NUM_SECTIONS, PASS, SLOT_SQUARE
from ninetka_env.games.ninetka.rules import MOVEMENT, STATE_DTYPE, must_pass, play_bit

WON, UNKNOWN, LOST = 1, 0, -1
"""Values of moves for the seat that plays them."""
ENTRY_BYTES = 16
NODES_PER_SLICE = 20_000
"""Nodes between two checks of the time."""


@dataclass(frozen=True)
class Budget:
    """Limits of a search by the solver."""

    nodes: int = 10_000_000
    """Maximum number of nodes to visit in total."""
    seconds: float = np.inf
    """Maximum time in seconds; it may be exceeded by a few hundredths of a second."""
    memory_mb: int = 512
    """Maximum memory in MiB. Memory is allocated as the search needs it."""
    should_stop: Callable[[], bool] = lambda: False
    """Called every few hundredths of a second; if it returns True, the search ends as if the budget had run out."""


class Solution(NamedTuple):
    """The result of the solver for a position under perfect play."""

    winner: int
    """The seat that wins; `UNFINISHED` (-2) if unknown."""
    moves: npt.NDArray[np.int8]
    """(122,) int8: the value of each action for the seat to move: `WON` 1, `LOST` -1, `UNKNOWN` 0; 0 if illegal."""
    margin: int | None
    """Seat 0's sections minus seat 1's sections if both seats maximise their lead; None if unknown or not requested."""
    nodes: int
    """Nodes visited."""
    seconds: float
    """Wall-clock time used."""

    def winning_moves(self) -> Actions:
        """Return the actions known to win, int64 in ascending order."""
        return np.flatnonzero(self.moves == WON)


class _Search:
    """A search with its table and budget."""

    def __init__(self, budget: Budget) -> None:
        self.nodes, self.start, self.budget = 0, time.perf_counter(), budget
        self.max_entries = _table_entries(budget.memory_mb)
        self.workspace, self.table, self.stored = make_workspace(), make_table(), 0

    def winner(self, game: Game, margin: int = 0) -> int:
        """Return the seat that wins `game`, or `UNFINISHED` if the budget runs out.

        Seat 0 wins if it leads by more than `margin` sections.
        """
        winner = UNFINISHED
        while winner < 0 and self.nodes < self.budget.nodes and not self.is_spent():
            limit = min(NODES_PER_SLICE, self.budget.nodes - self.nodes)
            winner, nodes, self.stored, self.table = _find_winner_of_first(
                game.records, margin, self.workspace, self.table, self.stored, self.max_entries, limit
            )
            self.nodes += nodes
        return int(winner)

    def is_spent(self) -> bool:
        """Return whether the time is up or the caller requested a stop."""
        return self.seconds() >= self.budget.seconds or self.budget.should_stop()

    def seconds(self) -> float:
        """Return the wall-clock time since the search started."""
        return time.perf_counter() - self.start


def solve(game: Game, budget: Budget | None = None, *, moves: bool = True, margin: bool = False) -> Solution:
    """Solve a two-player position of the movement phase.

    Args:
        game: the position. If the game has ended, the result is its winner.
        budget: by default 10 million nodes.
        moves: also find the value of every legal move, after the winner.
        margin: also find the exact margin, after everything else.

    Raises:
        ValueError: if the game has more players, the movement phase has not started, or the budget is invalid.
    """
    check_solvable(game)
    search = _Search(_check_budget(budget or Budget()))
    winner = search.winner(game)
    values = np.zeros(NUM_ACTIONS, np.int8)
    if moves:
        for action in game.legal_actions():
            values[action] = _value_of_move(search, game, int(action), winner)
        if winner < 0 and (values == WON).any():
            winner = game.to_move
    lead = _margin(search, game, winner) if margin and winner >= 0 else None
    return Solution(winner, values, lead, search.nodes, search.seconds())


def _value_of_move(search: _Search, game: Game, action: int, winner: int) -> int:
    """Return the value of an action for the seat to move, given the winner of the position."""
    if winner == 1 - game.to_move:
        return LOST
    after = game.copy()
    after.play(action)
    won_by = search.winner(after)
    return value_for(won_by, game.to_move)


def _margin(search: _Search, game: Game, winner: int) -> int | None:
    """Return the margin: start at the winner's smallest lead, 1 or 0, and raise it until the winner cannot reach it."""
    lead = 1 if winner == 0 else 0
    while abs(lead) < NUM_SECTIONS:
        winner_beyond = search.winner(game, lead if winner == 0 else lead - 1)
        if winner_beyond < 0:
            return None
        if winner_beyond != winner:
            break
        lead += 1 if winner == 0 else -1
    return lead


def solvable(games: StateArray) -> npt.NDArray[np.bool_]:
    """Return (N,) bool: whether the solver can solve each game: two players, in the movement phase."""
    return np.asarray((games["num_players"] == 2) & (games["phase"] == MOVEMENT))


def is_solvable(game: Game) -> bool:
    """Return whether `solve` accepts a game: two players, in the movement phase."""
    return bool(solvable(game.records)[0])


def check_solvable(game: Game) -> None:
    """Raise `ValueError` with the reason if a game is not solvable; see `is_solvable`."""
    check_game(game, Game)
    if game.num_players != 2:
        raise ValueError(f"the solver plays two-player games; this one has {game.num_players} players")
    if game.phase != MOVEMENT:
        raise ValueError(f"the solver plays the movement phase; this game is in phase {game.phase.name}")


def _check_budget(budget: Budget) -> Budget:
    check_count("nodes", budget.nodes)
    check_count("memory_mb", budget.memory_mb)
    if not budget.seconds > 0:
        raise ValueError(f"seconds={budget.seconds!r}: expected a number above 0")
    return budget


def _table_entries(memory_mb: int) -> int:
    """Return the largest power of two such that a table with this number of entries fits into memory.

    While a table grows, the previous table, a quarter as large, needs memory, too.
    """
    entries = WAYS * MIN_BUCKETS
    while 2 * entries * ENTRY_BYTES * 5 // 4 <= memory_mb << 20:
        entries *= 2
    return entries


def solve_batch(
    games: StateArray,
    nodes: int = 100_000,
    threads: int = 0,
    *,
    moves: bool = True,
    memory_mb: int = 64,
    groups: npt.NDArray[np.integer] | None = None,
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    """Solve many positions on several threads. Results do not depend on the number of threads.

    Args:
        games: (N,) states of two-player games. Before the movement phase, the result is unknown.
        nodes: maximum number of nodes to visit per position, including its moves.
        threads: maximum number of threads; 0 for one per core.
        moves: also find the value of every legal move.
        memory_mb: maximum memory for each thread's search, in MiB.
        groups: (N,) integers. Positions with the same integer share a table and are solved in the order given. This
            is fast if late positions of a game come before earlier ones. None: every position has its own table.

    Returns:
        (N,) int8 winning seats, `UNFINISHED` if unknown; (N, 122) int8 values of moves as in `Solution.moves`.

    Raises:
        ValueError: if a game has more than two players, or an option is out of range.
    """
    games = as_states(games)
    if games.dtype != STATE_DTYPE or (games["num_players"] != 2).any():
        raise ValueError("the solver plays two-player games of 9tka")
    if groups is not None and np.shape(groups) != (len(games),):
        raise ValueError(f"groups: expected shape ({len(games)},), got {np.shape(groups)}")
    check_count("nodes", nodes)
    check_count("memory_mb", memory_mb)
    wanted = ALL_MOVES if moves else ONLY_WINNER
    return _solve_many(games, nodes, check_threads(threads), wanted, memory_mb, groups)


ONLY_WINNER, A_WINNING_MOVE, ALL_MOVES = 0, 1, 2  # values of `wanted`: what `_solve_one` finds


def _solve_many(
    games: StateArray,
    nodes: int,
    threads: int,
    wanted: int,
    memory_mb: int = 64,
    groups: npt.NDArray[np.integer] | None = None,
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    winners, values = np.full(len(games), UNFINISHED, np.int8), np.zeros((len(games), NUM_ACTIONS), np.int8)
    groups = np.arange(len(games)) if groups is None else groups
    order = np.argsort(groups, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(groups[order])) + 1, len(games))
    threads = min(threads, max(1, len(ends)))
    max_entries = _table_entries(memory_mb)
    run_shared(
        _solve_all, threads, np.ascontiguousarray(games), order, ends, nodes, max_entries, wanted, winners, values
    )
    return winners, values


@jit
def value_for(winner: int, seat: int) -> int:
    """Return the value of a position for a seat, given the winner or `UNFINISHED`."""
    return UNKNOWN if winner < 0 else WON if winner == seat else LOST


@jit
def _find_winner_of_first(
    games: StateArray,
    margin: int,
    workspace: Workspace,
    table: TranspositionTable,
    stored: int,
    max_entries: int,
    max_nodes: int,
) -> tuple[int, int, int, TranspositionTable]:
    return find_winner(games[0], margin, workspace, table, stored, max_entries, max_nodes)


@jit
def _solve_all(
    control: Control,
    games: StateArray,
    order: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    max_nodes: int,
    max_entries: int,
    wanted: int,
    winners: npt.NDArray[np.int8],
    values: npt.NDArray[np.int8],
) -> None:
    """Solve the groups of positions that this thread claims: group k is `order[ends[k - 1]:ends[k]]`."""
    workspace, scratch, table = make_workspace(), np.zeros(1, STATE_DTYPE), make_table()
    while True:
        group, stop = claim(control, 0, len(ends), 1)
        if group == stop:
            return
        table, stored = _empty_table(table), 0
        for place in range(ends[group - 1] if group else 0, ends[group]):
            index = order[place]
            if games[index].phase == MOVEMENT:
                winners[index], stored, table = _solve_one(
                    games[index], wanted, scratch, workspace, table, stored, max_entries, max_nodes, values[index]
                )


@jit
def _empty_table(table: TranspositionTable) -> TranspositionTable:
    """Return an empty table of the smallest size; clear and reuse `table` if it has that size."""
    if len(table) != WAYS * MIN_BUCKETS:
        return make_table()
    for entry in range(len(table)):
        table[entry, 0] = table[entry, 1] = 0
    return table


@jit
def _solve_one(
    game: State,
    wanted: int,
    scratch: StateArray,
    workspace: Workspace,
    table: TranspositionTable,
    stored: int,
    max_entries: int,
    max_nodes: int,
    values: npt.NDArray[np.int8],
) -> tuple[int, int, TranspositionTable]:
    """Find the winner and, as `wanted` requests, the values of moves, which are written to `values`.

    Returns:
        The winner or `UNFINISHED`; the number of table entries in use; the table.
    """
    mover, winner, slot = int(game.to_move), UNFINISHED, -1
    bits = game.movable[mover]
    while True:  # first the position itself (slot -1), then the position after each slide
        scratch[0] = game
        if slot >= 0:
            play_bit(scratch[0], slot)
        won_by, nodes = winner, 0
        if winner != 1 - mover:  # otherwise every move loses
            won_by, nodes, stored, table = find_winner(scratch[0], 0, workspace, table, stored, max_entries, max_nodes)
            max_nodes -= nodes
        value = value_for(won_by, mover)
        if slot >= 0:
            values[SLOT_SQUARE[slot]] = value
        if slot < 0 or value == WON:
            winner = won_by
        if bits == 0 or wanted == ONLY_WINNER or (wanted == A_WINNING_MOVE and slot >= 0 and value == WON):
            break
        slot = lowest_bit(bits)
        bits &= bits - 1
    if must_pass(game) and wanted != ONLY_WINNER:
        values[PASS] = value_for(winner, mover)
    return winner, stored, table


class SolverAgent(Agent):
    """Plays a winning move if the solver finds one within its budget, and the move of UCT otherwise.

    It plays perfectly from the first position that the solver solves. In lost positions, UCT's move makes the win more
    difficult for the opponent.
    """

    def __init__(
        self, nodes: int = 300_000, simulations: int = 1000, exploration: float = EXPLORATION, threads: int = 0
    ) -> None:
        """Set up the solver and the UCT search.

        Args:
            nodes: maximum number of nodes that the solver visits per move.
            simulations: simulations per move of UCT, where the solver does not find a win.
            exploration: the exploration constant of UCT; see `ninetka_agents.search.mcts.MctsAgent`.
            threads: maximum number of threads; 0 for one per core.

        Raises:
            ValueError: if an option is out of range.
        """
        self.name = "solver"
        self._nodes = check_count("nodes", nodes)
        self._threads = check_threads(threads)
        self._mcts = MctsAgent(simulations, exploration, threads)

    def caveat(self, variant: Variant) -> str:
        """Say that only two-player games can be solved; see `Agent.caveat`."""
        return "" if variant.num_players == 2 else "only two-player games can be solved, so it plays UCT"

    def act(self, games: StateArray, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        games = as_unfinished_states(games, Game.name)
        streams, actions = game_streams(games, rng), np.full(len(games), -1, np.int64)
        known = np.flatnonzero(solvable(games))
        _, values = _solve_many(games[known], self._nodes, self._threads, A_WINNING_MOVE)
        winning = values == WON
        actions[known] = np.where(winning.any(axis=1), winning.argmax(axis=1), -1)
        rest = np.flatnonzero(actions < 0)
        if len(rest):
            actions[rest] = self._mcts.act(games[rest], PerGameGenerator(streams[rest]))
        return actions
