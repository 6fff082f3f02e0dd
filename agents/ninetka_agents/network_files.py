"""Find the files of networks: those of the package, of the repository's folder `networks`, and of runs.

Start reading at `find_checkpoint`. This module is imported without torch; `checkpoint.py` reads the files.
"""

from __future__ import annotations

import re
from pathlib import Path

from ninetka_agents.plugins import games_with_networks
from ninetka_env.core.files import printable_path
from ninetka_env.core.registry import DEFAULT_GAME
from ninetka_env.core.text import nearest

SHIPPED = Path(__file__).parent / "checkpoints"
"""The folder of the shipped networks: one per game, in a folder with the game's name."""
NETWORKS = Path(__file__).parents[2] / "networks"
"""The folder of all other networks in a clone of the repository; an installed package does not have it."""


def find_checkpoint(path: Path | str, game: str = DEFAULT_GAME) -> Path:
    """Return the path of the tensors' file for a path or the name of a known network.

    An existing path has priority over a name. It is a file, with or without one of the two suffixes, or a folder. A
    folder means the checkpoint in it whose name sorts last, which is the newest of a run.

    Args:
        path: a path; or the name of one of `known_networks`, such as `gen-4` or, with its game, `ninetka/gen-4`; or
            `net` or `net:GAME` for the shipped network of a game. `net:` before another path or name is ignored, as in
            the specs of agents.
        game: the game of the network, if `path` is a name without a game.

    Raises:
        ValueError: if there is no such checkpoint; the message names the known networks.
    """
    if str(path) == "":
        raise ValueError("checkpoint '': expected a path or the name of a network, such as net:go")
    try:
        found_files = sorted(Path(path).glob("*.safetensors"), key=_natural_sort_key)
        target = found_files[-1] if found_files else checkpoint_path(path)
        if target.exists() or target.with_suffix(".json").exists():
            return target
    except (OSError, ValueError) as error:  # a name that is too long, a null character, no read permission
        why = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"checkpoint {printable_path(path)}: cannot be read: {why}") from None
    games = sorted((folder.name for folder in SHIPPED.glob("*")), key=lambda owner: (owner != game, owner))
    known = {f"{owner}/{name}": file for owner in games for name, file in known_networks(owner).items()}
    name = target.with_suffix("").as_posix()
    agent, _, network = name.partition(":")
    if agent == "net":
        chosen = network or game
        return shipped_network(chosen) if chosen in games_with_networks() else find_checkpoint(chosen, game)
    if found := known.get(f"{game}/{name}") or known.get(name):
        return found
    if Path(path).is_dir():
        raise ValueError(f"checkpoint {printable_path(path)}: there is none in this folder yet")
    raise ValueError(_missing_checkpoint_message(printable_path(target.with_suffix(".json")), name, game))


def _missing_checkpoint_message(path: str, name: str, game: str) -> str:
    """Return the error message for a checkpoint that is neither a file nor a known network."""
    names = ", ".join(known_networks(game)) or "none"
    what = (
        f"the known ones of {game} are {names}"
        if NETWORKS.is_dir()
        else f"{names} comes with the package, others are in the repository's folder networks/: give the path of one"
    )
    near = _similar_network(name, game)
    hint = f" (did you mean {'net:' + near!r}?)" if near else ""
    return f"checkpoint {path}: cannot be read: No such file or directory; {what}{hint}"


def _similar_network(name: str, game: str) -> str:
    """Return the network in the same folder, or of the same game, whose name is similar; empty if there is none."""
    folder, _, last = name.rpartition("/")
    folder = folder.lower() if folder.lower() in games_with_networks() else folder
    known: dict[str, str] = {}
    if folder in ("", "runs"):
        known |= {run.name: run.as_posix() for run in known_runs()}
    if folder in ("", *games_with_networks()):
        known |= {one: f"{folder}/{one}".lstrip("/") for one in known_networks(folder or game)}
    return known.get(nearest(last, known), "")


def known_networks(game: str = DEFAULT_GAME) -> dict[str, Path]:
    """Return the paths of a game's networks by name, older generations first.

    A clone of the repository has all networks, an installed package only the shipped one.
    """
    paths = [path for folder in (NETWORKS, SHIPPED) for path in (folder / game).glob("*.safetensors")]
    return {path.stem: path for path in sorted(paths, key=_natural_sort_key)}


def known_runs() -> list[Path]:
    """Return the folders in `runs/` that have a checkpoint."""
    return [run for run in sorted(Path("runs").glob("*")) if any(run.glob("*.safetensors"))]


def shipped_network(game: str = DEFAULT_GAME) -> Path:
    """Return the path of a game's shipped network: its best one, which the agent `net` uses by default.

    Raises:
        ValueError: if no network is shipped for this game.
    """
    for path in (SHIPPED / game).glob("*.safetensors"):
        return path
    raise ValueError(f"no trained network is shipped for {game}: give the path of one, such as 'net:runs/quick'")


def _natural_sort_key(path: Path) -> list[str | int]:
    """Return a sort key that compares numbers in the name by value, so gen-9 comes before gen-10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", path.stem)]


def checkpoint_path(path: Path | str) -> Path:
    """Return the path of the tensors' file for a path with or without one of the two suffixes."""
    path = Path(path)
    return path if path.suffix == ".safetensors" else path.with_name(path.name.removesuffix(".json") + ".safetensors")
