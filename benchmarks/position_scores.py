"""Print how often agents of different strength err in the stored positions, with their ratings.

    python -m benchmarks.position_scores

The page `docs/positions.md` has this table. Ratings are those of `docs/ratings/ninetka.md`, of games with two
players. The last line is the rank correlation (Spearman) of the rates and the ratings.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.stats import spearmanr

from ninetka_agents.agent import make_agent
from ninetka_train.judging.ratings_page import markdown_table, read_ratings
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


def main() -> None:
    """Score all agents and print the table."""
    ratings = {agent: float(rating.split()[0]) for agent, rating in read_ratings("ninetka").items()}
    rated = {spec: ratings[name] for spec in AGENTS if (name := spec.removeprefix("net:")) in ratings}
    sets = [load_positions(players) for players in PLAYERS]
    found = [row(spec, sets, rated) for spec in AGENTS]
    columns = ("agent", "Elo", *(f"errors %, {players} players" for players in PLAYERS), "ms a position")
    print("\n".join(markdown_table(columns, [cells for cells, _ in found])))
    rates = [rate for spec, (_, rate) in zip(AGENTS, found, strict=True) if spec in rated]
    correlation = spearmanr(rates, list(rated.values())).statistic
    print(f"\nrank correlation of {len(rates)} agents: {correlation:+.2f}")


if __name__ == "__main__":
    main()
