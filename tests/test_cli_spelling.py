"""Tests of the help, of advice for former and natural wrong spellings, and of the commands that list what there is."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

from ninetka_agents.agent import make_agent
from ninetka_agents.plugins import agents_of
from ninetka_env.core.registry import definitions, load_variant
from ninetka_train import cli
from ninetka_train.commands import completion
from ninetka_train.reporting.catalogue import describe_agent

ROOT = Path(__file__).resolve().parent.parent


def run(*arguments, **environment):
    texts = [str(argument) for argument in arguments]
    return CliRunner().invoke(cli.app, texts, prog_name="ninetka", env={"COLUMNS": "80"} | environment)


def error(*arguments):
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("error: ").rstrip("\n")


# The help

COMMANDS = dict(typer.main.get_command(cli.app).commands)


def test_the_help_lists_every_command_by_use_with_its_whole_description():
    text = run("--help").stdout
    assert max(map(len, text.splitlines())) <= 80
    assert "..." not in text.partition("Play and watch:")[2]
    words = " ".join(text.split())
    for name, command in COMMANDS.items():
        first = " ".join(command.help.partition("\n\n")[0].split()).rstrip(".")
        assert f" {name} {first}" in words
    assert "Documentation: " in words
    assert words.index(" play ") < words.index(" evaluate ") < words.index(" train ") < words.index(" speed ")


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "speed"])
def test_the_help_of_a_command_fits_and_says_what_each_value_is(name):
    done = run(name, "--help")
    assert done.exit_code == 0
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert not re.search(r"\.\.\.[\])}]|\[\[", done.stdout.partition("\n")[0])
    options = done.stdout.partition("Options:")[2]
    assert not re.search(r"<(path|float|int|str|list)", options)  # names of Python types


def test_the_help_of_train_says_where_results_go_and_how_to_continue():
    words = " ".join(run("train", "--help").stdout.split())
    for what in ("--config quick --set seed=1", "runs/second", "--resume continues", "ninetka configs", "net:FOLDER"):
        assert what in words


# Former spellings


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["table"], "ninetka table is now ninetka stats"),
        (["bench", "go"], "ninetka bench is now ninetka speed"),
        (["rate", "--table", "x.md"], "--table is now --markdown: write --markdown x.md"),
        (["replay", "x", "--game", "3"], "--game names a variant; the number of a game is --number 3"),
        (["analyze", "x", "--game=2"], "--game names a variant; the number of a game is --number 2"),
        (["solve", "x", "--game", "-1"], "--game names a variant; the number of a game is --number -1"),
        (["analyze", "x", "--json"], "--json takes a file, such as --json analysis.json"),
        (["analyze", "x", "--json", "--png", "a.png"], "--json takes a file, such as --json analysis.json"),
        (["export", "net", "net.onnx"], "Missing option '--out'; write ninetka export ... --out FILE"),
        (
            ["export", "net", "net.onnx", "--out", "x"],
            "Got unexpected extra argument(s) (net.onnx); the output file is",
        ),
        (["study", "docs/x"], "Missing option '--out'; write ninetka study ... --out PATH"),
        (["train", "quick"], "Got unexpected extra argument(s) (quick); a configuration is an option: write --config"),
        (["train", "--game", "go"], "the game is a setting: choose a configuration (ninetka configs) or write --set"),
        (["train", "--players", "3"], "the players are a setting: write --set 'players=[3]'"),
        (["train", "--set", "ppo.epochs", "2"], "--set takes KEY=VALUE in one word: write --set ppo.epochs=..."),
        (["train", "--config", "quik"], "(did you mean 'quick'?), those of other networks are"),
        (["train", "--set", "bf16=maybe"], "bf16='maybe': Input should be a valid boolean or 'auto'"),
        (["train", "--set", "game="], "game: it is empty"),
        (["train", "--set", "players=5"], "players=5: Input should be a list, such as [2, 3]"),
        (["evaluate", "", "random"], "argument '' after evaluate: it is empty; write a value or leave it out"),
        (["evaluate", "random", "--json="], "argument --json=: it is empty; write a value or leave it out"),
        (["evaluat", "random"], "No such command 'evaluat'. Did you mean 'evaluate'?"),
        (["evaluate", "--plaxers", "2"], "; ninetka evaluate --help shows what is allowed"),
        (["evaluate", "mcts", "simulations=20"], "(options follow a colon: did you mean 'mcts:simulations=20'?)"),
        (["evaluate", "rave=true", "--game", "go"], "(options follow a colon: did you mean 'mcts:rave=true'?)"),
        (["evaluate", "maxm"], "(did you mean 'maxn'?)"),
        (["evaluate", "random", "--game", "Goo"], "unknown game 'Goo': known are go, kropki, ninetka"),
        (["analyze", "x", "--png", "c.xyz"], "x: No such file or directory"),
    ],
)
def test_wrong_spellings_are_answered_with_what_to_write(arguments, advice):
    assert advice in error(*arguments).replace("argument (", "argument(s) (")


def test_a_network_without_its_agent_is_recognised(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    assert error("evaluate", "runs/mine", "random").endswith("(did you mean 'net:runs/mine'?)")
    assert "did you mean" not in error("evaluate", "runs/yours", "random")


@pytest.mark.parametrize("spelling", ["9tka", "Ninetka", "ninetka", " 9TKA", "9tka:num_players=3"])
def test_a_game_is_recognised_by_its_title_and_in_any_case(spelling):
    assert load_variant(spelling).definition.name == "ninetka"
    assert [load_variant(one).spec for one in ("Go:komi=6.5", "KROPKI")] == ["go:komi=6.5", "kropki"]
    assert run("agents", "--game", spelling).exit_code == 0


def test_a_lone_agent_and_an_unsolvable_game_are_noted():
    done = run("evaluate", "solver:simulations=2", "--players", 3, "--games", 3)
    assert done.stderr.splitlines()[:2] == [
        "note: only one agent is given, so it plays against itself",
        "note: solver:simulations=2: only two-player games can be solved, so it plays UCT",
    ]
    assert "note" not in run("evaluate", "solver:simulations=2", "random", "--games", 2).stderr


def test_the_shell_completes_commands_and_options():
    words = {"ninetka ev": "evaluate", "ninetka evaluate --ga": "--gate"}
    for typed, expected in words.items():
        place = str(len(typed.split()) - 1)
        done = run(_NINETKA_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=place)
        assert expected in done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["train", "--config", "quick-"], ["quick-go", "quick-kropki"]),
        (["evaluate", "--game", "k"], ["kropki"]),
        (["evaluate", "--game", "go:ko=s"], ["go:ko=simple", "go:ko=situational"]),
        (["evaluate", "--game", "go:ko=simple,k"], ["go:ko=simple,komi=7.0"]),
        (["evaluate", "--game", "go:allow"], ["go:allow_resign=false", "go:allow_resign=true"]),
        (["evaluate", "--game", "go:max"], ["go:max_plies="]),
        (["evaluate", "--game", "kropki", "gr"], ["greedy"]),
        (["evaluate", "random", "m"], ["mcts", "maxn"]),
        (["evaluate", "net:max"], ["net:maxn-exploiter"]),
        (["evaluate", "--from", ""], []),
        (["evaluate", "--game", "unknown", ""], []),
        (["evaluate", "--game", "python:this:x", ""], []),
        (["evaluate", "--game", "unknown:"], []),
        (["rate", "--anchor", "ran"], ["random"]),
        (["curve", "--against", "max"], ["maxn"]),
        (["gtp", "--agent", "g"], ["gtp"]),
        (["info", "net:r"], ["net:runs/mine"]),
        (["average", "net:gen-7", "net:r"], ["net:runs/mine"]),
        (["export", "net:gen-7"], ["net:gen-7"]),
        (["warm", "kr"], ["kropki"]),
    ],
)
def test_the_shell_completes_values_without_torch(words, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    (tmp_path / "runs" / "mine" / "step-000001.safetensors").touch()
    for name in ("ninetka_agents.network_files", "ninetka_train.learning.config_files", "torch"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "ninetka_agents.checkpoint", None)
    typed = "ninetka " + " ".join(word or "''" for word in words)
    done = run(_NINETKA_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=str(len(words)))
    assert (done.stdout.split(), done.stderr) == (expected, "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["evaluate", "--game", "go", ":", "ko", "=", "s"], ["simple", "situational"]),
        (["evaluate", "--game", "go", ":"], None),
        (["evaluate", "--game", "=", "k"], ["kropki"]),
        (["evaluate", "--game", "go", ":", "komi", "=", "6", "net", ":", "gen-6"], ["gen-6"]),
        (["evaluate", "--forf"], ["--forfeit"]),
    ],
)
def test_bash_divides_words_at_colons_and_equals_signs(words, expected, monkeypatch, capsys):
    monkeypatch.setenv("_NINETKA_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "\n".join(["ninetka", *words, "after the cursor"]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    with pytest.raises(SystemExit):
        completion.run_for_bash(lambda: cli.app(prog_name="ninetka"))
    found = capsys.readouterr().out.split()
    assert found == expected if expected else {"ko=simple", "size=9"} <= set(found)


# Lists


def test_games_and_their_options_are_listed():
    text = " ".join(run("games").stdout.split())
    for definition in definitions():
        assert f" {definition.name} {definition.title} " in text
        for option in definition.options:
            assert f" {option.name}={option.default} " in text


@pytest.mark.parametrize("game", ["ninetka", "go", "kropki"])
def test_agents_are_listed_with_options_that_their_specs_accept(game):
    pytest.importorskip("torch")
    text = run("agents", "--game", game).stdout
    for agent in agents_of(game):
        assert re.search(rf"^{agent} ", text, re.MULTILINE)
    options = text.partition("Options of mcts")[2].partition("\n\n")[0]
    found = re.findall(r"^(\w+=\S+)", options, re.MULTILINE)
    assert "simulations=1000" in found
    assert make_agent(f"mcts:{','.join(found)}", game).name
    assert "Networks of " in text
    assert re.search(r"^net +gen-\d +\d+ k +\d\.\d MB +[+-]\d+", text, re.MULTILINE)


def test_the_guide_lists_all_options_of_all_agents():
    pytest.importorskip("torch")
    page = (ROOT / "docs" / "guides" / "agents.md").read_text(encoding="utf-8")
    places = {name: place for game in ("kropki", "go", "ninetka") for name, place in agents_of(game).items()}
    rows = [(name, *option) for name, place in places.items() for option in describe_agent(place)[1]]
    table = page.partition("<!-- agent options -->")[2].partition("<!-- /agent options -->")[0]
    written = [tuple(cell.strip(" `|") for cell in line.split(" | ")) for line in table.strip().splitlines()[2:]]
    assert sorted(written) == sorted((name, option, meaning.strip(" `")) for name, option, meaning in rows)


def test_every_option_of_an_agent_has_a_description():
    for game in ("ninetka", "go", "kropki"):
        text = run("agents", "--game", game).stdout.partition("Networks of")[0]
        assert not re.findall(r"^\w+(?:=\S*)?\s*$", text, re.MULTILINE)


def test_configurations_are_listed_with_what_they_do():
    pytest.importorskip("pydantic")
    text = run("configs").stdout
    for name in ("quick", "quick-go", "ppo"):
        assert re.search(rf"^{name} +\S+ +(alphazero|ppo) +\w", text, re.MULTILINE)


def test_agents_are_listed_without_torch(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("ninetka_agents.net") or name == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "ninetka_agents.checkpoint", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    done = run("agents", "--game", "go")
    assert done.exit_code == 0
    assert re.search(r"^net +needs torch: pip install", done.stdout, re.MULTILINE)
    assert "Networks of" not in done.stdout


def test_a_network_is_described():
    pytest.importorskip("torch")
    text = run("info", "net:gen-5").stdout
    for piece in ("gen-5.safetensors", "alphazero, 30 rounds", "start_from=gen-4", "Elo", "gen-5.md"):
        assert piece in text
    assert "go" in run("info", "net", "--game", "go").stdout
    assert "default: ninetka" not in run("info", "--help").stdout  # a path and net:GAME say the game
    assert "cannot be read" in error("info", "other")
    assert error("info", "net", "net").endswith("; expected one network")


def test_an_analysis_is_written_to_a_file(tmp_path):
    games, file = tmp_path / "games.txt", tmp_path / "analysis.json"
    assert run("evaluate", "random", "--games", 1, "--save-games", games).exit_code == 0
    done = run("analyze", games, "--nodes", 1000, "--json", file)
    assert done.exit_code == 0
    assert done.stderr == f"wrote {file}\n"
    assert json.loads(file.read_text(encoding="utf-8"))["plies"]
    assert "--png c.xyz: expected a name that ends in .png" in error("analyze", games, "--png", "c.xyz")


def test_the_options_mean_the_same_in_all_commands():
    helps = {}
    for name, command in COMMANDS.items():
        for parameter in command.params:
            for option in parameter.opts:
                if option in ("--json", "--number", "--out", "--game"):
                    helps.setdefault(option, {})[name] = parameter
    assert all(not one.is_flag and one.metavar == "FILE" for one in helps["--json"].values())
    assert {one.metavar for one in helps["--game"].values()} == {"SPEC"}
    assert set(helps["--number"]) == {"replay", "analyze", "solve"}
    assert set(helps["--out"]) == {"average", "benchmark", "curve", "export", "study"}
