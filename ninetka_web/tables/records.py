"""Conversion of tables to game records and SGF, and of game records to tables that show them.

`ninetka_env.api.records` has the text format. `journal.py` converts whole tables, including their settings, for
storage.
"""

from __future__ import annotations

from ninetka_env.api.records import GameRecord
from ninetka_env.core.sgf import sgf_text
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.setup import Seat, Setup
from ninetka_web.tables.table import Table, new_id


def record_of(table: Table) -> GameRecord:
    """Return the game record of a finished game; `RefusedError` if there is none."""
    setup = table.setup
    if setup.position or table.handed:
        raise RefusedError("a game that did not begin with an empty board has no record; copy positions instead")
    if not (table.is_over and table.game.is_over):
        raise RefusedError("a record holds a finished game; copy the position instead")
    return GameRecord.of(
        table.actions, setup.variant, drawn=setup.drawn, event=table.event, tags=_tags(table), stated=_stated(table)
    )


def sgf_of(table: Table) -> str:
    """Return a game, finished or not, as SGF; `RefusedError` for games without SGF."""
    if table.game.definition().sgf is None:
        raise RefusedError(f"{table.game.definition().title} has no form in SGF")
    setup = table.setup
    record = GameRecord(
        setup.variant, tuple(table.actions), (), 0, tuple(setup.drawn), table.event, _tags(table),
        table.history.start_position.copy() if setup.position else None, tuple(table.handed), stated=_stated(table),
    ).with_result(table.game, unfinished=True)  # fmt: skip
    return sgf_text(record)


def table_of_record(record: GameRecord) -> Table:
    """Return a table that shows a game record; `RefusedError` if the web app does not have its game."""
    setup, event = Setup.of_record(record), record.event
    seats = [Seat(name=record.tags.get(colour.lower(), colour.lower())[:40].strip()) for colour in record.seats]
    resigned = [event.seat] if event and event.kind == "resigned" else []
    return Table(
        new_id(), setup, seats, list(record.actions), handed=list(record.skipped_turns), resigned=resigned, event=event,
        stated_result=record.stated, view_only=True,
    )  # fmt: skip


def _tags(table: Table) -> dict[str, str]:
    """Return the tags of a game record: the players, the date and the clock."""
    tags = {table.colour(number): table.seat_name(number) for number in range(len(table.seats))}
    tags["date"] = table.started_at[:10]
    if table.clock:
        tags |= {"seconds": str(table.clock.main), "overtime": f"{table.clock.increment} s after each turn"}
    return tags


def _stated(table: Table) -> str:
    """Return the result that the players agreed on or that the uploaded file states; empty if there is neither."""
    if table.event is not None:
        return ""
    return str(table.proposal["result"]) if table.proposal and table.agreed else table.stated_result
