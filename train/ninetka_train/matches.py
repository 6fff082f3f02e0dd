"""The commands that let agents play each other: `evaluate`, `rate`, `curve`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ninetka_train import playing
from ninetka_train.cluster.command import Cluster, check_repeatable, on_cluster
from ninetka_train.ending import fail, failing, integer_option, stopped_by_signals

if TYPE_CHECKING:  # heavy modules are imported inside the commands, so that help comes at once
    from ninetka_agents.agent import Agent
    from ninetka_train.judging.arena import Match, PlayBatches
    from ninetka_train.judging.curve import Budgeted
    from ninetka_train.judging.evaluate import Evaluation
    from ninetka_train.judging.results import Settings


Spec = Annotated[str, typer.Option("--game", metavar="SPEC", help="Such as ninetka:num_players=3.")]
Players = Annotated[int | None, integer_option("--players", "-n", help="Seats at the table.")]
Games = Annotated[int, integer_option("--games", "-g", help="Games per lineup, rounded up to whole rotations.")]
Seed = Annotated[int, integer_option("--seed", help="Decides every game; the same seed gives the same result.")]
OpeningPlies = Annotated[
    int | None,
    integer_option(
        "--opening-plies",
        help="Random plies that each rotation begins with; by default 4 where networks alone play, else 0.",
    ),
]
JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all figures there.")]
CsvFile = Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write the games there, a row each.")]
GamesFile = Annotated[
    Path | None, typer.Option("--save-games", metavar="FILE", help="Write all games there, as text, as they end.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with a match: games that --save-games FILE holds are not played again.")
]
Forfeit = Annotated[
    bool, typer.Option("--forfeit", help="An agent that fails loses that game; otherwise the match stops there.")
]


@stopped_by_signals()
def evaluate(
    context: typer.Context,
    agents: Annotated[
        list[str] | None,
        typer.Argument(metavar="AGENT...", help="What plays, such as: random  maxn:depth=3  mcts:simulations=2000"),
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
        float | None, typer.Option("--alpha", help="Chance that the gate lets LOW pass; by default 0.05.")
    ] = None,
    beta: Annotated[
        float | None, typer.Option("--beta", help="Chance that the gate lets HIGH fail; by default 0.05.")
    ] = None,
    tournament: Annotated[
        bool, typer.Option("--tournament", help="Two players: also score matches of two games, seats swapped.")
    ] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="Two players: also count the wins given away, by perfect play.")
    ] = False,
    batch: Annotated[
        int | None,
        integer_option(
            "--batch",
            help="Games played at once, which changes none but by how networks round: 256, with --gate or --cluster 32,"
            " where an agent keeps a tree or a process for each game 16.",
        ),
    ] = None,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
    games_file: GamesFile = None,
    resume: Resume = False,
    from_files: Annotated[
        bool, typer.Option("--from", help="Play nothing: the arguments are files of saved games.")
    ] = False,
    forfeit: Forfeit = False,
    cluster: Cluster = None,
) -> None:
    """Let agents play each other, with seats rotated, and report win shares, intervals and ratings.

    With fewer agents than seats the last one named fills the rest (`ninetka evaluate net maxn --players 3` is one net
    against two MaxN); with more, every choice of as many agents as there are seats plays.

    With a gate, the exit status is 0 if the first agent passes, 3 if it fails, 4 if all games leave that open.

    Ctrl-C and SIGTERM end the match with the figures of the games that are over; `--save-games FILE --resume` goes on
    with it, and `--from FILE...` takes the figures from saved games.
    """
    from ninetka_train.judging.evaluate import check_figures
    from ninetka_train.judging.gate import BATCH, parse_gate

    def check(settings: Settings) -> None:
        if cluster:
            check_repeatable(settings.agents)
        check_figures(settings, tournament=tournament, exact=exact, gate=limits)

    files = {"--json": json_file, "--csv": csv_file, "--save-games": games_file}
    with failing("matches"):
        limits = parse_gate(gate, alpha, beta)
        if from_files:
            _check_nothing_played(context)
            paths = [Path(agent) for agent in agents or ()]
            outcome = playing.of_files(paths)
            check(outcome.results.settings)
            playing.check_files(files, outcome.results.settings, paths)
    if not from_files:
        if batch is None and (gate is not None or cluster):
            batch = BATCH
        prepared = playing.prepare(
            agents or (), files, check, resume, num_players=players, num_games=games, game=game, seed=seed,
            batch=batch, opening_plies=opening_plies, forfeit=forfeit,
        )  # fmt: skip
        with _played_on(cluster, prepared.match.agents) as elsewhere:
            outcome = playing.play(prepared, gate=limits, elsewhere=elsewhere)
    with failing("figures"):
        evaluation = playing.summarised(outcome, tournament=tournament, exact=exact, gate=limits)
    playing.report(outcome, evaluation, files)


@contextmanager
def _played_on(address: str | None, agents: Sequence[Agent]) -> Iterator[PlayBatches | None]:
    """Yield what plays batches on a cluster; None without an address."""
    with failing("clusters", "cluster") if address else nullcontext(), on_cluster(address) as player:
        yield player.players_of(agents) if player else None


FOR_FIGURES = {"agents", "gate", "alpha", "beta", "tournament", "exact", "json_file", "csv_file", "from_files"}
"""Parameters of `evaluate` that saved games leave open."""


def _check_nothing_played(context: typer.Context) -> None:
    """Raise `ValueError` if an option is given that only concerns games that are played."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in FOR_FIGURES and source is not None and source.name == "COMMANDLINE":
            raise ValueError(f"{parameter.opts[0]}: --from plays no games, so this has no meaning: leave it out")


@stopped_by_signals()
def rate(
    agents: Annotated[
        list[str] | None,
        typer.Argument(metavar="AGENT...", help="The pool; by default benchmark opponents and every known network."),
    ] = None,
    game: Spec = "ninetka",
    players: Players = None,
    games: Games = 20,
    seed: Seed = 0,
    anchor: Annotated[
        str | None,
        typer.Option("--anchor", metavar="AGENT", help="The agent whose rating is 0; by default the pool's mean is."),
    ] = None,
    opening_plies: OpeningPlies = None,
    batch: Annotated[int, integer_option("--batch", help="Games played at once.")] = 256,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
    games_file: GamesFile = None,
    resume: Resume = False,
    forfeit: Forfeit = False,
    table: Annotated[
        Path | None, typer.Option("--table", metavar="FILE", help="Write the ratings there, as a page of Markdown.")
    ] = None,
) -> None:
    """Rate the agents of a game in one pool: every choice of as many agents as there are seats plays.

    Ctrl-C and SIGTERM end it with the figures of the games that are over; `--save-games FILE --resume` goes on.
    """
    from ninetka_env.core.options import check_choice
    from ninetka_env.core.registry import load_variant
    from ninetka_train.judging.ratings import usual_pool
    from ninetka_train.judging.report import ratings_page

    with failing("ratings"):
        pool = agents or usual_pool(load_variant(game).definition.name)

    def check(settings: Settings) -> None:
        if len(pool) < 2:
            raise ValueError(f"a pool of {len(pool)} agent: expected at least 2")
        if anchor is not None:
            check_choice("anchor", anchor, settings.agents)

    files = {"--json": json_file, "--csv": csv_file, "--save-games": games_file, "--table": table}
    prepared = playing.prepare(
        pool, files, check, resume, num_players=players, num_games=games, game=game, seed=seed,
        batch=batch, opening_plies=opening_plies, forfeit=forfeit,
    )  # fmt: skip
    outcome = playing.play(prepared)
    if anchor not in (None, *outcome.results.settings.agents):
        typer.echo(f"note: no rotation of {anchor} is over, so the pool's mean is 0", err=True)
        anchor = None
    evaluation = playing.summarised(outcome, anchor=anchor)
    playing.report(outcome, evaluation, files, lambda: ratings_page(evaluation, str(table), agents or []))


@stopped_by_signals()
def curve(
    agents: Annotated[
        list[str],
        typer.Argument(metavar="AGENT...", help="Whose curves, specs without a budget, such as: net  mcts:rave"),
    ],
    path: Annotated[
        Path, typer.Option("--out", metavar="PATH", help="Write PATH.png and PATH.json, such as docs/strength.")
    ],
    against: Annotated[str, typer.Option("--against", metavar="AGENT", help="The agent in all other seats.")],
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
    """Measure and draw how strong agents are by the time, or the simulations, that they have for a move.

    Ctrl-C and SIGTERM end it with the points, and the games of the last point, that are over.
    """
    from ninetka_env.core.files import check_writable, with_ending
    from ninetka_train.judging.curve import make_matches, parse_amounts, planned
    from ninetka_train.judging.lockstep import AgentError

    with failing("curves"), playing.failing_match(games):
        from ninetka_train.showing.strength import draw_curve  # noqa: F401  # what is missing is reported before games

        for ending in (".png", ".json"):
            check_writable(with_ending(path, ending))
        texts = {"seconds": seconds, "simulations": simulations}
        plan = planned(agents, {name: parse_amounts(name, text) for name, text in texts.items()})
        matches = make_matches(
            plan, against, num_players=players, num_games=games, game=game, seed=seed, batch=batch
        )  # fmt: skip
        evaluations, reason = _play_points(matches)
        _write_curve(path, plan, against, evaluations)
    typer.echo(f"wrote {with_ending(path, '.png')} and .json")
    if isinstance(reason, AgentError):
        fail(playing.first_line(reason), code=1)
    if reason:
        fewer = ", the last one of fewer games" if evaluations[-1].games_per_lineup < matches[0].num_games else ""
        typer.echo(f"stopped after {len(evaluations)} of {len(plan)} points{fewer}", err=True)
        raise typer.Exit(playing.status_of(reason))


def _play_points(matches: Sequence[Match]) -> tuple[list[Evaluation], BaseException | None]:
    """Play the matches of a curve; return their figures, and what stopped them, if anything. There are some figures."""
    from ninetka_train.judging.curve import play_points
    from ninetka_train.judging.lockstep import AgentError

    evaluations: list[Evaluation] = []
    with playing.progress(sum(match.num_games for match in matches)) as bar:
        try:
            for evaluation in play_points(matches, bar.say, bar.show):
                evaluations.append(evaluation)  # noqa: PERF402  # what comes before an exception is kept
        except (KeyboardInterrupt, AgentError) as reason:
            if not evaluations:
                raise
            return evaluations, reason
    return evaluations, None


def _write_curve(path: Path, plan: Sequence[Budgeted], against: str, evaluations: Sequence[Evaluation]) -> None:
    """Write the picture and the figures of the points that were played, both or neither."""
    import json

    from ninetka_env.core.files import replace_files, with_ending
    from ninetka_train.judging.curve import curve_dict, make_curve
    from ninetka_train.showing.strength import draw_curve

    found = make_curve(plan, against, evaluations)
    text = json.dumps(curve_dict(found), indent=1, allow_nan=False) + "\n"
    replace_files({with_ending(path, ".png"): [draw_curve(found)], with_ending(path, ".json"): [text.encode()]})
