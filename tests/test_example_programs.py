"""Run the programs in `examples/` for a few seconds."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ninetka_agents import make_agent
from ninetka_env.core.registry import load_variant

torch = pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parent.parent
TINY_PPO = (
    "--updates 2 --num-envs 8 --num-steps 8 --past-every 1 --past-share 0.5 --minibatch 32 --width 8 --eval-games 6"
)
TINY_ALPHAZERO = (
    "--iterations 2 --num-envs 8 --num-steps 40 --window 60 --simulations 4 --minibatch 32 --width 8 --eval-games 6"
)
PPO_GAMES = ["ninetka:num_players=3,auto_pass=False", "kropki:width=5,height=4"]
SMALL_KROPKI = "kropki:width=4,height=4,territory=immediate"


def run(program, options, folder):
    """Run a program in a folder; return its output and the file that it saved."""
    packages = [str(ROOT / part) for part in ("", "agents", "train")] + [os.environ.get("PYTHONPATH", "")]
    own = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, packages))}
    command = [sys.executable, ROOT / "examples" / program, *options.split(), "--threads", "1", "--save", "net.pt"]
    done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout, torch.load(folder / "net.pt", weights_only=True)


def play_saved(program, game, folder, monkeypatch):
    """Check that the saved network, loaded as an agent of a spec, plays legal actions."""
    monkeypatch.syspath_prepend(ROOT / "examples")
    agent = make_agent(f"python:{program}:load_agent,path={folder / 'net.pt'}")
    start = load_variant(game).game_class.start(load_variant(game), 0)
    for action in agent.act(np.repeat(start.records, 2), np.random.default_rng(0)):
        assert start.legal_mask()[action]


def win_rates(output):
    """Return (share, low, high) in percent at the start and at the end."""
    found = re.findall(r"^(start|end): ([\d.]+)% \[([\d.]+)%, ([\d.]+)%\] against ", output, re.M)
    assert [when for when, *_ in found] == ["start", "end"]
    return [tuple(map(float, numbers)) for _, *numbers in found]


@pytest.mark.slow
@pytest.mark.parametrize("game", [*PPO_GAMES, pytest.param("go:size=5", marks=pytest.mark.exhaustive)])
def test_ppo_plays_learns_and_saves(game, tmp_path, monkeypatch):
    output, saved = run("ppo_selfplay.py", f"--game {game} --opponent random {TINY_PPO}", tmp_path)
    assert len(win_rates(output)) == 2
    assert "2 updates, 128 plies" in output
    assert saved["game"] == game
    assert all(weights.isfinite().all() for weights in saved["weights"].values())
    play_saved("ppo_selfplay", game, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("game", ["ninetka:num_players=3", pytest.param(SMALL_KROPKI, marks=pytest.mark.exhaustive)])
def test_alphazero_plays_learns_and_saves(game, tmp_path, monkeypatch):
    output, saved = run("alphazero.py", f"--game {game} --opponent random {TINY_ALPHAZERO}", tmp_path)
    assert len(win_rates(output)) == 2
    assert "2 iterations, 640 plies" in output
    assert all(weights.isfinite().all() for weights in saved["weights"].values())
    play_saved("alphazero", game, tmp_path, monkeypatch)


@pytest.mark.parametrize("program", ["ppo_selfplay", "alphazero"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--game chess", "unknown game 'chess'"),
        ("--game go:size=1", "expected an integer 2..19"),
        ("--opponent maxm", "unknown agent 'maxm'"),
        ("--minutes nan", "argument --minutes: nan: expected a number from 1e-09 to 1e+06"),
        ("--minutes -1", "argument --minutes: -1: expected a number from 1e-09"),
        ("--num-envs 0", "argument --num-envs: 0: expected a number from 1 to 1e+06"),
        ("--num-envs 1.5", "argument --num-envs: invalid int value: '1.5'"),
        ("--seed -1", "argument --seed: -1: expected a number from 0"),
        ("--seed 99999999999999999999", "argument --seed: 99999999999999999999: expected a number from 0"),
        ("--save missing/net.pt", "argument --save: missing/net.pt: expected a file in a folder that exists"),
        ("--save .", "argument --save: .: expected a file in a folder that exists"),
    ],
)
def test_wrong_options_are_refused_before_training(program, options, message, monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "examples")
    monkeypatch.setattr(sys, "argv", [program, *options.split()])
    with pytest.raises(SystemExit) as caught:
        importlib.import_module(program).parse_arguments()
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("program", "options"),
    [
        ("ppo_selfplay.py", "--updates 24 --num-envs 64 --num-steps 16 --minibatch 256"),
        ("alphazero.py", "--iterations 24 --num-envs 32 --num-steps 16 --minibatch 256"),
    ],
)
def test_a_minute_of_self_play_improves_the_network(program, options, tmp_path):
    game = "--game kropki:width=6,height=5,territory=immediate --opponent random --eval-games 300"
    before, after = win_rates(run(program, f"{game} {options} --seed 1", tmp_path)[0])
    assert after[1] > before[2]  # the intervals do not overlap
