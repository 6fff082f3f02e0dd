"""Describe the last action of a game of 9tka: its landing square, and a short text.

`render.py` and `picture.py` call these functions. The names of actions are in `geometry.py`.
"""

from __future__ import annotations

from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import (
    EDGE,
    LINE_SQUARES,
    NEUTRAL_STONE,
    PASS,
    SLOT_END,
    SLOT_LINE,
    SQUARE_SLOT,
    square_name,
)
from ninetka_env.games.ninetka.text import SEATS


def last_landing(game: Game) -> int | None:
    """Return the square where the stone of the last action is now; None at the start and after a pass."""
    square = game.last_action
    if square is None or square == PASS:
        return None
    if not EDGE[square] or game.board.flat[square]:
        return square
    slot = SQUARE_SLOT[square]  # the stone slid over empty squares, so it is the first stone on its line
    places = LINE_SQUARES[SLOT_LINE[slot]][:: -1 if SLOT_END[slot] else 1]
    return int(next(place for place in places if game.board.flat[place]))


def describe_last_action(game: Game) -> str:
    """Return a text on the last action and the seats passed over after it: `"blue: A5 to D5; yellow passed over"`.

    It is empty before the first action.
    """
    if game.last_action is None:
        return ""
    landing = last_landing(game)
    if landing is None:
        return f"{SEATS[(game.to_move - 1) % game.num_players]}: pass"
    code = int(game.board.flat[landing])
    text = f"{'neutral stone' if code == NEUTRAL_STONE else SEATS[code - 1]}: {square_name(game.last_action)}"
    if landing != game.last_action:
        text += f" to {square_name(landing)}"
    passed = " and ".join(SEATS[seat] for seat in game.passed)
    return f"{text}; {passed} passed over" if passed else text
