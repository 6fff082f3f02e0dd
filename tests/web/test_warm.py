"""Compilation for the web app: messages that wait for it, and failures of the compiling subprocess."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from requirements import needs_posix
from web_helpers import Client, Server

from ninetka_web.server.connections import Connection
from ninetka_web.server.hub import Hub
from ninetka_web.server.new_tables import create_table
from ninetka_web.server.protocol import Create
from ninetka_web.tables.store import Store
from ninetka_web.thinking import warm
from ninetka_web.thinking.warm import RULES, Job, WarmUp

JOBS = [Job("ninetka", RULES), Job("ninetka", "random")]


@needs_posix
@pytest.mark.exhaustive
def test_the_server_answers_while_it_compiles_for_the_first_time(tmp_path: Path) -> None:
    """Takes about 15 s of CPU time, to compile the rules of 9tka and one agent."""
    server = Server(tmp_path / "table.sqlite3", cache=tmp_path / "cache")
    with Client(server) as ann:
        ann.send("create", seats=["me", "maxn"])
        assert ann.wait_for("compiling")["what"] == "9tka, first board"
        ann.wait_for("state")
        ann.play()
        assert ann.state["compiling"]
        with Client(server) as bob:  # Bob plays meanwhile
            bob.create("me", "me")
            for _ in range(20):
                bob.play()
            assert bob.request("analyse", ply=0, engine="mcts") == ""
            assert bob.wait_for("compiling")["what"] == "9tka, analysis by mcts"
            bob.request("stop_analysis")
        while len(ann.state["moves"]) == 1:
            ann.receive()
        (child,) = children(server.process.pid)
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(30) == 130
    stdout, stderr = server.process.communicate()
    assert stderr == "stopped\n"
    first, *_ = lines = [line.split(" (")[0] for line in stdout.splitlines()]
    assert first == "compiling, once: 9tka, first board"
    assert "compiling, once: 9tka, maxn" in lines[1:4]  # jobs that a user waits for come first
    wait_for_end_of(child)


def wait_for_end_of(pid: int) -> None:
    """Wait until a process is gone and not even a zombie is left."""
    end = time.perf_counter() + 30
    with contextlib.suppress(ProcessLookupError):
        while time.perf_counter() < end:
            os.kill(pid, 0)
            time.sleep(0.01)
        pytest.fail(f"process {pid} has not ended")


def children(pid: int) -> list[int]:
    """Return the process ids of the children of a process."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True)
    pairs = [line.split() for line in listed.stdout.splitlines()]
    return [int(child) for child, parent in pairs if int(parent) == pid]


LOOP_PROGRAM = """
from numba.core.dispatcher import Dispatcher
import sys
from ninetka_env.core.sgf import read_sgf
from ninetka_web.games.adapter import adapter_of
from ninetka_web.server.new_tables import create_table
from ninetka_web.server.protocol import Create
from ninetka_web.tables.endings import resign
from ninetka_web.tables.journal import dump_table, load_table
from ninetka_web.tables.records import record_of, sgf_of, table_of_record
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.views import view_of
from ninetka_web.thinking import warm

game, options = sys.argv[1], eval(sys.argv[2])


def refuse(self, signature):
    raise AssertionError(f"{self.py_func.__qualname__} is compiled for {signature}")


def message(seats):
    return {"type": "create", "game": game, "seats": ["me"] * seats}


warm.dry_run_new_table(adapter_of(game).compile_key(options))
compile, Dispatcher.compile = Dispatcher.compile, refuse
for seats in adapter_of(game).offer.seats:
    table = create_table(Create(**message(seats), options=options), "ann")
    view_of(table)
    load_table(dump_table(table))
Dispatcher.compile = compile
warm.dry_run_table(adapter_of(game).compile_key(options))
Dispatcher.compile = refuse
# A choice to draw a region or not, and a ko
opening = {"kropki": "A2 B2 B1 D1 C2 E1 B3", "go": "D6 E6 C5 F5 D4 E4 A1 D5 E5"}.get(game, "")
for seats in adapter_of(game).offer.seats:
    table = create_table(Create(**message(seats), options=options), "ann")
    for name in opening.split() * (not options.get("handicap")):
        table.play("ann", len(table.actions), table.game.action_index(name))
    while table.is_running:
        view_of(table)
        for action in (table.game.legal_mask() == 0).nonzero()[0][:3].tolist():
            table.adapter.board.illegal_reason(table.game, action)
        legal = table.game.legal_actions().tolist()
        table.play("ann", len(table.actions), legal[len(legal) // 2 if len(table.actions) % 3 else 0])
    record_of(table)
    table = load_table(dump_table(table))
    if game != "ninetka":
        view_of(table_of_record(*read_sgf(sgf_of(table).encode())))
    for ply in range(len(table.actions)):
        create_table(Create(**message(seats), position=str(table.history.position(ply))), "ann")
    table = create_table(Create(**message(seats), position=str(table.history.position(20))), "ann")
    table.play("ann", 0, int(table.game.legal_actions()[0]))
    try:
        table.play("ann", 1, 0)
    except RefusedError:
        table.undo("ann")
    resign(table, "ann")
    view_of(table)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "options"),
    [
        ("ninetka", {"neutral_placement": "players"}),
        ("ninetka", {"neutral_placement": "random", "turn_order": "continue"}),
        ("go", {"size": 9}),
        ("go", {"handicap": 3, "size": 9, "scoring": "territory"}),
        ("kropki", {"width": 6, "height": 6}),
        ("kropki", {"width": 10, "height": 8, "territory": "immediate", "start": "cross"}),
    ],
)
def test_the_dry_run_compiles_all_that_the_event_loop_calls(game: str, options: dict[str, object]) -> None:
    subprocess.run([sys.executable, "-c", LOOP_PROGRAM, game, repr(options)], check=True)


# If the compiling subprocess fails


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Job]:
    """Only add each job to the returned list, instead of loading or compiling it. No job is cached at first."""
    done: list[Job] = []
    monkeypatch.setattr(warm, "_marker_file", lambda job: tmp_path / job.component)
    monkeypatch.setattr(warm, "compile_or_load", done.append)
    monkeypatch.setattr("gc.freeze", lambda: None)
    return done


def fake_python(folder: Path, text: str) -> str:
    """Write a shell script that is used as the Python executable; it ignores its arguments."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    program.chmod(0o755)
    return str(program)


def run_warm_up(check: Callable[[WarmUp], Any]) -> list[str]:
    """Run a check with a warm-up and return the lines that the warm-up reported."""
    lines: list[str] = []

    async def run() -> None:
        warm_up = WarmUp(JOBS, lines.append)
        try:
            await asyncio.wait_for(check(warm_up), 60)
        finally:
            warm_up.close()

    asyncio.run(run())
    return lines


async def all_ready(warm_up: WarmUp) -> None:
    for job in JOBS:
        await warm_up.wait(job)


@needs_posix
@pytest.mark.parametrize("program", ["exit 1", "echo rules; kill -9 $$", "", None])
def test_jobs_that_the_subprocess_does_not_finish_are_done_in_the_server(
    loaded: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str | None
) -> None:
    executable = str(tmp_path / "missing") if program is None else fake_python(tmp_path, program)
    monkeypatch.setattr(sys, "executable", executable)
    run_warm_up(all_ready)
    assert loaded == JOBS


@needs_posix
def test_jobs_wait_for_the_subprocess_and_are_done_if_it_is_killed(
    loaded: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sys, "executable", fake_python(tmp_path, f"echo $$ > {tmp_path}/pid; echo rules; exec sleep 600")
    )

    async def check(warm_up: WarmUp) -> None:
        await warm_up.wait(JOBS[0])
        assert warm_up.is_compiling(JOBS[1])
        os.kill(int((tmp_path / "pid").read_text(encoding="utf-8")), signal.SIGKILL)
        await warm_up.wait(JOBS[1])

    lines = run_warm_up(check)
    assert lines[:2] == ["compiling, once: 9tka, rules (1 of 2)", "compiling, once: 9tka, random (2 of 2)"]
    assert loaded == JOBS


@needs_posix
def test_the_subprocess_ends_with_the_server(
    loaded: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sys, "executable", fake_python(tmp_path, f"echo $$ > {tmp_path}/pid; echo rules; exec sleep 600")
    )
    run_warm_up(lambda warm_up: warm_up.wait(JOBS[0]))
    wait_for_end_of(int((tmp_path / "pid").read_text(encoding="utf-8")))
    assert loaded == [JOBS[0]]


@pytest.mark.slow
def test_the_subprocess_exits_when_its_input_is_closed() -> None:
    command = [sys.executable, "-m", "ninetka_web.thinking.warm"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b"ninetka\tnone\n")  # the job is unknown, so nothing is compiled
        process.stdin.flush()
        assert process.stdout.readline() == b"ninetka\tnone\n"
        process.stdin.close()
        assert process.wait(60) == 1


@needs_posix
def test_a_job_that_a_user_waits_for_comes_first(
    loaded: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = f"read job; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; echo done; exec cat"
    monkeypatch.setattr(sys, "executable", fake_python(tmp_path, blocked))
    requested = Job("go:size=5", RULES)
    monkeypatch.setattr(warm, "_marker_file", lambda job: tmp_path / f"{job.compile_key} {job.component}")

    async def check(warm_up: WarmUp) -> None:
        while JOBS[0] in warm_up._pending:
            await asyncio.sleep(0.01)
        assert warm_up.is_compiling(requested)
        waiting = asyncio.create_task(warm_up.wait(requested))
        await asyncio.sleep(0)  # let the task make its request
        (tmp_path / "go").touch()
        await waiting
        assert warm_up.is_ready(requested)
        await all_ready(warm_up)

    run_warm_up(check)
    assert loaded == [JOBS[0], requested, JOBS[1]]


@needs_posix
def test_no_subprocess_is_started_for_code_that_is_cached_or_cannot_be_cached(
    loaded: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", fake_python(tmp_path, f"touch {tmp_path}/started"))
    monkeypatch.setattr(warm, "_marker_file", lambda job: None)
    assert len(run_warm_up(all_ready)) >= len(JOBS)
    for job in JOBS:
        (tmp_path / job.component).touch()
    monkeypatch.setattr(warm, "_marker_file", lambda job: tmp_path / job.component)
    assert run_warm_up(all_ready) == []
    assert loaded == 2 * JOBS
    assert not (tmp_path / "started").exists()


@needs_posix
def test_a_job_that_fails_ends_the_wait(
    loaded: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(job: Job) -> None:
        raise OSError("no such network")

    monkeypatch.setattr(warm, "compile_or_load", fail)
    monkeypatch.setattr(sys, "executable", fake_python(tmp_path, "exit 1"))
    run_warm_up(all_ready)
    assert "rules could not be made ready" in caplog.text
    assert "no such network" in caplog.text


# Messages to a hub whose rules are not compiled yet


def sent_messages(connection: Connection) -> list[dict[str, Any]]:
    return [json.loads(text) for text in connection._outbox]


@needs_posix
def test_messages_before_the_start_are_answered_later(
    loaded: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ninetka_web.server.hub.MAX_QUEUED", 5)
    blocked = f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; exit 1"
    monkeypatch.setattr(sys, "executable", fake_python(tmp_path, blocked))
    ann, bob, eve = Connection(), Connection(), Connection()

    async def check(warm_up: WarmUp) -> None:
        store = Store(tmp_path / "table.sqlite3")
        store.save(create_table(Create(type="create", seats=["me", "me"]), "ann"))
        hub = Hub(store, warm_up)
        for connection in (ann, bob):
            hub.receive(connection, '{"type": "hello", "id": 1}')
        hub.receive(ann, '{"type": "create", "id": 2, "seats": ["me", "me"]}')
        assert sent_messages(ann) == 2 * [{"type": "compiling", "what": "the rules, for the stored tables"}]
        hub.disconnect(bob)
        for _ in range(3):
            hub.receive(eve, "{}")
        *early, late = sent_messages(eve)
        assert [message["type"] for message in early] == ["compiling"] * 2
        assert "the server is starting" in late["reason"]
        (tmp_path / "go").touch()
        await hub.open()
        assert len(hub.live.tables) == 2
        hub.close()
        store.close()

    run_warm_up(check)
    assert [message["type"] for message in sent_messages(ann)[2:]] == ["welcome", "done", "done"]
    assert [message["type"] for message in sent_messages(bob)] == ["compiling"]


@needs_posix
def test_a_table_that_cannot_be_removed_stays(
    loaded: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", fake_python(tmp_path, "exit 1"))
    ann = Connection()

    def fail(store: Store, table_id: str) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    async def check(warm_up: WarmUp) -> None:
        store = Store(tmp_path / "table.sqlite3")
        hub = Hub(store, warm_up)
        await hub.open()
        await warm_up.wait(JOBS[0])
        for text in ('{"type": "hello"}', '{"type": "create", "seats": ["me", "me"]}'):
            hub.receive(ann, text)
        (table,) = hub.live.tables
        with monkeypatch.context() as patch:
            patch.setattr(Store, "remove", fail)
            hub.receive(ann, json.dumps({"type": "discard", "table": table, "id": 7}))
        assert (list(hub.live.tables), ann.table_id) == ([table], table)
        hub.receive(ann, json.dumps({"type": "discard", "table": table, "id": 8}))
        assert (hub.live.tables, ann.table_id) == ({}, "")
        hub.close()
        store.close()

    run_warm_up(check)
    *_, refused, done = sent_messages(ann)
    assert (refused["type"], refused["id"], done["type"]) == ("refused", 7, "done")
    assert "disk is full" in refused["reason"]
