"""The command `ninetka`: evaluate agents, look at saved games, measure speed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ninetka_web import commands

if TYPE_CHECKING:  # heavy modules are imported inside the commands, so that help comes at once
    from agents.agent import Agent
    from ninetka_env.notation import GameRecord
    from train.arena import Progress, Results, Settings
    from train.evaluate import Evaluation

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command."""
    app(prog_name="ninetka")


def _show_version(wanted: bool) -> None:
    if wanted:
        from train import ENVIRONMENT, package_version

        typer.echo(f"ninetka {package_version()}, environment {ENVIRONMENT}")
        raise typer.Exit


@app.callback()
def ninetka(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the versions and exit.")
    ] = False,
) -> None:
    """The board game 9tka for reinforcement learning."""


def _fail(message: object, code: int = 2) -> NoReturn:
    """End the command with an error message."""
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(code)


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r}: expected an integer") from None


def _integer_option(*names: str, help: str) -> Any:  # typer's name
    return typer.Option(*names, help=help, parser=_integer, metavar="INTEGER")


@app.command()
def train(
    config: Annotated[Path | None, typer.Option("--config", "-c", help="Such as configs/quick.yaml.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, such as ppo.epochs=2.")
    ] = None,
    runs: Annotated[Path, typer.Option("--runs", help="Folder of the runs.")] = Path("runs"),
    games: Annotated[int, _integer_option("--games", "-g", help="Games per opponent at the end; 0: none.")] = 200,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the newest checkpoint.")] = False,
) -> None:
    """Train a network by self-play or by imitating the tree search, and measure it."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from train.config import load_config
    from train.run import run

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("", total=1.0)

        def show(share: float, numbers: dict[str, float]) -> None:
            text = "  ".join(f"{key} {value:.3g}" for key, value in list(numbers.items())[:4])
            bar.update(task, completed=share, description=text)

        try:
            chosen = load_config(config, settings or ())
            run(chosen, runs / chosen.name, games, resume, show)
        except (ValueError, OSError) as error:
            _fail(error)


@app.command()
def evaluate(
    agents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="AGENT...", help="Who plays, such as: random  maxn  maxn:depth=3  mcts:simulations=2000"
        ),
    ] = None,
    players: Annotated[int, _integer_option("--players", "-n", help="Seats at the table: 2, 3 or 4.")] = 2,
    games: Annotated[
        int, _integer_option("--games", "-g", help="Games per lineup, rounded up to whole rotations.")
    ] = 100,
    seed: Annotated[
        int, _integer_option("--seed", help="Decides every game; the same seed gives the same result.")
    ] = 0,
    tournament: Annotated[
        bool, typer.Option("--tournament", help="Two players: also score matches of two games, seats swapped.")
    ] = False,
    neutral_placement: Annotated[str, typer.Option(help="Who places neutral stones: players or random.")] = "players",
    turn_order: Annotated[str, typer.Option(help="Who opens a phase: restart (seat 0) or continue.")] = "restart",
    batch: Annotated[int, _integer_option("--batch", help="Games played at once; results do not depend on it.")] = 256,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all figures there.")] = None,
    games_file: Annotated[
        Path | None, typer.Option("--save-games", metavar="FILE", help="Write all games there, as text.")
    ] = None,
) -> None:
    """Let agents play each other, with seats rotated, and report win shares, intervals and ratings.

    With fewer agents than seats the last one named fills the rest (`ninetka evaluate net maxn --players 3` is one net
    against two MaxN); with more, every choice of as many agents as there are seats plays.
    """
    from train.arena import AgentError, Settings, play_games
    from train.evaluate import summarise
    from train.report import print_report

    settings = Settings(tuple(agents or ()), players, games, seed, neutral_placement, turn_order, batch)
    chosen = _prepare(settings, tournament, json_file, games_file)
    options = {"seed": seed, "neutral_placement": neutral_placement, "turn_order": turn_order, "batch": batch}
    try:
        with _progress_bar(_count_games(settings)) as progress:
            results = play_games(chosen, players, games, **options, progress=progress)  # type: ignore[arg-type]
    except AgentError as error:
        _fail(error, code=1)
    except (MemoryError, OverflowError):
        _fail(f"{games} games of these agents do not fit into memory")
    evaluation = summarise(results, tournament=tournament)
    print_report(evaluation)
    _save(evaluation, results, json_file, games_file)


def _prepare(settings: Settings, tournament: bool, json_file: Path | None, games_file: Path | None) -> list[Agent]:
    """Check everything that can be wrong before a game is played, and make the agents."""
    from agents import make_agent
    from train.arena import check_settings
    from train.evaluate import check_tournament
    from train.report import check_writable

    try:
        check_settings(settings)
        if tournament:
            check_tournament(len(settings.agents), settings.num_players)
        if json_file and games_file and json_file.resolve() == games_file.resolve():
            raise ValueError(f"--json and --save-games name the same file, {json_file}")
        for path in filter(None, (json_file, games_file)):
            check_writable(path)
        return [make_agent(spec) for spec in settings.agents]
    except (ValueError, OSError, ImportError, RuntimeError, MemoryError, OverflowError) as error:
        _fail(error)


def _count_games(settings: Settings) -> int:
    """Return how many games will be played; say so if they are more per lineup than asked for."""
    from train.arena import make_schedule

    schedule = make_schedule(len(settings.agents), settings.num_players, settings.num_games)
    games = schedule.groups_per_lineup * schedule.rotation
    if games != settings.num_games:
        whole = f"{schedule.groups_per_lineup} rotations of {schedule.rotation} seatings"
        typer.echo(f"note: {settings.num_games} games per lineup are rounded up to {games}, {whole}", err=True)
    return len(schedule.seatings)


@contextmanager
def _progress_bar(games: int) -> Iterator[Progress]:
    """Show how far the games are, on stderr and only if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("games"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("games", total=games)
        yield lambda done: bar.update(task, completed=done)


def _save(evaluation: Evaluation, results: Results, json_file: Path | None, games_file: Path | None) -> None:
    """Write the files asked for; one that fails does not keep the other from being written."""
    from ninetka_env.notation import write_records
    from train.report import game_records, write_json

    failures = []
    try:
        if json_file:
            write_json(evaluation, json_file)
    except (OSError, ValueError) as error:
        failures.append(error)
    try:
        if games_file:
            write_records(games_file, game_records(results))
    except (OSError, ValueError) as error:
        failures.append(error)
    if failures:
        _fail("; ".join(map(str, failures)))


@app.command()
def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Games as `evaluate --save-games` writes them.")],
    game: Annotated[int, _integer_option("--game", help="Which game of the file, counted from 1.")] = 1,
    ply: Annotated[int | None, _integer_option("--ply", help="Only the position after this many plies.")] = None,
    png: Annotated[
        Path | None, typer.Option("--png", metavar="FILE", help="Draw the position into a picture (last unless --ply).")
    ] = None,
) -> None:
    """Show a saved game, position by position."""
    from ninetka_env.replay import position_at, replay_text

    try:
        record = _nth_game(file, game)
        if png is None:
            for text in replay_text(record, ply, color=sys.stdout.isatty()):
                typer.echo(text + "\n")
        else:
            from ninetka_env.render import save_png

            save_png(position_at(record, ply), png)
            typer.echo(f"wrote {png}")
    except BrokenPipeError:  # the reader has seen enough
        raise
    except (ValueError, OSError, ImportError) as error:
        _fail(error)


def _nth_game(file: Path, number: int) -> GameRecord:
    """Read game `number`, from 1, of a file; `ValueError` says how many there are."""
    from ninetka_env.replay import read_records

    if number < 1:
        raise ValueError(f"--game {number}: games count from 1")
    count = 0
    for count, record in enumerate(read_records(file), 1):
        if count == number:
            return record
    raise ValueError(f"--game {number}: {file} has {count} game{'' if count == 1 else 's'}")


@app.command(add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(context: typer.Context) -> None:
    """Run the repository's benchmarks; everything after `bench` goes to them."""
    root = Path(__file__).resolve().parent.parent
    if not (root / "benchmarks" / "run.py").is_file():
        _fail("the benchmarks live in the repository, beside the packages: run the command from a clone of it")
    sys.path.insert(0, str(root))
    run = importlib.import_module("benchmarks.run").main
    raise typer.Exit(run(context.args) or 0)


app.command()(commands.play)
app.command()(commands.table)


if __name__ == "__main__":
    main()
