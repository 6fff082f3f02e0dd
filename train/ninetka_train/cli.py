"""The command `ninetka`: evaluate agents, look at saved games, measure speed."""

from __future__ import annotations

import importlib
import io
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ninetka_train.ending import Commands, explain, fail, failing
from ninetka_web import commands

if TYPE_CHECKING:  # heavy modules are imported inside the commands, so that help comes at once
    from ninetka_agents.agent import Agent
    from ninetka_train.judging.arena import Progress, Results, Settings

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names of files may hold what the terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    warnings.formatwarning = _format_warning
    app(prog_name="ninetka")


def _format_warning(message: object, *_: object, **__: object) -> str:
    return f"warning: {message}\n"


def _show_version(wanted: bool) -> None:
    if wanted:
        from ninetka_env.core.registry import get_definition, known_games
        from ninetka_train import package_version

        versions = ", ".join(get_definition(name).version for name in known_games())
        typer.echo(f"ninetka {package_version()}, environments {versions}")
        raise typer.Exit


@app.callback()
def ninetka(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the versions and exit.")
    ] = False,
) -> None:
    """Board games for reinforcement learning: 9tka, Go, Kropki."""


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        from ninetka_env.core.text import quote

        raise typer.BadParameter(f"{quote(text)}: expected an integer") from None


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
    """Train a network by self-play, and measure it."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    try:
        from ninetka_train.learning.config import load_config
        from ninetka_train.run import run
    except ImportError as error:
        fail(f"training needs {error.name}: pip install 'ninetka-env[train]'")

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("", total=1.0)

        def show(share: float, numbers: dict[str, float]) -> None:
            text = "  ".join(f"{key} {value:.3g}" for key, value in list(numbers.items())[:4])
            bar.update(task, completed=share, description=text)

        try:
            chosen = load_config(config, settings or ())
            run(chosen, runs / chosen.name, games, resume, show)
        except ValueError as error:
            fail(error)
        except OSError as error:
            fail(f"{explain(error)}; checkpoints written before are whole: go on with --resume", code=1)
        except MemoryError:
            fail("training does not fit into memory: choose smaller settings", code=1)
        except KeyboardInterrupt:
            fail("stopped: go on with --resume", code=130)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Of a run, such as runs/quick; may be going on.")],
) -> None:
    """Show how a run went: tables here, report.png and report.html in its folder."""
    with failing("reports"):
        from ninetka_train.showing.run_report import print_run, write_report

        write_report(folder)
        print_run(folder)


@app.command()
def study(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Where to write, such as docs/perfect-play.")],
    games: Annotated[int, _integer_option("--games", "-g", help="Games per agent and turn order.")] = 50,
    seed: Annotated[int, _integer_option("--seed", help="Decides every game.")] = 0,
) -> None:
    """Find out what perfect play says about two-player 9tka: PATH.md, PATH.png and PATH.json, in some minutes."""
    with failing("studies"):
        import ninetka_train.ninetka.study as module
        from ninetka_env.core.files import check_writable

        path.parent.mkdir(parents=True, exist_ok=True)
        check_writable(path.with_suffix(".md"))
        found = module.study(games, seed, lambda what: typer.echo(what, err=True))
        module.write_study(found, path)
    typer.echo(f"wrote {path.with_suffix('.md')}, .png and .json")


@app.command()
def export(
    checkpoint: Annotated[Path, typer.Argument(metavar="CHECKPOINT", help="Such as runs/quick.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Such as net.onnx.")],
) -> None:
    """Write a trained network into an ONNX file."""
    with failing("exports", "train,onnx"):
        from ninetka_agents.checkpoint import load_checkpoint
        from ninetka_agents.export import export_onnx
        from ninetka_env.core.files import check_writable

        check_writable(file)
        export_onnx(load_checkpoint(checkpoint)[0], file)
    typer.echo(f"wrote {file}")


@app.command()
def evaluate(
    agents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="AGENT...", help="Who plays, such as: random  maxn  maxn:depth=3  mcts:simulations=2000"
        ),
    ] = None,
    game: Annotated[str, typer.Option("--game", metavar="SPEC", help="Such as ninetka:num_players=3.")] = "ninetka",
    players: Annotated[int | None, _integer_option("--players", "-n", help="Seats at the table.")] = None,
    games: Annotated[
        int, _integer_option("--games", "-g", help="Games per lineup, rounded up to whole rotations.")
    ] = 100,
    seed: Annotated[
        int, _integer_option("--seed", help="Decides every game; the same seed gives the same result.")
    ] = 0,
    tournament: Annotated[
        bool, typer.Option("--tournament", help="Two players: also score matches of two games, seats swapped.")
    ] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="Two players: also count the wins given away, by perfect play.")
    ] = False,
    neutral_placement: Annotated[
        str | None, typer.Option(help="9tka: who places neutral stones, players or random.")
    ] = None,
    turn_order: Annotated[
        str | None, typer.Option(help="9tka: who opens a phase, restart (seat 0) or continue.")
    ] = None,
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
    from ninetka_train.judging.arena import AgentError, play_games
    from ninetka_train.judging.evaluate import summarise
    from ninetka_train.judging.report import print_report, write_json

    own = {"neutral_placement": neutral_placement, "turn_order": turn_order}
    options: dict[str, Any] = {"game": game, "seed": seed, "batch": batch} | {
        k: v for k, v in own.items() if v is not None
    }
    settings, chosen = _prepare(tuple(agents or ()), players, games, options, tournament, exact, json_file, games_file)
    try:
        with _progress_bar(_count_games(settings)) as progress:
            saved = _SavedGames(games_file) if games_file else None
            results = play_games(chosen, players, games, **options, progress=progress, finished=saved)
        evaluation = summarise(results, tournament=tournament, exact=exact)
    except AgentError as error:
        fail(str(error).partition("\n")[0], code=1)  # without the position that follows
    except MemoryError:
        fail(f"{games} games of these agents do not fit into memory")
    failures = [saved.failure] if saved and saved.failure else []
    try:
        if json_file:
            write_json(evaluation, json_file)
    except OSError as error:
        failures.append(error)
    try:
        print_report(evaluation)
        for failure in evaluation.failures:
            typer.echo(f"lost by a failure: {failure}", err=True)
    finally:
        if failures:
            fail("; ".join(map(explain, failures)))
    if evaluation.failures:
        fail(f"{len(evaluation.failures)} games were lost by failures of agents", code=1)


def _prepare(
    specs: tuple[str, ...],
    players: int | None,
    games: int,
    options: dict[str, Any],
    tournament: bool,
    exact: bool,
    json_file: Path | None,
    games_file: Path | None,
) -> tuple[Settings, list[Agent]]:
    """Check everything that can be wrong before a game is played, and make the agents."""
    from ninetka_agents import make_agent
    from ninetka_env.api.record_files import check_form
    from ninetka_env.core.files import check_writable
    from ninetka_train.judging.arena import make_settings
    from ninetka_train.judging.evaluate import check_tournament
    from ninetka_train.parts import exact_of

    try:
        settings = make_settings(specs, players, games, **options)
        if tournament:
            check_tournament(len(settings.agents), settings.num_players)
        if exact:
            exact_of(settings.variant).check(settings.num_players)
        if json_file and games_file and json_file.resolve() == games_file.resolve():
            raise ValueError(f"--json and --save-games name the same file, {json_file}")
        for path in filter(None, (json_file, games_file)):
            check_writable(path)
        if games_file:
            check_form(games_file, settings.variant)
        return settings, [make_agent(spec, settings.game) for spec in specs]
    except (ValueError, OSError, ImportError, RuntimeError, MemoryError, OverflowError) as error:
        fail(error)


def _count_games(settings: Settings) -> int:
    """Return how many games will be played; say so if they are more per lineup than asked for."""
    from ninetka_train.judging.arena import make_schedule

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


class _SavedGames:
    """Writes games into a file as they end; if that fails, the match goes on and the failure is told in the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failure: Exception | None = None

    def __call__(self, results: Results, games: range) -> None:
        from ninetka_env.api.record_files import write_records
        from ninetka_train.judging.report import game_records

        if self.failure:
            return
        try:
            write_records(self.path, game_records(results, games), append=games.start > 0)
        except (OSError, ValueError) as error:
            self.failure = error


@app.command()
def gtp(
    agent: Annotated[
        str, typer.Option("--agent", metavar="SPEC", help="Who plays, such as mcts:simulations=10000.")
    ] = "mcts:simulations=10000,rave,playouts=heavy,reuse",
    game: Annotated[str, typer.Option("--game", metavar="SPEC", help="Such as go:komi=6.5,ko=positional.")] = "go",
    seed: Annotated[int | None, _integer_option("--seed", help="Of the agent's random numbers.")] = None,
    log: Annotated[Path | None, typer.Option("--log", metavar="FILE", help="Add what is said to this file.")] = None,
    resign: Annotated[
        float, typer.Option("--resign", metavar="SHARE", help="Resign below this share of wins; 0: never.")
    ] = 0.05,
    ponder: Annotated[bool, typer.Option("--ponder", help="Think while the opponent does; needs reuse.")] = False,
) -> None:
    """Play Go for a program that speaks the Go Text Protocol, such as Sabaki: an engine on stdin and stdout."""
    with failing("engines"):
        from ninetka_agents.go.gtp.engine import serve
        from ninetka_train import package_version

        serve(agent, game, package_version(), seed, log, resign, ponder)


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
    from ninetka_env.api.record_files import find_record, position_at, replay_text
    from ninetka_env.api.screen import save_png

    try:
        record = find_record(file, game)
        if png is None:
            for text in replay_text(record, ply, color=sys.stdout.isatty()):
                typer.echo(text + "\n")
        else:
            save_png(position_at(record, ply), png)
            typer.echo(f"wrote {png}")
    except (ValueError, OSError, ImportError) as error:
        fail(error)


@app.command()
def analyze(
    file: Annotated[Path, typer.Argument(metavar="RECORD", help="Games as `evaluate --save-games` writes them.")],
    game: Annotated[int, _integer_option("--game", help="Which game of the file, counted from 1.")] = 1,
    nodes: Annotated[int, _integer_option("--nodes", help="The solver's budget per position.")] = 2_000_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    png: Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Draw the game's course there.")] = None,
) -> None:
    """Tell which slides of a two-player game kept the win under perfect play, and which gave it away."""
    import json

    from ninetka_env.api.record_files import find_record
    from ninetka_train.ninetka.analyze import analysis_dict, analysis_text, save_course
    from ninetka_train.ninetka.analyze import analyze as run

    try:
        analysis = run(find_record(file, game), nodes)
        typer.echo(json.dumps(analysis_dict(analysis), indent=2) if as_json else "\n".join(analysis_text(analysis)))
        if png:
            save_course(analysis, png)
            typer.echo(f"wrote {png}", err=True)
    except (ValueError, OSError) as error:
        fail(error)


@app.command()
def solve(
    file: Annotated[Path, typer.Argument(metavar="RECORD", help="Games as `evaluate --save-games` writes them.")],
    game: Annotated[int, _integer_option("--game", help="Which game of the file, counted from 1.")] = 1,
    ply: Annotated[
        int | None, _integer_option("--ply", help="The position after this many plies; else the last.")
    ] = None,
    nodes: Annotated[int, _integer_option("--nodes", help="Positions that a search may visit.")] = 10_000_000,
) -> None:
    """Tell who wins a position of 9tka's movement phase under perfect play, and by which moves."""
    from ninetka_env.api.record_files import find_record, position_at

    try:
        position = position_at(find_record(file, game), ply)
        if position.name != "ninetka":
            raise ValueError(f"{file}: only games of 9tka can be solved; this one is of {position.definition().title}")
        from ninetka_train.ninetka.solve import solution_text

        for line in solution_text(position, nodes):  # type: ignore[arg-type]  # a Game of 9tka
            typer.echo(line)
    except (ValueError, OSError) as error:
        fail(error)


@app.command(
    add_help_option=False,
    options_metavar="[BENCHMARK]...",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def bench(context: typer.Context) -> None:
    """Run the repository's benchmarks, those named or all but the slow ones; needs a clone of the repository."""
    root = Path(__file__).resolve().parents[2]
    arguments = ["--help" if argument == "-h" else argument for argument in context.args]
    if not (root / "benchmarks" / "run.py").is_file():
        if "--help" in arguments:
            typer.echo(context.get_help())
            raise typer.Exit
        fail("the benchmarks live in the repository, beside the packages: run the command from a clone of it")
    sys.path.insert(0, str(root))
    run = importlib.import_module("benchmarks.run").main
    raise typer.Exit(run(arguments) or 0)


app.command()(commands.play)
app.command()(commands.table)


if __name__ == "__main__":
    main()
