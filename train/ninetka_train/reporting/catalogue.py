"""Tables of what there is: games, agents with their options, configurations, networks.

Start reading at `agents_tables`. `ninetka_train.commands.catalogue` prints the tables.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from ninetka_agents.plugins import agents_of, games_with_networks, import_object
from ninetka_env.core import imports
from ninetka_env.core.registry import Definition, definitions
from ninetka_train.judging.ratings_page import read_ratings
from ninetka_train.judging.report import new_table

Rows = Sequence[Sequence[str]]


def games_tables() -> list[Table]:
    """Return a table of all games, and a table of the options of each."""
    known = list(definitions())
    rows = []
    for one in known:
        sizes = one.variant().sizes
        planes = " x ".join(map(str, sizes.planes))
        rows.append((one.name, one.title, _players(one), str(sizes.num_actions), planes, str(sizes.max_plies)))
    columns = ("--game", "game", "players", "actions", "observation", "max. plies")
    note = "With default options. Options follow a colon, separated by commas: --game go:komi=6.5,ko=positional"
    found = [_table("Games", columns, rows, note)]
    for one in known:
        options = [(f"{option.name}={option.default}", f"{option.meaning}; {option.allowed}") for option in one.options]
        if options:
            found.append(_table(f"Options of {one.name}, with defaults", ("option", "meaning"), options))
    return found


def _players(definition: Definition) -> str:
    """Return the numbers of players that a game allows."""
    for option in definition.options:
        if option.name == "num_players":
            return option.allowed
    return str(definition.variant().num_players)


def agents_tables(definition: Definition) -> list[Table]:
    """Return tables of a game's agents, of the options of each, and of its networks."""
    known = {name: describe_agent(place) for name, place in agents_of(definition.name).items()}
    rows = [(name, about) for name, (about, _) in known.items()]
    rows += [(name, f"an installed package: {place}") for name, place in imports.entry_points(imports.AGENTS).items()]
    rows.append((f"{imports.PREFIX}:MODULE:NAME", "an agent of your own"))
    note = "Options follow a colon, separated by commas: mcts:simulations=200,rave"
    found = [_table(f"Agents of {definition.title}", ("agent", "how it plays"), rows, note)]
    for name, (_, options) in known.items():
        if options:
            found.append(_table(f"Options of {name}, with defaults", ("option", "meaning"), options))
    if definition.name in games_with_networks():
        with suppress(ImportError):  # without torch, the row of `net` says what to install
            found.append(_networks_table(definition))
    return found


def describe_agent(place: str) -> tuple[str, list[tuple[str, str]]]:
    """Return how the agent plays that the constructor at `"module:name"` makes, and its options.

    An option is a pair: the name with its default as in a spec, such as `"simulations=1000"`, and the meaning. A name
    without a default means that the agent chooses the value.
    """
    try:
        made: Callable[..., Any] = import_object(place)
    except ImportError as error:
        return f"needs {error.name}: {imports.install_command('train')}", []
    about = (inspect.getdoc(made) or "").partition("\n")[0]
    described = made.__init__ if isinstance(made, type) else made  # type: ignore[misc]
    meanings = argument_meanings(inspect.getdoc(described) or "")
    options = [
        (one.name + _value_text(one.default), meanings.get(one.name, ""))
        for one in inspect.signature(made).parameters.values()
        if one.name != "game"
    ]
    return about, options


def _value_text(value: Any) -> str:
    """Return `=` and a default as it is written in a spec; empty if the agent chooses the value."""
    return "" if value in (None, "") else f"={str(value).lower() if isinstance(value, bool) else value}"


def argument_meanings(docstring: str) -> dict[str, str]:
    """Return the descriptions in the section `Args:` of a docstring in Google's style, by argument."""
    section = re.search(r"^Args:\n((?:[ ]{4}.*\n?|\n)+)", docstring, re.MULTILINE)
    entries = re.findall(r"^[ ]{4}(\w+): (.*(?:\n[ ]{8}.*)*)", section[1] if section else "", re.MULTILINE)
    return {name: " ".join(text.replace("`", "").split()) for name, text in entries}


def _networks_table(definition: Definition) -> Table:
    """Return a table of the networks of a game."""
    from ninetka_agents.checkpoint import known_networks, shipped_network

    ratings, shipped = read_ratings(definition.name), shipped_network(definition.name)
    rows = []
    for name, path in known_networks(definition.name).items():
        what = "net" if path == shipped else f"net:{name}"
        rows.append((what, name, _weights(path), f"{path.stat().st_size / 1e6:.1f} MB", ratings.get(name, "-")))
    note = f"Elo without search, from docs/ratings/{definition.name}.md. Networks of your own: net:runs/NAME."
    return _table(f"Networks of {definition.title}", ("agent", "network", "weights", "file", "Elo [95 %]"), rows, note)


def _weights(path: Path) -> str:
    """Return the number of weights in a file of tensors."""
    from safetensors import safe_open

    with safe_open(path, "numpy") as file:
        shapes = [file.get_slice(name).get_shape() for name in file.keys() if name.startswith("network.")]  # noqa: SIM118
    return _thousands(sum(map(math.prod, shapes)))


def _thousands(count: int) -> str:
    return f"{count / 1000:.0f} k"


def configs_tables() -> list[Table]:
    """Return a table of the shipped configurations."""
    from ninetka_train.learning.config import load_config
    from ninetka_train.learning.config_files import shipped_configs

    rows = []
    for name, path in shipped_configs().items():
        config = load_config(path)
        rows.append((name, config.definition.title, config.algorithm, _first_sentence(path)))
    note = "used as in ninetka train --config quick; the files are in the folder configs/ of a clone"
    return [_table("Configurations", ("--config", "game", "algorithm", "about"), rows, note)]


def _first_sentence(path: Path) -> str:
    """Return the first sentence of the comment at the start of a YAML file."""
    lines = takewhile(lambda line: line.startswith("#"), path.read_text(encoding="utf-8").splitlines())
    text = " ".join(line.removeprefix("#").strip() for line in lines)
    return re.split(r"(?<=\.)\s", text, maxsplit=1)[0]


def info_tables(network: str, game: str) -> list[Table]:
    """Return a table that describes a trained network; raise `ValueError` if there is none."""
    from ninetka_agents.checkpoint import find_checkpoint, known_networks, load_checkpoint

    loaded, about, _ = load_checkpoint(network, game=game)
    path = find_checkpoint(network, game)
    weights = sum(tensor.numel() for tensor in loaded.state_dict().values())
    rows = [
        ("file", f"{path}, {path.stat().st_size / 1e6:.1f} MB"),
        ("game", loaded.game),
        ("shape", ", ".join(f"{key}={value}" for key, value in vars(about.network).items())),
        ("weights", _thousands(weights)),
        *_training_rows(about.config, about.step),
    ]
    if path in known_networks(loaded.game).values():
        rows.append(("Elo [95 %]", read_ratings(loaded.game).get(path.stem, "-")))
    card = path.with_suffix(".md")
    rows += [("model card", str(card))] if card.exists() else []
    return [_table(f"Network {network}", ("", ""), rows)]


def _training_rows(config: dict[str, Any], step: int) -> Rows:
    """Return what the configuration in a checkpoint says about the training."""
    if not config:
        return []
    unit = {"ppo": "moves", "alphazero": "rounds"}.get(config.get("algorithm", ""), "steps")
    names = ("game", "players", "seed", "start_from")
    settings = ", ".join(f"{name}={config[name]}" for name in names if config.get(name) not in (None, ""))
    return [("trained by", f"{config.get('algorithm')}, {step} {unit}, configuration {config.get('name')}"),
            ("settings", settings)]  # fmt: skip


def _table(title: str, columns: Sequence[str], rows: Rows, note: str | None = None) -> Table:
    """Return a table of texts, whose last column is wrapped; without names of columns it has no header."""
    table = new_table(title, *columns, note=note)
    for column in table.columns[1:]:
        column.justify, column.no_wrap = "left", False
    table.columns[-1].overflow = "fold"
    if not any(columns):
        table.show_header, table.box = False, None
    for row in rows:
        table.add_row(*map(Text, row))
    return table
