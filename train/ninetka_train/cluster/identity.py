"""What a worker must have in common with whoever hands it tasks, so that it gives the very same results."""

from __future__ import annotations

import functools
import platform
from importlib import metadata

from ninetka_env.core.cache import source_digest
from ninetka_train.machine import processor

PACKAGES = ("ninetka_env", "ninetka_agents", "ninetka_train")
LIBRARIES = ("numpy", "numba", "torch")

Identity = dict[str, str]


@functools.cache
def identity() -> Identity:
    """Return the versions and sources that results may hang on, and the processor, whose rounding they may hang on."""
    versions = {name: metadata.version(name).partition("+")[0] for name in LIBRARIES}
    sources = {f"source of {package}": source_digest(package)[:12] for package in PACKAGES}
    return {"Python": platform.python_version(), **versions, **sources, "processor": processor()}


def check_same(own: Identity, other: Identity, where: str) -> str | None:
    """Compare a worker's identity with one's own; return what is worth a warning, None for nothing.

    Raises:
        ValueError: naming all that differs, if its results would not be the same.
    """
    differing = [name for name in own if own[name] != other.get(name)]
    serious = [f"{name} {other.get(name)}, here {own[name]}" for name in differing if name != "processor"]
    if serious:
        raise ValueError(f"{where} cannot take part: it has {'; '.join(serious)}: install the same everywhere")
    if differing:
        return f"{where} has another processor ({other['processor']}): its results may differ by rounding"
    return None
