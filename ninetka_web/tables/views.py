"""The JSON of a table for browsers, and of variations that users try from one of its positions.

Start reading at `view_of`. `game_history.py` has the JSON of the moves.
"""

from __future__ import annotations

from collections.abc import Sequence

from ninetka_env.core.game import Game
from ninetka_web.games.adapter import winner_json
from ninetka_web.games.offer import Json
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.setup import LOCAL_USER, Seat, Setup
from ninetka_web.tables.table import Table

VARIATION_KEYS = ("to_move", "clickable", "buttons", "preview_cells", "preview_code", "click_text")
"""The keys of `view_of` that describe the possible moves, for `try_variation`."""
_NO_CHOICES: Json = {
    "clickable": [],
    "buttons": [],
    "preview_cells": {},
    "preview_code": 0,
    "click_text": "",
    "prompt": ["", ""],
}


def view_of(table: Table) -> Json:
    """Return the public state of a table as JSON, without its moves and first position."""
    game, over = table.game, table.is_over
    return {
        "table": table.id,
        "game": table.setup.game,
        "config": table.adapter.board.config(table.history.start_position),
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
        "winner": winner_json(table.winner),
        "stated_result": table.stated_result,
        "resigned": table.resigned,
        "called_off": table.called_off,
        "request": table.pending_request.kind,
        "undo": table.pending_request.ply,
        "question": table.pending_request.question,
        "paused": table.paused,
        "agent_delay_ms": table.agent_delay_ms,
        "view_only": table.view_only,
        "from_position": bool(table.setup.position or table.handed),
    }


def _choices(table: Table) -> Json:
    """Return the possible moves of the seat to move, and their texts."""
    game, board = table.game, table.adapter.board
    own_text, other_text = board.prompt(game)
    return {
        "clickable": board.clickable(game),
        "buttons": board.buttons(game),
        "preview_cells": board.preview_cells(game),
        "preview_code": board.preview_code(game),
        "click_text": board.click_text(game),
        "prompt": [own_text, other_text],
    }


def _outcome(table: Table) -> str:
    if table.agreed and table.proposal:
        return str(table.proposal["text"])
    counted = table.adapter.board.outcome(table.game)
    return f"Counted as the board stands: {counted}" if table.stated_result else counted


def summary_of(table: Table) -> Json:
    """Return a summary of a table for a list."""
    return {
        "table": table.id,
        "game": table.setup.game,
        "seat_names": [table.seat_name(seat) for seat in range(len(table.seats))],
        "ply": len(table.actions),
        "over": table.is_over,
        "winner": winner_json(table.winner),
    }


def try_variation(table: Table, ply: int, variation: Sequence[int]) -> tuple[Game, Json]:
    """Play a variation, the actions `variation`, from the position after `ply` actions of a table.

    Returns:
        The last position, and JSON for browsers: the `moves`, whether the game is `over`, and the possible moves.

    Raises:
        RefusedError: if the game is over after `ply` actions, or an action is illegal.
    """
    position = table.history.position(ply)
    if position.is_over:
        raise RefusedError("the game is over here: step back to try other moves")
    setup = Setup(table.setup.game, table.setup.options, position=str(position))
    branch = Table("", setup, [Seat(user=LOCAL_USER) for _ in table.seats])
    branch.history.game = position.copy()  # the text lacks the earlier boards, which superko needs
    for action in variation:
        branch.play(LOCAL_USER, len(branch.actions), action)
    view = view_of(branch)
    changes = {"moves": branch.history.moves, "over": branch.game.is_over} | {
        name: view[name] for name in VARIATION_KEYS
    }
    return branch.game if variation else position, changes
