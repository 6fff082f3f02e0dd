"""What every benchmark needs: a row of the table, a stopwatch, one core."""

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
    """One line of the table: our figure beside a peer's, measured in the same process, alternately."""

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
        """How many times better than the peer we are."""
        if self.peer is None:
            return None
        return self.peer / self.ours if self.lower_is_better else self.ours / self.peer


def rate(run: Callable[[], int], seconds: float = 1.0) -> float:
    """Return how much `run` does per second; it returns how much it did. It runs once before the clock starts."""
    run()
    done, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        done += run()
    return done / (time.perf_counter() - begin)


def rates(*runs: Callable[[], int], seconds: float = 1.0, rounds: int = 3) -> list[float]:
    """Return the median rate of each of `runs`, taken in turn so that all meet the machine in the same moods."""
    taken = [[rate(run, seconds) for run in runs] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*taken, strict=True)]


def one_core() -> None:
    """Pin this process to one core, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def on_one_core(rows: Iterable[Row]) -> None:
    """Print rows that a process of its own measures on one core, so that this one keeps all of them."""
    pid = os.fork()
    if pid:
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
            raise SystemExit(1)
        return
    status = 1
    try:
        one_core()
        write_rows(rows)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def has(module: str) -> bool:
    """Tell whether a peer is installed."""
    return importlib.util.find_spec(module) is not None


def write_rows(rows: Iterable[Row]) -> None:
    """Print rows as JSON lines, for `benchmarks.run` to collect."""
    for row in rows:
        print(json.dumps(asdict(row)))
        sys.stdout.flush()
