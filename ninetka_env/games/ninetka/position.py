"""Build the state of a position of 9tka from a board of cell codes, and reject impossible positions.

Start reading at `read_board`. `text.py` reads positions as text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_env.core.options import short_repr
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka.geometry import (
    ALL_NEUTRALS,
    ALL_SLOTS,
    COLUMN_LINE,
    EDGE,
    ENTRY_SQUARE,
    INNER,
    MAX_PLAYERS,
    NEUTRAL_STONE,
    NUM_NEUTRALS,
    NUM_SECTIONS,
    NUM_SLOTS,
    NUM_SQUARES,
    ROW_LINE,
    SECTION,
    SECTION_NEUTRALS,
    SIZE,
    SLOT_SQUARE,
    SQUARE_NEUTRAL,
    square_name,
)
from ninetka_env.games.ninetka.rules import STATE_DTYPE, Phase

Board = npt.NDArray[np.int8]


def read_board(
    board: npt.NDArray[Any], to_move: Any, num_players: int, random_neutrals: int, turn_order: int, auto_pass: int
) -> StateArray:
    """Return a (1,) state array of a board, (11, 11) cell codes, with seat `to_move` to move.

    Each seat's numbers of stones and of turns must be possible. Every settled stone must be next to an obstacle that
    stopped its slide, and the edge square from which it slid must be empty. The order of the slides is not checked.
    `random_neutrals`, `turn_order` and `auto_pass` are the codes of the last three options in `definition.OPTIONS`.

    Raises:
        ValueError: if the position is impossible; the message says why.
    """
    cells = _check_cells(board, num_players)
    if isinstance(to_move, bool) or not isinstance(to_move, (int, np.integer)) or not 0 <= to_move < num_players:
        raise ValueError(f"to_move={short_repr(to_move)}: expected a seat 0..{num_players - 1}")
    phase = _phase_of(cells)
    if random_neutrals and phase == Phase.NEUTRAL:
        raise ValueError("neutral_placement='random': such a game begins with all nine neutral stones on the board")
    state = np.zeros(1, STATE_DTYPE)
    for name, value in zip(
        ("num_players", "turn_order", "auto_pass", "phase", "to_move", "board"),
        (num_players, turn_order, auto_pass, phase, to_move, cells),
        strict=True,
    ):
        state[name] = value
    _fill_derived_fields(state)
    _check_turn(state, random_neutrals)
    if phase == Phase.MOVEMENT:
        _check_settled(cells)
    return state


def _check_cells(board: npt.NDArray[Any], num_players: int) -> Board:
    """Check the shape, the cell codes and the squares of the stones; return the board as (121,) int8."""
    if board.shape != (SIZE, SIZE) or not np.issubdtype(board.dtype, np.integer):
        raise ValueError(f"board: expected an (11, 11) array of integers, got {board.dtype} of shape {board.shape}")
    cells = board.ravel()
    allowed = [*range(num_players + 1), NEUTRAL_STONE]
    for square in np.flatnonzero(~np.isin(cells, allowed)):
        raise ValueError(f"{square_name(int(square))}: cell code {cells[square]}, expected one of {allowed}")
    for square in np.flatnonzero((cells != 0) & ~INNER & ~EDGE):
        raise ValueError(f"{square_name(int(square))}: a corner, where no stone can stand")
    for square in np.flatnonzero((cells == NEUTRAL_STONE) & (SQUARE_NEUTRAL < 0)):
        raise ValueError(f"{square_name(int(square))}: neutral stones stand in rows and columns 2..8 only")
    per_section = np.bincount(SECTION[cells == NEUTRAL_STONE], minlength=NUM_SECTIONS)
    for section in np.flatnonzero(per_section > 1):
        raise ValueError(
            f"section {section} (of 0..8) has {per_section[section]} neutral stones, at most 1 is possible"
        )
    share = NUM_SLOTS // num_players
    for seat in range(num_players):
        if (stones := np.count_nonzero(cells == seat + 1)) > share:
            raise ValueError(f"seat {seat} has {stones} stones, at most {share} are possible")
    return cells.astype(np.int8)


def _phase_of(cells: Board) -> Phase:
    neutrals = np.count_nonzero(cells == NEUTRAL_STONE)
    stones = np.count_nonzero(cells) - neutrals
    settled = np.count_nonzero(cells[INNER]) - neutrals
    if neutrals < NUM_NEUTRALS:
        if stones:
            raise ValueError(f"{stones} stones but only {neutrals} neutral stones: all {NUM_NEUTRALS} come first")
        return Phase.NEUTRAL
    if stones < NUM_SLOTS:
        if settled:
            raise ValueError(f"{settled} settled stones but only {stones} stones in all: all {NUM_SLOTS} come first")
        return Phase.PLACEMENT
    return Phase.MOVEMENT


def _fill_derived_fields(state: StateArray) -> None:
    """Fill in the fields of the state that follow from the board."""
    cells, phase = state["board"][0], int(state["phase"][0])
    for square in np.flatnonzero((cells != 0) & INNER):
        state["lines"][0, ROW_LINE[square]] |= 1 << (int(COLUMN_LINE[square]) - 9)
        state["lines"][0, COLUMN_LINE[square]] |= 1 << int(ROW_LINE[square])
    for seat in range(MAX_PLAYERS):
        mine = cells == seat + 1
        state["counts"][0, seat] = np.bincount(SECTION[mine & INNER], minlength=NUM_SECTIONS)
        state["movable"][0, seat] = _bits(mine[SLOT_SQUARE] & (cells[ENTRY_SQUARE] == 0))
    counts = state["counts"][0]
    for seat in range(MAX_PLAYERS):
        state["owned"][0, seat] = _bits(counts[seat] > np.delete(counts, seat, axis=0).max(axis=0))
    if phase == Phase.NEUTRAL:
        taken = np.unique(SECTION[cells == NEUTRAL_STONE])
        state["open"] = ALL_NEUTRALS & ~sum(int(SECTION_NEUTRALS[k]) for k in taken)
    elif phase == Phase.PLACEMENT:
        state["open"] = ALL_SLOTS & _bits(cells[SLOT_SQUARE] == 0)


def _bits(flags: npt.NDArray[np.bool_]) -> int:
    return sum(1 << int(i) for i in np.flatnonzero(flags))


def _check_turn(state: StateArray, random_neutrals: int) -> None:
    """Check that `to_move` can be next, and that the seats' numbers of turns are possible."""
    num_players, phase = int(state["num_players"][0]), int(state["phase"][0])
    to_move, cells = int(state["to_move"][0]), state["board"][0]
    opener = _opening_seat(state, random_neutrals)
    if phase == Phase.NEUTRAL:
        played = [0] * num_players
        for ply in range(np.count_nonzero(cells)):
            played[ply % num_players] += 1
    elif phase == Phase.PLACEMENT:
        played = [int(np.count_nonzero(cells == seat + 1)) for seat in range(num_players)]
    else:
        played = [int(n) for n in state["counts"][0, :num_players].sum(axis=1)]
    can_act = [phase < Phase.MOVEMENT or bool(state["movable"][0, seat]) for seat in range(num_players)]
    if not any(can_act):
        return
    # `turns`: each seat's turns in this phase if `to_move` is next. A seat that can act has played in all of them.
    rank = [(seat - opener) % num_players for seat in range(num_players)]
    for rounds in range(NUM_SLOTS + 1):
        turns = [rounds + (rank[seat] < rank[to_move]) for seat in range(num_players)]
        if all(played[s] == turns[s] if can_act[s] else played[s] <= turns[s] for s in range(num_players)):
            return
    raise ValueError(
        f"to_move={to_move}: impossible after {played} stones played by the seats in phase {Phase(phase).name}, "
        f"which seat {opener} opened"
    )


def _opening_seat(state: StateArray, random_neutrals: int) -> int:
    """Return the seat that opened the current phase."""
    num_players, phase = int(state["num_players"][0]), int(state["phase"][0])
    if int(state["turn_order"][0]) == 0 or random_neutrals:
        return 0  # after 36 stones it is the turn of the same seat, because 36 is a multiple of 2, 3 and 4
    return 0 if phase == Phase.NEUTRAL else NUM_NEUTRALS % num_players


def _check_settled(cells: Board) -> None:
    """Check that every settled stone can have slid to its square."""
    for square in np.flatnonzero(INNER & (cells > 0) & (cells != NEUTRAL_STONE)):
        if not any(_can_have_slid_to(cells, int(square), step) for step in (SIZE, -SIZE, 1, -1)):
            raise ValueError(
                f"{square_name(int(square))}: no slide ends there (nothing stops it, or its edge square is still taken)"
            )


def _can_have_slid_to(cells: Board, square: int, step: int) -> bool:
    """Return whether a slide in steps of `step` can have ended on `square`.

    The next square must stop the stone, and the edge square from which it slid must be empty.
    """
    stop, origin = square + step, square
    while INNER[origin]:
        origin -= step
    return bool((EDGE[stop] or cells[stop] != 0) and cells[origin] == 0 and 0 <= origin < NUM_SQUARES)
