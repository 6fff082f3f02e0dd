"""Simulate rounds of self-play on clusters of any size from costs measured by `benchmarks.cluster`.

A round is simulated event by event: the driver assigns tasks one at a time, workers play each task for as long as a
measured task took, and results return over one network card. Then the learner trains, unless rounds overlap.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, replace
from typing import Any

BANDWIDTH = 1.25e9
"""Bytes per second of the driver's network card in each direction: 10 Gbit/s."""
NODE_CORES = 32
"""Number of cores of a node; a node fetches new weights once."""
CORES = (1, 2, 4, 10, 32, 64, 128, 256, 512, 1024, 2048, 4096, 10_000)
LOCAL_BANDWIDTH = 1e10
"""Bytes per second within a machine."""
MAX_TASKS = 200_000
MIN_EFFICIENCY = 0.9
TOLERANCE = 0.15


@dataclass(frozen=True)
class Costs:
    """Costs of a round in seconds and bytes. The round has `tasks` tasks, with the times `task_seconds` in turn."""

    task_seconds: tuple[float, ...]
    tasks: int
    task_bytes: float
    weight_bytes: float
    call_seconds: float
    """Time of the driver for one task."""
    unpack_seconds: float
    join_seconds: float
    learn_seconds: float
    overlap: bool = False
    bandwidth: float = BANDWIDTH
    slowdown: float = 1.0
    """Factor by which a task takes longer because workers share cores, memory or caches."""


def make_costs(tasks: dict[str, Any], call_seconds: float, games: float, learn_seconds: float = 0.0) -> Costs:
    """Return the costs of a round of `games` games in tasks like the measured ones."""
    seconds = tuple(tasks["task_seconds"])
    names = ("task_bytes", "weight_bytes", "unpack_seconds", "join_seconds")
    measured = {name: tasks[name] for name in names}
    count = max(1, round(games / tasks["task_games"]))
    return Costs(seconds, count, call_seconds=call_seconds, learn_seconds=learn_seconds, **measured)


def play_seconds(costs: Costs, workers: int, nodes: int) -> float:
    """Return the seconds to play the games of a round, from sending the weights to joining the samples."""
    driver = nodes * costs.weight_bytes / costs.bandwidth
    free = [driver + costs.unpack_seconds] * min(workers, costs.tasks)
    heapq.heapify(free)
    durations = itertools.cycle(costs.task_seconds)
    ends = []
    for _ in range(costs.tasks):  # the driver assigns the next task to the first free worker
        driver = max(driver, heapq.heappop(free)) + costs.call_seconds
        end = driver + next(durations) * costs.slowdown
        heapq.heappush(free, end)
        ends.append(end)
    received = 0.0
    for end in sorted(ends):
        received = max(received, end) + costs.task_bytes / costs.bandwidth
    return received + costs.join_seconds * costs.tasks / len(costs.task_seconds)


def round_seconds(costs: Costs, workers: int) -> float:
    """Return the seconds of a round, including learning."""
    playing = play_seconds(costs, workers, -(-workers // NODE_CORES))
    return max(playing, costs.learn_seconds) if costs.overlap else playing + costs.learn_seconds


def efficiency(costs: Costs, workers: int) -> float:
    """Return the fraction of the workers' time that is spent playing."""
    mean = sum(costs.task_seconds) / len(costs.task_seconds)
    return mean * costs.tasks / (workers * round_seconds(costs, workers))


def max_efficient_cores(costs: Costs) -> int:
    """Return the number of cores up to which the efficiency is at least `MIN_EFFICIENCY`; 0 if one core is below it."""
    efficient = 0
    for workers in range(1, CORES[-1] + 1):
        if efficiency(costs, workers) < MIN_EFFICIENCY:
            break
        efficient = workers
    return efficient


def min_task_factor(costs: Costs, workers: int) -> int | None:
    """Return a factor for the number of tasks: the smallest power of two that gives the efficiency `MIN_EFFICIENCY`.

    Return None if about `MAX_TASKS` tasks are not enough.
    """
    for factor in (2**power for power in range(21)):
        if efficiency(replace(costs, tasks=factor * costs.tasks), workers) >= MIN_EFFICIENCY:
            return factor
        if factor * costs.tasks > MAX_TASKS:
            break
    return None


def busy_slowdown(measured: dict[str, Any]) -> float:
    """Return the factor by which tasks take longer if all cores of the measured machine are busy, at least 1.

    The same tasks were measured one after another, and on one thread per core in one process.
    """
    alone = sum(measured["checked"]["task_seconds"])
    return max(1.0, float(measured["threads_seconds"]) * measured["cores"] / alone)


def simulated_seconds(measured: dict[str, Any], measured_round: dict[str, Any]) -> float:
    """Return the simulated seconds of a measured round; if there are more workers than cores, they share the cores."""
    tasks = measured["checked"]
    games = len(tasks["task_seconds"]) * tasks["task_games"]
    costs = make_costs(tasks, measured["call_seconds, 1 worker"], games)
    sharing, pace = (
        measured_round["workers"] / measured["cores"],
        measured_round["alone_seconds"] / sum(tasks["task_seconds"]),
    )
    slowdown = pace * (sharing * busy_slowdown(measured) if sharing >= 1 else 1.0)
    local = replace(costs, slowdown=slowdown, bandwidth=LOCAL_BANDWIDTH)
    return play_seconds(local, measured_round["workers"], measured_round["nodes"])


def profile_costs(
    profile: dict[str, Any], call_seconds: float, size: str = "usual", learner_speedup: float = 1.0
) -> Costs:
    """Return the costs of a profile's round.

    Args:
        profile: measured by `benchmarks.cluster`.
        call_seconds: time of the driver for one task.
        size: size of the tasks, "usual" or "small".
        learner_speedup: speed of the learner, as a multiple of one core.
    """
    learn_seconds = profile["steps"] * profile["step_seconds"] / learner_speedup
    return make_costs(profile[size], call_seconds, profile["games"], learn_seconds)


def limits(costs: Costs) -> dict[str, float]:
    """Return the number of cores at which each resource becomes the limit, by name of the resource.

    On this number of cores, playing the games of a round takes as long as the resource alone needs for the round.
    """
    task = sum(costs.task_seconds) / len(costs.task_seconds)
    playing = task * costs.tasks
    return {
        "the learner": playing / costs.learn_seconds,
        "tasks of the round": costs.tasks,
        "tasks handed out": task / costs.call_seconds,
        "samples on their way": task * costs.bandwidth / costs.task_bytes,
        "weights on their way": (playing * NODE_CORES * costs.bandwidth / costs.weight_bytes) ** 0.5,
    }
