"""Build the state of a position of 9tka from a board of cell codes, and reject impossible positions.

Start reading at `read_board`. `text.py` reads positions as text. `is_consistent` checks states from elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit
from ninetka_env.core.options import short_repr
from ninetka_env.core.verbs import State, StateArray
from ninetka_env.games.ninetka.geometry import (
    ALL_NEUTRALS,
    ALL_SLOTS,
    EDGE,
    ENTRY_SQUARE,
    INNER,
    MAX_PLAYERS,
    NEUTRAL_STONE,
    NUM_LINES,
    NUM_NEUTRALS,
    NUM_SECTIONS,
    NUM_SLOTS,
    NUM_SQUARES,
    SECTION,
    SECTION_NEUTRALS,
    SIZE,
    SQUARE_NEUTRAL,
    SQUARE_SLOT,
    square_name,
)
from ninetka_env.games.ninetka.rules import MOVEMENT, NEUTRAL, PLACEMENT, STATE_DTYPE, Phase, must_pass, occupy

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
    _write_derived_fields(state)
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


@jit
def _write_derived_fields(games: StateArray) -> None:
    """Write the fields of `games[0]` that follow from the board and the phase, which must be possible."""
    game = games[0]
    board, phase = game.board, game.phase
    _clear_derived_fields(game)
    for square in range(NUM_SQUARES):
        code = int(board[square])
        if EDGE[square] and code:
            slot, seat = np.int64(SQUARE_SLOT[square]), code - 1
            game.open &= ~(int(phase == PLACEMENT) << slot)
            game.movable[seat] |= int(board[ENTRY_SQUARE[slot]] == 0) << slot
        elif code:
            occupy(game, square)
            if code != NEUTRAL_STONE:
                game.counts[code - 1, SECTION[square]] += 1
            elif phase == NEUTRAL:
                game.open &= ~SECTION_NEUTRALS[SECTION[square]]
    for section in range(NUM_SECTIONS):
        for seat in range(MAX_PLAYERS):
            owns = True
            for other in range(MAX_PLAYERS):
                owns &= other == seat or game.counts[seat, section] > game.counts[other, section]
            game.owned[seat] |= int(owns) << section


@jit
def _clear_derived_fields(game: State) -> None:
    game.open = ALL_NEUTRALS if game.phase == NEUTRAL else ALL_SLOTS if game.phase == PLACEMENT else 0
    for line in range(NUM_LINES):
        game.lines[line] = 0
    for seat in range(MAX_PLAYERS):
        game.movable[seat] = game.owned[seat] = 0
        for section in range(NUM_SECTIONS):
            game.counts[seat, section] = 0


@jit
def is_consistent(game: State, scratch: StateArray) -> bool:
    """Return whether the board is possible in this phase, and the other fields follow from it; see the verb."""
    if not 0 <= game.to_move < game.num_players or not _has_possible_board(game):
        return False
    scratch[0] = game
    _write_derived_fields(scratch)
    twin, agree = scratch[0], game.padding[0] == game.padding[1] == 0
    agree &= game.open == twin.open
    for line in range(NUM_LINES):
        agree &= game.lines[line] == twin.lines[line]
    for seat in range(MAX_PLAYERS):
        agree &= game.movable[seat] == twin.movable[seat] and game.owned[seat] == twin.owned[seat]
        for section in range(NUM_SECTIONS):
            agree &= game.counts[seat, section] == twin.counts[seat, section]
    return agree and not (game.auto_pass and must_pass(game))


@jit
def _has_possible_board(game: State) -> bool:
    """Return whether all stones are on squares where they can be, and the seats have as many as they can have.

    `num_players` and `to_move` must be possible.
    """
    sections = neutrals = settled = 0
    stones = np.zeros(MAX_PLAYERS, np.int64)
    for square in range(NUM_SQUARES):
        code = game.board[square]
        if code == NEUTRAL_STONE:
            section = int(SECTION[square])
            if SQUARE_NEUTRAL[square] < 0 or (sections >> section) & 1:
                return False
            sections |= 1 << section
            neutrals += 1
        elif code:
            if not (0 < code <= game.num_players and (INNER[square] or EDGE[square])):
                return False
            stones[code - 1] += 1
            settled += INNER[square]
    if neutrals < NUM_NEUTRALS:
        return game.phase == NEUTRAL and stones.sum() == 0
    if stones.sum() == NUM_SLOTS:
        return game.phase == MOVEMENT and stones[: game.num_players].min() == stones.max()
    # The seats place in turn: from the seat to move on, no seat has fewer stones than the one before.
    for place in range(1, game.num_players):
        one, other = (game.to_move + place - 1) % game.num_players, (game.to_move + place) % game.num_players
        if not stones[one] <= stones[other] <= stones[game.to_move] + 1:
            return False
    return game.phase == PLACEMENT and settled == 0


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
