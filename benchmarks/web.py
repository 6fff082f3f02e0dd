"""Benchmark the web app: first start, time until a move is shown, load, hostile messages, a killed server, page size.

The server and its clients run on the same machine. Clicks are measured in headless Chromium if it is installed.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import shutil
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Self

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from benchmarks.measure import Row, is_installed, write_rows

TABLES, SEARCH_TABLES, MOVES_PER_TABLE, MOVE_PERIOD_S = 200, 20, 15, 1.0
IDLE_SOCKETS, SLOW_SOCKETS, FLOOD_SECONDS = 500, 500, 5.0
HOSTILE_MESSAGES, STRANGERS = 10_000, 50
KILLED_GAMES = 50
GAMES = ("ninetka", "go", "kropki")
CLICKS = 200


class Server:
    """`ninetka play` in its own process."""

    def __init__(self, data: Path, cache: Path | None = None) -> None:
        """Start the server and wait until it listens.

        Args:
            data: path of the database.
            cache: folder of the compile cache; the default one if None.
        """
        play = [sys.executable, "-m", "ninetka_train.cli", "play", "--no-browser"]
        env = os.environ | ({"NUMBA_CACHE_DIR": str(cache)} if cache else {})
        command = [*play, "--port", "0", "--data", str(data)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
        assert self.process.stdout is not None
        match = re.search(r"http://127\.0\.0\.1:(\d+)/", self.process.stdout.readline())
        assert match is not None, "the server did not start"
        self.url, self.port = match[0], int(match[1])

    def memory(self) -> float:
        """Return the peak resident memory in MB; NaN if the system does not report it."""
        status = Path(f"/proc/{self.process.pid}/status")
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8")) if status.exists() else None
        return int(found[1]) / 1000 if found else float("nan")

    def wait_until_compiled(self) -> None:
        """Wait until the first start has compiled everything."""
        assert self.process.stdout is not None
        while not self.process.stdout.readline().startswith("all is compiled"):
            assert self.process.poll() is None, "the server ended"

    def kill(self) -> None:
        """Kill the server."""
        self.process.kill()
        self.process.wait()


class Client:
    """A scripted browser."""

    def __init__(self, socket: ClientConnection) -> None:
        """Use an open connection."""
        self.socket = socket
        self.state: dict[str, Any] = {}
        self.token = ""

    @classmethod
    async def open(cls, server: Server, token: str = "") -> Self:
        """Connect and send `hello`."""
        origin: Any = f"http://127.0.0.1:{server.port}"
        client = cls(await connect(f"ws://127.0.0.1:{server.port}/ws", origin=origin, open_timeout=60, max_queue=None))
        await client.send("hello", **({"token": token} if token else {}))
        client.token = (await client.receive("welcome"))["token"]
        return client

    async def send(self, message_type: str, **content: object) -> None:
        """Send a message."""
        await self.socket.send(json.dumps({"type": message_type, **content}))

    async def receive(self, *message_types: str) -> dict[str, Any]:
        """Return the next message of one of these types."""
        while True:
            message: dict[str, Any] = json.loads(await self.socket.recv())
            if message["type"] == "state":  # contains only the moves from index `from` on
                known = [] if "start" in message else self.state["moves"]
                message["moves"] = known[: message["from"]] + message["moves"]
                self.state = message
            if message["type"] in message_types:
                return message

    @property
    def legal_actions(self) -> list[int]:
        """The legal actions on the board; if there are none, the actions of the buttons."""
        on_board = [hit if isinstance(hit, int) else hit[1] for hit in self.state["clickable"]]
        return on_board or [button["action"] for button in self.state["buttons"]]

    async def play(self, rng: random.Random) -> float:
        """Play a random move; return the seconds until it is shown."""
        ply, start = len(self.state["moves"]), time.perf_counter()
        await self.send("play", ply=ply, action=rng.choice(self.legal_actions))
        while len(self.state["moves"]) == ply:
            if (await self.receive("state", "refused"))["type"] == "refused":
                raise AssertionError("a legal move was refused")
        return time.perf_counter() - start


async def first_board(folder: Path, game: str) -> Row:
    """Measure the time from a start with an empty cache until a board of a game is shown and a move is played."""
    begin = time.perf_counter()
    server = await asyncio.to_thread(Server, folder / f"{game}.sqlite3", folder / f"cache of {game}")
    client = await Client.open(server)
    await client.send("create", game=game, seats=["me", "me"])
    await client.receive("state")
    board = time.perf_counter() - begin
    await client.play(random.Random(0))
    note = f"the first move is shown after {time.perf_counter() - begin:.1f} s"
    await client.socket.close()
    server.kill()
    what = f"first start, nothing compiled: until the first board of {game}"
    return Row(what, "s", board, target=30, lower_is_better=True, note=note)


async def first_start(folder: Path) -> list[Row]:
    """Start with an empty cache; measure the longest wait for a file or a move until everything is compiled."""
    begin = time.perf_counter()
    server = await asyncio.to_thread(Server, folder / "first.sqlite3", folder / "cache")
    listening = time.perf_counter() - begin
    compiled = asyncio.create_task(asyncio.to_thread(server.wait_until_compiled))
    waits: list[float] = []

    async def load() -> None:
        while not compiled.done():
            asked = time.perf_counter()
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET /static/main.js HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert b"200 OK" in await reader.read()
            writer.close()
            waits.append(time.perf_counter() - asked)
            await asyncio.sleep(0.02)

    loading = asyncio.create_task(load())
    client, rng = await Client.open(server), random.Random(0)
    await client.send("create", seats=["me", "me"])
    await client.receive("state")
    await client.play(random.Random(0))  # waits until the rest of the rules is compiled
    while not compiled.done():
        waits.append(await client.play(rng))
        await asyncio.sleep(0.02)
        if not client.legal_actions:
            await client.send("create", seats=["me", "me"])
            await client.receive("state")
    await asyncio.gather(compiled, loading)
    seconds = time.perf_counter() - begin
    await client.socket.close()
    server.kill()
    note = f"{len(waits)} requests and moves in the {seconds:.0f} s until all was compiled"
    return [
        Row("first start, nothing compiled: until it listens", "s", listening, target=5, lower_is_better=True),
        Row("first start: longest wait while all compiles", "ms", 1000 * max(waits), target=200, lower_is_better=True,
            note=note),
    ]  # fmt: skip


def p50(seconds: list[float]) -> float:
    """Return the median in milliseconds."""
    return 1000 * sorted(seconds)[len(seconds) // 2]


def p99(seconds: list[float]) -> float:
    """Return the 99th percentile in milliseconds."""
    return 1000 * sorted(seconds)[int(0.99 * (len(seconds) - 1))]


async def many_tables(server: Server) -> list[Row]:
    """Measure moves at 200 tables of all games, with one move per second at each table.

    At 20 tables a scripted user plays against MCTS; at the other tables it plays both seats.
    """
    clients = []
    for number in range(TABLES):
        client = await Client.open(server)
        seats = ["me", "mcts" if number < SEARCH_TABLES else "me"]
        await client.send("create", game=GAMES[number % len(GAMES)], seats=seats)
        await client.receive("state")
        await client.send("pace", delay_ms=0, paused=False)
        clients.append(client)

    async def play(number: int, client: Client) -> list[float]:
        rng, took = random.Random(number), []
        await asyncio.sleep(MOVE_PERIOD_S * number / TABLES)
        for _ in range(MOVES_PER_TABLE):
            begin = time.perf_counter()
            while client.state["to_move"] not in client.state["you"]:  # wait for the search
                await client.receive("state")
            took.append(await client.play(rng))
            await asyncio.sleep(MOVE_PERIOD_S - (time.perf_counter() - begin))
        own = sum(move["seat"] in client.state["you"] for move in client.state["moves"])
        assert own == MOVES_PER_TABLE, "a move was lost"
        return took

    results = await asyncio.gather(*(play(number, client) for number, client in enumerate(clients)))
    for client in clients:
        await client.socket.close()
    took = [seconds for result in results for seconds in result]
    what = (
        f"move shown, p99, {TABLES} tables of all games at once, a move a second each, {SEARCH_TABLES} of them thinking"
    )
    memory = f"memory of the server with {TABLES} tables, at its peak"
    note = f"{len(took)} moves, none lost; median {p50(took):.1f} ms"
    return [
        Row(what, "ms", p99(took), target=80, lower_is_better=True, note=note),
        Row(memory, "MB", server.memory(), target=1000, lower_is_better=True, note="torch and compiled rules included"),
    ]


async def time_bystander_moves(server: Server, number: int) -> list[float]:
    """Connect as a new user, create tables and play `number` moves; return the seconds until each move was shown."""
    client, rng = await Client.open(server), random.Random(0)
    took: list[float] = []
    while len(took) < number:
        await client.send("create", seats=["me", "me"])
        await client.receive("state")
        while client.legal_actions and len(took) < number:
            took.append(await client.play(rng))
            await asyncio.sleep(0.02)
    await client.socket.close()
    return took


async def silent_sockets(server: Server) -> list[Row]:
    """Measure moves while 500 clients are idle after `hello` and 500 HTTP requests send one byte every 0.5 s."""
    begin = time.perf_counter()
    idle = [await Client.open(server) for _ in range(IDLE_SOCKETS)]
    slow = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(SLOW_SOCKETS)]

    async def dribble() -> None:
        for letter in b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + 1000 * b"x":
            for _, writer in slow:
                writer.write(bytes([letter]))
            await asyncio.sleep(0.5)

    dribbling = asyncio.create_task(dribble())
    took = await time_bystander_moves(server, 100)
    while (still_open := sum(not reader.at_eof() for reader, _ in slow)) and time.perf_counter() - begin < 60:
        await asyncio.sleep(0.5)
    seconds = time.perf_counter() - begin
    dribbling.cancel()
    for client in idle:
        await client.socket.close()
    for _, writer in slow:
        writer.close()
    note = (
        f"median {p50(took):.1f} ms; {SLOW_SOCKETS - still_open} of the slow ones were cut off within {seconds:.0f} s"
    )
    what = f"move shown to a newcomer, p99, with {IDLE_SOCKETS} idle and {SLOW_SOCKETS} slow sockets"
    return [Row(what, "ms", p99(took), target=80, lower_is_better=True, note=note)]


async def flood(server: Server) -> list[Row]:
    """Measure moves while one client sends expensive messages as fast as it can and reads nothing."""
    origin: Any = f"http://127.0.0.1:{server.port}"
    sgf = (
        "(;GM[1]SZ[9]" + "".join(f";{'BW'[n % 2]}[{'abcdefghi'[n % 9]}{'abcdefghi'[n // 9]}]" for n in range(60)) + ")"
    )
    texts = [json.dumps({"type": "hello"})]
    for kind, content in (
        ("create", {"game": "kropki", "seats": ["me", "me"], "options": {"width": 39, "height": 32}}),
        ("upload", {"text": sgf}), ("play", {"ply": 0, "action": 5}), ("undo", {}), ("chat", {"text": "x" * 200}),
        ("analyse", {"ply": 0, "engine": "mcts"}), ("position", {"ply": 0}), ("x" * 60_000, {}),
    ):  # fmt: skip
        texts.append(json.dumps({"type": kind, **content}))
    sent = 0

    async def attack() -> None:
        nonlocal sent
        async with AsyncExitStack() as stack:
            url = f"ws://127.0.0.1:{server.port}/ws"
            socket = await stack.enter_async_context(connect(url, origin=origin, max_queue=1, close_timeout=1))
            with suppress(ConnectionClosed):
                while True:
                    await socket.send(texts[sent % len(texts) if sent else 0])
                    sent += 1

    attacking = asyncio.create_task(attack())
    begin = time.perf_counter()
    took: list[float] = []
    while time.perf_counter() - begin < FLOOD_SECONDS:
        took += await time_bystander_moves(server, 50)
    attacking.cancel()
    note = f"median {p50(took):.1f} ms; {sent} messages were sent"
    return [Row("move shown, p99, while another browser floods the server", "ms", p99(took), target=100,
                lower_is_better=True, note=note)]  # fmt: skip


def hostile_text(rng: random.Random, real: dict[str, Any]) -> str:
    """Return noise, broken JSON, or a valid message that the sender is not allowed to send."""
    noise = "".join(rng.choices(string.printable, k=rng.randrange(200)))
    deep = "[" * rng.randrange(1, 4000)
    wild: list[Any] = [None, -1, 2**70, 1.5, "", noise, [], {}, [noise] * 5, True, "../../etc/passwd", "\x00"]
    kinds = ["play", "sit", "undo", "answer", "resign", "rematch", "pace", "upload", "create", "position"]
    fields = ["ply", "action", "seat", "name", "accept", "delay_ms", "paused", "text", "seats", "token", "engine", "x"]
    drawn = {field: rng.choice(wild) for field in rng.sample(fields, rng.randrange(1, 5))}
    broken = json.dumps({"type": rng.choice(kinds), **drawn, "id": rng.choice([1, -1, "x", 2**40])})
    stolen = json.dumps({"type": "play", "ply": len(real["moves"]), "action": rng.randrange(121)})
    others = [json.dumps({"type": kind}) for kind in ("resign", "undo", "rematch", "record")]
    forged = json.dumps({"type": "hello", "token": noise})
    return rng.choice([noise, deep, forged, broken, broken, broken[: rng.randrange(len(broken))], stolen, *others])


async def hostile_messages(server: Server) -> list[Row]:
    """Send 10,000 messages from users without a seat at a table; all must be refused, and the table must not change."""
    rng = random.Random(9)
    creator = await Client.open(server)
    await creator.send("create", seats=["me", "maxn", "open"])
    await creator.receive("state")
    await creator.play(rng)
    await creator.send("pace", delay_ms=0, paused=True)
    while not creator.state["paused"]:
        await creator.receive("state")

    async def attack(number: int) -> int:
        stranger, noise = await Client.open(server), random.Random(number)
        await stranger.send("join", table=creator.state["table"])
        real = await stranger.receive("state")
        refused = 0
        for _ in range(HOSTILE_MESSAGES // STRANGERS):
            await stranger.socket.send(hostile_text(noise, real))
        while refused < HOSTILE_MESSAGES // STRANGERS:
            refused += bool((await stranger.receive("refused"))["reason"])
        await stranger.socket.close()
        return refused

    async def whole_state() -> dict[str, Any]:
        await creator.send("join", table=creator.state["table"])  # without `join` the server sends only changes
        return await creator.receive("state")

    before = await whole_state()
    begin = time.perf_counter()
    refused = sum(await asyncio.gather(*(attack(number) for number in range(STRANGERS))))
    seconds = time.perf_counter() - begin
    after = await whole_state()
    changed = [key for key in before | after if key != "revision" and before.get(key) != after.get(key)]
    assert not changed, f"hostile messages changed {changed} of the table"
    note = f"of {HOSTILE_MESSAGES} from {STRANGERS} strangers, in {seconds:.1f} s; nothing changed"
    return [Row("hostile messages refused with a reason", "messages", refused, target=HOSTILE_MESSAGES, note=note)]


async def kill_and_restart(data: Path, cache: Path) -> list[Row]:
    """Kill the server during 50 games and restart it; the games must contain every move that was shown."""
    server = Server(data, cache)
    clients = [await Client.open(server) for _ in range(KILLED_GAMES)]

    async def play(number: int, client: Client) -> None:
        rng = random.Random(number)
        try:
            await client.send("create", seats=["me"] * (2 + number % 3))
            await client.receive("state")
            while client.legal_actions:
                await client.play(rng)
                await asyncio.sleep(0.02 * rng.random())
        except ConnectionClosed:
            return

    games = [asyncio.create_task(play(number, client)) for number, client in enumerate(clients)]
    await asyncio.sleep(1.5)
    server.kill()
    await asyncio.gather(*games)
    begin = time.perf_counter()
    server = Server(data, cache)
    seconds = time.perf_counter() - begin
    resumed = 0
    for client in clients:
        again = await Client.open(server, client.token)
        await again.send("join", table=client.state["table"])
        moves = (await again.receive("state"))["moves"]
        shown = client.state["moves"]
        resumed += moves[: len(shown)] == shown and len(moves) <= len(shown) + 1  # the last answer may be lost
        if again.legal_actions:
            await again.play(random.Random(0))
        await again.socket.close()
    server.kill()
    plies = sum(len(client.state["moves"]) for client in clients)
    note = f"{plies} moves in all; the server was back after {seconds:.1f} s"
    return [Row("games that continue after kill -9", "games", resumed, target=KILLED_GAMES, note=note)]


def chromium() -> str | None:
    """Return the path of Chromium, or None if it is not installed."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("NINETKA_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


TIMING_SCRIPT = """
window.clicks = [];
addEventListener("click", (event) => { window.clicked = event.timeStamp; }, true);
new MutationObserver(() => {
  if (!window.board && document.querySelector(".board .hit")) window.board = performance.now();
  const count = document.querySelector(".count")?.textContent;
  if (count !== window.count && window.clicked) {
    window.clicks.push(performance.now() - window.clicked);
    window.clicked = 0;
  }
  window.count = count;
}).observe(document, { childList: true, subtree: true, characterData: true });
"""


def browser_rows(server: Server, path: str) -> Iterator[Row]:
    """Measure clicks and page loads in Chromium, in games without agents."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page()
        page.add_init_script(TIMING_SCRIPT)
        clicks: list[float] = []
        while len(clicks) < CLICKS:
            page.goto(server.url)
            page.select_option("#seat-1", "me")
            page.click("#start")
            page.wait_for_selector(".board .hit")
            while page.locator(".hit").count() and len(clicks) + page.evaluate("clicks.length") < CLICKS:
                known = page.evaluate("clicks.length")
                box = page.locator(".hit").first.bounding_box()
                assert box is not None
                page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
                page.wait_for_function("n => clicks.length > n", arg=known)
            clicks += [took / 1000 for took in page.evaluate("clicks")]
        yield Row("click to changed board, p99, in Chromium, no agent searching", "ms", p99(clicks), target=40,
                  lower_is_better=True, note=f"{len(clicks)} clicks, median {p50(clicks):.1f} ms")  # fmt: skip
        page.goto(server.url)
        page.click("#start")
        page.wait_for_selector(".board .hit")
        page.context.new_cdp_session(page).send("Network.setCacheDisabled", {"cacheDisabled": True})
        loads = []
        for _ in range(10):
            page.reload()
            page.wait_for_function("() => window.board")
            loads.append(page.evaluate("window.board") / 1000)
        yield Row("first board on a cold load", "s", max(loads), target=1, lower_is_better=True, note="slowest of ten")
        browser.close()


def page_weight() -> Row:
    """Return the total size of the page's files: all shared files and the largest file of a game."""
    static = Path(__file__).resolve().parent.parent / "ninetka_web" / "static"
    shared = sum(part.stat().st_size for part in static.iterdir() if part.is_file())
    weight = (shared + max(part.stat().st_size for part in static.joinpath("games").iterdir())) / 1000
    return Row(
        "weight of the page, all its parts for one game",
        "kB",
        weight,
        target=120,
        lower_is_better=True,
        note="uncompressed",
    )


def measure() -> Iterator[Row]:
    """Run all measurements."""
    with tempfile.TemporaryDirectory() as folder:
        yield from asyncio.run(first_start(Path(folder)))
        yield from (asyncio.run(first_board(Path(folder), game)) for game in GAMES)
        cache = Path(folder) / "cache"  # filled by the first start
        server = Server(Path(folder) / "table.sqlite3", cache)
        try:
            time.sleep(8)  # until every agent is loaded and compiled
            path = chromium()
            if path and is_installed("playwright"):
                yield from browser_rows(server, path)
            yield from asyncio.run(many_tables(server))
            yield from asyncio.run(silent_sockets(server))
            yield from asyncio.run(flood(server))
            yield from asyncio.run(hostile_messages(server))
        finally:
            server.kill()
        yield from asyncio.run(kill_and_restart(Path(folder) / "killed.sqlite3", cache))
    yield page_weight()


if __name__ == "__main__":
    write_rows(measure())
