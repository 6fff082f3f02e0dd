"""Texts that guests bring: records, SGF files and positions. Reading one takes a while, so threads do it."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator

from ninetka_env.api.record_files import read_records
from ninetka_env.api.records import GameRecord
from ninetka_env.core.sgf import read_sgf
from ninetka_web.adapter import adapter_in, adapter_of
from ninetka_web.protocol import AnyMessage, Create, Discard, Hello, Join, Leave, RefusedError, Rest, Say, Upload
from ninetka_web.tables import Table
from ninetka_web.warm import FIRST, RULES, Job

AT_ONCE = (Hello, Join, Leave, Discard, Rest, Say)
"""What changes no game."""


def brings_text(message: AnyMessage) -> bool:
    """Tell whether a message has to be read on a thread."""
    return isinstance(message, Upload) or (isinstance(message, Create) and message.position is not None)


def rules_for(message: AnyMessage, table: Table | None) -> Job | None:
    """Return the rules that a message seems to need, of the game that it brings or of the one at its guest's table."""
    if isinstance(message, Create):
        adapter = adapter_of(message.game)
        kind = adapter.kind(message.options) if message.position is None else adapter.kind_in(message.position)
        plain = message.position is None and message.clock is None  # nobody's time is to pass while the rest compiles
        return Job(kind, FIRST if plain else RULES)
    if isinstance(message, Upload):
        try:
            return Job(adapter_in(message.text).kind_in(message.text), RULES)
        except ValueError as error:
            raise RefusedError(f"no game record: {error}") from None
    return None if table is None or isinstance(message, AT_ONCE) else Job(table.setup.kind, RULES)


def read_table(message: AnyMessage, person: str) -> Table:
    """Return the table of the game or position that a person brings; `RefusedError` says what is wrong with it."""
    if isinstance(message, Create):
        return Table.create(message, person)
    assert isinstance(message, Upload)
    try:
        records = itertools.islice(_read(message.text), 2)  # to read thousands would take long
        tables = [Table.of_record(record) for record in records]
    except ValueError as error:
        raise RefusedError(f"no game record: {str(error).removeprefix('<text>, ')}") from None
    if len(tables) != 1:
        raise RefusedError(f"expected the record of one game, found {'several' if tables else 0}")
    return tables[0]


def _read(text: str) -> Iterator[GameRecord]:
    """Return the games that a text tells, of records or as SGF; `ValueError` says what is wrong."""
    is_sgf = text.lstrip("\ufeff \t\r\n").startswith("(")
    return read_sgf(text.encode()) if is_sgf else read_records(io.StringIO(text))
