"""Checks of the files that a command will write, before it computes anything."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ninetka_env.core.files import check_writable, is_special

NETWORK_SUFFIX = ".safetensors"
"""Suffix of a network's weights; a JSON file of the same name describes them."""


def check_outputs(
    outputs: Iterable[tuple[str, Path | None]], inputs: Iterable[Path] = (), *, writes_network: bool = False
) -> None:
    """Raise an error if a file cannot be written or if writing it would destroy another file that the user needs.

    Args:
        outputs: the option that names each file, such as `--json`, and its path; None if it is not given.
        inputs: files that the command reads.
        writes_network: whether the outputs are a network, which may replace another network.

    Raises:
        ValueError: if an output is also an input, another output, or part of a network.
        OSError: if an output cannot be written.
    """
    read = {_identity(path) for path in inputs if path.is_file()}
    written: dict[object, str] = {}
    for option, path in outputs:
        if path is None:
            continue
        check_writable(path)
        if is_special(path):  # such as /dev/null, which several outputs may share
            continue
        identity = _identity(path)
        if identity in read:
            raise ValueError(f"{option} {path}: the command reads this file: name another one")
        if identity in written:
            raise ValueError(f"{written[identity]} and {option} name the same file, {path}: name two files")
        if not writes_network and (weights := _weights_of(path)):
            raise ValueError(f"{option} {path}: this file belongs to the network {weights}: name another one")
        written[identity] = option


def _identity(path: Path) -> object:
    """Return a value that is equal for two paths of one file, also for links and names in another case."""
    if path.exists():
        status = path.stat()
        return status.st_dev, status.st_ino
    return os.path.realpath(path)


def _weights_of(path: Path) -> Path | None:
    """Return the file of weights that an existing file is or describes; None if it belongs to no network."""
    weights = path.with_suffix(NETWORK_SUFFIX)
    is_part = path.suffix in (NETWORK_SUFFIX, ".json") and path.exists() and weights.exists()
    return weights if is_part else None
