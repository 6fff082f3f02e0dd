"""Ends of games that the rules do not define: resignation, loss on time, absence, and agreement on the score.

Other requests of users are in `table.py`.
"""

from __future__ import annotations

from ninetka_env.core.game import Event
from ninetka_web.games.offer import Json
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.setup import Seat
from ninetka_web.tables.table import Table

# While the game runs


def resign(table: Table, user: str) -> None:
    """Resign for all seats of a user."""
    table.check_running()
    if not table.seats_of(user):
        raise RefusedError("only players can give up")
    if table.is_settling:
        raise RefusedError("the game is being counted: agree, or play on")
    _remove_player(table, user, "resigned")


def _remove_player(table: Table, user: str, event_kind: str) -> None:
    """Remove a user from the game; `event_kind` is `"resigned"`, `"time"` or `"left"`.

    In a game of two, the user loses if both seats are taken and the user has one of them. Otherwise an agent takes over
    the user's seats if other people play, or the game ends without a winner.
    """
    own_seats, others = table.seats_of(user), table.users - {user}
    table.pending_request.clear()
    if len(table.seats) == 2 and len(own_seats) == 1 and table.seats[1 - own_seats[0]].kind != "open":
        table.resigned += own_seats * (event_kind == "resigned")
        table.end(Event(event_kind, own_seats[0]))
        return
    table.resigned += own_seats
    if not others:
        table.ended = True
        return
    for number in own_seats:
        table.seats[number] = Seat(agent=table.adapter.offer.substitute, name=table.seats[number].name)


def claim(table: Table, user: str, users_gone: set[str], win: bool) -> None:
    """Continue without the users in `users_gone`, who left and did not come back in time.

    If `win` is true, these users are removed from the game; or, if only the agreement on the score is pending, `user`
    agrees and these users count as agreeing. If `win` is false, the game is called off; this is refused if other people
    still play.
    """
    table.check_running()
    users_gone = users_gone & table.users - {user}
    if user not in table.users or not users_gone:
        raise RefusedError("no player of this table has been away for long enough")
    if win and table.is_settling:  # absent users count as agreeing
        accept(table, user)
        _agree(table, users_gone)
        return
    if win:
        for absent_user in sorted(users_gone):
            _remove_player(table, absent_user, "left")
        return
    if table.users - users_gone - {user}:
        raise RefusedError("others still play at this table")
    table.pending_request.clear()
    table.ended = table.called_off = True


def lose_on_time(table: Table) -> None:
    """If the seat whose clock runs has no time left, remove its user; a game of two seats ends."""
    if not table.clock or table.clock.running is None or not table.clock.is_expired:
        return
    if len(table.seats) == 2:  # also if one user plays both seats
        table.pending_request.clear()
        table.end(Event("time", table.clock.running))
    else:
        _remove_player(table, table.seats[table.clock.running].user, "time")


# After the rules have ended the game


def set_proposal(table: Table, proposal: Json) -> None:
    """Set the proposed score of the finished game."""
    table.proposal, table.accepted = proposal, []
    table.pending_request.question += 1


def accept(table: Table, user: str) -> None:
    """Agree to the proposed score; the game is over when all its users agree."""
    if not table.is_settling or table.proposal is None:
        raise RefusedError("there is nothing to agree on")
    if user not in table.users:
        raise RefusedError("only players can agree")
    _agree(table, {user})
    table.pending_request.clear()


def _agree(table: Table, users: set[str]) -> None:
    table.accepted = sorted({*table.accepted, *users})
    table.agreed = table.users == set(table.accepted)


def play_on(table: Table, user: str) -> None:
    """Take back the two passes that ended the game."""
    if not table.is_settling:
        raise RefusedError("there is nothing to agree on")
    if user not in table.users:
        raise RefusedError("only players can play on")
    table.rewind(len(table.actions) - 2)
