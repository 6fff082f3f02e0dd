"""Evaluation of the positions of several tasks together, for a GPU, which needs large batches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from ninetka_agents.search.evaluation import Evaluate
from ninetka_env.core.verbs import StateArray
from ninetka_train.learning.processes import set_torch_threads

Request = tuple[StateArray, Future[Any]]
"""Positions, and the future result of their evaluation."""


class JoinedEvaluate:
    """An `Evaluate` for several threads, its users, which joins their positions into batches.

    A batch starts as soon as half of the users wait for a result. While it is evaluated, in a separate thread, the
    other users search, and their positions become the next batch. The results of an exact evaluation do not depend on
    how positions are joined; those of a network depend on it by rounding.
    """

    def __init__(self, evaluate: Evaluate, torch_threads: int) -> None:
        """Join positions for `evaluate`, which encodes them with this number of torch threads."""
        self._evaluate = evaluate
        self._pool = ThreadPoolExecutor(1, "ninetka-evaluate", set_torch_threads, (torch_threads,))
        self._lock = threading.Lock()
        self._waiting: list[Request] = []
        self._users, self._is_running = 0, False

    @contextmanager
    def user(self) -> Iterator[None]:
        """Return a context manager in which this thread is a user. Each thread that evaluates positions must be one."""
        with self._lock:
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                self._start_batch()

    def __call__(self, games: StateArray) -> Any:
        """Evaluate positions; see `ninetka_agents.search.evaluation.Evaluate`."""
        result: Future[Any] = Future()
        with self._lock:
            self._waiting.append((games, result))
            self._start_batch()
        return result.result()

    def _start_batch(self) -> None:
        """Start to evaluate all waiting positions, if enough users wait; the lock is held."""
        if self._waiting and not self._is_running and 2 * len(self._waiting) >= self._users:
            batch, self._waiting = self._waiting, []
            try:
                self._pool.submit(self._run, batch)
                self._is_running = True
            except RuntimeError as error:  # at the end of the process; without a result, users would wait forever
                _fail(batch, error)

    def _run(self, batch: list[Request]) -> None:
        try:
            found = self._evaluate(np.concatenate([games for games, _ in batch]))
            stops = np.cumsum([len(games) for games, _ in batch])[:-1]
            parts = zip(*(np.split(array, stops) for array in found), strict=True)
            for (_, result), part in zip(batch, parts, strict=True):
                result.set_result(part)
        except BaseException as error:
            _fail(batch, error)
        with self._lock:
            self._is_running = False
            self._start_batch()


def _fail(batch: list[Request], error: BaseException) -> None:
    """Let requests without a result raise an error."""
    for _, result in batch:
        if not result.done():
            result.set_exception(error)
