"""Test that two processes started by torchrun learn the same as one process."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

pytest.importorskip("torch")

from ninetka_agents.checkpoint import load_checkpoint
from ninetka_train import run as module
from ninetka_train.learning.config import check_config

pytestmark = pytest.mark.slow

SETTINGS = {
    "rounds": 3, "playout_rounds": 3, "teacher": "mcts", "games": 5, "task_games": 2, "playouts": 8, "window": 2,
    "steps": 4, "minibatch": 30, "microbatch": 12,
}  # fmt: skip
"""Three tasks and three microbatches of unequal sizes, so that the two processes get unequal shares of both."""
VALUES = {
    "name": "small", "game": "go:size=5", "algorithm": "alphazero", "threads": 1, "device": "cpu", "bf16": False,
    "checkpoint_every": 1, "network": {"width": 8, "blocks": 1}, "alphazero": SETTINGS,
}  # fmt: skip
LOSS_NAMES = ("policy_loss", "value_loss", "owner_loss", "score_loss", "agreement")


def torchrun(folder: Path, *options: str, **changes: object) -> subprocess.CompletedProcess[str]:
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump(VALUES | changes), encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "ninetka_train", "train", "--config", str(path), "--runs", str(folder), "--games", "0", *options]
    return subprocess.run(command, capture_output=True, text=True)


def log_of(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]


def test_two_processes_continue_a_run_as_one_would(tmp_path):
    config = check_config(VALUES)
    module.run(config, tmp_path / "alone", games=0)

    def stop(share: float, numbers: dict[str, float]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        module.run(config, tmp_path / "small", games=0, progress=stop)
    done = torchrun(tmp_path, "--resume")
    assert done.returncode == 0, done.stdout + done.stderr
    alone, together = tmp_path / "alone", tmp_path / "small"
    for path in sorted((alone / "games").iterdir()):
        assert (together / "games" / path.name).read_bytes() == path.read_bytes()
    for one, other in zip(log_of(alone), log_of(together), strict=True):
        assert [other[name] for name in LOSS_NAMES] == pytest.approx([one[name] for name in LOSS_NAMES], rel=1e-4)
    one, other = (load_checkpoint(folder)[0].parameters() for folder in (alone, together))
    for parameter, same in zip(one, other, strict=True):
        np.testing.assert_allclose(parameter.detach(), same.detach(), rtol=1e-2, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"algorithm": "ppo"}, "algorithm=ppo: only alphazero learns in several processes"),
        (
            {"alphazero": SETTINGS | {"microbatch": 30}},
            "2 processes, but a minibatch has only 1 microbatches to share out (alphazero.minibatch=30",
        ),
    ],
)
def test_settings_that_several_processes_cannot_learn_are_refused(monkeypatch, changes, message):
    monkeypatch.setattr("ninetka_train.learning.processes.num_processes", lambda: 2)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        module.processes.check_distributable(check_config(VALUES | changes))
