"""Check README and docs: all code runs as printed, tables match the code, and names exist.

`page.py` runs a page with the real commands, except where a command would take too long or never end:

- The folder where a page runs contains small versions of `configs/quick.yaml` and `configs/ppo.yaml`, which take
  precedence over the shipped ones, so `ninetka train` ends in seconds. By default, `ninetka train` evaluates with 4
  games and `make train` with 20.
- `ninetka play` and `ninetka study` are started, and stopped by Ctrl-C after they print something: `play` never ends,
  and `study` takes minutes. `ninetka play` takes another port if the default port is in use.
- `pip install` is a dry run that checks that all packages are already installed.
- `make train` runs; for other targets, including the tests, `make` only prints its commands.

Pages of `docs/trainers` need separate environments: `make docs-trainers` runs them.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import typer
import yaml
from page import FENCED_BLOCK, Block, blocks_of
from requirements import needs_posix

from ninetka_env import __version__
from ninetka_env.games.ninetka.definition import OPTIONS
from ninetka_env.games.ninetka.geometry import NUM_ACTIONS
from ninetka_env.games.ninetka.observation import PLANES, SHAPE
from ninetka_env.games.ninetka.rules import STATE_DTYPE
from ninetka_train.cli import app
from ninetka_train.commands.group import FORMER_COMMANDS, GAME_OPTIONS

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PAGES += sorted(set(ROOT.glob("docs/**/*.md")) - set(ROOT.glob("docs/trainers/*.md")))
CARDS = sorted(path for folder in ("networks", "agents") for path in ROOT.glob(f"{folder}/**/*.md"))
ALL_PAGES = PAGES + sorted(ROOT.glob("docs/trainers/*.md")) + CARDS
TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in PAGES}
NINETKA_PAGE = TEXTS["docs/games/ninetka.md"]
DEFINITIONS = (ast.ClassDef, ast.FunctionDef)
LONG_PAGES = {
    "README.md",
    "docs/index.md",
    *(f"docs/guides/{name}.md" for name in ("adding-a-game", "evaluation", "gtp", "training")),
}
"""Pages that train and play matches, which takes half a minute or more each."""

SMALL_CONFIG = {
    "network": {"width": 8, "blocks": 1},
    "threads": 1,
    "checkpoint_every": 1,
    "alphazero": {"rounds": 2, "games": 2, "playouts": 8, "steps": 2, "minibatch": 32, "microbatch": 32},
    "ppo": {"moves": 64, "games": 4, "plies": 16, "minibatch": 32, "microbatch": 32},
}
COMMAND_SHIMS = {
    "python": 'exec {python} "$@"',
    "ninetka": """
run="{python} -m ninetka_train.cli"
case $1 in
    play) {python} {tests}/interrupt.py "http://127.0.0.1" $run "$@" ||
          {python} {tests}/interrupt.py "http://127.0.0.1" $run "$@" --port 0;;
    study) {python} {tests}/interrupt.py "" $run "$@";;
    train) shift; exec $run train --games 4 "$@";;
    *) exec $run "$@";;
esac""",
    "pip": """
[ "$1" = install ] || exit 2
cd {root} && exec {python} -m pip --quiet "$@" --dry-run --no-index --no-build-isolation""",
    "make": """
case $1 in
    train) exec {make} --file {root}/Makefile --old-file .venv/.installed BIN={bin} "$@";;
    *) exec {make} --directory {root} --dry-run "$@";;
esac""",
}


def is_run(block: Block) -> bool:
    return not block.title and block.language != "text"


@pytest.fixture
def reader(tmp_path: Path) -> dict[str, str]:
    """Create a folder like a reader's clone; return the environment variables for running commands in it."""
    commands = tmp_path / "bin"
    commands.mkdir()
    places = {"python": sys.executable, "tests": ROOT / "tests", "root": ROOT, "bin": commands}
    for name, script in COMMAND_SHIMS.items():
        text = script.format(make=shutil.which("make"), **places)
        (commands / name).write_text(f"#!/bin/sh\n{text.strip()}\n", encoding="utf-8")
        (commands / name).chmod(0o755)
    folder = tmp_path / "clone"
    (folder / "configs").mkdir(parents=True)
    for name in ("quick", "ppo"):
        values = yaml.safe_load((ROOT / "configs" / f"{name}.yaml").read_text(encoding="utf-8"))
        (folder / "configs" / f"{name}.yaml").write_text(yaml.safe_dump(values | SMALL_CONFIG), encoding="utf-8")
    own = {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "GAMES": "20", "BROWSER": "true", "MAKEFLAGS": ""}
    packages = [str(ROOT / part) for part in ("", "agents", "train")] + [os.environ.get("PYTHONPATH", "")]
    own |= {"PYTHONPATH": os.pathsep.join(filter(None, packages)), "XDG_DATA_HOME": str(tmp_path / "data")}
    return os.environ | own | {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "PWD": str(folder)}


def as_parameter(page: str) -> Any:
    """Return a page as a test parameter, marked `exhaustive` if it is in `LONG_PAGES`, otherwise `slow`."""
    return pytest.param(page, marks=pytest.mark.exhaustive if page in LONG_PAGES else pytest.mark.slow)


@needs_posix
@pytest.mark.parametrize(
    "page", [as_parameter(page) for page, text in TEXTS.items() if any(map(is_run, blocks_of(text)))]
)
def test_a_page_runs(page: str, reader: dict[str, str]) -> None:
    command = [sys.executable, str(ROOT / "tests" / "page.py"), str(ROOT / page)]
    done = subprocess.run(command, cwd=reader["PWD"], env=reader, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=1800)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


WITH_EXAMPLES = [path for path in sorted(ROOT.glob("*/**/game.py")) if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.parent.name)
def test_examples_in_docstrings_run(path: Path) -> None:
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    failed, tried = doctest.testmod(module)
    assert tried
    assert not failed


MAX_COLUMNS = 88
"""Columns of code that fit the site in a window of 1,280 pixels, by `docs/style.css`; longer lines scroll."""


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_blocks_fit_the_page(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    lines = "".join(dedent(block["text"]) for block in FENCED_BLOCK.finditer(text)).splitlines()
    assert [line for line in lines if len(line) > MAX_COLUMNS] == []


# Text between the blocks


def spans() -> list[tuple[str, str]]:
    """Return each text in backticks outside of blocks, as (page, text)."""
    prose = {name: re.sub(r"^ *```.*?^ *```$", "", text, flags=re.S | re.M) for name, text in TEXTS.items()}
    return [(name, span) for name, text in prose.items() for span in re.findall(r"`([^`\n]+)`", text)]


def commands_not_run() -> set[str]:
    """Return the commands of ninetka in blocks that are not run, each without its line breaks."""
    blocks = [block for text in TEXTS.values() for block in blocks_of(text) if not is_run(block)]
    command = re.compile(r'^ninetka [a-z](?:[^"\n\\]|"[^"]*"|\\\n)*', re.M)
    return {found.replace("\\\n", " ") for block in blocks for found in command.findall(block.text)}


IN_THE_TEXT = {span for _, span in spans() if re.match(r"ninetka( [a-z]|$)", span)}


@pytest.mark.parametrize("span", sorted(IN_THE_TEXT | commands_not_run()))
def test_commands_in_the_text_exist(span: str) -> None:
    """Names and options of commands exist. A command with arguments is complete; capitals stand in for numbers, too."""
    _, *words = shlex.split(span.partition(" <<")[0].replace(" ...", ""))
    if words:
        group = typer.main.get_command(app)
        command = group.commands[words[0]]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words[1:] if word.startswith("-")} <= known | {"--help"}
        if not all(word.startswith("-") for word in words[1:]):
            command.make_context(words[0], [re.sub(r"^[A-Z]+$", "1", word) for word in words[1:]])


@pytest.mark.parametrize("page", TEXTS)
def test_make_targets_exist(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    assert set(re.findall(r"`make ([a-z-]+)", TEXTS[page])) <= targets


@needs_posix
@pytest.mark.parametrize("target", ["train", "test"])
def test_commands_without_make_are_those_of_the_makefile(target: str) -> None:
    (documented,) = re.findall(rf"^\| `{target}` \| `(.*)` \|$", TEXTS["docs/platforms.md"], re.M)
    makes = ["make", "--dry-run", "--directory", str(ROOT), "--old-file", ".venv/.installed", "GAMES=1000", "WORKERS=2"]
    own = os.environ | {"MAKEFLAGS": ""}
    lines = subprocess.run([*makes, target], check=True, capture_output=True, text=True, env=own).stdout.splitlines()
    assert documented in [line.replace("OMP_WAIT_POLICY=passive ", "").replace(".venv/bin/", "") for line in lines]


def test_files_and_modules_in_the_text_exist() -> None:
    for page, span in spans():
        name = span.replace("NAME", "ninetka")
        if re.fullmatch(
            r"(ninetka_env|ninetka_web|agents|train|configs|networks|benchmarks|tests|docs|examples)/[\w./-]*(?<!-v0)",
            name,
        ):
            assert (ROOT / name).exists(), (page, span)
        if re.fullmatch(r"ninetka_(env|agents|train|web)(\.\w+)+", name):
            assert exists(name), (page, span)


def test_tests_in_the_text_exist() -> None:
    named = {span for _, span in spans() if re.fullmatch(r"tests/[\w/]+\.py::\w+", span)}
    assert named
    for span in named:
        path, _, name = span.partition("::")
        assert lines_of((ROOT / path).read_text(encoding="utf-8"), name), span


def exists(name: str) -> bool:
    """Return whether a dotted name is a module, or a name that occurs in the text of a module."""
    parts, places = name.split("."), (ROOT, ROOT / "agents", ROOT / "train")
    for end in range(len(parts), 0, -1):
        for place in places:
            path = place.joinpath(*parts[:end])
            file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
            if file.is_file():
                return (
                    end == len(parts) or re.search(rf"\b{parts[end]}\b", file.read_text(encoding="utf-8")) is not None
                )
    return False


def test_reading_path_exists_and_has_the_stated_length() -> None:
    stops = TEXTS["docs/guides/reading-the-code.md"].partition("## Where the rest is")[0]
    lines = 0
    for path, names in re.findall(r"^`([\w/]+\.py)`(?:: (.+?))?(?:<br>)?$", stops, flags=re.MULTILINE):
        text = (ROOT / path).read_text(encoding="utf-8")
        named = re.findall(r"`([\w.]+)`", names)
        lines += sum(lines_of(text, name) for name in named) if named else len(text.splitlines())
    assert stops.count("\n## ") == 10
    stated = int(re.findall(r"about ([\d,]+) lines", stops)[0].replace(",", ""))
    assert abs(lines - stated) <= 100


def lines_of(text: str, name: str) -> int:
    """Return the number of lines of a class, function or method of a module."""
    nodes: list[Any] = [ast.parse(text)]
    for part in name.split("."):
        nodes = [node for node in nodes[0].body if isinstance(node, DEFINITIONS) and node.name == part]
        assert nodes, name
    return nodes[0].end_lineno - nodes[0].lineno + 1


def test_readme_links_exist() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", TEXTS["README.md"])
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_changelog_has_the_version_of_the_package_and_short_lines() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## \[([\d.]+)\] - (?:unreleased|\d{4}-\d\d-\d\d)$", text, re.M)[1] == __version__
    assert max(map(len, text.splitlines())) <= 120


def test_former_commands_and_options_in_the_changelog_are_answered() -> None:
    """The changelog names each former spelling that a command answers."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("These spellings end in an error")[2]
    former = [f"`ninetka {old}` is `ninetka {new}`" for old, new in FORMER_COMMANDS.items()]
    assert [one for one in [*former, *GAME_OPTIONS] if one not in text] == []


def test_pages_have_no_placeholders() -> None:
    for page in TEXTS:
        assert not re.findall(r"TODO|FIXME|XXX|@[A-Z]+@", TEXTS[page]), page


# Tables


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_columns_of_tables_have_names(page: Path) -> None:
    headers = re.findall(r"^ *(\|.*\|)\n *\|[-: |]+\|$", page.read_text(encoding="utf-8"), re.M)
    assert [header for header in headers if not all(cell.strip() for cell in header.strip("|").split("|"))] == []


def table(name: str) -> list[str]:
    """Return the rows of the table on 9tka's page that is marked with a name."""
    return NINETKA_PAGE.split(f"<!-- {name} -->")[1].split(f"<!-- /{name} -->")[0].strip().splitlines()[2:]


def test_pages_and_cards_have_the_number_of_weights_of_each_network() -> None:
    safetensors, sizes = pytest.importorskip("safetensors"), {}
    for card in CARDS:
        if (tensors := card.with_suffix(".safetensors")).exists():
            with safetensors.safe_open(tensors, "numpy") as file:
                names = [name for name in file.keys() if name.startswith("network.")]  # noqa: SIM118
                shapes = [file.get_slice(name).get_shape() for name in names]
            size = sizes[card.parent.name, card.stem] = sum(map(math.prod, shapes))
            found = re.findall(r"\((\d+) k parameters", card.read_text(encoding="utf-8"))
            assert found == [f"{size / 1000:.0f}"], card
    rows = re.findall(r"^\| \**`([\w-]+)`.*? \| (\w+) \| (\d+) k, ", TEXTS["docs/model-zoo.md"], re.MULTILINE)
    games = {"9tka": "ninetka", "Go": "go", "Kropki": "kropki"}
    zoo = {(games[title], name): size for name, title, size in rows}
    assert zoo == {network: f"{size / 1000:.0f}" for network, size in sizes.items()}
    notebook = TEXTS["docs/lab-notebook.md"].split("\n## Go")[1]
    for name, size in re.findall(r"^- `([\w-]+)`.*?(\d+) k parameters", notebook, re.MULTILINE):
        assert size == zoo["go", name]
    assert f"gen-4, {sizes['ninetka', 'gen-4']:,} parameters" in TEXTS["docs/cluster.md"]


def test_planes_table_matches_the_code() -> None:
    numbers = [f"{p.first}-{p.first + p.number - 1}" if p.number > 1 else f"{p.first}" for p in PLANES]
    assert table("planes") == [f"| {number} | {p.meaning} |" for number, p in zip(numbers, PLANES, strict=True)]


def test_options_table_matches_the_code() -> None:
    rows = [f"| `{one.name}` | `{one.default!r}` | {one.allowed} | {one.meaning} |" for one in OPTIONS]
    assert table("options") == rows


def test_spaces_match_the_code() -> None:
    planes, height, width = SHAPE
    assert f"observation=Box(0, 1, {SHAPE}, int8), action_mask=Box(0, 1, ({NUM_ACTIONS},), int8)" in NINETKA_PAGE
    assert f"`Discrete({NUM_ACTIONS})`" in NINETKA_PAGE
    for page in ("README.md", "docs/index.md"):
        assert f"| {NUM_ACTIONS} | {planes} planes of {height} x {width} |" in TEXTS[page]


@pytest.mark.parametrize("page", ["docs/games/ninetka.md", "docs/lab-notebook.md"])
def test_state_size_matches_the_code(page: str) -> None:
    assert f"{STATE_DTYPE.itemsize} bytes" in TEXTS[page]
