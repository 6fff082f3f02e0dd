"""Measure how often 95 % intervals of Elo ratings cover the true rating, in simulated matches.

    python -m benchmarks.elo_intervals [--matches 1000] [--groups 10 20 50] [--dependent]

Agents with known ratings play matches whose winners are drawn from the model of `ninetka_train.judging.ratings`.
Games have 2, 3 or 4 players. A match has two agents, as many agents as seats, or one agent more than seats. The first
agent is 0 to 400 Elo above the last, and the others are spaced evenly between them. A row of the table covers all
intervals shown in these matches, both of ratings relative to the mean and of ratings relative to the last agent. The
column "least covered" has the lowest coverage of one agent's rating in one kind of match.

Games are independent; with `--dependent`, the first game of a group decides all others in a quarter of the groups.
"""

from __future__ import annotations

import argparse
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.registry import load_variant
from ninetka_train.judging.ratings import ELO_PER_NAT, elo_ratings
from ninetka_train.judging.ratings_page import markdown_table
from ninetka_train.judging.results import NO_ACTION, MatchSettings, MoveTimes, Results
from ninetka_train.judging.schedule import Schedule, make_schedule

PLAYERS = (2, 3, 4)
DIFFERENCES = (0, 100, 200, 400)
"""Elo differences between the first and the last agent."""
DEPENDENT_SHARE = 0.25
"""Share of the groups whose first game decides the others."""


class MatchKind(NamedTuple):
    """A kind of simulated match: numbers of players, agents and rotation groups per lineup, and the Elo difference."""

    players: int
    agents: int
    groups: int
    difference: int


def main() -> None:
    """Simulate the matches and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matches", type=int, default=1000, help="simulated matches of each kind")
    parser.add_argument("--groups", type=int, nargs="+", default=[10, 20, 50], help="rotation groups per lineup")
    parser.add_argument("--dependent", action="store_true", help="games of a group depend on each other")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    columns = ("match", "groups", "intervals shown", "covered %", "least covered %")
    rows = [
        table_row(players, groups, chosen.matches, chosen.seed, chosen.dependent)
        for players, groups in product(PLAYERS, chosen.groups)
    ]
    print("\n".join(markdown_table(columns, rows)))


def table_row(players: int, groups: int, matches: int, seed: int, dependent: bool) -> list[str]:
    """Simulate all kinds of matches with these numbers of players and rotation groups; return a row of the table."""
    shown, coverages = 0, []
    for agents, difference in product(sorted({2, players, players + 1}), DIFFERENCES):
        kind = MatchKind(players, agents, groups, difference)
        counts = np.sum(
            [interval_coverage(kind, [seed, *kind, number], dependent) for number in range(matches)], axis=0
        )
        shown += int(counts[0].sum())
        often_shown = counts[0] >= matches / 4  # the coverage of rarely shown intervals is too noisy
        coverages += (counts[1][often_shown] / counts[0][often_shown]).tolist()
    return [
        f"{players} players",
        str(groups),
        str(shown),
        f"{100 * np.mean(coverages):.1f}",
        f"{100 * min(coverages):.1f}",
    ]


def interval_coverage(kind: MatchKind, seed: list[int], dependent: bool) -> npt.NDArray[np.int64]:
    """Simulate one match; return which intervals are shown and which intervals cover the true rating.

    Returns:
        (2, 2, agents) int64 of 0 and 1. First index: whether the interval is shown, whether it covers the true rating.
        Second index: ratings relative to the mean, ratings relative to the last agent.
    """
    truth = np.linspace(kind.difference, 0, kind.agents)
    results = simulate_match(kind, truth, np.random.default_rng(seed), dependent)
    found = []
    for anchor in (None, kind.agents - 1):
        zero = truth.mean() if anchor is None else truth[anchor]
        intervals = [interval for _, interval in elo_ratings(results, anchor)]
        covers = [
            one is not None and one[0] <= value - zero <= one[1] for one, value in zip(intervals, truth, strict=True)
        ]
        found.append([[one is not None for one in intervals], covers])
    return np.array(found).transpose(1, 0, 2).astype(np.int64)


def simulate_match(
    kind: MatchKind, elos: npt.NDArray[np.float64], rng: np.random.Generator, dependent: bool
) -> Results:
    """Return the results of a simulated match of agents with ratings `elos`; its games have no moves."""
    schedule = make_schedule(kind.agents, kind.players, kind.groups * group_games(kind))
    strength = np.exp(elos / ELO_PER_NAT)[schedule.seatings]
    win_probabilities = strength / strength.sum(axis=1, keepdims=True)
    winners = (rng.random((len(win_probabilities), 1)) > win_probabilities.cumsum(axis=1)[:, :-1]).sum(axis=1)
    if dependent:
        winners = with_repeats(schedule, winners, rng)
    settings = MatchSettings(tuple(map(str, range(kind.agents))), "ninetka", kind.players, len(winners), 0, 1)
    games, groups, variant = len(winners), int(schedule.group_of[-1]) + 1, load_variant("ninetka")
    return Results(
        settings,
        schedule,
        winners,
        np.zeros((games, kind.players)),
        np.zeros(groups, variant.dtype),
        np.full((games, 1), NO_ACTION, np.int16),
        MoveTimes.zeros(kind.agents, 1),
    )


def group_games(kind: MatchKind) -> int:
    """Return the number of games in a rotation group."""
    return make_schedule(kind.agents, kind.players, 1).rotation


def with_repeats(schedule: Schedule, winners: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return a copy of `winners` with changes: in some groups, the winner of the first game wins all games.

    The share of these groups is `DEPENDENT_SHARE`. An agent that has several seats wins with its first seat.
    """
    firsts = schedule.first_games
    won = schedule.seatings[firsts, winners[firsts]][schedule.group_of]
    again = (schedule.seatings == won[:, None]).argmax(axis=1)
    return np.where((rng.random(len(firsts)) < DEPENDENT_SHARE)[schedule.group_of], again, winners)


if __name__ == "__main__":
    main()
