"""Tests of `ninetka warm`, which compiles the code of games ahead of time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from requirements import needs_posix

from ninetka_train import warm

PLAY = "from ninetka_env import {module} as m; e = m.env({options}); e.reset(seed=0); e.last(); e.step(0); e.last()"


def run(*arguments: str, cache: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=600
    )


@pytest.mark.slow
def test_a_warm_environment_compiles_nothing(tmp_path: Path) -> None:
    done = run("-m", "ninetka_train.warm", "ninetka", warm.ENVIRONMENT, cache=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.code")}
    assert before
    done = run("-c", PLAY.format(module="ninetka_v0", options="num_players=3"), cache=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.code")} == before


@pytest.mark.slow
@needs_posix
def test_errors_are_one_line(tmp_path: Path) -> None:
    done = run("-m", "ninetka_train", "warm", "gho", cache=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: unknown game 'gho'")
    nowhere = "import sys, tempfile; tempfile.tempdir, sys.argv = '/dev/null/x', ['ninetka', 'warm', 'go']\n"
    done = run("-c", nowhere + "from ninetka_train.cli import main; main()", cache=Path("/dev/null/y"))
    assert done.returncode == 2
    assert done.stderr == "error: compiled code cannot be kept: set NUMBA_CACHE_DIR to a folder that can be written\n"


def test_failed_parts_are_counted_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environments come first, because all other parts use their code."""
    order: list[str] = []

    def run_process(spec: str, part: str) -> tuple[float, str]:
        order.append(part)
        return 1.0, "ValueError: no" if part == "batch" else ""

    monkeypatch.setattr(warm, "_run_process", run_process)
    monkeypatch.setattr(warm, "_cache_home", lambda: tmp_path)
    lines: list[str] = []
    assert warm.warm(["go", "kropki:width=5,height=5"], lines.append) == 2
    assert order[:2] == 2 * [warm.ENVIRONMENT]
    assert set(order[2:]) >= {"batch", "one seat", "mcts:simulations=20"}
    assert sum("batch: failed: ValueError: no" in line for line in lines) == 2
    assert any("kropki:width=5,height=5, one seat: 1.0 s" in line for line in lines)
    assert "0 MB" in lines[-1]
