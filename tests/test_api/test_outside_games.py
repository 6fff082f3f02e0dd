"""Tests of games outside the package: edits of a source file are noticed, and code from stdin is not cached."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import toy.tictactoe

from ninetka_env.core.registry import known_games, register

pytestmark = pytest.mark.slow

SOURCE = Path(toy.tictactoe.__file__).read_text(encoding="utf-8").replace("toy.tictactoe", "outside")
PLAY = "from outside import Game; game = Game.new(); game.play(4); print(game.ply)"


def run(folder, *command, source=None):
    paths = os.pathsep.join([str(folder), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(folder / "cache")}
    line = [sys.executable, *command]
    return subprocess.run(
        line, input=source, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder, check=True
    ).stdout.split()


@pytest.mark.exhaustive
def test_an_edit_of_its_rules_is_noticed(tmp_path):
    for step in ("1", "2"):
        (tmp_path / "outside.py").write_text(
            SOURCE.replace("game.plies += 1", f"game.plies += {step}"), encoding="utf-8"
        )
        assert run(tmp_path, "-c", PLAY) == [step]
    compiled = set(tmp_path.rglob("*.code"))
    assert run(tmp_path, "-c", PLAY) == ["2"]
    assert compiled
    assert set(tmp_path.rglob("*.code")) == compiled, "the third run compiled code again"


def test_code_from_stdin_is_compiled_and_not_cached(tmp_path):
    lines = ["from ninetka_env.core.jit import jit", "@jit", "def double(x):", "    return 2 * x", "print(double(4))"]
    assert run(tmp_path, "-", source="\n".join(lines)) == ["8"]
    assert not list(tmp_path.rglob("*.code"))


def test_a_game_from_stdin_is_not_cached(tmp_path):
    (tmp_path / "outside.py").write_text("", encoding="utf-8")  # the module that the definition names
    typed = f"{SOURCE}\nimport outside; outside.Game = Game\n{PLAY.partition('; ')[2]}"
    assert run(tmp_path, "-", source=typed) == ["1"]
    cached = {path.name for path in tmp_path.rglob("*.code")}
    assert not any("_play_if_legal" in name or "restart_games" in name for name in cached)


def test_a_dtype_that_is_a_prefix_of_another_is_refused():
    """Numba would treat states of the longer dtype as states of the shorter dtype, and warn."""
    longer = np.dtype((np.record, np.dtype([*toy.tictactoe.FIELDS, ("more", np.int8)])))
    limits = {longer: next(iter(toy.tictactoe.DEFINITION.dtypes.values()))}
    definition = dataclasses.replace(toy.tictactoe.DEFINITION, name="longer", dtypes=limits)
    with pytest.raises(ValueError, match="prefix of another dtype, board, num_players, to_move, plies; numba would"):
        register(definition)
    assert "longer" not in known_games()
