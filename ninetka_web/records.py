"""Games of tables as records and as SGF."""

from __future__ import annotations

from ninetka_env.api.records import GameRecord
from ninetka_env.core.sgf import sgf_text
from ninetka_web.protocol import RefusedError
from ninetka_web.tables import Table


def record_of(table: Table) -> GameRecord:
    """Return the record of a finished game; `RefusedError` if there is none."""
    setup = table.setup
    if setup.position or table.handed:
        raise RefusedError("a game that did not begin with an empty board has no record; copy positions instead")
    if not (table.is_over and table.game.is_over):
        raise RefusedError("a record holds a finished game; copy the position instead")
    return GameRecord.of(
        table.actions, setup.variant, drawn=setup.drawn, event=table.event, tags=_tags(table), stated=_stated(table)
    )


def sgf_of(table: Table) -> str:
    """Return a game as SGF, as far as it has come; `RefusedError` for games that have no form in it."""
    if table.game.definition().sgf is None:
        raise RefusedError(f"{table.game.definition().title} has no form in SGF")
    setup = table.setup
    record = GameRecord(
        setup.variant, tuple(table.actions), (), 0, tuple(setup.drawn), table.event, _tags(table),
        table.begin.copy() if setup.position else None, tuple(table.handed), stated=_stated(table),
    ).with_result(table.game, unfinished=True)  # fmt: skip
    return sgf_text(record)


def _tags(table: Table) -> dict[str, str]:
    """Return the tags of a game's record: who played, when, and the clock."""
    tags = {table.colour(number): table.who(number) for number in range(len(table.seats))}
    tags["date"] = table.begun[:10]
    if table.clock:
        tags |= {"seconds": str(table.clock.main), "overtime": f"{table.clock.increment} s after each turn"}
    return tags


def _stated(table: Table) -> str:
    """Return the result that the players agreed on, or that the file of the game states; empty if there is neither."""
    if table.event is not None:
        return ""
    return str(table.proposal["result"]) if table.proposal and table.agreed else table.told
