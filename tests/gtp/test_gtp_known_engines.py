"""Well-known engines, whose command lines are completed, and programs that do not speak GTP."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from requirements import needs_posix

from ninetka_agents import make_agent
from ninetka_agents.agent import Forfeit
from ninetka_agents.go.gtp import known_engines
from ninetka_agents.go.gtp.process import EngineProcess, find_engine
from ninetka_env.games.go.game import Game
from ninetka_train.judging.arena import AgentError, play_games

pytestmark = pytest.mark.slow

FAKE = Path(__file__).parent / "fake_engine.py"


def add_program(folder: Path, name: str, script: str = "") -> None:
    """Create an executable shell script."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


def failure(spec: str) -> tuple[str, str]:
    """Return the kind and the text of the failure with which an engine does not start."""
    with pytest.raises(Forfeit) as caught:
        make_agent(spec, "go").start(Game.new(size=5))
    return caught.value.kind, str(caught.value)


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


# The first response


@needs_posix
def test_katago_plays_and_its_failure_at_the_start_is_shown(monkeypatch, tmp_path):
    """KataGo without a model ends with three lines on stderr, of which the last says what is missing."""
    add_program(tmp_path, "katago", f'test "$1" = gtp && exec {sys.executable} {FAKE} well')
    monkeypatch.setenv("PATH", str(tmp_path))
    results = play_games(["gtp:katago", "random"], num_games=2, game="go:size=5,max_plies=8")
    assert results.failures == {}
    script = "echo KataGo v1 >&2; echo terminate called >&2; echo '  what():  -model was not specified' >&2; exit 134"
    add_program(tmp_path, "katago", script)
    with pytest.raises(AgentError) as caught:
        play_games(["gtp:katago", "random"], num_games=2, game="go:size=5")
    assert str(caught.value) == (
        "agent 'gtp:katago': ended at 'boardsize 5', exit status 134: "
        "KataGo v1 / terminate called / what(): -model was not specified"
    )


@needs_posix
@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("exec cat", "printed 'boardsize 5'"),
        ("exec sleep 60", "printed nothing"),
        (r"printf 'one\n\ntwo\a\n3\n4\n5\nend\n'; exec sleep 60", "printed 'one / two / ... / 5 / end'"),
    ],
    ids=["echo", "silence", "lines"],
)
def test_a_program_that_does_not_speak_gtp_is_described(script, printed, tmp_path):
    add_program(tmp_path, "program", script)
    assert failure(f"gtp:{tmp_path}/program,timeout=1.5") == (
        "time",
        f"no answer to 'boardsize 5' within 1.5 s, and the program {printed}: expected an engine in GTP mode (for GNU "
        "Go: --mode gtp) that starts in this time; timeout=SECONDS sets another time",
    )


def test_a_program_that_ends_at_once_is_described():
    code = r'print("usage: x"); raise SystemExit("wrong option " + "-" * 400)'
    kind, text = failure(f"gtp:[{sys.executable} -c '{code}']")
    assert kind == "left"
    assert re.fullmatch(r"ended at 'boardsize 5', exit status 1: (?=.*usage: x)(?=.*wrong option ---).{150,230}", text)


@needs_posix
def test_only_the_first_response_has_the_shorter_limit(monkeypatch, tmp_path):
    agent = make_agent(f"gtp:[{sys.executable} {FAKE} hang]", "go")
    player, rng = agent.start(Game.new(size=5)), np.random.default_rng(0)
    monkeypatch.setattr(player._process, "_timeout", 1.0)
    try:
        player.act(rng)
        player.act(rng)
        with pytest.raises(Forfeit, match=r"^no answer to 'genmove b' within 1 s$"):
            player.act(rng)
    finally:
        player.close()
    add_program(tmp_path, "silent", "exec sleep 60")
    monkeypatch.setattr(known_engines, "FIRST_TIMEOUT_S", 0.5)
    assert failure(f"gtp:{tmp_path}/silent")[1].startswith("no answer to 'boardsize 5' within 0.5 s, and the program")


def test_the_limit_of_the_first_response_depends_on_the_program():
    limits = {"gnugo": 10, "C:\\go\\KataGo.exe": 600, "/usr/bin/katago": 600, "mykatago": 10, "pachi": 60}
    assert {program: known_engines.first_timeout(program) for program in limits} == limits


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
