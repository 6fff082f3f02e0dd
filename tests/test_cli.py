"""Tests of the command line: evaluate, replay and speed, error messages, and exits."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from interrupt import sigint_options
from requirements import needs_byte_filenames, needs_posix
from typer.testing import CliRunner

from ninetka_agents import make_agent
from ninetka_agents.agent import as_agent
from ninetka_env.api.record_files import read_records
from ninetka_train import cli
from ninetka_train.commands.group import UsageError
from ninetka_train.judging import arena, lockstep

ROOT = Path(__file__).resolve().parent.parent


def run(*arguments):
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


BEFORE_NAME = " '" if UsageError.__module__.startswith("click") else ": "
"""Text between "No such option" and the option's name. Click and typer's copy of click print different texts."""


def check_error(result, message, code=2):
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_evaluate_prints_tables_and_writes_files(tmp_path):
    json_file, games_file = tmp_path / "result.json", tmp_path / "games.txt"
    result = run(
        "evaluate", "random", "random", "--players", 3, "--games", 5, "--seed", 4, "--batch", 2, "--json", json_file,
        "--save-games", games_file, "--game", "ninetka:neutral_placement=random,turn_order=continue",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "6 games (asked for: 5)" in result.stdout
    assert "note: --games 5 is rounded up to 6 games per lineup, 2 rotations of 3 seatings" in result.stderr
    written = json.loads(json_file.read_text(encoding="utf-8"))
    assert written["settings"]["seed"] == 4
    options = "num_players=3,neutral_placement=random,turn_order=continue"
    assert written["settings"]["game"] == f"ninetka:{options}"
    assert [agent["wins"] for agent in written["agents"]] == [2, 4]
    assert games_file.read_text(encoding="utf-8").count("result: ") == 6


def test_the_same_seed_gives_the_same_files(tmp_path):
    for name in ("a", "b"):
        assert run("evaluate", "random", "--games", 4, "--save-games", tmp_path / name).exit_code == 0
    assert (tmp_path / "a").read_text(encoding="utf-8") == (tmp_path / "b").read_text(encoding="utf-8")


def test_the_game_is_named_with_its_options(tmp_path):
    def settings(*arguments):
        done = run("evaluate", "random", "--games", 1, "--json", tmp_path / "result.json", *arguments)
        assert done.exit_code == 0, done.output
        found = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))["settings"]
        return found["game"], found["num_players"]

    assert settings() == ("ninetka", 2)
    game = "ninetka:num_players=3,turn_order=continue"
    assert settings("--game", game) == (game, 3)
    assert settings("--game", game, "--players", 4) == ("ninetka:num_players=4,turn_order=continue", 4)
    assert settings("--game", "ninetka:num_players=3,turn_order=restart", "--players", 2) == ("ninetka", 2)


@pytest.mark.parametrize(
    ("arguments", "game"),
    [
        (["--neutral-placement", "random"], "ninetka:neutral_placement=random"),
        (["--turn-order=continue", "--seed", "3"], "ninetka:turn_order=continue"),
        (["--game", "ninetka:num_players=3", "--turn-order", "x"], "ninetka:num_players=3,turn_order=x"),
        (["--neutral-placement"], "ninetka:neutral_placement=VALUE"),
    ],
)
def test_options_moved_into_game_spec_are_reported(arguments, game):
    result = run("evaluate", "random", *arguments)
    assert result.exit_code == 2
    option = next(one for one in arguments if one.startswith(("--neutral", "--turn"))).partition("=")[0]
    assert result.stderr == f"error: {option} is now part of --game: write --game {game}\n"


def test_several_options_of_the_game_are_named_at_once_and_only_for_that_game():
    both = ["evaluate", "random", "--turn-order", "continue", "--neutral-placement", "random"]
    written = "ninetka:neutral_placement=random,turn_order=continue"
    message = f"error: --neutral-placement and --turn-order are now part of --game: write --game {written}\n"
    assert run(*both).stderr == message
    result = run("evaluate", "random", "--game", "go", "--turn-order", "continue")
    assert result.stderr == "error: --turn-order is only for 9tka: leave out what --game go does not have\n"


def test_tournament():
    result = run("evaluate", "random", "random", "--games", 4, "--tournament")
    assert result.exit_code == 0
    assert "Two-player tournament" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no agents: expected at least one"),
        (["stockfish"], "unknown agent 'stockfish': known are "),
        (["random:x=1"], "agent 'random:x=1': unknown option 'x'"),
        (["random", "--players", 5], "num_players=5: expected one of 2, 3, 4"),
        (["random", "--game", "chess"], "unknown game 'chess': known are "),
        (["random", "--game", "ninetka:num_players=5"], "num_players='5': expected one of 2, 3, 4"),
        (["random", "--game", "ninetka:seats=2"], "ninetka: unknown option 'seats', there are num_players, "),
        (["random", "--game", "ninetka:3"], "ninetka: expected option=value, found '3'"),
        (["random", "--players", "x"], "'x': expected an integer"),
        (["random", "--games", 0], "num_games=0: expected an integer of at least 1"),
        (["random", "--games", -3], "num_games=-3: expected an integer of at least 1"),
        (["random", "--batch", 0], "batch=0: expected an integer of at least 1"),
        (["random", "--seed", -1], "seed=-1: expected an integer of at least 0"),
        (["random", "--game", "ninetka:turn_order=x"], "turn_order='x': expected one of 'restart', 'continue'"),
        (["random", "--game", "ninetka:neutral_placement=x"], "neutral_placement='x': expected one of 'players', "),
        (["random", "--tournament"], "tournament with 1 agent"),
        (["random", "random", "--players", 3, "--tournament"], "tournament with num_players=3"),
        pytest.param(["random", "--json", "/none/x"], "/none/x: cannot write: there is no", marks=needs_posix),
        pytest.param(["random", "--save-games", "/none/x"], "/none/x: cannot write: there is no", marks=needs_posix),
        pytest.param(
            ["random", "--json", "/"], "error: --json /: it names a folder: write the name", marks=needs_posix
        ),
        (["random", "--json", "same", "--save-games", "./same"], "name the same file"),
        (["random", "--unknown"], "No such option"),
        (["random", "--games", 10**18], f"num_games={10**18}: expected an integer of at least 1 and at most 9007"),
        (["random", "--games", 99999999999999], "num_games=99999999999999: would take "),
        ([*["random"] * 60, "--players", 4, "--games", 10**6], "num_games=1000000: would take "),
        (["random", "--games", "1e18"], "'1e18': expected an integer"),
        (["random", "--games", "9" * 5000], "9' ...: expected an integer"),
        (["random", "--batch", 10**30], f"batch={10**30}: expected an integer of at least 1 and at most 9007"),
        (
            ["mcts:simulations=99999999999999"],
            "simulations=99999999999999: expected an integer of at least 1 and at most",
        ),
        (["x" * 5000], "expected text of at most 2000 characters"),
        (["x" * 1500], "unknown agent 'xxx"),
        (["random:" + "x" * 1500], "agent 'random:xxx"),
        (["random", "--" + "x" * 5000], f"No such option{BEFORE_NAME}--xxx"),
        (["random", "--game", "x" * 5000], "unknown game 'xxx"),
    ],
)
def test_bad_input_ends_in_one_line(arguments, message, monkeypatch):
    monkeypatch.setattr(arena.Match, "play", lambda *_, **__: pytest.fail("played a game"))
    result = run("evaluate", *arguments)
    check_error(result, message)
    assert len(result.stderr) < 700
    assert len(result.stderr.strip().splitlines()) <= 4  # two lines of usage, a blank line, the message


def test_an_agent_that_breaks_the_rules_ends_the_evaluation(monkeypatch):
    class Zero:
        name = "zero"

        def act(self, games, rng):
            return np.zeros(len(games), np.int64)

    monkeypatch.setattr(arena, "as_agent", lambda spec, game: as_agent(Zero()))
    check_error(run("evaluate", "zero"), "error: game 1: agent 'zero': action 0 (A11) is illegal for seat 0", code=1)


def test_games_are_saved_while_the_match_runs(tmp_path, monkeypatch):
    class InterruptedAgent:
        name = "interrupted"

        def act(self, games, rng):
            self.calls = getattr(self, "calls", 0) + 1
            if self.calls > 100:
                raise KeyboardInterrupt
            return make_agent("random").act(games, rng)

    agent = as_agent(InterruptedAgent())
    monkeypatch.setattr(arena, "as_agent", lambda spec, game: agent)
    assert run("evaluate", "interrupted", "--games", 6, "--batch", 2, "--save-games", tmp_path / "games").exit_code != 0
    assert len(list(read_records(tmp_path / "games"))) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_games_that_cannot_be_saved_do_not_end_the_match():
    result = run("evaluate", "random", "--games", 2, "--save-games", "/dev/full")
    check_error(result, "error: /dev/full: cannot write: No space left")
    assert "Wins by seat" in result.stdout


def test_failed_write_does_not_lose_other_files(tmp_path, monkeypatch):
    def full(*_):
        raise OSError("cannot write: disk full")

    monkeypatch.setattr("ninetka_env.core.files.replace_file", full)
    result = run("evaluate", "random", "--games", 1, "--json", tmp_path / "a", "--save-games", tmp_path / "b")
    check_error(result, "error: cannot write: disk full")
    assert "Wins by seat" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


@pytest.mark.parametrize("fails", [OSError(errno.ENOSPC, "No space left on device"), BrokenPipeError(errno.EPIPE, "")])
def test_the_json_is_written_before_the_report_is_printed(tmp_path, monkeypatch, fails):
    def cannot_print(*_, **__):
        raise fails

    monkeypatch.setattr("ninetka_train.judging.report.print_report", cannot_print)
    result = run("evaluate", "random", "maxn:depth=1", "--games", 2, "--json", tmp_path / "a")
    assert result.exit_code == 1
    assert json.loads((tmp_path / "a").read_text(encoding="utf-8"))["agents"][0]["games"] == 2
    message = "" if isinstance(fails, BrokenPipeError) else "error: standard output: No space left on device"
    assert result.stderr.splitlines() == message.splitlines()


@needs_byte_filenames
def test_non_utf8_names_do_not_end_the_match(tmp_path, monkeypatch):
    def oddly_named(spec, game):
        agent = make_agent("random", game)
        agent.name = spec
        return agent

    monkeypatch.setattr(arena, "as_agent", oddly_named)
    monkeypatch.setattr("ninetka_train.judging.report.print_report", lambda *_, **__: None)
    odd = "net:\udcff\n\x1b"
    files = tmp_path / "a\udcff\n", tmp_path / "b\udcff\n"
    done = run("evaluate", odd, "--games", 2, "--json", files[0], "--save-games", files[1])
    assert done.exit_code == 0, done.output
    assert json.loads(files[0].read_text(encoding="utf-8"))["settings"]["agents"] == [odd]
    assert [record.tags["yellow"] for record in read_records(files[1])] == ["net:???"] * 2


# Exits of the whole command, in separate processes


def start_process(*arguments, code=None, **options):
    """Start `ninetka` with arguments, or Python code, in a new process."""
    command = ["-c", code] if code else ["-m", "ninetka_train", *map(str, arguments)]
    options |= {"cwd": ROOT, "stderr": subprocess.PIPE, "text": True} | sigint_options()
    return subprocess.Popen([sys.executable, *command], **options)


def status_and_errors(process):
    """Wait for a process and return its exit status and its standard error."""
    errors = process.communicate(timeout=100)[1]
    return process.returncode, errors


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_on_stdout_is_reported_in_one_line():
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        for arguments in (["--help"], ["replay", ROOT / "tests" / "ninetka" / "games.txt"]):
            ending = status_and_errors(start_process(*arguments, stdout=full))
            assert ending == (1, "error: standard output: No space left on device\n")


def test_closed_pipe_ends_the_command_silently():
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w", encoding="utf-8") as closed_pipe:
        assert status_and_errors(start_process("--help", stdout=closed_pipe)) == (1, "")


@needs_byte_filenames
def test_paths_that_the_terminal_cannot_show_are_shown_escaped(tmp_path):
    folder = os.fsdecode(b"a\xff")
    ending = status_and_errors(start_process("replay", tmp_path / folder))
    assert ending == (2, f"error: {tmp_path}/a\\udcff: No such file or directory\n")


INTERRUPTED = """
import sys
class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == {!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
sys.argv[1:] = ["replay", "tests/ninetka/games.txt"]
from ninetka_train.__main__ import main
main()
"""


@pytest.mark.parametrize("module", ["ninetka_train.cli", "typer", "numpy", "numba"])
def test_ctrl_c_during_imports_ends_the_command_with_one_line(module):
    assert status_and_errors(start_process(code=INTERRUPTED.format(module))) == (130, "error: stopped\n")


def test_ctrl_c_during_compilation_ends_the_command_with_one_line(tmp_path):
    process = start_process("evaluate", "maxn", env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)})
    while not any(tmp_path.rglob("*")) and process.poll() is None:  # until the first file is in the cache
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert status_and_errors(process) == (130, "error: stopped\n")


@pytest.mark.parametrize("command", ["evaluate", "replay", "study", "speed"])
def test_ctrl_c_ends_every_command_with_one_line(command, monkeypatch, tmp_path, games_file):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(arena.Match, "play", stopped)
    monkeypatch.setattr("ninetka_env.api.record_files.replay_text", stopped)
    monkeypatch.setattr("ninetka_train.ninetka.study.study", stopped)
    monkeypatch.setattr("benchmarks.run.measure", stopped)
    given = {"evaluate": ["random", "-g", 2], "replay": [games_file], "study": ["--out", tmp_path / "a"]}
    check_error(run(command, *given.get(command, ["vector"])), "error: stopped\n", code=130)


def test_ctrl_c_ends_a_match_with_figures_of_finished_batches(monkeypatch, tmp_path):
    play_batch, file = lockstep.LockstepGames.play_batch, tmp_path / "games.txt"

    def stopped_in_the_third(self, games, progress):
        if games.start == 8:
            raise KeyboardInterrupt
        play_batch(self, games, progress)

    monkeypatch.setattr(lockstep.LockstepGames, "play_batch", stopped_in_the_third)
    asked = ("evaluate", "random", "maxn:depth=1", "--seed", 5, "--batch", 4)
    result = run(*asked, "--games", 20, "--save-games", file, "--json", tmp_path / "stopped.json")
    assert result.exit_code == 130
    assert "stopped after 8 of 20 games" in result.stderr
    assert len(list(read_records(file))) == 8
    assert run(*asked, "--games", 8, "--json", tmp_path / "whole.json").exit_code == 0
    agents = [
        json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))["agents"] for name in ("stopped", "whole")
    ]
    assert [one["wins"] for one in agents[0]] == [one["wins"] for one in agents[1]]
    assert run("evaluate", "random", "random", "--batch", 4, "--games", 20, "--gate", "0.5,0.6").exit_code == 130
    stopped = run("evaluate", "random", "maxn:depth=1", "mcts:simulations=10", "--batch", 4)
    assert stopped.exit_code == 130
    assert "stopped after 8 of 300 games: the figures are of these" in stopped.stderr
    assert "note: no rotation is finished of mcts:simulations=10" in stopped.stderr


@pytest.fixture(scope="module")
def games_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("games") / "games.txt"
    assert run("evaluate", "random", "--games", 3, "--save-games", file).exit_code == 0
    return file


def test_replay_shows_positions(games_file):
    whole = run("replay", games_file, "--number", 2).stdout
    assert "yellow: random" in whole
    assert "ply 44" in whole
    assert "\x1b" not in whole
    one = run("replay", games_file, "--number", 2, "--ply", 44).stdout
    assert "ply 44" in one
    assert "ply 43" not in one


def test_replay_prints_one_winner_and_why(tmp_path):
    file = tmp_path / "games.sgf"
    for stated, result in (
        ("B+2.5", "Black wins, as stated (B+2.5); counted: Black 1, White 7.5"),
        ("B+R", "White resigned; Black wins"),
        ("", "unfinished"),
    ):
        file.write_text(f"(;SZ[9]KM[6.5]BR[1680*]RE[{stated}];B[ee];W[ec])", encoding="utf-8")
        lines = run("replay", file, "--ply", 1).stdout.split("\n")
        assert [line for line in lines if "wins" in line or line.startswith("result")] == [f"result: {result}"]
        assert "black_rank: 1680*" in lines


def test_replay_draws_a_picture(games_file, tmp_path):
    pytest.importorskip("pygame")
    picture = tmp_path / "board.png"
    done = run("replay", games_file, "--png", picture)
    assert (done.exit_code, done.stdout) == (0, f"wrote {picture}\n")
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--number", 4], "there is no game 4; the file has 3 games"),
        (["--number", 0], "no game 0; the file has 3 games, counted from 1"),
        (["--ply", 99], "ply 99: the game has the plies 0 to"),
        (["--png", "/none/x.png"], "/none/x.png"),
        (["--number", "x"], "'x': expected an integer"),
        (["--game", 2], "--game names a variant; the number of a game is --number 2"),
        (["--game", "go"], "game 1 is of 9tka, not of Go"),
        (["--png", "board.jpg"], "--png board.jpg: expected a name that ends in .png"),
    ],
)
def test_replay_reports_invalid_arguments(games_file, arguments, message):
    check_error(run("replay", games_file, *arguments), message)


def test_replay_of_no_file_or_broken_games(games_file, tmp_path):
    check_error(run("replay", tmp_path / "none.txt"), "none.txt")
    check_error(run("replay"), "Missing argument 'FILE'")
    broken = tmp_path / "broken.txt"
    broken.write_text(
        games_file.read_text(encoding="utf-8").replace("movement: ", "movement: A1 ", 1), encoding="utf-8"
    )
    check_error(run("replay", broken), "broken.txt, line ")
    (tmp_path / "empty.txt").write_text("", encoding="utf-8")
    check_error(run("replay", tmp_path / "empty.txt"), "no game 1; the file has 0 games")


def test_speed_runs_the_repository_benchmarks(tmp_path, monkeypatch):
    monkeypatch.setattr(cli, "__file__", str(tmp_path / "train" / "ninetka_train" / "cli.py"))
    check_error(run("speed", "--quick"), "the benchmarks are in the repository")
    assert "speed [BENCHMARK]..." in run("speed", "--help").stdout
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "__init__.py").write_text("", encoding="utf-8")
    (folder / "run.py").write_text("def main(argv):\n    print(argv)\n    return 3\n", encoding="utf-8")
    monkeypatch.setattr("sys.path", sys.path.copy())
    for name in ("benchmarks", "benchmarks.run"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    result = run("speed", "--quick", "env", "--help")
    for name in ("benchmarks", "benchmarks.run"):
        sys.modules.pop(name, None)
    assert "speed [BENCHMARK]..." in result.stdout
    assert result.stdout.endswith("['--quick', 'env', '--help']\n")
    assert result.exit_code == 3


def test_the_help_of_speed_describes_each_benchmark():
    from benchmarks.run import BENCHMARKS, SLOW_BENCHMARKS

    text = run("speed", "--help").stdout
    for name in BENCHMARKS + SLOW_BENCHMARKS:
        assert re.search(rf"^  {name} +[A-Z]\w+ ", text, re.MULTILINE)
    check_error(run("speed", "Vectro"), "unknown benchmark 'Vectro': known are vector, ")
    assert run("speed", "Vectro").stderr.endswith("(did you mean 'vector'?)\n")


def test_speed_writes_a_markdown_table_if_the_output_is_no_terminal(monkeypatch, capsys):
    from benchmarks import run as bench
    from benchmarks.measure import Row

    absent = Row("n" * 99, "ms/move", float("nan"), note="not installed is GNU Go: apt-get install gnugo")
    monkeypatch.setattr(bench, "measure", lambda name: iter([Row("play", "plies/s", 5e6, 1e4, "pgx", 4e6), absent]))
    assert bench.main(["go"]) == 0
    lines = [line.split("|") for line in capsys.readouterr().out.splitlines() if "|" in line]
    assert [[cell.strip() for cell in line[1:-1]] for line in lines if "---" not in line[1]] == [
        ["what", "ours", "reach", "peer's", "ratio", "peer, or note"],
        ["play", "5 M plies/s", "4 M", "10 k", "500", "pgx"],
        ["n" * 99, "- ms/move", "", "", "", absent.note],
    ]


def test_main_runs_the_command(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["ninetka", "--version"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("ninetka ")


def test_version_and_help():
    result = run("--version")
    assert result.exit_code == 0
    assert "ninetka_v0" in result.stdout.partition("environments ")[2]
    assert "evaluate" in run("--help").stdout
    assert "--save-games" in run("evaluate", "--help").stdout


def test_help_imports_nothing_heavy():
    code = (
        "import sys, ninetka_train.cli; "
        "print([name for name in ('numba', 'scipy', 'torch', 'pettingzoo', 'numpy') if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"
