"""The mean of networks is the mean of their weights, and of none that differ in game or shape."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from typer.testing import CliRunner  # noqa: E402

from ninetka_agents.checkpoint import load_checkpoint, save_checkpoint  # noqa: E402
from ninetka_agents.parts import network_of  # noqa: E402
from ninetka_train.cli import app  # noqa: E402


def command(*arguments):
    return CliRunner().invoke(app, ["average", *map(str, arguments)])


def saved(folder, name, game="kropki", width=8):
    module = network_of(game)
    torch.manual_seed(ord(name))
    network = module.Network(module.NetworkConfig(width=width, blocks=1))
    return network.state_dict(), save_checkpoint(folder / name, network)


def test_weights_are_the_means_and_those_named_twice_count_twice(tmp_path):
    (one, first), (other, second) = saved(tmp_path, "a"), saved(tmp_path, "b")
    done = command(first, second, second, "--out", tmp_path / "mean")
    assert done.exit_code == 0, done.output
    assert "mean.safetensors" in done.output
    mean, about, _ = load_checkpoint(tmp_path / "mean")
    assert about.notes == {"mean_of": [str(first), str(second), str(second)]}
    for name, weight in mean.state_dict().items():
        torch.testing.assert_close(weight, (one[name] + 2 * other[name]) / 3)
    assert any((one[name] != other[name]).any() for name in one)


@pytest.mark.parametrize("others", [{"width": 16}, {"game": "go"}])
def test_networks_that_differ_have_no_mean(tmp_path, others):
    (_, first), (_, second) = saved(tmp_path, "a"), saved(tmp_path, "b", **others)
    done = command(first, second, "--out", tmp_path / "mean")
    assert done.exit_code == 2
    assert "expected networks of one game and shape" in done.output
    assert "kropki" in done.output
    assert next(map(str, others.values())) in done.output
    assert not (tmp_path / "mean.safetensors").exists()
