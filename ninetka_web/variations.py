"""What if: a line of play tried from a position of a table, which the table never hears of."""

from __future__ import annotations

from collections.abc import Sequence

from ninetka_env.core.game import Game
from ninetka_web.adapter import Json
from ninetka_web.protocol import RefusedError
from ninetka_web.setup import Seat, Setup
from ninetka_web.tables import Table
from ninetka_web.views import view_of

TOLD = ("to_move", "hits", "buttons", "previews", "ghost", "verb")
"""Of what everybody may know of a table, what can be done."""


def try_line(table: Table, ply: int, line: Sequence[int]) -> tuple[Game, Json]:
    """Play a line from the position after `ply` actions of a table.

    Returns:
        The position at its end, and what browsers are told: the `moves`, whether it is `over`, what can be done then.

    Raises:
        RefusedError: if the game is over there, or an action of the line is illegal; it says why.
    """
    position = table.position(ply)
    if position.is_over:
        raise RefusedError("the game is over here: step back to try other moves")
    setup = Setup(table.setup.game, table.setup.options, position=str(position))
    branch = Table("", setup, [Seat(holder="nobody") for _ in table.seats])
    branch.game = position.copy()  # it knows what its text does not: the boards of before, which superko asks for
    for action in line:
        branch.play("nobody", len(branch.actions), action)
    view = view_of(branch)
    told = {"moves": branch.moves, "over": branch.game.is_over} | {name: view[name] for name in TOLD}
    return branch.game if line else position, told
