"""Common code of `matches.py`: prepare a match, play it with a progress display, report its figures.

Start reading at `prepare`, `play` and `report`. The match itself is in `ninetka_train.judging.arena`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import typer

from ninetka_train.exit_handling import StoppedBySignal, error_text, fail, is_out_of_memory

if TYPE_CHECKING:  # slow modules are imported inside functions, so that --help is fast
    from ninetka_train.judging.arena import LatestResults, Match, PlayBatches
    from ninetka_train.judging.evaluate import Evaluation
    from ninetka_train.judging.gate import Gate
    from ninetka_train.judging.results import MatchSettings, Results
    from ninetka_train.judging.saved_games import GameSaver

MIN_PROGRESS_INTERVAL_S, MAX_PROGRESS_INTERVAL_S = 1, 60
"""Minimum and maximum seconds between two progress lines, if stderr is not a terminal. Within these limits, a line is
printed after each tenth of the games."""


SCORE_INTERVAL_S = 0.3
"""Minimum seconds between two updates of the running score in the bar."""


class PreparedMatch(NamedTuple):
    """A match that has been checked and can be played."""

    match: Match
    saved: GameSaver | None
    """Saves the games; None if they are not saved."""


@dataclass
class MatchOutcome:
    """The results of a match, the errors, and the exit status."""

    results: Results
    problems: list[Exception] = field(default_factory=list)
    """Errors of writing files, or of the agent that failed."""
    status: int | None = None
    """Exit status if the match was stopped; otherwise None."""


def prepare(
    specs: Sequence[str],
    files: Mapping[str, Path | None],
    check: Callable[[MatchSettings], None],
    resume: bool,
    **options: Any,
) -> PreparedMatch:
    """Check all settings and files, create the agents, and print notes about the settings; on an error, exit.

    Args:
        specs: specs of the agents.
        files: files that will be written: maps each option to its path, or to None if it is not given.
        check: called with the settings; raises `ValueError` if they do not suit the command.
        resume: continue the match whose games are in the file of `--save-games`.
        options: options of `ninetka_train.judging.arena.make_match`.
    """
    from ninetka_train.judging.arena import make_match
    from ninetka_train.judging.saved_games import GameSaver, read_earlier_games
    from ninetka_train.judging.texts import count_text

    target = files.get("--save-games")

    def check_all(settings: MatchSettings) -> None:
        check(settings)
        if resume and target is None:
            raise ValueError("--resume continues with the games of --save-games: give both")
        check_files(files, settings)

    try:
        match = make_match(specs, check=check_all, **options)
        earlier = read_earlier_games(target, match.settings) if resume and target else {}
    except (ValueError, OSError, ImportError, RuntimeError, MemoryError, OverflowError) as error:
        fail(error)
    if earlier:
        what = f"{count_text(len(earlier), 'game')} of {target} {'is' if len(earlier) == 1 else 'are'}"
        typer.echo(f"note: {what} not played again", err=True)
    _print_notes(match, options["opening_plies"])
    return PreparedMatch(match, GameSaver(target, earlier) if target else None)


def check_files(files: Mapping[str, Path | None], settings: MatchSettings, inputs: Sequence[Path] = ()) -> None:
    """Check the files that a match will write, and the format of `--save-games`.

    Raises:
        ValueError, OSError: see `check_outputs`; also if saved games of this variant cannot have the format.
    """
    from ninetka_env.api.record_files import check_format
    from ninetka_train.commands.output_files import check_outputs

    check_outputs(files.items(), inputs)
    if target := files.get("--save-games"):
        check_format(target, settings.variant)


def _print_notes(match: Match, opening_plies: int | None) -> None:
    """Print notes about the agents, about default openings, and about games that were rounded up."""
    from ninetka_train.judging.texts import count_text

    settings = match.settings
    if len(match.agents) == 1:
        typer.echo("note: only one agent is given, so it plays against itself", err=True)
    for agent in match.agents:
        if caveat := agent.caveat(settings.variant):
            typer.echo(f"note: {agent.name}: {caveat}", err=True)
    if opening_plies is None and settings.opening_plies:
        typer.echo(
            f"note: networks repeat their openings, so each rotation starts with {settings.opening_plies} random plies "
            "(--opening-plies 0 for none)",
            err=True,
        )
    schedule = settings.make_schedule()
    games = schedule.games_per_lineup
    if games != settings.num_games:
        whole = f"{count_text(games // schedule.rotation, 'rotation')} of {schedule.rotation} seatings"
        typer.echo(f"note: --games {settings.num_games} is rounded up to {games} games per lineup, {whole}", err=True)


def play(prepared: PreparedMatch, *, gate: Gate | None = None, elsewhere: PlayBatches | None = None) -> MatchOutcome:
    """Play a match and return its outcome, with only the finished rotations if it is stopped or an agent fails.

    Args:
        prepared: the match, and the callback that saves its games.
        gate: ends the match at a verdict.
        elsewhere: plays the batches in other processes; None to play them in this process.
    """
    from ninetka_train.judging.arena import LatestResults
    from ninetka_train.judging.gate import stop_at_verdict
    from ninetka_train.judging.lockstep import AgentError

    match, saved = prepared
    games, earlier = match.num_games, saved.earlier if saved else None
    so_far = LatestResults(stop_at_verdict(gate, saved) if gate else saved)
    with exit_on_match_error(match.settings.num_games), progress(games) as bar:
        try:
            results = match.play(
                progress=bar.show,
                on_start=lambda results: bar.show_score(lambda: running_score(results, gate)),
                on_batch_end=so_far,
                play_batches=elsewhere,
                earlier=earlier,
            )
            outcome = MatchOutcome(results)
        except (KeyboardInterrupt, AgentError) as reason:
            outcome = _interrupted_outcome(reason, so_far, games)
    if saved and saved.error:
        outcome.problems.append(saved.error)
    return outcome


def _interrupted_outcome(reason: KeyboardInterrupt | RuntimeError, so_far: LatestResults, games: int) -> MatchOutcome:
    """Return the outcome of a match that ended early, with its finished rotations; raise `reason` if there are none."""
    results, whole = so_far.results, so_far.complete_groups()
    if results is None or whole is None:
        raise reason
    over = int(results.is_over.sum())
    counted = "these" if len(whole.winners) == over else f"the {len(whole.winners)} in whole rotations"
    typer.echo(f"stopped after {over} of {games} games: the figures are of {counted}", err=True)
    left_out = [name for name in results.settings.agents if name not in whole.settings.agents]
    if left_out:
        typer.echo(f"note: no rotation is finished of {', '.join(left_out)}", err=True)
    if isinstance(reason, KeyboardInterrupt):
        return MatchOutcome(whole, status=exit_status(reason))
    return MatchOutcome(whole, [RuntimeError(first_line(reason))], status=1)


def first_line(error: BaseException) -> str:
    """Return the first line of an error message. The next lines may show the position of an illegal action."""
    return str(error).partition("\n")[0]


def exit_status(stopped: BaseException) -> int:
    """Return the exit status of a command that was stopped by a signal."""
    return stopped.status if isinstance(stopped, StoppedBySignal) else 130


@contextmanager
def exit_on_match_error(games: int) -> Iterator[None]:
    """Return a context manager that exits with a one-line error if the match fails.

    It handles saved games with other starts, failures of agents, and a lack of memory. `games` is the number of games.
    """
    from ninetka_train.judging.lockstep import AgentError, StartMismatchError

    try:
        yield
    except StartMismatchError as error:
        fail(error)
    except (AgentError, MemoryError, RuntimeError) as error:
        if is_out_of_memory(error) or (error.__cause__ and is_out_of_memory(error.__cause__)):
            fail(f"{games} games of these agents do not fit into memory")
        if not isinstance(error, AgentError):
            raise
        fail(first_line(error), code=1)


# Progress


def running_score(results: Results, gate: Gate | None = None) -> str:
    """Return how many of the finished games the first of two agents won, and the gate's log-likelihood ratio.

    Empty for more than two agents, and before the first game is finished.
    """
    from ninetka_train.judging.gate import evaluate_gate

    over = results.is_over
    if len(results.settings.agents) != 2 or not over.any():
        return ""
    text = f"first agent {100 * results.shares[over, 0].mean():.1f} %"
    if gate and len((whole := results.complete_groups()).winners) and len(whole.settings.agents) == 2:
        found = evaluate_gate(whole, gate)
        text += f", LLR {found.ratio:+.2f} of {found.bounds.fails:+.2f} to {found.bounds.passes:+.2f}"
    return text


class MatchDisplay(Protocol):
    """Display of a match's progress on stderr."""

    def show(self, done: float) -> None:
        """Show the number of finished games; running games count in part."""
        ...

    def show_score(self, score: Callable[[], str]) -> None:
        """From now on, also show the text that `score` returns."""
        ...

    def print_line(self, line: str) -> None:
        """Print a line."""
        ...


@contextmanager
def progress(games: int) -> Iterator[MatchDisplay]:
    """Return a context manager with a display of a match's progress: a bar in a terminal, lines elsewhere."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _LineDisplay(games)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("games"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[score]}"),
    )
    with Progress(*columns, console=console, transient=True, expand=True) as bar:
        yield _BarDisplay(bar, games)


class _BarDisplay:
    def __init__(self, bar: Any, games: int) -> None:
        self._bar, self._task = bar, bar.add_task("games", total=games, score="")
        self._score: Callable[[], str] = str
        self._scored_at = 0.0

    def show(self, done: float) -> None:
        now = time.perf_counter()
        if now - self._scored_at < SCORE_INTERVAL_S:
            self._bar.update(self._task, completed=done)
        else:
            self._bar.update(self._task, completed=done, score=self._score())
            self._scored_at = now

    def show_score(self, score: Callable[[], str]) -> None:
        self._score = score

    def print_line(self, line: str) -> None:
        self._bar.console.print(line, markup=False, highlight=False, soft_wrap=True)


class _ProgressPoint(NamedTuple):
    seconds: float
    done: float
    """Finished games."""


class _LineDisplay:
    def __init__(self, games: int) -> None:
        self._games = games
        self._score: Callable[[], str] = str
        self._first: _ProgressPoint | None = None
        self._tenth, self._last = 0, time.perf_counter()

    def show(self, done: float) -> None:
        now, tenth = time.perf_counter(), 10 * int(done) // self._games
        if self._first is None:  # a resumed match has finished games at its start
            self._first, self._tenth, self._last = _ProgressPoint(now, done), tenth, now
        since = now - self._last
        if since >= (MIN_PROGRESS_INTERVAL_S if tenth > self._tenth else MAX_PROGRESS_INTERVAL_S):
            self._tenth, self._last = tenth, now
            elapsed, played = now - self._first.seconds, done - self._first.done
            rest = elapsed * (self._games - done) / played if played > 0 else 0
            left = f", about {_duration_text(rest)} left" if rest else ""
            score = f", {text}" if (text := self._score()) else ""
            self.print_line(f"{int(done)} of {self._games} games in {_duration_text(elapsed)}{left}{score}")

    def show_score(self, score: Callable[[], str]) -> None:
        self._score = score

    def print_line(self, line: str) -> None:
        typer.echo(line, err=True)


def _duration_text(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


# Figures


def summarise_outcome(outcome: MatchOutcome, *, exact: bool = False, **options: Any) -> Evaluation:
    """Return the figures of a match.

    The figures of perfect play (`exact`) are slow. If a signal interrupts their computation, they are left out.
    """
    from ninetka_train.judging.evaluate import summarise

    try:
        return summarise(outcome.results, exact=exact, **options)
    except KeyboardInterrupt as reason:
        outcome.status = outcome.status or exit_status(reason)
        typer.echo(f"stopped{': perfect play is left out' if exact else ''}", err=True)
        return summarise(outcome.results, **options)


def report(
    outcome: MatchOutcome,
    evaluation: Evaluation,
    files: Mapping[str, Path | None],
    markdown: Callable[[], str] = str,
    *,
    ranked: bool = False,
) -> None:
    """Write the files and print the tables.

    Exit with a status if there were errors, if the match was stopped, if agents lost games by failures, or if the first
    agent did not pass the gate.

    Args:
        outcome: outcome of the match.
        evaluation: figures of the match.
        files: path by option; None if the option is not given.
        markdown: returns the text for `--markdown`.
        ranked: list the agents by rating.
    """
    from ninetka_env.core.files import replace_file
    from ninetka_train.judging.report import games_csv, json_text, print_report

    texts = {
        "--json": lambda: json_text(evaluation),
        "--csv": lambda: games_csv(outcome.results),
        "--markdown": markdown,
    }
    problems = list(outcome.problems)
    for option, text in texts.items():
        try:
            if path := files.get(option):
                replace_file(path, [text().encode(errors="backslashreplace")])  # file names may not be UTF-8
        except OSError as error:
            problems.append(error)
    try:
        print_report(evaluation, ranked=ranked)
        for failure in evaluation.failures:
            typer.echo(f"lost by a failure: {failure}", err=True)
    finally:
        if problems:
            fail("; ".join(map(error_text, problems)), code=1 if outcome.status == 1 else 2)
    _exit_with_status(outcome, evaluation)


def _exit_with_status(outcome: MatchOutcome, evaluation: Evaluation) -> None:
    from ninetka_train.judging.gate import FAILED, PASSED
    from ninetka_train.judging.texts import count_text

    if outcome.status:
        raise typer.Exit(outcome.status)
    if evaluation.failures:
        lost = (
            f"{count_text(len(evaluation.failures), 'game')} {'was' if len(evaluation.failures) == 1 else 'were'} lost"
        )
        fail(f"{lost} by failures of agents", code=1)
    if evaluation.gate and evaluation.gate.verdict != PASSED:
        raise typer.Exit(3 if evaluation.gate.verdict == FAILED else 4)


def outcome_of_files(paths: Sequence[Path]) -> MatchOutcome:
    """Return the outcome of the games in files, and print notes about excluded games."""
    from ninetka_train.judging.saved_games import read_results

    if not paths:
        raise ValueError("no files: expected at least one after --from")
    for place, path in enumerate(paths):
        if path.resolve() in [other.resolve() for other in paths[:place]]:
            raise ValueError(f"{path}: named twice")
    results, notes = read_results(paths)
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    return MatchOutcome(results)
