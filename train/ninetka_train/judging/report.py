"""Write the figures of a match as terminal tables or JSON, and its games as CSV; `ratings_page.py` has the Markdown.

Start reading at `print_report`. The figures are computed in `evaluate.py`.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import json
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ninetka_env import __version__
from ninetka_env.core.options import Choice
from ninetka_env.core.registry import Variant
from ninetka_train.judging.answer import answer
from ninetka_train.judging.evaluate import AgentFigures, Evaluation, ExactFigures
from ninetka_train.judging.ratings import Interval
from ninetka_train.judging.results import NO_ACTION, Results, saved_name
from ninetka_train.judging.schedule import DEFAULT_OPENING_PLIES
from ninetka_train.judging.texts import count_text, elo_text, percent, share_text
from ninetka_train.machine import describe_machine

PLAIN_WIDTH = 120
"""Width in columns if the output is not a terminal."""
MIN_WIDTH = 80
"""Minimum width in columns: all tables fit if letters replace the names of agents."""
MAX_MEASURED_WIDTH = 100_000
"""Limit of the width when tables are measured."""
Labels = Mapping[str, str]
"""The texts that represent agents in tables, by name."""
MIN_DISTINCT_SHARE = 0.9
"""Share of distinct games below which a report warns."""


def print_report(evaluation: Evaluation, console: Console | None = None, *, ranked: bool = False) -> None:
    """Print the answer in a sentence, the tables of an evaluation, and how to repeat the match.

    Args:
        evaluation: the figures.
        console: where to print; by default stdout.
        ranked: list the agents by rating, the strongest first, instead of in the order of the match.
    """
    console = console or report_console()
    labels: Labels = {agent.name: agent.name for agent in evaluation.agents}
    tables = _tables(evaluation, labels, ranked)
    lines = [answer(evaluation)] + ([gate_summary(evaluation)] if evaluation.gate else [])
    unlimited = console.options.update(width=MAX_MEASURED_WIDTH)
    if any(console.measure(table, options=unlimited).maximum > console.width for table in tables):
        labels = _letters([agent.name for agent in _in_order(evaluation, ranked)])
        tables = _tables(evaluation, labels, ranked)
        lines += ["", *(f"{label:>2}  {name}" for name, label in labels.items())]
    console.print(Text("\n".join(lines)))
    for table in tables:
        console.print()
        console.print(table)
    console.print()
    console.print(Text("\n".join(heading_lines(evaluation))))


def _tables(evaluation: Evaluation, labels: Labels, ranked: bool) -> list[Table]:
    """Return the tables of an evaluation, in which `labels` represent the agents."""
    agents = _in_order(evaluation, ranked)
    tables = [_results_table(evaluation, agents, labels), _seats_table(evaluation, agents, labels)]
    if any(agent.times for agent in agents):
        tables.append(_times_table(evaluation, agents, labels))
    if len(evaluation.lineups) > 1:
        tables.append(_lineups_table(evaluation, labels))
    if evaluation.matches is not None:
        tables.append(_matches_table(evaluation, labels))
    if evaluation.exact is not None:
        tables.append(_exact_table(evaluation.exact, labels))
    return tables


def _in_order(evaluation: Evaluation, ranked: bool) -> list[AgentFigures]:
    return strongest_first(evaluation.agents) if ranked else list(evaluation.agents)


def strongest_first(agents: Iterable[AgentFigures]) -> list[AgentFigures]:
    """Return agents by rating, the strongest first."""
    return sorted(agents, key=lambda agent: -(agent.elo or 0))


def _letters(names: Sequence[str]) -> Labels:
    """Return a short label for each name: A, B, C, ..., or numbers if there are not enough letters."""
    enough = len(names) <= len(string.ascii_uppercase)
    return {name: string.ascii_uppercase[place] if enough else str(place + 1) for place, name in enumerate(names)}


def report_console() -> Console:
    """Return a console on stdout of at least `MIN_WIDTH` columns; without a terminal it has `PLAIN_WIDTH` columns."""
    console = Console(highlight=False)
    width = max(console.width, MIN_WIDTH) if console.is_terminal else PLAIN_WIDTH
    return Console(highlight=False, width=width)


def heading_lines(evaluation: Evaluation) -> list[str]:
    """Return lines of text that describe the match, with all options that are needed to repeat it."""
    settings = evaluation.settings
    lineups, games = len(evaluation.lineups), evaluation.games_per_lineup
    least = min(lineup.games for lineup in evaluation.lineups)
    each = count_text(games if least == games else f"{least} to {games}", "game")
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
        f"{definition.version}, package {__version__}, " + ", ".join(options),
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
        repeat = f"{count_text(repeated, 'game')} repeat{'s' * (repeated == 1)}"
        lines.append(
            f"{'warning' if few else 'note'}: {repeat} others move by move, so the intervals "
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
    caption = Text(note) if note else None
    table = Table(title=Text(title, "bold"), caption=caption, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False,
                  collapse_padding=True)  # fmt: skip
    table.title_justify = table.caption_justify = "left"
    table.add_column(first, no_wrap=True)
    for column in columns:
        table.add_column(Text(column), justify="right", no_wrap=True)
    return table


def _milliseconds_text(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _results_table(evaluation: Evaluation, agents: Sequence[AgentFigures], labels: Labels) -> Table:
    drawn = any(agent.draws for agent in agents)
    columns = ["games", "wins", *(["draws"] if drawn else []), "wins % [95 %]", "score"]
    note = "wins: games won by any copy of the agent. score: mean of its seats."
    note += " A draw counts as a share of a win for every seat." if drawn else ""
    if len({agent.even for agent in agents}) > 1:
        note += f" Expected, by the seats: {' / '.join(percent(agent.even) for agent in agents)} %."
    rated = len(agents) > 1
    if rated:
        columns.append("Elo [95 %]")
        note += f" Elo: {evaluation.anchor or 'mean'} 0; no interval if wins do not bound it or rotations are too few."
    table = new_table("Results", "agent", *columns, note=note)
    for agent in agents:
        counts = [str(agent.games), str(agent.wins), *([str(agent.draws)] if drawn else [])]
        cells = [*counts, share_text(agent.share, agent.interval), f"{agent.score:.2f}"]
        cells += [elo_text(agent.elo, agent.elo_interval)] if rated else []
        table.add_row(*map(Text, [labels[agent.name], *cells]))
    return table


def _seats_table(evaluation: Evaluation, agents: Sequence[AgentFigures], labels: Labels) -> Table:
    seats = [f"seat {seat}" for seat in range(evaluation.settings.num_players)]
    counts = [f"{min(played)} to {max(played)}" if min(played) < max(played) else str(min(played))
              for played in ([seat.games for seat in agent.seats] for agent in agents)]  # fmt: skip
    games = counts[0] if len(set(counts)) == 1 else " / ".join(counts)
    note = f"wins % [95 %] of {count_text(games, 'game')} in each seat; seat 0 moves first"
    table = new_table("Wins by seat", "agent", *seats, note=note)
    for agent in agents:
        shares = [_short_share(seat.share, seat.interval) for seat in agent.seats]
        table.add_row(Text(labels[agent.name]), *shares)
    return table


def _short_share(share: float | None, interval: Interval | None) -> str:
    """Format a share and its interval in whole percents, `-` for None: the intervals of these tables are wide."""
    if share is None or interval is None:
        return "-"
    return f"{100 * share:.0f} [{100 * interval[0]:.0f}, {100 * interval[1]:.0f}]"


def _times_table(evaluation: Evaluation, agents: Sequence[AgentFigures], labels: Labels) -> Table:
    stages = evaluation.settings.variant.definition.stages
    note = "mean (slowest call); games are played in batches: wall time of a call / number of positions"
    table = new_table("Milliseconds per move", "agent", *stages, note=note)
    for agent in agents:
        cells = {
            time.stage: f"{_milliseconds_text(time.mean_ms)} ({_milliseconds_text(time.slowest_ms)})"
            for time in agent.times
        }
        table.add_row(Text(labels[agent.name]), *(cells.get(stage, "-") for stage in stages))
    return table


def _lineups_table(evaluation: Evaluation, labels: Labels) -> Table:
    table = new_table("Wins by lineup", "agents", "games", "wins % [95 %], in the order of the agents")
    for lineup in evaluation.lineups:
        shares = [_short_share(lineup.shares[name], lineup.intervals[name]) for name in lineup.shares]
        table.add_row(Text(", ".join(labels[name] for name in lineup.agents)), str(lineup.games), " / ".join(shares))
    return table


def _matches_table(evaluation: Evaluation, labels: Labels) -> Table:
    note = "a match: two games with seats swapped; the higher sum of scores wins"
    columns = ("opponent", "matches", "won", "drawn", "lost", "won % [95 %]", "scores")
    table = new_table("Two-player tournament", "agent", *columns, note=note)
    table.columns[1].justify = "left"
    for match in evaluation.matches or []:
        counts = (match.matches, match.won, match.drawn, match.lost)
        sums = f"{match.score:g} : {match.opponent_score:g}"
        share = share_text(match.share, match.interval)
        table.add_row(Text(labels[match.agent]), Text(labels[match.opponent]), *map(str, counts), share, sums)
    return table


def _exact_table(exact: list[ExactFigures], labels: Labels) -> Table:
    columns = ("decisions", "unsolved %", "won", "blunders", "blunders % of won [95 %]")
    note = "won: decisions in won positions. blunders: decisions that gave the win away."
    table = new_table("Movement compared with perfect play", "agent", *columns, note=note)
    for agent in exact:
        share = share_text(agent.share, agent.interval)
        unsolved = percent(agent.unsolved / agent.decisions) if agent.decisions else "-"
        table.add_row(
            Text(labels[agent.agent]), str(agent.decisions), unsolved, str(agent.won), str(agent.blunders), share
        )
    return table


def evaluation_dict(evaluation: Evaluation) -> dict[str, Any]:
    """Return the figures as plain values for JSON; keys are the field names in `ninetka_train.judging.evaluate`."""
    return {
        "environment": evaluation.settings.variant.definition.version,
        "package": __version__,
        "machine": describe_machine(),
        **dataclasses.asdict(evaluation),
    }


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
