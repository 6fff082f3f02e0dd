"""All tables of a server, and everybody who looks at them: who says something is answered, who looks is shown.

It all runs on one event loop, so what one message does is done before the next is read; only agents think elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import secrets
import sqlite3
import time
from collections.abc import Callable
from typing import Any

from ninetka_env.api.records import format_record
from ninetka_web.games.adapter import adapter_of, games_at_tables
from ninetka_web.server import protocol, quotas
from ninetka_web.server.connections import Guest
from ninetka_web.server.flags import Flags
from ninetka_web.server.new_tables import brings_text, create_table, read_table, rules_for
from ninetka_web.server.people import People
from ninetka_web.server.protocol import AnyMessage, id_of, read_message
from ninetka_web.server.quotas import MAX_TABLES, MAX_TABLES_EACH
from ninetka_web.tables.journal import kind_of_text, table_from
from ninetka_web.tables.records import record_of, sgf_of
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.setup import digest
from ninetka_web.tables.store import Store
from ninetka_web.tables.table import Table
from ninetka_web.tables.views import line_of, try_line, view_of
from ninetka_web.thinking.agents import Agents
from ninetka_web.thinking.analysts import Analysts, Question
from ninetka_web.thinking.players import Players
from ninetka_web.thinking.warm import RULES, Job, WarmUp

MAX_EARLY = 1_000
"""Messages that may wait until the rules are ready."""
MAX_PATIENT = 4
"""Messages of one guest that may wait for something to be compiled or read."""
RETRY = 1.0
"""Seconds until agents try again whose move could not be saved."""
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
        self._people = People()
        self._agents = Agents(self._players, warm_up, self._people.see, self._changed, self._show, self._announce)
        self._games = {name: adapter_of(name).told() for name in games_at_tables()}
        self._made = quotas.Allowance(quotas.TABLES_AT_ONCE, quotas.TABLES_PER_SECOND, "tables")
        self._analysed = quotas.Allowance(quotas.ANALYSES_AT_ONCE, quotas.ANALYSES_PER_SECOND, "analyses")
        self._flags = Flags(self._flag)
        self._views: dict[str, str] = {}
        self._analysts = Analysts(self._players, warm_up)
        self._handlers: dict[type[AnyMessage], Callable[[Guest, Any], None]] = {
            protocol.Hello: self._hello,
            protocol.Create: self._create,
            protocol.Upload: _fail,  # never asked: it is read first, see `_finish`
            protocol.Join: self._join,
            protocol.Leave: lambda guest, _: self._look_at(guest, ""),
            protocol.Discard: self._discard,
            protocol.Sit: self._on_table(lambda t, g, m: t.sit(g.person, m.seat, m.name, m.keep)),
            protocol.Play: self._on_table(lambda t, g, m: t.play(g.person, m.ply, m.action)),
            protocol.Undo: self._on_table(lambda t, g, m: t.undo(g.person)),
            protocol.Answer: self._on_question(lambda t, g, m: t.answer(g.person, m.accept)),
            protocol.Accept: self._on_question(lambda t, g, m: t.accept(g.person)),
            protocol.PlayOn: self._on_question(lambda t, g, m: t.play_on(g.person)),
            protocol.Resign: self._on_table(lambda t, g, m: t.resign(g.person)),
            protocol.Rematch: self._on_table(lambda t, g, m: t.rematch(g.person)),
            protocol.Claim: self._on_table(lambda t, g, m: t.claim(g.person, self._people.gone(t), m.win)),
            protocol.Reclaim: self._on_table(lambda t, g, m: t.reclaim(g.person, m.key)),
            protocol.AskKey: self._give_key,
            protocol.Say: lambda guest, message: self._people.say(guest, self._table_of(guest), message.text),
            protocol.Pace: self._on_table(
                lambda t, g, m: t.set_pace(g.person, m.wait, m.paused, self._people.is_alone(g, t))
            ),
            protocol.Analyse: self._analyse,
            protocol.Rest: lambda guest, _: self._rest(guest),
            protocol.AskRecord: self._tell_record,
            protocol.AskPosition: self._tell_position,
        }

    async def open(self) -> None:
        """Find the tables of before again, once there are rules to play them by, and answer what was said so far."""
        for job in self._needed:
            await self._warm_up.wait(job)
        touched = self._store.touched()
        for kind, state in self._states:
            try:
                table = await self._players.run(table_from, state)
            except Exception:  # it stays where it is, for a version that can read it
                log.exception("a table of before could not be read, of %s", kind or "an unknown game")
                continue
            self.tables[table.id] = table
            self.touched[table.id] = touched.get(table.id, time.time())
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
            guest.is_early = True
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
            job = rules_for(message, self.tables.get(guest.table))
            if job and (brings_text(message) or not self._warm_up.is_ready(job)):
                self._later(guest, message, job)
                return
        except RefusedError as refusal:
            guest.tell(type="refused", id=number or id_of(text), reason=str(refusal))
            return
        self._answer(guest, message, functools.partial(self._handlers[type(message)], guest, message))

    def _answer(self, guest: Guest, message: AnyMessage, act: Callable[[], None]) -> None:
        """Do something for a guest, and tell whether it was done; whatever fails, the line stays open."""
        try:
            act()
            guest.tell(type="done", id=message.id)
        except RefusedError as refusal:
            guest.tell(type="refused", id=message.id, reason=str(refusal))
        except Exception as error:
            log.exception("a message could not be answered: %s", message.type)
            guest.tell(type="refused", id=message.id, reason=f"this failed, and was not done: {error}")

    def _later(self, guest: Guest, message: AnyMessage, job: Job) -> None:
        """Answer when a job is done, and the text that the message brings is read."""
        if guest.patient >= MAX_PATIENT or len(self._patient) >= MAX_EARLY:
            raise RefusedError("too much of yours waits to be compiled or read; try again in some seconds")
        if isinstance(message, protocol.Create):
            self._check_create(guest, message)
        if brings_text(message):
            self._made.take(guest.owner)
        if self._warm_up.is_compiling(job):
            guest.tell(type="compiling", what=str(job))
        guest.patient += 1
        task = asyncio.create_task(self._finish(guest, message, job))
        self._patient.add(task)
        task.add_done_callback(self._patient.discard)

    async def _finish(self, guest: Guest, message: AnyMessage, job: Job) -> None:
        act, place = functools.partial(self._handlers[type(message)], guest, message), guest.table
        try:
            for wanted in (job, Job(job.kind, RULES)):  # the rest of the rules comes right behind the first board
                self._warm_up.want(wanted, guest.owner)
            await self._warm_up.wait(job, guest.owner)
            if guest.table != place and not isinstance(message, protocol.Create | protocol.Upload):
                raise RefusedError("you have left the table meanwhile")
            if brings_text(message):
                table = await self._players.run(read_table, message, guest.person)
                await self._warm_up.wait(Job(table.setup.kind, RULES), guest.owner)
                act = functools.partial(self._add, guest, table)
        except Exception as error:
            act = functools.partial(_fail, guest, error)
        guest.patient -= 1
        if not guest.gone:
            self._answer(guest, message, act)

    def leave(self, guest: Guest) -> None:
        """See a guest off who has hung up; the seats are kept."""
        self._look_at(guest, "")
        guest.gone = True

    def state_for(self, guest: Guest) -> str:
        """Return the message that shows a guest its table: what everybody sees, its own part, and the new moves."""
        table = self.tables[guest.table]
        if guest.table not in self._views:
            self._views[guest.table] = json.dumps(view_of(table))[1:]
        history, count = guest.knows
        first = count if history == table.history else 0
        guest.knows = (table.history, len(table.actions))
        away = self._people.away(table) if len(table.people) > 1 else {}
        own = {
            "type": "state",
            "you": table.seats_of(guest.person),
            "asked": guest.person in table.wishes.asked,
            "away": {seat: round(left, 1) for one, left in away.items() for seat in table.seats_of(one)},
            "clock": table.clock.told() if table.clock else None,
            "accepted": guest.person in table.accepted,
            "compiling": self._agents.is_compiling(table),
            "from": first,
            **({} if history == table.history else {"start": table.start}),
        }
        moves = ", ".join(table.told_moves[first:])
        return f'{json.dumps(own)[:-1]}, "moves": [{moves}], {self._views[guest.table]}'

    def _hello(self, guest: Guest, message: protocol.Hello) -> None:
        token = message.token or secrets.token_urlsafe(32)
        before, guest.person = guest.person, digest(token)
        if guest.table and guest.person != before:
            self._look_at(guest, guest.table)
        mine = [t for t in self.tables.values() if t.seats_of(guest.person) and guest.person not in t.forgotten]
        mine.sort(key=lambda table: self.touched[table.id], reverse=True)
        guest.tell(
            type="welcome", token=token, games=list(self._games.values()), tables=[line_of(table) for table in mine]
        )

    def _look_at(self, guest: Guest, table: str) -> None:
        """Turn a guest to a table, or to none."""
        self._rest(guest)
        if guest.table:
            self._people.go(guest, self.tables.get(guest.table))
            if not self._people.see(guest.table):
                self._agents.stop(guest.table)  # nobody looks: the game waits
            self._show_presence(guest, guest.table)
        guest.table, guest.knows = table, (-1, 0)
        if table:
            self._people.come(guest, table)
            self._show_presence(guest, table)
            guest.show()
            self._flags.set(self.tables[table])
            self._agents.prompt(self.tables[table])

    def _show_presence(self, guest: Guest, table_id: str) -> None:
        """Show that a guest has come or gone who plays with others."""
        table = self.tables.get(table_id)
        if table and guest.person in table.people and len(table.people) > 1:
            self._show(table_id)

    def _show(self, table_id: str) -> None:
        for guest in self._people.at(table_id):
            guest.show()

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

    def _on_question(self, act: Callable[[Table, Guest, Any], None]) -> Callable[[Guest, Any], None]:
        """Make a handler of answers, which must be to the question that was asked last."""

        def checked(table: Table, guest: Guest, message: Any) -> None:
            table.wishes.check(message.question)
            act(table, guest, message)

        return self._on_table(checked)

    def _changed(self, table: Table) -> None:
        """Write a changed table into the journal, then show it to everyone and let its agents think.

        A change that cannot be written is taken back, so that nobody ever sees what would be lost.
        """
        table.wind()
        try:
            self._store.save(table)
        except sqlite3.Error as error:
            log.exception("table %s could not be saved", table.id)
            saved = None
            with contextlib.suppress(sqlite3.Error):  # what cannot even be read is looked for again by who joins
                saved = self._store.load(table.id)
            if saved:
                self.tables[table.id] = saved
                self._flags.set(saved)
                self._agents.stop(table.id)  # whoever thinks there thinks of the table that is not to be
                asyncio.get_running_loop().call_later(RETRY, self._prompt_again, saved)
            else:
                self._forget(table.id)
            raise RefusedError(f"the change could not be saved, so it was not made: {error}") from error
        table.revision += 1
        self.touched[table.id] = time.time()
        self._views.pop(table.id, None)
        self._show(table.id)
        self._flags.set(table)
        self._agents.prompt(table)

    def _prompt_again(self, table: Table) -> None:
        """Let the agents of a table think that could not be saved as it was to be."""
        if self.tables.get(table.id) is table:
            self._show(table.id)
            self._agents.prompt(table)

    def _flag(self, table: Table) -> None:
        """End a game in which somebody's time is over."""
        if self.tables.get(table.id) is not table:
            return
        table.lose_on_time()
        try:
            self._changed(table)
        except RefusedError as refusal:
            self._announce(table.id, str(refusal))

    def _add(self, guest: Guest, table: Table) -> None:
        """Make room for a new table and turn the guest to it."""
        self._make_room()
        table.maker = digest(guest.owner)
        self.tables[table.id] = table
        self._changed(table)
        self._warm_up.want(Job(table.setup.kind, RULES), guest.owner)
        self._look_at(guest, table.id)

    def _make_room(self) -> None:
        """Remove the tables whose time is over, and another one if there are too many all the same."""
        for table_id in quotas.expired(self.tables.values(), self.touched):
            if not self._people.see(table_id):
                self._remove(table_id)
        if len(self.tables) >= MAX_TABLES:
            table_id = quotas.giving_way(self.tables.values(), self.touched, self._people.see)
            self._announce(table_id, "this table makes room for others: its maker has too many")
            self._remove(table_id)

    def _remove(self, table_id: str) -> None:
        """Remove a table for good; whoever looks at it looks at none then."""
        try:
            self._store.remove(table_id)
        except sqlite3.Error as error:
            log.exception("table %s could not be removed", table_id)
            raise RefusedError(f"the table could not be removed: {error}") from error
        for guest in self._people.at(table_id):
            self._look_at(guest, "")
        self._forget(table_id)

    def _forget(self, table_id: str) -> None:
        self._agents.stop(table_id)
        self._people.forget(table_id)
        self._flags.drop(table_id)
        for memory in (self.tables, self.touched, self._views):
            memory.pop(table_id, None)

    def _create(self, guest: Guest, message: protocol.Create) -> None:
        self._check_create(guest, message)
        self._made.take(guest.owner)
        self._add(guest, create_table(message, guest.person))

    def _check_create(self, guest: Guest, message: protocol.Create) -> None:
        """Refuse agents that cannot think here, and too many games of one person."""
        agents = {agent["name"] for agent in self._games[message.game]["agents"]}
        for spec in set(message.seats) - {protocol.ME, protocol.OPEN}:
            if spec.partition(":")[0] not in agents:
                raise RefusedError(f"{spec}: {_LACKING}")
        mine = sum(quotas.is_played(table) and bool(table.seats_of(guest.person)) for table in self.tables.values())
        if mine >= MAX_TABLES_EACH:
            raise RefusedError(f"you have {mine} unfinished games; finish or remove one")

    def _join(self, guest: Guest, message: protocol.Join) -> None:
        if message.table not in self.tables and (table := self._store.load(message.table)):
            self.tables[table.id], self.touched[table.id] = table, time.time()
        if message.table not in self.tables:
            raise RefusedError("there is no such table (any more)")
        self._look_at(guest, message.table)

    def _discard(self, guest: Guest, message: protocol.Discard) -> None:
        table = self.tables.get(message.table)
        if table is None or not table.seats_of(guest.person):
            raise RefusedError("this is no table of yours")
        others = table.people - {guest.person}
        if others and not table.is_over:
            raise RefusedError("others play at this table: give up instead")
        if others <= set(table.forgotten):
            self._remove(table.id)
            return
        table.forgotten = sorted({*table.forgotten, guest.person})
        self._changed(table)

    def _give_key(self, guest: Guest, message: protocol.AskKey) -> None:
        table = self._table_of(guest)
        key = table.give_key(guest.person)
        self._changed(table)
        guest.tell(type="text", id=message.id, text=key)

    def _tell_record(self, guest: Guest, message: protocol.AskRecord) -> None:
        table = self._table_of(guest)
        try:
            text = sgf_of(table) if message.sgf else format_record(record_of(table))
        except ValueError as error:  # such as a game from a position that SGF has no words for
            raise RefusedError(str(error)) from None
        guest.tell(type="text", id=message.id, text=text)

    def _tell_position(self, guest: Guest, message: protocol.AskPosition) -> None:
        guest.tell(type="text", id=message.id, text=str(self._table_of(guest).position(message.ply)) + "\n")

    def _announce(self, table_id: str, text: str) -> None:
        for guest in self._people.at(table_id):
            guest.tell(type="notice", text=text)

    # Analysis

    def _rest(self, guest: Guest) -> None:
        if guest.analysis:
            guest.analysis.cancel()
            guest.analysis = None

    def _analyse(self, guest: Guest, message: protocol.Analyse) -> None:
        table = self._table_of(guest)
        table.check_analysis(guest.person)
        self._analysed.take(guest.owner)
        if message.engine not in self._games[table.setup.game]["engines"]:
            raise RefusedError(f"{message.engine}: no analysis of this game; {_LACKING}")
        position, told = table.position(message.ply), None
        if message.line is not None:
            position, told = try_line(table, message.ply, message.line)
        if not table.is_over and table.seats_of(guest.person) and not table.helped:
            table.helped = True
            self._changed(table)
        self._rest(guest)
        asked = Question(guest.tell, message.engine, table.setup.kind, message.ply, message.line, position)
        if told:
            asked.tell("variation", **told)
        think = self._analysts.hint(asked) if message.hint else self._analysts.explain(asked, list(table.positions()))
        guest.analysis = asyncio.create_task(think)

    def close(self) -> None:
        """Stop thinking; everything is in the journal already."""
        for task in self._patient:
            task.cancel()
        self._agents.close()
        self._flags.close()
        for table in self.tables:
            for guest in self._people.at(table):
                self._rest(guest)
        self._players.close()


def _fail(guest: Guest, error: Any) -> None:
    raise error


def _kind_of(state: str) -> str:
    """Return the kind of game of a stored table, empty if it cannot be made out."""
    try:
        return kind_of_text(state)
    except (ValueError, KeyError, TypeError):
        return ""
