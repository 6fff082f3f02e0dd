"""Description of the machine, to store with measurements.

Start reading at `describe_machine`.
"""

from __future__ import annotations

import functools
import platform
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from ninetka_env.core.sources import source_digest
from ninetka_env.core.threads import available_cores

PACKAGES = ("ninetka_env", "ninetka_agents", "ninetka_train")
"""The packages of this project on which results may depend."""


def describe_machine() -> str:
    """Return a text with the processor, the number of cores that this process may use, and the Python version."""
    count = available_cores()
    return f"{processor_name()}, {count} core{'s' * (count > 1)}, Python {platform.python_version()}"


def software_versions(libraries: Iterable[str]) -> dict[str, str]:
    """Return the versions of Python and of installed libraries, and digests of this project's sources, by name."""
    found = {"Python": platform.python_version()}
    for library in libraries:
        with suppress(metadata.PackageNotFoundError):
            found[library] = metadata.version(library).partition("+")[0]
    return found | {f"source of {package}": source_digest(package)[:12] for package in PACKAGES}


@functools.cache
def processor_name() -> str:
    """Return the name of the processor."""
    name = ""
    with suppress(OSError, subprocess.SubprocessError):
        if sys.platform == "linux":
            name = _processor_from_cpuinfo(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace"))
        elif sys.platform == "darwin":
            command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
            name = subprocess.run(command, check=True, capture_output=True, encoding="utf-8", timeout=10).stdout.strip()
    return name or platform.processor() or platform.machine()


def _processor_from_cpuinfo(cpuinfo: str) -> str:
    """Return the processor from /proc/cpuinfo: its model name or, on most ARM systems, implementer and part numbers."""
    lines = [(name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in cpuinfo.splitlines())]
    for name, value in lines:
        if name == "model name":
            return value
    numbers = ("CPU implementer", "CPU part", "CPU variant", "CPU revision")
    known = {name: " ".join(sorted({value for other, value in lines if other == name})) for name in numbers}
    return ", ".join(f"{name} {value}" for name, value in known.items() if value)
