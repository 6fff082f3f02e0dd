"""A queue of tasks that may have to be repeated. It is independent of Ray; see `workers.py` for the workers.

A task is assigned again if its worker is lost, or if it takes so much longer than the others that its worker may hang
("backup tasks": J. Dean and S. Ghemawat, "MapReduce", 2004). The first result is used.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

TASK_TIMEOUT_S = 60.0
"""Minimum time in seconds before a running task is overdue and assigned to another worker as well."""
SLOW_FACTOR = 5.0
"""A task is overdue if it takes longer than the timeout and longer than this factor times the slowest task so far."""
MAX_LOST_WORKERS = 10
"""If this number of workers is lost while they work on the same task, the task is assumed to kill its workers."""


class ClusterError(ConnectionError):
    """Raised if the cluster is lost, or if workers fail repeatedly."""


class TaskQueue:
    """A queue of the task numbers 0 to `count` - 1. A task may be assigned several times until it is done."""

    def __init__(self, count: int, timeout_s: float = TASK_TIMEOUT_S) -> None:
        """Queue all tasks in order; `timeout_s` is the minimum time in seconds before a task is overdue."""
        self.timeout_s = timeout_s
        self.num_repeats = 0
        """Number of times that a task was assigned again."""
        self._waiting = deque(range(count))
        self._started_at: dict[int, float] = {}
        """Time at which each running task was last assigned, the oldest first."""
        self._lost = [0] * count
        self._slowest = 0.0

    def __len__(self) -> int:
        """Return the number of tasks that are not done."""
        return len(self._waiting) + len(self._started_at)

    def take(self, now: float) -> int | None:
        """Assign a waiting task, or else an overdue task; return its number, or None if there is no such task.

        `now` is the time in seconds.
        """
        task = self._waiting.popleft() if self._waiting else self._overdue(now)
        if task is not None:
            self._started_at.pop(task, None)
            self._started_at[task] = now
        return task

    def _overdue(self, now: float) -> int | None:
        oldest = next(iter(self._started_at), None)
        if oldest is None or now - self._started_at[oldest] <= max(self.timeout_s, SLOW_FACTOR * self._slowest):
            return None
        self.num_repeats += 1
        return oldest

    def mark_done(self, task: int, seconds: float) -> bool:
        """Record that a task was done in `seconds`; return whether this is its first result."""
        if task in self._waiting:  # queued again because another worker was lost on it
            self._waiting.remove(task)
            self._started_at[task] = 0.0
        self._slowest = max(self._slowest, seconds)
        return self._started_at.pop(task, None) is not None

    def mark_lost(self, task: int, running_tasks: Iterable[int | None] = (), why: object = "") -> None:
        """Record that a worker was lost on a task. Queue the task again unless it is done or in `running_tasks`.

        Args:
            task: number of the task.
            running_tasks: tasks on which other workers are still working.
            why: reason for the error message.

        Raises:
            ClusterError: if `MAX_LOST_WORKERS` workers were lost on the task.
        """
        self._lost[task] += 1
        if self._lost[task] >= MAX_LOST_WORKERS:
            raise ClusterError(
                f"task {task} was started {MAX_LOST_WORKERS} times, and its worker was lost each time: {why}"
            )
        if task in self._started_at and task not in running_tasks:
            del self._started_at[task]
            self._waiting.appendleft(task)
            self.num_repeats += 1
