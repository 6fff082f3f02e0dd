"""What browsers are told of a table."""

from __future__ import annotations

from ninetka_web.adapter import Json, told_winner
from ninetka_web.tables import Table

_NO_CHOICES: Json = {"hits": [], "buttons": [], "previews": {}, "ghost": 0, "verb": "", "prompt": ["", ""]}


def view_of(table: Table) -> Json:
    """Return what everybody may know of a table, but for the moves and the start; JSON."""
    game, over = table.game, table.is_over
    return {
        "table": table.id,
        "game": table.setup.game,
        "config": table.adapter.config(table.begin),
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
        "score_word": table.adapter.score_word,
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
    """Return what can be done by whose turn it is, and how it is told."""
    game, adapter = table.game, table.adapter
    mine, others = adapter.prompt(game)
    return {"hits": adapter.hits(game), "buttons": adapter.buttons(game), "previews": adapter.previews(game),
            "ghost": adapter.ghost(game), "verb": adapter.verb(game), "prompt": [mine, others]}  # fmt: skip


def _outcome(table: Table) -> str:
    if table.agreed and table.proposal:
        return str(table.proposal["say"])
    counted = table.adapter.outcome(table.game)
    return f"Counted as the board stands: {counted}" if table.told else counted


def line_of(table: Table) -> Json:
    """Return a line about a table, for a list."""
    return {
        "table": table.id,
        "game": table.setup.game,
        "who": [table.who(seat) for seat in range(len(table.seats))],
        "ply": len(table.actions),
        "over": table.is_over,
        "winner": told_winner(table.winner),
    }
