"""How self-play on a cluster scales, by simulation: measured costs in, rounds on 1 to 10,000 cores out.

    python -m benchmarks.cluster_scale cluster.json docs/cluster

The first file is what `python -m benchmarks.cluster` wrote. A round is simulated event by event: the driver hands tasks
out one after the other, workers play them for as long as measured tasks took, results come back over one network card.
Then the learner learns, unless rounds overlap. First the simulation must foretell the rounds that were measured.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

BANDWIDTH = 1.25e9
"""Bytes per second into and out of the driver: 10 Gbit/s."""
NODE_CORES = 32
"""Cores of a node, which fetches new weights once."""
CORES = (1, 2, 4, 10, 32, 64, 128, 256, 512, 1024, 2048, 4096, 10_000)
HELD = 0.9
WITHIN = 0.15


@dataclass(frozen=True)
class Costs:
    """Seconds and bytes of a round; tasks are those that were measured, again and again."""

    task_seconds: tuple[float, ...]
    tasks: int
    task_bytes: float
    weight_bytes: float
    call_seconds: float
    """The driver's for one task."""
    unpack_seconds: float
    join_seconds: float
    learn_seconds: float
    overlap: bool = False
    bandwidth: float = BANDWIDTH
    slowdown: float = 1.0
    """Where workers share cores."""


def read(path: Path) -> tuple[Costs, dict[str, Any]]:
    """Return the costs that a file tells, and all that it tells."""
    told = json.loads(path.read_text(encoding="utf-8"))
    seconds = tuple(told["task_seconds"])
    names = ("task_bytes", "weight_bytes", "unpack_seconds", "join_seconds", "learn_seconds")
    costs = Costs(seconds, len(seconds), call_seconds=told["call_seconds, 1 worker"], **{n: told[n] for n in names})
    return costs, told


def play_seconds(costs: Costs, workers: int, nodes: int) -> float:
    """Return the seconds of a round's games on so many workers."""
    driver = nodes * costs.weight_bytes / costs.bandwidth
    free = [driver + costs.unpack_seconds] * min(workers, costs.tasks)
    heapq.heapify(free)
    durations = itertools.cycle(costs.task_seconds)
    ends = []
    for _ in range(costs.tasks):  # whoever is free first is handed the next task, as soon as the driver gets to it
        driver = max(driver, heapq.heappop(free)) + costs.call_seconds
        end = driver + next(durations) * costs.slowdown
        heapq.heappush(free, end)
        ends.append(end)
    received = 0.0
    for end in sorted(ends):
        received = max(received, end) + costs.task_bytes / costs.bandwidth
    return received + costs.join_seconds * costs.tasks / len(costs.task_seconds)


def round_seconds(costs: Costs, workers: int) -> float:
    """Return the seconds of a round, learning included."""
    playing = play_seconds(costs, workers, -(-workers // NODE_CORES))
    return max(playing, costs.learn_seconds) if costs.overlap else playing + costs.learn_seconds


def efficiency(costs: Costs, workers: int) -> float:
    """Return how much of the workers' time is spent playing."""
    mean = sum(costs.task_seconds) / len(costs.task_seconds)
    return mean * costs.tasks / (workers * round_seconds(costs, workers))


def held_up_to(costs: Costs) -> int:
    """Return the most cores up to which the efficiency holds; 0 if it never does."""
    held = 0
    for workers in CORES:
        if efficiency(costs, workers) < HELD:
            break
        held = workers
    return held


def check(costs: Costs, told: dict[str, Any]) -> bool:
    """Compare with the rounds that were measured; tell whether all are foretold well enough."""
    right = True
    for name, one in told["rounds"].items():
        sharing = max(1.0, one["workers"] / told["cores"])
        local = replace(costs, slowdown=sharing, bandwidth=1e10, call_seconds=told["call_seconds, 1 worker"])
        foretold = play_seconds(local, one["workers"], one["nodes"])
        off = foretold / one["seconds"] - 1
        right &= abs(off) <= WITHIN
        print(f"{name}: measured {one['seconds']:.2f} s, simulated {foretold:.2f} s ({off:+.0%})")
    return right


def settings(costs: Costs) -> dict[str, Costs]:
    """Return what to compare: as measured, more games a round, rounds that overlap, a learner ten times as fast."""
    many = replace(costs, tasks=64 * costs.tasks)
    overlap = replace(many, overlap=True)
    return {
        "as measured": costs,
        "64 times the games": many,
        "and overlap": overlap,
        "and a learner ten times as fast": replace(overlap, learn_seconds=costs.learn_seconds / 10),
    }


def draw(curves: dict[str, Costs], path: Path) -> None:
    """Draw the efficiencies."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, costs in curves.items():
        axes.plot(CORES, [efficiency(costs, workers) for workers in CORES], "o-", markersize=3.5, label=name)
    axes.axhline(HELD, color="#667085", linewidth=1, linestyle=(0, (4, 3)))
    axes.set(xscale="log", ylim=(0, 1.05), xlabel="cores", ylabel="share of the cores' time spent playing")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Check the simulation, then print and draw what it says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measured", type=Path)
    parser.add_argument("out", type=Path, help="without suffix")
    arguments = parser.parse_args()
    costs, told = read(arguments.measured)
    right = check(costs, told)
    curves = settings(costs)
    for name, one in curves.items():
        figures = ", ".join(f"{workers}: {efficiency(one, workers):.0%}" for workers in CORES)
        print(f"{name}: {HELD:.0%} up to {held_up_to(one)} cores ({figures})")
    draw(curves, arguments.out.with_suffix(".png"))
    if not right:
        raise SystemExit(f"the simulation is off by more than {WITHIN:.0%}")


if __name__ == "__main__":
    main()
