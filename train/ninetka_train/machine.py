"""What a measurement was made on."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine() -> str:
    """Name the processor, the cores that this process may use, and the versions that matter."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        processor = names[0] if names else processor
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{processor}, {cores} cores, Python {platform.python_version()}"
