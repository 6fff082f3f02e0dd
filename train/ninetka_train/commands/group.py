"""The group of all commands: help by use, one-line errors, and advice for former and natural wrong spellings.

Start reading at `CommandGroup`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

from ninetka_train.exit_handling import StoppedBySignal, fail, is_out_of_memory

UsageError: Any = typer.BadParameter.__base__
"""The class `UsageError` of click. Depending on its version, typer contains a copy of click or imports click."""

FORMER_COMMANDS = {"bench": "speed", "table": "stats"}
"""Commands that have another name now."""


class Advice(NamedTuple):
    """What to write instead of an option that a command does not have, or of a value that it does not take."""

    option: str
    text: str
    """Sentence in which `{value}` is the value that was given."""
    value: str = ".*"
    """Pattern of the values for which the advice holds; an option without a value has the value `VALUE`."""


_NUMBER = Advice("--game", "--game names a variant; the number of a game is --number {value}", r"-?\d+")
ADVICE: dict[str, tuple[Advice, ...]] = {
    "replay": (_NUMBER,),
    "analyze": (_NUMBER, Advice("--json", "--json takes a file, such as --json analysis.json", "VALUE|-.*")),
    "solve": (_NUMBER,),
    "rate": (Advice("--table", "--table is now --markdown: write --markdown {value}"),),
    "benchmark": tuple(
        Advice(option, "the protocol fixes the games: choose --tier quick or --tier full")
        for option in ("--game", "--players", "-n", "--games", "-g", "--seed", "--batch")
    ),
    "train": (
        Advice("--game", "the game is a setting: choose a configuration (ninetka configs) or write --set game={value}"),
        Advice("--players", "the players are a setting: write --set 'players=[{value}]'"),
        Advice("-n", "the players are a setting: write --set 'players=[{value}]'"),
        Advice("--seed", "the seed is a setting: write --set seed={value}"),
        Advice("--name", "the name is a setting: write --set name={value}"),
        Advice("--set", "--set takes KEY=VALUE in one word: write --set {value}=...", r"(?!VALUE$)[\w.]+"),
    ),
}
"""Advice for each command."""
UNEXPECTED_ARGUMENTS = {
    "train": "a configuration is an option: write --config {}",
    "export": "the output file is an option: write --out {}",
    "study": "the output path is an option: write --out {}",
    "info": "expected one network",
    "benchmark": "expected one agent",
}
"""Advice for each command about an argument that it does not take."""
FILE_OPTIONS = ("--out", "--json", "--csv", "--save-games", "--markdown", "--png", "--gif", "--log")
"""Options that name files to write."""
GAME_OPTIONS = {"--neutral-placement": "neutral_placement", "--turn-order": "turn_order"}
"""Former options of `evaluate`, and the names of the options of 9tka that replace them."""


class CommandGroup(TyperGroup):
    """Group of all commands, with one-line errors."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give advice about former and wrong spellings, and parse the arguments before the command's name."""
        if not ctx.resilient_parsing:  # set while a shell completes a command
            _check_spelling(args)
        return super().parse_args(ctx, args)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Parse the arguments before the command's name."""
        with _one_line_errors():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        """Parse the command's arguments and run it."""
        with _one_line_errors():
            return super().invoke(ctx)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands, in one section for each use."""
        commands: Any = [self.get_command(ctx, name) for name in self.list_commands(ctx)]
        for section, members in groupby(commands, key=lambda command: command.rich_help_panel):
            with formatter.section(section):
                formatter.write_dl([(command.name, command.get_short_help_str(100)) for command in members])


def _check_spelling(arguments: Sequence[str]) -> None:
    """Exit with advice if the arguments have a former or a natural wrong spelling that has no other meaning."""
    command = next(iter(arguments), "")
    for place, argument in enumerate(arguments):
        if argument == "" or (argument.startswith("--") and argument.endswith("=")):
            after = f" after {arguments[place - 1]}" if argument == "" and place else ""
            fail(f"argument {argument or repr('')}{after}: it is empty; write a value or leave it out")
    if command in FORMER_COMMANDS:
        fail(f"ninetka {command} is now ninetka {FORMER_COMMANDS[command]}")
    following = zip(arguments, [*arguments[1:], "VALUE"], strict=True)
    parts = [(*one.partition("="), value) for one, value in following]
    given = {name: own if equals else value for name, equals, own, value in parts}
    for option in FILE_OPTIONS:
        if (file := given.get(option, "")).endswith("/"):
            fail(f"{option} {file}: it names a folder: write the name of a file")
    for advice in ADVICE.get(command, ()):
        if (value := given.get(advice.option)) is not None and re.fullmatch(advice.value, value):
            fail(advice.text.format(value=value))
    if command == "evaluate":
        _check_game_options(given)


def _check_game_options(given: dict[str, str]) -> None:
    """Exit with an error if an option is given that is now part of `--game`."""
    moved = {option: f"{name}={given[option]}" for option, name in GAME_OPTIONS.items() if option in given}
    if not moved:
        return
    what, game = f"{' and '.join(moved)} {'are' if len(moved) > 1 else 'is'}", given.get("--game", "ninetka")
    if game.partition(":")[0] != "ninetka":
        fail(f"{what} only for 9tka: leave out what --game {game} does not have")
    fail(f"{what} now part of --game: write --game {game}{',' if ':' in game else ':'}{','.join(moved.values())}")


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Exit with a one-line error if the command is misspelled, stopped, cannot print or lacks memory."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except UsageError as error:
        if "NoArgs" in type(error).__name__:  # not an error: the help is shown
            raise
        fail(_usage_message(error))
    except StoppedBySignal as stopped:
        fail(f"stopped by {stopped.name}", code=stopped.status)
    except KeyboardInterrupt:
        fail("stopped", code=130)
    except OSError as error:
        from ninetka_env.core.files import is_closed_pipe

        _discard_output()
        if is_closed_pipe(error):  # the reader of the pipe has exited
            raise typer.Exit(1) from None
        fail(error if error.filename is not None else f"standard output: {error.strerror}", code=1)
    except BaseException as error:
        if not is_out_of_memory(error):
            raise
        fail("the command does not fit into memory", code=1)


def _usage_message(error: Any) -> str:
    """Return what is wrong with the arguments of a command in one line, and what to write instead."""
    message = " ".join(str(error.format_message()).split()).rstrip(".")
    path = error.ctx.command_path if error.ctx else "ninetka"
    unexpected = re.search(r"extra arguments?(?:\(s\))? \((.+)\)", message)
    advice = UNEXPECTED_ARGUMENTS.get(path.rpartition(" ")[2], "") if unexpected else ""
    if unexpected and advice:
        advice = advice.format(unexpected[1])
    elif "Missing option" in message:
        advice = f"write {path} ... {error.param.opts[0]} {error.param.metavar}"
    elif not message.endswith("?"):  # there is a suggestion already
        advice = f"{path} --help shows what is allowed"
    return _truncated(message) + (f"; {_truncated(advice)}" if advice else "")


def _truncated(line: str) -> str:
    return line if len(line) <= 300 else f"{line[:300]} ..."


def _discard_output() -> None:
    """Discard buffered output, because flushing it at exit would raise another error."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
