"""Command line of `ninetka`: the list of its commands. `ninetka_train.commands` has the commands themselves."""

from __future__ import annotations

import functools
import importlib
import io
import os
import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from ninetka_train.cluster.command import ClusterCommand
from ninetka_train.commands import benchmark, catalogue, completion, games, matches, training
from ninetka_train.commands.group import CommandGroup
from ninetka_train.exit_handling import fail
from ninetka_web import commands as web

EXAMPLES = """\b
Examples:
  ninetka play                              play in the browser
  ninetka evaluate net maxn --games 100     let two agents play a match
  ninetka agents --game go                  list the agents of a game
  ninetka train --config quick              train a network
  ninetka evaluate --help                   show the options of a command

\b
Documentation: docs/index.md in a clone; `make docs` builds a website.
"""

app = typer.Typer(
    cls=CommandGroup,
    epilog=EXAMPLES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # file names may have characters that the terminal cannot show
            stream.reconfigure(encoding=_encoding_of(stream), errors="backslashreplace")
    warnings.formatwarning = _format_warning
    # `python:` specs name modules in the current folder; last, so that no installed module is hidden
    sys.path.append("")
    os.environ.setdefault("NINETKA_COMPILE_NOTICE", "1")  # see ninetka_env.core.compile_notice
    run = functools.partial(app, prog_name="ninetka")
    is_in_bash = os.environ.get("_NINETKA_COMPLETE") == "complete_bash"
    completion.run_for_bash(run) if is_in_bash else run()


def _encoding_of(stream: io.TextIOWrapper) -> str:
    """Return the output encoding: the stream's own, but UTF-8 for files and pipes on Windows."""
    keeps_encoding = "PYTHONIOENCODING" in os.environ or sys.platform != "win32" or stream.isatty()
    return stream.encoding if keeps_encoding else "utf-8"


def _format_warning(message: object, *_: object, **__: object) -> str:
    return f"warning: {message}\n"


def _show_version(is_requested: bool) -> None:
    if is_requested:
        from ninetka_env import __version__
        from ninetka_env.core.registry import definitions

        versions = ", ".join(sorted(one.version for one in definitions()))
        typer.echo(f"ninetka {__version__}, environments {versions}")
        raise typer.Exit


@app.callback()
def ninetka(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_show_version, is_eager=True, help="Show the versions and exit.")
    ] = False,
) -> None:
    """Board games for reinforcement learning: 9tka, Go, Kropki."""


def warm(
    games: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="GAME",
            help="Games, such as go or kropki:width=12,height=12; by default all.",
            autocompletion=completion.complete_game,
        ),
    ] = None,
) -> None:
    """Compile the code of games ahead of time.

    Otherwise the first match of a game waits for it. Use this when a container image is built, for example.
    """
    from ninetka_train.warm import warm as run

    try:
        failures = run(games or (), typer.echo)
    except (ValueError, OSError) as error:
        fail(error)
    raise typer.Exit(1 if failures else 0)


def speed(context: typer.Context) -> None:
    """Measure speed, compared with other libraries; needs a clone.

    Each benchmark measures a part of the project and, in the same run, comparable libraries that are installed. The
    results are one table, in Markdown if the output is not a terminal: our figure, the figure to reach, the other
    library's figure, and the ratio.

    `ninetka speed go kropki` runs two benchmarks. Without names, all run except the slow ones.
    """
    root = Path(__file__).resolve().parents[2]
    arguments = ["--help" if argument == "-h" else argument for argument in context.args]
    if "--help" in arguments:
        typer.echo(context.get_help())
    if not (root / "benchmarks" / "run.py").is_file():
        if "--help" in arguments:
            raise typer.Exit
        fail("the benchmarks are in the repository, not in the packages: run the command from a clone of it")
    sys.path.insert(0, str(root))
    run = importlib.import_module("benchmarks.run").main
    raise typer.Exit(run(arguments) or 0)


SECTIONS = {
    "Play and watch": (web.play, games.replay, web.stats),
    "Compare agents": (matches.evaluate, matches.rate, matches.curve, benchmark.benchmark, games.gtp),
    "Train networks": (training.train, training.report, training.average, training.export),
    "Perfect play of 9tka": (games.analyze, games.solve, games.study),
    "Look things up": (catalogue.games, catalogue.agents, catalogue.configs, catalogue.info),
    "Installation": (warm,),
}
"""The commands by use."""
for section, members in SECTIONS.items():
    for command in members:
        takes_cluster = command in (training.train, matches.evaluate)
        app.command(cls=ClusterCommand if takes_cluster else None, rich_help_panel=section)(command)
app.command(
    add_help_option=False,
    options_metavar="[BENCHMARK]...",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    rich_help_panel="Installation",
)(speed)


if __name__ == "__main__":
    main()
