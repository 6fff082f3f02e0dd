"""Creates tables from the new-game form, or from a game record, an SGF file or a position.

Start reading at `create_table` and `read_table`. `live_tables.py` adds the tables to the server.

Parsing a text is slow, so `Hub` does it on a thread.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator

from ninetka_env.api.record_files import read_records
from ninetka_env.api.records import GameRecord
from ninetka_env.core.sgf import read_sgf
from ninetka_web.games.adapter import adapter_for_text, adapter_of
from ninetka_web.server.protocol import (
    ME,
    OPEN,
    Chat,
    ClientMessage,
    Create,
    Discard,
    Hello,
    Join,
    Leave,
    StopAnalysis,
    Upload,
)
from ninetka_web.tables.clocks import Clock
from ninetka_web.tables.records import table_of_record
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.setup import Seat, Setup, adapter_or_refuse, setup_from_position
from ninetka_web.tables.table import Table, new_id
from ninetka_web.thinking.warm import FIRST_BOARD, RULES, Job

NEVER_DEFERRED = (Hello, Join, Leave, Discard, StopAnalysis, Chat)
"""Messages that need no compiled rules."""


def needs_parsing(message: ClientMessage) -> bool:
    """Return whether a message brings a text that must be parsed on a thread."""
    return isinstance(message, Upload) or (isinstance(message, Create) and message.position is not None)


def required_job(message: ClientMessage, table: Table | None) -> Job | None:
    """Return the job that must be done before a message can be handled, None for no job.

    Args:
        message: the message; a text in it is only searched for its game and board size.
        table: the table of its connection.
    """
    if isinstance(message, Create):
        adapter = adapter_of(message.game)
        compile_key = (
            adapter.compile_key(message.options)
            if message.position is None
            else adapter.compile_key_of_text(message.position)
        )
        # With a clock, all rules must be ready, because the clock must not run while they are compiled.
        needs_rules = message.position is not None or message.clock is not None
        return Job(compile_key, RULES if needs_rules else FIRST_BOARD)
    if isinstance(message, Upload):
        try:
            return Job(adapter_for_text(message.text).compile_key_of_text(message.text), RULES)
        except ValueError as error:
            raise RefusedError(f"not a game record: {error}") from None
    return None if table is None or isinstance(message, NEVER_DEFERRED) else Job(table.setup.compile_key, RULES)


def create_table(message: Create, user: str) -> Table:
    """Return the table that a message describes; `RefusedError` if its position cannot be read."""
    adapter = adapter_or_refuse(message.game)
    if message.position is not None:
        setup = setup_from_position(adapter, message.position, len(message.seats))
    else:
        setup = Setup.of(adapter.offer.variant(message.options, len(message.seats)))
    clock = Clock.of(*message.clock, len(message.seats)) if message.clock else None
    return Table(new_id(), setup, [_seat_of(text, message, user) for text in message.seats], clock=clock)


def _seat_of(text: str, message: Create, user: str) -> Seat:
    if text == ME:
        return Seat(name=message.name, user=user, keep=message.keep)
    return Seat() if text == OPEN else Seat(agent=text)


def read_table(message: ClientMessage, user: str) -> Table:
    """Return the table for the game or position in a message; `RefusedError` if the text is not valid."""
    if isinstance(message, Create):
        return create_table(message, user)
    assert isinstance(message, Upload)
    try:
        records = itertools.islice(_read(message.text), 2)  # several games are refused; parsing all takes long
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
