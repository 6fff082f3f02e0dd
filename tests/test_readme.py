"""The README's snippets run, and its tables say what the code says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ninetka_env.games.ninetka.observation import PLANES
from ninetka_env.games.ninetka.rules import GAME

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.S)
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", README, re.S) for line in block.splitlines()]


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda text: text.split("\n")[0])
def test_python_snippets_run(snippet: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", snippet], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_ninetka_commands_run(tmp_path: Path) -> None:
    commands = [shlex.split(line, comments=True) for line in COMMANDS if line.startswith("ninetka")]
    # They take minutes; tests of their own do all this on a small scale.
    commands = [command for command in commands if command[1] not in ("train", "report", "export", "play", "study")]
    assert commands
    for command in commands:
        run = [sys.executable, "-m", "ninetka_train.cli", *command[1:]]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "games.txt").exists()
    assert (tmp_path / "board.png").exists()


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"make ([a-z]+)", README)) - {"help"}:
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_table_of_planes_is_the_codes() -> None:
    table = README.split("<!-- planes -->")[1].split("<!-- /planes -->")[0].strip().splitlines()[2:]
    numbers = [f"{p.first}-{p.first + p.number - 1}" if p.number > 1 else f"{p.first}" for p in PLANES]
    assert table == [f"| {number} | {p.meaning} |" for number, p in zip(numbers, PLANES, strict=True)]


def test_nothing_is_left_to_be_filled_in() -> None:
    assert not re.findall(r"[A-Z]+_[A-Z]+", re.sub(r"```.*?```", "", README, flags=re.DOTALL))


def test_size_of_a_game_is_the_codes() -> None:
    assert f"record of {GAME.itemsize} bytes" in README
