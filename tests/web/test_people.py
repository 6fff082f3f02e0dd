"""Users at tables: absence, clocks, requests, personal links, chat, and quotas."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi")

from test_tables import ANN, BOB, play_on, table_of
from test_web_hub import Ready, say

from ninetka_env.api.records import format_record
from ninetka_env.core.outcome import UNFINISHED
from ninetka_web.games.adapter import adapter_of
from ninetka_web.server import live_tables, people, quotas
from ninetka_web.server.connections import Guest
from ninetka_web.server.hub import Hub
from ninetka_web.server.quotas import Allowance, giving_way, network_of
from ninetka_web.tables import clocks
from ninetka_web.tables.clocks import Clock
from ninetka_web.tables.endings import claim, lose_on_time, propose, resign
from ninetka_web.tables.journal import table_from, text_of
from ninetka_web.tables.records import record_of
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.store import Store, may_keep
from ninetka_web.tables.tallies import read_tallies
from ninetka_web.tables.views import view_of
from ninetka_web.tables.wishes import MAX_TRIES
from ninetka_web.thinking.warm import Job, WarmUp


class Time:
    """A clock that advances only when a test changes `seconds`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 1000.0
        for module in (people, clocks, quotas):
            monkeypatch.setattr(module, "now", lambda: self.seconds)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    return Time(monkeypatch)


def at_a_table(path: Path, check: Callable[..., Awaitable[None]], *seats: str, **options: Any) -> None:
    """Run a check at a table where Ann and Bob have seats and Eve watches."""

    async def run() -> None:
        with closing(Store(path / "table.sqlite3")) as store:
            hub = Hub(store, Ready())  # type: ignore[arg-type]
            await hub.open()
            ann, bob, eve = guests = [Guest(), Guest(), Guest()]
            for guest in guests:
                await say(hub, guest, "hello")
            assert await say(hub, ann, "create", seats=seats or ["me", "open"], name="Ann", **options) == ""
            for guest in (bob, eve):
                assert await say(hub, guest, "join", table=ann.table) == ""
            assert await say(hub, bob, "sit", seat=1, name="Bob") == ""
            await check(hub, ann, bob, eve)
            hub.close()

    asyncio.run(run())


def shown(hub: Hub, guest: Guest) -> dict[str, Any]:
    state: dict[str, Any] = json.loads(hub.live.state_for(guest))
    return state


def heard(guest: Guest, kind: str) -> list[dict[str, Any]]:
    return [message for message in map(json.loads, guest._waiting) if message["type"] == kind]


# Absence


def test_who_has_left_may_come_back_and_loses_only_when_that_takes_too_long(tmp_path: Path, time: Time) -> None:
    async def check(hub: Hub, ann: Guest, bob: Guest, eve: Guest) -> None:
        assert shown(hub, eve)["away"] == {}
        assert await say(hub, ann, "claim", win=True) != ""
        await say(hub, bob, "leave")
        time.seconds += 20
        assert shown(hub, ann)["away"] == {"1": 40.0}
        assert "away for long enough" in await say(hub, ann, "claim", win=True)
        await say(hub, bob, "join", table=ann.table)
        assert shown(hub, ann)["away"] == {}
        hub.leave(bob)
        time.seconds += 60
        assert "away for long enough" in await say(hub, eve, "claim", win=True)  # Eve has no seat
        assert await say(hub, ann, "claim", win=True) == ""
        view = shown(hub, eve)
        assert (view["winner"], view["event"]) == (0, {"kind": "left", "seat": 1})
        assert await say(hub, ann, "record") == ""
        assert heard(ann, "text")[-1]["text"].endswith("result: blue left; yellow wins\n")

    at_a_table(tmp_path, check)


def test_a_game_is_called_off_to_nobodys_loss(tmp_path: Path, time: Time) -> None:
    async def check(hub: Hub, ann: Guest, bob: Guest, eve: Guest) -> None:
        hub.leave(bob)
        shown(hub, ann)
        time.seconds += 61
        assert await say(hub, ann, "claim", win=False) == ""
        view = shown(hub, ann)
        assert (view["over"], view["winner"], view["called_off"]) == (True, None, True)
        assert not may_keep(hub.live.tables[ann.table])

    at_a_table(tmp_path, check)


def test_for_one_of_three_who_has_left_an_agent_plays_on(tmp_path: Path, time: Time) -> None:
    async def check(hub: Hub, ann: Guest, bob: Guest, eve: Guest) -> None:
        await say(hub, eve, "sit", seat=2, name="Eve")
        hub.leave(bob)
        shown(hub, ann)
        time.seconds += 61
        assert "others still play" in await say(hub, ann, "claim", win=False)
        assert await say(hub, ann, "claim", win=True) == ""
        table = hub.live.tables[ann.table]
        assert ([seat.agent for seat in table.seats], table.is_over) == (["", "maxn", ""], False)

    at_a_table(tmp_path, check, "me", "open", "open")


# Clocks


def test_a_clock_runs_for_whose_turn_it_is_and_its_end_stands_in_the_record(tmp_path: Path, time: Time) -> None:
    async def check(hub: Hub, ann: Guest, bob: Guest, eve: Guest) -> None:
        time.seconds += 10
        assert shown(hub, eve)["clock"] == {"left": [290.0, 300.0], "running": 0, "main": 300, "increment": 5}
        assert await say(hub, ann, "play", ply=0, action=24) == ""
        time.seconds += 100
        assert (shown(hub, eve)["clock"]["left"], shown(hub, eve)["clock"]["running"]) == ([295.0, 200.0], 1)
        assert await say(hub, ann, "undo") == ""
        await say(hub, bob, "answer", accept=True, question=shown(hub, bob)["question"])
        assert shown(hub, eve)["clock"]["left"] == [295.0, 200.0]  # a take-back does not restore time
        time.seconds += 295
        assert await say(hub, ann, "play", ply=0, action=24) == "your time is over"
        hub.live.end_on_time(hub.live.tables[ann.table])
        view = shown(hub, bob)
        assert (view["winner"], view["event"]) == (1, {"kind": "time", "seat": 0})
        record = format_record(record_of(hub.live.tables[ann.table]))
        assert record.endswith("result: yellow lost on time; blue wins\n")
        assert "seconds: 300\novertime: 5 s after each turn\n" in record

    at_a_table(tmp_path, check, clock=[300, 5])


def test_a_flag_falls_by_itself(tmp_path: Path) -> None:
    async def check(hub: Hub, ann: Guest, bob: Guest, eve: Guest) -> None:
        table = hub.live.tables[ann.table]
        assert table.clock
        table.clock.left[0] = 0.02
        hub.live.flags.set(table)
        async with asyncio.timeout(20):
            while not table.is_over:
                await asyncio.sleep(0.01)
        assert hub.live._store.load(table.id).event == ("time", 0)  # type: ignore[union-attr]

    at_a_table(tmp_path, check, clock=[10, 0])


def test_time_that_is_over_counts_as_a_loss(tmp_path: Path, time: Time) -> None:
    table = table_of("me", "random", keep=True, clock=(60, 0))
    both = table_of("me", "me", clock=(60, 0))
    for one in (table, both):
        one.wind()
        time.seconds += 60
        lose_on_time(one)
        assert (one.event, one.winner, one.clock and one.clock.rest(0)) == (("time", 0), 1, 0)
    with closing(Store(tmp_path / "table.sqlite3")) as store:
        store.save(table)
    (tally,) = read_tallies(tmp_path / "table.sqlite3")[0]
    assert (tally.agents, tally.games, tally.wins) == ("random", 1, 0)


def test_who_has_left_agrees_to_how_the_game_is_counted() -> None:
    table = table_of("me", "open", game="go", options={"size": 5})
    table.sit(BOB, 1, "Bob", False)
    for _ in range(2):
        table.play(table.seats[table.game.to_move].holder, len(table.actions), 25)
    with pytest.raises(RefusedError, match="nothing to agree"):
        claim(table, ANN, {BOB}, True)
    propose(table, table.adapter.settle(table.game))
    claim(table, ANN, {BOB}, True)
    assert (table.is_over, table.event, table.winner) == (True, None, 1)  # by komi


def test_a_clock_waits_for_open_seats_for_agents_and_for_a_server_that_is_back(time: Time) -> None:
    table = table_of("me", "open", clock=(60, 2))
    table.wind()
    assert table.clock
    time.seconds += 1000
    assert table.clock.told()["running"] is None
    table.sit(BOB, 1, "Bob", False)
    table.wind()
    time.seconds += 7
    state = text_of(table)
    time.seconds += 1000  # the server was killed and restarts later
    again = table_from(state)
    assert again.clock
    assert (again.clock.running, again.clock.left) == (None, [53.0, 60.0])
    again.wind()
    time.seconds += 3
    assert again.clock.rest(0) == 50
    against_agent = table_of("maxn", "me", clock=(60, 2))
    against_agent.wind()
    assert against_agent.clock == Clock(60, 2, [60.0, 60.0])
    assert against_agent.clock.running is None


@pytest.mark.parametrize("clock", [[5, 0], [60, -1], [60], [60, 1, 1], "60+1", [1e9, 0]])
def test_clocks_are_those_of_the_form(clock: object, tmp_path: Path) -> None:
    async def check(hub: Hub, ann: Guest, bob: Guest, eve: Guest) -> None:
        assert "clock" in await say(hub, ann, "create", seats=["me", "me"], clock=clock)

    at_a_table(tmp_path, check)


# Requests


def test_a_rematch_begins_when_both_wish_it() -> None:
    table = table_of("me", "open", clock=(60, 0))
    table.sit(BOB, 1, "Bob", False)
    resign(table, ANN)
    for _ in range(MAX_TRIES):
        table.rematch(ANN)
        assert (table.round, view_of(table)["wish"]) == (0, "rematch")
        with pytest.raises(RefusedError, match="already"):
            table.rematch(ANN)
        table.answer(BOB, False)
    with pytest.raises(RefusedError, match="in vain"):
        table.rematch(ANN)
    table.rematch(BOB)  # a user who has refused may ask too
    table.forgotten = [ANN]
    table.rematch(ANN)
    assert (table.round, table.seats_of(BOB), table.wishes.tries, table.forgotten) == (1, [0], [], [])
    assert table.clock == Clock(60, 0, [60.0, 60.0])


def test_nobody_asks_for_ever_to_take_back() -> None:
    table, rng = table_of("me", "open"), np.random.default_rng(0)
    table.sit(BOB, 1, "Bob", False)
    for number in range(MAX_TRIES + 3):
        play_on(table, 2, rng)
        table.undo(ANN)
        if number < 3:  # granted requests do not count
            table.answer(BOB, True)
        elif number % 2:
            table.answer(BOB, False)
        else:
            play_on(table, 1, rng)  # a move cancels the request
            play_on(table, 1, rng)
    with pytest.raises(RefusedError, match="in vain"):
        table.undo(ANN)
    play_on(table, 1, rng)
    table.undo(BOB)
    again = table_from(text_of(table))
    assert (again.wishes, view_of(again)["wish"]) == (table.wishes, "undo")


def test_a_wish_of_ones_own_agrees_to_no_other() -> None:
    table = table_of("me", "open")
    table.sit(BOB, 1, "Bob", False)
    play_on(table, 5, np.random.default_rng(0))
    asked, other = (ANN, BOB) if table.course.moves[-1]["seat"] == 0 else (BOB, ANN)
    table.undo(asked)
    with pytest.raises(RefusedError, match="a question already"):  # it would go back further than the first request
        table.undo(other)
    assert len(table.actions) == 5
    table.answer(other, True)
    assert len(table.actions) == 4


def test_nobody_wins_against_an_open_seat() -> None:
    table = table_of("me", "open")
    resign(table, ANN)
    assert (table.is_over, table.event, table.winner) == (True, None, UNFINISHED)


def test_an_answer_is_for_the_question_that_was_asked_last(tmp_path: Path) -> None:
    async def check(hub: Hub, ann: Guest, bob: Guest, eve: Guest) -> None:
        await say(hub, ann, "play", ply=0, action=24)
        await say(hub, ann, "undo")
        old = shown(hub, bob)["question"]
        await say(hub, bob, "answer", accept=False, question=old)
        await say(hub, ann, "undo")
        for kind, more in (("answer", {"accept": True}), ("accept", {}), ("play_on", {})):
            assert "earlier question" in await say(hub, bob, kind, question=old, **more)
        assert shown(hub, bob)["asked"]

    at_a_table(tmp_path, check)


def test_a_finished_table_goes_when_nobody_has_it_on_the_list(tmp_path: Path) -> None:
    async def check(hub: Hub, ann: Guest, bob: Guest, eve: Guest) -> None:
        table = ann.table
        assert "others play" in await say(hub, ann, "discard", table=table)
        await say(hub, ann, "resign")
        assert await say(hub, ann, "discard", table=table) == ""
        assert (table in hub.live.tables, shown(hub, bob)["over"]) == (True, True)
        ann._waiting.clear()
        await say(hub, ann, "hello", token="a" * 43)
        assert heard(ann, "welcome")[0]["tables"] == []
        assert await say(hub, bob, "discard", table=table) == ""
        assert table not in hub.live.tables

    at_a_table(tmp_path, check)


def test_nobody_pauses_the_agents_of_others(tmp_path: Path) -> None:
    async def check(hub: Hub, ann: Guest, bob: Guest, eve: Guest) -> None:
        assert "not paused" in await say(hub, ann, "pace", wait=100, paused=True)
        assert await say(hub, ann, "pace", wait=100, paused=False) == ""
        await say(hub, eve, "create", seats=["random", "random"])
        await say(hub, ann, "join", table=eve.table)
        assert "not paused" in await say(hub, ann, "pace", wait=5000, paused=True)
        assert await say(hub, eve, "pace", wait=5000, paused=True) == ""  # the creator of the table may
        assert await say(hub, ann, "pace", wait=5000, paused=False) == ""

    at_a_table(tmp_path, check, "me", "open", "random")


# Personal links


def test_a_personal_link_brings_a_seat_to_another_browser(tmp_path: Path, time: Time) -> None:
    async def check(hub: Hub, ann: Guest, bob: Guest, eve: Guest) -> None:
        assert "no seat" in await say(hub, eve, "key")
        await say(hub, bob, "key")
        old = heard(bob, "text")[-1]["text"]
        await say(hub, bob, "key")
        key = heard(bob, "text")[-1]["text"]
        assert key not in text_of(hub.live.tables[ann.table])
        assert "not valid" in await say(hub, eve, "reclaim", key=old)
        assert "another seat" in await say(hub, ann, "reclaim", key=key)
        await say(hub, ann, "play", ply=0, action=24)
        await say(hub, ann, "undo")
        assert await say(hub, eve, "reclaim", key=key) == ""
        assert [shown(hub, guest)["you"] for guest in (ann, bob, eve)] == [[0], [], [1]]
        assert shown(hub, eve)["asked"]
        assert await say(hub, eve, "answer", accept=True, question=shown(hub, eve)["question"]) == ""
        assert shown(hub, eve)["away"] == {}
        assert await say(hub, bob, "reclaim", key=key) == ""  # and back

    at_a_table(tmp_path, check)


# Chat


def test_what_is_said_is_short_plain_and_not_too_much(tmp_path: Path, time: Time) -> None:
    async def check(hub: Hub, ann: Guest, bob: Guest, eve: Guest) -> None:
        assert "only players" in await say(hub, eve, "say", text="hello")
        assert "200" in await say(hub, bob, "say", text="x" * 201)
        assert "nothing in it" in await say(hub, bob, "say", text="\u202e\n\u0000 ")
        assert await say(hub, bob, "say", text="\u202e<b>hi</b>\n") == ""
        assert heard(eve, "chat") == [{"type": "chat", "lines": [{"who": "Bob", "text": "<b>hi</b>"}], "new": True}]
        told = [await say(hub, bob, "say", text="hi") for _ in range(6)]
        assert told[:4] == [""] * 4
        assert "too many lines" in told[-1]
        assert await say(hub, ann, "say", text="hello") == ""
        time.seconds += 4
        assert await say(hub, bob, "say", text="again") == ""
        late = Guest()
        await say(hub, late, "hello")
        await say(hub, late, "join", table=ann.table)
        assert len(heard(late, "chat")[0]["lines"]) == 7

    at_a_table(tmp_path, check)


# Quotas


def test_a_newcomer_gets_in_though_others_have_taken_all_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_tables, "MAX_TABLES", 30)

    async def check(hub: Hub, ann: Guest, bob: Guest, eve: Guest) -> None:
        game = ann.table
        crowd = [Guest() for _ in range(3)]
        for guest in crowd:
            await say(hub, guest, "hello")
            for _ in range(20):
                assert await say(hub, guest, "create", seats=["me", "me"]) == ""
        assert len(hub.live.tables) == 30
        assert await say(hub, eve, "create", seats=["me", "me"]) == ""
        assert {game, eve.table} <= hub.live.tables.keys()

    at_a_table(tmp_path, check)


def test_a_network_makes_so_many_tables_in_so_much_time(tmp_path: Path, time: Time) -> None:
    async def check(hub: Hub, ann: Guest, bob: Guest, eve: Guest) -> None:
        made = 0
        for _ in range(4):  # new connections share the quota of their network
            stranger = Guest(network_of("203.0.113.7"))
            await say(hub, stranger, "hello")
            made += sum([await say(hub, stranger, "create", seats=["me", "open"]) == "" for _ in range(30)])
        assert made == quotas.TABLES_AT_ONCE
        assert "too many tables" in await say(hub, stranger, "upload", text="x")
        time.seconds += 5
        assert await say(hub, stranger, "create", seats=["me", "open"]) == ""
        other = Guest(network_of("203.0.113.8"))
        await say(hub, other, "hello")
        assert await say(hub, other, "create", seats=["me", "open"]) == ""

    at_a_table(tmp_path, check)


def test_tables_that_nobody_has_touched_for_long_go(tmp_path: Path) -> None:
    async def check(hub: Hub, ann: Guest, bob: Guest, eve: Guest) -> None:
        tables = []
        for plies in (0, 1, 1):
            await say(hub, eve, "create", seats=["me", "me"])
            if plies:
                await say(hub, eve, "play", ply=0, action=24)
            tables.append(eve.table)
        hub.live.touched[tables[0]] -= quotas.UNPLAYED + 1
        hub.live.touched[tables[1]] -= quotas.UNPLAYED + 1
        hub.live.touched[tables[2]] -= quotas.UNTOUCHED + 1
        hub.live.touched[ann.table] = 0  # it is watched
        await say(hub, eve, "leave")
        await say(hub, eve, "create", seats=["me", "me"])
        assert [table in hub.live.tables for table in (*tables, ann.table)] == [False, True, False, True]

    at_a_table(tmp_path, check)


def test_whom_an_address_is_charged_to() -> None:
    assert [network_of(text) for text in ("127.0.0.1", "::1", "::ffff:127.0.0.1", "", "testclient")] == [""] * 5
    assert network_of("::ffff:192.0.2.1") == network_of("192.0.2.1") == "192.0.2.1"
    assert network_of("2001:db8:1:2:3::4") == network_of("2001:db8:1:2::9%eth0") == "2001:db8:1:2::/64"


def test_an_allowance_remembers_only_so_many(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "MAX_OWNERS", 3)
    allowance = Allowance(1, 0.1, "things")
    for who in "abcd":
        allowance.take(who)
    with pytest.raises(RefusedError, match="too many things in a short time; the next one in 10 s"):
        allowance.take("d")
    allowance.take("a")


def test_tables_that_are_seen_stay_unless_their_maker_has_far_too_many() -> None:
    tables = [table_of("me", "me") for _ in range(60)]
    touched = {table.id: number for number, table in enumerate(tables)}
    for number, table in enumerate(tables):
        table.maker = str(number % 5)
    with pytest.raises(RefusedError, match="all tables"):
        giving_way(tables, touched, lambda table: True)
    for table in tables[:55]:
        table.maker = "one"
    assert giving_way(tables, touched, lambda table: True) == tables[0].id
    assert giving_way(tables, touched, lambda table: table != tables[7].id) == tables[7].id


def test_who_waits_for_the_compiler_takes_turns() -> None:
    warm_up = object.__new__(WarmUp)
    jobs = {name: Job("go", name) for name in ("a1", "a2", "a3", "b1", "b2", "nobody's")}
    warm_up._waiting = list(reversed(jobs.values()))
    warm_up._asked = {who: [job for name, job in jobs.items() if name[0] == who] for who in "ab"}
    order = [warm_up._pick().what for _ in jobs]
    assert order == ["a1", "b1", "a2", "b2", "a3", "nobody's"]


@pytest.mark.parametrize("game", ["go", "kropki"])
@pytest.mark.parametrize("text", ["\n", "NK[", "SZ[", "(", "rules=", "\r\n ", "GM ["])
def test_what_a_text_seems_to_be_is_found_in_one_pass(game: str, text: str) -> None:
    begin = process_time()
    adapter_of(game).kind_in(text * (60_000 // len(text)))
    assert process_time() - begin < 0.5  # seconds of the event loop; a quadratic search takes 3


def test_one_guest_lets_few_messages_wait(tmp_path: Path) -> None:
    class Never(Ready):
        async def wait(self, job: Job, who: str = "") -> None:
            if job.kind == "go:size=13":
                await asyncio.Event().wait()

    async def check(hub: Hub, ann: Guest, bob: Guest, eve: Guest) -> None:
        hub._warm_up = Never()  # type: ignore[assignment]
        sgf = {"type": "upload", "text": "(;GM[1]SZ[13])"}
        for _ in range(5):
            hub.receive(ann, json.dumps(sgf))
        assert ann.patient == 4
        assert "too many of your requests" in heard(ann, "refused")[-1]["reason"]
        assert await say(hub, eve, "upload", text="(;GM[1]SZ[9];B[aa])") == ""  # is not delayed

    at_a_table(tmp_path, check)


def test_a_text_that_is_not_what_it_seems_waits_for_its_own_rules(tmp_path: Path) -> None:
    waited = []

    class Listening(Ready):
        async def wait(self, job: Job, who: str = "") -> None:
            waited.append(job.kind)

    async def check(hub: Hub, ann: Guest, bob: Guest, eve: Guest) -> None:
        hub._warm_up = Listening()  # type: ignore[assignment]
        assert await say(hub, ann, "upload", text="(;GM[1]C[SZ[5\\]]SZ[9];B[aa])") == ""
        assert waited == ["go:size=5", "go:size=9"]

    at_a_table(tmp_path, check)


def test_a_full_disk_is_told_and_ends_nothing(tmp_path: Path) -> None:
    async def check(hub: Hub, ann: Guest, bob: Guest, eve: Guest) -> None:
        table = ann.table
        await say(hub, ann, "play", ply=0, action=24)
        before = shown(hub, ann)["moves"]
        database = hub.live._store._database
        pages = database.execute("PRAGMA page_count").fetchone()[0]
        database.execute(f"PRAGMA max_page_count = {pages}")
        told = [await say(hub, eve, "create", seats=["me"] * 4, name="E" * 24) for _ in range(20)]
        assert "full" in told[-1]
        database.execute(f"PRAGMA max_page_count = {pages + 1000}")
        hub.live._store._database = Broken()  # type: ignore[assignment]
        for kind, content in (("resign", {}), ("discard", {"table": table})):
            assert await say(hub, ann, kind, **content) != ""
        hub.live._store._database = database
        await say(hub, ann, "join", table=table)
        assert (shown(hub, ann)["moves"], shown(hub, ann)["over"]) == (before, False)

    at_a_table(tmp_path, check)


class Broken:
    """A database that fails on reads and writes."""

    def __enter__(self) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    def __exit__(self, *exception: object) -> None: ...

    def execute(self, *query: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    def close(self) -> None: ...
