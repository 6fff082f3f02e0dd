"""Checks of the files that a command will write, before it computes anything."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ninetka_env.core.files import check_writable, is_special, with_extension

NETWORK_SUFFIX = ".safetensors"
"""Suffix of a network's weights."""
NETWORK_FILES = (NETWORK_SUFFIX, ".json", ".log.jsonl", ".md")
"""Suffixes of the files that belong to a network: weights, description, training log and model card."""


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


def named_files(option: str, path: Path, endings: Iterable[str]) -> list[Path]:
    """Return the paths of the files that an option names without their endings, such as `x.png` and `x.json` for `x`.

    Raises:
        ValueError: if the path has no name to which an ending can be added.
    """
    check_name(option, path)
    return [with_extension(path, ending) for ending in endings]


def check_name(option: str, path: Path) -> None:
    """Raise `ValueError` unless `path` is a name to which endings can be added."""
    if not path.name.strip(".") or path.name in (".png", ".json", ".md", NETWORK_SUFFIX):
        raise ValueError(f"{option} {path}: expected a name for files, such as results/first")
    if is_special(path) and not path.is_dir():
        raise ValueError(f"{option} {path}: it is no regular file, and this option adds endings to a name")


def _identity(path: Path) -> object:
    """Return a value that is equal for two paths of one file, also for links and names in another case."""
    if path.exists():
        status = path.stat()
        return status.st_dev, status.st_ino
    return os.path.realpath(path)


def _weights_of(path: Path) -> Path | None:
    """Return the weights of the network to which an existing file belongs; None if it belongs to none."""
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    for suffix in NETWORK_FILES:
        if target.name.endswith(suffix) and target.exists():
            weights = target.with_name(target.name.removesuffix(suffix) + NETWORK_SUFFIX)
            return weights if weights.exists() else None
    return None
