"""Test that exported networks have the same outputs in ONNX Runtime as in torch, for what environments return."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("onnxruntime")

import onnxruntime
import torch
from ninetka.positions import ALL_OPTIONS
from typer.testing import CliRunner

from ninetka_agents.checkpoint import find_checkpoint, known_networks, load_checkpoint, save_checkpoint, shipped_network
from ninetka_agents.export import export_onnx
from ninetka_agents.ninetka import numpy_features
from ninetka_agents.ninetka.network import MIXINGS, Network, NetworkConfig
from ninetka_agents.plugins import network_of
from ninetka_env.api.observing import observe
from ninetka_env.core.registry import load_variant
from ninetka_train.cli import app

GAMES = ("ninetka", "go", "kropki")
SCORINGS = ["area", "document", "territory"]
SPECS = [
    *(load_variant("ninetka", **options._asdict()).spec for options in ALL_OPTIONS),
    *(f"go:size=5,scoring={scoring},komi={komi}" for scoring in SCORINGS for komi in (7, -2.5)),
    "go:size=5,ko=positional,scoring=territory,allow_resign=True",
    "go:size=5,ko=situational,scoring=document,komi=0",
    "go:size=9,handicap=4,komi=0.5",
    "go:size=9,max_plies=30,allow_resign=True",
    *(
        f"kropki:width={width},height={height},territory={territory},start={start}"
        for width, height in ((3, 3), (6, 5), (5, 12), (20, 20))
        for territory in ("declared", "immediate")
        for start in ("empty", "cross")
    ),
]
MORE_SPECS = [
    *(
        f"go:size={size},ko={ko},scoring={scoring},komi={komi}"
        for size, ko, scoring, komi in ((2, "simple", "area", 4), (3, "positional", "document", -9))
    ),
    *(
        f"go:size={size},ko={('simple', 'positional', 'situational')[size % 3]},scoring={SCORINGS[size % 5 % 3]}"
        for size in range(4, 20)
    ),
    "kropki:width=39,height=32",
    "kropki:width=13,height=5,territory=immediate",
]
"""Further boards, some of which have states that other tests do not compile for."""


def command(checkpoint, path):
    return CliRunner().invoke(app, ["export", str(checkpoint), "--out", str(path)])


def session_of(path):
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Return the paths of the shipped networks by game, exported by the command."""
    paths = {game: tmp_path_factory.mktemp(game) / "net.onnx" for game in GAMES}
    for game, path in paths.items():
        done = command(f"net:{game}", path)
        assert done.exit_code == 0, done.output
        assert done.stdout == f"wrote {path}\n"
    return paths


@pytest.fixture(scope="module")
def sessions(exported):
    return {game: session_of(path) for game, path in exported.items()}


def saved(game, folder, **config):
    module = network_of(game)
    torch.manual_seed(0)
    network = module.Network(module.NetworkConfig(width=8, blocks=3 if game != "ninetka" else 1, **config)).eval()
    return network, save_checkpoint(folder / "net", network)


def positions(variant):
    """Return about six states of a random game, equally spaced; in Go the players pass and resign only at the end."""
    rng, found = np.random.default_rng(0), []
    game = variant.game_class.start(variant, seed=0)
    while not game.is_over:
        found.append(game.records.copy())
        legal = game.legal_actions()
        placing = legal[legal < variant.options["size"] ** 2] if variant.definition.name == "go" else legal
        game.play(int(rng.choice(placing if len(placing) else legal)))
    return np.concatenate([*found[:: -(-len(found) // 6)], found[-1]])


def inputs_for(variant, states):
    """Return the inputs for states: what environments return, the options of the game, and Go's captured stones."""
    observation, mask = observe(states, variant)
    if variant.definition.name == "ninetka":
        return numpy_features.network_inputs(observation, mask, variant.options["turn_order"])
    inputs = {"observation": observation, "action_mask": mask}
    if variant.definition.name == "go":
        captured = [variant.game_class(states[i : i + 1]).captured() for i in range(len(states))]
        prisoners = [own - other if seat == 0 else other - own
                     for (own, other), seat in zip(captured, states["to_move"], strict=True)]  # fmt: skip
        inputs |= {
            "komi": np.float32([variant.options["komi"]]),
            "scoring": np.int64([SCORINGS.index(variant.options["scoring"])]),
            "prisoners": np.float32(prisoners),
        }
    return inputs


def assert_same_outputs(session, inputs, network, states, variant):
    names = [each.name for each in session.get_inputs()]
    found = dict(
        zip(
            [each.name for each in session.get_outputs()],
            session.run(None, {name: inputs[name] for name in names}),
            strict=True,
        )
    )
    expected = network.evaluate(states)
    assert list(found) == [name for name, array in expected._asdict().items() if array is not None]
    assert found["logits"].shape == (len(states), variant.num_actions)
    legal = observe(states, variant).action_mask == 1
    if variant.options.get("allow_resign"):
        legal[:, -1] = False  # the network never resigns
    np.testing.assert_array_equal(found["logits"] > -1e8, legal)
    nodes = found["owners"].shape[1]
    assert nodes == (9 if network.game == "ninetka" else np.prod(variant.sizes.planes[1:]))
    close(found["logits"], expected.logits[:, : variant.num_actions])
    close(found["values"], expected.values)
    close(found["owners"], expected.owners[:, :nodes])
    if expected.score is not None:
        close(found["score"], expected.score)


def close(found, expected):
    np.testing.assert_allclose(found, expected, atol=1e-4, rtol=1e-5)


def as_parameter(spec):
    return pytest.param(spec, marks=pytest.mark.exhaustive if spec in MORE_SPECS else pytest.mark.slow)


@pytest.mark.parametrize("spec", [*map(as_parameter, SPECS + MORE_SPECS)])
def test_the_outputs_are_those_of_torch(spec, sessions):
    variant = load_variant(spec)
    game, states = variant.definition.name, positions(variant)
    network = load_checkpoint(shipped_network(game))[0]
    for some in (states, states[-1:]):
        assert_same_outputs(sessions[game], inputs_for(variant, some), network, some, variant)


@pytest.mark.slow
@pytest.mark.parametrize("mixing", MIXINGS)
def test_inputs_that_a_network_does_not_use_are_left_out(mixing, tmp_path):
    network, checkpoint = saved("ninetka", tmp_path, mixing=mixing)
    done, variant = command(checkpoint, tmp_path / "net.onnx"), load_variant("ninetka:num_players=3")
    assert done.exit_code == 0, done.output
    session, states = session_of(tmp_path / "net.onnx"), positions(variant)
    names = {each.name for each in session.get_inputs()}
    assert names == {"slots", "sections", "globals", "action_mask"} | (
        {"relations"} if mixing == "relations" else set()
    )
    assert json.loads(session.get_modelmeta().custom_metadata_map["inputs"]).keys() == names
    assert_same_outputs(session, inputs_for(variant, states), network, states, variant)


class Undescribed(Network):
    """A network like those of other packages, which have neither `export_inputs` nor `from_export`."""

    export_inputs = from_export = None


@pytest.mark.slow
def test_other_networks_take_the_arrays_of_encode(tmp_path):
    network, variant = Undescribed(NetworkConfig(width=8, blocks=1)).eval(), load_variant("ninetka:num_players=4")
    export_onnx(network, tmp_path / "net.onnx")
    session, states = session_of(tmp_path / "net.onnx"), positions(variant)
    assert [each.name for each in session.get_inputs()] == ["slots", "sections", "globals", "relations", "mask"]
    assert_same_outputs(session, network.encode(states)._asdict(), network, states, variant)


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES)
def test_the_metadata_describe_the_network(game, sessions):
    found = sessions[game].get_modelmeta().custom_metadata_map
    shipped = json.loads(shipped_network(game).with_suffix(".json").read_text(encoding="utf-8"))
    assert (found["game"], found["environment"]) == (game, f"{game}_v0")
    assert (found["checkpoint"], found["sha256"]) == (shipped_network(game).stem, shipped["sha256"])
    assert found["step"] == str(shipped["step"])
    assert "relative seat r is seat (to_move + r) % n" in found["seats"]
    assert json.loads(found["options"]).keys() == load_variant(game).options.keys()
    for described, nodes in (
        (json.loads(found["inputs"]), sessions[game].get_inputs()),
        (json.loads(found["outputs"]), sessions[game].get_outputs()),
    ):
        types = {"int8": "tensor(int8)", "int64": "tensor(int64)", "float32": "tensor(float)"}
        assert [(name, types[each["dtype"]], each["shape"]) for name, each in described.items()] == [
            (node.name, node.type, node.shape) for node in nodes
        ]
        assert all(each["meaning"] for each in described.values())
    planes = json.loads(found["inputs"])["slots" if game == "ninetka" else "observation"]
    firsts = [part["first"] for part in planes["parts"]]
    ends = [part["first"] + part["number"] for part in planes["parts"]]
    assert firsts == [0, *ends[:-1]]
    assert ends[-1] == planes["shape"][2 if game == "ninetka" else 1]


@pytest.mark.slow
def test_go_refuses_other_planes(sessions):
    variant = load_variant("go:size=5,planes=alphazero")
    inputs = inputs_for(variant, variant.game_class.start(variant, seed=0).records)
    with pytest.raises(Exception, match="invalid dimensions for input: observation"):
        sessions["go"].run(None, inputs)
    options = json.loads(sessions["go"].get_modelmeta().custom_metadata_map["options"])
    assert options["planes"] == "'standard'"


ALONE = """
import sys
for name in ("torch", "numba", "ninetka_env", "ninetka_agents", "ninetka_train"):
    sys.modules[name] = None  # importing it fails
import numpy as np, onnxruntime
sys.path.insert(0, sys.argv[1])
import numpy_features
for game in ("ninetka", "go", "kropki"):
    arrays = np.load(f"{sys.argv[1]}/{game}.npz")
    expected = arrays["logits"]
    inputs = {name: arrays[name] for name in arrays if name != "logits"}
    if game == "ninetka":
        inputs = numpy_features.network_inputs(**inputs)
    logits = onnxruntime.InferenceSession(f"{sys.argv[1]}/{game}.onnx").run(["logits"], inputs)[0]
    np.testing.assert_allclose(logits, expected[:, : logits.shape[1]], atol=1e-4)
"""


@pytest.mark.slow
def test_files_need_neither_torch_nor_this_package(exported, tmp_path):
    shutil.copy(numpy_features.__file__, tmp_path)
    for game, spec in zip(GAMES, ("ninetka:num_players=3", "go:size=5", "kropki:width=6,height=5"), strict=True):
        variant = load_variant(spec)
        states = positions(variant)
        inputs = inputs_for(variant, states)
        if game == "ninetka":
            inputs = observe(states, variant)._asdict()
            inputs["observation"] = inputs.pop("observations")
        np.savez(tmp_path / game, logits=load_checkpoint(f"net:{game}")[0].evaluate(states).logits, **inputs)
        shutil.copy(exported[game], tmp_path / f"{game}.onnx")
    subprocess.run([sys.executable, "-I", "-c", ALONE, str(tmp_path)], check=True)


def test_names_of_shipped_networks():
    assert find_checkpoint("net") == find_checkpoint("net:ninetka") == shipped_network("ninetka")
    assert find_checkpoint("net", "go") == find_checkpoint("net:go") == shipped_network("go")
    for game in GAMES:
        for name, path in known_networks(game).items():
            assert find_checkpoint(f"net:{game}/{name}") == find_checkpoint(f"{game}/{name}") == path
    assert find_checkpoint("net:gen-2", "kropki") == shipped_network("kropki")
    for wrong in ("net:chess", "net:gen-3,simulations=4", "nett:go", "net:go:"):
        with pytest.raises(ValueError, match=r"cannot be read: No such file or directory; .*gen-"):
            find_checkpoint(wrong)


def test_a_path_comes_before_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, checkpoint = saved("go", tmp_path)
    assert find_checkpoint("net") == Path(checkpoint.name)


def test_errors_name_the_file(tmp_path):
    _, checkpoint = saved("go", tmp_path)
    for arguments, message in (
        ((tmp_path / "none", tmp_path / "net.onnx"), "none.json: cannot be read"),
        (("net:chess", tmp_path / "net.onnx"), "chess.json: cannot be read"),
        ((checkpoint, tmp_path / "none" / "net.onnx"), "net.onnx: cannot write: there is no folder"),
    ):
        done = command(*arguments)
        assert done.exit_code == 2
        assert message in done.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.json", "net.safetensors"]
