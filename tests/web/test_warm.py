"""Compilation for the web app: what waits for it, and what happens if the compiling process fails."""

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
from systems import posix
from web_helpers import Client, Server

from ninetka_web.server.connections import Guest
from ninetka_web.server.hub import Hub
from ninetka_web.server.new_tables import create_table
from ninetka_web.server.protocol import Create
from ninetka_web.tables.store import Store
from ninetka_web.thinking import warm
from ninetka_web.thinking.warm import RULES, Job, WarmUp

JOBS = [Job("ninetka", RULES), Job("ninetka", "random")]


@posix
@pytest.mark.exhaustive
def test_the_first_start_of_all_is_alive_while_it_compiles(tmp_path: Path) -> None:
    """Takes about 15 s of CPU time, to compile the rules of 9tka and one agent."""
    server = Server(tmp_path / "table.sqlite3", cache=tmp_path / "cache")
    with Client(server) as ann:
        ann.say("create", seats=["me", "maxn"])
        assert ann.until("compiling")["what"] == "9tka, first board"  # the server answers with the reason for the wait
        ann.until("state")
        ann.play()
        assert ann.state["compiling"]
        with Client(server) as bob:  # Bob plays meanwhile
            bob.create("me", "me")
            for _ in range(20):
                bob.play()
            assert bob.ask("analyse", ply=0, engine="mcts") == ""
            assert bob.until("compiling")["what"] == "9tka, analysis by mcts"
            bob.ask("rest")
        while len(ann.state["moves"]) == 1:
            ann.hear()
        (child,) = children(server.process.pid)
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(30) == 130
    told, said = server.process.communicate()
    assert said == "stopped\n"
    first, *_ = lines = [line.split(" (")[0] for line in told.splitlines()]
    assert first == "compiling, once: 9tka, first board"
    assert "compiling, once: 9tka, maxn" in lines[1:4]  # jobs that a user waits for come first
    wait_for_end_of(child)


def wait_for_end_of(process: int) -> None:
    """Wait until a process is gone and not even a zombie is left."""
    end = time.perf_counter() + 30
    with contextlib.suppress(ProcessLookupError):
        while time.perf_counter() < end:
            os.kill(process, 0)
            time.sleep(0.01)
        pytest.fail("it has not ended")


def children(process: int) -> list[int]:
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True)
    pairs = [line.split() for line in listed.stdout.splitlines()]
    return [int(pid) for pid, parent in pairs if int(parent) == process]


LOOP = """
from numba.core.dispatcher import Dispatcher
import sys
from ninetka_env.core.sgf import read_sgf
from ninetka_web.games.adapter import adapter_of
from ninetka_web.server.new_tables import create_table
from ninetka_web.server.protocol import Create
from ninetka_web.tables.endings import resign
from ninetka_web.tables.journal import table_from, text_of
from ninetka_web.tables.records import record_of, sgf_of, table_of_record
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.tables.views import view_of
from ninetka_web.thinking import warm

game, options = sys.argv[1], eval(sys.argv[2])


def refuse(self, signature):
    raise AssertionError(f"{self.py_func.__qualname__} is compiled for {signature}")


def wish(seats):
    return {"type": "create", "game": game, "seats": ["me"] * seats}


warm.begin(adapter_of(game).kind(options))
compile, Dispatcher.compile = Dispatcher.compile, refuse
for seats in adapter_of(game).offer.seats:
    table = create_table(Create(**wish(seats), options=options), "ann")
    view_of(table)
    table_from(text_of(table))
Dispatcher.compile = compile
warm.rehearse(adapter_of(game).kind(options))
Dispatcher.compile = refuse
for seats in adapter_of(game).offer.seats:
    table = create_table(Create(**wish(seats), options=options), "ann")
    while table.is_running:
        view_of(table)
        for action in (table.game.legal_mask() == 0).nonzero()[0][:3].tolist():
            table.adapter.board.why_not(table.game, action)
        legal = table.game.legal_actions().tolist()
        table.play("ann", len(table.actions), legal[len(legal) // 2 if len(table.actions) % 3 else 0])
    record_of(table)
    table = table_from(text_of(table))
    if game != "ninetka":
        view_of(table_of_record(*read_sgf(sgf_of(table).encode())))
    table = create_table(Create(**wish(seats), position=str(table.course.position(20))), "ann")
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
def test_the_event_loop_calls_nothing_that_was_not_rehearsed(game: str, options: dict[str, object]) -> None:
    subprocess.run([sys.executable, "-c", LOOP, game, repr(options)], check=True)


# If the other process cannot compile


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Job]:
    """The jobs that this process has done; none of `JOBS` is in the cache."""
    done: list[Job] = []
    monkeypatch.setattr(warm, "_mark", lambda job: tmp_path / job.what)
    monkeypatch.setattr(warm, "warm", done.append)
    monkeypatch.setattr("gc.freeze", lambda: None)
    return done


def python(folder: Path, text: str) -> str:
    """Write a shell script that is used as the Python executable; it ignores its arguments."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    program.chmod(0o755)
    return str(program)


def run(check: Callable[[WarmUp], Any]) -> list[str]:
    """Run a check with a warm-up and return the lines that the warm-up reported."""
    told: list[str] = []

    async def body() -> None:
        warm_up = WarmUp(JOBS, told.append)
        try:
            await asyncio.wait_for(check(warm_up), 60)
        finally:
            warm_up.close()

    asyncio.run(body())
    return told


async def all_ready(warm_up: WarmUp) -> None:
    for job in JOBS:
        await warm_up.wait(job)


@posix
@pytest.mark.parametrize("program", ["exit 1", "echo rules; kill -9 $$", "", None])
def test_what_another_process_leaves_undone_is_done_here(
    loaded: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str | None
) -> None:
    executable = str(tmp_path / "missing") if program is None else python(tmp_path, program)
    monkeypatch.setattr(sys, "executable", executable)
    run(all_ready)
    assert loaded == JOBS


@posix
def test_each_job_waits_for_the_other_process_which_can_be_killed(
    loaded: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", python(tmp_path, f"echo $$ > {tmp_path}/pid; echo rules; exec sleep 600"))

    async def check(warm_up: WarmUp) -> None:
        await warm_up.wait(JOBS[0])
        assert warm_up.is_compiling(JOBS[1])
        os.kill(int((tmp_path / "pid").read_text(encoding="utf-8")), signal.SIGKILL)
        await warm_up.wait(JOBS[1])

    told = run(check)
    assert told[:2] == ["compiling, once: 9tka, rules (1 of 2)", "compiling, once: 9tka, random (2 of 2)"]
    assert loaded == JOBS


@posix
def test_a_server_that_ends_ends_what_compiles_for_it(
    loaded: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", python(tmp_path, f"echo $$ > {tmp_path}/pid; echo rules; exec sleep 600"))
    run(lambda warm_up: warm_up.wait(JOBS[0]))
    wait_for_end_of(int((tmp_path / "pid").read_text(encoding="utf-8")))
    assert loaded == [JOBS[0]]


@pytest.mark.slow
def test_the_other_process_ends_with_its_parent() -> None:
    command = [sys.executable, "-m", "ninetka_web.thinking.warm"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b"ninetka\tnone\n")  # there is no such job, so nothing is done
        process.stdin.flush()
        assert process.stdout.readline() == b"ninetka\tnone\n"
        process.stdin.close()
        assert process.wait(60) == 1


@posix
def test_who_waits_comes_first_also_with_what_nobody_thought_of(
    loaded: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = f"read job; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; echo done; exec cat"
    monkeypatch.setattr(sys, "executable", python(tmp_path, blocked))
    wanted = Job("go:size=5", RULES)
    monkeypatch.setattr(warm, "_mark", lambda job: tmp_path / f"{job.kind} {job.what}")

    async def check(warm_up: WarmUp) -> None:
        while JOBS[0] in warm_up._waiting:
            await asyncio.sleep(0.01)
        assert warm_up.is_compiling(wanted)
        waiting = asyncio.create_task(warm_up.wait(wanted))
        await asyncio.sleep(0)  # let the task make its request
        (tmp_path / "go").touch()
        await waiting
        assert warm_up.is_ready(wanted)
        await all_ready(warm_up)

    run(check)
    assert loaded == [JOBS[0], wanted, JOBS[1]]


@posix
def test_no_other_process_compiles_what_could_not_be_kept_or_is_there(
    loaded: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", python(tmp_path, f"touch {tmp_path}/begun"))
    monkeypatch.setattr(warm, "_mark", lambda job: None)
    assert len(run(all_ready)) >= len(JOBS)
    for job in JOBS:
        (tmp_path / job.what).touch()
    monkeypatch.setattr(warm, "_mark", lambda job: tmp_path / job.what)
    assert run(all_ready) == []
    assert loaded == 2 * JOBS
    assert not (tmp_path / "begun").exists()


@posix
def test_a_job_that_fails_keeps_nobody_waiting(
    loaded: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(job: Job) -> None:
        raise OSError("no such network")

    monkeypatch.setattr(warm, "warm", fail)
    monkeypatch.setattr(sys, "executable", python(tmp_path, "exit 1"))
    run(all_ready)
    assert "rules could not be made ready" in caplog.text
    assert "no such network" in caplog.text


# A hub before its rules are compiled


def heard(guest: Guest) -> list[dict[str, Any]]:
    return [json.loads(text) for text in guest._waiting]


@posix
def test_what_is_said_too_early_is_answered_later(
    loaded: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ninetka_web.server.hub.MAX_EARLY", 5)
    blocked = f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; exit 1"
    monkeypatch.setattr(sys, "executable", python(tmp_path, blocked))
    ann, bob, eve = Guest(), Guest(), Guest()

    async def check(warm_up: WarmUp) -> None:
        store = Store(tmp_path / "table.sqlite3")
        store.save(create_table(Create(type="create", seats=["me", "me"]), "nobody"))
        hub = Hub(store, warm_up)
        for guest in (ann, bob):
            hub.receive(guest, '{"type": "hello", "id": 1}')
        hub.receive(ann, '{"type": "create", "id": 2, "seats": ["me", "me"]}')
        assert heard(ann) == 2 * [{"type": "compiling", "what": "the rules, for the stored tables"}]
        hub.leave(bob)
        for _ in range(3):
            hub.receive(eve, "{}")
        *early, late = heard(eve)
        assert [told["type"] for told in early] == ["compiling"] * 2
        assert "the server is starting" in late["reason"]
        (tmp_path / "go").touch()
        await hub.open()
        assert len(hub.live.tables) == 2
        hub.close()
        store.close()

    run(check)
    assert [message["type"] for message in heard(ann)[2:]] == ["welcome", "done", "done"]
    assert [message["type"] for message in heard(bob)] == ["compiling"]


@posix
def test_a_table_that_cannot_be_removed_stays(
    loaded: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", python(tmp_path, "exit 1"))
    ann = Guest()

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
        assert (list(hub.live.tables), ann.table) == ([table], table)
        hub.receive(ann, json.dumps({"type": "discard", "table": table, "id": 8}))
        assert (hub.live.tables, ann.table) == ({}, "")
        hub.close()
        store.close()

    run(check)
    *_, refused, done = heard(ann)
    assert (refused["type"], refused["id"], done["type"]) == ("refused", 7, "done")
    assert "disk is full" in refused["reason"]
