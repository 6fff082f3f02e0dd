"""Test `ninetka average`: means of weights, softened policies, and networks of different shapes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from typer.testing import CliRunner

from ninetka_agents.averaging import mean_network, soften_policy
from ninetka_agents.checkpoint import load_checkpoint, save_checkpoint
from ninetka_agents.outputs import MASKED, forward_states
from ninetka_agents.plugins import network_of
from ninetka_env.core.registry import load_variant
from ninetka_train.cli import app


def command(*arguments):
    return CliRunner().invoke(app, ["average", *map(str, arguments)])


def saved(folder, name, game="kropki", width=8):
    module = network_of(game)
    torch.manual_seed(ord(name))
    network = module.Network(module.NetworkConfig(width=width, blocks=1))
    return network.state_dict(), save_checkpoint(folder / name, network)


def test_weights_are_means_in_which_a_network_named_twice_counts_twice(tmp_path):
    (one, first), (other, second) = saved(tmp_path, "a"), saved(tmp_path, "b")
    done = command(first, second, second, "--out", tmp_path / "mean")
    assert done.exit_code == 0, done.output
    assert done.stdout == f"wrote {tmp_path / 'mean.safetensors'} and mean.json\n"
    assert "mean.safetensors" in done.output
    mean, about, _ = load_checkpoint(tmp_path / "mean")
    assert about.notes == {"mean_of": [str(first), str(second), str(second)], "policy_temperature": 1.0}
    for name, weight in mean.state_dict().items():
        torch.testing.assert_close(weight, (one[name] + 2 * other[name]) / 3)
    assert any((one[name] != other[name]).any() for name in one)


@pytest.mark.parametrize("game", ["ninetka", "go", "kropki"])
def test_a_temperature_divides_the_logits_of_every_legal_action_and_changes_nothing_else(tmp_path, game):
    _, path = saved(tmp_path, "a", game)
    done = command(path, "--policy-temperature", 2.5, "--out", tmp_path / "soft")
    assert done.exit_code == 0, done.output
    games = np.concatenate([load_variant(game).game_class.start(load_variant(game), seed).records for seed in range(4)])
    sharp, soft = (forward_states(load_checkpoint(one)[0], games) for one in (path, tmp_path / "soft"))
    legal = sharp.logits > MASKED / 2
    assert ((soft.logits > MASKED / 2) == legal).all()
    assert sharp.logits[legal].std() > 1e-3
    torch.testing.assert_close(soft.logits[legal] * 2.5, sharp.logits[legal])
    torch.testing.assert_close(soft[1:], sharp[1:])


def test_the_shipped_mean_matches_its_notes():
    shipped, about, _ = load_checkpoint("gen-7")
    assert about.notes == {"mean_of": ["gen-6", "maxn-exploiter"], "policy_temperature": 2.0}
    made = mean_network([load_checkpoint(name)[0] for name in about.notes["mean_of"]])
    soften_policy(made, about.notes["policy_temperature"])
    for name, weight in made.state_dict().items():
        assert torch.equal(weight, shipped.state_dict()[name]), name


@pytest.mark.parametrize("temperature", ["0", "-1", "nan", "inf", "101"])
def test_temperatures_out_of_range_write_nothing(tmp_path, temperature):
    _, path = saved(tmp_path, "a")
    done = command(path, "--policy-temperature", temperature, "--out", tmp_path / "soft")
    assert done.exit_code == 2
    assert "expected a number from 0.01 to 100" in done.output
    assert not (tmp_path / "soft.safetensors").exists()


@pytest.mark.parametrize("others", [{"width": 16}, {"game": "go"}])
def test_networks_of_different_shapes_are_rejected(tmp_path, others):
    (_, first), (_, second) = saved(tmp_path, "a"), saved(tmp_path, "b", **others)
    done = command(first, second, "--out", tmp_path / "mean")
    assert done.exit_code == 2
    assert "expected networks of one game and shape" in done.output
    assert "kropki" in done.output
    assert next(map(str, others.values())) in done.output
    assert not (tmp_path / "mean.safetensors").exists()
