"""The commands `evaluate`, `rate` and `curve`: let agents play each other.

`match_runner.py` has the code that these commands share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ninetka_train.cluster.command import ClusterOption, check_repeatable, cluster_player
from ninetka_train.commands import match_runner
from ninetka_train.commands.completion import complete_agent, complete_game
from ninetka_train.exit_handling import exit_on_error, fail, integer_option, stopped_by_signals

if TYPE_CHECKING:  # slow modules are imported inside the commands, so that --help is fast
    from ninetka_agents.agent import Agent
    from ninetka_train.judging.arena import Match, PlayBatches
    from ninetka_train.judging.curve import PlannedPoint
    from ninetka_train.judging.evaluate import Evaluation
    from ninetka_train.judging.results import MatchSettings


GameSpec = Annotated[
    str,
    typer.Option(
        "--game",
        metavar="SPEC",
        help="The variant, such as go:komi=6.5, or python:MODULE:NAME for a game of your own.",
        autocompletion=complete_game,
    ),
]
Players = Annotated[int | None, integer_option("--players", "-n", help="Number of players; by default that of --game.")]
Games = Annotated[int, integer_option("--games", "-g", help="Games per lineup, rounded up to whole rotations.")]
Seed = Annotated[int, integer_option("--seed", help="Determines every game; the same seed gives the same result.")]
OpeningPlies = Annotated[
    int | None,
    integer_option(
        "--opening-plies",
        help="Random plies at the start of each rotation; by default 4 if only networks play, else 0.",
    ),
]
JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all figures to this file.")]
CsvFile = Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write one row per game to this file.")]
GamesFile = Annotated[
    Path | None,
    typer.Option(
        "--save-games", metavar="FILE", help="Write each game to this file when it ends; replaced without --resume."
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue a match: games in the file of --save-games are not played again.")
]
Forfeit = Annotated[
    bool, typer.Option("--forfeit", help="An agent that fails loses the game; by default the match stops.")
]


@stopped_by_signals()
def evaluate(
    context: typer.Context,
    agents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="AGENT",
            help="Agents, such as: random  maxn:depth=3  mcts:simulations=2000",
            autocompletion=complete_agent,
        ),
    ] = None,
    game: GameSpec = "ninetka",
    players: Players = None,
    games: Games = 100,
    seed: Seed = 0,
    opening_plies: OpeningPlies = None,
    gate: Annotated[
        str | None,
        typer.Option(
            "--gate",
            metavar="LOW,HIGH",
            help="Stop once it is decided whether the first agent wins a share HIGH of its games or only LOW.",
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option("--alpha", metavar="P", help="Probability that an agent at LOW passes; by default 0.05."),
    ] = None,
    beta: Annotated[
        float | None,
        typer.Option("--beta", metavar="P", help="Probability that an agent at HIGH fails; by default 0.05."),
    ] = None,
    tournament: Annotated[
        bool, typer.Option("--tournament", help="Two players: also score pairs of games with seats swapped.")
    ] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="Two players: also count moves that give a win away under perfect play.")
    ] = False,
    batch: Annotated[
        int | None,
        integer_option(
            "--batch",
            help="Games played at once; changes results only through rounding in networks. By default 256; 32 with"
            " --gate or --cluster; 16 if an agent has a search tree or a process for each game.",
        ),
    ] = None,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
    games_file: GamesFile = None,
    resume: Resume = False,
    from_files: Annotated[
        bool, typer.Option("--from", help="Play no games: the arguments are files of saved games.")
    ] = False,
    forfeit: Forfeit = False,
    cluster: ClusterOption = None,
) -> None:
    """Let agents play a match; report wins, intervals and Elo.

    Every agent plays every seat equally often.

    With fewer agents than seats, the last agent fills the remaining seats (`ninetka evaluate net maxn --players 3` is
    one net against two MaxN). With more agents than seats, every combination of agents plays.

    With a gate, the exit status is 0 if the first agent passes, 3 if it fails, 4 if the result is undecided.

    After Ctrl-C or SIGTERM the figures of the finished games are reported. `--save-games FILE --resume` continues the
    match, and `--from FILE...` computes the figures of saved games.
    """
    from ninetka_env.core.registry import load_variant
    from ninetka_train.judging.evaluate import check_figures
    from ninetka_train.judging.gate import GATE_BATCH, parse_gate

    def check(settings: MatchSettings) -> None:
        if cluster:
            check_repeatable(settings.agents)
        check_figures(settings, tournament=tournament, exact=exact, gate=parsed_gate)

    files = {"--json": json_file, "--csv": csv_file, "--save-games": games_file}
    with exit_on_error("matches"):
        parsed_gate = parse_gate(gate, alpha, beta)
        if from_files:
            _check_from_options(context)
            if game.startswith("python:"):
                load_variant(game)  # the files have games of this module
            paths = [Path(agent) for agent in agents or ()]
            outcome = match_runner.outcome_of_files(paths)
            check(outcome.results.settings)
            match_runner.check_files(files, outcome.results.settings, paths)
    if not from_files:
        if batch is None and (gate is not None or cluster):
            batch = GATE_BATCH
        prepared = match_runner.prepare(
            agents or (), files, check, resume, num_players=players, num_games=games, game=game, seed=seed,
            batch=batch, opening_plies=opening_plies, forfeit=forfeit,
        )  # fmt: skip
        with _cluster_batches(cluster, prepared.match.agents) as elsewhere:
            outcome = match_runner.play(prepared, gate=parsed_gate, elsewhere=elsewhere)
    with exit_on_error("figures"):
        evaluation = match_runner.summarise_outcome(outcome, tournament=tournament, exact=exact, gate=parsed_gate)
    match_runner.report(outcome, evaluation, files)


@contextmanager
def _cluster_batches(address: str | None, agents: Sequence[Agent]) -> Iterator[PlayBatches | None]:
    """Yield a function that plays batches on the cluster at `address`; None without an address."""
    with exit_on_error("clusters", "cluster") if address else nullcontext(), cluster_player(address) as player:
        yield player.batch_player(agents) if player else None


ALLOWED_WITH_FROM = {"agents", "gate", "alpha", "beta", "tournament", "exact", "json_file", "csv_file", "from_files"}
"""Parameters of `evaluate` that may be given with `--from`."""


def _check_from_options(context: typer.Context) -> None:
    """Raise `ValueError` if an option is given that has no meaning with `--from`.

    `--game python:MODULE:NAME` has one: it imports the game of the files.
    """
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name == "game" and context.params["game"].startswith("python:"):
            continue
        if parameter.name not in ALLOWED_WITH_FROM and source is not None and source.name == "COMMANDLINE":
            raise ValueError(f"{parameter.opts[0]}: --from plays no games, so this has no meaning: leave it out")


@stopped_by_signals()
def rate(
    agents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="AGENT",
            help="The pool; by default benchmark opponents and every known network.",
            autocompletion=complete_agent,
        ),
    ] = None,
    game: GameSpec = "ninetka",
    players: Players = None,
    games: Games = 20,
    seed: Seed = 0,
    anchor: Annotated[
        str | None,
        typer.Option(
            "--anchor",
            metavar="AGENT",
            help="The agent whose rating is 0; by default the mean of the pool is 0.",
            autocompletion=complete_agent,
        ),
    ] = None,
    opening_plies: OpeningPlies = None,
    batch: Annotated[int, integer_option("--batch", help="Games played at once.")] = 256,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
    games_file: GamesFile = None,
    resume: Resume = False,
    forfeit: Forfeit = False,
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", metavar="FILE", help="Write the ratings to this file as a Markdown page."),
    ] = None,
) -> None:
    """Rate all agents of a game in one pool.

    Every combination of agents plays.

    After Ctrl-C or SIGTERM the figures of the finished games are reported; `--save-games FILE --resume` continues.
    """
    from ninetka_env.core.options import check_choice
    from ninetka_env.core.registry import load_variant
    from ninetka_train.judging.ratings import default_pool
    from ninetka_train.judging.ratings_page import ratings_page

    with exit_on_error("ratings"):
        pool = agents or default_pool(load_variant(game).definition.name)

    def check(settings: MatchSettings) -> None:
        if len(pool) < 2:
            raise ValueError(f"a pool of {len(pool)} agent: expected at least 2")
        if anchor is not None:
            check_choice("anchor", anchor, settings.agents)

    files = {"--json": json_file, "--csv": csv_file, "--save-games": games_file, "--markdown": markdown}
    prepared = match_runner.prepare(
        pool, files, check, resume, num_players=players, num_games=games, game=game, seed=seed,
        batch=batch, opening_plies=opening_plies, forfeit=forfeit,
    )  # fmt: skip
    outcome = match_runner.play(prepared)
    if anchor not in (None, *outcome.results.settings.agents):
        typer.echo(f"note: no rotation of {anchor} is finished, so the mean of the pool is 0", err=True)
        anchor = None
    evaluation = match_runner.summarise_outcome(outcome, anchor=anchor)
    match_runner.report(
        outcome, evaluation, files, lambda: ratings_page(evaluation, str(markdown), agents or []), ranked=True
    )


@stopped_by_signals()
def curve(
    agents: Annotated[
        list[str],
        typer.Argument(
            metavar="AGENT",
            help="Agents to measure, without a budget, such as: net  mcts:rave",
            autocompletion=complete_agent,
        ),
    ],
    path: Annotated[
        Path,
        typer.Option("--out", metavar="PATH", help="Write PATH.png, -dark.png and .json, such as docs/strength."),
    ],
    against: Annotated[
        str,
        typer.Option("--against", metavar="AGENT", help="The agent in all other seats.", autocompletion=complete_agent),
    ],
    seconds: Annotated[
        str,
        typer.Option(
            "--seconds", metavar="LIST", help="Seconds per move, such as 0.01,0.03,0.1; this or --simulations."
        ),
    ] = "",
    simulations: Annotated[
        str,
        typer.Option(
            "--simulations", metavar="LIST", help="Simulations per move, such as 16,64,256; this or --seconds."
        ),
    ] = "",
    game: GameSpec = "ninetka",
    players: Players = None,
    games: Annotated[int, integer_option("--games", "-g", help="Games per point, rounded up to rotations.")] = 40,
    seed: Annotated[int, integer_option("--seed", help="Determines every game that is played with --simulations.")] = 0,
    batch: Annotated[int, integer_option("--batch", help="Games played at once.")] = 32,
) -> None:
    """Plot the strength of agents by seconds or simulations per move.

    After Ctrl-C or SIGTERM the finished points and the finished games of the last point are written.
    """
    from ninetka_env.core.files import with_extension
    from ninetka_train.commands.output_files import check_outputs, named_files
    from ninetka_train.judging.curve import make_matches, parse_amounts, plan_points
    from ninetka_train.judging.lockstep import AgentError

    with exit_on_error("curves"), match_runner.exit_on_match_error(games):
        from ninetka_train.reporting.strength import draw_curve  # noqa: F401  # report a missing package before games are played

        check_outputs(("--out", file) for file in named_files("--out", path, (".png", "-dark.png", ".json")))
        texts = {"seconds": seconds, "simulations": simulations}
        plan = plan_points(agents, {name: parse_amounts(name, text) for name, text in texts.items()})
        matches = make_matches(
            plan, against, num_players=players, num_games=games, game=game, seed=seed, batch=batch
        )  # fmt: skip
        evaluations, reason = _play_points(matches)
        _write_curve(path, plan, against, evaluations)
    typer.echo(f"wrote {with_extension(path, '.png')}, -dark.png and .json")
    if isinstance(reason, AgentError):
        fail(match_runner.first_line(reason), code=1)
    if reason:
        fewer = ", the last one of fewer games" if evaluations[-1].games_per_lineup < matches[0].num_games else ""
        typer.echo(f"stopped after {len(evaluations)} of {len(plan)} points{fewer}", err=True)
        raise typer.Exit(match_runner.exit_status(reason))


def _play_points(matches: Sequence[Match]) -> tuple[list[Evaluation], BaseException | None]:
    """Play the matches of a curve; return their figures (at least one) and the exception that stopped them, if any."""
    from ninetka_train.judging.curve import play_points
    from ninetka_train.judging.lockstep import AgentError

    evaluations: list[Evaluation] = []
    with match_runner.progress(sum(match.num_games for match in matches)) as bar:
        try:
            for evaluation in play_points(matches, bar.print_line, bar.show):
                evaluations.append(evaluation)  # noqa: PERF402  # keep the evaluations before an exception
        except (KeyboardInterrupt, AgentError) as reason:
            if not evaluations:
                raise
            return evaluations, reason
    return evaluations, None


def _write_curve(path: Path, plan: Sequence[PlannedPoint], against: str, evaluations: Sequence[Evaluation]) -> None:
    """Write the pictures and the figures of the points that were played: all files or none."""
    import json

    from ninetka_env.core.files import replace_files, with_extension
    from ninetka_train.judging.curve import curve_dict, make_curve
    from ninetka_train.reporting.strength import draw_curve
    from ninetka_train.reporting.style import picture_pair

    found = make_curve(plan, against, evaluations)
    text = json.dumps(curve_dict(found), indent=1, allow_nan=False) + "\n"
    pictures = picture_pair(with_extension(path, ".png"), partial(draw_curve, found))
    replace_files({**pictures, with_extension(path, ".json"): [text.encode()]})
