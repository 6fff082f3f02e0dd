"""Perfect play in the two-player movement phase: who wins, by which moves, by how much; and the agent that knows.

    solution = solve(game, Budget(seconds=5))
    solution.winner, solution.winning_moves()

A budget that runs out leaves values unknown; nothing is ever guessed. See
`ninetka_agents.ninetka.solver.reduction` for what is searched and
`ninetka_agents.ninetka.solver.proof` for the search.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, Agent, GameRandom, as_positions, check_threads, game_streams
from ninetka_agents.ninetka.solver.proof import LEAST_BUCKETS, WAYS, Memory, Table, find_winner, make_memory, make_table
from ninetka_agents.search.mcts import MctsAgent
from ninetka_agents.search.uct import EXPLORATION
from ninetka_env.core.batch import as_records
from ninetka_env.core.game import check_game
from ninetka_env.core.jit import jit, lowest
from ninetka_env.core.options import check_count
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.threads import Control, claim, run_shared
from ninetka_env.core.verbs import Record, Records
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import NUM_ACTIONS, NUM_SECTIONS, PASS, SLOT_SQUARE
from ninetka_env.games.ninetka.rules import GAME, MOVEMENT, must_pass, play_bit

WON, UNKNOWN, LOST = 1, 0, -1
"""Values of moves, for the seat that makes them."""
ENTRY_BYTES = 16
SLICE = 20_000
"""Nodes between two looks at the clock."""


@dataclass(frozen=True)
class Budget:
    """How much a solution may cost."""

    nodes: int = 10_000_000
    """Most nodes to visit, in all."""
    seconds: float = np.inf
    """Most seconds to spend, to within a few hundredths."""
    memory_mb: int = 512
    """Most memory to use, in MiB. It is taken as the search needs it."""
    stopped: Callable[[], bool] = lambda: False
    """Asked every few hundredths of a second: true ends the search like a budget that runs out."""


class Solution(NamedTuple):
    """What is known of a position under perfect play."""

    winner: int
    """The seat that wins, `UNFINISHED`, -2, if that is unknown."""
    moves: npt.NDArray[np.int8]
    """(122,) int8: for each legal action `WON` 1, `LOST` -1 or `UNKNOWN` 0, for the seat to move; illegal ones 0."""
    margin: int | None
    """Sections of seat 0 less those of seat 1 if both play for just that; None if unknown or not asked for."""
    nodes: int
    """Nodes visited."""
    seconds: float
    """Wall time spent."""

    def winning_moves(self) -> Actions:
        """Return the actions known to win, ascending int64."""
        return np.flatnonzero(self.moves == WON)


class _Search:
    """One search with its table, stopped by its budget."""

    def __init__(self, budget: Budget) -> None:
        self.nodes, self.start, self.budget = 0, time.perf_counter(), budget
        self.most = _table_entries(budget.memory_mb)
        self.memory, self.table, self.stored = make_memory(), make_table(), 0

    def winner(self, game: Game, margin: int = 0) -> int:
        """Return the seat that wins `game`, `UNFINISHED` if the budget runs out; see `proof.find_winner`."""
        winner = UNFINISHED
        while winner < 0 and self.nodes < self.budget.nodes and not self.is_spent():
            limit = min(SLICE, self.budget.nodes - self.nodes)
            winner, nodes, self.stored, self.table = _find_first(
                game.records, margin, self.memory, self.table, self.stored, self.most, limit
            )
            self.nodes += nodes
        return int(winner)

    def is_spent(self) -> bool:
        """Tell whether no time is left, or nobody waits for the result."""
        return self.seconds() >= self.budget.seconds or self.budget.stopped()

    def seconds(self) -> float:
        """Return the wall time since the search began."""
        return time.perf_counter() - self.start


def solve(game: Game, budget: Budget | None = None, *, moves: bool = True, margin: bool = False) -> Solution:
    """Solve a two-player position of the movement phase.

    Args:
        game: the position; a game that is over has its winner.
        budget: by default 10 million nodes.
        moves: find out about every legal move, not only who wins. (The winner comes first.)
        margin: also find the exact margin. (It comes last.)

    Raises:
        ValueError: if there are more players, the movement phase has not begun, or the budget is no budget.
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
    """Return the value of an action for the seat to move, given who wins the position."""
    if winner == 1 - game.to_move:
        return LOST
    after = game.copy()
    after.play(action)
    won_by = search.winner(after)
    return value_for(won_by, game.to_move)


def _margin(search: _Search, game: Game, winner: int) -> int | None:
    """Return the margin: step away from the winner's least, 1 or 0, until it cannot be had."""
    lead = 1 if winner == 0 else 0
    while abs(lead) < NUM_SECTIONS:
        beyond = search.winner(game, lead if winner == 0 else lead - 1)
        if beyond < 0:
            return None
        if beyond != winner:
            break
        lead += 1 if winner == 0 else -1
    return lead


def solvable(games: Records) -> npt.NDArray[np.bool_]:
    """Tell which of (N,) games the solver can say something about: those of two players in their movement phase."""
    return np.asarray((games["num_players"] == 2) & (games["phase"] == MOVEMENT))


def is_solvable(game: Game) -> bool:
    """Tell whether `solve` takes a position: two players, in their movement phase."""
    return bool(solvable(game.records)[0])


def check_solvable(game: Game) -> None:
    """Raise `ValueError` unless `is_solvable`, saying why."""
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
    """Return the largest table, a power of two, that fits while the one before it, a quarter, is still there."""
    entries = WAYS * LEAST_BUCKETS
    while 2 * entries * ENTRY_BYTES * 5 // 4 <= memory_mb << 20:
        entries *= 2
    return entries


def solve_batch(
    games: Records,
    nodes: int = 100_000,
    threads: int = 0,
    *,
    moves: bool = True,
    memory_mb: int = 64,
    families: npt.NDArray[np.integer] | None = None,
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    """Solve many positions over threads. Each has a budget of its own, so threads change no result.

    Args:
        games: (N,) records of two-player games; those before their movement phase stay unknown.
        nodes: most nodes to visit per position, its moves included.
        threads: at most this many threads; 0 for one per core.
        moves: also find the value of every legal move.
        memory_mb: most memory for each thread's search, in MiB.
        families: (N,) numbers; positions of the same number share what the search remembers and are solved in the order
            in which they stand here, which is quick where late positions of a game stand before earlier ones. None
            solves each by itself.

    Returns:
        (N,) int8 the winning seats, `UNFINISHED` where unknown; (N, 122) int8 the values of moves as in
        `Solution.moves`.

    Raises:
        ValueError: if a game has more than two players, or an option is out of range.
    """
    games = as_records(games)
    if games.dtype != GAME or (games["num_players"] != 2).any():
        raise ValueError("the solver plays two-player games of 9tka")
    if families is not None and np.shape(families) != (len(games),):
        raise ValueError(f"families: expected shape ({len(games)},), got {np.shape(families)}")
    check_count("nodes", nodes)
    check_count("memory_mb", memory_mb)
    wanted = ALL_MOVES if moves else ONLY_WINNER
    return _solve_many(games, nodes, check_threads(threads), wanted, memory_mb, families)


ONLY_WINNER, A_WINNING_MOVE, ALL_MOVES = 0, 1, 2


def _solve_many(
    games: Records,
    nodes: int,
    threads: int,
    wanted: int,
    memory_mb: int = 64,
    families: npt.NDArray[np.integer] | None = None,
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    winners, values = np.full(len(games), UNFINISHED, np.int8), np.zeros((len(games), NUM_ACTIONS), np.int8)
    families = np.arange(len(games)) if families is None else families
    order = np.argsort(families, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(families[order])) + 1, len(games))
    threads = min(threads, max(1, len(ends)))
    most = _table_entries(memory_mb)
    run_shared(_solve_all, threads, np.ascontiguousarray(games), order, ends, nodes, most, wanted, winners, values)
    return winners, values


@jit
def value_for(winner: int, seat: int) -> int:
    """Return what a position is worth to a seat, given who wins it or `UNFINISHED`."""
    return UNKNOWN if winner < 0 else WON if winner == seat else LOST


@jit
def _find_first(
    games: Records, margin: int, memory: Memory, table: Table, stored: int, most: int, limit: int
) -> tuple[int, int, int, Table]:
    return find_winner(games[0], margin, memory, table, stored, most, limit)


@jit
def _solve_all(
    control: Control,
    games: Records,
    order: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    limit: int,
    most: int,
    wanted: int,
    winners: npt.NDArray[np.int8],
    values: npt.NDArray[np.int8],
) -> None:
    """Solve the families of games that this thread claims: family k is `order[ends[k - 1]:ends[k]]`."""
    memory, scratch, table = make_memory(), np.zeros(1, GAME), make_table()
    while True:
        family, stop = claim(control, 0, len(ends), 1)
        if family == stop:
            return
        table, stored = _emptied(table), 0
        for place in range(ends[family - 1] if family else 0, ends[family]):
            index = order[place]
            if games[index].phase == MOVEMENT:
                winners[index], stored, table = _solve_one(
                    games[index], wanted, scratch, memory, table, stored, most, limit, values[index]
                )


@jit
def _emptied(table: Table) -> Table:
    """Return an empty table of the least size."""
    if len(table) != WAYS * LEAST_BUCKETS:
        return make_table()
    for entry in range(len(table)):
        table[entry, 0] = table[entry, 1] = 0
    return table


@jit
def _solve_one(
    game: Record,
    wanted: int,
    scratch: Records,
    memory: Memory,
    table: Table,
    stored: int,
    most: int,
    limit: int,
    values: npt.NDArray[np.int8],
) -> tuple[int, int, Table]:
    """Find the winner, and the values of moves as far as `wanted`.

    Return the winner or `UNFINISHED`, and the table with how many entries of it are in use.
    """
    mover, winner, slot = int(game.to_move), UNFINISHED, -1
    bits = game.movable[mover]
    while True:  # the position itself first, slot -1, then what each slide leads to
        scratch[0] = game
        if slot >= 0:
            play_bit(scratch[0], slot)
        won_by, nodes = winner, 0
        if winner != 1 - mover:  # else every move is lost
            won_by, nodes, stored, table = find_winner(scratch[0], 0, memory, table, stored, most, limit)
            limit -= nodes
        value = value_for(won_by, mover)
        if slot >= 0:
            values[SLOT_SQUARE[slot]] = value
        if slot < 0 or value == WON:
            winner = won_by
        if bits == 0 or wanted == ONLY_WINNER or (wanted == A_WINNING_MOVE and slot >= 0 and value == WON):
            break
        slot = lowest(bits)
        bits &= bits - 1
    if must_pass(game) and wanted != ONLY_WINNER:
        values[PASS] = value_for(winner, mover)
    return winner, stored, table


class SolverAgent(Agent):
    """Plays a two-player movement phase perfectly once it is solved within the budget, and like UCT before.

    In a lost position it plays UCT's move, which sets the opponent problems.
    """

    def __init__(
        self, nodes: int = 300_000, simulations: int = 1000, exploration: float = EXPLORATION, threads: int = 0
    ) -> None:
        """Set the search up.

        Args:
            nodes: most nodes that the solver visits per move.
            simulations: see `ninetka_agents.search.mcts.MctsAgent`.
            exploration: likewise.
            threads: at most this many threads; 0 for one per core.

        Raises:
            ValueError: if an option is out of range.
        """
        self.name = "solver"
        self._nodes = check_count("nodes", nodes)
        self._threads = check_threads(threads)
        self._mcts = MctsAgent(simulations, exploration, threads)

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        games = as_positions(games, Game.name)
        streams, actions = game_streams(games, rng), np.full(len(games), -1, np.int64)
        known = np.flatnonzero(solvable(games))
        _, values = _solve_many(games[known], self._nodes, self._threads, A_WINNING_MOVE)
        winning = values == WON
        actions[known] = np.where(winning.any(axis=1), winning.argmax(axis=1), -1)
        rest = np.flatnonzero(actions < 0)
        if len(rest):
            actions[rest] = self._mcts.act(games[rest], GameRandom(streams[rest]))
        return actions
