"""Conversion of tables to and from the JSON text that `store.py` stores."""

from __future__ import annotations

import json

from pydantic import TypeAdapter

from ninetka_web.tables.setup import Setup
from ninetka_web.tables.table import Table

_TABLE = TypeAdapter(Table)


def dump_table(table: Table) -> str:
    """Return the JSON text of a table, after updating the remaining time of its running clock."""
    if table.clock:
        table.clock.switch_to(table.clock.running)
    return json.dumps(_TABLE.dump_python(table))


def load_table(text: str) -> Table:
    """Return the table from a text written by `dump_table`; this replays the game."""
    return _TABLE.validate_json(text)


def compile_key_of_stored(text: str) -> str:
    """Return the table's `Setup.compile_key` from a text written by `dump_table`, without replaying the game."""
    return Setup(**json.loads(text)["setup"]).compile_key
