"""What the tests of the table share: a server in a process of its own, and someone who talks to it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from interrupt import started_anew
from websockets.sync.client import ClientConnection, connect

WAIT = 60
"""Seconds before a silent server counts as broken; what it needs is compiled before: see `COMPILE`."""
SEEDED = """
import runpy, sys
import numpy as np

draws, sequences = np.random.default_rng, np.random.SeedSequence
np.random.default_rng = lambda seed=None: draws(0 if seed is None else seed)
np.random.SeedSequence = lambda entropy=0, **more: sequences(entropy, **more)
sys.argv[0] = "ninetka"
runpy.run_module("ninetka_train.cli", run_name="__main__")
"""
"""`ninetka`, where chance falls the same each time: what was not given a seed has one."""


class Server:
    """`ninetka play` in a process."""

    def __init__(self, data: Path, port: int = 0, cache: Path | None = None) -> None:
        """Start it; with a `cache` of its own it compiles, and what it says on stderr is kept."""
        play = [sys.executable, "-c", SEEDED, "play", "--no-browser"]
        command = [*play, "--data", str(data), "--port", str(port)]
        options: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True} | started_anew()
        if cache:
            options |= {"env": os.environ | {"NUMBA_CACHE_DIR": str(cache)}, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command, **options)
        assert self.process.stdout
        line = self.process.stdout.readline()
        match = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        assert match, line
        self.url, self.port = match[0], int(match[1])

    def kill(self) -> None:
        """Give the server no chance to say good-bye."""
        self.process.kill()
        self.process.wait()
        self._close()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        self._close()

    def _close(self) -> None:
        assert self.process.stdout
        self.process.stdout.close()


COMPILE = """
import sqlite3
from pathlib import Path
import ninetka_web
from ninetka_env.core.cache import cache_folder
from ninetka_web.thinking.warm import COUNTING, FIRST, RULES, Job, is_kept, usual_jobs, warm

folder = cache_folder(Path(ninetka_web.__file__).absolute().parent)
if folder:  # others who test wait here, and find it done
    sqlite3.connect(folder / "tests.lock", timeout=900, isolation_level=None).execute("BEGIN EXCLUSIVE")
small = "go:size=5"
for job in [*usual_jobs(), *(Job(small, what) for what in (FIRST, RULES, "random", COUNTING))]:
    if folder and not is_kept(job):
        warm(job)
"""
"""What tables need, once for all processes that test: no test of a browser waits for a compiler."""


@contextmanager
def running(data: Path) -> Iterator[Server]:
    subprocess.run([sys.executable, "-c", COMPILE], check=True, timeout=900)
    server = Server(data)
    try:
        yield server
    finally:
        server.stop()


def action_of(hit: Any) -> int:
    """Return the action of what can be clicked."""
    return int(hit if isinstance(hit, int) else hit[1])


class Client:
    """Someone with a browser: says something and hears the answer; everything else is kept in `heard`."""

    def __init__(self, server: Server, token: str | None = None) -> None:
        origin = f"http://127.0.0.1:{server.port}"
        self._line = connect(f"ws://127.0.0.1:{server.port}/ws", origin=origin, open_timeout=WAIT)
        self.heard: list[dict[str, Any]] = []
        self.state: dict[str, Any] = {}
        self.number = 0
        self.token = token

    def __enter__(self) -> Self:
        self.socket: ClientConnection = self._line.__enter__()
        self.ask("hello", **({"token": self.token} if self.token else {}))
        self.token = next(m for m in self.heard if m["type"] == "welcome")["token"]
        return self

    def __exit__(self, *exception: Any) -> None:
        self._line.__exit__(*exception)

    def hear(self, timeout: float = WAIT) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.socket.recv(timeout=timeout))
        self.heard.append(message)
        if message["type"] == "state":  # it holds the moves from number `from` on
            known = [] if "start" in message else self.state["moves"]
            message["moves"] = known[: message["from"]] + message["moves"]
            self.state = message
        return message

    def until(self, kind: str, **having: object) -> dict[str, Any]:
        """Return the next message of a kind, with these values."""
        while True:
            message = self.hear()
            if message["type"] == kind and all(message[key] == value for key, value in having.items()):
                return message

    def hear_all(self, silence: float) -> list[dict[str, Any]]:
        """Return what comes until it has been silent for so many seconds."""
        heard = []
        with suppress(TimeoutError):
            while True:
                heard.append(self.hear(silence))
        return heard

    def until_closed(self) -> None:
        """Listen until the server hangs up, which raises `ConnectionClosed`."""
        while True:
            self.hear()

    def say(self, kind: str, **content: object) -> int:
        self.number += 1
        self.socket.send(json.dumps({"type": kind, "id": self.number, **content}))
        return self.number

    def ask(self, kind: str, **content: object) -> str:
        """Say something and return the reason why it was refused, empty if it was done."""
        number = self.say(kind, **content)
        while True:
            message = self.hear()
            if message["type"] in ("done", "refused") and message["id"] == number:
                return str(message.get("reason", ""))

    def create(self, *seats: str, game: str = "ninetka", name: str = "", **options: object) -> dict[str, Any]:
        assert self.ask("create", seats=list(seats), game=game, name=name, options=options) == ""
        return self.until("state")

    @property
    def legal(self) -> list[int]:
        """What may be played: on the board, then beside it."""
        state = self.state
        return [action_of(hit) for hit in state["hits"]] + [button["action"] for button in state["buttons"]]

    def play(self, action: int | None = None) -> None:
        """Play an action, or the first legal one, and wait until it is shown."""
        ply = len(self.state["moves"])
        assert self.ask("play", ply=ply, action=self.legal[0] if action is None else action) == ""
        while len(self.state["moves"]) <= ply:
            self.hear()
