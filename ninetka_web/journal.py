"""Tables as text, for the journal."""

from __future__ import annotations

import json
from typing import Any

from ninetka_web.adapter import Json
from ninetka_web.clocks import Clock
from ninetka_web.setup import Seat, Setup
from ninetka_web.tables import Table
from ninetka_web.wishes import Wishes


def text_of(table: Table) -> str:
    """Return all of a table that must outlive the server; a clock is charged up to now."""
    if table.clock:
        table.clock.run(table.clock.running)
    return json.dumps(table, default=_fields)


def _fields(part: Any) -> Json:
    """Return what a data class holds, without the copies that `asdict` makes."""
    return {name: getattr(part, name) for name in part.__dataclass_fields__}


def table_from(text: str) -> Table:
    """Return the table that `text_of` wrote; its game is played again."""
    fields: Json = json.loads(text)
    fields["setup"] = Setup(**fields["setup"])
    fields["seats"] = [Seat(**seat) for seat in fields["seats"]]
    fields["wishes"] = Wishes(**fields["wishes"])
    fields["clock"] = Clock(**fields["clock"]) if fields["clock"] else None
    return Table(**fields)


def kind_of_text(text: str) -> str:
    """Return the kind of game of a table that `text_of` wrote, without playing it."""
    return Setup(**json.loads(text)["setup"]).kind
