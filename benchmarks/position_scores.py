"""Print how often agents of different strength err in the stored positions, with their ratings.

    python -m benchmarks.position_scores

The page `docs/positions.md` has this table. Ratings are those of `docs/ratings/ninetka.md`, of games with two
players. The last line is the rank correlation (Spearman) of the rates and the ratings.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np

from ninetka_agents.agent import make_agent
from ninetka_train.judging.ratings_page import markdown_table
from ninetka_train.judging.texts import share_text
from ninetka_train.ninetka.exact_positions import PLAYERS, PositionSet, load_positions
from ninetka_train.ninetka.position_score import score_positions

AGENTS = (
    "random",
    "maxn",
    "paranoid:nodes=2000",
    "brs:nodes=2000",
    "mcts:simulations=50",
    "mcts:simulations=200",
    "mcts:simulations=2000",
    "net:gen-1",
    "net:gen-4",
    "net:gen-7",
    "net:placements",
    "net:simulations=64",
)
RATINGS = Path(__file__).resolve().parent.parent / "docs" / "ratings" / "ninetka.md"


def read_ratings() -> dict[str, float]:
    """Return the ratings of the page `RATINGS` by spec."""
    return {spec: float(elo) for spec, elo in re.findall(r"^\| `(.+?)` \| ([+-]\d+)", RATINGS.read_text("utf-8"), re.M)}


def row(spec: str, sets: list[PositionSet], ratings: dict[str, float]) -> tuple[tuple[str, ...], float]:
    """Return the row of a table: agent, rating, rate for each set, milliseconds per move; and the rate of set 0."""
    agent = make_agent(spec)
    for positions in sets:
        agent.act(positions.states[:2].copy(), np.random.default_rng(0))  # compile
    start = time.perf_counter()
    scores = [score_positions(agent, positions) for positions in sets]
    seconds = (time.perf_counter() - start) / sum(map(len, sets))
    rating = f"{ratings[spec]:+.0f}" if spec in ratings else "-"
    rates = [share_text(score.rate, score.interval) for score in scores]
    return (spec, rating, *rates, f"{1000 * seconds:.2f}"), scores[0].rate


def rank_correlation(first: list[float], second: list[float]) -> float:
    """Return Spearman's rank correlation of two lists without equal values."""
    ranks = np.array([np.argsort(np.argsort(values)) for values in (first, second)], np.float64)
    ranks -= ranks.mean(axis=1, keepdims=True)
    return float((ranks[0] @ ranks[1]) / np.sqrt((ranks[0] @ ranks[0]) * (ranks[1] @ ranks[1])))


def main() -> None:
    """Score all agents and print the table."""
    rated = read_ratings()
    sets = [load_positions(players) for players in PLAYERS]
    found = [row(spec, sets, rated) for spec in AGENTS]
    columns = ("agent", "Elo", *(f"errors %, {players} players" for players in PLAYERS), "ms a position")
    print("\n".join(markdown_table(columns, [cells for cells, _ in found])))
    both = [(rate, rated[spec]) for spec, (_, rate) in zip(AGENTS, found, strict=True) if spec in rated]
    rates, elos = zip(*both, strict=True)
    print(f"\nrank correlation of {len(both)} agents: {rank_correlation(list(rates), list(elos)):+.2f}")


if __name__ == "__main__":
    main()
