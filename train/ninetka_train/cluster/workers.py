"""Workers on a Ray cluster, one per core, and the loop that assigns tasks to them.

Ray chooses their nodes, starts and ends their processes, and transfers arguments and results. The task of a worker that
is lost or takes too long is assigned again (see `queue.py`). Nodes that join later get workers as soon as Ray reports
them.

A worker sets the number of numba threads before numba is imported. Modules that import numba are therefore imported
inside functions.
"""

from __future__ import annotations

import functools
import io
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import ray
from ray import cloudpickle
from ray.exceptions import RayError, RayTaskError

from ninetka_train.cluster.queue import MAX_LOST_WORKERS, TASK_TIMEOUT_S, ClusterError, TaskQueue

Recipe = tuple[Callable[..., Callable[[Any], Any]], tuple[Any, ...]]
"""A function and its arguments. Each worker calls the function once; the function that it returns does the tasks."""

CHECK_INTERVAL_S = 1.0
"""Seconds between two checks for new nodes; also the timeout of waiting for results."""
HEAD_TIMEOUT_S = 5.0
"""Timeout of a connection to the head, in seconds."""
HEAD_LOST_AFTER_S = 20.0
"""Seconds without an answer after which the head counts as lost. Ray would end the process after a minute."""
HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""The first bytes of an HTTP/2 client (RFC 9113, section 3.4): the preface and an empty SETTINGS frame."""
SETTINGS_FRAME = 4
"""Type of the SETTINGS frame with which a server answers, in the fourth byte of the answer."""
LIBRARIES = ("numpy", "numba", "torch")
"""Libraries on whose versions results may depend."""

Identity = dict[str, str]


# Identity: properties that must be equal in a worker and in the process that assigns tasks, for the same results


@functools.cache
def identity() -> Identity:
    """Return the versions and sources that results may depend on, and the processor, which may affect rounding."""
    from ninetka_train.machine import processor_name, software_versions  # imports numba

    return software_versions(LIBRARIES) | {"processor": processor_name()}


def check_identity(own: Identity, other: Identity, where: str) -> str | None:
    """Compare a worker's identity with that of this process; return a warning, or None if there is none.

    Raises:
        ValueError: if the worker's results may differ; the message names all differences.
    """
    differing = [name for name in own if own[name] != other.get(name)]
    serious = [f"{name} {other.get(name)}, here {own[name]}" for name in differing if name != "processor"]
    if serious:
        raise ValueError(f"{where} cannot take part: it has {'; '.join(serious)}: install the same everywhere")
    if differing:
        return f"{where} has another processor ({other['processor']}): its results may differ by rounding"
    return None


# Serialisation of functions and agents. Networks are always loaded on the CPU.


def pack(what: Any) -> npt.NDArray[np.uint8]:
    """Serialise an object to (bytes,) uint8, which Ray's object store shares among the processes of a node."""
    import torch

    buffer = io.BytesIO()
    torch.save(what, buffer, pickle_module=cloudpickle)
    return np.frombuffer(buffer.getbuffer(), np.uint8)


def unpack(blob: npt.NDArray[np.uint8]) -> Any:
    """Return the object that `pack` serialised."""
    import torch

    return torch.load(io.BytesIO(blob.tobytes()), map_location="cpu", weights_only=False)


# The head of the cluster. If it does not answer, Ray itself waits without a message and then ends the process.


def check_head_answers(address: str) -> None:
    """Raise `OSError` if no Ray head answers at HOST:PORT within `HEAD_TIMEOUT_S`. Ray itself would try for minutes.

    A head is a gRPC server and therefore an HTTP/2 server. A head that hangs accepts connections but does not answer.
    """
    host, colon, port = address.rpartition(":")
    if not colon:
        return
    with socket.create_connection((host.strip("[]"), int(port)), HEAD_TIMEOUT_S) as connection:
        if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):  # such a head answers encrypted clients only
            return
        try:
            connection.sendall(HTTP2_PREFACE)
            answer = connection.recv(9)
        except TimeoutError:
            raise TimeoutError(
                f"it accepts connections, but has sent no answer for {HEAD_TIMEOUT_S:g} seconds"
            ) from None
    if answer[3:4] != bytes([SETTINGS_FRAME]):
        raise ConnectionError("another program listens at this port" if answer else "it closes connections at once")


class ClusterHead:
    """The head of the cluster that this process is connected to."""

    def __init__(self) -> None:
        """Store the address of the head."""
        self.address = ray.get_runtime_context().gcs_address
        self._silent_since: float | None = None

    def answers(self) -> bool:
        """Return whether the head answers. If it does not, calls of Ray's functions would wait.

        Raises:
            ClusterError: if the head has not answered for `HEAD_LOST_AFTER_S` seconds.
        """
        try:
            check_head_answers(self.address)
        except OSError:
            now = time.perf_counter()
            self._silent_since = self._silent_since or now
            if now - self._silent_since > HEAD_LOST_AFTER_S:
                raise ClusterError(f"the cluster is lost: its head at {self.address} does not answer") from None
            return False
        self._silent_since = None
        return True


# Workers


def first_line(error: RayError) -> str:
    """Return the first 300 characters of the first line of an error of Ray, whose text may be very long."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


class Worker:
    """A process of the cluster. It caches the function of the newest recipe, and compiled code."""

    def __init__(self) -> None:
        """Limit numba to one thread, because each core has its own worker. Numba must not have been imported yet."""
        os.environ["NUMBA_NUM_THREADS"] = "1"
        self._recipe: Any = None
        self._do: Callable[[Any], Any] | None = None

    def introduce(self) -> tuple[dict[str, str], str]:
        """Return the worker's `identity` and its name."""
        return identity(), f"worker {os.getpid()} on {socket.gethostname()}"

    def run(self, recipe: list[Any], task: Any) -> tuple[Any, float]:
        """Do a task; return the result and the seconds that it took.

        Args:
            recipe: a list of one reference to a packed `Recipe`. The worker fetches the recipe if it differs from the
                previous one.
            task: argument of the function that the recipe makes.
        """
        start = time.perf_counter()
        if self._do is None or recipe[0] != self._recipe:
            make, arguments = unpack(ray.get(recipe[0]))
            self._do, self._recipe = make(*arguments), recipe[0]
        return self._do(task), time.perf_counter() - start


@dataclass(frozen=True)
class _PendingCall:
    """A pending call of a worker."""

    worker: Any
    task: int | None
    """The number of the task; None for a call of `introduce`."""


class Workers:
    """The workers of the cluster, one per core."""

    def __init__(self, warn: Callable[[str], None], timeout_s: float = TASK_TIMEOUT_S) -> None:
        """Start no workers yet.

        Args:
            warn: called with messages for the user.
            timeout_s: minimum time in seconds before a task is overdue; see `ninetka_train.cluster.queue`.
        """
        self.metrics: dict[str, float] = {}
        """Metrics of the newest call of `map`: `workers`, their number at its end; `idle`, the share of the workers'
        time without a task; `again`, how often a task was assigned again."""
        self._warn, self._timeout_s = warn, timeout_s
        self._head, self._lock = ClusterHead(), threading.Lock()
        self._new_worker = ray.remote(num_cpus=1)(Worker)
        self.names: dict[Any, str] = {}
        """Names of the workers whose call of `introduce` has returned."""
        self._idle: list[Any] = []
        self._calls: dict[Any, _PendingCall] = {}
        self._failed_starts = 0
        self._last_check = -CHECK_INTERVAL_S
        self._warned: set[str] = set()

    def __len__(self) -> int:
        """Return the number of workers, without those that are still starting."""
        return len(self.names)

    def map(self, recipe: Recipe, tasks: Sequence[Any]) -> Iterator[Any]:
        """Do tasks with the function that a recipe makes; yield the results in the order of the tasks.

        Raises:
            ValueError: if a worker has other versions or sources.
            ClusterError: if workers cannot start, or a task kills its workers repeatedly.
            Exception: any exception that a task raises.
        """
        with self._lock:  # a round may be played while an evaluation plays games
            yield from self._map(recipe, tasks)

    def _map(self, recipe: Recipe, tasks: Sequence[Any]) -> Iterator[Any]:
        start, busy = time.perf_counter(), 0.0
        queue, shared = TaskQueue(len(tasks), self._timeout_s), [ray.put(pack(recipe))]
        results: dict[int, Any] = {}
        following = 0
        try:
            while following < len(tasks):
                self._start_workers()
                self._hand_out(queue, shared, tasks)
                for task, result, seconds in self._collect(queue):
                    results[task], busy = result, busy + seconds
                while following in results:
                    yield results.pop(following)
                    following += 1
        finally:
            self._end_calls([ref for ref, call in self._calls.items() if call.task is not None])
            wall = time.perf_counter() - start
            idle = max(0.0, 1 - busy / (wall * max(1, len(self))))
            self.metrics = {"workers": len(self), "idle": idle, "again": queue.num_repeats}

    def _start_workers(self) -> None:
        """Start workers until there are as many as cores, and call `introduce` of the new workers."""
        if time.perf_counter() - self._last_check < CHECK_INTERVAL_S:
            return
        self._last_check = time.perf_counter()
        if not self._head.answers():
            return
        for _ in range(int(ray.cluster_resources().get("CPU", 0)) - len(self._idle) - len(self._calls)):
            worker = self._new_worker.remote()
            self._calls[worker.introduce.remote()] = _PendingCall(worker, None)

    def _hand_out(self, queue: TaskQueue, shared: list[Any], tasks: Sequence[Any]) -> None:
        while self._idle and (task := queue.take(time.perf_counter())) is not None:
            worker = self._idle.pop()
            self._calls[worker.run.remote(shared, tasks[task])] = _PendingCall(worker, task)

    def _collect(self, queue: TaskQueue) -> Iterator[tuple[int, Any, float]]:
        """Wait up to `CHECK_INTERVAL_S` seconds for calls to end; yield (task, result, seconds) of each new result."""
        if not self._calls:  # the cluster has no nodes
            time.sleep(CHECK_INTERVAL_S)
            return
        ended, _ = ray.wait(list(self._calls), timeout=CHECK_INTERVAL_S)
        for ref in ended:
            call = self._calls.pop(ref, None)
            if call is None:  # another worker has just done its task
                continue
            try:
                answer = ray.get(ref)
            except RayError as error:
                self._handle_failure(call, queue, error)
                continue
            self._idle.append(call.worker)
            if call.task is None:
                self._register(call.worker, *answer)
                continue
            result, seconds = answer
            if queue.mark_done(call.task, seconds):
                self._end_calls([other for other, busy in self._calls.items() if busy.task == call.task])
                yield call.task, result, seconds

    def _register(self, worker: Any, theirs: dict[str, str], name: str) -> None:
        """Check a worker's identity and store its name."""
        self._failed_starts, self.names[worker] = 0, name
        warning = check_identity(identity(), theirs, name)
        if warning and theirs["processor"] not in self._warned:
            self._warned.add(theirs["processor"])
            self._warn(warning)

    def _handle_failure(self, call: _PendingCall, queue: TaskQueue, error: RayError) -> None:
        """Handle a failed call: raise the exception of the task, or remove a lost worker and queue its task again."""
        if isinstance(error, RayTaskError) and not isinstance(error.cause, RayError):
            self._idle.append(call.worker)
            raise error.cause from None
        self._failed_starts += call.worker not in self.names
        self._warn(f"{self._kill(call.worker)} is lost: {first_line(error)}")
        if call.task is not None:
            queue.mark_lost(call.task, [busy.task for busy in self._calls.values()], first_line(error))
            self._recheck_idle()
        elif self._failed_starts >= MAX_LOST_WORKERS and not self.names:
            raise ClusterError(f"workers do not start: {first_line(error)}")

    def _recheck_idle(self) -> None:
        """Call `introduce` of idle workers, to find those that are lost: all workers of a node are lost together."""
        self._calls |= {worker.introduce.remote(): _PendingCall(worker, None) for worker in self._idle}
        self._idle.clear()

    def _end_calls(self, refs: list[Any]) -> None:
        """Kill the workers of calls whose results are not needed, because they may hang. New workers replace them."""
        for ref in refs:
            self._kill(self._calls.pop(ref).worker)

    def _kill(self, worker: Any) -> str:
        """Kill a worker if it is running, so that another one can start; return its name."""
        if ray.is_initialized() and self._head.answers():  # otherwise Ray would start a new cluster, or wait
            ray.kill(worker)
        self._last_check = -CHECK_INTERVAL_S
        return self.names.pop(worker, "a new worker")
