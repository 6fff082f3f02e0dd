"""Test training runs: the files in a run's folder, resuming, and error messages."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
import yaml
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from typer.testing import CliRunner

from ninetka_agents import make_agent
from ninetka_agents.checkpoint import load_checkpoint
from ninetka_agents.plugins import games_with_networks
from ninetka_env.api.record_files import read_records
from ninetka_train import run as module
from ninetka_train.cli import app
from ninetka_train.learning.config import load_config
from ninetka_train.learning.logger import Journal

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SMALL = {
    "alphazero": [f"alphazero.{key}" for key in ("rounds=1", "games=2", "playouts=8", "steps=2", "minibatch=32")],
    "ppo": ["ppo.moves=64", "ppo.games=8", "ppo.plies=8", "ppo.minibatch=32", "ppo.microbatch=32"],
}


TEACHER = "mcts:exploration=0.7,simulations=8"


def train(folder, *settings, config=ROOT / "configs" / "quick.yaml", options=("--games", "2")):
    arguments = [argument for setting in settings for argument in ("--set", setting)]
    return CliRunner().invoke(app, ["train", "--config", str(config), "--runs", str(folder), *options, *arguments])


CONFIGS = [
    path
    for path in sorted([*ROOT.glob("configs/*.yaml"), *ROOT.glob("networks/*/*.yaml")])
    if re.search(r"^game:\s+(?:- )?(\w+)|\Z", path.read_text(encoding="utf-8"), re.M)[1]
    in (None, *games_with_networks())
]


CONFIGS_TO_TEST = ("quick", "quick-go", "quick-kropki", "ppo", "placements", "gen-6-go", "maxn-exploiter")
"""Configurations for first runs, and configurations with unique settings. Tests of all others are exhaustive."""


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(path, id=path.stem, marks=() if path.stem in CONFIGS_TO_TEST else pytest.mark.exhaustive)
        for path in CONFIGS
    ],
)
@pytest.mark.parametrize("algorithm", SMALL)
def test_every_config_starts_and_leaves_a_whole_run(tmp_path, config, algorithm):
    settings = (f"algorithm={algorithm}", "name=small", "threads=1", *SMALL[algorithm])
    done = train(tmp_path, *settings, config=config, options=("--games", "0"))
    assert done.exit_code == 0, done.output
    folder = tmp_path / "small"
    assert yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))["algorithm"] == algorithm
    assert all(
        json.loads(line)["seconds"] > 0 for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    )
    (checkpoint,) = folder.glob("*.safetensors")
    variant = load_config(config).variants[-1]
    game = variant.game_class.start(variant)
    agent = make_agent(f"net:{checkpoint}", variant.spec)
    assert agent.act(game.records, None)[0] in game.legal_actions()


def test_a_run_from_given_weights_is_resumed_by_its_own_configuration(tmp_path):
    """The saved configuration must have the network shape of the given weights, not the default shape."""
    settings = ("name=small", "algorithm=alphazero", "start_from=gen-6", "threads=1", *SMALL["alphazero"])
    (tmp_path / "mine.yaml").write_text("seed: 1\n", encoding="utf-8")
    done = train(tmp_path, *settings, config=tmp_path / "mine.yaml", options=("--games", "0"))
    assert done.exit_code == 0, done.output
    again = train(tmp_path, config=tmp_path / "small" / "config.yaml", options=("--games", "0", "--resume"))
    assert again.exit_code == 0, again.output


def test_the_final_benchmark_is_printed_and_saved(tmp_path):
    done = train(tmp_path, "threads=1", *SMALL["alphazero"])
    assert done.exit_code == 0, done.output
    folder = tmp_path / "quick"
    pairs = [
        result["settings"]["agents"] for result in json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))
    ]
    assert pairs == [
        ["net", "random"], ["net", "maxn"], ["net", "mcts:simulations=200"],
        ["net places, maxn moves", "maxn"], ["maxn places, net moves", "maxn"],
        [TEACHER, "random"], [TEACHER, "maxn"], [TEACHER, "mcts:simulations=200"],
        ["maxn", "random"], ["maxn", "mcts:simulations=200"],
    ]  # fmt: skip
    assert len(list(read_records(folder / "games.txt"))) == 2 * len(pairs)
    assert "what each phase is worth" in done.output
    assert_documented(folder)
    assert f"teacher: {TEACHER}" in " ".join(done.output.split())
    assert "100%: games of the teacher  policy_loss " in done.stderr
    assert "imitating mcts with 8 playouts (1 round of its games)" in done.stderr
    assert (folder / "report.html").exists()
    assert (folder / "report.png").exists()
    assert (folder / "report-dark.png").exists()
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    again = train(tmp_path, "threads=1", *SMALL["alphazero"], options=("--resume",))
    assert again.exit_code == 0, again.output
    assert again.stdout == done.stdout
    assert before.keys() == {path for path in folder.iterdir() if path.is_file()}
    assert all(path.read_bytes() == text for path, text in before.items() if path.suffix != ".png")


@pytest.fixture
def few_games(monkeypatch):
    few = replace(module.plugins_of("ninetka"), evaluation_opponents=("random", "maxn:depth=1"))
    monkeypatch.setattr("ninetka_train.run.plugins_of", lambda game: few)


PPO = ("algorithm=ppo", "name=ppo", "threads=1", "checkpoint_every=2", "curve_games=2", *SMALL["ppo"], "ppo.moves=384")
"""Settings of a run with six rollouts."""


def logged_values(folder, name):
    """Return the lines of a JSON lines file without times."""
    lines = [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
    times = ("seconds", "evaluation_seconds", "share_of_play", "moves_per_second", "games_per_second")
    times += ("samples_per_second",)
    assert [line["seconds"] for line in lines] == sorted(line["seconds"] for line in lines)
    return [{key: value for key, value in line.items() if key not in times} for line in lines]


def assert_documented(folder):
    """Check that the guide to training explains every number of the log."""
    page = (ROOT / "docs" / "guides" / "training.md").read_text(encoding="utf-8")
    names = {name for line in logged_values(folder, "log.jsonl") for name in line}
    assert not [name for name in names if f"`{name}`" not in page]


def best_step(folder):
    """Return the step with the most wins in the learning curve of a run, the latest of equal ones."""
    wins = {}
    for line in logged_values(folder, "curve.jsonl"):
        wins[line["step"]] = wins.get(line["step"], 0) + line["wins"]
    return max(reversed(wins), key=wins.get)


def test_an_interrupted_run_continues_and_logs_the_same(tmp_path, few_games, monkeypatch):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert train(whole, *PPO).exit_code == 0
    log = Journal.log

    def interrupted(journal, step, total, numbers):
        if step > 0.75 * total:
            raise KeyboardInterrupt
        return log(journal, step, total, numbers)

    monkeypatch.setattr(Journal, "log", interrupted)
    stopped = train(broken, *PPO)
    assert stopped.exit_code == 130
    assert "--resume" in stopped.output
    monkeypatch.setattr(Journal, "log", log)
    with (broken / "ppo" / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"cut sho')
    (broken / "ppo" / "games").mkdir()
    for leftover in (broken / "ppo" / ".step.1.part", broken / "ppo" / "games" / ".round-000001.npz.1.part"):
        leftover.write_text("left by a process that was killed", encoding="utf-8")
    done = train(broken, *PPO, options=("--games", "2", "--resume"))
    assert done.exit_code == 0, done.output
    for name in ("log.jsonl", "curve.jsonl"):
        assert logged_values(broken / "ppo", name) == logged_values(whole / "ppo", name)
    assert [line["progress"] for line in logged_values(whole / "ppo", "log.jsonl")] == [
        round(n / 6, 6) for n in range(1, 7)
    ]
    measured = [line["progress"] for line in logged_values(whole / "ppo", "curve.jsonl")]
    assert measured == [round(n / 6, 6) for n in range(1, 7) for _ in range(2)]
    assert not list((broken / "ppo").rglob(".*"))
    events = EventAccumulator(str(broken / "ppo" / "tensorboard")).Reload()
    assert [event.step for event in events.Scalars("training/policy_loss")] == list(range(1, 7))
    assert [event.step for event in events.Scalars("wins/2 players, random")] == list(range(1, 7))
    assert_documented(whole / "ppo")
    best = [load_checkpoint(folder / "ppo" / "best") for folder in (whole, broken)]
    assert best[0][1].step == best[1][1].step == best_step(whole / "ppo")
    for name, tensor in best[0][0].state_dict().items():
        assert torch.equal(tensor, best[1][0].state_dict()[name])


def test_a_run_that_is_stopped_while_it_is_measured_repeats_the_measurement(tmp_path, few_games, monkeypatch):
    measure = module._measure

    def stopped(state, config, journal, player):
        if state.progress > 0.75:
            raise KeyboardInterrupt
        measure(state, config, journal, player)

    monkeypatch.setattr(module, "_measure", stopped)
    settings = [one for one in PPO if not one.startswith("checkpoint_every")]
    assert train(tmp_path, *settings, "checkpoint_every=1").exit_code == 130
    monkeypatch.setattr(module, "_measure", measure)
    assert train(tmp_path, *settings, "checkpoint_every=1", options=("--games", "2", "--resume")).exit_code == 0
    assert [line["progress"] for line in logged_values(tmp_path / "ppo", "log.jsonl")] == [
        round(n / 6, 6) for n in range(1, 7)
    ]
    measured = [line["progress"] for line in logged_values(tmp_path / "ppo", "curve.jsonl")]
    assert measured == [round(n / 6, 6) for n in range(1, 7) for _ in range(2)]


@pytest.mark.parametrize("algorithm", ["ppo", "alphazero"])
def test_weights_that_are_not_finite_end_the_run_and_are_not_saved(tmp_path, algorithm):
    settings = (f"algorithm={algorithm}", "name=run", "threads=1", "checkpoint_every=1", *SMALL[algorithm])
    done = train(tmp_path, *settings, f"{algorithm}.learning_rate=1.0e+30", options=("--games", "0"))
    assert done.exit_code == 2
    assert "not finite any more: lower learning_rate" in done.output
    assert not list((tmp_path / "run").glob("step-*"))


def test_a_league_with_a_typo_is_reported_before_there_is_a_folder(tmp_path):
    done = train(tmp_path, *PPO, "ppo.league_share=0.5", "ppo.league_agents=[maxn,missing]")
    assert done.exit_code == 2
    assert "unknown agent 'missing'" in done.output
    assert not (tmp_path / "ppo").exists()


def test_folder_names_are_printed_unchanged(tmp_path):
    done = train(tmp_path / "a[/b]", *PPO, options=("--games", "0"))
    assert done.exit_code == 0
    assert "a[/b]/ppo: finished; its agent spec is net:" in done.output


def test_a_run_that_is_killed_after_its_first_round_continues(tmp_path, monkeypatch):
    log, rounds = Journal.log, []

    def killed(journal, step, total, numbers):
        line = log(journal, step, total, numbers)
        rounds.append(step)
        if len(rounds) == 1:
            raise KeyboardInterrupt
        return line

    monkeypatch.setattr(Journal, "log", killed)
    settings = ("threads=1", *SMALL["alphazero"], "alphazero.rounds=2")
    assert train(tmp_path, *settings, options=("--games", "0")).exit_code == 130
    assert train(tmp_path, *settings, options=("--games", "0", "--resume")).exit_code == 0
    assert rounds == [1, 1, 2]  # round 1 is reported again, because its line may be incomplete, but not learned again


def test_a_folder_with_only_a_partial_file_of_a_killed_process_is_free(tmp_path):
    (tmp_path / "quick").mkdir()
    (tmp_path / "quick" / ".config.yaml.1.part").write_text("na", encoding="utf-8")
    assert train(tmp_path, *SMALL["alphazero"], "threads=1", options=("--games", "0")).exit_code == 0
    assert not list((tmp_path / "quick").glob(".*"))


@pytest.mark.parametrize("games", ["1000000000000000000", "99999999999999", "9" * 400])
def test_absurd_games_are_refused_before_training(tmp_path, games):
    done = train(tmp_path, *SMALL["alphazero"], options=("--games", games))
    assert done.exit_code == 2
    assert "num_games=" in done.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [".", "..", "a/b", ""])
def test_a_run_needs_its_own_folder(tmp_path, name):
    done = train(tmp_path, f"name='{name}'")
    assert done.exit_code == 2
    assert f"name={name!r}: expected up to 100 of" in done.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "change",
    [
        lambda about: about["notes"].pop("rng"),
        lambda about: about["notes"].update(positions="x", rounds="x", rollouts=[]),
    ],
)
def test_a_checkpoint_that_lacks_what_its_run_needs_is_named(tmp_path, change):
    settings = (*SMALL["alphazero"], "threads=1")
    assert train(tmp_path, *settings, options=("--games", "0")).exit_code == 0
    (path,) = (tmp_path / "quick").glob("step-*.json")
    about = json.loads(path.read_text(encoding="utf-8"))
    change(about)
    path.write_text(json.dumps(about), encoding="utf-8")
    done = train(tmp_path, *settings, options=("--games", "0", "--resume"))
    assert done.exit_code == 2
    assert "quick: cannot continue from its newest checkpoint: " in done.output


def test_a_full_disk_ends_training_and_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    fsync, calls = os.fsync, iter(range(100))

    def full(descriptor):
        if next(calls) >= 6:
            raise OSError(28, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    done = train(tmp_path, *PPO, options=("--games", "0"))
    assert done.exit_code == 1
    assert "step-000000000256.json: cannot write: No space left on device" in done.output
    assert "--resume" in done.output
    assert "Traceback" not in done.output
    names = {path.name for path in (tmp_path / "ppo").glob("step-*")}
    assert names == {"step-000000000128.json", "step-000000000128.safetensors"}
    monkeypatch.setattr(os, "fsync", fsync)
    assert train(tmp_path, *PPO, options=("--games", "0", "--resume")).exit_code == 0
    assert len(logged_values(tmp_path / "ppo", "log.jsonl")) == 6


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("name", ["log.jsonl", "curve.jsonl"])
def test_a_log_that_cannot_be_written_ends_training_by_name(tmp_path, few_games, monkeypatch, name):
    write = module._write_config

    def with_a_full_file(config, folder):
        write(config, folder)
        (folder / name).symlink_to("/dev/full")

    monkeypatch.setattr("ninetka_train.run._write_config", with_a_full_file)
    monkeypatch.setattr("ninetka_train.learning.logger._drop_entries_from", lambda path, step, total: [])
    done = train(tmp_path, *PPO)
    assert done.exit_code == 1
    assert f"{name}: cannot write: No space left on device" in done.output


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = train(tmp_path / "file", *PPO)
    assert done.exit_code == 1
    assert f"{tmp_path / 'file' / 'ppo'}: Not a directory" in done.output


def test_a_run_is_resumed_with_its_own_settings_only(tmp_path):
    config = ROOT / "configs" / "ppo.yaml"
    assert train(tmp_path, *PPO, config=config, options=("--games", "0")).exit_code == 0
    done = train(tmp_path, *PPO, "ppo.epochs=7", "seed=3", config=config, options=("--games", "0", "--resume"))
    assert done.exit_code == 2
    assert (
        "cannot be resumed with other settings than it was started with: seed=0 (now 3), ppo.epochs=2 (now 7); "
        "allowed are other values of threads, checkpoint_every, keep_checkpoints, checkpoint_minutes, curve_games "
        "and ppo.moves above 384, which is already done" in done.output
    )


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        (("alphazero.round=1",), (), "rounds"),
    ],
)
def test_bad_input_is_named(tmp_path, settings, options, message):
    done = train(tmp_path, *settings, options=options)
    assert done.exit_code == 2
    assert message in done.output


def test_a_run_is_never_written_over(tmp_path):
    (tmp_path / "quick").mkdir()
    (tmp_path / "quick" / "something").write_text("", encoding="utf-8")
    done = train(tmp_path)
    assert done.exit_code == 2
    assert "exists" in done.output
    assert "learning" not in done.output
