"""Conversion of tables to and from the JSON text that `store.py` stores."""

from __future__ import annotations

import json

from pydantic import TypeAdapter

from ninetka_web.tables.setup import Setup
from ninetka_web.tables.table import Table

_TABLE = TypeAdapter(Table)


def text_of(table: Table) -> str:
    """Return the JSON text of a table. This first charges its running clock up to now."""
    if table.clock:
        table.clock.run(table.clock.running)
    return json.dumps(_TABLE.dump_python(table))


def table_from(text: str) -> Table:
    """Return the table of a text of `text_of`. This replays its game."""
    return _TABLE.validate_json(text)


def kind_of_text(text: str) -> str:
    """Return `Setup.kind` of a text of `text_of`, without replaying the game."""
    return Setup(**json.loads(text)["setup"]).kind
