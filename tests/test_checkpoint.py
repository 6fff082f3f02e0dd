"""Checkpoints: what is written comes back, and whatever was damaged is refused by name and reason."""

from __future__ import annotations

import json
import os

import pytest

torch = pytest.importorskip("torch")

from ninetka_agents import checkpoint as module  # noqa: E402
from ninetka_agents.checkpoint import (  # noqa: E402
    Checkpoint,
    best_shipped,
    find_checkpoint,
    load_checkpoint,
    save_checkpoint,
    shipped,
)
from ninetka_agents.net_agent import NetAgent  # noqa: E402
from ninetka_agents.ninetka.network import Network, NetworkConfig  # noqa: E402

CONFIG = NetworkConfig(width=8, blocks=1)


@pytest.fixture
def network():
    torch.manual_seed(0)
    return Network(CONFIG)


@pytest.fixture
def path(tmp_path, network):
    return save_checkpoint(tmp_path / "deep" / "net", network, Checkpoint(CONFIG, 7, {"seed": 3}, {"a": 1}))


def edit(path, **changes):
    about = json.loads(path.with_suffix(".json").read_text())
    path.with_suffix(".json").write_text(json.dumps(about | changes))


def test_round_trip(tmp_path, network):
    state = {"moment": torch.arange(3)}
    path = save_checkpoint(tmp_path / "net", network, Checkpoint(CONFIG, 7, {"seed": 3}, {"a": [1]}), state)
    for name in (path, path.with_suffix(".json"), path.with_suffix("")):
        loaded, about, rest = load_checkpoint(name)
        assert about == Checkpoint(CONFIG, 7, {"seed": 3}, {"a": [1]})
        assert rest["moment"].tolist() == [0, 1, 2]
        assert not loaded.training
        for one, other in zip(network.parameters(), loaded.parameters(), strict=True):
            assert torch.equal(one, other)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.json", "net.safetensors"]


def test_the_json_names_the_environment(path):
    about = json.loads(path.with_suffix(".json").read_text())
    assert about["environment"] == "ninetka_v0"
    assert about["network"] == {"width": 8, "blocks": 1, "mixing": "relations", "heads": 4}


def test_missing_files_are_named(path):
    with pytest.raises(ValueError, match=r"nowhere\.json: cannot be read: No such file"):
        load_checkpoint(path.with_name("nowhere"))
    path.unlink()
    with pytest.raises(ValueError, match=r"net\.safetensors: cannot be read: No such file"):
        load_checkpoint(path)


@pytest.mark.parametrize("kept", [0, 1, 100, -1])
def test_truncated_tensors_are_refused(path, kept):
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"net\.safetensors: .*cut short, edited"):
        load_checkpoint(path)


def test_one_flipped_bit_is_refused(path):
    blob = bytearray(path.read_bytes())
    blob[-5] ^= 1
    path.write_bytes(blob)
    with pytest.raises(ValueError, match=r"SHA-256 differs"):
        load_checkpoint(path)


def test_a_truncated_json_is_refused(path):
    about = path.with_suffix(".json")
    about.write_text(about.read_text()[:-10])
    with pytest.raises(ValueError, match=r"net\.json: is no complete JSON"):
        load_checkpoint(path)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"environment": "ninetka_v9"}, "environment is 'ninetka_v9', this version reads 'ninetka_v0'"),
        ({"environment": "chess_v0"}, "environment is 'chess_v0', this version reads 'ninetka_v0'"),
        ({"environment": ["ninetka_v0"]}, r"environment is \['ninetka_v0'\], this version reads 'ninetka_v0'"),
        ({"format": 0}, "format is 0"),
        ({"network": {"width": 16, "blocks": 1}}, "do not fit the network"),
        ({"network": {"width": 8, "depth": 1}}, "do not fit the network"),
        ({"network": None}, "do not fit the network"),
        ({"sha256": "0"}, "SHA-256 differs"),
    ],
)
def test_an_edited_json_is_refused(path, changes, reason):
    edit(path, **changes)
    with pytest.raises(ValueError, match=reason):
        load_checkpoint(path)


def test_a_json_of_something_else_is_refused(path):
    path.with_suffix(".json").write_text("[1]")
    with pytest.raises(ValueError, match="does not describe a network"):
        load_checkpoint(path)


def test_a_failed_write_leaves_the_older_checkpoint(path, network, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    before = {p.name: p.read_bytes() for p in path.parent.iterdir()}
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(path, Network(CONFIG))
    assert {p.name: p.read_bytes() for p in path.parent.iterdir()} == before


def test_the_agent_loads_a_path_and_checks_its_options(path):
    assert NetAgent(str(path)).network.config == CONFIG
    with pytest.raises(ValueError, match="temperature=-1"):
        NetAgent(str(path), temperature=-1)
    with pytest.raises(ValueError, match="threads=-1"):
        NetAgent(str(path), threads=-1)


def test_the_agent_plays_the_game_of_its_network(path):
    with pytest.raises(ValueError, match=r"net\.safetensors: its network plays ninetka, not go"):
        NetAgent(str(path), game="go")


def test_shipped_networks_of_the_game_asked_for_come_first(tmp_path, network, monkeypatch):
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    for name in ("ninetka/gen-1", "ninetka/gen-4", "go/gen-1"):
        save_checkpoint(tmp_path / name, network)
    assert find_checkpoint("gen-1", "go") == tmp_path / "go" / "gen-1.safetensors"
    for other in (find_checkpoint("ninetka/gen-1", "go"), find_checkpoint("all")):
        assert other == tmp_path / "ninetka" / "gen-1.safetensors"
    for name in ("gen-4", "all", "grand"):  # other games have no former names
        with pytest.raises(ValueError, match=r"the shipped ones are gen-1, ninetka/gen-1, ninetka/gen-4"):
            find_checkpoint(name, "go")


def test_the_best_shipped_network_is_the_newest(tmp_path, network, monkeypatch):
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match="no trained network is shipped"):
        best_shipped()
    with pytest.raises(ValueError, match="the shipped ones are none"):
        find_checkpoint("gen-1")
    for name in ("ninetka/gen-9", "ninetka/gen-10", "ninetka/gen-2", "go/gen-1"):
        save_checkpoint(tmp_path / name, network)
    assert list(shipped()) == ["gen-2", "gen-9", "gen-10"]
    assert best_shipped() == find_checkpoint("gen-10") == tmp_path / "ninetka" / "gen-10.safetensors"
    assert best_shipped("go") == find_checkpoint("go/gen-1") == tmp_path / "go" / "gen-1.safetensors"
    with pytest.raises(ValueError, match=r"gen-1\.json: .*the shipped ones are go/gen-1, gen-2, gen-9, gen-10"):
        find_checkpoint("gen-1")


@pytest.mark.parametrize(
    "name",
    [
        "gen-4",
        "gen-4.safetensors",
        "grand",
        "ninetka/gen-4",
        "agents/checkpoints/grand",
        "agents/checkpoints/grand.json",
        "agents/checkpoints/grand.safetensors",
        "agents/ninetka_agents/checkpoints/ninetka/gen-4",
        "/somewhere/else/agents/checkpoints/grand",
    ],
)
def test_every_name_of_a_shipped_network_finds_it(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_checkpoint(name) == module.FOLDER / "ninetka" / "gen-4.safetensors"


def test_former_names_follow_the_order_of_making():
    begun_from = [
        json.loads(path.with_suffix(".json").read_text())["config"]["start_from"] for path in shipped().values()
    ]
    assert [find_checkpoint(name).stem for name in begun_from[1:]] == ["gen-1", "gen-2", "gen-3"]


def test_a_path_that_exists_comes_before_a_shipped_network(tmp_path, network, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grand").mkdir()  # an empty folder is no checkpoint
    assert find_checkpoint("grand").stem == "gen-4"
    save_checkpoint(tmp_path / "grand" / "mine", network)
    assert find_checkpoint("grand").stem == "mine"
    for missing in ("runs/grand", "gen-99", "checkpoints/grand"):
        with pytest.raises(
            ValueError, match=r"cannot be read: No such file or directory; the shipped ones are gen-1, "
        ):
            find_checkpoint(missing)


def test_a_folder_stands_for_its_newest_checkpoint(tmp_path, network):
    for step in (900, 1000):
        save_checkpoint(tmp_path / f"step-{step:06}", network, Checkpoint(CONFIG, step))
    assert load_checkpoint(tmp_path)[1].step == 1000
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty\.json: cannot be read"):
        load_checkpoint(tmp_path / "empty")
