"""Test the values of `--cluster`, and errors that are reported before a cluster starts."""

from __future__ import annotations

import socket
import sys
import threading
from contextlib import contextmanager, suppress

import pytest
from requirements import network_param
from typer.testing import CliRunner

from ninetka_train.cli import app
from ninetka_train.commands import matches, training


def ninetka(*arguments):
    done = CliRunner().invoke(app, arguments)
    return done.exit_code, done.output


def stopping_at_the_cluster(monkeypatch, module):
    """Make the commands of a module fail when they connect to a cluster; return a list that collects the addresses."""
    asked = []

    @contextmanager
    def stop(address):
        asked.append(address)
        raise ValueError("enough")
        yield

    monkeypatch.setattr(module, "cluster_player", stop)
    return asked


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        (("random", "random"), None),
        (("random", "random", "--cluster"), "local"),
        (("random", "--cluster", "random"), "local"),
        (("--cluster", "mcts:simulations=8", "random"), "local"),
        (("random", "random", "--cluster", "--games", "2"), "local"),
        (("random", "random", "--cluster", "auto"), "auto"),
        (("random", "random", "--cluster", "head.example.org:6379"), "head.example.org:6379"),
        (("random", "random", "--cluster", "[::1]:6379"), "[::1]:6379"),
        (("random", "random", "--cluster=elsewhere"), "elsewhere"),
        (("random", "random", "--cluster=maxn"), "maxn"),
        (("random", "--cluster", "myhead", "random"), "myhead"),
        (("random", "random", "--cluster", "10.0.0.1"), "10.0.0.1"),
        (("random", "random", "--cluster", "[::1]"), "[::1]"),
        (("random", "--cluster", "mcts:8"), "local"),
        (("random", "--cluster", "greedy", "--game", "kropki"), "local"),
    ],
)
def test_the_option_needs_no_address(arguments, address, monkeypatch):
    asked = stopping_at_the_cluster(monkeypatch, matches)
    if address is None:
        with pytest.raises(ValueError, match="enough"):
            CliRunner().invoke(app, ["evaluate", *arguments], catch_exceptions=False)
    else:
        assert ninetka("evaluate", *arguments) == (2, "error: enough\n")
    assert asked == [address]


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        (("--cluster",), "local"),
        (("--cluster", "--games", "0"), "local"),
        (("--cluster", "myhead", "--games", "0"), "myhead"),
        (("--cluster", "random"), "random"),
        (("--cluster", "::1"), "::1"),
    ],
)
def test_the_argument_after_the_option_of_train_is_an_address(arguments, address, monkeypatch, tmp_path):
    pytest.importorskip("torch")
    asked = stopping_at_the_cluster(monkeypatch, training)
    assert ninetka("train", "--config", "quick", "--runs", str(tmp_path), *arguments) == (2, "error: enough\n")
    assert asked == [address]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("auto", "auto"),
        ("myhead", "myhead:6379"),
        ("10.0.0.1", "10.0.0.1:6379"),
        ("[::1]", "[::1]:6379"),
        ("[fe80::1]:1234", "[fe80::1]:1234"),
        ("head:1", "head:1"),
    ],
)
def test_an_address_without_a_port_gets_the_default_port(address, expected):
    pytest.importorskip("ray")
    from ninetka_train.cluster.connect import with_port

    assert with_port(address) == expected


@pytest.mark.parametrize("address", ["", "::1", "head:", "head:0", "head:65536", "head:x", "a b", "http://head:8265"])
def test_invalid_addresses_are_refused(address):
    pytest.importorskip("ray")
    from ninetka_train.cluster.connect import with_port

    with pytest.raises(ValueError, match=r"^--cluster .*: expected HOST:PORT, such as head:6379 or \[::1\]:6379"):
        with_port(address)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("random", "gtp:gnugo", "--game", "go"), "outside engines cannot play on a cluster"),
        network_param(("random", "net:runs/gtp-1", "--game", "go"), "checkpoint runs/gtp-1.json: cannot be read"),
        (("random", "mcts:seconds=0.1"), "time limits are not allowed on a cluster: set simulations instead"),
        (("maxn", "phases:placement=[mcts:seconds=1,rave],movement=maxn"), "time limits are not allowed"),
    ],
)
def test_agents_that_are_not_repeatable_are_refused(arguments, message):
    status, output = ninetka("evaluate", *arguments, "--cluster")
    assert status == 2
    assert output.startswith("error: ")
    assert message in output


def test_an_address_without_a_cluster_is_reported_at_once():
    pytest.importorskip("ray")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # the port is taken, but no program listens on it
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        status, output = ninetka("evaluate", "random", "random", "--games", "2", "--cluster", address)
    assert status == 2
    assert f"error: --cluster {address}: no Ray cluster answers there" in output
    status, output = ninetka("evaluate", "random", "random", "--games", "2", "--cluster", "no-such-host.invalid")
    assert status == 2
    assert "error: --cluster no-such-host.invalid:6379: no Ray cluster answers there" in output
    assert "ray job submit" in ninetka("evaluate", "random", "random", "--cluster", "ray://head:10001")[1]


def listening(answer):
    """Start a server that is not a Ray head: it answers each connection with `answer`, or not at all for None."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        kept = []  # a connection without an answer stays open
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                kept.append(connection)
                if answer is not None:
                    connection.recv(1024)
                    connection.sendall(answer)
                    kept.pop().close()

    threading.Thread(target=serve, daemon=True).start()
    return server


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "it accepts connections, but has sent no answer for 0.5 seconds"),
        (b"", "it closes connections at once"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "another program listens at this port"),
    ],
)
def test_a_server_that_is_no_ray_head_is_refused(answer, why, monkeypatch):
    pytest.importorskip("ray")
    from ninetka_train.cluster import workers

    monkeypatch.setattr(workers, "HEAD_TIMEOUT_S", 0.5)
    with listening(answer) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        status, output = ninetka("evaluate", "random", "random", "--games", "2", "--cluster", address)
    assert (status, output) == (2, f"error: --cluster {address}: no Ray cluster answers there: {why}\n")


@pytest.mark.parametrize("arguments", [("evaluate", "random", "random"), network_param(("train", "--config", "quick"))])
def test_without_ray_the_option_names_what_to_install(arguments, monkeypatch, tmp_path):
    for name in ("connect", "tasks", "workers"):
        monkeypatch.delitem(sys.modules, f"ninetka_train.cluster.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.chdir(tmp_path)
    hint = 'pip install -e ".[cluster]" (in a clone of the repository)'
    expected = 2, f"error: --cluster needs ray: {hint}\n"
    assert ninetka(*arguments, "--cluster") == expected
    assert not list(tmp_path.iterdir())
