"""Complete values in the shell: configurations, games with their options, agents, and networks.

Start reading at `complete_agent`. A completion imports no torch, because it must be fast. It never fails: it runs
while a user types, so anything may be incomplete.
"""

from __future__ import annotations

import functools
import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from typing import TypeVar

import typer

Complete = TypeVar("Complete", bound=Callable[..., list[str]])


def _without_errors(complete: Complete) -> Complete:
    """Let a function return no values where it would raise an exception."""

    @functools.wraps(complete)
    def wrapped(*arguments: object, **named: object) -> list[str]:
        try:
            return complete(*arguments, **named)
        except Exception:
            return []

    return wrapped  # type: ignore[return-value]  # the same signature


@_without_errors
def complete_config() -> list[str]:
    """Return the names of the configurations."""
    from ninetka_train.learning.config_files import other_configs, shipped_configs

    return [*shipped_configs(), *other_configs()]


@_without_errors
def complete_game(incomplete: str) -> list[str]:
    """Return the games; after a game and a colon, the values of its options that are not given yet."""
    from ninetka_env.core.options import Choice
    from ninetka_env.core.registry import get_definition, known_games

    game, colon, _ = incomplete.partition(":")
    if not colon:
        return known_games()
    start = re.sub("[^:,]*$", "", incomplete)
    found = []
    for option in get_definition(game.lower()).options:
        if f"{option.name}=" not in re.split("[:,]", start.replace("=", "=,")):
            values = option.values if isinstance(option, Choice) else (option.default,)
            texts = ["" if one is None else str(one).lower() if isinstance(one, bool) else str(one) for one in values]
            found += [f"{start}{option.name}={text}" for text in texts]
    return found


@_without_errors
def complete_agent(context: typer.Context) -> list[str]:
    """Return the agents of the game that the command line names, or of the command's default game, and its networks."""
    from ninetka_agents.plugins import agents_of
    from ninetka_env.core import imports

    if context.params.get("from_files"):  # the arguments are files
        return []
    agents = agents_of(_game_of(context))
    return [*agents, *imports.entry_points(imports.AGENTS), *(complete_network(context) if "net" in agents else ())]


@_without_errors
def complete_network(context: typer.Context) -> list[str]:
    """Return the networks of the game and the runs in the current folder, each as `net:NAME`."""
    from ninetka_agents.network_files import known_networks, known_runs

    names = [*known_networks(_game_of(context)), *(run.as_posix() for run in known_runs())]
    return [f"net:{name}" for name in names if not re.search(r"\s", name)]  # shells would divide such a name


def _game_of(context: typer.Context) -> str:
    """Return the name of the game of `--game`, or of the command's default; imports no module that the spec names."""
    from ninetka_env.core.imports import PREFIX
    from ninetka_env.core.registry import DEFAULT_GAME, definition_of_spec

    defaults = [one.default for one in context.command.params if one.name == "game"]
    spec = context.params.get("game") or next(filter(None, defaults), DEFAULT_GAME)
    if spec.startswith(f"{PREFIX}:"):
        raise ValueError(f"{spec}: imported only when the command runs")
    return definition_of_spec(spec)[0].name


def run_for_bash(run: Callable[[], None]) -> None:
    """Complete a word in bash, which divides words at colons and equals signs, such as `go:ko=simple`.

    The parts are joined for `run`, which prints the completed words, and only what follows the last sign is printed.
    """
    words = os.environ["COMP_WORDS"].split("\n")[: int(os.environ["COMP_CWORD"]) + 1]
    joined = list(_joined(words))
    os.environ |= {"COMP_WORDS": "\n".join(joined), "COMP_CWORD": str(len(joined) - 1)}
    value = re.sub(r"^--?[\w-]+=", "", joined[-1])
    start, output = value[: max(value.rfind(":"), value.rfind("=")) + 1], io.StringIO()
    try:
        with redirect_stdout(output):
            run()
    finally:
        for line in output.getvalue().splitlines():
            typer.echo(line.removeprefix(start))


def _joined(words: list[str]) -> Iterator[str]:
    """Yield the words, with parts that a colon or an equals sign divides as one word."""
    word = words[0]
    for following in words[1:]:
        if following[:1] in (":", "=") or word[-1:] in (":", "="):
            word += following
        else:
            yield word
            word = following
    yield word
