"""Positions of 9tka's movement phase with exact values for every action, to test agents and networks.

    positions = load_positions(2)
    positions.states  # (N,) states, for agents, for `Game` and for batched environments
    positions.values  # (N, 122) int8: 1 won, -1 lost, 0 open or illegal

With two players, every action is won or lost, and the seat to move can win and can give the win away. With three and
four players, an action is won if the seat to move can then force a win against all others together, lost if another
seat can, and open otherwise; each position has actions of at least two kinds. `make_positions.py` made the files, and
says how the positions were chosen.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from ninetka_agents.ninetka.solver.solver import LOST, UNKNOWN, WON
from ninetka_env.core.options import check_choice, check_count
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import NUM_ACTIONS, NUM_SLOTS, SIZE

COLUMNS = ("id", "source", "board", "to_move", "slides", "won", "lost", "open")
PLAYERS = (2, 3, 4)
_STAGES_OF_SEVERAL = ((22, 19), (18, 15), (14, 11), (10, 7))
STAGES = {2: ((0, 3), (4, 7), (8, 11), (12, 15), (16, 36)), 3: _STAGES_OF_SEVERAL, 4: _STAGES_OF_SEVERAL}
"""Stages of the movement phase by number of players: with two players the first and last number of slides made before,
with more the first and last number of stones that can still slide."""
CODES = ".abcdN"
"""Characters of the cell codes 0 to 5: empty, a stone of seat 0 to 3, a neutral stone."""


@dataclass(frozen=True)
class PositionSet:
    """N positions of the movement phase, each with at least two legal actions of different values."""

    ids: tuple[str, ...]
    """A name for each position."""
    sources: npt.NDArray[np.int64]
    """(N,) the number of the game that each position is from; positions of one game are not independent."""
    slides: npt.NDArray[np.int64]
    """(N,) the number of slides made before."""
    states: StateArray
    """(N,) states."""
    values: npt.NDArray[np.int8]
    """(N, 122) int8: `WON` 1, `LOST` -1, otherwise 0."""

    def __len__(self) -> int:
        """Return the number of positions."""
        return len(self.ids)

    def game(self, index: int) -> Game:
        """Return a position as a game."""
        return Game(self.states[index : index + 1].copy())

    @property
    def stages(self) -> npt.NDArray[np.int64]:
        """(N,) the stage of each position, an index into `STAGES` of the number of players."""
        return stages_of(int(self.states["num_players"][0]), self.slides, count_stones(self.states))

    @property
    def legal(self) -> npt.NDArray[np.bool_]:
        """(N, 122) whether each action is legal."""
        legal = np.zeros(self.values.shape, np.bool_)
        for row in range(len(self)):
            legal[row, self.game(row).legal_actions()] = True
        return legal


def count_stones(states: StateArray) -> npt.NDArray[np.int64]:
    """Return (N,) the number of stones that can slide in positions of the movement phase."""
    return np.array([Game(states[row : row + 1]).movable().sum() for row in range(len(states))], np.int64)


def stages_of(num_players: int, slides: npt.NDArray[np.int64], stones: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return (N,) the stage of each position, -1 for positions of no stage."""
    stages, place = np.full(len(slides), -1), slides if num_players == 2 else stones
    for stage, bounds in enumerate(STAGES[num_players]):
        stages[(place >= min(bounds)) & (place <= max(bounds))] = stage
    return stages


def load_positions(num_players: int = 2) -> PositionSet:
    """Return the stored positions of games with `num_players` players; raise `ValueError` unless it is 2, 3 or 4."""
    check_choice("num_players", num_players, PLAYERS)
    file = files("ninetka_train.ninetka") / "data" / f"positions-{num_players}.csv"
    return read_positions(file.read_text("utf-8"), num_players)


def read_positions(text: str, num_players: int) -> PositionSet:
    """Read positions from CSV.

    Raises:
        ValueError: if the text is not such a file, or a position is impossible; the message names the line.
    """
    rows = csv.DictReader(io.StringIO(text))
    try:
        if tuple(rows.fieldnames or ()) != COLUMNS:
            raise ValueError(f"expected the columns {', '.join(COLUMNS)}")
        found = [_read_row(row, num_players) for row in rows]
        if not found:
            raise ValueError("expected at least one position")
    except (ValueError, AttributeError, TypeError, csv.Error) as error:
        raise ValueError(f"positions, line {rows.line_num}: {error}") from None
    ids, sources, slides, states, values = zip(*found, strict=True)
    return PositionSet(ids, np.array(sources), np.array(slides), np.concatenate(states), np.stack(values))


def _read_row(row: dict[str, str], num_players: int) -> tuple[str, int, int, StateArray, npt.NDArray[np.int8]]:
    """Return the id, the source, the slides, the state and the values of a line."""
    source = check_count("source", int(row["source"]), 0)
    slides = check_count("slides", int(row["slides"]), 0, NUM_SLOTS)
    game = _read_game(row["board"], int(row["to_move"]), num_players)
    return row["id"], source, slides, game.records, _read_values(game, row)


def _read_game(board: str, to_move: int, num_players: int) -> Game:
    """Return the position of a board: rows of cells, separated by slashes."""
    cells = [[CODES.index(cell) for cell in row] for row in board.split("/")]
    if [len(row) for row in cells] != [SIZE] * SIZE:
        raise ValueError(f"expected {SIZE} rows of {SIZE} cells")
    game = Game.from_board(np.array(cells), to_move, num_players)
    if game.to_move != to_move:
        raise ValueError(f"seat {to_move} cannot slide")
    return game


def _read_values(game: Game, row: dict[str, str]) -> npt.NDArray[np.int8]:
    """Return the values of all actions; check that each legal action has one."""
    value, named = np.zeros(NUM_ACTIONS, np.int8), []
    for column, meaning in (("won", WON), ("lost", LOST), ("open", UNKNOWN)):
        actions = [int(action) for action in row[column].split()]
        named += actions
        if set(actions) <= set(game.legal_actions().tolist()):
            value[actions] = meaning
    if sorted(named) != game.legal_actions().tolist():
        raise ValueError("expected each legal action in one of the columns won, lost and open")
    return value


def positions_csv(positions: PositionSet) -> str:
    """Return positions as CSV; `read_positions` reads it."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    legal = positions.legal
    for row, name in enumerate(positions.ids):
        state, value = positions.states[row], positions.values[row]
        cells = "".join(CODES[code] for code in state["board"])
        board = "/".join(cells[first : first + SIZE] for first in range(0, len(cells), SIZE))
        kinds = [np.flatnonzero(legal[row] & (value == meaning)) for meaning in (WON, LOST, UNKNOWN)]
        texts = [" ".join(map(str, actions)) for actions in kinds]
        rows.writerow([name, positions.sources[row], board, state["to_move"], positions.slides[row], *texts])
    return text.getvalue()
