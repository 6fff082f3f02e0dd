"""Tests of games outside the package: their compiled code is up to date with their source, wherever that is."""

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
    assert set(tmp_path.rglob("*.code")) == compiled, "the third run found all that it needed"


def test_what_is_typed_in_is_compiled_and_not_kept(tmp_path):
    lines = ["from ninetka_env.core.jit import jit", "@jit", "def double(x):", "    return 2 * x", "print(double(4))"]
    assert run(tmp_path, "-", source="\n".join(lines)) == ["8"]
    assert not list(tmp_path.rglob("*.code"))


def test_a_game_that_is_typed_in_is_not_kept(tmp_path):
    (tmp_path / "outside.py").write_text("", encoding="utf-8")  # the module that the definition names
    typed = f"{SOURCE}\nimport outside; outside.Game = Game\n{PLAY.partition('; ')[2]}"
    assert run(tmp_path, "-", source=typed) == ["1"]
    kept = {path.name for path in tmp_path.rglob("*.code")}
    assert not any("_play_if_legal" in name or "begin" in name for name in kept)


def test_a_record_type_that_begins_like_another_is_refused():
    """Numba would treat states of the longer dtype as states of the shorter dtype, and warn."""
    longer = np.dtype((np.record, np.dtype([*toy.tictactoe.FIELDS, ("more", np.int8)])))
    limits = {longer: next(iter(toy.tictactoe.DEFINITION.dtypes.values()))}
    wanting = dataclasses.replace(toy.tictactoe.DEFINITION, name="longer", dtypes=limits)
    with pytest.raises(ValueError, match="prefix of another dtype, board, num_players, to_move, plies; numba would"):
        register(wanting)
    assert "longer" not in known_games()
