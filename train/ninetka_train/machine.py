"""What a measurement was made on."""

from __future__ import annotations

import functools
import os
import platform
from pathlib import Path


def machine() -> str:
    """Name the processor, the cores that this process may use, and the versions that matter."""
    count = cores()
    return f"{processor()}, {count} core{'s' * (count > 1)}, Python {platform.python_version()}"


@functools.cache
def processor() -> str:
    """Name the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.processor() or platform.machine()


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
