"""Tests that no command destroys a file that the user needs: inputs, other outputs and networks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ninetka_train import cli
from ninetka_train.commands.output_files import check_outputs


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with a game, the two files of a network, and links to the game."""
    monkeypatch.chdir(tmp_path)
    for name in ("g.txt", "net.safetensors", "net.json", "other.json"):
        Path(name).write_text(name, encoding="utf-8")
    os.link("g.txt", "hard.txt")
    Path("linked.txt").symlink_to("g.txt")
    Path("linked-net").symlink_to("net.json")
    Path("net.log.jsonl").write_text("log", encoding="utf-8")
    return tmp_path


def check(*outputs, inputs=(), **options):
    check_outputs([(f"--{option}", path and Path(path)) for option, path in outputs], map(Path, inputs), **options)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ([("json", "g.txt")], "--json g.txt: the command reads this file: name another one"),
        ([("json", "./g.txt")], "--json g.txt: the command reads this file"),
        ([("json", "hard.txt")], "--json hard.txt: the command reads this file"),
        ([("csv", None), ("json", "linked.txt")], "--json linked.txt: the command reads this file"),
        ([("json", "new"), ("csv", "./new")], "--json and --csv name the same file, new: name two files"),
        ([("json", "net.json")], "--json net.json: this file belongs to the network net.safetensors"),
        ([("out", "net.safetensors")], "--out net.safetensors: this file belongs to the network net.safetensors"),
        ([("csv", "linked-net")], "--csv linked-net: this file belongs to the network "),
        ([("csv", "net.log.jsonl")], "--csv net.log.jsonl: this file belongs to the network net.safetensors"),
        ([("out", "none/x")], "cannot write: there is no folder none"),
    ],
)
def test_outputs_that_would_destroy_a_file_are_refused(files, outputs, message):
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    with pytest.raises((ValueError, OSError)) as caught:
        check(*outputs, inputs=["g.txt"])
    assert message in str(caught.value)
    assert {path.name: path.read_bytes() for path in files.iterdir()} == before


def test_other_outputs_are_allowed(files):
    check(("json", "other.json"), ("csv", "new.csv"), ("png", None), inputs=["g.txt", "none.txt"])
    check(("json", os.devnull), ("csv", os.devnull), inputs=[os.devnull])
    check(("out", "net.safetensors"), ("out", "net.json"), writes_network=True)
    check(("markdown", "net.md"), ("csv", "net.csv"), ("png", "net.png"))  # new files next to a network


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["analyze", "g.txt", "--json", "g.txt"], "--json g.txt: the command reads this file"),
        (["analyze", "g.txt", "--png", "x.png", "--json", "x-dark.png"], "--json and --png name the same file"),
        (["replay", "g.png", "--png", "g.png"], "--png g.png: the command reads this file"),
        (["replay", "g.gif", "--gif", "g.gif"], "--gif g.gif: the command reads this file"),
        (["evaluate", "--from", "g.txt", "--csv", "g.txt"], "--csv g.txt: the command reads this file"),
        (["evaluate", "random", "--json", "mean.json"], "belongs to the network mean.safetensors"),
        (["evaluate", "random", "--save-games", "mean.safetensors"], "belongs to the network mean.safetensors"),
        (["curve", "random", "--against", "random", "--simulations", "1", "--out", "mean"], "belongs to the network"),
        (["export", "net", "--out", "mean.safetensors"], "belongs to the network mean.safetensors"),
        (["average", "mean", "--out", "mean.json"], "--out mean.safetensors: the command reads this file"),
        (["average", "mean", "--out", "linked"], "--out linked.json: the command reads this file"),
        (["average", "mean", "--out", "other"], "--out other: other.json is not the description of a network"),
        (["average", "mean", "--out", "net:go"], "--out net:go: expected a path, without `net:`"),
        (["average", "mean", "--out", ".."], "--out ..: expected a name for files, such as results/first"),
        (["average", "mean", "--out", "/dev/null"], "--out /dev/null: it is no regular file"),
        (["curve", "random", "--against", "random", "--simulations", "1", "--out", "."], "--out .: expected a name"),
        (["study", "--out", ".png"], "--out .png: expected a name for files"),
        (["export", "mean", "--out", "new/"], "--out new/: it names a folder: write the name of a file"),
        (["evaluate", "random", "--save-games=new/"], "--save-games new/: it names a folder"),
        (["gtp", "--agent", "random", "--log", "mean.json"], "--log mean.json: this file belongs to the network"),
        (["export", "mean", "--out", "none/x"], "there is no folder none"),
        (["study", "--out", "x", "--games", "0"], "games=0: expected an integer"),
    ],
)
def test_every_command_refuses_to_destroy_a_file(tmp_path, monkeypatch, arguments, message):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    runner = CliRunner()
    assert runner.invoke(cli.app, ["evaluate", "random", "--games", "2", "--save-games", "g.txt"]).exit_code == 0
    for name in ("mean", "folder/a"):
        assert runner.invoke(cli.app, ["average", "net", "--out", name]).exit_code == 0
    Path("other.json").write_text("{}", encoding="utf-8")
    Path("linked.json").symlink_to("mean.json")
    for name in ("g.png", "g.gif"):
        Path(name).write_bytes(Path("g.txt").read_bytes())
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    done = runner.invoke(cli.app, arguments)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


@pytest.mark.parametrize(("name", "other"), [("folder", "folder/a.safetensors"), ("gen-6", "gen-6.safetensors")])
def test_an_average_with_the_name_of_another_network_is_noted(tmp_path, monkeypatch, name, other):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    runner = CliRunner()
    assert runner.invoke(cli.app, ["average", "net", "--out", "folder/a"]).stderr == ""
    done = runner.invoke(cli.app, ["average", "net", "--out", name])
    assert (done.exit_code, done.stdout) == (0, f"wrote {name}.safetensors and {name}.json\n")
    assert done.stderr.startswith(f"note: net:{name} is also a name of ")
    assert done.stderr.endswith(f"{other}: write net:{name}.safetensors for the new network\n")
