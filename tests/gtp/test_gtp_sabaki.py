"""Sabaki's own GTP controller plays whole games with the engine."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ninetka_agents.go.status import agreed_result
from ninetka_env.games.go.game import Game

MODULE = Path(__file__).parents[2] / "build" / "sabaki" / "node_modules" / "@sabaki" / "gtp"
NODE = shutil.which("node")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (NODE and MODULE.is_dir()), reason="Sabaki's module is missing: `make engines` installs it"),
]
ENGINE = (
    sys.executable,
    "-m",
    "ninetka_train.cli",
    "gtp",
    "--agent",
    "mcts:simulations=50",
    "--seed",
    "1",
    "--resign",
    "0",
)


@pytest.fixture(scope="module")
def report():
    script = Path(__file__).with_name("sabaki.js")
    done = subprocess.run([NODE, script, MODULE, *ENGINE], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_whole_games_are_played(report):
    assert report["hello"] == ["ninetka", "2"]
    assert report["stderr"] == []
    assert not report["running"]
    assert len(report["games"]) == 2
    for played, komi in zip(report["games"], (7, 6.5), strict=True):
        game = Game.new(komi=komi, max_plies=1024)
        for name in played["moves"]:
            game.play(game.action_index(name))
        assert game.is_over
        assert played["moves"][-2:] == ["pass", "pass"]
        assert played["score"] == agreed_result(game)


def test_positions_are_synchronised_and_undone(report):
    after, before = (board.split("\n") for board in report["boards"])
    drawn = {row[0]: "".join(row.split()[1:]) for row in after if row[:1].isdigit()}
    assert (drawn["1"], drawn["3"], drawn["9"]) == ("X........", "..X......", "........X")
    assert (drawn["4"], drawn["5"], drawn["6"]) == ("...O.....", "....O....", ".....O...")
    back = {row[0]: "".join(row.split()[1:]) for row in before if row[:1].isdigit()}
    assert back == {**drawn, "6": "........."}


def test_analyses_are_understood(report):
    for analysis in report["analyses"][:3]:
        assert len(analysis["lines"]) >= 2
        assert all(line.startswith("info move ") and " pv " in line for line in analysis["lines"])
    generated = report["analyses"][3]["lines"]
    assert generated[-1].startswith("play ")
    assert report["history"][-1] == {"name": "play", "args": ["W", generated[-1][5:]]}
