"""Test that checkpoints are loaded as they were saved, and that damaged ones are rejected with a reason."""

from __future__ import annotations

import hashlib
import json
import os
import shutil

import pytest
from requirements import needs_posix

pytest.importorskip("torch")

import torch
from safetensors.torch import load, save

from ninetka_agents import network_files as module
from ninetka_agents.checkpoint import (
    Checkpoint,
    find_checkpoint,
    known_networks,
    load_checkpoint,
    save_checkpoint,
    shipped_network,
)
from ninetka_agents.net_agent import load_net
from ninetka_agents.ninetka.network import Network, NetworkConfig

CONFIG = NetworkConfig(width=8, blocks=1)


@pytest.fixture
def network():
    torch.manual_seed(0)
    return Network(CONFIG)


@pytest.fixture
def path(tmp_path, network):
    return save_checkpoint(tmp_path / "deep" / "net", network, Checkpoint(CONFIG, 7, {"seed": 3}, {"a": 1}))


def edit(path, **changes):
    about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    path.with_suffix(".json").write_text(json.dumps(about | changes), encoding="utf-8")


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
    about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
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
    about.write_text(about.read_text(encoding="utf-8")[:-10], encoding="utf-8")
    with pytest.raises(ValueError, match=r"net\.json: is not a complete JSON document"):
        load_checkpoint(path)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"environment": "ninetka_v9"}, "environment is 'ninetka_v9', this version reads 'go_v0', .*, 'ninetka_v0'"),
        ({"environment": "chess_v0"}, "environment is 'chess_v0', this version reads 'go_v0', .*, 'ninetka_v0'"),
        ({"environment": ["ninetka_v0"]}, r"environment is \['ninetka_v0'\], this version reads 'go_v0', "),
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


def test_a_json_imports_no_module(path):
    place = "python:a_module_that_is_missing:X"
    edit(path, config={"game": place, "alphazero": {"teacher": place}})
    assert load_checkpoint(path)[1].config["game"] == place
    edit(path, environment=place)
    with pytest.raises(ValueError, match=f"environment is '{place}', this version reads"):
        load_checkpoint(path)


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ({"blocks": 1000000}, r"blocks=1000000, .*has more than the 32 tensors that are there"),
        ({"blocks": 10**30}, "has more than the 32 tensors"),
        ({"width": 1000000}, r"is torch.float32 of shape \(.*\), not torch.float32 of shape \(1000000"),
        ({"width": 10**30}, "do not fit the network"),
        ({"width": 8.0}, r"network\.width=8\.0: expected int"),
        ({"blocks": True}, r"network\.blocks=True: expected int"),
        ({"mixing": "x" * 9999}, r"mixing='xxx.* \.\.\.: expected one of"),
        ({"mixing": "pool"}, r"tensors are missing or too many: \['blocks\.0\.from_related\.weight'"),
    ],
)
def test_a_description_is_compared_with_the_tensors_before_anything_is_built(path, shape, reason, monkeypatch):
    about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    edit(path, network=about["network"] | shape)
    build = Network.__init__

    def only_without_memory(self, config):
        assert torch.empty(0).is_meta, "allocated memory for the network"
        build(self, config)

    monkeypatch.setattr(Network, "__init__", only_without_memory)
    with pytest.raises(ValueError, match=reason) as caught:
        load_checkpoint(path)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda tensors, name: tensors.pop(name), "has more than the 31 tensors that are there"),
        (lambda tensors, name: tensors.update(more=tensors[name]), None),  # not a tensor of the network
        (lambda tensors, name: tensors.update({"network.more": tensors[name] + 1}), r"too many: \['more'\]"),
        (lambda tensors, name: tensors.update({name: torch.zeros(1, 9)}), r"policy\.weight is .* \(1, 9\), not "),
        (lambda tensors, name: tensors.update({name: tensors[name].double()}), "is torch.float64 of"),
        (lambda tensors, name: tensors.update({name: tensors[name] / 0}), "holds numbers that are not finite"),
    ],
)
def test_tensors_that_are_not_the_networks_are_refused(path, change, reason):
    tensors = load(path.read_bytes())
    change(tensors, "network.policy.weight")
    blob = save({name: tensor.clone() for name, tensor in tensors.items()})
    path.write_bytes(blob)
    edit(path, sha256=hashlib.sha256(blob).hexdigest())
    if reason is None:
        load_checkpoint(path)
        return
    with pytest.raises(ValueError, match=reason):
        load_checkpoint(path)


def test_loading_draws_as_many_random_numbers_as_building(path):
    torch.manual_seed(3)
    Network(CONFIG)
    before = torch.get_rng_state()
    torch.manual_seed(3)
    load_checkpoint(path)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("changes", [{"step": "7"}, {"step": True}, {"config": []}, {"notes": None}])
def test_entries_of_a_wrong_type_are_refused(path, changes):
    edit(path, **changes)
    with pytest.raises(ValueError, match=rf"{next(iter(changes))}=.*: expected (int|dict)"):
        load_checkpoint(path)


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000])
def test_a_deeply_nested_json_is_rejected(path, text):
    path.with_suffix(".json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="is not a complete JSON document"):
        load_checkpoint(path)


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b", "/dev/zero\0", "x/" * 3000, "a\nb" * 2000])
def test_an_invalid_path_is_rejected_with_a_short_message(name):
    with pytest.raises(ValueError, match="cannot be read") as caught:
        load_checkpoint(name)
    assert len(str(caught.value)) < 500
    assert len(str(caught.value).splitlines()) == 1


@needs_posix
def test_a_device_is_not_read(path):
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(ValueError, match=r"net\.safetensors: is not a regular file"):
        load_checkpoint(path)


def test_a_json_of_something_else_is_refused(path):
    path.with_suffix(".json").write_text("[1]", encoding="utf-8")
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
    assert load_net(str(path)).network.config == CONFIG
    with pytest.raises(ValueError, match="temperature=-1"):
        load_net(str(path), temperature=-1)
    with pytest.raises(ValueError, match="threads=-1"):
        load_net(str(path), threads=-1)


def test_an_empty_run_folder_has_its_own_message(tmp_path):
    with pytest.raises(ValueError, match=r"checkpoint .*: there is none in this folder yet"):
        load_net(str(tmp_path))


def test_the_agent_plays_the_game_of_its_network(path):
    with pytest.raises(ValueError, match=r"net\.safetensors: its network plays ninetka, not go"):
        load_net(str(path), game="go")


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Replace the folders `SHIPPED` and `NETWORKS` by new ones with empty folders for two games; return both."""
    found = tmp_path / "checkpoints", tmp_path / "networks"
    for name, folder in zip(("SHIPPED", "NETWORKS"), found, strict=True):
        monkeypatch.setattr(module, name, folder)
        for game in ("go", "ninetka"):
            (folder / game).mkdir(parents=True)
    return found


def test_networks_of_the_given_game_come_first(folders, network):
    shipped, others = folders
    save_checkpoint(others / "ninetka" / "gen-1", network)
    for name in ("ninetka/gen-4", "go/gen-1"):
        save_checkpoint(shipped / name, network)
    assert find_checkpoint("gen-1", "go") == shipped / "go" / "gen-1.safetensors"
    for other in (find_checkpoint("ninetka/gen-1", "go"), find_checkpoint("gen-1")):
        assert other == others / "ninetka" / "gen-1.safetensors"
    with pytest.raises(ValueError, match=r"the known ones of go are gen-1$"):
        find_checkpoint("gen-4", "go")


def test_known_networks_are_sorted_by_number(folders, network):
    shipped, others = folders
    with pytest.raises(ValueError, match="the known ones of ninetka are none"):
        find_checkpoint("gen-1")
    for name in ("gen-9", "gen-2", "an-exploiter", "the-exploiter"):
        save_checkpoint(others / "ninetka" / name, network)
    save_checkpoint(shipped / "ninetka" / "gen-10", network)
    save_checkpoint(shipped / "go" / "gen-1", network)
    assert list(known_networks()) == ["an-exploiter", "gen-2", "gen-9", "gen-10", "the-exploiter"]
    known = "an-exploiter, gen-2, gen-9, gen-10, the-exploiter"
    with pytest.raises(ValueError, match=rf"gen-1\.json: .*the known ones of ninetka are {known}$"):
        find_checkpoint("gen-1")


def test_the_default_network_is_the_shipped_one(folders, network):
    shipped, others = folders
    save_checkpoint(others / "ninetka" / "gen-10", network)
    with pytest.raises(ValueError, match="no trained network is shipped for ninetka"):
        shipped_network()
    save_checkpoint(shipped / "ninetka" / "gen-9", network)
    save_checkpoint(others / "ninetka" / "gen-9", network)
    assert shipped_network() == find_checkpoint("gen-9") == shipped / "ninetka" / "gen-9.safetensors"


def test_an_installed_package_names_the_folder_of_other_networks(folders, network):
    shipped, others = folders
    shutil.rmtree(others)
    for name in ("ninetka/gen-7", "go/gen-6"):
        save_checkpoint(shipped / name, network)
    assert list(known_networks()) == ["gen-7"]
    with pytest.raises(
        ValueError,
        match=r"gen-1\.json: cannot be read: No such file or directory; gen-7 comes with the package, "
        r"others are in the repository's folder networks/: give the path of one$",
    ):
        find_checkpoint("gen-1")


@pytest.mark.parametrize("name", ["gen-4", "gen-4.safetensors", "gen-4.json", "ninetka/gen-4"])
def test_a_network_is_found_by_each_of_its_names(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_checkpoint(name) == module.NETWORKS / "ninetka" / "gen-4.safetensors"


def test_no_name_is_not_the_newest_network_of_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "a.safetensors").touch()
    monkeypatch.chdir(tmp_path)
    assert find_checkpoint(".").name == "a.safetensors"
    with pytest.raises(ValueError, match="checkpoint '': expected a path or the name of a network"):
        find_checkpoint("")


def test_networks_start_from_earlier_ones():
    known = known_networks()
    configs = [json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["config"] for path in known.values()]
    start_from = [config["start_from"] for config in configs if config]  # gen-7, a mean of networks, has none
    before = [find_checkpoint(name).stem for name in start_from[1:]]
    # The starting networks of gen-2 to gen-6, maxn-exploiter and placements.
    assert before == ["gen-1", "gen-2", "gen-3", "gen-4", "gen-5", "gen-6", "gen-7"]


def test_a_path_that_exists_comes_before_a_known_network(tmp_path, network, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gen-4").mkdir()  # an empty folder is not a checkpoint
    assert find_checkpoint("gen-4") == module.NETWORKS / "ninetka" / "gen-4.safetensors"
    save_checkpoint(tmp_path / "gen-4" / "mine", network)
    assert find_checkpoint("gen-4").stem == "mine"
    for missing in ("runs/gen-4", "gen-99", "checkpoints/gen-4"):
        with pytest.raises(ValueError, match="No such file or directory; the known ones of ninetka are gen-1, "):
            find_checkpoint(missing)


def test_the_folder_of_a_run_is_suggested(tmp_path, network, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_checkpoint(tmp_path / "runs" / "quick" / "step-000001", network)
    (tmp_path / "runs" / "quack").mkdir()  # it has no network
    for written in ("quick", "runs/quik", "net:quick"):
        with pytest.raises(ValueError, match=r"\(did you mean 'net:runs/quick'\?\)$"):
            find_checkpoint(written)
    (tmp_path / "runs" / "quick").rename(tmp_path / "runs" / "go")
    for unlike in ("other", "net:foo", "runs/quick", "gen-99", "go/gen", "folder/gen-7"):
        with pytest.raises(ValueError, match=r"the known ones of ninetka are gen-1, [^(]*$"):
            find_checkpoint(unlike)


@pytest.mark.parametrize(
    ("written", "meant"),
    [("net:gen7", "gen-7"), ("net:Gen-7", "gen-7"), ("Go/gen6", "go/gen-6"), ("net:maxn-exploter", "maxn-exploiter")],
)
def test_a_known_network_is_suggested(written, meant):
    with pytest.raises(ValueError, match=rf"\(did you mean 'net:{meant}'\?\)$"):
        find_checkpoint(written)


def test_a_folder_means_its_newest_checkpoint(tmp_path, network):
    for step in (900, 1000):
        save_checkpoint(tmp_path / f"step-{step:06}", network, Checkpoint(CONFIG, step))
    assert load_checkpoint(tmp_path)[1].step == 1000
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty: there is none in this folder yet"):
        load_checkpoint(tmp_path / "empty")
