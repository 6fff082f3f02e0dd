"""The hub without a line to it, all rules at hand: what is refused, what is not made, what is remembered."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from test_web_games import play, table_of

from ninetka_env.api.records import GameRecord, format_record
from ninetka_env.core.registry import load_variant
from ninetka_env.core.sgf import read_sgf
from ninetka_web.analysts import Analysts, Question
from ninetka_web.guest import Guest
from ninetka_web.hub import Hub
from ninetka_web.store import Store
from ninetka_web.tables import Table
from ninetka_web.warm import FIRST, Job


class Ready:
    """Rules and agents that are ready, or compiled when they are asked."""

    def is_ready(self, job: Job) -> bool:
        return True

    def is_compiling(self, job: Job) -> bool:
        return False

    async def wait(self, job: Job, who: str = "") -> None:
        pass

    def want(self, job: Job, who: str = "") -> None:
        pass


def with_hub(path: Path, check: Callable[[Hub, Guest], Awaitable[None]]) -> None:
    """Let somebody who has said hello talk to a hub."""

    async def run() -> None:
        with closing(Store(path / "table.sqlite3")) as store:
            hub, ann = Hub(store, Ready()), Guest()  # type: ignore[arg-type]
            await hub.open()
            await say(hub, ann, "hello")
            await check(hub, ann)
            hub.close()

    asyncio.run(run())


async def say(hub: Hub, guest: Guest, kind: str, **content: Any) -> str:
    """Say something and return the reason why it was refused, empty if it was done."""
    hub.receive(guest, json.dumps({"type": kind, **content}))
    while guest.patient:  # a text is read on a thread
        await asyncio.sleep(0.001)
    return str(json.loads(guest._waiting[-1]).get("reason", ""))


@pytest.mark.parametrize(("game", "text"), [("kropki", "Kropki width=" + "9" * 5000), ("go", "size: " + "9" * 5000)])
def test_a_number_of_thousands_of_digits_is_no_size(game: str, text: str, tmp_path: Path) -> None:
    async def check(hub: Hub, ann: Guest) -> None:
        assert "cannot be read" in await say(hub, ann, "create", game=game, seats=["me", "me"], position=text)
        assert not hub.tables

    with_hub(tmp_path, check)


def test_a_board_is_there_before_all_that_its_rules_can_do(tmp_path: Path) -> None:
    class Begun(Ready):
        """First boards are ready, rules not yet."""

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
        (table,) = hub.tables.values()
        timed = {"type": "create", "seats": ["me", "me"], "clock": [60, 0]}
        bob = Guest()
        await say(hub, bob, "hello")
        await say(hub, bob, "join", table=table.id)
        hub.receive(bob, json.dumps({"type": "undo", "id": 7}))
        for message in ({"type": "play", "ply": 0, "action": 5}, timed):
            hub.receive(ann, json.dumps(message))
        await asyncio.sleep(0)
        assert (ann.patient, table.actions, len(hub.tables)) == (2, [], 1)
        hub.receive(bob, json.dumps({"type": "leave"}))
        rules.rules.set()
        while ann.patient:
            await asyncio.sleep(0)
        assert (table.actions, len(hub.tables)) == ([5], 2)
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
        monkeypatch.setattr("ninetka_web.uploads.read_sgf", counted)
        assert (
            await say(hub, ann, "upload", text="(;GM[1]SZ[5])" * 500)
            == "expected the record of one game, found several"
        )
        assert (len(read), hub.tables) == (2, {})

    with_hub(tmp_path, check)


def test_a_name_that_is_cut_off_can_be_written_again() -> None:
    sgf = f"(;GM[1]SZ[5]PB[{'a' * 39} b];B[];W[])"
    table = Table.of_record(*read_sgf(sgf.encode()))
    assert f"black: {'a' * 39}\n" in format_record(table.record())


def test_agents_play_on_at_the_table_that_was_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(store: Store, table: Table) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    async def check(hub: Hub, ann: Guest) -> None:
        assert await say(hub, ann, "create", game="go", options={"size": 5}, seats=["me", "random"]) == ""
        await say(hub, ann, "pace", wait=200, paused=False)
        (table,) = hub.tables
        assert await say(hub, ann, "play", ply=0, action=0) == ""
        await asyncio.sleep(0)  # the agent begins to think
        with monkeypatch.context() as patch:
            patch.setattr(Store, "save", fail)
            assert "not made" in await say(hub, ann, "pace", wait=100, paused=False)
        async with asyncio.timeout(20):
            while len(hub.tables[table].actions) < 2:
                await asyncio.sleep(0.05)
        assert hub._store.load(table).actions == hub.tables[table].actions
        assert hub.tables[table].wait == 200

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
    asyncio.run(analysts._tell_band(Question(guest, "mcts", "go:size=5", 0, None, games[0]), games))
    assert len(json.loads(guest._waiting[-1])["shares"]) == 11
