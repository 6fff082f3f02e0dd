"""One handler for each type of message from a browser; see `protocol.py` for the messages."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Any

from ninetka_env.api.records import format_record
from ninetka_env.core.imports import install_command
from ninetka_web.games.adapter import adapter_of, web_games
from ninetka_web.server import protocol, quotas
from ninetka_web.server.connections import Connection
from ninetka_web.server.live_tables import LiveTables
from ninetka_web.server.new_tables import create_table, needs_parsing
from ninetka_web.server.protocol import ClientMessage
from ninetka_web.server.quotas import MAX_TABLES_PER_USER
from ninetka_web.tables.endings import accept, claim, play_on, resign
from ninetka_web.tables.records import record_of, sgf_of
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.setup import digest
from ninetka_web.tables.table import Table
from ninetka_web.tables.views import summary_of, try_variation
from ninetka_web.thinking.analysis_service import AnalysisRequest, AnalysisService

_TORCH_MISSING = f"networks need torch on the server: {install_command('train')}"


class Handlers:
    """Handles messages; `RefusedError` gives the reason why a request is refused."""

    def __init__(self, live: LiveTables, analysis_service: AnalysisService) -> None:
        """Handle messages with the tables of `live` and the analyses of `analysis_service`."""
        self._live, self._analysis_service = live, analysis_service
        self._games = {name: adapter_of(name).as_json() for name in web_games()}
        self._table_limit = quotas.RateLimit(quotas.TABLES_AT_ONCE, quotas.TABLES_PER_SECOND, "tables")
        self._analysis_limit = quotas.RateLimit(quotas.ANALYSES_AT_ONCE, quotas.ANALYSES_PER_SECOND, "analyses")

    def handle(self, connection: Connection, message: ClientMessage) -> None:
        """Handle a message that contains no text to parse."""
        if type(message) in _TABLE_HANDLERS:
            table = self._live.table_of(connection)
            _TABLE_HANDLERS[type(message)](self._live, table, connection, message)
            self._live.save_and_send(table)
        else:
            _HANDLERS[type(message)](self, connection, message)

    def check_deferred(self, connection: Connection, message: ClientMessage) -> None:
        """Check a message that is going to wait for compilation or parsing.

        Refuse a table that cannot be created; count a text to parse as a new table in the user's quota.
        """
        if isinstance(message, protocol.Create):
            self._check_create(connection, message)
        if needs_parsing(message):
            self._table_limit.take(connection.quota_key)

    def hello(self, connection: Connection, message: protocol.Hello) -> None:
        """Identify the user by the token, or create a new user; send `welcome`."""
        token = message.token or secrets.token_urlsafe(32)
        previous_user, connection.user = connection.user, digest(token)
        if connection.table_id and connection.user != previous_user:
            self._live.watch(connection, connection.table_id)
        tables, touched = self._live.tables.values(), self._live.touched
        user_tables = [
            table for table in tables if table.seats_of(connection.user) and connection.user not in table.hidden_by
        ]
        user_tables.sort(key=lambda table: touched[table.id], reverse=True)
        connection.send(
            type="welcome",
            token=token,
            games=list(self._games.values()),
            tables=[summary_of(table) for table in user_tables],
        )

    def create(self, connection: Connection, message: protocol.Create) -> None:
        """Create a table."""
        self._check_create(connection, message)
        self._table_limit.take(connection.quota_key)
        self._live.add(connection, create_table(message, connection.user))

    def _check_create(self, connection: Connection, message: protocol.Create) -> None:
        """Refuse a table with agents that the server cannot run, and a user who has too many unfinished games."""
        agents = {agent["name"] for agent in self._games[message.game]["agents"]}
        for spec in set(message.seats) - {protocol.ME, protocol.OPEN}:
            if spec.partition(":")[0] not in agents:
                raise RefusedError(f"{spec}: {_TORCH_MISSING}")
        tables = self._live.tables.values()
        num_unfinished = sum(quotas.is_played(table) and bool(table.seats_of(connection.user)) for table in tables)
        if num_unfinished >= MAX_TABLES_PER_USER:
            raise RefusedError(f"you have {num_unfinished} unfinished games; finish or remove one")

    def join(self, connection: Connection, message: protocol.Join) -> None:
        """Show a table to the connection."""
        self._live.ensure_loaded(message.table)
        self._live.watch(connection, message.table)

    def leave(self, connection: Connection, message: protocol.Leave) -> None:
        """Show no table to the connection."""
        self._live.watch(connection, "")

    def discard(self, connection: Connection, message: protocol.Discard) -> None:
        """Remove a table from the user's list, and delete it if it is on no other user's list."""
        table = self._live.tables.get(message.table)
        if table is None or not table.seats_of(connection.user):
            raise RefusedError("this table is not yours")
        others = table.users - {connection.user}
        if others and not table.is_over:
            raise RefusedError("others play at this table: give up instead")
        if others <= set(table.hidden_by):
            self._live.remove(table.id)
            return
        table.hidden_by = sorted({*table.hidden_by, connection.user})
        self._live.save_and_send(table)

    def chat(self, connection: Connection, message: protocol.Chat) -> None:
        """Send a chat message to all connections at the table."""
        self._live.presence.chat(connection, self._live.table_of(connection), message.text)

    def create_personal_link(self, connection: Connection, message: protocol.GetPersonalLink) -> None:
        """Create a personal link and send its key."""
        table = self._live.table_of(connection)
        key = table.create_personal_link(connection.user)
        self._live.save_and_send(table)
        connection.send(type="text", id=message.id, text=key)

    def send_record(self, connection: Connection, message: protocol.GetRecord) -> None:
        """Send the game record of the finished game, or the game as SGF."""
        table = self._live.table_of(connection)
        try:
            text = sgf_of(table) if message.sgf else format_record(record_of(table))
        except ValueError as error:  # for example, SGF cannot express the game's first position
            raise RefusedError(str(error)) from None
        connection.send(type="text", id=message.id, text=text)

    def send_position(self, connection: Connection, message: protocol.GetPosition) -> None:
        """Send a position as text."""
        connection.send(
            type="text", id=message.id, text=str(self._live.table_of(connection).history.position(message.ply)) + "\n"
        )

    def stop_analysis(self, connection: Connection, message: protocol.StopAnalysis) -> None:
        """Stop the analysis."""
        connection.stop_analysis()

    def analyse(self, connection: Connection, message: protocol.Analyse) -> None:
        """Start an analysis; it replaces the previous analysis of the connection."""
        table = self._live.table_of(connection)
        table.check_analysis(connection.user)
        self._analysis_limit.take(connection.quota_key)
        if message.engine not in self._games[table.setup.game]["engines"]:
            raise RefusedError(f"{message.engine}: no analysis of this game; {_TORCH_MISSING}")
        position, variation = table.history.position(message.ply), None
        if message.variation is not None:
            position, variation = try_variation(table, message.ply, message.variation)
        if not table.is_over and table.seats_of(connection.user) and not table.helped:
            table.helped = True
            self._live.save_and_send(table)
        connection.stop_analysis()
        request = AnalysisRequest(
            connection.send, message.engine, table.setup.compile_key, message.ply, message.variation, position
        )
        if variation:
            request.report("variation", **variation)
        games = list(table.history.positions())
        work = (
            self._analysis_service.run_hint(request)
            if message.hint
            else self._analysis_service.run_analysis(request, games)
        )
        connection.analysis = asyncio.create_task(work)


_HANDLERS: dict[type[ClientMessage], Callable[[Handlers, Connection, Any], None]] = {
    protocol.Hello: Handlers.hello,
    protocol.Create: Handlers.create,
    protocol.Join: Handlers.join,
    protocol.Leave: Handlers.leave,
    protocol.Discard: Handlers.discard,
    protocol.Chat: Handlers.chat,
    protocol.GetPersonalLink: Handlers.create_personal_link,
    protocol.GetRecord: Handlers.send_record,
    protocol.GetPosition: Handlers.send_position,
    protocol.Analyse: Handlers.analyse,
    protocol.StopAnalysis: Handlers.stop_analysis,
}
"""The handlers of all messages that are not in `_TABLE_HANDLERS`, except `Upload`, which `Hub` handles."""


def _checked_answer(
    act: Callable[[Table, Connection, Any], None],
) -> Callable[[LiveTables, Table, Connection, Any], None]:
    """Return a handler that calls `act` for an answer to the latest question, and refuses all other answers."""

    def checked(live: LiveTables, table: Table, connection: Connection, message: Any) -> None:
        table.pending_request.check_question(message.question)
        act(table, connection, message)

    return checked


_TABLE_HANDLERS: dict[type[ClientMessage], Callable[[LiveTables, Table, Connection, Any], None]] = {
    protocol.Sit: lambda live, t, c, m: t.sit(c.user, m.seat, m.name, m.keep),
    protocol.Play: lambda live, t, c, m: t.play(c.user, m.ply, m.action),
    protocol.Undo: lambda live, t, c, m: t.undo(c.user),
    protocol.Answer: _checked_answer(lambda t, c, m: t.answer(c.user, m.accept)),
    protocol.Accept: _checked_answer(lambda t, c, m: accept(t, c.user)),
    protocol.PlayOn: _checked_answer(lambda t, c, m: play_on(t, c.user)),
    protocol.Resign: lambda live, t, c, m: resign(t, c.user),
    protocol.Rematch: lambda live, t, c, m: t.rematch(c.user),
    protocol.Claim: lambda live, t, c, m: claim(t, c.user, live.presence.users_gone(t), m.win),
    protocol.Reclaim: lambda live, t, c, m: t.reclaim(c.user, m.key),
    protocol.Pace: lambda live, t, c, m: t.set_pace(c.user, m.delay_ms, m.paused, live.presence.is_alone(c, t)),
}
"""The handlers of messages that change the connection's table; `handle` saves and sends the table afterwards."""
