"""Test that an exported network has the same outputs in ONNX Runtime as in torch, for any batch and board size."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("onnxruntime")

import onnxruntime
import torch
from ninetka.positions import ALL_OPTIONS
from typer.testing import CliRunner

from ninetka_agents.checkpoint import save_checkpoint
from ninetka_agents.export import OUTPUT_NAMES
from ninetka_agents.plugins import network_of
from ninetka_env.core.registry import load_variant
from ninetka_train.cli import app

pytestmark = pytest.mark.slow

SPECS = {
    "ninetka": [load_variant("ninetka", **options._asdict()).spec for options in ALL_OPTIONS[::4]],
    "go": ["go:size=5", "go:size=9,komi=6.5"],
    "kropki": ["kropki", "kropki:width=6,height=5,territory=immediate", "kropki:width=20,height=20"],
}


def command(*arguments):
    return CliRunner().invoke(app, ["export", *map(str, arguments)])


def saved(game, folder):
    module = network_of(game)
    torch.manual_seed(0)
    network = module.Network(module.NetworkConfig(width=8, blocks=3 if game != "ninetka" else 1)).eval()
    return network, save_checkpoint(folder / "net", network)


def positions(spec):
    """Return about six states of a random game, (N,), equally spaced and before the end of the game."""
    variant, rng, found = load_variant(spec), np.random.default_rng(0), []
    game = variant.game_class.start(variant, seed=0)
    while not game.is_over:
        found.append(game.records.copy())
        game.play(int(rng.choice(game.legal_actions())))
    return np.concatenate(found[:: len(found) // 6])


@pytest.mark.parametrize("game", SPECS)
def test_an_exported_network_gives_the_same_outputs(game, tmp_path):
    network, checkpoint = saved(game, tmp_path)
    done = command(checkpoint, tmp_path / "net.onnx")
    assert done.exit_code == 0, done.output
    assert done.stdout == f"wrote {tmp_path / 'net.onnx'}\n"
    session = onnxruntime.InferenceSession(str(tmp_path / "net.onnx"), providers=["CPUExecutionProvider"])
    for spec in SPECS[game]:
        records = positions(spec)
        for count in (1, len(records)):
            inputs = network.encode(records[:count])
            with torch.inference_mode():
                outputs_torch = network.evaluate(records[:count])
            expected = [
                outputs_torch.logits,
                outputs_torch.values,
                outputs_torch.owner_logits.softmax(-1),
                outputs_torch.score,
            ]
            outputs = OUTPUT_NAMES[: 4 - (outputs_torch.score is None)]
            assert [each.name for each in session.get_outputs()] == list(outputs)
            found = session.run(None, inputs._asdict())
            for one, other in zip(found, expected[: len(outputs)], strict=True):
                np.testing.assert_allclose(one, other.numpy(), atol=1e-4)


def test_errors_name_the_file(tmp_path):
    _, checkpoint = saved("go", tmp_path)
    for arguments, message in (
        ((tmp_path / "none", tmp_path / "net.onnx"), "none.json: cannot be read"),
        ((checkpoint, tmp_path / "none" / "net.onnx"), "net.onnx: cannot write: No such file"),
    ):
        done = command(*arguments)
        assert done.exit_code == 2
        assert message in done.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.json", "net.safetensors"]
