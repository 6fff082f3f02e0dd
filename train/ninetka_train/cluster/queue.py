"""Which task is handed out next, and which are done. Knows nothing of who works on them.

A task is handed out again if its worker is lost, or if it takes so much longer than the others that its worker may hang
("backup tasks": J. Dean and S. Ghemawat, "MapReduce", 2004). The first result counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

PATIENCE = 60.0
"""Seconds that any task may take before another worker tries it, too."""
SLOW = 5.0
"""Times the slowest task so far: a task that takes longer than this and `PATIENCE` is overdue."""
MOST_LOST = 10
"""A task whose workers were lost so often is what they die of."""


class ClusterError(ConnectionError):
    """The cluster, or all that was tried on it, fails."""


class TaskQueue:
    """The numbers of tasks, 0 to `count` - 1, each handed out until somebody has done it."""

    def __init__(self, count: int, patience: float = PATIENCE) -> None:
        """Put all of them in order."""
        self.patience = patience
        self.again = 0
        """How often a task was handed out again."""
        self._waiting = deque(range(count))
        self._since: dict[int, float] = {}
        """When each task that somebody works on was last handed out, the oldest first."""
        self._lost = [0] * count
        self._slowest = 0.0

    def __len__(self) -> int:
        """Return how many are not done."""
        return len(self._waiting) + len(self._since)

    def take(self, now: float) -> int | None:
        """Return a task to work on from `now` (seconds) on: a new one, else one that is overdue; None for neither."""
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
        """Note that a task was done in so many seconds; tell whether it is the first time."""
        if task in self._waiting:  # lost by another worker meanwhile
            self._waiting.remove(task)
            self._since[task] = 0.0
        self._slowest = max(self._slowest, seconds)
        return self._since.pop(task, None) is not None

    def lost(self, task: int, still: Iterable[int | None] = (), why: object = "") -> None:
        """Note that a worker was lost over a task, which waits anew unless it is done or others are `still` on it.

        Raises:
            ClusterError: if that has happened to it too often.
        """
        self._lost[task] += 1
        if self._lost[task] >= MOST_LOST:
            raise ClusterError(f"task {task} was begun {MOST_LOST} times, and its worker was lost each time: {why}")
        if task in self._since and task not in still:
            del self._since[task]
            self._waiting.appendleft(task)
            self.again += 1
