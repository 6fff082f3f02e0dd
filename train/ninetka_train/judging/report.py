"""Write the figures of a match as terminal tables, JSON or a Markdown page of ratings, and its games as CSV.

Start reading at `print_report`. The figures are computed in `evaluate.py`.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import json
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ninetka_env.core.options import Choice
from ninetka_env.core.registry import Variant
from ninetka_train.judging.evaluate import AgentFigures, Evaluation, ExactFigures
from ninetka_train.judging.ratings import Interval
from ninetka_train.judging.results import NO_ACTION, Results, saved_name
from ninetka_train.judging.schedule import DEFAULT_OPENING_PLIES
from ninetka_train.machine import describe_machine, package_version

PLAIN_WIDTH = 120
"""Width in columns if the output is not a terminal."""
MIN_DISTINCT_SHARE = 0.9
"""Share of distinct games below which a report warns."""


def print_report(evaluation: Evaluation, console: Console | None = None) -> None:
    """Print the tables of an evaluation."""
    console = console or report_console()
    tables = [_results_table(evaluation), _seats_table(evaluation)]
    if any(agent.times for agent in evaluation.agents):
        tables.append(_times_table(evaluation))
    if len(evaluation.lineups) > 1:
        tables.append(_lineups_table(evaluation))
    if evaluation.matches is not None:
        tables.append(_matches_table(evaluation))
    if evaluation.exact is not None:
        tables.append(_exact_table(evaluation.exact))
    lines = heading_lines(evaluation) + ([gate_summary(evaluation)] if evaluation.gate else [])
    console.print(Text("\n".join(lines)))
    for table in tables:
        console.print()
        console.print(table)


def report_console() -> Console:
    """Return a console on stdout; without a terminal it has `PLAIN_WIDTH` columns."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


def heading_lines(evaluation: Evaluation) -> list[str]:
    """Return lines of text that describe the match, with all options that are needed to repeat it."""
    settings = evaluation.settings
    lineups, games = len(evaluation.lineups), evaluation.games_per_lineup
    least = min(lineup.games for lineup in evaluation.lineups)
    each = f"{games} games" if least == games else f"{least} to {games} games"
    shown = each if lineups == 1 else f"{lineups} lineups of {each}"
    asked = "" if games == settings.num_games else f" (asked for: {settings.num_games})"
    differ = f"{evaluation.distinct_games} of them distinct"
    variant = settings.variant
    definition = variant.definition
    known = {key: value for key, value in variant.options.items() if key != "num_players"}
    known |= {"seed": settings.seed, "batch": settings.batch}
    options = [f"{key}={value}" for key, value in known.items() if value is not None]
    lines = [
        f"{definition.title}, {settings.num_players} players, {shown}{asked} in paired rotations of "
        f"{evaluation.rotation}, {differ}",
        f"{definition.version}, package {package_version()}, " + ", ".join(options),
    ]
    if settings.opening_plies:
        lines.append(
            f"opening_plies={settings.opening_plies}: random plies at the start of each rotation, the same in all "
            "its games"
        )
    played = sum(lineup.games for lineup in evaluation.lineups)
    repeated = played - evaluation.distinct_games
    if repeated:
        drawn = _variant_with_random_starts(variant)
        hint = f", --game {drawn.spec}" if drawn else ""
        few = evaluation.distinct_games < MIN_DISTINCT_SHARE * played
        lines.append(
            f"{'warning' if few else 'note'}: {repeated} games repeat others move by move, so the intervals "
            f"are too narrow: vary the starts (--opening-plies {settings.opening_plies + DEFAULT_OPENING_PLIES}{hint})"
        )
    return lines


def gate_summary(evaluation: Evaluation) -> str:
    """Return a line with the verdict of the gate and its numbers."""
    found = evaluation.gate
    assert found is not None
    gate, bounds = found.gate, found.bounds
    return (
        f"gate: {evaluation.agents[0].name} {found.verdict} after {found.games} of at most {found.most_games} games; "
        f"log-likelihood ratio {found.ratio:.2f} (fails at {bounds.fails:.2f}, passes at {bounds.passes:.2f}) of "
        f"winning {percent(gate.high)} % against {percent(gate.low)} %, alpha {gate.alpha:g}, beta {gate.beta:g}"
    )


def _variant_with_random_starts(variant: Variant) -> Variant | None:
    """Return a copy of the variant in which one option is changed, so that games have random starts.

    Return None if the variant has random starts already, or if no single option gives random starts.
    """
    if variant.sizes.num_drawn:
        return None
    choices = [option for option in variant.definition.options if isinstance(option, Choice)]
    for name, value in [(option.name, value) for option in choices for value in option.values]:
        with contextlib.suppress(ValueError):  # the combination of options may be invalid
            other = variant.replace_options(**{name: value})
            if other.sizes.num_drawn:
                return other
    return None


def new_table(title: str, first: str, *columns: str, note: str | None = None) -> Table:
    """Return an empty table; all columns except the first are right-aligned, for numbers."""
    table = Table(title=Text(title, "bold"), caption=note, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.title_justify = table.caption_justify = "left"
    table.add_column(first, overflow="fold")
    for column in columns:
        table.add_column(Text(column), justify="right", no_wrap=True)
    return table


def percent(share: float) -> str:
    """Format a share in percent, without the percent sign."""
    return f"{100 * share:.1f}"


def share_text(share: float | None, interval: Interval | None) -> str:
    """Format a share and its interval in percent, `-` for None."""
    if share is None or interval is None:
        return "-"
    low, high = interval
    return f"{percent(share)} [{percent(low)}, {percent(high)}]"


def _milliseconds_text(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _results_table(evaluation: Evaluation) -> Table:
    drawn = any(agent.draws for agent in evaluation.agents)
    columns = ["games", "wins", *(["draws"] if drawn else []), "wins % [95 %]", "expected %", "score"]
    note = "wins: games won by any copy of the agent. expected: its share of the seats."
    note += " A draw counts as a share of a win for every seat." if drawn else ""
    rated = len(evaluation.agents) > 1
    if rated:
        columns.append("Elo [95 %]")
        note += f" Elo: {evaluation.anchor or 'mean'} 0; no interval if wins do not bound it or rotations are too few."
    columns.append("s/move")
    table = new_table("Results", "agent", *columns, note=note)
    for agent in evaluation.agents:
        share = share_text(agent.share, agent.interval)
        counts = [str(agent.games), str(agent.wins), *([str(agent.draws)] if drawn else [])]
        cells = [*counts, share, percent(agent.even), f"{agent.score:.2f}", *([elo_text(agent)] if rated else [])]
        table.add_row(*map(Text, [agent.name, *cells, "-" if agent.seconds is None else f"{agent.seconds:.3g}"]))
    return table


def elo_text(agent: AgentFigures) -> str:
    """Format a rating and its interval."""
    elo = f"{round(agent.elo or 0):+d}"
    if agent.elo_interval is None:
        return elo
    low, high = agent.elo_interval
    return f"{elo} [{round(low):+d}, {round(high):+d}]"


def _seats_table(evaluation: Evaluation) -> Table:
    seats = [f"seat {seat}" for seat in range(evaluation.settings.num_players)]
    table = new_table("Wins by seat", "agent", *seats, note="wins % [95 %] of games; seat 0 moves first")
    for agent in evaluation.agents:
        cells = [
            f"{share_text(seat.share, seat.interval)} of {seat.games}" if seat.games else "-" for seat in agent.seats
        ]
        table.add_row(Text(agent.name), *cells)
    return table


def _times_table(evaluation: Evaluation) -> Table:
    stages = evaluation.settings.variant.definition.stages
    note = "mean (slowest call); games are played in batches: wall time of a call / number of positions"
    table = new_table("Milliseconds per move", "agent", *stages, note=note)
    for agent in evaluation.agents:
        cells = {
            time.stage: f"{_milliseconds_text(time.mean_ms)} ({_milliseconds_text(time.slowest_ms)})"
            for time in agent.times
        }
        table.add_row(Text(agent.name), *(cells.get(stage, "-") for stage in stages))
    return table


def _lineups_table(evaluation: Evaluation) -> Table:
    table = new_table("Wins by lineup", "agents", "games", "wins % [95 %], in the order of the agents")
    for lineup in evaluation.lineups:
        shares = [share_text(lineup.shares[name], lineup.intervals[name]) for name in lineup.shares]
        table.add_row(Text(", ".join(lineup.agents)), str(lineup.games), " / ".join(shares))
    return table


def _matches_table(evaluation: Evaluation) -> Table:
    note = "a match: two games with seats swapped; the higher sum of scores wins"
    columns = ("opponent", "matches", "won", "drawn", "lost", "won % [95 %]", "scores")
    table = new_table("Two-player tournament", "agent", *columns, note=note)
    table.columns[1].justify = "left"
    for match in evaluation.matches or []:
        counts = (match.matches, match.won, match.drawn, match.lost)
        sums = f"{match.score:g} : {match.opponent_score:g}"
        share = share_text(match.share, match.interval)
        table.add_row(Text(match.agent), Text(match.opponent), *map(str, counts), share, sums)
    return table


def _exact_table(exact: list[ExactFigures]) -> Table:
    columns = ("decisions", "unsolved %", "won", "blunders", "blunders % of won [95 %]")
    note = "won: decisions in won positions. blunders: decisions that gave the win away."
    table = new_table("Movement compared with perfect play", "agent", *columns, note=note)
    for agent in exact:
        share = share_text(agent.share, agent.interval)
        unsolved = percent(agent.unsolved / agent.decisions) if agent.decisions else "-"
        table.add_row(Text(agent.agent), str(agent.decisions), unsolved, str(agent.won), str(agent.blunders), share)
    return table


def evaluation_dict(evaluation: Evaluation) -> dict[str, Any]:
    """Return the figures as plain values for JSON; keys are the field names in `ninetka_train.judging.evaluate`."""
    return {
        "environment": evaluation.settings.variant.definition.version,
        "package": package_version(),
        "machine": describe_machine(),
        **dataclasses.asdict(evaluation),
    }


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table; the first column, with specs, is formatted as code."""
    lines = [columns, ["---"] * len(columns), *([f"`{row[0]}`", *row[1:]] for row in rows)]
    return ["| " + " | ".join(line) + " |" for line in lines]


def ratings_page(evaluation: Evaluation, path: str, named: Sequence[str] = ()) -> str:
    """Return the ratings as a Markdown page, strongest agent first.

    Args:
        evaluation: figures of the pool.
        path: path of the page, which is part of the command that the page quotes.
        named: specs of the agents in that command; empty for the default pool.
    """
    settings = evaluation.settings
    asked = {"game": settings.game, "games": settings.num_games, "seed": settings.seed}
    asked |= {"opening-plies": settings.opening_plies, "anchor": evaluation.anchor, "table": path}
    options = [item for key, value in asked.items() if value is not None for item in (f"--{key}", str(value))]
    title = settings.variant.definition.title
    rows = [
        (
            agent.name,
            elo_text(agent),
            share_text(agent.share, agent.interval),
            str(agent.games),
            _seconds(agent.seconds),
        )
        for agent in sorted(evaluation.agents, key=lambda agent: -(agent.elo or 0))
    ]
    zero = f"`{evaluation.anchor}` is 0" if evaluation.anchor else "the mean of the pool is 0"
    return "\n".join(
        [
            f"# Ratings: {title}, {settings.num_players} players",
            "",
            f"Round robin with rotated seats; {zero}. Intervals are 95 %: cluster-robust by rotation for ratings, "
            "Wilson's for win rates; a draw counts as 1 / n of a win for each of n seats. A rating has no "
            "interval if games do not bound it: if two agents did not both win games against each other, directly or "
            "through other agents. Games were played in batches: s/move is the time of a batch / its moves. "
            f"Written on {describe_machine()} by `{shlex.join(['ninetka', 'rate', *named, *options])}`.",
            "",
            *markdown_table(("agent", "Elo [95 %]", "wins % [95 %]", "games", "s/move"), rows),
            "",
            *(f"{line}  " for line in heading_lines(evaluation)),
            "",
        ]
    )


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.3g}"


def json_text(evaluation: Evaluation) -> str:
    """Return `evaluation_dict` as JSON."""
    # ASCII (the default of json.dumps), because paths may not be UTF-8
    return json.dumps(evaluation_dict(evaluation), indent=2, allow_nan=False) + "\n"


def games_csv(results: Results) -> str:
    """Return the games as CSV, one row per game.

    Games and lineups are numbered from 1, groups from 0. `winner` is the agent that won. In a drawn game `winner` is
    empty and `winner_seat` is "drawn".
    """
    settings, schedule = results.settings, results.schedule
    seats = [seat.lower() for seat in settings.variant.definition.seats[: settings.num_players]]
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    scores, names = [f"score_{seat}" for seat in seats], [saved_name(name) for name in settings.agents]
    rows.writerow(["game", "lineup", "group", *seats, "winner", "winner_seat", *scores, "plies", "event", "failure"])
    for game, seating in enumerate(schedule.seatings.tolist()):
        winner, event = int(results.winners[game]), results.events.get(game)
        rows.writerow(
            [
                game + 1,
                schedule.lineup_of[game] + 1,
                schedule.group_of[game],
                *(names[agent] for agent in seating),
                names[seating[winner]] if winner >= 0 else "",
                seats[winner] if winner >= 0 else "drawn",
                *results.scores[game].tolist(),
                int((results.actions[game] != NO_ACTION).sum()),
                f"{seats[event.seat]} {event.kind}" if event else "",
                results.failures.get(game, ""),
            ]
        )
    return text.getvalue()
