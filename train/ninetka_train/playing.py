"""Common code of the commands in `matches.py`: prepare a match, play it with a progress display, report its figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import typer

from ninetka_train.ending import Stopped, explain, fail, is_out_of_memory

if TYPE_CHECKING:  # slow modules are imported inside functions, so that --help is fast
    from ninetka_train.judging.arena import Match, PlayBatches, SoFar
    from ninetka_train.judging.evaluate import Evaluation
    from ninetka_train.judging.gate import Gate
    from ninetka_train.judging.results import Results, Settings
    from ninetka_train.judging.saved_games import SavedGames

LEAST_SECONDS, MOST_SECONDS = 1, 60
"""Minimum and maximum time between two lines of progress without a terminal. Within these limits, a line is printed at
each tenth of the games."""


class Prepared(NamedTuple):
    """A match that has been checked and can be played."""

    match: Match
    saved: SavedGames | None
    """Saves the games; None if they are not saved."""


@dataclass
class Outcome:
    """The results of a match, and what went wrong."""

    results: Results
    problems: list[Exception] = field(default_factory=list)
    """Errors of writing files, or of the agent that failed."""
    status: int | None = None
    """Exit status if the match was stopped; otherwise None."""


def prepare(
    specs: Sequence[str],
    files: Mapping[str, Path | None],
    check: Callable[[Settings], None],
    resume: bool,
    **options: Any,
) -> Prepared:
    """Check all settings and files, create the agents, and print notes about the settings.

    Args:
        specs: specs of the agents.
        files: files that will be written, by the option that names them.
        check: raises `ValueError` if the settings do not suit the command.
        resume: continue the match whose games are in the file of `--save-games`.
        options: options of `ninetka_train.judging.arena.make_match`.
    """
    from ninetka_train.judging.arena import make_match
    from ninetka_train.judging.saved_games import SavedGames, earlier_games

    target = files.get("--save-games")

    def check_all(settings: Settings) -> None:
        check(settings)
        if resume and target is None:
            raise ValueError("--resume continues with the games of --save-games: give both")
        check_files(files, settings)

    try:
        match = make_match(specs, check=check_all, **options)
        earlier = earlier_games(target, match.settings) if resume and target else {}
    except (ValueError, OSError, ImportError, RuntimeError, MemoryError, OverflowError) as error:
        fail(error)
    if earlier:
        typer.echo(f"note: {len(earlier)} games of {target} are not played again", err=True)
    _announce(match.settings, options["opening_plies"])
    return Prepared(match, SavedGames(target, earlier) if target else None)


def check_files(files: Mapping[str, Path | None], settings: Settings, inputs: Sequence[Path] = ()) -> None:
    """Raise `OSError` or `ValueError` if a file cannot be written, is named twice, or is an input file."""
    from ninetka_env.api.record_files import check_form
    from ninetka_env.core.files import check_writable

    named = {option: path for option, path in files.items() if path}
    if len(named) > len({path.resolve() for path in named.values()}):
        raise ValueError(f"{' and '.join(named)} name the same file, {next(iter(named.values()))}")
    for option, path in named.items():
        if path.resolve() in [one.resolve() for one in inputs]:
            raise ValueError(f"{option} {path}: the games are read from this file: name another one")
        check_writable(path)
    if target := files.get("--save-games"):
        check_form(target, settings.variant)


def _announce(settings: Settings, opening_plies: int | None) -> None:
    """Print notes about default openings and about games that were rounded up."""
    if opening_plies is None and settings.opening_plies:
        typer.echo(
            f"note: networks repeat their openings, so each rotation starts with {settings.opening_plies} random plies "
            "(--opening-plies 0 for none)",
            err=True,
        )
    schedule = settings.make_schedule()
    games = schedule.games_per_lineup
    if games != settings.num_games:
        whole = f"{games // schedule.rotation} rotations of {schedule.rotation} seatings"
        typer.echo(f"note: {settings.num_games} games per lineup are rounded up to {games}, {whole}", err=True)


def play(prepared: Prepared, *, gate: Gate | None = None, elsewhere: PlayBatches | None = None) -> Outcome:
    """Play a match; if it is stopped or an agent fails, return the finished games."""
    from ninetka_train.judging.arena import SoFar
    from ninetka_train.judging.gate import stops
    from ninetka_train.judging.lockstep import AgentError

    match, saved = prepared
    games, earlier = match.num_games, saved.earlier if saved else None
    so_far = SoFar(stops(gate, saved) if gate else saved)
    with failing_match(match.settings.num_games), progress(games) as bar:
        try:
            results = match.play(progress=bar.show, finished=so_far, elsewhere=elsewhere, earlier=earlier)
            outcome = Outcome(results)
        except (KeyboardInterrupt, AgentError) as reason:
            outcome = _interrupted(reason, so_far, games)
    if saved and saved.failure:
        outcome.problems.append(saved.failure)
    return outcome


def _interrupted(reason: KeyboardInterrupt | RuntimeError, so_far: SoFar, games: int) -> Outcome:
    """Return the finished rotations of a match that ended early; raise `reason` if no rotation is finished."""
    results, whole = so_far.results, so_far.whole_groups()
    if results is None or whole is None:
        raise reason
    over = int(results.is_over.sum())
    counted = "these" if len(whole.winners) == over else f"the {len(whole.winners)} in whole rotations"
    typer.echo(f"stopped after {over} of {games} games: the figures are of {counted}", err=True)
    left_out = [name for name in results.settings.agents if name not in whole.settings.agents]
    if left_out:
        typer.echo(f"note: no rotation is finished of {', '.join(left_out)}", err=True)
    if isinstance(reason, KeyboardInterrupt):
        return Outcome(whole, status=status_of(reason))
    return Outcome(whole, [RuntimeError(first_line(reason))], status=1)


def first_line(error: BaseException) -> str:
    """Return the first line of an error message, without the position in the next lines."""
    return str(error).partition("\n")[0]


def status_of(stopped: BaseException) -> int:
    """Return the exit status of a command that was stopped by a signal."""
    return stopped.status if isinstance(stopped, Stopped) else 130


@contextmanager
def failing_match(games: int) -> Iterator[None]:
    """Exit with one line if earlier games had other starts, an agent fails or memory runs out."""
    from ninetka_train.judging.lockstep import AgentError, OtherStartError

    try:
        yield
    except OtherStartError as error:
        fail(error)
    except (AgentError, MemoryError, RuntimeError) as error:
        if is_out_of_memory(error) or (error.__cause__ and is_out_of_memory(error.__cause__)):
            fail(f"{games} games of these agents do not fit into memory")
        if not isinstance(error, AgentError):
            raise
        fail(first_line(error), code=1)


# Progress


class Shown(Protocol):
    """Display of a match's progress on stderr."""

    def show(self, done: float) -> None:
        """Show the number of finished games."""
        ...

    def say(self, line: str) -> None:
        """Print a line."""
        ...


@contextmanager
def progress(games: int) -> Iterator[Shown]:
    """Show the progress of a number of games: with a bar in a terminal, with lines elsewhere."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(games)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("games"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        yield _Bar(bar, games)


class _Bar:
    def __init__(self, bar: Any, games: int) -> None:
        self._bar, self._task = bar, bar.add_task("games", total=games)

    def show(self, done: float) -> None:
        self._bar.update(self._task, completed=done)

    def say(self, line: str) -> None:
        self._bar.console.print(line, markup=False, highlight=False, soft_wrap=True)


class _Moment(NamedTuple):
    seconds: float
    done: float
    """Finished games."""


class _Lines:
    def __init__(self, games: int) -> None:
        self._games = games
        self._first: _Moment | None = None
        self._tenth, self._last = 0, time.perf_counter()

    def show(self, done: float) -> None:
        now, tenth = time.perf_counter(), 10 * int(done) // self._games
        if self._first is None:  # a resumed match starts with finished games
            self._first, self._tenth, self._last = _Moment(now, done), tenth, now
        since = now - self._last
        if since >= (LEAST_SECONDS if tenth > self._tenth else MOST_SECONDS):
            self._tenth, self._last = tenth, now
            elapsed, played = now - self._first.seconds, done - self._first.done
            rest = elapsed * (self._games - done) / played if played > 0 else 0
            left = f", about {_clock(rest)} left" if rest else ""
            self.say(f"{int(done)} of {self._games} games in {_clock(elapsed)}{left}")

    def say(self, line: str) -> None:
        typer.echo(line, err=True)


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


# Figures


def summarised(outcome: Outcome, *, exact: bool = False, **options: Any) -> Evaluation:
    """Return the figures of a match; if that is interrupted, leave out perfect play, which takes a while."""
    from ninetka_train.judging.evaluate import summarise

    try:
        return summarise(outcome.results, exact=exact, **options)
    except KeyboardInterrupt as reason:
        outcome.status = outcome.status or status_of(reason)
        typer.echo(f"stopped{': perfect play is left out' if exact else ''}", err=True)
        return summarise(outcome.results, **options)


def report(
    outcome: Outcome,
    evaluation: Evaluation,
    files: Mapping[str, Path | None],
    table: Callable[[], str] = str,
) -> None:
    """Write the files and print the tables; then exit with the status of the errors, the match or the gate.

    Args:
        outcome: outcome of the match.
        evaluation: figures of the match.
        files: path by option; None if the option is not given.
        table: returns the text for `--table`.
    """
    from ninetka_env.core.files import replace_file
    from ninetka_train.judging.report import games_csv, json_text, print_report

    texts = {"--json": lambda: json_text(evaluation), "--csv": lambda: games_csv(outcome.results), "--table": table}
    problems = list(outcome.problems)
    for option, text in texts.items():
        try:
            if path := files.get(option):
                replace_file(path, [text().encode(errors="backslashreplace")])  # file names may not be UTF-8
        except OSError as error:
            problems.append(error)
    try:
        print_report(evaluation)
        for failure in evaluation.failures:
            typer.echo(f"lost by a failure: {failure}", err=True)
    finally:
        if problems:
            fail("; ".join(map(explain, problems)), code=1 if outcome.status == 1 else 2)
    _end(outcome, evaluation)


def _end(outcome: Outcome, evaluation: Evaluation) -> None:
    from ninetka_train.judging.gate import FAILED, PASSED

    if outcome.status:
        raise typer.Exit(outcome.status)
    if evaluation.failures:
        fail(f"{len(evaluation.failures)} games were lost by failures of agents", code=1)
    if evaluation.gate and evaluation.gate.verdict != PASSED:
        raise typer.Exit(3 if evaluation.gate.verdict == FAILED else 4)


def of_files(paths: Sequence[Path]) -> Outcome:
    """Return the outcome of the games in files, and print notes about excluded games."""
    from ninetka_train.judging.saved_games import results_of

    if not paths:
        raise ValueError("no files: expected at least one after --from")
    for place, path in enumerate(paths):
        if path.resolve() in [other.resolve() for other in paths[:place]]:
            raise ValueError(f"{path}: named twice")
    results, notes = results_of(paths)
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    return Outcome(results)
