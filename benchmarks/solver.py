"""Benchmark the exact solver on two-player movement phases; every position starts with an empty transposition table.

The positions are those of `benchmarks.positions`; the solver is `ninetka_agents.ninetka.solver`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.measure import Row, pin_to_one_core, rates, write_rows
from benchmarks.positions import SOURCES, load_starts
from ninetka_agents.ninetka.solver.solver import Budget, solve, solve_batch
from ninetka_env.games.ninetka.game import Game

POSITIONS = int(os.environ.get("NINETKA_BENCH_POSITIONS", "60"))
"""Number of positions per source, at most 200."""
LIMIT_S = 30.0
TARGETS = {"UCT": (0.2, 2.0, 99.0), "net": (0.2, 2.0, 99.0)}
"""Targets of the sources without default targets: median and 90th percentile of the solving time in seconds, and the
percentage of positions solved within `LIMIT_S`."""


def solve_seconds(games: list[Game]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the solving time of each position in seconds, infinite if it was not solved within `LIMIT_S`."""
    budget = Budget(nodes=1 << 40, seconds=LIMIT_S)
    solutions = [solve(game, budget, moves=False) for game in games]
    return np.array([solution.seconds if solution.winner >= 0 else np.inf for solution in solutions])


def after_slides(game: Game, slides: int, rng: np.random.Generator) -> Game:
    """Return a copy of the game after some random slides."""
    later = game.copy()
    for _ in range(slides):
        if not later.is_over:
            later.play(int(rng.choice(later.legal_actions())))
    return later


def one_core_rows() -> Iterator[Row]:
    """Measure the positions of every source before the first slide, then all of them after four random slides."""
    rng, later = np.random.default_rng(0), []
    solve(load_starts("random", 1)[0], Budget(seconds=1))  # compiles
    for source in SOURCES:
        games = load_starts(source, POSITIONS)
        later += [after_slides(game, 4, rng) for game in games]
        taken, targets = solve_seconds(games), TARGETS.get(source, (0.1, 1.5, 99.5))
        what = f"solved from the first slide, placed by {source}"
        note = f"{len(games)} positions"
        yield Row(f"{what}, median", "s", float(np.median(taken)), target=targets[0], lower_is_better=True, note=note)
        p90 = float(np.quantile(taken, 0.9, method="higher"))
        yield Row(f"{what}, p90", "s", min(p90, LIMIT_S), target=targets[1], lower_is_better=True, note=note)
        share = 100 * float(np.isfinite(taken).mean())
        yield Row(f"{what}, within {LIMIT_S:.0f} s", "%", share, target=targets[2], note=note)
    taken = solve_seconds(later)
    p99 = min(float(np.quantile(taken, 0.99, method="higher")), LIMIT_S)
    note = f"{len(later)} positions"
    yield Row("solved after 4 random slides, p99", "s", p99, target=0.1, lower_is_better=True, note=note)


def two_core_row() -> Row:
    """Measure a batch of 200 positions after four slides, with two threads compared with one."""
    rng = np.random.default_rng(1)
    games = np.concatenate([after_slides(game, 4, rng).records for game in load_starts("random", 200)])

    def solving(threads: int) -> Callable[[], int]:
        return lambda: len(solve_batch(games, 1_000_000, threads, moves=False)[0])

    two, one = rates(solving(2), solving(1), rounds=5)
    what = "200 positions after 4 random slides, two threads"
    return Row(what, "positions/s", two, one, "one thread", note="target ratio: 1.9")


def main() -> None:
    """Measure with two threads, then on one core."""
    write_rows([two_core_row()])
    pin_to_one_core()
    write_rows(one_core_rows())


if __name__ == "__main__":
    main()
