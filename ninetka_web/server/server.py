"""The web server: serves the page and its files, and one WebSocket per browser. `serve` starts it.

Pages of other sites must not reach a server that runs on a user's own computer. Therefore a WebSocket is opened only
for a page of this server (`Origin` names the host of the request), and requests are answered only under one of the
server's own host names, which prevents DNS rebinding.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import ipaddress
import re
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterable
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI, Request, Response, WebSocket, WebSocketDisconnect
from starlette.datastructures import Headers

from ninetka_web.server import quotas
from ninetka_web.server.connections import PATIENCE, Guest, Http, Line
from ninetka_web.server.hub import Hub
from ninetka_web.server.protocol import MAX_MESSAGE
from ninetka_web.tables.store import Store
from ninetka_web.thinking.warm import WarmUp, usual_jobs

MAX_GUESTS, MAX_FILES = 4_000, 8_192
RATE, BURST = 50.0, 100.0
"""Messages that a browser may send per second in the long run, and at once; further messages are delayed."""
FREE, SHARE = 0.005, 0.1
"""Seconds per message that are not limited, and the share of the server's time that a browser gets beyond them."""

MEDIA_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
"""Media types of the page's files. `mimetypes` would read the Windows registry, which other programs change."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def make_app(
    store: Store, host: str = "127.0.0.1", *, rate: float = RATE, tell: Callable[[str], None] = lambda text: None
) -> FastAPI:
    """Return the application.

    Args:
        store: stores the tables; closed with the application.
        host: the address that the server listens on, which is one of its own names.
        rate: messages that a browser may send per second.
        tell: called on a thread with progress messages about compilation.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        warm_up = WarmUp(usual_jobs(), tell)
        app.state.hub = Hub(store, warm_up)
        app.state.guests = 0
        opening = asyncio.create_task(app.state.hub.open())
        yield
        opening.cancel()
        warm_up.close()
        app.state.hub.close()
        store.close()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    names = own_names(host)

    @app.middleware("http")
    async def guard(request: Request, call_next: Callable) -> Response:  # type: ignore[type-arg]
        known = is_own_host(request.headers, names)
        response = await call_next(request) if known else Response("unknown host", 421)
        response.headers.update(HEADERS)
        return response

    _add_page(app)

    @app.websocket("/ws")
    async def talk(socket: WebSocket) -> None:
        if not is_own_host(socket.headers, names) or not is_own_page(socket.headers):
            await socket.close(1008, "only pages of this server may connect")
            return
        await socket.accept()
        if app.state.guests >= MAX_GUESTS:
            await socket.close(1013, "this server is full")
            return
        app.state.guests += 1
        try:
            await _serve(socket, app.state.hub, rate, quotas.network_of(socket.client.host if socket.client else ""))
        finally:
            app.state.guests -= 1

    return app


def _add_page(app: FastAPI) -> None:
    """Serve the page and its files. All are read once, so no path of a request reaches the file system."""
    folder = files("ninetka_web").joinpath("static")
    parts = {part.name: part.read_bytes() for part in folder.iterdir() if part.is_file()}
    parts |= {f"games/{part.name}": part.read_bytes() for part in folder.joinpath("games").iterdir()}
    page = parts.pop("index.html")
    packed = {body: gzip.compress(body, mtime=0) for body in (page, *parts.values())}

    def answer(request: Request, body: bytes, media_type: str) -> Response:
        headers = {"Vary": "Accept-Encoding"}
        if _takes_gzip(request.headers):
            body, headers["Content-Encoding"] = packed[body], "gzip"
        return Response(body, media_type=media_type, headers=headers)

    @app.get("/")
    @app.get("/t/{table}")
    def index(request: Request) -> Response:
        return answer(request, page, "text/html")

    @app.get("/static/{name:path}")
    def part(request: Request, name: str) -> Response:
        if name not in parts:
            return Response("not found", 404)
        return answer(request, parts[name], MEDIA_TYPES[Path(name).suffix])


def _takes_gzip(headers: Headers) -> bool:
    """Return whether a browser accepts gzip: `Accept-Encoding` names it, with a weight above 0."""
    for coding in headers.get("accept-encoding", "").lower().split(","):
        name, _, weight = coding.replace(" ", "").partition(";")
        if name == "gzip":
            return not re.fullmatch(r"q=0(\.0*)?", weight)
    return False


async def _serve(socket: WebSocket, hub: Hub, rate: float, network: str) -> None:
    """Receive and handle messages until one side disconnects."""
    guest = Guest(network)
    speaker = asyncio.create_task(_speak(socket, guest, hub))
    allowed, since = BURST, time.perf_counter()
    try:
        while True:
            is_known = guest.person or guest.is_early  # an unknown client must send `hello` in time
            async with asyncio.timeout(None if is_known else PATIENCE):
                text = await socket.receive_text()
            now = time.perf_counter()
            allowed, since = min(BURST, allowed + (now - since) * rate) - 1, now
            if allowed < 0:
                await asyncio.sleep(-allowed / rate)
            begin = time.perf_counter()
            hub.receive(guest, text)
            took = time.perf_counter() - begin
            if took > FREE:
                await asyncio.sleep(took / SHARE - took)
    except (WebSocketDisconnect, KeyError, RuntimeError, TimeoutError):
        pass  # KeyError: a binary message; RuntimeError: the client has just disconnected
    finally:
        speaker.cancel()
        hub.leave(guest)
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # it may already be closed
            await socket.close()


async def _speak(socket: WebSocket, guest: Guest, hub: Hub) -> None:
    """Send the queued messages of a connection; close it if the client reads too slowly."""
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        while not guest.gone:
            for message in await guest.next_messages(hub.live.tables, hub.live.state_for):
                await socket.send_text(message)
        await socket.close(1013, "the client reads too slowly")


# Which pages may connect to the server


def own_names(host: str) -> set[str]:
    """Return the host names that the server answers to, in addition to IP addresses."""
    return {"localhost", host.lower(), socket.gethostname().lower(), f"{socket.gethostname().lower()}.local"}


def is_own_host(headers: Headers, names: Iterable[str]) -> bool:
    """Return whether the host of a request is one of `names` or an IP address, which DNS cannot redirect."""
    try:
        name = (urlsplit(f"//{headers.get('host', '')}").hostname or "").rstrip(".")
    except ValueError:
        return False
    return name in names or _is_address(name)


def is_own_page(headers: Headers) -> bool:
    """Return whether a page of this server opens a WebSocket. Browsers always send the page's origin."""
    try:
        origin = urlsplit(headers.get("origin", ""))
    except ValueError:
        return False
    return origin.scheme in ("http", "https") and bool(origin.netloc) and origin.netloc == headers.get("host")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached only from the same computer."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def serve(host: str, port: int, path: Path, *, show: bool) -> None:
    """Run the server until it is interrupted.

    Args:
        host: the address to listen on.
        port: the port; 0 picks a free one.
        path: the file of tables and statistics.
        show: whether to open the page in a browser.

    Raises:
        OSError: if the address is taken or the file cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        _refuse_taken_ports(listener)
        listener.bind((host, port))
        store = Store(path)
        _allow_files(MAX_FILES)
        listener.listen(1024)
        url = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/"
        print(f"9tka, Go and Kropki: {url} (press Ctrl+C to stop)", flush=True)
        config = uvicorn.Config(
            make_app(store, host, tell=_tell),
            http=Http,
            ws=Line,
            ws_max_size=MAX_MESSAGE,
            ws_per_message_deflate=False,
            log_level="warning",
            timeout_graceful_shutdown=2,
        )
        sys.setswitchinterval(0.001)  # so the event loop gets the GIL soon while agents think
        if show:
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        uvicorn.Server(config).run([listener])


def _refuse_taken_ports(listener: socket.socket) -> None:
    """Allow binding to a recently used port, but not to a port on which another program listens."""
    if sys.platform == "win32":  # SO_REUSEADDR would let both programs listen there
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
    else:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def _allow_files(number: int) -> None:
    """Raise this process's limit of open files, which include sockets, to `number` if the system allows it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = number if hard == resource.RLIM_INFINITY else min(number, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _tell(text: str) -> None:
    print(text, flush=True)
