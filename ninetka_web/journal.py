"""Tables as text, for the journal; also those that earlier versions wrote."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ninetka_web.adapter import Json
from ninetka_web.clocks import Clock
from ninetka_web.setup import Seat, Setup
from ninetka_web.wishes import Wishes

if TYPE_CHECKING:
    from ninetka_web.tables import Table


def text_of(table: Table) -> str:
    """Return all of a table that must outlive the server; a clock is charged up to now."""
    if table.clock:
        table.clock.run(table.clock.running)
    return json.dumps(table, default=_fields)


def _fields(part: Any) -> Json:
    """Return what a data class holds, without the copies that `asdict` makes."""
    return {name: getattr(part, name) for name in part.__dataclass_fields__}


def fields_of(text: str) -> Json:
    """Return what a table is made from again, as `text_of` wrote it or an earlier version did."""
    fields: Json = json.loads(text)
    fields["setup"] = Setup.from_fields(fields["setup"])
    fields["seats"] = [Seat(**seat) for seat in fields["seats"]]
    resigned = fields["resigned"]
    if "event" not in fields and fields["ended"] and len(fields["seats"]) == 2 and len(resigned) == 1:
        fields["event"] = ("resigned", resigned[0])  # as written before there were events
    for name in ("undo_to", "undo_asked"):  # as written before there were other wishes; whoever asked asks again
        fields.pop(name, None)
    fields["wishes"] = Wishes(**fields.get("wishes", {}))
    clock = fields.get("clock")
    fields["clock"] = Clock(**clock) if clock else None
    return fields
