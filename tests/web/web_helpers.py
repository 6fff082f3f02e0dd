"""Helpers of the web app's tests: a server in a separate process and a WebSocket client."""

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

from interrupt import sigint_options
from websockets.sync.client import ClientConnection, connect

TIMEOUT_S = 60
"""Seconds before a silent server counts as failed. Its code is compiled earlier; see `COMPILE_PROGRAM`."""
SEEDED_PROGRAM = """
import runpy, sys
import numpy as np

draws, sequences = np.random.default_rng, np.random.SeedSequence
np.random.default_rng = lambda seed=None: draws(0 if seed is None else seed)
np.random.SeedSequence = lambda entropy=0, **options: sequences(entropy, **options)
sys.argv[0] = "ninetka"
runpy.run_module("ninetka_train.cli", run_name="__main__")
"""
"""A program that runs `ninetka` with fixed random numbers: generators without a seed get the seed 0."""


class Server:
    """`ninetka play` in a separate process."""

    def __init__(self, data: Path, port: int = 0, cache: Path | None = None) -> None:
        """Start the server. With a separate Numba cache it has to compile, and its stderr is captured."""
        play = [sys.executable, "-c", SEEDED_PROGRAM, "play", "--no-browser"]
        command = [*play, "--data", str(data), "--port", str(port)]
        options: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True} | sigint_options()
        if cache:
            options |= {"env": os.environ | {"NUMBA_CACHE_DIR": str(cache)}, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command, **options)
        assert self.process.stdout
        line = self.process.stdout.readline()
        match = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        assert match, line
        self.url, self.port = match[0], int(match[1])

    def kill(self) -> None:
        """Kill the server without a clean shutdown."""
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


COMPILE_PROGRAM = """
import sqlite3
from pathlib import Path
import ninetka_web
from ninetka_env.core.cache import cache_folders
from ninetka_web.thinking.warm import COUNTING, FIRST_BOARD, RULES, Job, compile_or_load, default_jobs, is_cached

folder = cache_folders(Path(ninetka_web.__file__).absolute().parent).writable
if folder:  # other test processes wait here until the code is compiled
    sqlite3.connect(folder / "tests.lock", timeout=900, isolation_level=None).execute("BEGIN EXCLUSIVE")
small = "go:size=5"
for job in [*default_jobs(), *(Job(small, component) for component in (FIRST_BOARD, RULES, "random", COUNTING))]:
    if folder and not is_cached(job):
        compile_or_load(job)
"""
"""A program that compiles the code that the tests' tables need, once for all test processes."""


@contextmanager
def running_server(data: Path) -> Iterator[Server]:
    subprocess.run([sys.executable, "-c", COMPILE_PROGRAM], check=True, timeout=900)
    server = Server(data)
    try:
        yield server
    finally:
        server.stop()


def action_of(hit: Any) -> int:
    """Return the action of a click target."""
    return int(hit if isinstance(hit, int) else hit[1])


class Client:
    """A WebSocket client of the server; all received messages are in `received`."""

    def __init__(self, server: Server, token: str | None = None) -> None:
        origin = f"http://127.0.0.1:{server.port}"
        self._connect = connect(f"ws://127.0.0.1:{server.port}/ws", origin=origin, open_timeout=TIMEOUT_S)
        self.received: list[dict[str, Any]] = []
        self.state: dict[str, Any] = {}
        self.number = 0
        self.token = token

    def __enter__(self) -> Self:
        self.socket: ClientConnection = self._connect.__enter__()
        self.request("hello", **({"token": self.token} if self.token else {}))
        self.token = next(m for m in self.received if m["type"] == "welcome")["token"]
        return self

    def __exit__(self, *exception: Any) -> None:
        self._connect.__exit__(*exception)

    def receive(self, timeout: float = TIMEOUT_S) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.socket.recv(timeout=timeout))
        self.received.append(message)
        if message["type"] == "state":  # it contains the moves from number `from` on
            known = [] if "start" in message else self.state["moves"]
            message["moves"] = known[: message["from"]] + message["moves"]
            self.state = message
        return message

    def wait_for(self, message_type: str, **having: object) -> dict[str, Any]:
        """Return the next message of a type that has these values."""
        while True:
            message = self.receive()
            if message["type"] == message_type and all(message[key] == value for key, value in having.items()):
                return message

    def receive_all(self, silence: float) -> list[dict[str, Any]]:
        """Return the messages that arrive until there is none for `silence` seconds."""
        received = []
        with suppress(TimeoutError):
            while True:
                received.append(self.receive(silence))
        return received

    def wait_until_closed(self) -> None:
        """Receive until the server closes the connection, which raises `ConnectionClosed`."""
        while True:
            self.receive()

    def send(self, message_type: str, **content: object) -> int:
        self.number += 1
        self.socket.send(json.dumps({"type": message_type, "id": self.number, **content}))
        return self.number

    def request(self, message_type: str, **content: object) -> str:
        """Send a message; return the reason if it was refused, otherwise an empty string."""
        number = self.send(message_type, **content)
        while True:
            message = self.receive()
            if message["type"] in ("done", "refused") and message["id"] == number:
                return str(message.get("reason", ""))

    def create(self, *seats: str, game: str = "ninetka", name: str = "", **options: object) -> dict[str, Any]:
        assert self.request("create", seats=list(seats), game=game, name=name, options=options) == ""
        return self.wait_for("state")

    @property
    def legal_actions(self) -> list[int]:
        """The legal actions: those of the board, then those of the buttons."""
        state = self.state
        return [action_of(hit) for hit in state["clickable"]] + [button["action"] for button in state["buttons"]]

    def play(self, action: int | None = None) -> None:
        """Play an action, by default the first legal one, and wait for the state that contains it."""
        ply = len(self.state["moves"])
        assert self.request("play", ply=ply, action=self.legal_actions[0] if action is None else action) == ""
        while len(self.state["moves"]) <= ply:
            self.receive()
