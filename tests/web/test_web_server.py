"""The server in a separate process: users and agents at tables, refusals, restarts, security, invalid messages."""

from __future__ import annotations

import gzip
import http.client
import io
import json
import string
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.datastructures import Headers
from web_helpers import Client, Server, running_server
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from ninetka_env.api.record_files import read_records
from ninetka_env.api.records import format_record
from ninetka_web.games.adapter import adapter_for_text, adapter_of
from ninetka_web.server.protocol import MAX_MESSAGE, read_message
from ninetka_web.server.server import HEADERS, host_names, is_loopback, is_own_host
from ninetka_web.tables.records import table_of_record
from ninetka_web.tables.refusal import RefusedError
from ninetka_web.thinking.agent_threads import get_agent

pytestmark = pytest.mark.slow


@pytest.fixture
def ann(server: Server) -> Iterator[Client]:
    with Client(server) as client:
        yield client


@pytest.fixture
def bob(server: Server) -> Iterator[Client]:
    with Client(server) as client:
        yield client


@pytest.mark.parametrize("seats", [("me", "random"), ("maxn", "me", "maxn:depth=1"), ("me", "random", "maxn", "me")])
def test_a_user_plays_agents_to_the_end(ann: Client, seats: tuple[str, ...]) -> None:
    state = ann.create(*seats, neutral_placement="random")
    assert ann.request("pace", delay_ms=0, paused=False) == ""
    while not ann.state["over"]:
        assert ann.state["winner"] is None
        if ann.state["to_move"] in state["you"]:
            ann.play()
        else:
            ann.receive()
    assert ann.request("record") == ""
    text, played = next(m for m in ann.received if m["type"] == "text")["text"], ann.state
    assert ann.state["winner"] in range(len(seats))
    assert ann.request("upload", text=text) == ""
    shown = ann.wait_for("state", view_only=True)
    assert (shown["moves"], shown["winner"]) == (played["moves"], played["winner"])


def test_a_resigned_game_has_a_winner_and_a_record(server: Server, ann: Client) -> None:
    table = ann.create("me", "maxn", neutral_placement="random")["table"]
    assert ann.request("pace", delay_ms=0, paused=False) == ""
    while ann.state["stage"] != "movement" or ann.state["to_move"] != 0:
        if ann.state["to_move"] == 0:
            ann.play()
        else:
            ann.receive()
    moves = ann.state["moves"]
    assert ann.request("resign") == ""
    state = ann.wait_for("state", over=True)
    assert (state["winner"], state["event"], state["moves"]) == (1, {"kind": "resigned", "seat": 0}, moves)
    assert ann.request("record") == ""
    text = next(m for m in ann.received if m["type"] == "text")["text"]
    assert text.endswith("result: yellow resigned; blue wins\n")
    assert ann.request("upload", text=text) == ""
    shown = ann.wait_for("state", view_only=True)
    assert (shown["winner"], shown["event"], shown["moves"]) == (1, state["event"], moves)
    with Client(server, ann.token) as reconnected:
        (listed,) = reconnected.received[0]["tables"]
        assert listed == {
            "table": table,
            "game": "ninetka",
            "seat_names": ["person", "maxn"],
            "ply": len(moves),
            "over": True,
            "winner": 1,
        }


def test_a_game_that_the_last_user_resigned_has_no_winner_and_no_record(server: Server, ann: Client) -> None:
    ann.create("me", "maxn", "maxn")
    assert ann.request("resign") == ""
    assert ann.wait_for("state", over=True)["winner"] is None
    assert "finished" in ann.request("record")
    with Client(server, ann.token) as reconnected:
        assert [(summary["over"], summary["winner"]) for summary in reconnected.received[0]["tables"]] == [(True, None)]


def test_uploads_that_are_not_one_game_record_are_refused(ann: Client) -> None:
    head = "game record, format 2\ngame: ninetka\n"
    for text, reason in [
        ("", "one game, found 0"),
        ("game record, format 3", "line 1: expected 'game record, format 2'"),
        (head.replace("ninetka", "ninetko"), "unknown game 'ninetko'"),
        (f"{head}players: 5", "line 3: players"),
    ]:
        assert reason in ann.request("upload", text=text)


@pytest.mark.parametrize("spec", ["mcts:simulations=50", "net", "net:simulations=4", "maxn:depth=2", "random"])
def test_every_agent_can_play(ann: Client, spec: str) -> None:
    ann.create(spec, spec, neutral_placement="random")
    assert ann.request("pace", delay_ms=0, paused=False) == ""
    ann.wait_for("state", stage="movement")


def test_only_the_user_of_a_seat_plays_for_it(server: Server, ann: Client, bob: Client) -> None:
    table = ann.create("me", "open", name="Ann")["table"]
    assert bob.request("join", table=table) == ""
    assert bob.wait_for("state")["you"] == []
    assert "not your seat" in bob.request("play", ply=0, action=24)
    assert "only players" in bob.request("resign")
    assert "no move" in bob.request("undo")
    assert bob.request("sit", seat=1, name="Bob") == ""
    ann.play(24)
    while len(bob.state["moves"]) < 1:
        bob.receive()
    bob.play()
    assert bob.state["seats"][1]["name"] == "Bob"
    with Client(server, ann.token) as reloaded:  # the same user in another window
        reloaded.request("join", table=table)
        assert reloaded.wait_for("state")["you"] == [0]
    with Client(server) as stranger:
        stranger.request("join", table=table)
        assert stranger.wait_for("state")["you"] == []
        assert "taken" in stranger.request("sit", seat=0)
        assert "not yours" in stranger.request("discard", table=table)
    assert "others play" in bob.request("discard", table=table)


def test_other_users_agree_to_an_undo(ann: Client, bob: Client) -> None:
    table = ann.create("me", "open")["table"]
    bob.request("join", table=table)
    bob.request("sit", seat=1)
    ann.play()
    assert ann.request("undo") == ""
    while not bob.state.get("asked"):
        bob.receive()
    assert not ann.state["asked"]
    assert "earlier question" in bob.request("answer", accept=True, question=bob.state["question"] - 1)
    assert bob.request("answer", accept=True, question=bob.state["question"]) == ""
    bob.wait_for("state", moves=[])
    assert "people play" in ann.request("analyse", ply=0, engine="mcts")


def test_agents_stop_when_paused_or_not_watched(server: Server, ann: Client) -> None:
    table = ann.create("random", "random")["table"]
    assert ann.request("pace", delay_ms=0, paused=True) == ""
    paused = ann.wait_for("state", paused=True)
    assert ann.receive_all(silence=0.4) == []
    assert ann.request("pace", delay_ms=300, paused=False) == ""
    while len(ann.state["moves"]) <= len(paused["moves"]) + 1:
        ann.receive()
    ann.request("leave")
    with Client(server) as watcher:
        watcher.request("join", table=table)
        first = len(watcher.wait_for("state")["moves"])
        watcher.request("leave")
        time.sleep(1)
        watcher.request("join", table=table)
        assert len(watcher.wait_for("state")["moves"]) <= first + 1


@pytest.mark.parametrize("engine", ["mcts", "net"])
def test_the_analysis_grows_and_can_be_stopped(ann: Client, engine: str) -> None:
    ann.create("me", "maxn", neutral_placement="random")
    ann.play()
    assert ann.request("analyse", ply=0, engine=engine) == ""
    last = ann.wait_for("analysis", ply=0)
    while last["more"]:
        before, last = last["simulations"], ann.wait_for("analysis", ply=0)
        assert last["simulations"] > before
    shares = next(message["shares"] for message in ann.received if message["type"] == "shares")
    assert all(abs(sum(share) - 1) < 0.01 for share in shares)
    assert {candidate["action"] for candidate in last["candidates"]} <= set(range(121))
    assert last["simulations"] == adapter_of("ninetka").study.budgets[engine][-1]
    assert all(0 <= c["chance"] <= 1 and c["lost"] >= 0 and 0 <= c["sure"] <= 1 for c in last["candidates"])
    assert ann.request("analyse", ply=1, engine=engine) == ""
    assert ann.request("stop_analysis") == ""
    ann.request("pace", delay_ms=0, paused=True)
    assert not [m for m in ann.receive_all(silence=0.5) if m["type"] == "analysis"]
    assert "plies" in ann.request("analyse", ply=80, engine=engine)


def test_games_survive_a_killed_server(tmp_path: Path) -> None:
    data = tmp_path / "table.sqlite3"
    server = Server(data)
    with Client(server) as ann:
        token, before = ann.token, {}
        for plies in (0, 1, 20):
            state = ann.create("me", "me", "me")
            for _ in range(plies):
                ann.play()
            before[state["table"]] = ann.state["moves"]
        assert ann.request("create", seats=["me", "open"], clock=[600, 5]) == ""
        while not ann.state["clock"]:
            ann.receive()
        timed = ann.state["table"]
        with Client(server) as bob:
            assert (
                bob.request("join", table=timed),
                bob.request("sit", seat=1),
                bob.request("chat", text="hello"),
            ) == (
                "",
                "",
                "",
            )
        ann.play()
        before[timed] = ann.state["moves"]
        server.kill()
    with running_server(data) as server, Client(server, token) as ann:
        assert {summary["table"] for summary in ann.received[0]["tables"]} == before.keys()
        for table, moves in before.items():
            ann.request("join", table=table)
            state = ann.wait_for("state")
            assert (state["moves"], state["you"]) == (moves, [0] if table == timed else [0, 1, 2])
            if table == timed:  # the clock continues, absent users may return, and the chat is lost
                assert 300 < state["clock"]["remaining"][0] <= 605
                assert state["clock"]["remaining"][0] != 600
                assert (state["clock"]["running"], [*state["away"]]) == (1, ["1"])
                assert not [message for message in ann.received if message["type"] == "chat"]
            else:
                ann.play()


# Security


def request(
    server: Server, path: str, host: str | None = None, encoding: str = "identity"
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    headers = {"Host": host or f"127.0.0.1:{server.port}", "Accept-Encoding": encoding}
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


@pytest.mark.parametrize("game", ["ninetka", "go", "kropki"])
def test_the_page_is_small_and_loads_nothing_from_elsewhere(server: Server, game: str) -> None:
    page = request(server, "/")[1].decode()
    parts = {name for name in page.split('"') if name.startswith("/static/")}
    scripts = ["main", "home", "table", "board", "analysis", "timeline", "dom", "connection", "people", "premove"]
    parts |= {f"/static/{name}.js" for name in (*scripts, f"games/{game}")}
    total_bytes = 0
    for part in ("/", *parts):
        response, sent = request(server, part, encoding="br, gzip;q=0.8")
        assert response.status == 200
        assert (response.headers["Content-Encoding"], response.headers["Vary"]) == ("gzip", "Accept-Encoding")
        assert {name: response.headers[name] for name in HEADERS} == HEADERS
        body = gzip.decompress(sent)
        assert body == request(server, part)[1] == request(server, part, encoding="gzip;q=0")[1]
        assert b"://" not in body.replace(b"http://www.w3.org/2000/svg", b"")  # nothing is loaded from elsewhere
        total_bytes += len(sent)
    assert total_bytes < 50_000
    policy = request(server, "/t/abcdefghijklmnop")[0].headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/%2e%2e%2fserver.py",
        "/static/index.html",
        "/static/games/../../server.py",
        "/static/games",
        "/docs",
    ],
)
def test_paths_outside_the_static_files_are_not_served(server: Server, path: str) -> None:
    assert request(server, path)[0].status == 404


def test_other_hosts_and_origins_are_refused(server: Server) -> None:
    assert request(server, "/", "evil.example")[0].status == 421
    assert request(server, "/", f"localhost:{server.port}")[0].status == 200
    url = f"ws://127.0.0.1:{server.port}/ws"
    for origin in (None, "null", "http://evil.example", f"http://127.0.0.1:{server.port + 1}", "http://[", "file://"):
        with pytest.raises(InvalidStatus), connect(url, origin=origin):
            pass
    host = f"evil.example:{server.port}"
    with pytest.raises(InvalidStatus), connect(url, origin=f"http://{host}", additional_headers={"Host": host}):
        pass


def test_own_host_names_and_ip_addresses_are_recognised() -> None:
    names = host_names("table.home")
    for host in ("127.0.0.1:9009", "[::1]:9009", "192.168.1.7", "localhost", "TABLE.home:80", "localhost.:9009"):
        assert is_own_host(Headers({"host": host}), names), host
    for host in ("", "evil.example", "127.0.0.1.evil.example", "[::1", "localhost@evil.example", "localhost.evil"):
        assert not is_own_host(Headers({"host": host}), names), host
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "10.0.0.1")] == (
        [True] * 3 + [False] * 3
    )


# Invalid messages

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4),
    max_leaves=12,
)
VALUES = ANY_JSON | st.sampled_from(
    ["me", "open", "maxn", "go", "mcts:simulations=9999999", "net:/etc/passwd", "../x", -1]
)
MESSAGE_TYPES = [
    "hello",
    "create",
    "upload",
    "join",
    "leave",
    "discard",
    "sit",
    "play",
    "undo",
    "answer",
    "accept",
    "play_on",
    "resign",
    "rematch",
    "claim",
    "chat",
    "personal_link",
    "reclaim",
    "pace",
    "analyse",
    "stop_analysis",
    "record",
    "position",
]
FIELDS = [
    "id",
    "token",
    "seats",
    "name",
    "keep",
    "table",
    "seat",
    "ply",
    "variation",
    "hint",
    "action",
    "text",
    "position",
    "delay_ms",
    "engine",
    "game",
    "options",
    "sgf",
    "clock",
    "question",
    "win",
    "key",
]
HOSTILE_TEXTS = st.one_of(
    st.text(max_size=60),
    st.text(string.printable, max_size=60),
    ANY_JSON.map(json.dumps),
    st.tuples(st.sampled_from([*MESSAGE_TYPES, "x"]), st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=5)).map(
        lambda drawn: json.dumps({"type": drawn[0], **drawn[1]})
    ),
)


@given(HOSTILE_TEXTS)
@settings(max_examples=100)
def test_every_text_is_read_or_refused_with_a_reason(text: str) -> None:
    reason = ""
    try:
        assert read_message(text).model_dump()["type"] in MESSAGE_TYPES
    except RefusedError as refusal:
        reason = str(refusal)
        assert reason
    assert len(reason) < 400


@pytest.mark.parametrize(
    "spec",
    ["gtp:touch {}", "gtp:[touch {}]", "gtp:command=touch", "phases:movement=[gtp:ls]", "python:os:mkdir,path={}"],
)
def test_neither_browsers_nor_records_start_programs(spec: str, tmp_path: Path) -> None:
    program = spec.format(tmp_path / "started")
    requests = [{"type": "create", "seats": ["me", program], "game": game} for game in ("ninetka", "go", "kropki")]
    option_requests = [{"type": "create", "seats": ["me", "me"], "options": {"neutral_placement": program}}]
    for message in (*requests, *option_requests, {"type": "analyse", "ply": 0, "engine": program}):
        with pytest.raises(RefusedError):
            read_message(json.dumps(message))
    for game in ("ninetka", "go", "kropki"):
        with pytest.raises(ValueError, match=r"unknown agent '(gtp|phases|python)"):
            get_agent(program, game)
    record = next(read_records(Path(__file__).parents[1] / "ninetka" / "games.txt"))
    text = format_record(replace(record, tags=dict.fromkeys(record.seats, program)))
    shown = table_of_record(next(read_records(io.StringIO(text))))
    assert [seat.agent for seat in shown.seats] == [""] * len(record.seats)
    assert not list(tmp_path.iterdir())


def test_neither_browsers_nor_records_import_games() -> None:
    with pytest.raises(RefusedError, match=r"create\.game: String should match"):
        read_message(json.dumps({"type": "create", "seats": ["me", "me"], "game": "python:os:mkdir"}))
    with pytest.raises(ValueError, match="unknown game 'python:os:mkdir'"):
        adapter_of("python:os:mkdir")
    text = "game record, format 2\ngame: python:os:mkdir\n"
    for read in (adapter_for_text, lambda text: next(read_records(io.StringIO(text)))):
        with pytest.raises(ValueError, match="unknown game 'python"):
            read(text)


def test_agents_are_chosen_from_a_list() -> None:
    for spec in ("net:/etc/passwd", "net:path=x", "maxn:depth=9", "maxn:threads=64", "mcts:simulations=50001", "MaxN"):
        with pytest.raises(RefusedError, match=r"expected"):
            read_message(json.dumps({"type": "create", "seats": ["me", spec]}))


def test_invalid_messages_are_refused_and_change_nothing(server: Server, ann: Client, bob: Client) -> None:
    table = ann.create("me", "open", "maxn")["table"]
    ann.play()
    bob.request("join", table=table)
    before = bob.wait_for("state")
    drawn = hostile_messages()
    for text in drawn:
        bob.socket.send(text)
    refused = 0
    while refused < len(drawn):
        refused += bob.receive()["type"] == "refused"
    ann.request("leave")
    ann.request("join", table=table)
    state = ann.wait_for("state")
    assert {**state, "you": 0} == {**before, "you": 0}


def hostile_messages() -> list[str]:
    """Return messages that the server must refuse if a user without a seat sends them."""
    broken = [
        "",
        "{",
        "[]",
        "null",
        "1e999",
        '"x"',
        "{}",
        '{"type":1}',
        "[" * 5000,
        "\x00",
        "\ud7ff",
        '{"type":"hello","token":"x"}',
    ]
    plays = [{"type": "play", "ply": p, "action": a} for p in (0, 1, 2, -1, 1e9, "1") for a in (0, 24, 121, -1, 10**30)]
    others = [
        {"type": "sit", "seat": 0}, {"type": "sit", "seat": 2}, {"type": "sit", "seat": 9}, {"type": "resign"},
        {"type": "undo"}, {"type": "answer", "accept": True}, {"type": "accept"},
        {"type": "play_on"}, {"type": "rematch"}, {"type": "record"},
        {"type": "pace", "delay_ms": 0, "paused": True},
        {"type": "upload", "text": "game record, format 2\ngame: ninetka\nplayers: 2"},
        {"type": "create", "seats": ["me"]}, {"type": "upload", "text": "(;GM[1]SZ[9];B[zz])"},
        {"type": "upload", "text": "(" * 3000}, {"type": "create", "seats": ["me", "me"], "game": "chess"},
        {"type": "create", "seats": ["me", "me"], "game": "go", "options": {"size": 3}},
        {"type": "create", "seats": ["me", "me"], "game": "kropki", "options": {"planes": "x", "width": 99}},
        {"type": "create", "seats": ["me", "me"], "position": "x"},
        {"type": "join", "table": "../../etc/passwd"}, {"type": "join", "table": "A" * 16},
        {"type": "position", "ply": 500}, {"type": "play", "ply": 1, "action": 24, "seat": 0},
    ]  # fmt: skip
    return broken + [json.dumps(message) for message in plays + others]


def test_messages_that_are_too_long_end_the_connection(server: Server) -> None:
    with Client(server) as client:
        client.socket.send("x" * (MAX_MESSAGE + 1))
        with pytest.raises(ConnectionClosed):
            client.wait_until_closed()
    with Client(server) as client:
        client.socket.send(b"bytes")
        with pytest.raises(ConnectionClosed):
            client.wait_until_closed()
