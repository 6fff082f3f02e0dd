"""All tables of a server, and everybody who looks at them: who says something is answered, who looks is shown.

It all runs on one event loop, so what one message does is done before the next is read; only agents think elsewhere.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import itertools
import json
import logging
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from typing import Any

from ninetka_env.api.record_files import read_records
from ninetka_env.api.records import GameRecord, format_record
from ninetka_env.core.sgf import read_sgf
from ninetka_web import protocol
from ninetka_web.adapter import adapter_in, adapter_of, games_at_tables, told_winner
from ninetka_web.analysts import Analysts, Question
from ninetka_web.guest import Guest
from ninetka_web.players import Players, choose
from ninetka_web.protocol import AnyMessage, RefusedError, id_of, read_message
from ninetka_web.setup import kind_of_state
from ninetka_web.store import Store
from ninetka_web.tables import Table
from ninetka_web.variations import try_line
from ninetka_web.warm import COUNTING, RULES, Job, WarmUp

MAX_TABLES, MAX_TABLES_EACH = 2_000, 50
MAX_EARLY = 1_000
"""Messages that may wait until the rules are ready."""
_LACKING = "networks need torch on the server: pip install 'ninetka-env[train]'"

log = logging.getLogger("ninetka")


class Hub:
    """Tables and guests of one server."""

    def __init__(self, store: Store, warm_up: WarmUp) -> None:
        """Make a hub in which all messages wait until it is opened."""
        self.tables: dict[str, Table] = {}
        self.touched: dict[str, float] = {}
        self._early: list[tuple[Guest, str]] = []
        self._is_open = False
        self._patient: set[asyncio.Task[None]] = set()
        self._store, self._warm_up = store, warm_up
        self._states = [(_kind_of(state), state) for state in store.states()]
        self._needed = {Job(kind, RULES) for kind, _ in self._states if kind}
        self._players = Players()
        self._games = {name: adapter_of(name).told() for name in games_at_tables()}
        self._guests: dict[str, set[Guest]] = {}
        self._thinking: dict[str, asyncio.Task[None]] = {}
        self._views: dict[str, str] = {}
        self._analysts = Analysts(self._players, warm_up)
        self._handlers: dict[type[AnyMessage], Callable[[Guest, Any], None]] = {
            protocol.Hello: self._hello,
            protocol.Create: self._create,
            protocol.Upload: self._upload,
            protocol.Join: self._join,
            protocol.Leave: lambda guest, _: self._look_at(guest, ""),
            protocol.Discard: self._discard,
            protocol.Sit: self._on_table(lambda t, g, m: t.sit(g.person, m.seat, m.name, m.keep)),
            protocol.Play: self._on_table(lambda t, g, m: t.play(g.person, m.ply, m.action)),
            protocol.Undo: self._on_table(lambda t, g, m: t.undo(g.person)),
            protocol.Answer: self._on_table(lambda t, g, m: t.answer(g.person, m.accept)),
            protocol.Accept: self._on_table(lambda t, g, m: t.accept(g.person)),
            protocol.PlayOn: self._on_table(lambda t, g, m: t.play_on(g.person)),
            protocol.Resign: self._on_table(lambda t, g, m: t.resign(g.person)),
            protocol.Rematch: self._on_table(lambda t, g, m: t.rematch(g.person)),
            protocol.Pace: self._on_table(lambda t, g, m: t.set_pace(g.person, m.wait, m.paused)),
            protocol.Analyse: self._analyse,
            protocol.Rest: lambda guest, _: self._rest(guest),
            protocol.AskRecord: self._tell_record,
            protocol.AskPosition: self._tell_position,
        }

    async def open(self) -> None:
        """Find the tables of before again, once there are rules to play them by, and answer what was said so far."""
        for job in self._needed:
            await self._warm_up.wait(job)
        for kind, state in self._states:
            try:
                table = Table.from_json(state)
            except Exception:  # it stays where it is, for a version that can read it
                log.exception("a table of before could not be read, of %s", kind or "an unknown game")
                continue
            self.tables[table.id] = table
            self.touched[table.id] = time.monotonic()
            await asyncio.sleep(0)
        self._states.clear()
        self._is_open = True
        for guest, text in self._early:
            if not guest.gone:
                self.receive(guest, text)
        self._early.clear()

    # Guests

    def receive(self, guest: Guest, text: str) -> None:
        """Do what a message asks for and answer it, at once or when there are rules to do it by."""
        if not self._is_open and len(self._early) < MAX_EARLY:
            self._early.append((guest, text))
            if any(map(self._warm_up.is_compiling, self._needed)):
                guest.tell(type="compiling", what="the rules, for the tables of before")
            return
        number = 0
        try:
            if not self._is_open:
                raise RefusedError("the table is being opened; try again in some seconds")
            message = read_message(text)
            number = message.id
            if not guest.person and not isinstance(message, protocol.Hello):
                raise RefusedError("say hello first")
            job = _rules_for(message)
            if job and not self._warm_up.is_ready(job):
                self._later(guest, message, job)
                return
            self._handle(guest, message)
        except RefusedError as refusal:
            guest.tell(type="refused", id=number or id_of(text), reason=str(refusal))

    def _handle(self, guest: Guest, message: AnyMessage) -> None:
        self._handlers[type(message)](guest, message)
        guest.tell(type="done", id=message.id)

    def _later(self, guest: Guest, message: AnyMessage, job: Job) -> None:
        """Answer when a job is done."""
        if len(self._patient) >= MAX_EARLY:
            raise RefusedError("too much waits for rules that are being compiled; try again in some seconds")
        if self._warm_up.is_compiling(job):
            guest.tell(type="compiling", what=str(job))

        async def answer() -> None:
            await self._warm_up.wait(job)
            if guest.gone:
                return
            try:
                self._handle(guest, message)
            except RefusedError as refusal:
                guest.tell(type="refused", id=message.id, reason=str(refusal))

        task = asyncio.create_task(answer())
        self._patient.add(task)
        task.add_done_callback(self._patient.discard)

    def leave(self, guest: Guest) -> None:
        """See a guest off who has hung up; the seats are kept."""
        self._look_at(guest, "")
        guest.gone = True

    def state_for(self, guest: Guest) -> str:
        """Return the message that shows a guest its table: what everybody sees, its own part, and the new moves."""
        table = self.tables[guest.table]
        if guest.table not in self._views:
            self._views[guest.table] = json.dumps(table.view())[1:]
        history, count = guest.knows
        first = count if history == table.history else 0
        guest.knows = (table.history, len(table.moves))
        own = {
            "type": "state",
            "you": table.seats_of(guest.person),
            "asked": guest.person in table.undo_asked,
            "accepted": guest.person in table.accepted,
            "compiling": self._is_compiling(table),
            "from": first,
            **({} if history == table.history else {"start": table.start}),
        }
        moves = ", ".join(table.told_moves[first:])
        return f'{json.dumps(own)[:-1]}, "moves": [{moves}], {self._views[guest.table]}'

    def _is_compiling(self, table: Table) -> bool:
        job = _job_of(table)
        return job is not None and self._warm_up.is_compiling(job)

    def _hello(self, guest: Guest, message: protocol.Hello) -> None:
        token = message.token or secrets.token_urlsafe(32)
        guest.person = digest(token)
        mine = [table for table in self.tables.values() if table.seats_of(guest.person)]
        mine.sort(key=lambda table: self.touched[table.id], reverse=True)
        guest.tell(type="welcome", token=token, games=list(self._games.values()), tables=_told(mine))

    def _look_at(self, guest: Guest, table: str) -> None:
        """Turn a guest to a table, or to none."""
        self._rest(guest)
        if guest.table:
            self._guests[guest.table].discard(guest)
            if not self._guests[guest.table]:
                del self._guests[guest.table]
                self._stop_thinking(guest.table)  # nobody looks: the game waits
        guest.table, guest.knows = table, (-1, 0)
        if table:
            self._guests.setdefault(table, set()).add(guest)
            guest.show()
            self._prompt(self.tables[table])

    def _table_of(self, guest: Guest) -> Table:
        if guest.table not in self.tables:
            raise RefusedError("you are at no table")
        return self.tables[guest.table]

    # Tables

    def _on_table(self, act: Callable[[Table, Guest, Any], None]) -> Callable[[Guest, Any], None]:
        """Make a handler that lets `act` change the guest's table."""

        def handle(guest: Guest, message: AnyMessage) -> None:
            table = self._table_of(guest)
            act(table, guest, message)
            self._changed(table)

        return handle

    def _changed(self, table: Table) -> None:
        """Write a changed table into the journal, then show it to everyone and let its agents think.

        A change that cannot be written is taken back, so that nobody ever sees what would be lost.
        """
        try:
            self._store.save(table)
        except sqlite3.Error as error:
            log.exception("table %s could not be saved", table.id)
            saved = self._store.load(table.id)
            if saved:
                self.tables[table.id] = saved
                if self._thinking.get(table.id) is not asyncio.current_task():
                    self._prompt(saved)  # whoever thinks there thinks of the table that is not to be
            else:
                self._forget(table.id)
            raise RefusedError(f"the change could not be saved, so it was not made: {error}") from error
        table.revision += 1
        self.touched[table.id] = time.monotonic()
        self._views.pop(table.id, None)
        for guest in self._guests.get(table.id, ()):
            guest.show()
        self._prompt(table)

    def _add(self, guest: Guest, table: Table) -> None:
        """Make room for a new table and turn the guest to it."""
        self._make_room()
        self.tables[table.id] = table
        self._changed(table)
        self._look_at(guest, table.id)

    def _make_room(self) -> None:
        """Remove a table that nobody looks at and in which no people play, if there are too many."""
        if len(self.tables) < MAX_TABLES:
            return
        idle = [t for t in self.tables.values() if t.id not in self._guests and not _is_played(t)]
        if not idle:
            raise RefusedError("all tables of this server are taken; try again later")
        self._remove(min(idle, key=lambda table: self.touched[table.id]).id)

    def _remove(self, table_id: str) -> None:
        """Remove a table for good; whoever looks at it looks at none then."""
        try:
            self._store.remove(table_id)
        except sqlite3.Error as error:
            log.exception("table %s could not be removed", table_id)
            raise RefusedError(f"the table could not be removed: {error}") from error
        for guest in list(self._guests.get(table_id, ())):
            self._look_at(guest, "")
        self._forget(table_id)

    def _forget(self, table_id: str) -> None:
        self._stop_thinking(table_id)
        for memory in (self.tables, self.touched, self._views):
            memory.pop(table_id, None)

    def _create(self, guest: Guest, message: protocol.Create) -> None:
        agents = {agent["name"] for agent in self._games[message.game]["agents"]}
        for spec in set(message.seats) - {protocol.ME, protocol.OPEN}:
            if spec.partition(":")[0] not in agents:
                raise RefusedError(f"{spec}: {_LACKING}")
        mine = sum(_is_played(table) and bool(table.seats_of(guest.person)) for table in self.tables.values())
        if mine >= MAX_TABLES_EACH:
            raise RefusedError(f"you have {mine} unfinished games; finish or remove one")
        self._add(guest, Table.create(message, guest.person))

    def _upload(self, guest: Guest, message: protocol.Upload) -> None:
        try:
            records = itertools.islice(_read(message.text), 2)  # to read thousands would hold everybody up
            tables = [Table.of_record(record) for record in records]
        except ValueError as error:
            raise RefusedError(f"no game record: {str(error).removeprefix('<text>, ')}") from None
        if len(tables) != 1:
            raise RefusedError(f"expected the record of one game, found {'several' if tables else 0}")
        self._add(guest, tables[0])

    def _join(self, guest: Guest, message: protocol.Join) -> None:
        if message.table not in self.tables:
            raise RefusedError("there is no such table (any more)")
        self._look_at(guest, message.table)

    def _discard(self, guest: Guest, message: protocol.Discard) -> None:
        table = self.tables.get(message.table)
        if table is None or not table.seats_of(guest.person):
            raise RefusedError("this is no table of yours")
        if {seat.holder for seat in table.seats} - {"", guest.person} and not table.is_over:
            raise RefusedError("others play at this table: give up instead")
        self._remove(table.id)

    def _tell_record(self, guest: Guest, message: protocol.AskRecord) -> None:
        table = self._table_of(guest)
        try:
            text = table.sgf() if message.sgf else format_record(table.record())
        except ValueError as error:  # such as a game from a position that SGF has no words for
            raise RefusedError(str(error)) from None
        guest.tell(type="text", id=message.id, text=text)

    def _tell_position(self, guest: Guest, message: protocol.AskPosition) -> None:
        guest.tell(type="text", id=message.id, text=str(self._table_of(guest).position(message.ply)) + "\n")

    # Agents

    def _prompt(self, table: Table) -> None:
        """Let the agent think whose turn it is, if somebody looks."""
        if self._thinking.get(table.id) is not asyncio.current_task():
            self._stop_thinking(table.id)
            thinks = table.agent_to_move and not table.paused
            if table.id in self._guests and (thinks or _waits_for_proposal(table)):
                self._thinking[table.id] = asyncio.create_task(self._think(table))

    def _stop_thinking(self, table_id: str) -> None:
        task = self._thinking.pop(table_id, None)
        if task and task is not asyncio.current_task():
            task.cancel()

    async def _think(self, table: Table) -> None:
        """Play the agents' moves until it is a person's turn; whatever else changes the table cancels this task."""
        try:
            while job := _job_of(table):
                await self._wait_for(job, table)
                if not table.agent_to_move:
                    table.propose(await self._players.run(table.adapter.settle, table.game.copy()))
                    self._changed(table)
                    return
                begin = time.monotonic()
                action = await self._players.run(choose, table.agent_to_move, table.game.copy())
                await asyncio.sleep(table.wait / 1000 - (time.monotonic() - begin))
                table.play_agent(action)
                self._changed(table)
        except RefusedError as refusal:  # the move could not be saved
            self._announce(table.id, str(refusal))
        except Exception as error:  # an agent of any kind may fail in any way; its table waits, the others play on
            log.exception("an agent failed at table %s", table.id)
            self._announce(table.id, f"the agent could not choose a move: {error}")
        finally:
            if self._thinking.get(table.id) is asyncio.current_task():
                del self._thinking[table.id]

    async def _wait_for(self, job: Job, table: Table) -> None:
        """Wait until an agent is compiled; then show that it thinks."""
        compiling = self._warm_up.is_compiling(job)
        await self._warm_up.wait(job)
        if compiling:
            for guest in self._guests.get(table.id, ()):
                guest.show()

    def _announce(self, table_id: str, text: str) -> None:
        for guest in self._guests.get(table_id, ()):
            guest.tell(type="notice", text=text)

    # Analysis

    def _rest(self, guest: Guest) -> None:
        if guest.analysis:
            guest.analysis.cancel()
            guest.analysis = None

    def _analyse(self, guest: Guest, message: protocol.Analyse) -> None:
        table = self._table_of(guest)
        table.check_analysis(guest.person)
        if message.engine not in self._games[table.setup.game]["engines"]:
            raise RefusedError(f"{message.engine}: no analysis of this game; {_LACKING}")
        position, told = table.position(message.ply), None
        if message.line is not None:
            position, told = try_line(table, message.ply, message.line)
        if not table.is_over and table.seats_of(guest.person) and not table.helped:
            table.helped = True
            self._changed(table)
        self._rest(guest)
        asked = Question(guest, message.engine, table.setup.kind, message.ply, message.line, position)
        if told:
            asked.tell("variation", **told)
        think = self._analysts.hint(asked) if message.hint else self._analysts.explain(asked, list(table.positions()))
        guest.analysis = asyncio.create_task(think)

    def close(self) -> None:
        """Stop thinking; everything is in the journal already."""
        for task in (*self._thinking.values(), *self._patient):
            task.cancel()
        for guests in self._guests.values():
            for guest in guests:
                self._rest(guest)
        self._players.close()


def digest(token: str) -> str:
    """Return what a person is known by: enough to recognise the token, not to guess it."""
    return hashlib.sha256(token.encode()).hexdigest()[:32]


def _job_of(table: Table) -> Job | None:
    """Return which job gets ready what a table waits for: an agent, whatever its strength, or what counts the game."""
    if table.agent_to_move:
        return Job(table.setup.kind, table.agent_to_move.partition(":")[0])
    return Job(table.setup.kind, COUNTING) if _waits_for_proposal(table) else None


def _waits_for_proposal(table: Table) -> bool:
    return table.is_settling and table.proposal is None


def _kind_of(state: str) -> str:
    """Return the kind of game of a stored table, empty if it cannot be made out."""
    try:
        return kind_of_state(state)
    except (ValueError, KeyError, TypeError):
        return ""


def _rules_for(message: AnyMessage) -> Job | None:
    """Return the rules that a message needs beyond those of the tables that there are."""
    if isinstance(message, protocol.Create):
        adapter = adapter_of(message.game)
        kind = adapter.kind(message.options) if message.position is None else adapter.kind_in(message.position)
        return Job(kind, RULES)
    if isinstance(message, protocol.Upload):
        try:
            return Job(adapter_in(message.text).kind_in(message.text), RULES)
        except ValueError as error:
            raise RefusedError(f"no game record: {error}") from None
    return None


def _read(text: str) -> Iterator[GameRecord]:
    """Return the games that a text tells, of records or as SGF; `ValueError` says what is wrong."""
    is_sgf = text.lstrip("\ufeff \t\r\n").startswith("(")
    return read_sgf(text.encode()) if is_sgf else read_records(io.StringIO(text))


def _is_played(table: Table) -> bool:
    """Tell whether people are in the middle of a game there."""
    return not table.is_over and not table.shown and any(seat.holder for seat in table.seats)


def _told(tables: list[Table]) -> list[dict[str, Any]]:
    """Return a line about each table."""
    return [
        {
            "table": table.id,
            "game": table.setup.game,
            "who": [table.who(seat) for seat in range(len(table.seats))],
            "ply": len(table.actions),
            "over": table.is_over,
            "winner": told_winner(table.winner),
        }
        for table in tables
    ]
