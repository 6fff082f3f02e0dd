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
from test_web_hub import ReadyWarmUp, send

from ninetka_env.api.records import format_record
from ninetka_env.core.outcome import UNFINISHED
from ninetka_web.games.adapter import adapter_of
from ninetka_web.server import live_tables, presence, quotas
from ninetka_web.server.connections import Connection
from ninetka_web.server.hub import Hub
from ninetka_web.server.quotas import RateLimit, network_of, table_to_evict
from ninetka_web.tables import clocks
from ninetka_web.tables.clocks import Clock
from ninetka_web.tables.endings import claim, lose_on_time, resign, set_proposal
from ninetka_web.tables.journal import dump_table, load_table
from ninetka_web.tables.pending_request import MAX_ATTEMPTS
from ninetka_web.tables.records import record_of
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.store import Store, counts_for_statistics
from ninetka_web.tables.tallies import read_tallies
from ninetka_web.tables.views import view_of
from ninetka_web.thinking.warm import Job, WarmUp


class FakeClock:
    """A clock that advances only when a test changes `seconds`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 1000.0
        for module in (presence, clocks, quotas):
            monkeypatch.setattr(module, "now", lambda: self.seconds)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    return FakeClock(monkeypatch)


def run_at_table(path: Path, check: Callable[..., Awaitable[None]], *seats: str, **options: Any) -> None:
    """Run `check(hub, ann, bob, eve)` at a table where Ann and Bob have seats and Eve watches.

    Args:
        path: the folder of the database.
        check: the check; it gets the connections of the three users.
        seats: the seats of the table, by default Ann's and an open one, which Bob takes.
        options: further fields of the message `create`.
    """

    async def run() -> None:
        with closing(Store(path / "table.sqlite3")) as store:
            hub = Hub(store, ReadyWarmUp())  # type: ignore[arg-type]
            await hub.open()
            ann, bob, eve = connections = [Connection(), Connection(), Connection()]
            for connection in connections:
                await send(hub, connection, "hello")
            assert await send(hub, ann, "create", seats=seats or ["me", "open"], name="Ann", **options) == ""
            for connection in (bob, eve):
                assert await send(hub, connection, "join", table=ann.table_id) == ""
            assert await send(hub, bob, "sit", seat=1, name="Bob") == ""
            await check(hub, ann, bob, eve)
            hub.close()

    asyncio.run(run())


def state_of(hub: Hub, connection: Connection) -> dict[str, Any]:
    """Return the state message of a connection's table."""
    state: dict[str, Any] = json.loads(hub.live.state_for(connection))
    return state


def sent(connection: Connection, message_type: str) -> list[dict[str, Any]]:
    """Return the queued messages of a type."""
    return [message for message in map(json.loads, connection._outbox) if message["type"] == message_type]


# Absence


def test_a_user_who_leaves_may_return_and_loses_only_after_the_time_limit(tmp_path: Path, time: FakeClock) -> None:
    async def check(hub: Hub, ann: Connection, bob: Connection, eve: Connection) -> None:
        assert state_of(hub, eve)["away"] == {}
        assert await send(hub, ann, "claim", win=True) != ""
        await send(hub, bob, "leave")
        time.seconds += 20
        assert state_of(hub, ann)["away"] == {"1": 40.0}
        assert "away for long enough" in await send(hub, ann, "claim", win=True)
        await send(hub, bob, "join", table=ann.table_id)
        assert state_of(hub, ann)["away"] == {}
        hub.disconnect(bob)
        time.seconds += 60
        assert "away for long enough" in await send(hub, eve, "claim", win=True)  # Eve has no seat
        assert await send(hub, ann, "claim", win=True) == ""
        view = state_of(hub, eve)
        assert (view["winner"], view["event"]) == (0, {"kind": "left", "seat": 1})
        assert await send(hub, ann, "record") == ""
        assert sent(ann, "text")[-1]["text"].endswith("result: blue left; yellow wins\n")

    run_at_table(tmp_path, check)


def test_a_game_that_is_called_off_has_no_loser(tmp_path: Path, time: FakeClock) -> None:
    async def check(hub: Hub, ann: Connection, bob: Connection, eve: Connection) -> None:
        hub.disconnect(bob)
        state_of(hub, ann)
        time.seconds += 61
        assert await send(hub, ann, "claim", win=False) == ""
        view = state_of(hub, ann)
        assert (view["over"], view["winner"], view["called_off"]) == (True, None, True)
        assert not counts_for_statistics(hub.live.tables[ann.table_id])

    run_at_table(tmp_path, check)


def test_an_agent_replaces_one_of_three_users_who_left(tmp_path: Path, time: FakeClock) -> None:
    async def check(hub: Hub, ann: Connection, bob: Connection, eve: Connection) -> None:
        await send(hub, eve, "sit", seat=2, name="Eve")
        hub.disconnect(bob)
        state_of(hub, ann)
        time.seconds += 61
        assert "others still play" in await send(hub, ann, "claim", win=False)
        assert await send(hub, ann, "claim", win=True) == ""
        table = hub.live.tables[ann.table_id]
        assert ([seat.agent for seat in table.seats], table.is_over) == (["", "maxn", ""], False)

    run_at_table(tmp_path, check, "me", "open", "open")


# Clocks


def test_the_clock_of_the_seat_to_move_runs_and_a_loss_on_time_is_recorded(tmp_path: Path, time: FakeClock) -> None:
    async def check(hub: Hub, ann: Connection, bob: Connection, eve: Connection) -> None:
        time.seconds += 10
        assert state_of(hub, eve)["clock"] == {"remaining": [290.0, 300.0], "running": 0, "main": 300, "increment": 5}
        assert await send(hub, ann, "play", ply=0, action=24) == ""
        time.seconds += 100
        assert (state_of(hub, eve)["clock"]["remaining"], state_of(hub, eve)["clock"]["running"]) == ([295.0, 200.0], 1)
        assert await send(hub, ann, "undo") == ""
        await send(hub, bob, "answer", accept=True, question=state_of(hub, bob)["question"])
        assert state_of(hub, eve)["clock"]["remaining"] == [295.0, 200.0]  # a take-back does not restore time
        time.seconds += 295
        assert await send(hub, ann, "play", ply=0, action=24) == "your time is over"
        hub.live.end_on_timeout(hub.live.tables[ann.table_id])
        view = state_of(hub, bob)
        assert (view["winner"], view["event"]) == (1, {"kind": "time", "seat": 0})
        record = format_record(record_of(hub.live.tables[ann.table_id]))
        assert record.endswith("result: yellow lost on time; blue wins\n")
        assert "seconds: 300\novertime: 5 s after each turn\n" in record

    run_at_table(tmp_path, check, clock=[300, 5])


def test_a_game_is_lost_on_time_without_a_message(tmp_path: Path) -> None:
    async def check(hub: Hub, ann: Connection, bob: Connection, eve: Connection) -> None:
        table = hub.live.tables[ann.table_id]
        assert table.clock
        table.clock.remaining[0] = 0.02
        hub.live.clock_timers.restart(table)
        async with asyncio.timeout(20):
            while not table.is_over:
                await asyncio.sleep(0.01)
        assert hub.live._store.load(table.id).event == ("time", 0)  # type: ignore[union-attr]

    run_at_table(tmp_path, check, clock=[10, 0])


def test_a_loss_on_time_counts_in_the_tallies(tmp_path: Path, time: FakeClock) -> None:
    table = table_of("me", "random", keep=True, clock=(60, 0))
    both_seats = table_of("me", "me", clock=(60, 0))
    for timed in (table, both_seats):
        timed.update_clock()
        time.seconds += 60
        lose_on_time(timed)
        assert (timed.event, timed.winner, timed.clock and timed.clock.seconds_remaining(0)) == (("time", 0), 1, 0)
    with closing(Store(tmp_path / "table.sqlite3")) as store:
        store.save(table)
    (tally,) = read_tallies(tmp_path / "table.sqlite3")[0]
    assert (tally.agents, tally.games, tally.wins) == ("random", 1, 0)


def test_a_user_who_left_counts_as_agreeing_to_the_score() -> None:
    table = table_of("me", "open", game="go", options={"size": 5})
    table.sit(BOB, 1, "Bob", False)
    for _ in range(2):
        table.play(table.seats[table.game.to_move].user, len(table.actions), 25)
    with pytest.raises(RefusedError, match="nothing to agree"):
        claim(table, ANN, {BOB}, True)
    set_proposal(table, table.adapter.propose_score(table.game))
    claim(table, ANN, {BOB}, True)
    assert (table.is_over, table.event, table.winner) == (True, None, 1)  # by komi


def test_a_clock_stops_for_open_seats_for_agents_and_while_the_server_is_down(time: FakeClock) -> None:
    table = table_of("me", "open", clock=(60, 2))
    table.update_clock()
    assert table.clock
    time.seconds += 1000
    assert table.clock.as_json()["running"] is None
    table.sit(BOB, 1, "Bob", False)
    table.update_clock()
    time.seconds += 7
    stored = dump_table(table)
    time.seconds += 1000  # the server is killed and restarted later
    restored = load_table(stored)
    assert restored.clock
    assert (restored.clock.running, restored.clock.remaining) == (None, [53.0, 60.0])
    restored.update_clock()
    time.seconds += 3
    assert restored.clock.seconds_remaining(0) == 50
    against_agent = table_of("maxn", "me", clock=(60, 2))
    against_agent.update_clock()
    assert against_agent.clock == Clock(60, 2, [60.0, 60.0])
    assert against_agent.clock.running is None


@pytest.mark.parametrize("clock", [[5, 0], [60, -1], [60], [60, 1, 1], "60+1", [1e9, 0]])
def test_clocks_that_the_form_does_not_offer_are_refused(clock: object, tmp_path: Path) -> None:
    async def check(hub: Hub, ann: Connection, bob: Connection, eve: Connection) -> None:
        assert "clock" in await send(hub, ann, "create", seats=["me", "me"], clock=clock)

    run_at_table(tmp_path, check)


# Requests


def test_a_rematch_starts_when_both_users_agree() -> None:
    table = table_of("me", "open", clock=(60, 0))
    table.sit(BOB, 1, "Bob", False)
    resign(table, ANN)
    for _ in range(MAX_ATTEMPTS):
        table.rematch(ANN)
        assert (table.round, view_of(table)["request"]) == (0, "rematch")
        with pytest.raises(RefusedError, match="already"):
            table.rematch(ANN)
        table.answer(BOB, False)
    with pytest.raises(RefusedError, match="was refused"):
        table.rematch(ANN)
    table.rematch(BOB)  # the user who refused may also ask
    table.hidden_by = [ANN]
    table.rematch(ANN)
    assert (table.round, table.seats_of(BOB), table.pending_request.attempts, table.hidden_by) == (1, [0], [], [])
    assert table.clock == Clock(60, 0, [60.0, 60.0])


def test_the_number_of_refused_undo_requests_is_limited() -> None:
    table, rng = table_of("me", "open"), np.random.default_rng(0)
    table.sit(BOB, 1, "Bob", False)
    for number in range(MAX_ATTEMPTS + 3):
        play_on(table, 2, rng)
        table.undo(ANN)
        if number < 3:  # granted requests do not count
            table.answer(BOB, True)
        elif number % 2:
            table.answer(BOB, False)
        else:
            play_on(table, 1, rng)  # a move cancels the request
            play_on(table, 1, rng)
    with pytest.raises(RefusedError, match="was refused"):
        table.undo(ANN)
    play_on(table, 1, rng)
    table.undo(BOB)
    restored = load_table(dump_table(table))
    assert (restored.pending_request, view_of(restored)["request"]) == (table.pending_request, "undo")


def test_a_request_does_not_agree_to_the_request_of_another_user() -> None:
    table = table_of("me", "open")
    table.sit(BOB, 1, "Bob", False)
    play_on(table, 5, np.random.default_rng(0))
    requester, other = (ANN, BOB) if table.history.moves[-1]["seat"] == 0 else (BOB, ANN)
    table.undo(requester)
    with pytest.raises(RefusedError, match="a question already"):  # it would take back more moves
        table.undo(other)
    assert len(table.actions) == 5
    table.answer(other, True)
    assert len(table.actions) == 4


def test_resigning_against_an_open_seat_has_no_winner() -> None:
    table = table_of("me", "open")
    resign(table, ANN)
    assert (table.is_over, table.event, table.winner) == (True, None, UNFINISHED)


def test_answers_to_earlier_questions_are_refused(tmp_path: Path) -> None:
    async def check(hub: Hub, ann: Connection, bob: Connection, eve: Connection) -> None:
        await send(hub, ann, "play", ply=0, action=24)
        await send(hub, ann, "undo")
        question = state_of(hub, bob)["question"]
        await send(hub, bob, "answer", accept=False, question=question)
        await send(hub, ann, "undo")
        for message_type, content in (("answer", {"accept": True}), ("accept", {}), ("play_on", {})):
            assert "earlier question" in await send(hub, bob, message_type, question=question, **content)
        assert state_of(hub, bob)["asked"]

    run_at_table(tmp_path, check)


def test_a_finished_table_is_removed_when_no_user_lists_it(tmp_path: Path) -> None:
    async def check(hub: Hub, ann: Connection, bob: Connection, eve: Connection) -> None:
        table = ann.table_id
        assert "others play" in await send(hub, ann, "discard", table=table)
        await send(hub, ann, "resign")
        assert await send(hub, ann, "discard", table=table) == ""
        assert (table in hub.live.tables, state_of(hub, bob)["over"]) == (True, True)
        ann._outbox.clear()
        await send(hub, ann, "hello", token="a" * 43)
        assert sent(ann, "welcome")[0]["tables"] == []
        assert await send(hub, bob, "discard", table=table) == ""
        assert table not in hub.live.tables

    run_at_table(tmp_path, check)


def test_only_the_creator_pauses_a_game_of_agents(tmp_path: Path) -> None:
    async def check(hub: Hub, ann: Connection, bob: Connection, eve: Connection) -> None:
        assert "not paused" in await send(hub, ann, "pace", delay_ms=100, paused=True)
        assert await send(hub, ann, "pace", delay_ms=100, paused=False) == ""
        await send(hub, eve, "create", seats=["random", "random"])
        await send(hub, ann, "join", table=eve.table_id)
        assert "not paused" in await send(hub, ann, "pace", delay_ms=5000, paused=True)
        assert await send(hub, eve, "pace", delay_ms=5000, paused=True) == ""  # the creator of the table may
        assert await send(hub, ann, "pace", delay_ms=5000, paused=False) == ""

    run_at_table(tmp_path, check, "me", "open", "random")


# Personal links


def test_a_personal_link_moves_a_seat_to_another_browser(tmp_path: Path, time: FakeClock) -> None:
    async def check(hub: Hub, ann: Connection, bob: Connection, eve: Connection) -> None:
        assert "no seat" in await send(hub, eve, "personal_link")
        await send(hub, bob, "personal_link")
        old_key = sent(bob, "text")[-1]["text"]
        await send(hub, bob, "personal_link")
        new_key = sent(bob, "text")[-1]["text"]
        assert new_key not in dump_table(hub.live.tables[ann.table_id])
        assert "not valid" in await send(hub, eve, "reclaim", key=old_key)
        assert "another seat" in await send(hub, ann, "reclaim", key=new_key)
        await send(hub, ann, "play", ply=0, action=24)
        await send(hub, ann, "undo")
        assert await send(hub, eve, "reclaim", key=new_key) == ""
        assert [state_of(hub, connection)["you"] for connection in (ann, bob, eve)] == [[0], [], [1]]
        assert state_of(hub, eve)["asked"]
        assert await send(hub, eve, "answer", accept=True, question=state_of(hub, eve)["question"]) == ""
        assert state_of(hub, eve)["away"] == {}
        assert await send(hub, bob, "reclaim", key=new_key) == ""  # the seat returns to Bob

    run_at_table(tmp_path, check)


# Chat


def test_chat_messages_are_short_plain_text_and_limited_in_rate(tmp_path: Path, time: FakeClock) -> None:
    async def check(hub: Hub, ann: Connection, bob: Connection, eve: Connection) -> None:
        assert "only players" in await send(hub, eve, "chat", text="hello")
        assert "200" in await send(hub, bob, "chat", text="x" * 201)
        assert "nothing in it" in await send(hub, bob, "chat", text="\u202e\n\u0000 ")
        assert await send(hub, bob, "chat", text="\u202e<b>hi</b>\n") == ""
        assert sent(eve, "chat") == [{"type": "chat", "lines": [{"name": "Bob", "text": "<b>hi</b>"}], "new": True}]
        refusals = [await send(hub, bob, "chat", text="hi") for _ in range(6)]
        assert refusals[:4] == [""] * 4
        assert "too many lines" in refusals[-1]
        assert await send(hub, ann, "chat", text="hello") == ""
        time.seconds += 4
        assert await send(hub, bob, "chat", text="again") == ""
        newcomer = Connection()
        await send(hub, newcomer, "hello")
        await send(hub, newcomer, "join", table=ann.table_id)
        assert len(sent(newcomer, "chat")[0]["lines"]) == 7

    run_at_table(tmp_path, check)


# Quotas


def test_a_new_user_gets_a_table_when_others_have_taken_all_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_tables, "MAX_TABLES", 30)

    async def check(hub: Hub, ann: Connection, bob: Connection, eve: Connection) -> None:
        table_id = ann.table_id
        connections = [Connection() for _ in range(3)]
        for connection in connections:
            await send(hub, connection, "hello")
            for _ in range(20):
                assert await send(hub, connection, "create", seats=["me", "me"]) == ""
        assert len(hub.live.tables) == 30
        assert await send(hub, eve, "create", seats=["me", "me"]) == ""
        assert {table_id, eve.table_id} <= hub.live.tables.keys()

    run_at_table(tmp_path, check)


def test_the_tables_of_one_network_are_limited_per_time(tmp_path: Path, time: FakeClock) -> None:
    async def check(hub: Hub, ann: Connection, bob: Connection, eve: Connection) -> None:
        num_created = 0
        for _ in range(4):  # connections from one network share its quota
            connection = Connection(network_of("203.0.113.7"))
            await send(hub, connection, "hello")
            num_created += sum([await send(hub, connection, "create", seats=["me", "open"]) == "" for _ in range(30)])
        assert num_created == quotas.TABLES_AT_ONCE
        assert "too many tables" in await send(hub, connection, "upload", text="x")
        time.seconds += 5
        assert await send(hub, connection, "create", seats=["me", "open"]) == ""
        other = Connection(network_of("203.0.113.8"))
        await send(hub, other, "hello")
        assert await send(hub, other, "create", seats=["me", "open"]) == ""

    run_at_table(tmp_path, check)


def test_tables_that_are_unused_for_long_are_removed(tmp_path: Path) -> None:
    async def check(hub: Hub, ann: Connection, bob: Connection, eve: Connection) -> None:
        tables = []
        for plies in (0, 1, 1):
            await send(hub, eve, "create", seats=["me", "me"])
            if plies:
                await send(hub, eve, "play", ply=0, action=24)
            tables.append(eve.table_id)
        hub.live.touched[tables[0]] -= quotas.MAX_UNPLAYED_AGE_S + 1
        hub.live.touched[tables[1]] -= quotas.MAX_UNPLAYED_AGE_S + 1
        hub.live.touched[tables[2]] -= quotas.MAX_AGE_S + 1
        hub.live.touched[ann.table_id] = 0  # not removed, because it is watched
        await send(hub, eve, "leave")
        await send(hub, eve, "create", seats=["me", "me"])
        assert [table in hub.live.tables for table in (*tables, ann.table_id)] == [False, True, False, True]

    run_at_table(tmp_path, check)


def test_the_quota_key_of_an_address() -> None:
    assert [network_of(text) for text in ("127.0.0.1", "::1", "::ffff:127.0.0.1", "", "testclient")] == [""] * 5
    assert network_of("::ffff:192.0.2.1") == network_of("192.0.2.1") == "192.0.2.1"
    assert network_of("2001:db8:1:2:3::4") == network_of("2001:db8:1:2::9%eth0") == "2001:db8:1:2::/64"


def test_the_number_of_quota_keys_is_bounded(time: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "MAX_QUOTA_KEYS", 3)
    limit = RateLimit(1, 0.1, "things")
    for key in "abcd":
        limit.take(key)
    with pytest.raises(RefusedError, match="too many things in a short time; the next one in 10 s"):
        limit.take("d")
    limit.take("a")


def test_watched_tables_stay_unless_one_user_created_far_too_many() -> None:
    tables = [table_of("me", "me") for _ in range(60)]
    touched = {table.id: number for number, table in enumerate(tables)}
    for number, table in enumerate(tables):
        table.created_by = str(number % 5)
    with pytest.raises(RefusedError, match="all tables"):
        table_to_evict(tables, touched, lambda table: True)
    for table in tables[:55]:
        table.created_by = "ann"
    assert table_to_evict(tables, touched, lambda table: True) == tables[0].id
    assert table_to_evict(tables, touched, lambda table: table != tables[7].id) == tables[7].id


def test_compile_requests_of_users_take_turns() -> None:
    warm_up = object.__new__(WarmUp)
    jobs = {name: Job("go", name) for name in ("a1", "a2", "a3", "b1", "b2", "default")}
    warm_up._pending = list(reversed(jobs.values()))
    warm_up._requests = {key: [job for name, job in jobs.items() if name[0] == key] for key in "ab"}
    order = [warm_up._pop_job().component for _ in jobs]
    assert order == ["a1", "b1", "a2", "b2", "a3", "default"]


@pytest.mark.parametrize("game", ["go", "kropki"])
@pytest.mark.parametrize("text", ["\n", "NK[", "SZ[", "(", "rules=", "\r\n ", "GM ["])
def test_the_compile_key_of_a_text_is_found_in_linear_time(game: str, text: str) -> None:
    start = process_time()
    adapter_of(game).compile_key_of_text(text * (600_000 // len(text)))
    assert process_time() - start < 20  # seconds; a linear search takes 0.1, a quadratic one 300


def test_the_deferred_messages_of_a_connection_are_limited(tmp_path: Path) -> None:
    class BlockedWarmUp(ReadyWarmUp):
        async def wait(self, job: Job, quota_key: str = "") -> None:
            if job.compile_key == "go:size=13":
                await asyncio.Event().wait()

    async def check(hub: Hub, ann: Connection, bob: Connection, eve: Connection) -> None:
        hub._warm_up = BlockedWarmUp()  # type: ignore[assignment]
        sgf = {"type": "upload", "text": "(;GM[1]SZ[13])"}
        for _ in range(5):
            hub.receive(ann, json.dumps(sgf))
        assert ann.num_deferred == 4
        assert "too many of your requests" in sent(ann, "refused")[-1]["reason"]
        assert await send(hub, eve, "upload", text="(;GM[1]SZ[9];B[aa])") == ""  # is not delayed

    run_at_table(tmp_path, check)


def test_a_text_with_a_wrong_compile_key_waits_for_the_right_rules(tmp_path: Path) -> None:
    compile_keys = []

    class RecordingWarmUp(ReadyWarmUp):
        async def wait(self, job: Job, quota_key: str = "") -> None:
            compile_keys.append(job.compile_key)

    async def check(hub: Hub, ann: Connection, bob: Connection, eve: Connection) -> None:
        hub._warm_up = RecordingWarmUp()  # type: ignore[assignment]
        assert await send(hub, ann, "upload", text="(;GM[1]C[SZ[5\\]]SZ[9];B[aa])") == ""
        assert compile_keys == ["go:size=5", "go:size=9"]

    run_at_table(tmp_path, check)


def test_a_full_disk_is_reported_and_ends_no_game(tmp_path: Path) -> None:
    async def check(hub: Hub, ann: Connection, bob: Connection, eve: Connection) -> None:
        table = ann.table_id
        await send(hub, ann, "play", ply=0, action=24)
        moves = state_of(hub, ann)["moves"]
        database = hub.live._store._database
        pages = database.execute("PRAGMA page_count").fetchone()[0]
        database.execute(f"PRAGMA max_page_count = {pages}")
        refusals = [await send(hub, eve, "create", seats=["me"] * 4, name="E" * 24) for _ in range(20)]
        assert "full" in refusals[-1]
        database.execute(f"PRAGMA max_page_count = {pages + 1000}")
        hub.live._store._database = BrokenDatabase()  # type: ignore[assignment]
        for message_type, content in (("resign", {}), ("discard", {"table": table})):
            assert await send(hub, ann, message_type, **content) != ""
        hub.live._store._database = database
        await send(hub, ann, "join", table=table)
        assert (state_of(hub, ann)["moves"], state_of(hub, ann)["over"]) == (moves, False)

    run_at_table(tmp_path, check)


class BrokenDatabase:
    """A database that fails on reads and writes."""

    def __enter__(self) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    def __exit__(self, *exception: object) -> None: ...

    def execute(self, *query: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    def close(self) -> None: ...
