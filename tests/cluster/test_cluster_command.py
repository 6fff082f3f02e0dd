"""What the option `--cluster` may be, and what is refused in a sentence before a cluster starts."""

from __future__ import annotations

import socket
import sys
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from ninetka_train import matches
from ninetka_train.cli import app


def ninetka(*arguments):
    done = CliRunner().invoke(app, arguments)
    return done.exit_code, done.output


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
        (("random", "random", "--cluster=elsewhere"), "elsewhere"),
    ],
)
def test_the_option_may_stand_alone(arguments, address, monkeypatch):
    asked = []

    @contextmanager
    def stop(told):
        asked.append(told)
        raise ValueError("enough")
        yield

    monkeypatch.setattr(matches, "on_cluster", stop)
    if address is None:
        with pytest.raises(ValueError, match="enough"):
            CliRunner().invoke(app, ["evaluate", *arguments], catch_exceptions=False)
    else:
        assert ninetka("evaluate", *arguments) == (2, "error: enough\n")
    assert asked == [address]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("random", "gtp:gnugo", "--game", "go"), "outside engines cannot play on a cluster"),
        (("random", "net:runs/gtp-1", "--game", "go"), "checkpoint runs/gtp-1.json: cannot be read"),
        (("random", "mcts:seconds=0.1"), "what plays by the clock cannot play on a cluster: give it simulations"),
        (("maxn", "phases:placement=[mcts:seconds=1,rave],movement=maxn"), "what plays by the clock"),
    ],
)
def test_who_cannot_play_the_same_everywhere_is_refused(arguments, message):
    status, output = ninetka("evaluate", *arguments, "--cluster")
    assert status == 2
    assert output.startswith("error: ")
    assert message in output


def test_an_address_where_nobody_answers_is_told_at_once():
    pytest.importorskip("ray")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there, and nobody else can
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        status, output = ninetka("evaluate", "random", "random", "--games", "2", "--cluster", address)
    assert status == 2
    assert f"error: --cluster {address}: no Ray cluster answers there" in output
    assert "ray job submit" in ninetka("evaluate", "random", "random", "--cluster", "ray://head:10001")[1]


def test_without_ray_the_option_names_what_to_install(monkeypatch, tmp_path):
    for name in ("connect", "tasks", "workers", "packing"):
        monkeypatch.delitem(sys.modules, f"ninetka_train.cluster.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    expected = 2, "error: --cluster needs ray: pip install 'ninetka-env[cluster]'\n"
    assert ninetka("evaluate", "random", "random", "--cluster") == expected
    assert ninetka("train", "--config", "quick", "--runs", str(tmp_path), "--cluster") == expected
    assert not list(tmp_path.iterdir())
