"""Find the files of configurations: those of the package, and those of the networks in a clone of the repository.

Start reading at `find_config`. This module is imported without torch; `config.py` reads the files.
"""

from __future__ import annotations

from pathlib import Path

from ninetka_agents.network_files import NETWORKS
from ninetka_env.core.files import printable_path
from ninetka_env.core.text import did_you_mean

_PACKAGE = Path(__file__).resolve().parents[1]
_INSTALLED, _CHECKOUT = _PACKAGE / "configs", _PACKAGE.parents[1] / "configs"
CONFIGS = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT
"""Folder of the shipped configurations: in the installed package, or in the checkout it is imported from."""


def shipped_configs() -> dict[str, Path]:
    """Return the configurations that come with the package, by name."""
    return {path.stem: path for path in sorted(CONFIGS.glob("*.yaml"), key=lambda path: path.stem)}


def other_configs() -> dict[str, Path]:
    """Return the configurations in the repository's folder `networks`, by name; a package does not have them."""
    return {path.stem: path for path in sorted(NETWORKS.glob("*/*.yaml"), key=lambda path: path.stem)}


def find_config(path: Path | str) -> Path:
    """Return the file of a configuration, given by its path or name.

    An existing file has priority. Otherwise `quick` and `configs/quick.yaml` both name the shipped configuration. In a
    clone of the repository, `gen-1` names `networks/ninetka/gen-1.yaml`.

    Raises:
        ValueError: if there is no such file; the message names the shipped configurations.
    """
    path, known, others = Path(path), shipped_configs(), other_configs()
    try:
        if path.exists() and not path.is_dir():
            return path
    except OSError as error:
        raise ValueError(f"{printable_path(path)}: cannot be read: {error.strerror}") from None
    name = path.name.removesuffix(".yaml")
    places = {Path(): others | known, Path("configs"): known}
    if found := places.get(path.parent, {}).get(name):
        return found
    what = "it is a folder" if path.exists() else "No such file or directory"
    there = f"the shipped configurations are {', '.join(known) or 'none'}{did_you_mean(name, [*known, *others])}"
    raise ValueError(
        f"{printable_path(path)}: cannot be read: {what}; {there}, "
        "those of other networks are in the repository's folder networks/"
    )
