"""The commands that let agents play each other: `evaluate`, `rate`, `curve`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ninetka_train.arguments import integer_option
from ninetka_train.cluster.command import Cluster, check_repeatable, on_cluster
from ninetka_train.ending import explain, fail, failing, is_out_of_memory

if TYPE_CHECKING:  # heavy modules are imported inside the commands, so that help comes at once
    from ninetka_agents.agent import Agent
    from ninetka_train.judging.arena import Finished, PlayBatches, Progress, Results, Settings
    from ninetka_train.judging.evaluate import Evaluation


Spec = Annotated[str, typer.Option("--game", metavar="SPEC", help="Such as ninetka:num_players=3.")]
Players = Annotated[int | None, integer_option("--players", "-n", help="Seats at the table.")]
Games = Annotated[int, integer_option("--games", "-g", help="Games per lineup, rounded up to whole rotations.")]
Seed = Annotated[int, integer_option("--seed", help="Decides every game; the same seed gives the same result.")]
OpeningPlies = Annotated[
    int | None,
    integer_option(
        "--opening-plies",
        help="Random plies that each rotation begins with; unless told 4 where networks alone play, else 0.",
    ),
]
JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all figures there.")]


def evaluate(
    agents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="AGENT...", help="Who plays, such as: random  maxn  maxn:depth=3  mcts:simulations=2000"
        ),
    ] = None,
    game: Spec = "ninetka",
    players: Players = None,
    games: Games = 100,
    seed: Seed = 0,
    opening_plies: OpeningPlies = None,
    gate: Annotated[
        str | None,
        typer.Option(
            "--gate", metavar="LOW,HIGH", help="Stop once it is known which share of games the first agent wins."
        ),
    ] = None,
    alpha: Annotated[
        float | None, typer.Option("--alpha", help="Chance that the gate lets LOW pass; 0.05 unless told.")
    ] = None,
    beta: Annotated[
        float | None, typer.Option("--beta", help="Chance that the gate lets HIGH fail; 0.05 unless told.")
    ] = None,
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
    batch: Annotated[
        int | None,
        integer_option(
            "--batch",
            help="Games played at once, which changes none but by how networks round: 256, with --gate or --cluster 32,"
            " where an agent keeps a tree or a process for each game 16.",
        ),
    ] = None,
    json_file: JsonFile = None,
    games_file: Annotated[
        Path | None, typer.Option("--save-games", metavar="FILE", help="Write all games there, as text.")
    ] = None,
    cluster: Cluster = None,
) -> None:
    """Let agents play each other, with seats rotated, and report win shares, intervals and ratings.

    With fewer agents than seats the last one named fills the rest (`ninetka evaluate net maxn --players 3` is one net
    against two MaxN); with more, every choice of as many agents as there are seats plays.

    With a gate, the exit status is 0 if the first agent passes, 3 if it fails, 4 if all games leave that open.
    """
    from ninetka_train.judging import evaluate as judging
    from ninetka_train.judging.arena import play_games
    from ninetka_train.judging.gate import BATCH, check_gate, parse_gate, stops
    from ninetka_train.parts import exact_of

    own = {"neutral_placement": neutral_placement, "turn_order": turn_order, "batch": batch}
    options: dict[str, Any] = {"game": game, "seed": seed, "opening_plies": opening_plies}
    options |= {"batch": BATCH} if gate is not None or cluster else {}
    options |= {key: value for key, value in own.items() if value is not None}

    def check(settings: Settings) -> None:
        if cluster:
            check_repeatable(settings.agents)
        if tournament:
            judging.check_tournament(len(settings.agents), settings.num_players)
        if exact:
            exact_of(settings.variant).check(settings.num_players)
        if limits:
            check_gate(len(settings.agents))

    with failing("matches"):
        limits = parse_gate(gate, alpha, beta)
    files = {"--json": json_file, "--save-games": games_file}
    settings, chosen = _prepare(tuple(agents or ()), players, games, options, files, check)
    _tell_opening(settings, opening_plies)
    saved = _SavedGames(games_file) if games_file else None
    so_far = _SoFar(stops(limits, saved) if limits else saved)
    with _failing_match(games):
        with _played_on(cluster, chosen) as elsewhere, _progress_bar(_count_games(settings)) as progress:
            told: dict[str, Any] = {"progress": progress, "finished": so_far, "elsewhere": elsewhere}
            try:
                results = play_games(chosen, players, games, **options, **told)
            except KeyboardInterrupt:
                results = so_far.results()
        evaluation = judging.summarise(results, tournament=tournament, exact=exact, gate=limits)
    _tell(evaluation, json_file, [saved.failure] if saved and saved.failure else [], stopped=so_far.was_asked)


@contextmanager
def _played_on(address: str | None, agents: list[Agent]) -> Iterator[PlayBatches | None]:
    """Give who plays batches on a cluster; None without an address. What is wrong with it is told in a sentence."""
    with failing("clusters", "cluster") if address else nullcontext(), on_cluster(address) as player:
        yield player.players_of(agents) if player else None


def _tell(evaluation: Evaluation, json_file: Path | None, failures: list[Exception], *, stopped: bool = False) -> None:
    """Print and write what was found; end in an error, as a stopped match does, or in the verdict of a gate, if any."""
    from ninetka_train.judging.gate import FAILED, PASSED
    from ninetka_train.judging.report import print_report, write_json

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
    if stopped:
        raise typer.Exit(130)
    if evaluation.gate and evaluation.gate.verdict != PASSED:
        raise typer.Exit(3 if evaluation.gate.verdict == FAILED else 4)


def _prepare(
    specs: tuple[str, ...],
    players: int | None,
    games: int,
    options: dict[str, Any],
    files: dict[str, Path | None],
    check: Callable[[Settings], None],
) -> tuple[Settings, list[Agent]]:
    """Check everything that can be wrong before a game is played, and make the agents."""
    from ninetka_agents import make_agent
    from ninetka_env.api.record_files import check_form
    from ninetka_env.core.files import check_writable
    from ninetka_train.judging.arena import make_settings

    try:
        settings = make_settings(specs, players, games, **options)
        check(settings)
        named = {option: path for option, path in files.items() if path}
        if len(named) > len({path.resolve() for path in named.values()}):
            raise ValueError(f"{' and '.join(named)} name the same file, {next(iter(named.values()))}")
        for path in named.values():
            check_writable(path)
        if target := files.get("--save-games"):
            check_form(target, settings.variant)
        agents = [make_agent(spec, options["game"]) for spec in specs]
        return make_settings(agents, players, games, **options), agents
    except (ValueError, OSError, ImportError, RuntimeError, MemoryError, OverflowError) as error:
        fail(error)


def _tell_opening(settings: Settings, asked: int | None) -> None:
    """Say that openings are drawn where nobody asked for it."""
    if asked is None and settings.opening_plies:
        typer.echo(
            f"note: networks open alike, so each rotation begins with {settings.opening_plies} random plies "
            "(--opening-plies 0 for none)",
            err=True,
        )


def _count_games(settings: Settings) -> int:
    """Return how many games will be played; say so if they are more per lineup than asked for."""
    from ninetka_train.judging.schedule import make_schedule

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
    bar = Progress(*columns, console=console, disable=not console.is_terminal, transient=True)
    with nullcontext() if bar.disable else bar:  # rich before 14.3 ends one that is disabled by an empty line
        task = bar.add_task("games", total=games)
        yield lambda done: bar.update(task, completed=done)


class _SoFar:
    """Knows what a match has come to after every batch of games, for those who stop it."""

    def __init__(self, then: Finished | None) -> None:
        self._then, self._games = then, 0
        self._found: Results | None = None
        self.was_asked = False

    def __call__(self, results: Results, games: range) -> object:
        self._found, self._games = results, games.stop
        return self._then and self._then(results, games)

    def results(self) -> Results:
        """Return the games that are over; stop anyway if they are less than a rotation, or of several lineups."""
        if self._found is None or len(self._found.schedule.lineups) > 1 or self._games < self._found.schedule.rotation:
            raise KeyboardInterrupt
        self.was_asked, played = True, self._found.first(self._games)
        games = len(played.winners)
        typer.echo(f"stopped after {games} of {len(self._found.winners)} games: what follows is of these", err=True)
        return played


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


def rate(
    agents: Annotated[
        list[str] | None,
        typer.Argument(metavar="AGENT...", help="The pool; unless told, yardsticks and every shipped network."),
    ] = None,
    game: Spec = "ninetka",
    players: Players = None,
    games: Games = 20,
    seed: Seed = 0,
    anchor: Annotated[
        str | None, typer.Option("--anchor", metavar="AGENT", help="Whose rating is 0; unless told, the pool's mean.")
    ] = None,
    opening_plies: OpeningPlies = None,
    batch: Annotated[int, integer_option("--batch", help="Games played at once.")] = 256,
    json_file: JsonFile = None,
    table: Annotated[
        Path | None, typer.Option("--table", metavar="FILE", help="Write the ratings there, as a page of Markdown.")
    ] = None,
) -> None:
    """Rate everybody who plays a game in one pool: every choice of as many agents as there are seats plays."""
    from ninetka_env.core.files import replace_file
    from ninetka_env.core.options import check_choice
    from ninetka_env.core.registry import load_variant
    from ninetka_train.judging.arena import play_games
    from ninetka_train.judging.evaluate import summarise
    from ninetka_train.judging.pool import ratings_page, usual_pool

    with failing("ratings"):
        pool = tuple(agents or usual_pool(load_variant(game).definition.name))
    options: dict[str, Any] = {"game": game, "seed": seed, "batch": batch, "opening_plies": opening_plies}

    def check(settings: Settings) -> None:
        if len(pool) < 2:
            raise ValueError(f"a pool of {len(pool)} agent: expected at least 2")
        if anchor is not None:
            check_choice("anchor", anchor, settings.agents)

    settings, chosen = _prepare(pool, players, games, options, {"--json": json_file, "--table": table}, check)
    _tell_opening(settings, opening_plies)
    with _failing_match(games), _progress_bar(_count_games(settings)) as progress:
        evaluation = summarise(play_games(chosen, players, games, **options, progress=progress), anchor=anchor)
    failures: list[Exception] = []
    try:
        if table:
            replace_file(table, [ratings_page(evaluation, str(table), agents or []).encode()])
    except OSError as error:
        failures.append(error)
    _tell(evaluation, json_file, failures)


def curve(
    agents: Annotated[
        list[str],
        typer.Argument(metavar="AGENT...", help="Whose curves, specs without a budget, such as: net  mcts:rave"),
    ],
    path: Annotated[
        Path, typer.Option("--out", metavar="PATH", help="Write PATH.png and PATH.json, such as docs/strength.")
    ],
    against: Annotated[str, typer.Option("--against", metavar="AGENT", help="Who holds all other seats.")],
    seconds: Annotated[
        str, typer.Option("--seconds", metavar="LIST", help="Seconds a move, such as 0.01,0.03,0.1.")
    ] = "",
    simulations: Annotated[
        str, typer.Option("--simulations", metavar="LIST", help="Simulations a move, such as 16,64,256.")
    ] = "",
    game: Spec = "ninetka",
    players: Players = None,
    games: Annotated[int, integer_option("--games", "-g", help="Games per point, rounded up to rotations.")] = 40,
    seed: Annotated[int, integer_option("--seed", help="Decides every game played by simulations.")] = 0,
    batch: Annotated[int, integer_option("--batch", help="Games played at once.")] = 32,
) -> None:
    """Measure and draw how strong agents are by the time, or the simulations, that they have for a move."""
    import json

    from ninetka_env.core.files import check_writable, replace_files, with_ending
    from ninetka_train.judging.curve import curve_dict, parse_amounts, play_curve

    with failing("curves"), _failing_match(games):
        from ninetka_train.showing.strength import draw_curve

        targets = {ending: with_ending(path, ending) for ending in (".png", ".json")}
        amounts = {
            "seconds": parse_amounts("seconds", seconds),
            "simulations": parse_amounts("simulations", simulations),
        }
        for target in targets.values():
            check_writable(target)
        options = {"num_players": players, "num_games": games, "seed": seed, "batch": batch}
        found = play_curve(agents, against, amounts, game, lambda what: typer.echo(what, err=True), **options)
        text = json.dumps(curve_dict(found), indent=1, allow_nan=False) + "\n"
        replace_files({targets[".png"]: [draw_curve(found)], targets[".json"]: [text.encode()]})
    typer.echo(f"wrote {targets['.png']} and .json")


@contextmanager
def _failing_match(games: int) -> Iterator[None]:
    """End the command in a sentence if an agent breaks the rules or memory runs out."""
    from ninetka_train.judging.players import AgentError

    try:
        yield
    except AgentError as error:
        fail(str(error).partition("\n")[0], code=1)  # without the position that follows
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        fail(f"{games} games of these agents do not fit into memory")
