"""Tables as text, for the journal."""

from __future__ import annotations

import json

from pydantic import TypeAdapter

from ninetka_web.tables.setup import Setup
from ninetka_web.tables.table import Table

_TABLE = TypeAdapter(Table)


def text_of(table: Table) -> str:
    """Return everything about a table that must outlive the server; its clock is charged up to now."""
    if table.clock:
        table.clock.run(table.clock.running)
    return json.dumps(_TABLE.dump_python(table))


def table_from(text: str) -> Table:
    """Return the table that `text_of` wrote; its game is played again."""
    return _TABLE.validate_json(text)


def kind_of_text(text: str) -> str:
    """Return the kind of game of a table that `text_of` wrote, without playing it."""
    return Setup(**json.loads(text)["setup"]).kind
