"""Command line of `ninetka`; `match_commands.py` has `evaluate`, `rate` and `curve`."""

from __future__ import annotations

import importlib
import io
import os
import sys
import warnings
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from ninetka_train import match_commands
from ninetka_train.cluster.command import ClusterCommand, ClusterOption, cluster_player, round_summary
from ninetka_train.exit_handling import (
    CommandGroup,
    StoppedBySignal,
    check_address_space,
    error_text,
    exit_on_error,
    fail,
    fail_on_import_error,
    integer_option,
    is_out_of_memory,
    stopped_by_signals,
)
from ninetka_web import commands

app = typer.Typer(
    cls=CommandGroup,
    add_completion=False,
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
    sys.path.append(
        ""
    )  # `python:` specs name modules in the current folder; last, so that no installed module is hidden
    app(prog_name="ninetka")


def _encoding_of(stream: io.TextIOWrapper) -> str:
    """Return the output encoding: the stream's own, but UTF-8 for files and pipes on Windows."""
    keeps_encoding = "PYTHONIOENCODING" in os.environ or sys.platform != "win32" or stream.isatty()
    return stream.encoding if keeps_encoding else "utf-8"


def _format_warning(message: object, *_: object, **__: object) -> str:
    return f"warning: {message}\n"


def _show_version(is_requested: bool) -> None:
    if is_requested:
        from ninetka_env.core.registry import definitions
        from ninetka_train.machine import package_version

        versions = ", ".join(sorted(one.version for one in definitions()))
        typer.echo(f"ninetka {package_version()}, environments {versions}")
        raise typer.Exit


@app.callback()
def ninetka(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the versions and exit.")
    ] = False,
) -> None:
    """Board games for reinforcement learning: 9tka, Go, Kropki."""


class _TrainingDisplay:
    """Training progress: a bar in a terminal, lines elsewhere. Only the first process prints anything."""

    def __init__(self, is_first_process: bool, by_round: bool) -> None:
        """Create the display; `by_round` says whether to print a line for each round that a cluster has played."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        console = Console(stderr=True)
        self.bar = Progress(
            *columns, console=console, transient=True, disable=not (is_first_process and console.is_terminal)
        )
        self._task = self.bar.add_task("", total=1.0)
        self._is_first_process, self._by_round, self._percent = is_first_process, by_round, -1

    def bar_context(self) -> AbstractContextManager[object]:
        """Return a context manager that shows the bar, if there is one."""
        # versions of rich before 14.3 print an empty line after a disabled bar
        return nullcontext() if self.bar.disable else self.bar

    def show(self, share: float, numbers: dict[str, float]) -> None:
        """Show the finished share of the training, 0..1, and the first four of `numbers`."""
        text = "  ".join(f"{key} {value:.3g}" for key, value in list(numbers.items())[:4])
        self.bar.update(self._task, completed=share, description=text)
        # a resumed run may report a round that was played without a cluster; it has no "workers"
        if self._by_round and "workers" in numbers:
            self.print(round_summary(share, numbers))
        elif not self.bar.console.is_terminal and int(100 * share) > self._percent:
            self._percent = int(100 * share)
            self.print(f"{share:4.0%}: {text}")

    def print(self, line: str) -> None:
        """Print a line above the bar."""
        if self._is_first_process:
            self.bar.console.print(line, markup=False, highlight=False, soft_wrap=True)


@app.command(cls=ClusterCommand)
@stopped_by_signals()
def train(
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="Configuration file, such as configs/quick.yaml.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, such as ppo.epochs=2.")
    ] = None,
    runs: Annotated[Path, typer.Option("--runs", help="Folder that holds all runs.")] = Path("runs"),
    games: Annotated[
        int, integer_option("--games", "-g", help="Games per opponent in the final benchmark; 0: no measurements.")
    ] = 200,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the newest checkpoint, or start a new run.")
    ] = False,
    cluster: ClusterOption = None,
) -> None:
    """Train a network by self-play and measure its strength."""
    check_address_space()
    try:
        from ninetka_train.learning import processes
        from ninetka_train.learning.config import load_config
        from ninetka_train.run import run
    except ImportError as error:
        fail_on_import_error("training needs", error)

    first = processes.rank() == 0
    display = _TrainingDisplay(first, by_round=bool(cluster))
    try:
        chosen = load_config(config, settings or ())
        device = processes.choose_device(chosen)
        with (
            display.bar_context(),
            processes.process_group(device),
            cluster_player(cluster if first else None) as player,
        ):
            display.print(f"{runs / chosen.name}: learning {chosen.definition.title} by {chosen.algorithm}")
            run(chosen, runs / chosen.name, games, resume, display.show, player)
            display.print(f"{runs / chosen.name}: finished; its agent spec is net:{runs / chosen.name}")
    except ValueError as error:
        fail(error)
    except OSError as error:
        begun = (runs / chosen.name / "config.yaml").exists()
        advice = "; earlier checkpoints are intact: continue with --resume" if begun else ""
        fail(f"{error_text(error)}{advice}", code=1)
    except StoppedBySignal as stopped:
        fail(f"stopped by {stopped.name}: continue with --resume", code=stopped.status)
    except KeyboardInterrupt:
        fail("stopped: continue with --resume", code=130)
    except BaseException as error:  # a panic in a Rust library derives from BaseException
        if not is_out_of_memory(error):
            raise
        fail("training does not fit into memory: choose smaller settings", code=1)


@app.command()
def report(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of a run, such as runs/quick; it may still be training.")
    ],
) -> None:
    """Print tables of a training run, and write report.png and report.html into its folder."""
    with exit_on_error("reports"):
        from ninetka_train.reporting.run_report import print_run, write_report

        write_report(folder)
        print_run(folder)


@app.command()
def study(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="Output path without suffix, such as docs/perfect-play.")
    ],
    games: Annotated[int, integer_option("--games", "-g", help="Games per agent.")] = 100,
    seed: Annotated[int, integer_option("--seed", help="Determines every game.")] = 0,
) -> None:
    """Study perfect play in two-player 9tka; write PATH.md, PATH.png and PATH.json. This takes some minutes."""
    with exit_on_error("studies"):
        import ninetka_train.ninetka.study as module
        from ninetka_env.core.files import check_writable, with_extension

        importlib.import_module("matplotlib")  # report a missing package before playing for minutes
        path.parent.mkdir(parents=True, exist_ok=True)
        for ending in (".md", ".png", ".json"):
            check_writable(with_extension(path, ending))
        found = module.study(games, seed, lambda what: typer.echo(what, err=True))
        module.write_study(found, path)
    typer.echo(f"wrote {with_extension(path, '.md')}, .png and .json")


@app.command()
def average(
    checkpoints: Annotated[
        list[str],
        typer.Argument(metavar="CHECKPOINT...", help="Such as gen-6 runs/a; a network named twice counts twice."),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="CHECKPOINT", help="Output checkpoint, such as runs/mean.")],
    policy_temperature: Annotated[
        float,
        typer.Option(
            "--policy-temperature",
            metavar="T",
            help="Divide policy logits by T, 0.01 to 100: above 1, searches rely on the policy less.",
        ),
    ] = 1.0,
) -> None:
    """Average the weights of networks; the mean plays well if all were trained from the same weights."""
    with exit_on_error("averages"):
        from ninetka_agents.averaging import mean_network, soften_policy
        from ninetka_agents.checkpoint import Checkpoint, load_checkpoint, save_checkpoint

        mean = mean_network([load_checkpoint(checkpoint)[0] for checkpoint in checkpoints])
        soften_policy(mean, policy_temperature)
        notes = {"mean_of": checkpoints, "policy_temperature": policy_temperature}
        path = save_checkpoint(out, mean, Checkpoint(mean.config, notes=notes))
    typer.echo(f"wrote {path} and {path.with_suffix('.json').name}")


@app.command()
def export(
    checkpoint: Annotated[
        str,
        typer.Argument(
            metavar="CHECKPOINT",
            help="Trained network, such as runs/quick, kropki/gen-2 or, for the shipped one of a game, net:kropki.",
        ),
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Output file, such as net.onnx.")],
) -> None:
    """Write a trained network into an ONNX file."""
    with exit_on_error("exports", "train,onnx"):
        from ninetka_agents.export import export_checkpoint
        from ninetka_env.core.files import check_writable

        check_writable(file)
        export_checkpoint(checkpoint, file)
    typer.echo(f"wrote {file}")


@app.command()
def gtp(
    agent: Annotated[
        str, typer.Option("--agent", metavar="SPEC", help="The agent that plays, such as mcts:simulations=10000.")
    ] = "mcts:simulations=10000,rave,playouts=heavy,reuse",
    game: Annotated[
        str, typer.Option("--game", metavar="SPEC", help="The game, such as go:komi=6.5,ko=positional.")
    ] = "go",
    seed: Annotated[int | None, integer_option("--seed", help="Seed of the agent's random numbers.")] = None,
    log: Annotated[
        Path | None, typer.Option("--log", metavar="FILE", help="Append all commands and responses to this file.")
    ] = None,
    resign: Annotated[
        float, typer.Option("--resign", metavar="SHARE", help="Resign below this expected share of wins; 0: never.")
    ] = 0.05,
    ponder: Annotated[
        bool, typer.Option("--ponder", help="Think during the opponent's turn; needs an agent with reuse.")
    ] = False,
) -> None:
    """Run a Go engine on stdin and stdout for programs that speak the Go Text Protocol, such as Sabaki."""
    with exit_on_error("engines"):
        from ninetka_agents.go.gtp.engine import serve
        from ninetka_train.machine import package_version

        serve(agent, game, package_version(), seed, log, resign, ponder)


@app.command()
def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Games as `evaluate --save-games` writes them.")],
    game: Annotated[
        Any,  # int, or str for a spec
        integer_option(
            "--game",
            help="Which game of the file, counted from 1; or python:MODULE:NAME if the file has games of your own.",
            or_python_spec=True,
        ),
    ] = 1,
    number: Annotated[
        int, integer_option("--number", help="Which game of the file, if --game names games of your own.")
    ] = 1,
    ply: Annotated[int | None, integer_option("--ply", help="Only the position after this many plies.")] = None,
    png: Annotated[
        Path | None,
        typer.Option("--png", metavar="FILE", help="Write a picture of the position (the last one without --ply)."),
    ] = None,
) -> None:
    """Print the positions of a saved game."""
    from ninetka_env.api.record_files import find_record, position_at, replay_text
    from ninetka_env.api.rendering import save_png
    from ninetka_env.core.registry import load_variant
    from ninetka_train.reporting.boards import print_boards

    try:
        if isinstance(game, str):
            load_variant(game)
        record = find_record(file, number if isinstance(game, str) else game)
        if png is None:
            print_boards(lambda color: replay_text(record, ply, color=color))
        else:
            save_png(position_at(record, ply), png)
            typer.echo(f"wrote {png}")
    except (ValueError, OSError, ImportError) as error:
        fail(error)


@app.command()
def analyze(
    file: Annotated[Path, typer.Argument(metavar="RECORD", help="Games as `evaluate --save-games` writes them.")],
    game: Annotated[int, integer_option("--game", help="Which game of the file, counted from 1.")] = 1,
    nodes: Annotated[
        int, integer_option("--nodes", help="Maximum number of nodes that the solver visits per position.")
    ] = 2_000_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    png: Annotated[
        Path | None, typer.Option("--png", metavar="FILE", help="Write a picture of the course of the game.")
    ] = None,
) -> None:
    """Show which slides of a two-player game of 9tka kept the win under perfect play, and which gave it away."""
    import json

    from ninetka_env.api.record_files import find_record
    from ninetka_train.ninetka.analyze import analysis_dict, analysis_text, save_plot
    from ninetka_train.ninetka.analyze import analyze as run

    with exit_on_error("pictures"):
        analysis = run(find_record(file, game), nodes)
        typer.echo(json.dumps(analysis_dict(analysis), indent=2) if as_json else "\n".join(analysis_text(analysis)))
        if png:
            save_plot(analysis, png)
            typer.echo(f"wrote {png}", err=True)


@app.command()
def solve(
    file: Annotated[Path, typer.Argument(metavar="RECORD", help="Games as `evaluate --save-games` writes them.")],
    game: Annotated[int, integer_option("--game", help="Which game of the file, counted from 1.")] = 1,
    ply: Annotated[
        int | None, integer_option("--ply", help="The position after this many plies; by default the last one.")
    ] = None,
    nodes: Annotated[
        int, integer_option("--nodes", help="Maximum number of positions that the search visits.")
    ] = 10_000_000,
) -> None:
    """Show who wins a position of 9tka's movement phase under perfect play, and with which moves."""
    from ninetka_env.api.record_files import find_record, position_at

    try:
        position = position_at(find_record(file, game), ply)
        if position.name != "ninetka":
            raise ValueError(f"{file}: only games of 9tka can be solved; this one is of {position.definition().title}")
        from ninetka_train.ninetka.analyze import solution_text

        for line in solution_text(position, nodes):  # type: ignore[arg-type]  # a Game of 9tka
            typer.echo(line)
    except (ValueError, OSError) as error:
        fail(error)


@app.command()
def warm(
    games: Annotated[
        list[str] | None,
        typer.Argument(metavar="[GAME]...", help="Games, such as go or kropki:width=12,height=12; by default all."),
    ] = None,
) -> None:
    """Compile the code of games ahead of time, for example when a container image is built."""
    from ninetka_train.warm import warm as run

    try:
        failures = run(games or (), typer.echo)
    except (ValueError, OSError) as error:
        fail(error)
    raise typer.Exit(1 if failures else 0)


@app.command(
    add_help_option=False,
    options_metavar="[BENCHMARK]...",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def bench(context: typer.Context) -> None:
    """Run benchmarks by name; without names, all except the slow ones. Needs a clone of the repository."""
    root = Path(__file__).resolve().parents[2]
    arguments = ["--help" if argument == "-h" else argument for argument in context.args]
    if not (root / "benchmarks" / "run.py").is_file():
        if "--help" in arguments:
            typer.echo(context.get_help())
            raise typer.Exit
        fail("the benchmarks are in the repository, not in the packages: run the command from a clone of it")
    sys.path.insert(0, str(root))
    run = importlib.import_module("benchmarks.run").main
    raise typer.Exit(run(arguments) or 0)


app.command(cls=ClusterCommand)(match_commands.evaluate)
for command in (match_commands.rate, match_commands.curve):
    app.command()(command)
app.command()(commands.play)
app.command()(commands.table)


if __name__ == "__main__":
    main()
