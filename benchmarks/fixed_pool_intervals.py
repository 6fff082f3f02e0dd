"""Measure how often the 95 % intervals of the benchmark's ratings cover the true rating, in simulated games.

    python -m benchmarks.fixed_pool_intervals [--cards 2000] [--dependent]

An agent with a known rating plays the games of a tier of the benchmark; its wins are drawn from the model of
`ninetka_train.judging.fixed_pool`. True ratings lie evenly between those of the weakest and the strongest opponent.
Games are independent; with `--dependent`, the first game after an opening decides the others after a quarter of the
openings, against the same opponent.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from itertools import product

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from benchmarks.elo_intervals import DEPENDENT_SHARE
from ninetka_train.judging.fixed_pool import rate_against
from ninetka_train.judging.ratings import ELO_PER_NAT
from ninetka_train.judging.ratings_page import markdown_table
from ninetka_train.ninetka.benchmark.protocol import TIERS, Protocol, load_protocol
from ninetka_train.ninetka.exact_positions import PLAYERS

RATINGS = 9
"""Number of true ratings."""


def draw_wins(
    protocol: Protocol, rounds: Mapping[str, int], elo: float, num_players: int, dependent: bool, rng: Generator
) -> tuple[list[float], list[npt.NDArray[np.int64]]]:
    """Return the ratings of the opponents, and the number of games after each opening that an agent wins."""
    ratings, wins = protocol.ratings[str(num_players)], []
    for spec, count in rounds.items():
        openings = count * protocol.openings_per_round[str(num_players)]
        chance = 1 / (1 + (num_players - 1) * np.exp((ratings[spec] - elo) / ELO_PER_NAT))
        won = rng.random((openings, num_players)) < chance
        if dependent:
            again = rng.random(openings) < DEPENDENT_SHARE
            won[again] = won[again, :1]
        wins.append(won.sum(1))
    return [ratings[spec] for spec in rounds], wins


def table_row(protocol: Protocol, num_players: int, tier: str, cards: int, dependent: bool) -> list[str]:
    """Simulate cards at each true rating; return a row of the table."""
    known = protocol.ratings[str(num_players)].values()
    rounds = Counter(spec for players, spec, _ in protocol.steps_of(tier) if players == num_players)
    coverages, halves = [], []
    for number, elo in enumerate(np.linspace(min(known), max(known), RATINGS)):
        rng = np.random.default_rng([num_players, number])
        found = [
            rate_against(*draw_wins(protocol, rounds, elo, num_players, dependent, rng), num_players)
            for _ in range(cards)
        ]
        covers = [(one.low is None or one.low <= elo) and (one.high is None or elo <= one.high) for one in found]
        coverages.append(float(np.mean(covers)))
        widths = [(one.high - one.low) / 2 for one in found if one.low is not None and one.high is not None]
        halves.append(float(np.median(widths)))
    return [
        str(num_players),
        tier,
        f"{100 * np.mean(coverages):.1f}",
        f"{100 * min(coverages):.1f}",
        f"{100 * max(coverages):.1f}",
        f"{min(halves):.0f} to {max(halves):.0f}",
    ]


def main() -> None:
    """Simulate and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cards", type=int, default=2000, help="simulated cards for each true rating")
    parser.add_argument("--dependent", action="store_true")
    arguments = parser.parse_args()
    protocol = load_protocol()
    columns = ("players", "tier", "covered %", "least", "most", "half width, Elo")
    rows = [
        table_row(protocol, players, tier, arguments.cards, arguments.dependent)
        for players, tier in product(PLAYERS, TIERS)
    ]
    print("\n".join(markdown_table(columns, rows)))


if __name__ == "__main__":
    main()
