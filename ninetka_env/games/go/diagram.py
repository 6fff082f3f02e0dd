"""Numbered diagrams of game records: the number of each turn on its point, and captions for turns without a point.

`ninetka_env.games.go.picture.render_diagram` draws them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.record import GameRecord


class Diagram(NamedTuple):
    """The content of a diagram."""

    cells: npt.NDArray[np.int8]
    """(size, size) cell codes, rank 1 first: the stones before the first turn shown and all stones placed since."""
    numbers: npt.NDArray[np.int16]
    """(size, size): the turn, from 1, that placed each stone; 0 for empty points and stones placed before `first`."""
    first: int
    last: int
    """The first and the last turn shown."""
    captions: tuple[str, ...]
    """The turns that are not on the board, in order: `"31 at 23"` (turn 31 on the point of stone 23), `"12 pass"`."""


def make_diagram(record: GameRecord, first: int = 1, last: int | None = None) -> Diagram:
    """Return the diagram of the turns `first` to `last` of a game of Go.

    Captured stones stay in the diagram. A turn on a point that already has a stone in the diagram gets a caption.

    Args:
        record: a game record of Go.
        first: the first turn, counted from 1.
        last: the last turn, included; None for the last turn of the game.

    Raises:
        ValueError: if the game has no such turns.
    """
    count = len(record.actions)
    end = count if last is None else last
    if not 1 <= first <= end <= max(count, 1):
        raise ValueError(f"first={first}, last={last}: expected 1 <= first <= last <= {count}, the turns of the game")
    cells, numbers, captions = np.zeros(0, np.int8), np.zeros(0, np.int16), []
    for turn, game in enumerate(record.replay(), 1):
        if turn == first:
            cells = np.append(game.board.ravel(), np.int8(0))  # type: ignore[attr-defined]  # a game of Go
            numbers = np.zeros(len(cells), np.int16)
        if not first <= turn <= min(end, count):
            continue
        point = record.actions[turn - 1]
        if point >= len(cells) - 1:
            captions.append(f"{turn} {game.action_name(point)}")
        elif cells[point]:
            captions.append(f"{turn} at {numbers[point] or game.action_name(point)}")
        else:
            cells[point], numbers[point] = game.to_move + 1, turn
    size = int(len(cells) ** 0.5)
    board, turns = cells[:-1].reshape(size, size), numbers[:-1].reshape(size, size)
    return Diagram(board, turns, first, min(end, count), tuple(captions))
