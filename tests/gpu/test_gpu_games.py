"""Test games on a GPU without a GPU: in numba's simulator, against the compiled games of the CPU, bit for bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from ninetka_agents.plugins import network_of
from ninetka_env import ninetka_v0
from ninetka_env.api.vector import GameVectorEnv, make_vector_env
from ninetka_env.core.registry import load_variant
from ninetka_env.gpu.device import find_device
from ninetka_env.gpu.vector import DeviceVectorEnv

SIMULATOR = {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"}
INPUTS_EVERY = 9
"""Number of plies between positions whose inputs for a network are recorded: all phases of a game are among them."""
ARRAYS = ("observations", "action_mask", "to_move", "rewards", "terminated", "final_scores", "final_winner")

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="needs compiled games to compare with")


def record(path: Path, spec: str, reward: str, num_envs: int, steps: int) -> int:
    """Play random games on the CPU, write everything to a file, and return the number of finished games."""
    env = GameVectorEnv(num_envs, load_variant(spec), reward)
    env.reset(seed=7)
    found: dict[str, list[object]] = {name: [] for name in (*ARRAYS, "states", "actions")}
    network, ended = network_of(load_variant(spec).definition.name).Network(), 0
    for step in range(steps):
        for name in ARRAYS:
            found[name].append(getattr(env, name).copy())
        if step % INPUTS_EVERY == 0:
            for name, array in network.encode(env.games)._asdict().items():
                found.setdefault(f"inputs.{name}", []).append(array)
        found["states"].append(env.games.copy().view(np.uint8).reshape(num_envs, -1))
        found["actions"].append(actions := env.sample_legal())
        if step + 1 < steps:
            env.step(actions)
            ended += int(env.terminated.sum())
    about = {"spec": spec, "reward": reward, "seed": 7, "inputs_every": INPUTS_EVERY}
    np.savez(path, about=json.dumps(about), **found)
    return ended


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "reward", "num_envs", "steps"),
    [
        ("ninetka", "win", 2, 90),
        ("ninetka:num_players=3,neutral_placement=random,turn_order=continue", "score", 2, 80),
        ("ninetka:num_players=4,auto_pass=False", "win", 2, 100),
        ("go:size=5,max_plies=30,komi=0.5", "score", 3, 65),
        ("go:size=5,max_plies=30,ko=situational,scoring=territory,planes=alphazero,allow_resign=True", "win", 3, 65),
        ("kropki:width=6,height=5", "score", 3, 60),
        ("kropki:width=6,height=6,territory=immediate,start=cross", "win", 3, 60),
    ],
)
def test_games_in_the_simulator_are_those_of_the_cpu(spec, reward, num_envs, steps, tmp_path):
    assert record(tmp_path / "games.npz", spec, reward, num_envs, steps) >= num_envs
    command = [sys.executable, str(Path(__file__).with_name("simulate.py")), str(tmp_path / "games.npz")]
    done = subprocess.run(command, env=os.environ | SIMULATOR, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["simulated.py", "simulated_ppo.py"])
def test_the_environment_and_training_in_the_simulator(name):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", str(Path(__file__).with_name(name))]
    done = subprocess.run(command, env=os.environ | SIMULATOR, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_missing_gpu_is_reported():
    for make in (DeviceVectorEnv, make_vector_env):
        with pytest.raises(RuntimeError, match=r"^device='cuda': PyTorch finds 0 GPUs on this machine$"):
            make(2, load_variant("ninetka"), device="cuda")


@pytest.mark.parametrize(("version", "package"), [("13.0", "cu13"), ("12.8", "cu12")])
def test_a_missing_numba_cuda_is_reported(version, package, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.version, "cuda", version)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match=rf'need numba-cuda: pip install "numba-cuda\[{package}\]"$'):
        find_device("cuda")


def test_missing_pytorch_is_reported(monkeypatch):
    monkeypatch.delitem(sys.modules, "ninetka_env.gpu.vector")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"^device='cuda:1': games on a GPU need PyTorch: pip install"):
        make_vector_env(2, load_variant("ninetka"), device="cuda:1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "cuda", "num_threads": 2}, "num_threads=2: expected None with device='cuda'"),
        ({"device": "cuda", "copy": True}, "copy=True: expected False with device='cuda'"),
        ({"device": "gpu"}, "device='gpu': expected 'cuda'"),
        ({"device": None}, "device=None: expected 'cuda'"),
        ({"validate": "yes"}, "validate='yes': "),
    ],
)
def test_options_without_a_meaning_on_the_device_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ninetka_v0.vector_env(2, **options)


def test_validate_has_no_effect_on_the_cpu():
    assert isinstance(ninetka_v0.vector_env(2, validate=True, device="cpu"), GameVectorEnv)


@pytest.mark.exhaustive
def test_the_benchmark_finds_no_differences():
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.gpu"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, env=os.environ | SIMULATOR, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["ours"] for row in rows if row["target"] == 0] == [0] * 7
    assert all(row["ours"] > 0 for row in rows if row["target"] != 0)
