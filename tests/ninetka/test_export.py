"""An exported network says the same in ONNX Runtime as in torch."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
onnxruntime = pytest.importorskip("onnxruntime")

from conftest import ALL_OPTIONS, random_position  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from ninetka_agents.checkpoint import save_checkpoint  # noqa: E402
from ninetka_agents.ninetka.features import make_features  # noqa: E402
from ninetka_agents.ninetka.network import Network, NetworkConfig, as_inputs  # noqa: E402
from ninetka_train.cli import app  # noqa: E402


def command(*arguments):
    return CliRunner().invoke(app, ["export", *map(str, arguments)])


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return Network(NetworkConfig(width=8, blocks=1)).eval()


@pytest.fixture(scope="module")
def checkpoint(network, tmp_path_factory):
    return save_checkpoint(tmp_path_factory.mktemp("checkpoint") / "net", network)


def test_an_exported_network_gives_the_same_outputs(network, checkpoint, tmp_path):
    done = command(checkpoint, tmp_path / "net.onnx")
    assert done.exit_code == 0, done.output
    session = onnxruntime.InferenceSession(str(tmp_path / "net.onnx"), providers=["CPUExecutionProvider"])
    assert [each.name for each in session.get_inputs()] == INPUTS
    positions = [random_position(options, seed, 7 * seed % 79) for seed, options in enumerate(ALL_OPTIONS)]
    records = np.concatenate([game.records for game in positions if not game.is_over])
    for count in (1, 2, len(records)):
        features = make_features(records[:count])
        with torch.inference_mode():
            outputs = network(as_inputs(features))
        expected = (outputs.logits, outputs.values, outputs.owner_logits.softmax(-1))
        found = session.run(OUTPUTS, dict(zip(INPUTS, features, strict=True)))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other.numpy(), atol=1e-4)


def test_what_is_wrong_is_named(checkpoint, tmp_path):
    for arguments, message in (
        ((tmp_path / "none", tmp_path / "net.onnx"), "none.json: cannot be read"),
        ((checkpoint, tmp_path / "none" / "net.onnx"), "net.onnx: cannot write: No such file"),
    ):
        done = command(*arguments)
        assert done.exit_code == 2
        assert message in done.output
    assert list(tmp_path.iterdir()) == []
