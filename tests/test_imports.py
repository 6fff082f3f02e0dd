"""Games and agents of other packages: `python:MODULE:NAME` specs and entry points, and who may not use them."""

from __future__ import annotations

import importlib
import io
import os
import pickle
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import toy_game
from typer.testing import CliRunner

from ninetka_agents import make_agent, plugins
from ninetka_agents.one_seat import one_seat
from ninetka_agents.plugins import is_agent_name
from ninetka_env.api.record_files import read_records
from ninetka_env.api.records import GameRecord, format_record
from ninetka_env.core import imports
from ninetka_env.core.registry import (
    definition_of,
    definitions,
    get_definition,
    known_games,
    load_variant,
    register,
)
from ninetka_env.core.sgf import read_sgf
from ninetka_train.cli import app
from ninetka_train.judging.arena import play_games

pytestmark = pytest.mark.usefixtures("own_modules")

GAMES = """
import toy_game
DEFINITION = toy_game.definition(class_path="own_games:ToyGame")
ToyGame = toy_game.ToyGame
"""
AGENTS = """
import numpy as np

class Bot:
    def __init__(self, depth=3, path: str = "", exact: int | None = None, rest=None, fast=False):
        self.options = depth, path, exact, rest, fast

    def act(self, games, rng):
        return np.ones(len(games), np.int64)

class Renamed(Bot):
    name = property(lambda self: "fixed")

class Slow:
    def __init__(self):
        raise KeyError("no clock")

class Exiting:
    def __init__(self):
        raise SystemExit("no licence")

class OnlyGo(Bot):
    game = "go"

def made(game, level: float, *others, **more):
    bot = Bot()
    bot.options = game, level
    return bot

def nothing():
    return 3

def sized(sizes=(1, 2)):
    return Bot()

class Odd(Bot):
    __signature__ = 3

class Policy:
    def __call__(self, planes):
        return planes

def __getattr__(name):
    if name == "Later":
        raise RuntimeError("too late")
    raise AttributeError(name)

POLICY = Policy()
BOT = Bot()
BOT.name = "own name"
"""
BROKEN = {
    "needs.py": "x = 1\nimport a_package_that_is_missing",
    "typo.py": "def f(:",
    "exits.py": "raise SystemExit(3)",
    "evil.py": "raise AssertionError('this module must not be imported')",
}


@pytest.fixture
def own_modules(tmp_path, monkeypatch, toy_registry):
    """Write modules with games and agents into a folder on Python's path; forget them after the test."""
    for name, text in {"own_games.py": GAMES, "own_agents.py": AGENTS, **BROKEN}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    imports.entry_points.cache_clear()
    yield tmp_path
    imports.entry_points.cache_clear()
    for path in tmp_path.glob("*.py"):
        sys.modules.pop(path.stem, None)


def install(folder: Path, **groups: str) -> None:
    """Write the metadata of an installed package with entry points."""
    package = folder / "a_package-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: a-package\nVersion: 1.0\n", encoding="utf-8")
    text = "\n".join(f"[ninetka.{group}]\n{lines}" for group, lines in groups.items())
    (package / "entry_points.txt").write_text(text, encoding="utf-8")


# Specs


def test_a_spec_names_a_game_and_its_options():
    variant = load_variant("python:own_games:DEFINITION,stones=5,num_players=3")
    assert variant == load_variant("toy:stones=5,num_players=3")
    assert variant == load_variant("python:own_games:DEFINITION", stones=5, num_players=3)
    assert variant.spec == "toy:num_players=3,stones=5"
    assert one_seat("python:own_games:DEFINITION", opponents="random").reset(seed=1)[0].shape == variant.sizes.planes
    results = play_games(["random", "python:own_agents:Bot"], game="python:own_games:DEFINITION", num_games=4)
    assert results.settings.agents == ("random", "python:own_agents:Bot")


def test_a_spec_names_a_class_a_function_or_an_agent():
    def options_of(text: str) -> object:
        return make_agent(f"python:own_agents:{text}")._agent.options

    assert options_of("Bot") == (3, "", None, None, False)
    assert options_of("Bot,depth=4,path=a,exact=5,rest=6,fast") == (4, "a", 5, "6", True)
    assert options_of("Bot,4,path=[a=b,c],fast=false") == (4, "a=b,c", None, None, False)
    assert options_of("made,level=0.5") == ("ninetka", 0.5)
    assert options_of("BOT") == (3, "", None, None, False)
    assert make_agent("python:own_agents:BOT").name == "python:own_agents:BOT"
    assert importlib.import_module("own_agents").BOT.name == "own name"
    states = np.repeat(load_variant("python:own_games:DEFINITION").game_class.start(load_variant("toy")).records, 3)
    assert make_agent("python:own_agents:BOT", "toy").act(states, np.random.default_rng(0)).tolist() == [1, 1, 1]
    nested = make_agent("phases:placement=[python:own_agents:Bot,depth=4],movement=python:own_agents:BOT")
    assert nested.placement._agent.options[0] == 4


FORM = "'.*' is not of the form MODULE:NAME, as in python:mybot:Bot,depth=3$"


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("", f": {FORM}"),
        ("own_games", f": {FORM}"),
        ("own_games:", f": {FORM}"),
        (":DEFINITION", f": {FORM}"),
        ("own_games.py:DEFINITION", f": {FORM}"),
        ("./own_games:DEFINITION", f": {FORM}"),
        ("own_games:DEFINITION:stones=3", f": {FORM}"),
        ("own_gamez:DEFINITION", ": there is no module 'own_gamez' on Python's path$"),
        ("own_games.inner:DEFINITION", ": there is no module 'own_games.inner' on Python's path$"),
        ("needs:X", r": the import of 'needs' fails: ModuleNotFoundError: No module named 'a_package_that_is_missing' "
                    r"\(.*needs\.py, line 2\)$"),
        ("typo:X", r": the import of 'typo' fails: SyntaxError: .* \(typo\.py, line 1\)$"),
        ("exits:X", r": the import of 'exits' fails: SystemExit: 3 \(.*exits\.py, line 1\)$"),
        ("own_games:DEFINITON", r": own_games \(.*own_games\.py\) has no 'DEFINITON' \(did you mean 'DEFINITION'\?\)$"),
        ("own_agents:BOT.other", r": own_agents \(.*\) has no 'BOT\.other'$"),
    ],
)  # fmt: skip
def test_a_place_without_an_object_is_described(rest, message):
    for what, make in (("game", load_variant), ("agent", make_agent)):
        with pytest.raises(ValueError, match=f"^{what} 'python:.*'{message}"):
            make(f"python:{rest}")
    assert "toy" not in known_games()


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("own_agents:Bot", r"own_agents:Bot is <class 'own_agents\.Bot'>, expected the Definition of a game$"),
        ("own_agents:np", r"own_agents:np is <module 'numpy'.*, expected the Definition"),
        ("own_games:DEFINITION,stone=3", r"^toy: unknown option 'stone', .*did you mean 'stones'"),
        ("own_games:DEFINITION,stones=0", "stones='0': expected an integer"),
        ("own_games:DEFINITION,3", "^toy: expected option=value, found '3'$"),
    ],
)
def test_wrong_games_are_described(rest, message):
    with pytest.raises(ValueError, match=message):
        load_variant(f"python:{rest}")


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (
            "own_games:DEFINITION",
            "<Definition of toy> is neither an agent's spec nor an agent, .*: it has no method act$",
        ),
        ("own_agents:np", "<module 'numpy'.* is neither .*: it has no method act$"),
        ("own_agents:nothing", "3 is neither an agent's spec nor an agent, an object with a name and a method act"),
        ("own_agents:POLICY", "is neither an agent's spec nor an agent, .*: it has no method act$"),
        ("own_agents:Slow", r"own_agents:Slow fails: KeyError: 'no clock' \(.*own_agents\.py, line 16\)$"),
        ("own_agents:Exiting", r"own_agents:Exiting fails: SystemExit: no licence \(.*own_agents\.py, line 20\)$"),
        ("own_agents:Later", r"own_agents:Later fails: RuntimeError: too late \(.*own_agents\.py, line \d+\)$"),
        ("own_agents:Renamed", "the attribute name of .* cannot be set$"),
        ("own_agents:OnlyGo", "was made for go, not ninetka"),
        ("own_agents:BOT,depth=3", "own_agents:BOT is no class and no function, so it has no options$"),
        ("own_agents:Bot,dept=3", "unknown option 'dept', allowed are depth, path, exact, rest, fast .*'depth'"),
        ("own_agents:Bot,depth=x", "option depth='x' must be a number$"),
        ("own_agents:Bot,exact=1.5", "option exact='1.5' must be a number$"),
        ("own_agents:Bot,fast=1", "option fast='1' must be true or false$"),
        ("own_agents:Bot,depth=3,depth=3", "option 'depth' is given twice$"),
        ("own_agents:made", "option level is missing: it has no default$"),
        ("own_agents:made,level=1,others=3", "unknown option 'others', allowed are level$"),
        ("own_agents:made,level=1,game=go", "unknown option 'game', allowed are level$"),
        ("own_agents:sized,sizes=3", "option sizes is neither text nor a number, so a spec cannot give it$"),
        ("own_agents:Odd", r"the parameters of <class 'own_agents\.Odd'> are unknown$"),
    ],
)
def test_wrong_agents_are_described(rest, message):
    with pytest.raises(ValueError, match=rf"^agent 'python:{rest[:20]}.*{message}"):
        make_agent(f"python:{rest}")


@pytest.mark.parametrize("name", ["python", "Toy", "a:b", "a,b", "", "two words"])
def test_a_name_that_a_spec_cannot_contain_is_refused(name):
    with pytest.raises(ValueError, match="a name has lower-case letters, digits, _ and -, and is not 'python'"):
        register(toy_game.definition(name=name))


@dataclass
class NetworkConfig:
    """The shape of a network that only the test of configurations needs."""

    width: int = 8


def test_a_configuration_takes_a_game_of_a_module(monkeypatch):
    pytest.importorskip("torch")
    from ninetka_train.learning.config import check_config

    with pytest.raises(ValueError, match="game='python:own_games:DEFINITION': game='toy': it has no networks"):
        check_config({"game": "python:own_games:DEFINITION"})
    monkeypatch.setattr(plugins, "_PLUGINS", dict(plugins._PLUGINS))
    plugins.register_plugins("toy", plugins.GamePlugins(network=__name__))
    config = check_config({"game": "python:own_games:DEFINITION,stones=5", "players": [2, 3], "network": {"width": 9}})
    assert [one.spec for one in config.variants] == ["toy:stones=5", "toy:num_players=3,stones=5"]
    assert config.network.build() == NetworkConfig(9)
    assert check_config(config.model_dump(mode="json")) == config


# Entry points


def test_entry_points_are_known_by_name_and_imported_when_asked_for(own_modules):
    install(own_modules, games="toy = own_games:DEFINITION", agents="bot = own_agents:Bot\nmcts = evil:X")
    assert "toy" in known_games()
    with pytest.raises(ValueError, match=r"unknown game 'tou': known are .*toy.*did you mean 'toy'\?"):
        get_definition("tou")
    with pytest.raises(ValueError, match=r"unknown agent 'bott': known are bot, brs, maxn.*did you mean 'bot'\?"):
        make_agent("bott")
    assert is_agent_name("bot")
    assert not {"own_games", "own_agents"} & sys.modules.keys()
    assert load_variant("toy:stones=5").definition is importlib.import_module("own_games").DEFINITION
    assert make_agent("bot:depth=7", "toy")._agent.options[0] == 7
    assert make_agent("mcts", "toy").searcher  # the names of this package come first
    assert definition_of(toy_game.TOY).name == "toy"


def test_states_and_records_of_an_entry_point_are_read_without_naming_it(own_modules):
    install(own_modules, games="toy = own_games:DEFINITION")
    assert definition_of(toy_game.TOY).name == "toy"
    text = format_record(GameRecord.of((3, 2), "toy:stones=5"))
    assert next(read_records(io.StringIO(text))).variant.spec == "toy:stones=5"


def test_broken_entry_points_do_not_break_others(own_modules):
    lines = "needs = needs:X\nempty = \nodd = own_games\nother = own_games:DEFINITION\ntoy = own_games:DEFINITION"
    before = known_games()  # other tests may have registered games
    imports.entry_points.cache_clear()
    install(own_modules, games=lines, agents="slow = own_agents:Slow\nneeds = needs:X")
    (own_modules / "damaged-1.0.dist-info").mkdir()
    (own_modules / "damaged-1.0.dist-info" / "entry_points.txt").write_text("[ninetka.games]\nno place", "utf-8")
    assert {*known_games()} == {*before, "empty", "needs", "odd", "other", "toy"}
    with pytest.raises(ValueError, match="unknown game 'x'"):
        get_definition("x")
    with pytest.raises(ValueError, match=r"GM\['99'\]: expected one of 1 \(Go\), 40 \(Kropki\)$"):
        next(read_sgf(io.BytesIO(b"(;GM[99])")))
    assert [one.name for one in definitions()][:3] == ["ninetka", "go", "kropki"]
    assert {one.name for one in definitions()} == {*before, "toy"}
    for name, message in (
        ("needs", "game 'needs' of an installed package: the import of 'needs' fails: ModuleNotFoundError: .*line 2"),
        ("empty", f"game 'empty' of an installed package: {FORM}"),
        ("odd", f"game 'odd' of an installed package: {FORM}"),
        ("other", "game 'other' of an installed package: own_games:DEFINITION is the game 'toy'$"),
    ):
        with pytest.raises(ValueError, match=message):
            load_variant(name)
    with pytest.raises(ValueError, match="agent 'needs:x': the import of 'needs' fails: ModuleNotFoundError"):
        make_agent("needs:x")
    assert load_variant("toy").num_players == 2
    assert make_agent("random").name == "random"


# Pickles and other processes


def test_a_pickle_names_the_module_of_the_game():
    variant = load_variant("python:own_games:DEFINITION,stones=5")
    assert pickle.loads(pickle.dumps(variant)) == variant
    blob = pickle.dumps((variant, variant.definition, make_settings(variant)))
    program = "import pickle, sys; v, d, s = pickle.load(sys.stdin.buffer); print(v, d, s.variant.num_actions)"
    done = subprocess.run([sys.executable, "-c", program], input=blob, capture_output=True, env=environment())
    assert done.stdout.decode().split() == ["toy:stones=5", "<Definition", "of", "toy>", "4"], done.stderr.decode()


def make_settings(variant):
    return play_games(["random"], game=variant, num_games=2).settings


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("own_gamez", "game 'toy' of a pickle: there is no module 'own_gamez' on Python's path"),
        ("own_games", "game 'toy' of a pickle: the import of 'own_games' does not register it"),
    ],
)
def test_a_pickle_whose_module_does_not_register_the_game_is_described(module, message):
    register(toy_game.definition(class_path=f"{module}:ToyGame"))
    blob = pickle.dumps(load_variant("toy"))
    program = "import pickle, sys; pickle.load(sys.stdin.buffer)"
    done = subprocess.run([sys.executable, "-c", program], input=blob, capture_output=True, env=environment())
    assert message in done.stderr.decode()


def test_pickles_of_earlier_versions_are_read():
    earlier = (
        b"cninetka_env.core.registry\n_make_variant\n(Vgo\n(I0\nI0\nttR.",  # too few codes: the name is found
        b"cninetka_env.core.registry\nget_definition\n(Vgo\ntR.",
    )
    with pytest.raises(ValueError, match="zip"):
        pickle.loads(earlier[0])
    assert pickle.loads(earlier[1]) is get_definition("go")


@pytest.mark.slow
def test_commands_take_own_games_and_agents_from_the_current_folder(own_modules, tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name in ("own_games.py", "own_agents.py"):
        shutil.move(own_modules / name, folder / name)
    (folder / "ninetka_of_tests").write_text("from ninetka_train.__main__ import main\nmain()", encoding="utf-8")

    def ninetka(*arguments: str) -> str:
        command = [sys.executable, str(own_modules / "started.py"), *arguments]
        shutil.copy(folder / "ninetka_of_tests", own_modules / "started.py")
        done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True)
        return done.stdout + done.stderr

    game = ("--game", "python:own_games:DEFINITION,stones=5")
    played = ninetka("evaluate", "random", "python:own_agents:Bot", *game, "-g", "2", "--save-games", "games.txt")
    assert "python:own_agents:Bot" in played
    assert "unknown game 'toy'" in ninetka("replay", "games.txt")
    assert "stones: 5" in ninetka("replay", "games.txt", *game, "--number", "2")
    assert "no game 3; the file has 2 games" in ninetka("replay", "games.txt", *game, "--number", "3")
    assert "Toy, 2 players, 2 games" in ninetka("evaluate", "--from", "games.txt", *game)
    assert "Toy" in ninetka("rate", "random", "python:own_agents:Bot", *game, "-g", "2")
    warmed = ninetka("warm", game[1])
    assert "python:own_games:DEFINITION,stones=5, match: " in warmed
    assert "failed" not in warmed


# Specs from files and messages are not imported


def test_records_checkpoints_and_sgf_files_import_no_module(own_modules):
    with pytest.raises(ValueError, match="unknown game 'python:evil:X'"):
        get_definition("python:evil:X")
    with pytest.raises(ValueError, match="line 2: unknown game 'python:evil:X': known are"):
        next(read_records(io.StringIO("game record, format 2\ngame: python:evil:X\n")))
    with pytest.raises(ValueError, match=r"GM\['python:evil:X'\]: expected one of"):
        next(read_sgf(io.BytesIO(b"(;GM[python:evil:X])")))
    done = CliRunner().invoke(app, ["replay", str(own_modules / "none.txt"), "--number", "3:evil"])
    assert "'3:evil': expected an integer" in done.output
    assert "evil" not in sys.modules


def test_a_resumed_run_imports_no_module_of_its_folder(tmp_path):
    pytest.importorskip("torch")
    from ninetka_train.learning.config import load_config
    from ninetka_train.run import run

    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("game: python:evil:X\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"game=python:evil:X \(now ninetka\)"):
        run(load_config("quick"), tmp_path / "run", resume=True)
    with pytest.raises(ValueError, match="the import of 'evil' fails: AssertionError"):  # the user's own file
        load_config(tmp_path / "run" / "config.yaml")
