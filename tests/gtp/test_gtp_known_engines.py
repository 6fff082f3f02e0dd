"""Well-known engines, whose command lines are completed."""

from __future__ import annotations

import subprocess
import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from requirements import needs_posix

from ninetka_agents import make_agent
from ninetka_agents.go.gtp.process import EngineProcess, find_engine
from ninetka_env.games.go.game import Game

pytestmark = pytest.mark.slow


def add_program(folder: Path, name: str, script: str = "") -> None:
    """Create an executable shell script."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


# Command lines


COUNTING = ["--chinese-rules", "--capture-all-dead"]


@needs_posix
@pytest.mark.parametrize(
    ("command", "options", "warning"),
    [
        ("gnugo", ["--mode", "gtp", *COUNTING], None),
        ("gnugo --level 5", ["--mode", "gtp", "--level", "5", *COUNTING], None),
        ("gnugo --chinese-rules", ["--mode", "gtp", "--chinese-rules", "--capture-all-dead"], None),
        ("{}/gnugo", ["--mode", "gtp", *COUNTING], None),
        ("gnugo --mode gtp --chinese-rules --capture-all-dead", ["--mode", "gtp", *COUNTING], None),
        ("gnugo --mode gtp", ["--mode", "gtp", *COUNTING], r"gnugo: added --chinese-rules --capture-all-dead, without"),
        ("{}/gnugo --mode=gtp --chinese-rules", ["--mode=gtp", *COUNTING], "gnugo: added --capture-all-dead, without"),
        ("gnugo --japanese-rules", ["--mode", "gtp", "--japanese-rules", "--capture-all-dead"], "counted by area"),
        ("mygnugo --mode gtp", ["--mode", "gtp"], None),
    ],
)  # fmt: skip
def test_the_command_line_of_gnu_go_is_completed(command, options, warning, monkeypatch, tmp_path):
    for name in ("gnugo", "mygnugo"):
        add_program(tmp_path, name)
    monkeypatch.setenv("PATH", str(tmp_path))
    spec = f"gtp:{command.format(tmp_path)}"
    with pytest.warns(UserWarning, match=warning) if warning else nullcontext():
        agent = make_agent(spec, "go")
    assert agent._words[1:] == options
    assert agent.name == spec


PACHI = [
    "-d",
    "0",
    "-r",
    "chinese",
    "-t",
    "=5000",
    "threads=1,reset_tree,pass_all_alive,allow_losing_pass,resign_threshold=0",
]
KATAGO = [
    "-override-config",
    "koRule=SIMPLE,scoringRule=AREA,taxRule=NONE,multiStoneSuicideLegal=false,hasButton=false,friendlyPassOk=false,"
    "whiteHandicapBonus=0,resignThreshold=-1",
]
TERRITORY = "an engine that counts territory may misjudge them"


@needs_posix
@pytest.mark.parametrize(
    ("command", "options", "warning"),
    [
        # in Pachi and KataGo, the last of several equal options counts
        ("pachi", PACHI, None),
        ("pachi -t 3 threads=4 pass_all_alive=0", [*PACHI, "-t", "3", "threads=4", "pass_all_alive=0"], None),
        ("{}/Pachi.EXE -d 3", [*PACHI, "-d", "3"], None),
        ("pachi -r japanese", [*PACHI, "-r", "japanese"], TERRITORY),
        ("pachi -e random", ["-e", "random"], None),
        ("pachi --engine=random", ["--engine=random"], None),
        ("pachi-go", [], None),
        ("katago", ["gtp", *KATAGO], None),
        ("katago -model m -config c", ["gtp", *KATAGO, "-model", "m", "-config", "c"], None),
        ("katago gtp -config c", ["gtp", *KATAGO, "-config", "c"], "katago: added -override-config koRule"),
        ("katago -override-config x=1", ["gtp", *KATAGO, "-override-config", "x=1"], None),
        ("katago -override-config rules=japanese", ["gtp", *KATAGO, "-override-config", "rules=japanese"], TERRITORY),
    ],
)
def test_command_lines_of_pachi_and_katago_are_completed(command, options, warning, monkeypatch, tmp_path):
    for name in ("pachi", "Pachi.EXE", "pachi-go", "katago"):
        add_program(tmp_path, name)
    monkeypatch.setenv("PATH", str(tmp_path))
    with warnings.catch_warnings() if warning is None else pytest.warns(UserWarning, match=warning):
        warnings.simplefilter("error" if warning is None else "always")
        assert find_engine(command.format(tmp_path))[1:] == options


# Games: an independent engine finds the same score and no dead stones on the final board


def is_installed(program: str) -> bool:
    """Return whether an engine is installed; Debian has another program with the name `pachi`, a platform game."""
    try:
        path = find_engine(program)[0]
    except ValueError:
        return False
    if program != "pachi":
        return True
    try:
        version = subprocess.run([path, "--version"], capture_output=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return False
    return version.startswith(b"Pachi ")


def judged(game: Game) -> tuple[str, str]:
    """Return the score and the dead stones of a board that GNU Go sees for the first time."""
    judge = EngineProcess(find_engine("gnugo --level 1"), 60)
    judge.ask("boardsize", game.size)
    judge.ask("komi", game.komi)
    for point in np.flatnonzero(game.board).tolist():
        judge.ask("play", " bw"[int(game.board.flat[point])], game.action_name(point))
    answers = judge.ask("final_score"), judge.ask("final_status_list", "dead")
    judge.close()
    return answers


@pytest.mark.parametrize(("command", "exceptions"), [("gnugo --level 0", 0), ("pachi -t =500", 1)])
def test_no_dead_stones_are_left(command, exceptions):
    """Without their options, both engines leave some; with them, Pachi seldom does, if it leads by far."""
    for program in {"gnugo", command.split()[0]}:
        if not is_installed(program):
            pytest.skip(f"{program} is missing; `make engines` installs GNU Go")
    agent, opponent = make_agent(f"gtp:{command}", "go"), make_agent("random", "go")
    same = 0
    for seat in range(2):
        game, rng = Game.new(), np.random.default_rng(seat)
        player = agent.start(game)
        try:
            while not game.is_over:
                action = player.act(rng) if game.to_move == seat else int(opponent.act(game.records, rng)[0])
                game.play(action)
                player.observe(action)
        finally:
            player.close()
        black, white = game.scores()
        assert (black > white) == (seat == 0)
        same += judged(game) == (f"{'BW'[seat]}+{abs(black - white):.1f}", "")
    assert same >= 2 - exceptions
