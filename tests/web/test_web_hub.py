"""The hub without WebSocket connections and with all code compiled: refusals, failures to save, and agents."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest

pytest.importorskip("fastapi")

from test_web_games import play, table_of

from ninetka_env.api.records import GameRecord, format_record
from ninetka_env.core.game import Game
from ninetka_env.core.registry import load_variant
from ninetka_env.core.sgf import read_sgf
from ninetka_web.server import server
from ninetka_web.server.connections import Guest
from ninetka_web.server.hub import Hub
from ninetka_web.tables.records import record_of, table_of_record
from ninetka_web.tables.store import Store
from ninetka_web.tables.table import Table
from ninetka_web.thinking.analysts import Analysts, Question
from ninetka_web.thinking.players import choose
from ninetka_web.thinking.warm import FIRST, Job


class Ready:
    """A warm-up for which every job is done; code is compiled when it is called."""

    def is_ready(self, job: Job) -> bool:
        return True

    def is_compiling(self, job: Job) -> bool:
        return False

    async def wait(self, job: Job, who: str = "") -> None:
        pass

    def want(self, job: Job, who: str = "") -> None:
        pass


def with_hub(path: Path, check: Callable[[Hub, Guest], Awaitable[None]]) -> None:
    """Run a check with a hub and a connection that has sent hello."""

    async def run() -> None:
        with closing(Store(path / "table.sqlite3")) as store:
            hub, ann = Hub(store, Ready()), Guest()  # type: ignore[arg-type]
            await hub.open()
            await say(hub, ann, "hello")
            await check(hub, ann)
            hub.close()

    asyncio.run(run())


async def say(hub: Hub, guest: Guest, kind: str, **content: Any) -> str:
    """Send a message and return the reason why it was refused, empty if it was done."""
    hub.receive(guest, json.dumps({"type": kind, **content}))
    while guest.patient:  # a thread parses texts
        await asyncio.sleep(0.001)
    return str(json.loads(guest._waiting[-1]).get("reason", ""))


@pytest.mark.parametrize(("game", "text"), [("kropki", "Kropki width=" + "9" * 5000), ("go", "size: " + "9" * 5000)])
def test_a_number_of_thousands_of_digits_is_no_size(game: str, text: str, tmp_path: Path) -> None:
    async def check(hub: Hub, ann: Guest) -> None:
        assert "cannot be read" in await say(hub, ann, "create", game=game, seats=["me", "me"], position=text)
        assert not hub.live.tables

    with_hub(tmp_path, check)


def test_a_board_is_there_before_all_that_its_rules_can_do(tmp_path: Path) -> None:
    class Begun(Ready):
        """A warm-up that has compiled first boards only, until `rules` is set."""

        def __init__(self) -> None:
            self.rules = asyncio.Event()

        def is_ready(self, job: Job) -> bool:
            return job.what == FIRST or self.rules.is_set()

        async def wait(self, job: Job, who: str = "") -> None:
            if not self.is_ready(job):
                await self.rules.wait()

    async def check(hub: Hub, ann: Guest) -> None:
        hub._warm_up = rules = Begun()  # type: ignore[assignment]
        assert await say(hub, ann, "create", game="kropki", seats=["me", "me"]) == ""
        (table,) = hub.live.tables.values()
        timed = {"type": "create", "seats": ["me", "me"], "clock": [60, 0]}
        bob = Guest()
        await say(hub, bob, "hello")
        await say(hub, bob, "join", table=table.id)
        hub.receive(bob, json.dumps({"type": "undo", "id": 7}))
        for message in ({"type": "play", "ply": 0, "action": 5}, timed):
            hub.receive(ann, json.dumps(message))
        await asyncio.sleep(0)
        assert (ann.patient, table.actions, len(hub.live.tables)) == (2, [], 1)
        hub.receive(bob, json.dumps({"type": "leave"}))
        rules.rules.set()
        while ann.patient:
            await asyncio.sleep(0)
        assert (table.actions, len(hub.live.tables)) == ([5], 2)
        assert "left the table" in json.loads(bob._waiting[-1])["reason"]

    with_hub(tmp_path, check)


def test_what_sgf_has_no_words_for_is_refused(tmp_path: Path) -> None:
    table = table_of("kropki")
    play(table, "B4", "B3", "C4", "F1", "A3", "F2", "D3", "F3", "B2", "F4", "C2", "*C3")

    async def check(hub: Hub, ann: Guest) -> None:
        assert await say(hub, ann, "create", game="kropki", seats=["me", "me"], position=str(table.game)) == ""
        assert "cannot be written in SGF" in await say(hub, ann, "record", sgf=True)

    with_hub(tmp_path, check)


def test_of_thousands_of_games_two_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []

    def counted(source: bytes) -> Iterator[GameRecord]:
        for record in read_sgf(source):
            read.append(record)
            yield record

    async def check(hub: Hub, ann: Guest) -> None:
        monkeypatch.setattr("ninetka_web.server.new_tables.read_sgf", counted)
        assert (
            await say(hub, ann, "upload", text="(;GM[1]SZ[5])" * 500)
            == "expected the record of one game, found several"
        )
        assert (len(read), hub.live.tables) == (2, {})

    with_hub(tmp_path, check)


def test_a_name_that_is_cut_off_can_be_written_again() -> None:
    sgf = f"(;GM[1]SZ[5]PB[{'a' * 39} b];B[];W[])"
    table = table_of_record(*read_sgf(sgf.encode()))
    assert f"black: {'a' * 39}\n" in format_record(record_of(table))


def full(store: Store, table: Table) -> None:
    raise sqlite3.OperationalError("database or disk is full")


def test_agents_play_on_at_the_table_that_was_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(hub: Hub, ann: Guest) -> None:
        assert await say(hub, ann, "create", game="go", options={"size": 5}, seats=["me", "random"]) == ""
        await say(hub, ann, "pace", wait=200, paused=False)
        (table,) = hub.live.tables
        assert await say(hub, ann, "play", ply=0, action=0) == ""
        await asyncio.sleep(0)  # the agent starts to think
        with monkeypatch.context() as patch:
            patch.setattr(Store, "save", full)
            assert "not made" in await say(hub, ann, "pace", wait=100, paused=False)
        async with asyncio.timeout(20):
            while len(hub.live.tables[table].actions) < 2:
                await asyncio.sleep(0.05)
        assert hub.live._store.load(table).actions == hub.live.tables[table].actions
        assert hub.live.tables[table].wait == 200

    with_hub(tmp_path, check)


async def plies(hub: Hub, count: int) -> Table:
    """Wait until the only table has `count` plies, and return it."""
    async with asyncio.timeout(20):
        while len(next(iter(hub.live.tables.values())).actions) < count:
            await asyncio.sleep(0.01)
    return next(iter(hub.live.tables.values()))


def test_an_agent_whose_move_could_not_be_saved_tries_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(hub: Hub, ann: Guest) -> None:
        await say(hub, ann, "create", game="go", options={"size": 5}, seats=["me", "random"])
        await say(hub, ann, "pace", wait=0, paused=False)
        assert await say(hub, ann, "play", ply=0, action=0) == ""
        with monkeypatch.context() as patch:
            patch.setattr(Store, "save", full)
            async with asyncio.timeout(20):
                while not any("not made" in message for message in ann._waiting):
                    await asyncio.sleep(0.01)
        assert len((await plies(hub, 2)).actions) == 2

    monkeypatch.setattr("ninetka_web.server.live_tables.RETRY", 0.05)
    with_hub(tmp_path, check)


def test_who_thinks_of_a_table_that_was_not_saved_plays_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, played = Event(), Event()

    def slow(spec: str, game: Game) -> int:
        assert go_on.wait(20)
        action = choose(spec, game)
        played.set()
        return action

    async def check(hub: Hub, ann: Guest) -> None:
        await say(hub, ann, "create", game="go", options={"size": 5}, seats=["me", "random"])
        await say(hub, ann, "pace", wait=0, paused=False)
        (table,) = hub.live.tables
        await say(hub, ann, "play", ply=0, action=0)
        await asyncio.sleep(0.05)  # the agent thinks
        with monkeypatch.context() as patch:
            patch.setattr(Store, "save", full)
            assert "not made" in await say(hub, ann, "pace", wait=1, paused=False)
        go_on.set()
        await asyncio.to_thread(played.wait, 20)
        await asyncio.sleep(0.1)
        saved = hub.live._store.load(table)
        assert saved is not None
        assert (saved.actions, saved.wait, hub.live.tables[table].actions) == ([0], 0, [0])

    monkeypatch.setattr("ninetka_web.thinking.agents.choose", slow)
    monkeypatch.setattr("ninetka_web.server.live_tables.RETRY", 60.0)
    with_hub(tmp_path, check)


def test_a_table_whose_agent_has_failed_waits_for_a_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(spec: str, game: Game) -> int:
        raise RuntimeError("out of ideas")

    async def check(hub: Hub, ann: Guest) -> None:
        await say(hub, ann, "create", game="go", options={"size": 5}, seats=["me", "random"])
        (table,) = hub.live.tables.values()
        with monkeypatch.context() as patch:
            patch.setattr("ninetka_web.thinking.agents.choose", fail)
            await say(hub, ann, "play", ply=0, action=0)
            async with asyncio.timeout(20):
                while not table.paused:
                    await asyncio.sleep(0.01)
        assert any("out of ideas" in message for message in ann._waiting)
        assert await say(hub, ann, "pace", wait=0, paused=False) == ""
        assert len((await plies(hub, 2)).actions) == 2

    with_hub(tmp_path, check)


def test_a_search_goes_on_whatever_the_pace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searches, go_on = [], Event()

    def slow(spec: str, game: Game) -> int:
        searches.append(spec)
        assert go_on.wait(20)
        return choose(spec, game)

    async def check(hub: Hub, ann: Guest) -> None:
        await say(hub, ann, "create", game="go", options={"size": 5}, seats=["me", "random"])
        await say(hub, ann, "play", ply=0, action=0)
        for number in range(20):
            await asyncio.sleep(0.005)
            assert await say(hub, ann, "pace", wait=0, paused=bool(number % 2)) == ""
        go_on.set()
        async with asyncio.timeout(20):
            while hub.live.agents._thinking:
                await asyncio.sleep(0.01)
        (table,) = hub.live.tables.values()
        assert (len(searches), len(table.actions), table.paused) == (1, 1, True)  # paused meanwhile: not played
        await say(hub, ann, "pace", wait=0, paused=False)
        await plies(hub, 2)
        assert len(searches) == 2

    monkeypatch.setattr("ninetka_web.thinking.agents.choose", slow)
    with_hub(tmp_path, check)


def test_who_waits_for_the_tables_of_before_is_no_stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Line:
        """A WebSocket that delivers some texts and then stays silent."""

        def __init__(self, *texts: str) -> None:
            self.texts = list(texts)

        async def receive_text(self) -> str:
            return self.texts.pop(0) if self.texts else await asyncio.Future()

        async def close(self) -> None:
            pass

    async def run() -> None:
        with closing(Store(tmp_path / "table.sqlite3")) as store:
            hub = Hub(store, Ready())  # type: ignore[arg-type]
            polite, silent = (
                asyncio.create_task(server._serve(line, hub, 50.0, ""))  # type: ignore[arg-type]
                for line in (Line('{"type": "hello"}'), Line())
            )
            await asyncio.wait([silent], timeout=20)
            await asyncio.sleep(0.1)
            assert (silent.done(), polite.done()) == (True, False)
            polite.cancel()
            hub.close()

    monkeypatch.setattr(server, "PATIENCE", 0.05)
    asyncio.run(run())


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"name": "Ann \U0001f469\u200d\U0001f467"}, ""),
        ({"name": "\u200d"}, "a name is printable and has no spaces at its ends"),
        ({"seats": ["me", "solver", "random"]}, "Exact solver plays at 2 seats, not at 3"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(message: dict[str, Any], reason: str, tmp_path: Path) -> None:
    async def check(hub: Hub, ann: Guest) -> None:
        assert await say(hub, ann, "create", **{"seats": ["me", "random"], **message}) == reason

    with_hub(tmp_path, check)


def test_a_band_is_told_though_others_empty_what_is_remembered() -> None:
    class Others:
        async def run(self, function: object, games: list[Any], engine: str) -> list[list[float]]:
            analysts._bands.clear()
            return [[0.5, 0.5]] * len(games)

    analysts, guest = Analysts(Others(), Ready()), Guest()  # type: ignore[arg-type]
    variant = load_variant("go:size=5")
    record = GameRecord(variant, tuple(range(10)), (), 0)
    games = list(record.replay())
    asyncio.run(analysts._tell_band(Question(guest.tell, "mcts", "go:size=5", 0, None, games[0]), games))
    assert len(json.loads(guest._waiting[-1])["shares"]) == 11
