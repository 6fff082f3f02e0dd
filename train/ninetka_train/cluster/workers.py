"""Workers on a Ray cluster, one per core, and the loop that keeps them busy.

Ray places, starts and buries the workers' processes, and carries what they need and find. What is decided here is who
gets which task: a worker that is lost, or takes far too long, has its task handed out again, and nodes that join late
are given workers as soon as Ray knows them.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from ninetka_train.cluster.head import Head
from ninetka_train.cluster.queue import MOST_LOST, PATIENCE, ClusterError, TaskQueue

Recipe = tuple[Callable[..., Callable[[Any], Any]], tuple[Any, ...]]
"""A function and its arguments: what it returns does the tasks. It is called once by each worker."""

BEAT = 1.0
"""Seconds between two looks at which nodes there are."""


def told(error: RayError) -> str:
    """Return the first line of what Ray tells, which may be a page."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


class Worker:
    """One process of the cluster. It keeps what was made by the newest recipe, and all code that was compiled."""

    def __init__(self) -> None:
        """Leave the node's other cores to their own workers; this comes before numba is loaded."""
        os.environ["NUMBA_NUM_THREADS"] = "1"
        self._recipe: Any = None
        self._do: Callable[[Any], Any] | None = None

    def introduce(self) -> tuple[dict[str, str], str]:
        """Return what `ninetka_train.cluster.identity` tells, and who this is."""
        from ninetka_train.cluster.identity import identity

        return identity(), f"worker {os.getpid()} on {socket.gethostname()}"

    def run(self, recipe: list[Any], task: Any) -> tuple[Any, float]:
        """Do a task; return the result and the seconds that it took.

        Args:
            recipe: a list with the reference to a packed `Recipe`; fetched if it is another one than before.
            task: what the function that it makes is given.
        """
        from ninetka_train.cluster.packing import unpack

        start = time.perf_counter()
        if self._do is None or recipe[0] != self._recipe:
            make, arguments = unpack(ray.get(recipe[0]))
            self._do, self._recipe = make(*arguments), recipe[0]
        return self._do(task), time.perf_counter() - start


@dataclass(frozen=True)
class _Call:
    """A worker at work."""

    worker: Any
    task: int | None
    """None while it introduces itself."""


class Workers:
    """All workers that the cluster has room for."""

    def __init__(self, warn: Callable[[str], None], patience: float = PATIENCE) -> None:
        """Start none yet.

        Args:
            warn: told what users should know.
            patience: see `ninetka_train.cluster.queue`.
        """
        self.figures: dict[str, float] = {}
        """About the newest call of `map`: `workers` at its end; `idle`, the share of their time that they did nothing;
        `again`, how often a task was handed out again."""
        self._warn, self._patience = warn, patience
        self._head, self._turn = Head(), threading.Lock()
        self._new_worker = ray.remote(num_cpus=1)(Worker)
        self.names: dict[Any, str] = {}
        """Who the workers are that have introduced themselves."""
        self._idle: list[Any] = []
        self._calls: dict[Any, _Call] = {}
        self._failed_starts = 0
        self._looked = -BEAT
        self._warned: set[str] = set()

    def __len__(self) -> int:
        """Return how many there are, those on their way not counted."""
        return len(self.names)

    def map(self, recipe: Recipe, tasks: Sequence[Any]) -> Iterator[Any]:
        """Do tasks by what a recipe makes; yield the results in the order of the tasks.

        Raises:
            ValueError: if a worker has other versions or sources.
            ClusterError: if workers cannot start, or a task kills one after the other.
            Exception: what a task raises.
        """
        with self._turn:  # a round may be played while the network before it is measured
            yield from self._map(recipe, tasks)

    def _map(self, recipe: Recipe, tasks: Sequence[Any]) -> Iterator[Any]:
        from ninetka_train.cluster.packing import pack

        start, busy = time.perf_counter(), 0.0
        queue, shared = TaskQueue(len(tasks), self._patience), [ray.put(pack(recipe))]
        results: dict[int, Any] = {}
        following = 0
        try:
            while following < len(tasks):
                self._hire()
                self._hand_out(queue, shared, tasks)
                for task, result, seconds in self._collect(queue):
                    results[task], busy = result, busy + seconds
                while following in results:
                    yield results.pop(following)
                    following += 1
        finally:
            self._dismiss([ref for ref, call in self._calls.items() if call.task is not None])
            wall = time.perf_counter() - start
            idle = max(0.0, 1 - busy / (wall * max(1, len(self))))
            self.figures = {"workers": len(self), "idle": idle, "again": queue.again}

    def _hire(self) -> None:
        """Have as many workers as there are cores, and see who they are."""
        if time.perf_counter() - self._looked < BEAT:
            return
        self._looked = time.perf_counter()
        if not self._head.answers():
            return
        for _ in range(int(ray.cluster_resources().get("CPU", 0)) - len(self._idle) - len(self._calls)):
            worker = self._new_worker.remote()
            self._calls[worker.introduce.remote()] = _Call(worker, None)

    def _hand_out(self, queue: TaskQueue, shared: list[Any], tasks: Sequence[Any]) -> None:
        while self._idle and (task := queue.take(time.perf_counter())) is not None:
            worker = self._idle.pop()
            self._calls[worker.run.remote(shared, tasks[task])] = _Call(worker, task)

    def _collect(self, queue: TaskQueue) -> Iterator[tuple[int, Any, float]]:
        """Wait a moment for calls to end; yield the tasks that were done first there, with result and seconds."""
        if not self._calls:  # no node at all
            time.sleep(BEAT)
            return
        ended, _ = ray.wait(list(self._calls), timeout=BEAT)
        for ref in ended:
            call = self._calls.pop(ref, None)
            if call is None:  # its task was done by another one just now
                continue
            try:
                answer = ray.get(ref)
            except RayError as error:
                self._lose(call, queue, error)
                continue
            self._idle.append(call.worker)
            if call.task is None:
                self._greet(call.worker, *answer)
            elif queue.done(call.task, answer[1]):
                self._dismiss([other for other, busy in self._calls.items() if busy.task == call.task])
                yield call.task, *answer

    def _greet(self, worker: Any, theirs: dict[str, str], name: str) -> None:
        """Check who a worker is."""
        from ninetka_train.cluster.identity import check_same, identity

        self._failed_starts, self.names[worker] = 0, name
        warning = check_same(identity(), theirs, name)
        if warning and theirs["processor"] not in self._warned:
            self._warned.add(theirs["processor"])
            self._warn(warning)

    def _lose(self, call: _Call, queue: TaskQueue, error: RayError) -> None:
        """Do without a worker; raise what the task itself has raised, or why no worker starts."""
        if isinstance(error, RayTaskError) and not isinstance(error.cause, RayError):
            self._idle.append(call.worker)
            raise error.cause from None
        self._failed_starts += call.worker not in self.names
        self._warn(f"{self._end(call.worker)} is lost: {told(error)}")
        if call.task is not None:
            queue.lost(call.task, [busy.task for busy in self._calls.values()], told(error))
            self._doubt_idle()
        elif self._failed_starts >= MOST_LOST and not self.names:
            raise ClusterError(f"workers do not start: {told(error)}")

    def _doubt_idle(self) -> None:
        """Have idle workers introduce themselves anew, since all of a node are lost together."""
        self._calls |= {worker.introduce.remote(): _Call(worker, None) for worker in self._idle}
        self._idle.clear()

    def _dismiss(self, refs: list[Any]) -> None:
        """End workers over what nobody waits for any more: they may hang. New ones take their place."""
        for ref in refs:
            self._end(self._calls.pop(ref).worker)

    def _end(self, worker: Any) -> str:
        """End a worker, if it has not ended, and make room for another one; return its name."""
        if ray.is_initialized() and self._head.answers():  # else Ray would start a cluster to kill it in, or wait
            ray.kill(worker)
        self._looked = -BEAT
        return self.names.pop(worker, "a new worker")
