"""One handler for each type of message from a browser; see `protocol.py` for the messages."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Any

from ninetka_env.api.records import format_record
from ninetka_web.games.adapter import adapter_of, games_at_tables
from ninetka_web.server import protocol, quotas
from ninetka_web.server.connections import Guest
from ninetka_web.server.live_tables import LiveTables
from ninetka_web.server.new_tables import brings_text, create_table
from ninetka_web.server.protocol import AnyMessage
from ninetka_web.server.quotas import MAX_TABLES_EACH
from ninetka_web.tables.endings import accept, claim, play_on, resign
from ninetka_web.tables.records import record_of, sgf_of
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.setup import digest
from ninetka_web.tables.table import Table
from ninetka_web.tables.views import line_of, try_line
from ninetka_web.thinking.analysts import Analysts, Question

_LACKING = "networks need torch on the server: pip install 'ninetka-env[train]'"


class Handlers:
    """Handles messages; `RefusedError` gives the reason why a request is refused."""

    def __init__(self, live: LiveTables, analysts: Analysts) -> None:
        """Handle messages with the tables `live` and the analyses `analysts`."""
        self._live, self._analysts = live, analysts
        self._games = {name: adapter_of(name).told() for name in games_at_tables()}
        self._made = quotas.Allowance(quotas.TABLES_AT_ONCE, quotas.TABLES_PER_SECOND, "tables")
        self._analysed = quotas.Allowance(quotas.ANALYSES_AT_ONCE, quotas.ANALYSES_PER_SECOND, "analyses")

    def handle(self, guest: Guest, message: AnyMessage) -> None:
        """Handle a message that brings no text to parse."""
        if type(message) in _AT_A_TABLE:
            table = self._live.table_of(guest)
            _AT_A_TABLE[type(message)](self._live, table, guest, message)
            self._live.changed(table)
        else:
            _HANDLERS[type(message)](self, guest, message)

    def check(self, guest: Guest, message: AnyMessage) -> None:
        """Check a message before it is deferred: refuse it early, and charge a text to the quota."""
        if isinstance(message, protocol.Create):
            self._check_create(guest, message)
        if brings_text(message):
            self._made.take(guest.owner)

    def hello(self, guest: Guest, message: protocol.Hello) -> None:
        """Identify the user by the token, or create a new user; send `welcome`."""
        token = message.token or secrets.token_urlsafe(32)
        before, guest.person = guest.person, digest(token)
        if guest.table and guest.person != before:
            self._live.look_at(guest, guest.table)
        tables, touched = self._live.tables.values(), self._live.touched
        mine = [table for table in tables if table.seats_of(guest.person) and guest.person not in table.forgotten]
        mine.sort(key=lambda table: touched[table.id], reverse=True)
        guest.tell(
            type="welcome", token=token, games=list(self._games.values()), tables=[line_of(table) for table in mine]
        )

    def create(self, guest: Guest, message: protocol.Create) -> None:
        """Create a table."""
        self._check_create(guest, message)
        self._made.take(guest.owner)
        self._live.add(guest, create_table(message, guest.person))

    def _check_create(self, guest: Guest, message: protocol.Create) -> None:
        """Refuse agents that the server cannot run, and too many unfinished games of one user."""
        agents = {agent["name"] for agent in self._games[message.game]["agents"]}
        for spec in set(message.seats) - {protocol.ME, protocol.OPEN}:
            if spec.partition(":")[0] not in agents:
                raise RefusedError(f"{spec}: {_LACKING}")
        tables = self._live.tables.values()
        mine = sum(quotas.is_played(table) and bool(table.seats_of(guest.person)) for table in tables)
        if mine >= MAX_TABLES_EACH:
            raise RefusedError(f"you have {mine} unfinished games; finish or remove one")

    def join(self, guest: Guest, message: protocol.Join) -> None:
        """Show a table to the connection."""
        self._live.find(message.table)
        self._live.look_at(guest, message.table)

    def leave(self, guest: Guest, message: protocol.Leave) -> None:
        """Show no table to the connection."""
        self._live.look_at(guest, "")

    def discard(self, guest: Guest, message: protocol.Discard) -> None:
        """Remove a table, or hide it from the user's list while other users have it on theirs."""
        table = self._live.tables.get(message.table)
        if table is None or not table.seats_of(guest.person):
            raise RefusedError("this table is not yours")
        others = table.people - {guest.person}
        if others and not table.is_over:
            raise RefusedError("others play at this table: give up instead")
        if others <= set(table.forgotten):
            self._live.remove(table.id)
            return
        table.forgotten = sorted({*table.forgotten, guest.person})
        self._live.changed(table)

    def say(self, guest: Guest, message: protocol.Say) -> None:
        """Send a chat message to all connections at the table."""
        self._live.people.say(guest, self._live.table_of(guest), message.text)

    def give_key(self, guest: Guest, message: protocol.AskKey) -> None:
        """Create a personal link and send its key."""
        table = self._live.table_of(guest)
        key = table.give_key(guest.person)
        self._live.changed(table)
        guest.tell(type="text", id=message.id, text=key)

    def send_record(self, guest: Guest, message: protocol.AskRecord) -> None:
        """Send the game record of the finished game, or the game as SGF."""
        table = self._live.table_of(guest)
        try:
            text = sgf_of(table) if message.sgf else format_record(record_of(table))
        except ValueError as error:  # such as a game from a position that SGF cannot express
            raise RefusedError(str(error)) from None
        guest.tell(type="text", id=message.id, text=text)

    def send_position(self, guest: Guest, message: protocol.AskPosition) -> None:
        """Send a position as text."""
        guest.tell(type="text", id=message.id, text=str(self._live.table_of(guest).course.position(message.ply)) + "\n")

    def rest(self, guest: Guest, message: protocol.Rest) -> None:
        """Stop the analysis."""
        guest.rest()

    def analyse(self, guest: Guest, message: protocol.Analyse) -> None:
        """Start an analysis; it replaces the previous analysis of the connection."""
        table = self._live.table_of(guest)
        table.check_analysis(guest.person)
        self._analysed.take(guest.owner)
        if message.engine not in self._games[table.setup.game]["engines"]:
            raise RefusedError(f"{message.engine}: no analysis of this game; {_LACKING}")
        position, told = table.course.position(message.ply), None
        if message.line is not None:
            position, told = try_line(table, message.ply, message.line)
        if not table.is_over and table.seats_of(guest.person) and not table.helped:
            table.helped = True
            self._live.changed(table)
        guest.rest()
        asked = Question(guest.tell, message.engine, table.setup.kind, message.ply, message.line, position)
        if told:
            asked.tell("variation", **told)
        games = list(table.course.positions())
        think = self._analysts.hint(asked) if message.hint else self._analysts.explain(asked, games)
        guest.analysis = asyncio.create_task(think)


_HANDLERS: dict[type[AnyMessage], Callable[[Handlers, Guest, Any], None]] = {
    protocol.Hello: Handlers.hello,
    protocol.Create: Handlers.create,
    protocol.Join: Handlers.join,
    protocol.Leave: Handlers.leave,
    protocol.Discard: Handlers.discard,
    protocol.Say: Handlers.say,
    protocol.AskKey: Handlers.give_key,
    protocol.AskRecord: Handlers.send_record,
    protocol.AskPosition: Handlers.send_position,
    protocol.Analyse: Handlers.analyse,
    protocol.Rest: Handlers.rest,
}
"""The handlers of messages that need no table, except `Upload`, which `Hub` parses on a thread first."""


def _answered(act: Callable[[Table, Guest, Any], None]) -> Callable[[LiveTables, Table, Guest, Any], None]:
    """Return a handler that refuses answers to any question but the latest one."""

    def checked(live: LiveTables, table: Table, guest: Guest, message: Any) -> None:
        table.wishes.check(message.question)
        act(table, guest, message)

    return checked


_AT_A_TABLE: dict[type[AnyMessage], Callable[[LiveTables, Table, Guest, Any], None]] = {
    protocol.Sit: lambda live, t, g, m: t.sit(g.person, m.seat, m.name, m.keep),
    protocol.Play: lambda live, t, g, m: t.play(g.person, m.ply, m.action),
    protocol.Undo: lambda live, t, g, m: t.undo(g.person),
    protocol.Answer: _answered(lambda t, g, m: t.answer(g.person, m.accept)),
    protocol.Accept: _answered(lambda t, g, m: accept(t, g.person)),
    protocol.PlayOn: _answered(lambda t, g, m: play_on(t, g.person)),
    protocol.Resign: lambda live, t, g, m: resign(t, g.person),
    protocol.Rematch: lambda live, t, g, m: t.rematch(g.person),
    protocol.Claim: lambda live, t, g, m: claim(t, g.person, live.people.gone(t), m.win),
    protocol.Reclaim: lambda live, t, g, m: t.reclaim(g.person, m.key),
    protocol.Pace: lambda live, t, g, m: t.set_pace(g.person, m.wait, m.paused, live.people.is_alone(g, t)),
}
"""The handlers of messages that change the connection's table; `handle` saves and sends the table afterwards."""
