"""A training run leaves a whole folder behind, and refuses what it cannot do by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from agents import make_agent
from ninetka_env.game import Game
from train.cli import app

ROOT = Path(__file__).resolve().parent.parent
SMALL = {
    "alphazero": [f"alphazero.{key}" for key in ("rounds=1", "games=2", "playouts=8", "steps=2", "minibatch=32")],
    "ppo": ["ppo.moves=64", "ppo.games=4", "ppo.plies=16", "ppo.minibatch=32", "ppo.microbatch=32"],
}


def train(folder, *settings, config=ROOT / "configs" / "quick.yaml", options=("--games", "2")):
    arguments = [argument for setting in settings for argument in ("--set", setting)]
    return CliRunner().invoke(app, ["train", "--config", str(config), "--runs", str(folder), *options, *arguments])


@pytest.mark.parametrize("config", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda path: path.stem)
@pytest.mark.parametrize("algorithm", SMALL)
def test_every_config_starts_and_leaves_a_whole_run(tmp_path, config, algorithm):
    settings = (f"algorithm={algorithm}", "name=small", "threads=1", *SMALL[algorithm])
    done = train(tmp_path, *settings, config=config, options=("--games", "0"))
    assert done.exit_code == 0, done.output
    folder = tmp_path / "small"
    assert yaml.safe_load((folder / "config.yaml").read_text())["algorithm"] == algorithm
    assert all(json.loads(line)["seconds"] > 0 for line in (folder / "log.jsonl").read_text().splitlines())
    (checkpoint,) = folder.glob("*.safetensors")
    game = Game.new(4)
    assert make_agent(f"net:{checkpoint}").act(game.records, None)[0] in game.legal_actions()


def test_the_benchmark_at_the_end_is_printed_and_kept(tmp_path):
    done = train(tmp_path, "threads=1", *SMALL["alphazero"])
    assert done.exit_code == 0, done.output
    results = json.loads((tmp_path / "quick" / "evaluation.json").read_text())
    assert [result["settings"]["agents"][1] for result in results[:3]] == ["random", "maxn", "mcts:simulations=200"]


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        (("alphazero.round=1",), (), "rounds"),
        (("algorithm=ppo", "name=none"), ("--resume",), "no run to resume"),
    ],
)
def test_bad_input_is_named(tmp_path, settings, options, message):
    done = train(tmp_path, *settings, options=options)
    assert done.exit_code == 2
    assert message in done.output


def test_a_run_is_never_written_over(tmp_path):
    (tmp_path / "quick").mkdir()
    done = train(tmp_path)
    assert done.exit_code == 2
    assert "exists" in done.output
