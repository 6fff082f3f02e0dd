"""The JSON of a table for browsers, and of variations that users try from one of its positions."""

from __future__ import annotations

from collections.abc import Sequence

from ninetka_env.core.game import Game
from ninetka_web.games.adapter import told_winner
from ninetka_web.games.offer import Json
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.setup import Seat, Setup
from ninetka_web.tables.table import Table

TOLD = ("to_move", "hits", "buttons", "previews", "ghost", "verb")
"""The keys of `view_of` that describe the possible moves, for `try_line`."""
_NO_CHOICES: Json = {"hits": [], "buttons": [], "previews": {}, "ghost": 0, "verb": "", "prompt": ["", ""]}


def view_of(table: Table) -> Json:
    """Return the public state of a table as JSON, without its moves and first position."""
    game, over = table.game, table.is_over
    return {
        "table": table.id,
        "game": table.setup.game,
        "config": table.adapter.board.config(table.course.begin),
        "revision": table.revision,
        "round": table.round,
        "seats": [
            {"kind": seat.kind, "agent": seat.agent, "name": seat.name, "keep": seat.keep} for seat in table.seats
        ],
        "to_move": game.to_move,
        "stage": table.adapter.stage(game),
        **(_choices(table) if table.is_running else _NO_CHOICES),
        "settling": table.is_settling,
        "proposal": table.proposal,
        "score_word": table.adapter.board.score_word,
        "over": over,
        "ended": table.ended,
        "outcome": _outcome(table) if over and game.is_over and not table.event else "",
        "event": table.event._asdict() if table.event else None,
        "winner": told_winner(table.winner),
        "told": table.told,
        "resigned": table.resigned,
        "called_off": table.called_off,
        "wish": table.wishes.kind,
        "undo": table.wishes.ply,
        "question": table.wishes.question,
        "paused": table.paused,
        "wait": table.wait,
        "shown": table.shown,
        "from_position": bool(table.setup.position or table.handed),
    }


def _choices(table: Table) -> Json:
    """Return the possible moves of the seat to move, and their texts."""
    game, board = table.game, table.adapter.board
    mine, others = board.prompt(game)
    return {"hits": board.hits(game), "buttons": board.buttons(game), "previews": board.previews(game),
            "ghost": board.ghost(game), "verb": board.verb(game), "prompt": [mine, others]}  # fmt: skip


def _outcome(table: Table) -> str:
    if table.agreed and table.proposal:
        return str(table.proposal["say"])
    counted = table.adapter.board.outcome(table.game)
    return f"Counted as the board stands: {counted}" if table.told else counted


def line_of(table: Table) -> Json:
    """Return a summary of a table for a list."""
    return {
        "table": table.id,
        "game": table.setup.game,
        "who": [table.who(seat) for seat in range(len(table.seats))],
        "ply": len(table.actions),
        "over": table.is_over,
        "winner": told_winner(table.winner),
    }


def try_line(table: Table, ply: int, line: Sequence[int]) -> tuple[Game, Json]:
    """Play a variation, the actions `line`, from the position after `ply` actions of a table.

    Returns:
        The position at its end, and JSON for browsers: the `moves`, whether the game is `over`, and the possible moves.

    Raises:
        RefusedError: if the game is over after `ply` actions, or an action is illegal.
    """
    position = table.course.position(ply)
    if position.is_over:
        raise RefusedError("the game is over here: step back to try other moves")
    setup = Setup(table.setup.game, table.setup.options, position=str(position))
    branch = Table("", setup, [Seat(holder="nobody") for _ in table.seats])
    branch.course.game = position.copy()  # unlike its text, it has the earlier boards, which superko needs
    for action in line:
        branch.play("nobody", len(branch.actions), action)
    view = view_of(branch)
    told = {"moves": branch.course.moves, "over": branch.game.is_over} | {name: view[name] for name in TOLD}
    return branch.game if line else position, told
