"""How many cores a process may use: those of its affinity mask, within the CPU quota of its container."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def cores() -> int:
    """Count the cores that this process may use, at least 1; a quota of 1.5 cores counts as 2."""
    return max(1, math.ceil(min(_present(), _quota(Path("/")))))


def _present() -> int:
    """Count the cores that the system lets this process run on, whatever its quota."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _quota(root: Path) -> float:
    """Return the cores' worth of time that Linux grants this process, infinity where there is no limit.

    Args:
        root: of the file system, for tests.

    The limit is the lowest of all control groups from the process's own up to the root: `cpu.max` holds time and period
    in version 2, in version 1 there is a file for each (https://docs.kernel.org/admin-guide/cgroup-v2.html).
    """
    limits = [math.inf]
    for folder in _groups(root):
        with suppress(OSError, ValueError, ZeroDivisionError):
            time, period = (folder / "cpu.max").read_text("ascii").split()
            limits.append(math.inf if time == "max" else float(time) / float(period))
        with suppress(OSError, ValueError, ZeroDivisionError):
            quota, length = (float((folder / f"cpu.cfs_{what}_us").read_text("ascii")) for what in ("quota", "period"))
            limits.append(math.inf if quota < 0 else quota / length)
    return min(limits)


def _groups(root: Path) -> Iterator[Path]:
    """Yield the folders of this process's control groups of processor time, each with those above it."""
    mounted, lines = root / "sys/fs/cgroup", ["0::/"]
    with suppress(OSError):
        lines += (root / "proc/self/cgroup").read_text("utf-8", "surrogateescape").splitlines()
    for line in (line for line in lines if line.count(":") >= 2):
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield from _with_parents(mounted, path)
        elif "cpu" in controllers.split(","):
            for name in {controllers, "cpu"}:  # the folder's name may list them in another order; "cpu" is a link to it
                yield from _with_parents(mounted / name, path)


def _with_parents(top: Path, path: str) -> Iterator[Path]:
    """Yield a folder below `top`, and those above it up to there."""
    folder = top / path.strip("/")
    yield folder
    yield from (parent for parent in folder.parents if parent.is_relative_to(top))
