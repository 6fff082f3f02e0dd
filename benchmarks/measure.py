"""Helpers of all benchmarks: rows of the table, timing, and running on one core.

`benchmarks.run` prints the rows.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass


@dataclass
class Row:
    """A row of the table: our figure and, if there is a peer, the peer's figure measured in the same run."""

    what: str
    unit: str
    ours: float
    peer: float | None = None
    peer_name: str = ""
    target: float | None = None
    lower_is_better: bool = False
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """The factor by which our figure is better than the peer's; None without a peer."""
        if self.peer is None:
            return None
        return self.peer / self.ours if self.lower_is_better else self.ours / self.peer


def rate(run: Callable[[], int], seconds: float = 1.0) -> float:
    """Return the amount of work that `run` does per second.

    Args:
        run: does some work and returns its amount; called once before the measurement.
        seconds: duration of the measurement.
    """
    run()
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        done += run()
    return done / (time.perf_counter() - start)


def rates(*runs: Callable[[], int], seconds: float = 1.0, rounds: int = 3) -> list[float]:
    """Return the median rate of each of `runs`. They are measured in turn, so that slow phases affect all of them."""
    taken = [[rate(run, seconds) for run in runs] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*taken, strict=True)]


def pin_to_one_core() -> None:
    """Pin this process to one core, if the operating system supports it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def write_rows_on_one_core(rows: Iterable[Row]) -> None:
    """Print rows measured by a child process that is pinned to one core; this process keeps all its cores."""
    pid = os.fork()
    if pid:
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
            raise SystemExit(1)
        return
    status = 1
    try:
        pin_to_one_core()
        write_rows(rows)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def is_installed(module: str) -> bool:
    """Return whether the module of a peer is installed."""
    return importlib.util.find_spec(module) is not None


def write_rows(rows: Iterable[Row]) -> None:
    """Print rows as JSON lines, for `benchmarks.run` to collect."""
    for row in rows:
        print(json.dumps(asdict(row)))
        sys.stdout.flush()
