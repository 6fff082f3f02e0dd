"""Ends of games that the rules do not define: resignation, loss on time, absence, and agreement on the score."""

from __future__ import annotations

from ninetka_env.core.game import Event
from ninetka_web.games.offer import Json
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.setup import Seat
from ninetka_web.tables.table import Table

# While the game runs


def resign(table: Table, person: str) -> None:
    """Resign for all seats of a user."""
    table.check_running()
    if not table.seats_of(person):
        raise RefusedError("only players can give up")
    if table.is_settling:
        raise RefusedError("the game is being counted: agree, or play on")
    _drop(table, person, "resigned")


def _drop(table: Table, person: str, kind: str) -> None:
    """Remove a user from the game with an event of a `kind`.

    In a game of two, the user loses if both seats are taken and the user has one of them. Otherwise an agent takes over
    the user's seats if other people play, or the game ends without a winner.
    """
    mine, others = table.seats_of(person), table.people - {person}
    table.wishes.clear()
    if len(table.seats) == 2 and len(mine) == 1 and table.seats[1 - mine[0]].kind != "open":
        table.resigned += mine * (kind == "resigned")
        table.end(Event(kind, mine[0]))
        return
    table.resigned += mine
    if not others:
        table.ended = True
        return
    for number in mine:
        table.seats[number] = Seat(agent=table.adapter.offer.stand_in, name=table.seats[number].name)


def claim(table: Table, person: str, gone: set[str], win: bool) -> None:
    """Continue without users who left and did not come back in time, `gone`: win against them, or call the game off."""
    table.check_running()
    gone = gone & table.people - {person}
    if person not in table.people or not gone:
        raise RefusedError("no player of this table has been away for long enough")
    if win and table.is_settling:  # absent users count as agreeing
        accept(table, person)
        _agree(table, gone)
        return
    if win:
        for one in sorted(gone):
            _drop(table, one, "left")
        return
    if table.people - gone - {person}:
        raise RefusedError("others still play at this table")
    table.wishes.clear()
    table.ended = table.called_off = True


def lose_on_time(table: Table) -> None:
    """End the game of the seat that has no time left."""
    if not table.clock or table.clock.running is None or not table.clock.is_out:
        return
    if len(table.seats) == 2:  # also if one user plays both seats
        table.wishes.clear()
        table.end(Event("time", table.clock.running))
    else:
        _drop(table, table.seats[table.clock.running].holder, "time")


# After the rules have ended the game


def propose(table: Table, proposal: Json) -> None:
    """Set the proposed score of the finished game."""
    table.proposal, table.accepted = proposal, []
    table.wishes.question += 1


def accept(table: Table, person: str) -> None:
    """Agree to the proposed score; the game is over when all its users agree."""
    if not table.is_settling or table.proposal is None:
        raise RefusedError("there is nothing to agree on")
    if person not in table.people:
        raise RefusedError("only players can agree")
    _agree(table, {person})
    table.wishes.clear()


def _agree(table: Table, people: set[str]) -> None:
    table.accepted = sorted({*table.accepted, *people})
    table.agreed = table.people == set(table.accepted)


def play_on(table: Table, person: str) -> None:
    """Take back the two passes that ended the game."""
    if not table.is_settling:
        raise RefusedError("there is nothing to agree on")
    if person not in table.people:
        raise RefusedError("only players can play on")
    table.rewind(len(table.actions) - 2)
