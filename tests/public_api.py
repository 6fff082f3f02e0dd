"""Read the public API from the code, and compare it with a snapshot.

The snapshot, `public_api.json`, lists what users' programs may depend on, and `test_public_api.py` compares the code
with it. After an intended change, update it with `python -m public_api`, with `tests` on the path. Its values are
compared as follows:

- An object holds names. Names may be added, but not removed.
- An array holds the parameters of a function, of a command or of an agent's spec. Parameters after `"*"` are
  keyword-only. New parameters must have defaults. A new positional parameter must come after all others.
- Anything else is a value, which must not change.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import importlib
import inspect
import json
import tempfile
import typing
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pettingzoo
import typer
from gymnasium.envs.registration import load_env_creator

from ninetka_agents import Agent
from ninetka_agents.plugins import agents_of, import_object, network_of, plugins_of
from ninetka_env.api import rendering
from ninetka_env.api.records import GameRecord, format_record
from ninetka_env.core.game import EVENTS, Event
from ninetka_env.core.options import Choice, Integer, Option
from ninetka_env.core.outcome import DRAWN, REWARDS, UNFINISHED
from ninetka_env.core.registry import get_definition
from ninetka_env.games.ninetka.rules import Phase
from ninetka_train.cli import app
from ninetka_train.judging import curve, report
from ninetka_train.judging.arena import play_games
from ninetka_train.judging.evaluate import Evaluation, evaluate
from ninetka_train.ninetka.analyze import Analysis, analysis_dict

SNAPSHOT = Path(__file__).with_suffix(".json")
IDS = {"ninetka": "ninetka_env/Ninetka-v0", "go": "ninetka_env/Go-v0", "kropki": "ninetka_env/Kropki-v0"}

# The public members of public classes, separated by spaces
GAME = (
    "action_index action_name board copy event forfeit from_board from_text is_over legal_actions legal_mask new "
    "num_actions num_players passed play ply records resign returns scores stage to_move winner"
)
GAME_SPECIFIC = {
    "ninetka": "auto_pass counts landing movable phase section_owners turn_order",
    "go": "captured hand_turn ko_points komi owners passes result size",
    "kropki": "drawable drawing height region territory width",
}
RAW_ENV = "action_space close game observation_space observe possible_agents render reset state state_space step"
VECTOR_ENV = (
    "action_mask close final_scores final_winner games num_envs num_players observations reset rewards "
    "single_action_space single_observation_space step terminated to_move"
)
ONE_SEAT = "action_masks action_space close game observation_space render reset seat step"
ONE_SEAT_VECTOR = "action_masks num_envs render reset single_action_space single_observation_space step"
RECORD = "actions counted final of replay scores stated tags winner"
EVALUATE = ("agents", "num_players", "num_games", "*", "game", "seed")
FIGURES = "name games wins draws share interval elo"
CHECKPOINT = ("environment", "network", "sha256")


# The public API of the code


def modules() -> dict[str, Any]:
    """Describe the public modules."""
    found = {f"ninetka_env.{game}_v0": _public_module(game) for game in IDS}
    found["ninetka_agents"] = _functions("ninetka_agents", "make_agent")
    found["ninetka_agents"]["Agent"] = {"act": _parameters(Agent.act, "self"), "name": "str"}
    found["ninetka_agents.ninetka.maxn"] = _functions("ninetka_agents.ninetka.maxn", "evaluate", "search")
    found["ninetka_env.api.record_files"] = _functions("ninetka_env.api.record_files", "read_records", "write_records")
    found["ninetka_env.api.records"] = {"GameRecord": _members(_record("go"), RECORD)}
    # `evaluate` passes its other options to `play_games`.
    taken = dict.fromkeys(_parameters(evaluate) + _parameters(play_games))
    found["ninetka_train.judging.evaluate"] = {
        "evaluate": [one for one in taken if one.partition("=")[0] in EVALUATE],
        "evaluate(...)": {"agents": _members(_evaluation().agents[0], FIGURES)},
    }
    return found


def values() -> dict[str, Any]:
    """List the values that users' code passes or compares with, and the allowed values of the games' options."""
    options = {game: {one.name: _allowed(one) for one in get_definition(game).options} for game in IDS}
    return {
        **options,
        "DRAWN": DRAWN,
        "UNFINISHED": UNFINISHED,
        "Phase": {phase.name: phase.value for phase in Phase},
        "event": _names(Event._fields),
        "kind": _names(EVENTS),
        "render_mode": _names(rendering.RENDER_MODES),
        "reward": _names(REWARDS),
    }


def environments() -> dict[str, Any]:
    """Describe the environments with default options, their spaces and arrays; vector environments have two games."""
    return {game: _environments(game) for game in IDS}


def games() -> dict[str, Any]:
    """List the options of games with their defaults."""
    return {game: ["*", *(f"{one.name}={one.default!r}" for one in get_definition(game).options)] for game in IDS}


def agents() -> dict[str, Any]:
    """List the agents of each game with the options of their specs; a spec may omit the key of the first option."""
    return {game: _agents(game, [name for name in agents_of(game) if name != "net"]) for game in IDS}


def commands() -> dict[str, Any]:
    """List the commands with their arguments and options."""
    group: Any = typer.main.get_command(app)
    return {"": _command(group), **{name: _command(one) for name, one in group.commands.items()}}


def written_json() -> dict[str, Any]:
    """List the keys of the JSON that commands write."""
    settings = _evaluation().settings
    return {
        "evaluate --json": _keys_of(Evaluation, report.evaluation_dict(_evaluation())),
        "curve": _keys_of(curve.Curve, curve.curve_dict(curve.Curve(settings, "random", 0.0, []))),
        "analyze --json": _keys_of(Analysis, analysis_dict(Analysis(0, 0, [], None, 0))),
    }


def game_records() -> dict[str, Any]:
    """List the lines of a game record of each game."""
    lines = {game: format_record(_record(game)).splitlines() for game in IDS}
    return {game: _names(line.partition(":")[0] for line in found if line[0] != " ") for game, found in lines.items()}


def networks() -> dict[str, Any]:
    """Describe the parts that need torch: the agent `net`, checkpoints and the shipped networks."""
    from ninetka_agents import checkpoint

    module = network_of("ninetka")
    with tempfile.TemporaryDirectory() as folder:
        path = checkpoint.save_checkpoint(Path(folder) / "small", module.Network(module.NetworkConfig(8, 1)))
        about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return {
        "ninetka_agents.checkpoint": _functions("ninetka_agents.checkpoint", "load_checkpoint"),
        "agents": {game: _agents(game, ["net"]) for game in IDS},
        "checkpoint": {"format": about.get("format"), **_names(key for key in CHECKPOINT if key in about)},
        "shipped networks": {game: _names([checkpoint.shipped_network(game).stem]) for game in IDS},
    }


SECTIONS: dict[str, Callable[[], dict[str, Any]]] = {
    one.__name__: one
    for one in (modules, values, environments, games, agents, commands, written_json, game_records, networks)
}


def main() -> None:
    """Write the snapshot."""
    found = {name: collect() for name, collect in SECTIONS.items()}
    SNAPSHOT.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _parameters(function: Callable[..., Any], *omitted: str) -> list[str]:
    """Return a function's parameters with defaults; `"*"` precedes keyword-only ones, `/` positional-only ones."""
    found: list[str] = []
    for one in inspect.signature(function).parameters.values():
        if one.name not in omitted:
            if one.kind is one.KEYWORD_ONLY and "*" not in found:
                found.append("*")
            sign = {one.POSITIONAL_ONLY: "/", one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
            found.append(sign + one.name + ("" if one.default is one.empty else f"={_text(one.default)}"))
    return found


def _text(default: Any) -> str:
    return repr(default.name if isinstance(default, Enum) else default)


def _functions(module: str, *names: str) -> dict[str, Any]:
    found = importlib.import_module(module)
    return {name: _parameters(getattr(found, name)) for name in names if hasattr(found, name)}


def _members(thing: Any, names: str) -> dict[str, Any]:
    """Describe the attributes and methods of `thing` in `names`; call the methods that need no arguments."""
    found: dict[str, Any] = {}
    for name in filter(lambda name: hasattr(thing, name), names.split()):
        value = getattr(thing, name)
        if not callable(value):
            found[name] = _describe_value(value)
            continue
        found[name] = _parameters(value)
        if all("=" in one or one == "*" for one in found[name]):
            found[f"{name}()"] = _returned(getattr(copy.deepcopy(thing), name))
    return found


def _returned(call: Callable[[], Any]) -> str:
    """Describe what a call returns, or the error that it raises, for example because a name was removed."""
    try:
        return _describe_value(call())
    except Exception as error:
        return repr(error)


def _describe_value(value: Any) -> str:
    """Return the public facts about a value: its type, and the dtype and shape of an array."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype if value.dtype.names is None else 'structured'} {value.shape}"
    if isinstance(value, gymnasium.Space):
        return str(value)
    if type(value) is tuple and len(set(map(_describe_value, value))) > 1:
        return f"({', '.join(map(_describe_value, value))})"
    return type(value).__name__


def _names(names: Iterable[str]) -> dict[str, Any]:
    """Return a JSON object that holds only names."""
    return dict.fromkeys(names, True)


def _public_module(game: str) -> dict[str, Any]:
    module = importlib.import_module(f"ninetka_env.{game}_v0")
    position = {"Game": _parameters(module.Game), **_members(module.Game.new(), f"{GAME} {GAME_SPECIFIC[game]}")}
    return {**_functions(module.__name__, "env", "raw_env", "vector_env"), "Game": position}


@functools.cache
def _record(game: str) -> GameRecord:
    """Return the record of a game that always plays the first legal action."""
    position, actions = get_definition(game).game_class.new(), []
    while not position.is_over:
        actions.append(int(position.legal_actions()[0]))
        position.play(actions[-1])
    return GameRecord.of(actions, game)


@functools.cache
def _evaluation() -> Evaluation:
    return evaluate(["random", "random"], num_games=2)


def _environments(game: str) -> dict[str, Any]:
    module, name = importlib.import_module(f"ninetka_env.{game}_v0"), IDS[game]
    bare, batch = module.raw_env(render_mode="ansi"), module.vector_env(2)
    bare.reset()
    one: Any = gymnasium.make(name, opponents="random", render_mode="ansi").unwrapped
    many: Any = gymnasium.make_vec(name, num_envs=2, opponents="random", render_mode="ansi").unwrapped
    info, infos = one.reset()[1], many.reset()[1]
    spec: Any = gymnasium.spec(name)
    single, vector = (load_env_creator(entry) for entry in (spec.entry_point, spec.vector_entry_point))
    registered = getattr(pettingzoo, "aec_registry", {name})  # PettingZoo 1.27 and later
    return {
        "raw_env": {
            **_members(bare, RAW_ENV),
            "action_space(...)": _returned(lambda: bare.action_space("player_0")),
            "observation_space(...)": _returned(lambda: bare.observation_space("player_0")),
            "metadata": {key: bare.metadata.get(key) for key in ("name", "is_parallelizable")},
        },
        "vector_env": {
            **_members(batch, VECTOR_ENV),
            "step(...)": _returned(lambda: batch.step(batch.action_mask.argmax(axis=1))),
            "games": {field: str(batch.games.dtype[field]) for field in ("num_players", "to_move")},
        },
        name: {
            "gymnasium.make": ["*", *_parameters(single, "game", "options")],
            "gymnasium.make_vec": ["*", *_parameters(vector, "game", "options", "num_envs")],
            "opponents": plugins_of(game).default_opponent,
            "pettingzoo.make": name in registered,
        },
        "gymnasium.make": {
            **_members(one, ONE_SEAT),
            "info": {key: _describe_value(value) for key, value in info.items()},
            "step(...)": _returned(lambda: one.step(info["action_mask"].argmax())),
        },
        "gymnasium.make_vec": {
            **_members(many, ONE_SEAT_VECTOR),
            "infos": {key: _describe_value(value) for key, value in infos.items()},
            "step(...)": _returned(lambda: many.step(infos["action_mask"].argmax(axis=1))),
        },
    }


def _allowed(option: Option) -> Any:
    if isinstance(option, Choice):
        return _names(map(repr, option.values))
    return f"{option.minimum}..{option.maximum}" if isinstance(option, Integer) else True


def _agents(game: str, names: Iterable[str]) -> dict[str, Any]:
    options = {name: _parameters(import_object(agents_of(game)[name]), "game") for name in names}
    return {name: [*found[:1], "*", *sorted(found[1:])] for name, found in options.items()}


def _command(command: Any) -> list[str]:
    """Return the arguments of a command by number, because their names are not public, and its options by name."""
    arguments: list[str] = []
    options: list[str] = []
    for one in command.params:
        default = "" if one.required else f"={one.default}"
        if one.param_type_name == "argument":
            arguments.append(f"{'arguments' if one.nargs < 0 else 'argument'} {len(arguments) + 1}{default}")
        else:
            options += [spelling + default for spelling in one.opts]
    return [*arguments, "*", *sorted(options)]


def _keys_of(kind: Any, written: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of the JSON object `written`. The dataclass `kind` declares the keys of nested objects."""
    inner = _keys(kind)
    return {key: inner.get(key, True) for key in written}


def _keys(kind: Any) -> Any:
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return {field.name: _keys(hints[field.name]) for field in dataclasses.fields(kind)}
    return next((keys for keys in map(_keys, typing.get_args(kind)) if keys is not True), True)


# The comparison


class Parameter(NamedTuple):
    """A parameter as written in the snapshot."""

    place: int
    """Position, counted from 1; 0 for keyword-only parameters."""
    default: str | None
    """The default; None if the parameter is required."""


def differences(before: Any, now: Any, place: str = "") -> list[str]:
    """Return a line for each change from `before` to `now` that may break users' programs.

    Such changes are removals, other values and new required parameters. `place` is the path of both in the snapshot.
    """
    if isinstance(before, dict) and isinstance(now, dict):
        found = []
        for name, entry in before.items():
            where = f"{place} > {name}" if place else name
            if name in now:
                found += differences(entry, now[name], where)
            else:
                found.append(f"{where} is gone{_added(before, now)}")
        return found
    if isinstance(before, list) and isinstance(now, list):
        return [f"{place}: {what}" for what in _differences_of_parameters(_parsed(before), _parsed(now))]
    return [] if before == now else [f"{place} was {before!r}, is now {now!r}"]


def _differences_of_parameters(before: dict[str, Parameter], now: dict[str, Parameter]) -> list[str]:
    found = []
    for name, was in before.items():
        if name not in now:
            found.append(f"{name} is gone{_added(before, now)}")
            continue
        one = now[name]
        if was.place and one.place != was.place:
            place = f"is now at place {one.place}" if one.place else "has none now"
            found.append(f"{name} was at place {was.place}, {place}")
        if was.default is not None and one.default != was.default:
            becomes = "is now required" if one.default is None else f"is now {one.default}"
            found.append(f"{name} was {was.default} by default, {becomes}")
    return found + [f"{name} is new and required" for name in now if name not in before and now[name].default is None]


def _added(before: Iterable[str], now: Iterable[str]) -> str:
    added = [name for name in now if name not in before]
    return f" (new: {', '.join(added)})" if added else ""


def _parsed(parameters: list[str]) -> dict[str, Parameter]:
    found: dict[str, Parameter] = {}
    with_place = True
    for text in parameters:
        name, equals, default = text.partition("=")
        if text == "*":
            with_place = False
        elif text.startswith("**"):
            found[text] = Parameter(0, "")
        else:
            found[name] = Parameter((len(found) + 1) * with_place, default if equals else None)
    return found


if __name__ == "__main__":
    main()
