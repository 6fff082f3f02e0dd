"""Solve small boards of Kropki: alpha-beta search to the end of the game, with a transposition table.

The value of a position is Black's lead at the end, in points, if both seats maximise their own lead. The sign of the
value gives the winner. The table identifies positions by 64-bit Zobrist keys that are the same for all images of a
position under the symmetries of its board.

`python -m ninetka_agents.kropki.exact 3x3 5x4` prints the values of boards, for both rules and starts, as JSON.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, Agent
from ninetka_agents.kropki.greedy import GreedyAgent
from ninetka_env.core.game import check_game
from ninetka_env.core.jit import jit
from ninetka_env.core.options import check_count
from ninetka_env.core.verbs import State, StateArray, is_over, play
from ninetka_env.games.kropki.game import Game
from ninetka_env.games.kropki.geometry import (
    LIVE_MASK,
    MAX_HEIGHT,
    MAX_WIDTH,
    MIN_SIDE,
    POINT_MASK,
    REGION_MASK,
    node_symmetries,
)
from ninetka_env.games.kropki.regions import count_drawable, drawable_node
from ninetka_env.games.kropki.rules import STARTS, TERRITORIES, num_nodes

INFINITE_VALUE = 2000
"""A number above any lead. `-INFINITE_VALUE` also means that a value is not known."""
ENTRY_DTYPE = np.dtype(
    [("key", np.uint64), ("lower", np.int16), ("upper", np.int16), ("first", np.int16), ("used", np.int16)]
)
"""An entry of the table: bounds of a position's value, and the node to try first, or -1. The node belongs to the
symmetric image with the smallest key; see `_canonical_key`."""

Keys: TypeAlias = npt.NDArray[np.uint64]
Ints: TypeAlias = npt.NDArray[np.int64]


class ExactResult(NamedTuple):
    """The exact value of a position."""

    value: int
    """Black's lead at the end, in points; negative if White leads."""
    positions: int
    """Number of positions searched."""


class Solver:
    """Solves positions of one board size. The table of positions is kept between calls."""

    def __init__(self, width: int, height: int, table_bits: int = 20) -> None:
        """Allocate a table of `2 ** table_bits` positions, 16 bytes each."""
        check_count("width", width, MIN_SIDE, MAX_WIDTH)
        check_count("height", height, MIN_SIDE, MAX_HEIGHT)
        self.board_size = width, height
        self.table = np.zeros(1 << check_count("table_bits", table_bits, 8, 28), ENTRY_DTYPE)
        self._images = node_symmetries(width, height)
        nodes = width * height
        codes = np.random.default_rng(width * 64 + height).integers(0, 1 << 64, (nodes, 16), dtype=np.uint64)
        codes[:, 0] = 0
        self._zobrist_keys = codes
        rows, columns = np.divmod(np.arange(nodes), width)
        far = np.maximum(abs(2 * rows - height + 1), abs(2 * columns - width + 1))
        self._order = np.argsort(far, kind="stable").astype(np.int64)

    def solve(self, game: Game) -> ExactResult:
        """Return the value of a position.

        Raises:
            ValueError: if the board of `game` has another size than the solver's boards.
        """
        check_game(game, Game)
        if (game.width, game.height) != self.board_size:
            raise ValueError(
                f"board of {game.width} x {game.height}: expected {self.board_size[0]} x {self.board_size[1]}"
            )
        depth = 3 * game.width * game.height + 2  # the longest game: placements, drawings and ends of turns
        games = np.zeros(depth, game.records.dtype)
        games[0] = game.records[0]
        stack = np.zeros((depth, 9), np.int64)
        value, positions = _solve(games, stack, self.table, self._order, self._images, self._zobrist_keys)
        return ExactResult(int(value), int(positions))

    def action_values(self, game: Game) -> dict[int, int]:
        """Return the value after each legal action."""
        values = {}
        for action in game.legal_actions().tolist():
            after = game.copy()
            after.play(action)
            values[action] = self.solve(after).value
        return values


def count_open_choices(games: StateArray) -> Ints:
    """Return the number of free nodes plus the number of opposing points in cores that may be drawn, (N,) int64."""
    return games["free"].astype(np.int64) + games["capturable"].sum(axis=1)


class ExactAgent(Agent):
    """Plays like `GreedyAgent` while many choices remain, and perfectly afterwards."""

    name = "exact"

    def __init__(self, free: int = 12) -> None:
        """Create the agent.

        Args:
            free: maximum number of choices, counted by `count_open_choices`, in a position that is solved; 0..20.

        Raises:
            ValueError: if `free` is out of range.
        """
        self.free = check_count("free", free, 0, 20)
        self._greedy = GreedyAgent()

    def act(self, games: StateArray, rng: np.random.Generator) -> Actions:
        """Choose actions; among the best, prefer the greedy agent's action. See `ninetka_agents.agent.Agent.act`."""
        actions = self._greedy.act(games, rng)
        for index in np.flatnonzero(count_open_choices(games) <= self.free).tolist():
            game = Game(games[index : index + 1].copy())
            values = Solver(game.width, game.height, table_bits=16).action_values(game)
            best = (min if game.to_move else max)(values.values())
            if values[int(actions[index])] != best:
                actions[index] = next(action for action, value in values.items() if value == best)
        return actions


# The search: a stack of states, and a row of search data for each

_ALPHA_AT_START, _BETA_AT_START, _ALPHA, _BETA, _BEST, _CHOSEN, _NEXT, _FIRST, _TRIED = range(9)
"""Columns of the stack: the alpha-beta window, initial and current; the best value so far and its action; the index of
the next action, the action to try before all others, and the action that is being tried."""


@jit
def _solve(
    games: StateArray, stack: Ints, table: npt.NDArray[np.void], order: Ints, images: Ints, zobrist_keys: Keys
) -> tuple[int, int]:
    """Return the value of `games[0]` and the number of positions searched."""
    depth, positions, value = (
        0,
        1,
        _start_position(games[0], stack[0], table, images, zobrist_keys, -INFINITE_VALUE, INFINITE_VALUE),
    )
    while True:
        row = stack[depth]
        if value > -INFINITE_VALUE and depth == 0:
            return value, positions
        if value > -INFINITE_VALUE:  # the value of games[depth] is known: return it to the position above
            depth -= 1
            row = stack[depth]
            _update_row(games[depth], row, value)
        row[_TRIED] = _next_action(games[depth], row, order)
        if row[_TRIED] < 0:
            value = row[_BEST]
            _store(games[depth], row, table, images, zobrist_keys)
            continue
        games[depth + 1] = games[depth]
        play(games[depth + 1], row[_TRIED])
        depth += 1
        positions += 1
        value = _start_position(games[depth], stack[depth], table, images, zobrist_keys, row[_ALPHA], row[_BETA])


@jit
def _start_position(
    game: State, row: Ints, table: npt.NDArray[np.void], images: Ints, zobrist_keys: Keys, alpha: int, beta: int
) -> int:
    """Initialise the row of a position; return the position's value, if it is known without a search.

    If only a bound of the value is known, return it if it is outside the window; otherwise return `-INFINITE_VALUE`.
    """
    if is_over(game):
        return int(game.score[0]) - int(game.score[1])
    row[_ALPHA_AT_START], row[_BETA_AT_START], row[_ALPHA], row[_BETA] = alpha, beta, alpha, beta
    row[_CHOSEN], row[_NEXT], row[_FIRST], row[_TRIED] = -1, -1, -1, -1
    row[_BEST] = INFINITE_VALUE if game.to_move else -INFINITE_VALUE
    key, image = _canonical_key(game, images, zobrist_keys)
    entry = table[np.int64(key & np.uint64(len(table) - 1))]
    if entry.used == 0 or entry.key != key:
        return -INFINITE_VALUE
    if entry.lower == entry.upper or entry.lower >= beta:
        return int(entry.lower)
    if entry.upper <= alpha:
        return int(entry.upper)
    if entry.first >= 0 and game.drawing == 0:
        for node in range(num_nodes(game)):
            if images[image, node] == entry.first:
                row[_FIRST] = node
    return -INFINITE_VALUE


@jit
def _update_row(game: State, row: Ints, value: int) -> None:
    """Update the best value and the window with the value of the action that was tried."""
    if game.to_move == 0:
        if value > row[_BEST]:
            row[_BEST], row[_CHOSEN] = value, row[_TRIED]
        row[_ALPHA] = max(row[_ALPHA], value)
    else:
        if value < row[_BEST]:
            row[_BEST], row[_CHOSEN] = value, row[_TRIED]
        row[_BETA] = min(row[_BETA], value)


@jit
def _next_action(game: State, row: Ints, order: Ints) -> int:
    """Return the next action to try, or -1 if all have been tried or the window is empty (a cut-off)."""
    if row[_ALPHA] >= row[_BETA]:
        return -1
    nodes = num_nodes(game)
    if game.drawing:
        row[_NEXT] += 1
        count = count_drawable(game)
        if row[_NEXT] > count:
            return -1
        return 2 * nodes if row[_NEXT] == count else nodes + drawable_node(game, row[_NEXT])
    if row[_NEXT] == -1 and row[_FIRST] >= 0:
        row[_NEXT] = 0
        return row[_FIRST]
    row[_NEXT] = max(row[_NEXT], 0)
    while row[_NEXT] < nodes:
        node = order[row[_NEXT]]
        row[_NEXT] += 1
        if node != row[_FIRST] and game.cell[node + int(game.width) + 1] & LIVE_MASK == 0:
            return node
    return -1


@jit
def _store(game: State, row: Ints, table: npt.NDArray[np.void], images: Ints, zobrist_keys: Keys) -> None:
    """Store the value of a position in the table, or a bound of it if the value is outside the window."""
    key, image = _canonical_key(game, images, zobrist_keys)
    entry, value = table[np.int64(key & np.uint64(len(table) - 1))], row[_BEST]
    if entry.used == 0 or entry.key != key:
        entry.key, entry.used, entry.lower, entry.upper = key, 1, -INFINITE_VALUE, INFINITE_VALUE
    if value > row[_ALPHA_AT_START]:
        entry.lower = max(entry.lower, value)
    if value < row[_BETA_AT_START]:
        entry.upper = min(entry.upper, value)
    entry.first = images[image, row[_CHOSEN]] if 0 <= row[_CHOSEN] < num_nodes(game) else -1


@jit
def _canonical_key(game: State, images: Ints, zobrist_keys: Keys) -> tuple[np.uint64, int]:
    """Return the smallest key of a position's symmetric images, and the number of the symmetry with this key."""
    best, image = np.uint64(0), -1
    first = int(game.width) + 1
    for k in range(len(images)):
        key = np.uint64(0)
        for node in range(num_nodes(game)):
            key ^= zobrist_keys[images[k, node], int(game.cell[first + node]) & (POINT_MASK | REGION_MASK)]
        if image < 0 or key < best:
            best, image = key, k
    turn = np.uint64(4 * int(game.territory) + 2 * int(game.to_move) + int(game.drawing) + 1)
    return best ^ turn * np.uint64(0x9E3779B97F4A7C15), image


# The values of whole boards


def board_values(boards: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return values of start positions by board, such as `"5x4"`, and by rule and start, such as `"declared cross"`.

    Raises:
        ValueError: if an entry of `boards` is not a board size.
    """
    found = {}
    for board in boards:
        match = re.fullmatch(r"(\d+)x(\d+)", board)
        if match is None:
            raise ValueError(f"board {board!r}: expected width and height, such as 5x4")
        width, height = int(match[1]), int(match[2])
        games = {
            f"{territory} {start}": Game.new(width, height, territory=territory, start=start)
            for territory, start in itertools.product(TERRITORIES, STARTS)
        }
        found[board] = {rule: Solver(width, height, table_bits=22).solve(game).value for rule, game in games.items()}
    return found


if __name__ == "__main__":
    try:
        print(json.dumps(board_values(sys.argv[1:]), indent=2))
    except ValueError as wrong:
        sys.exit(f"error: {wrong}")
