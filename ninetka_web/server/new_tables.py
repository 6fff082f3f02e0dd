"""Creates tables from the new-game form, or from a game record, an SGF file or a position.

Parsing such a text is slow, so `Hub` does it on a thread.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator

from ninetka_env.api.record_files import read_records
from ninetka_env.api.records import GameRecord
from ninetka_env.core.sgf import read_sgf
from ninetka_web.games.adapter import adapter_in, adapter_of
from ninetka_web.server.protocol import ME, OPEN, AnyMessage, Create, Discard, Hello, Join, Leave, Rest, Say, Upload
from ninetka_web.tables.clocks import Clock
from ninetka_web.tables.records import table_of_record
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.setup import Seat, Setup, adapter_for, setup_of
from ninetka_web.tables.table import Table, new_id
from ninetka_web.thinking.warm import FIRST, RULES, Job

AT_ONCE = (Hello, Join, Leave, Discard, Rest, Say)
"""Messages that need no compiled rules."""


def brings_text(message: AnyMessage) -> bool:
    """Return whether a message brings a text that must be parsed on a thread."""
    return isinstance(message, Upload) or (isinstance(message, Create) and message.position is not None)


def rules_for(message: AnyMessage, table: Table | None) -> Job | None:
    """Return the job that must be done before a message can be handled, None for no job.

    Args:
        message: the message; a text in it is only searched for its game and board size.
        table: the table of its connection.
    """
    if isinstance(message, Create):
        adapter = adapter_of(message.game)
        kind = adapter.kind(message.options) if message.position is None else adapter.kind_in(message.position)
        plain = message.position is None and message.clock is None  # no clock may run while the rest is compiled
        return Job(kind, FIRST if plain else RULES)
    if isinstance(message, Upload):
        try:
            return Job(adapter_in(message.text).kind_in(message.text), RULES)
        except ValueError as error:
            raise RefusedError(f"not a game record: {error}") from None
    return None if table is None or isinstance(message, AT_ONCE) else Job(table.setup.kind, RULES)


def create_table(wish: Create, person: str) -> Table:
    """Return the table that a message describes; `RefusedError` if its position cannot be read."""
    adapter = adapter_for(wish.game)
    if wish.position is not None:
        setup = setup_of(adapter, wish.position, len(wish.seats))
    else:
        setup = Setup.of(adapter.offer.variant(wish.options, len(wish.seats)))
    clock = Clock.of(*wish.clock, len(wish.seats)) if wish.clock else None
    return Table(new_id(), setup, [_seat_of(text, wish, person) for text in wish.seats], clock=clock)


def _seat_of(text: str, wish: Create, person: str) -> Seat:
    if text == ME:
        return Seat(name=wish.name, holder=person, keep=wish.keep)
    return Seat() if text == OPEN else Seat(agent=text)


def read_table(message: AnyMessage, person: str) -> Table:
    """Return the table for the game or position in a message; `RefusedError` if the text is not valid."""
    if isinstance(message, Create):
        return create_table(message, person)
    assert isinstance(message, Upload)
    try:
        records = itertools.islice(_read(message.text), 2)  # parsing thousands of games would take long
        tables = [table_of_record(record) for record in records]
    except ValueError as error:
        raise RefusedError(f"not a game record: {str(error).removeprefix('<text>, ')}") from None
    if len(tables) != 1:
        raise RefusedError(f"expected the record of one game, found {'several' if tables else 0}")
    return tables[0]


def _read(text: str) -> Iterator[GameRecord]:
    """Yield the games of a text, game records or SGF; `ValueError` if it is not valid."""
    is_sgf = text.lstrip("\ufeff \t\r\n").startswith("(")
    return read_sgf(text.encode()) if is_sgf else read_records(io.StringIO(text))
