"""The web server: serves the page and its files, and one WebSocket per browser. `serve` starts it.

Pages of other sites must not reach a server that runs on a user's own computer. Therefore a WebSocket is opened only
for a page of this server (`Origin` names the host of the request), and requests are answered only under one of the
server's own host names, which prevents DNS rebinding.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
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
from ninetka_web.server.connections import TIMEOUT_S, Connection, HttpProtocol, WebSocketProtocol
from ninetka_web.server.hub import Hub
from ninetka_web.server.protocol import MAX_MESSAGE
from ninetka_web.tables.store import Store
from ninetka_web.thinking.warm import WarmUp, default_jobs

MAX_CONNECTIONS, MAX_OPEN_FILES = 4_000, 8_192
MESSAGES_PER_SECOND, MESSAGE_BURST = 50.0, 100.0
"""Messages that a browser may send per second in the long run, and at once; further messages are delayed."""
FREE_SECONDS, MAX_SERVER_SHARE = 0.005, 0.1
"""A message that takes longer than `FREE_SECONDS` to handle delays the browser's next message.

So slow messages of a browser get at most the share `MAX_SERVER_SHARE` of the server's time.
"""

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
    store: Store,
    host: str = "127.0.0.1",
    *,
    rate: float = MESSAGES_PER_SECOND,
    report: Callable[[str], None] = lambda text: None,
) -> FastAPI:
    """Return the FastAPI application.

    Args:
        store: stores the tables; closed with the application.
        host: the address that the server listens on. Browsers may use it as the name of the server.
        rate: messages that a browser may send per second.
        report: called on a thread with progress messages about compilation.
    """

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        warm_up = WarmUp(default_jobs(), report)
        app.state.hub = Hub(store, warm_up)
        app.state.connections = 0
        open_task = asyncio.create_task(app.state.hub.open())
        yield
        open_task.cancel()
        warm_up.close()
        app.state.hub.close()
        store.close()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    names = host_names(host)

    @app.middleware("http")
    async def check_host(request: Request, call_next: Callable) -> Response:  # type: ignore[type-arg]
        is_known = is_own_host(request.headers, names)
        response = await call_next(request) if is_known else Response("unknown host", 421)
        response.headers.update(HEADERS)
        return response

    _add_static_routes(app)

    @app.websocket("/ws")
    async def handle_socket(socket: WebSocket) -> None:
        if not is_own_host(socket.headers, names) or not is_own_origin(socket.headers):
            await socket.close(1008, "only pages of this server may connect")
            return
        await socket.accept()
        if app.state.connections >= MAX_CONNECTIONS:
            await socket.close(1013, "this server is full")
            return
        app.state.connections += 1
        try:
            await _serve(socket, app.state.hub, rate, quotas.network_of(socket.client.host if socket.client else ""))
        finally:
            app.state.connections -= 1

    return app


def _add_static_routes(app: FastAPI) -> None:
    """Serve the page and its files. All are read once, so no path of a request reaches the file system."""
    folder = files("ninetka_web").joinpath("static")
    parts = {part.name: part.read_bytes() for part in folder.iterdir() if part.is_file()}
    parts |= {f"games/{part.name}": part.read_bytes() for part in folder.joinpath("games").iterdir()}
    page = parts.pop("index.html")
    compressed = {body: gzip.compress(body, mtime=0) for body in (page, *parts.values())}

    def answer(request: Request, body: bytes, media_type: str) -> Response:
        headers = {"Vary": "Accept-Encoding"}
        if _accepts_gzip(request.headers):
            body, headers["Content-Encoding"] = compressed[body], "gzip"
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


def _accepts_gzip(headers: Headers) -> bool:
    """Return whether a browser accepts gzip: `Accept-Encoding` names it, with a weight above 0."""
    for coding in headers.get("accept-encoding", "").lower().split(","):
        name, _, weight = coding.replace(" ", "").partition(";")
        if name == "gzip":
            return not re.fullmatch(r"q=0(\.0*)?", weight)
    return False


async def _serve(socket: WebSocket, hub: Hub, rate: float, network: str) -> None:
    """Receive and handle messages until one side disconnects."""
    connection = Connection(network)
    sender = asyncio.create_task(_send_messages(socket, connection, hub))
    allowed, since = MESSAGE_BURST, time.perf_counter()
    try:
        while True:
            is_known = connection.user or connection.waits_for_start  # an unknown client must send `hello` in time
            async with asyncio.timeout(None if is_known else TIMEOUT_S):
                text = await socket.receive_text()
            now = time.perf_counter()
            allowed, since = min(MESSAGE_BURST, allowed + (now - since) * rate) - 1, now
            if allowed < 0:
                await asyncio.sleep(-allowed / rate)
            start = time.perf_counter()
            hub.receive(connection, text)
            seconds = time.perf_counter() - start
            if seconds > FREE_SECONDS:
                await asyncio.sleep(seconds / MAX_SERVER_SHARE - seconds)
    except (WebSocketDisconnect, KeyError, RuntimeError, TimeoutError):
        pass  # KeyError: a binary message; RuntimeError: the client has just disconnected
    finally:
        sender.cancel()
        hub.disconnect(connection)
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # it may already be closed
            await socket.close()


async def _send_messages(socket: WebSocket, connection: Connection, hub: Hub) -> None:
    """Send the queued messages of a connection; close it if the client reads too slowly."""
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        while not connection.is_closed:
            for message in await connection.next_messages(hub.live.tables, hub.live.state_for):
                await socket.send_text(message)
        await socket.close(1013, "the client reads too slowly")


# Which pages may connect to the server


def host_names(host: str) -> set[str]:
    """Return the host names that the server answers to, in addition to IP addresses."""
    return {"localhost", host.lower(), socket.gethostname().lower(), f"{socket.gethostname().lower()}.local"}


def is_own_host(headers: Headers, names: Iterable[str]) -> bool:
    """Return whether the host of a request is one of `names` or an IP address, which DNS cannot redirect."""
    try:
        name = (urlsplit(f"//{headers.get('host', '')}").hostname or "").rstrip(".")
    except ValueError:
        return False
    return name in names or _is_address(name)


def is_own_origin(headers: Headers) -> bool:
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


def serve(host: str, port: int, path: Path, *, open_browser: bool) -> None:
    """Run the server until it is interrupted.

    Args:
        host: the address to listen on.
        port: the port; 0 picks a free one.
        path: the file of tables and statistics.
        open_browser: whether to open the page in a browser.

    Raises:
        OSError: if the address is taken or the file cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        _set_exclusive_bind(listener)
        _bind(listener, host, port)
        store = Store(path)
        _raise_file_limit(MAX_OPEN_FILES)
        listener.listen(1024)
        url = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}/"
        print(f"9tka, Go and Kropki: {url} (press Ctrl+C to stop)", flush=True)
        config = uvicorn.Config(
            make_app(store, host, report=_print_now),
            http=HttpProtocol,
            ws=WebSocketProtocol,
            ws_max_size=MAX_MESSAGE,
            ws_per_message_deflate=False,
            log_level="warning",
            timeout_graceful_shutdown=2,
        )
        sys.setswitchinterval(0.001)  # so the event loop gets the GIL soon while agents think
        if open_browser:
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        uvicorn.Server(config).run([listener])


def _bind(listener: socket.socket, host: str, port: int) -> None:
    """Bind a socket to an address; an error says what to change."""
    try:
        listener.bind((host, port))
    except (OSError, UnicodeError) as error:
        number, reason = getattr(error, "errno", None), getattr(error, "strerror", None) or error
        advice = f"--host {host}: expected an address or a name of this computer, such as 127.0.0.1 or 0.0.0.0"
        if number == errno.EADDRINUSE:
            advice = "another program uses this port: choose another one with --port, or --port 0 for a free one"
        elif number == errno.EACCES:
            advice = "ports below 1024 need an administrator's rights: choose another one with --port"
        raise OSError(f"cannot listen on {host}, port {port} ({reason}): {advice}") from error


def _set_exclusive_bind(listener: socket.socket) -> None:
    """Allow binding to a recently used port, but not to a port on which another program listens."""
    if sys.platform == "win32":  # SO_REUSEADDR would let both programs listen there
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
    else:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def _raise_file_limit(number: int) -> None:
    """Raise this process's limit of open files, which include sockets, to `number` if the system allows it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        new_limit = number if hard == resource.RLIM_INFINITY else min(number, hard)
        if soft != resource.RLIM_INFINITY and soft < new_limit:
            resource.setrlimit(resource.RLIMIT_NOFILE, (new_limit, hard))


def _print_now(text: str) -> None:
    print(text, flush=True)
