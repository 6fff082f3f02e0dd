"""A queue of tasks that may have to be repeated. It is independent of Ray; see `workers.py` for the workers.

A task is assigned again if its worker is lost, or if it takes so much longer than the others that its worker may hang
("backup tasks": J. Dean and S. Ghemawat, "MapReduce", 2004). The first result is used.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

PATIENCE = 60.0
"""Minimum time in seconds before a running task is overdue and assigned to another worker as well."""
SLOW = 5.0
"""A task is overdue if it takes longer than `PATIENCE` and longer than this factor times the slowest task so far."""
MOST_LOST = 10
"""Maximum number of workers lost on one task; then the task is assumed to kill its workers."""


class ClusterError(ConnectionError):
    """Raised if the cluster is lost, or if workers fail repeatedly."""


class TaskQueue:
    """A queue of the task numbers 0 to `count` - 1; each is assigned until it is done."""

    def __init__(self, count: int, patience: float = PATIENCE) -> None:
        """Queue all tasks in order; `patience` is the minimum time in seconds before a task is overdue."""
        self.patience = patience
        self.again = 0
        """Number of times that a task was assigned again."""
        self._waiting = deque(range(count))
        self._since: dict[int, float] = {}
        """Time at which each running task was last assigned, the oldest first."""
        self._lost = [0] * count
        self._slowest = 0.0

    def __len__(self) -> int:
        """Return the number of tasks that are not done."""
        return len(self._waiting) + len(self._since)

    def take(self, now: float) -> int | None:
        """Assign a task at time `now` (seconds): a waiting task, else an overdue one, else None."""
        task = self._waiting.popleft() if self._waiting else self._overdue(now)
        if task is not None:
            self._since.pop(task, None)
            self._since[task] = now
        return task

    def _overdue(self, now: float) -> int | None:
        oldest = next(iter(self._since), None)
        if oldest is None or now - self._since[oldest] <= max(self.patience, SLOW * self._slowest):
            return None
        self.again += 1
        return oldest

    def done(self, task: int, seconds: float) -> bool:
        """Record that a task was done in `seconds`; return whether this is its first result."""
        if task in self._waiting:  # queued again because another worker was lost on it
            self._waiting.remove(task)
            self._since[task] = 0.0
        self._slowest = max(self._slowest, seconds)
        return self._since.pop(task, None) is not None

    def lost(self, task: int, still: Iterable[int | None] = (), why: object = "") -> None:
        """Record that a worker was lost on a task. Queue the task again unless it is done or in `still`.

        Args:
            task: number of the task.
            still: tasks on which other workers are still working.
            why: reason for the error message.

        Raises:
            ClusterError: if `MOST_LOST` workers were lost on the task.
        """
        self._lost[task] += 1
        if self._lost[task] >= MOST_LOST:
            raise ClusterError(f"task {task} was started {MOST_LOST} times, and its worker was lost each time: {why}")
        if task in self._since and task not in still:
            del self._since[task]
            self._waiting.appendleft(task)
            self.again += 1
