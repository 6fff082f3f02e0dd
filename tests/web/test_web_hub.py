"""The hub without WebSockets and without waiting for compilation: refusals, failures to save, and agents."""

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
from ninetka_web.server.connections import Connection
from ninetka_web.server.hub import Hub
from ninetka_web.tables.records import record_of, table_of_record
from ninetka_web.tables.store import Store
from ninetka_web.tables.table import Table
from ninetka_web.thinking.agent_threads import choose_action
from ninetka_web.thinking.analysis_service import AnalysisRequest, AnalysisService
from ninetka_web.thinking.warm import FIRST_BOARD, Job


class ReadyWarmUp:
    """A warm-up for which every job is done; code is compiled when it is called."""

    def is_ready(self, job: Job) -> bool:
        return True

    def is_compiling(self, job: Job) -> bool:
        return False

    async def wait(self, job: Job, quota_key: str = "") -> None:
        pass

    def request(self, job: Job, quota_key: str = "") -> None:
        pass


def run_with_hub(path: Path, check: Callable[[Hub, Connection], Awaitable[None]]) -> None:
    """Run `check(hub, ann)` with a hub that stores tables in the folder `path`; the connection `ann` said hello."""

    async def run() -> None:
        with closing(Store(path / "table.sqlite3")) as store:
            hub, ann = Hub(store, ReadyWarmUp()), Connection()  # type: ignore[arg-type]
            await hub.open()
            await send(hub, ann, "hello")
            await check(hub, ann)
            hub.close()

    asyncio.run(run())


async def send(hub: Hub, connection: Connection, message_type: str, **content: Any) -> str:
    """Send a message; return the reason if it was refused, otherwise an empty string."""
    hub.receive(connection, json.dumps({"type": message_type, **content}))
    while connection.num_deferred:  # a thread parses the text
        await asyncio.sleep(0.001)
    return str(json.loads(connection._outbox[-1]).get("reason", ""))


@pytest.mark.parametrize(("game", "text"), [("kropki", "Kropki width=" + "9" * 5000), ("go", "size: " + "9" * 5000)])
def test_board_sizes_with_thousands_of_digits_are_refused(game: str, text: str, tmp_path: Path) -> None:
    async def check(hub: Hub, ann: Connection) -> None:
        assert "cannot be read" in await send(hub, ann, "create", game=game, seats=["me", "me"], position=text)
        assert not hub.live.tables

    run_with_hub(tmp_path, check)


def test_a_first_board_is_shown_before_its_rules_are_compiled(tmp_path: Path) -> None:
    class FirstBoardsOnly(ReadyWarmUp):
        """A warm-up that has compiled only the first boards until the event `rules` is set."""

        def __init__(self) -> None:
            self.rules = asyncio.Event()

        def is_ready(self, job: Job) -> bool:
            return job.component == FIRST_BOARD or self.rules.is_set()

        async def wait(self, job: Job, quota_key: str = "") -> None:
            if not self.is_ready(job):
                await self.rules.wait()

    async def check(hub: Hub, ann: Connection) -> None:
        hub._warm_up = warm_up = FirstBoardsOnly()  # type: ignore[assignment]
        assert await send(hub, ann, "create", game="kropki", seats=["me", "me"]) == ""
        (table,) = hub.live.tables.values()
        timed_table = {"type": "create", "seats": ["me", "me"], "clock": [60, 0]}
        bob = Connection()
        await send(hub, bob, "hello")
        await send(hub, bob, "join", table=table.id)
        hub.receive(bob, json.dumps({"type": "undo", "id": 7}))
        for message in ({"type": "play", "ply": 0, "action": 5}, timed_table):
            hub.receive(ann, json.dumps(message))
        await asyncio.sleep(0)
        assert (ann.num_deferred, table.actions, len(hub.live.tables)) == (2, [], 1)
        hub.receive(bob, json.dumps({"type": "leave"}))
        warm_up.rules.set()
        while ann.num_deferred:
            await asyncio.sleep(0)
        assert (table.actions, len(hub.live.tables)) == ([5], 2)
        assert "left the table" in json.loads(bob._outbox[-1])["reason"]

    run_with_hub(tmp_path, check)


def test_games_that_sgf_cannot_express_are_refused(tmp_path: Path) -> None:
    table = table_of("kropki")
    play(table, "B4", "B3", "C4", "F1", "A3", "F2", "D3", "F3", "B2", "F4", "C2", "*C3")

    async def check(hub: Hub, ann: Connection) -> None:
        assert await send(hub, ann, "create", game="kropki", seats=["me", "me"], position=str(table.game)) == ""
        assert "cannot be written in SGF" in await send(hub, ann, "record", sgf=True)

    run_with_hub(tmp_path, check)


def test_only_two_games_of_a_long_upload_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records_read = []

    def counting_reader(source: bytes) -> Iterator[GameRecord]:
        for record in read_sgf(source):
            records_read.append(record)
            yield record

    async def check(hub: Hub, ann: Connection) -> None:
        monkeypatch.setattr("ninetka_web.server.new_tables.read_sgf", counting_reader)
        assert (
            await send(hub, ann, "upload", text="(;GM[1]SZ[5])" * 500)
            == "expected the record of one game, found several"
        )
        assert (len(records_read), hub.live.tables) == (2, {})

    run_with_hub(tmp_path, check)


def test_a_truncated_name_can_be_written_again() -> None:
    sgf = f"(;GM[1]SZ[5]PB[{'a' * 39} b];B[];W[])"
    table = table_of_record(*read_sgf(sgf.encode()))
    assert f"black: {'a' * 39}\n" in format_record(record_of(table))


def raise_disk_full(store: Store, table: Table) -> None:
    raise sqlite3.OperationalError("database or disk is full")


def test_agents_continue_at_the_table_that_was_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(hub: Hub, ann: Connection) -> None:
        assert await send(hub, ann, "create", game="go", options={"size": 5}, seats=["me", "random"]) == ""
        await send(hub, ann, "pace", delay_ms=200, paused=False)
        (table,) = hub.live.tables
        assert await send(hub, ann, "play", ply=0, action=0) == ""
        await asyncio.sleep(0)  # the agent starts to think
        with monkeypatch.context() as patch:
            patch.setattr(Store, "save", raise_disk_full)
            assert "not made" in await send(hub, ann, "pace", delay_ms=100, paused=False)
        async with asyncio.timeout(20):
            while len(hub.live.tables[table].actions) < 2:
                await asyncio.sleep(0.05)
        assert hub.live._store.load(table).actions == hub.live.tables[table].actions
        assert hub.live.tables[table].agent_delay_ms == 200

    run_with_hub(tmp_path, check)


async def wait_for_plies(hub: Hub, count: int) -> Table:
    """Wait until the only table has `count` plies, and return it."""
    async with asyncio.timeout(20):
        while len(next(iter(hub.live.tables.values())).actions) < count:
            await asyncio.sleep(0.01)
    return next(iter(hub.live.tables.values()))


def test_an_agent_whose_move_could_not_be_saved_tries_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(hub: Hub, ann: Connection) -> None:
        await send(hub, ann, "create", game="go", options={"size": 5}, seats=["me", "random"])
        await send(hub, ann, "pace", delay_ms=0, paused=False)
        assert await send(hub, ann, "play", ply=0, action=0) == ""
        with monkeypatch.context() as patch:
            patch.setattr(Store, "save", raise_disk_full)
            async with asyncio.timeout(20):
                while not any("not made" in message for message in ann._outbox):
                    await asyncio.sleep(0.01)
        assert len((await wait_for_plies(hub, 2)).actions) == 2

    monkeypatch.setattr("ninetka_web.server.live_tables.RETRY_S", 0.05)
    run_with_hub(tmp_path, check)


def test_an_agent_at_a_table_that_was_not_saved_plays_no_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_continue, played = Event(), Event()

    def choose_late(spec: str, game: Game) -> int:
        assert may_continue.wait(20)
        action = choose_action(spec, game)
        played.set()
        return action

    async def check(hub: Hub, ann: Connection) -> None:
        await send(hub, ann, "create", game="go", options={"size": 5}, seats=["me", "random"])
        await send(hub, ann, "pace", delay_ms=0, paused=False)
        (table,) = hub.live.tables
        await send(hub, ann, "play", ply=0, action=0)
        await asyncio.sleep(0.05)  # the agent thinks
        with monkeypatch.context() as patch:
            patch.setattr(Store, "save", raise_disk_full)
            assert "not made" in await send(hub, ann, "pace", delay_ms=1, paused=False)
        may_continue.set()
        await asyncio.to_thread(played.wait, 20)
        await asyncio.sleep(0.1)
        saved = hub.live._store.load(table)
        assert saved is not None
        assert (saved.actions, saved.agent_delay_ms, hub.live.tables[table].actions) == ([0], 0, [0])

    monkeypatch.setattr("ninetka_web.thinking.agents.choose_action", choose_late)
    monkeypatch.setattr("ninetka_web.server.live_tables.RETRY_S", 60.0)
    run_with_hub(tmp_path, check)


def test_a_table_with_a_failed_agent_pauses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(spec: str, game: Game) -> int:
        raise RuntimeError("out of ideas")

    async def check(hub: Hub, ann: Connection) -> None:
        await send(hub, ann, "create", game="go", options={"size": 5}, seats=["me", "random"])
        (table,) = hub.live.tables.values()
        with monkeypatch.context() as patch:
            patch.setattr("ninetka_web.thinking.agents.choose_action", fail)
            await send(hub, ann, "play", ply=0, action=0)
            async with asyncio.timeout(20):
                while not table.paused:
                    await asyncio.sleep(0.01)
        assert any("out of ideas" in message for message in ann._outbox)
        assert await send(hub, ann, "pace", delay_ms=0, paused=False) == ""
        assert len((await wait_for_plies(hub, 2)).actions) == 2

    run_with_hub(tmp_path, check)


def test_changing_the_pace_does_not_restart_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searches, may_continue = [], Event()

    def choose_late(spec: str, game: Game) -> int:
        searches.append(spec)
        assert may_continue.wait(20)
        return choose_action(spec, game)

    async def check(hub: Hub, ann: Connection) -> None:
        await send(hub, ann, "create", game="go", options={"size": 5}, seats=["me", "random"])
        await send(hub, ann, "play", ply=0, action=0)
        for number in range(20):
            await asyncio.sleep(0.005)
            assert await send(hub, ann, "pace", delay_ms=0, paused=bool(number % 2)) == ""
        may_continue.set()
        async with asyncio.timeout(20):
            while hub.live.agents._thinking:
                await asyncio.sleep(0.01)
        (table,) = hub.live.tables.values()
        # The agent's move is not played, because the table is paused.
        assert (len(searches), len(table.actions), table.paused) == (1, 1, True)
        await send(hub, ann, "pace", delay_ms=0, paused=False)
        await wait_for_plies(hub, 2)
        assert len(searches) == 2

    monkeypatch.setattr("ninetka_web.thinking.agents.choose_action", choose_late)
    run_with_hub(tmp_path, check)


def test_a_connection_that_waits_for_the_restore_does_not_time_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FakeWebSocket:
        """A WebSocket that delivers some texts and then stays silent."""

        def __init__(self, *texts: str) -> None:
            self.texts = list(texts)

        async def receive_text(self) -> str:
            return self.texts.pop(0) if self.texts else await asyncio.Future()

        async def close(self) -> None:
            pass

    async def run() -> None:
        with closing(Store(tmp_path / "table.sqlite3")) as store:
            hub = Hub(store, ReadyWarmUp())  # type: ignore[arg-type]
            greeted, silent = (
                asyncio.create_task(server._serve(websocket, hub, 50.0, ""))  # type: ignore[arg-type]
                for websocket in (FakeWebSocket('{"type": "hello"}'), FakeWebSocket())
            )
            await asyncio.wait([silent], timeout=20)
            await asyncio.sleep(0.1)
            assert (silent.done(), greeted.done()) == (True, False)
            greeted.cancel()
            hub.close()

    monkeypatch.setattr(server, "TIMEOUT_S", 0.05)
    asyncio.run(run())


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"name": "Ann \U0001f469\u200d\U0001f467"}, ""),
        ({"name": "\u200d"}, "a name is printable and has no spaces at its ends"),
        ({"seats": ["me", "solver", "random"]}, "Exact solver plays at 2 seats, not at 3"),
    ],
)
def test_refusals_name_the_reason(message: dict[str, Any], reason: str, tmp_path: Path) -> None:
    async def check(hub: Hub, ann: Connection) -> None:
        assert await send(hub, ann, "create", **{"seats": ["me", "random"], **message}) == reason

    run_with_hub(tmp_path, check)


def test_shares_are_sent_when_the_cache_is_cleared_meanwhile() -> None:
    class CacheClearingThreads:
        async def run(self, function: object, games: list[Any], engine: str) -> list[list[float]]:
            service._win_shares.clear()
            return [[0.5, 0.5]] * len(games)

    service, connection = AnalysisService(CacheClearingThreads(), ReadyWarmUp()), Connection()  # type: ignore[arg-type]
    variant = load_variant("go:size=5")
    record = GameRecord(variant, tuple(range(10)), (), 0)
    games = list(record.replay())
    asyncio.run(
        service._send_win_shares(AnalysisRequest(connection.send, "mcts", "go:size=5", 0, None, games[0]), games)
    )
    assert len(json.loads(connection._outbox[-1])["shares"]) == 11
