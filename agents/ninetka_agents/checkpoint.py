"""Save and load networks: a `.safetensors` file of tensors and a `.json` file that describes them and names the game.

Start reading at `save_checkpoint` and `load_checkpoint`. `ninetka_train.learning.resume` uses these functions to store
the whole state of a training run.

Both files are written atomically, the JSON last. It holds the SHA-256 of the tensors' file, so a pair that is
truncated, edited or mixed up is rejected with a message.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor
from torch.nn.modules.module import register_module_parameter_registration_hook

from ninetka_agents.network_files import checkpoint_path, find_checkpoint, known_networks, shipped_network
from ninetka_agents.plugins import games_with_networks, network_of
from ninetka_env.core.files import replace_files
from ninetka_env.core.options import short_repr
from ninetka_env.core.registry import DEFAULT_GAME, get_definition

__all__ = ["Checkpoint", "find_checkpoint", "known_networks", "load_checkpoint", "save_checkpoint", "shipped_network"]

FORMAT = 2
"""Version of checkpoints: increased when features or layers change so that older weights no longer fit."""


@dataclass(frozen=True)
class Checkpoint:
    """The metadata of a checkpoint, stored in the JSON."""

    network: Any
    """The network's shape, the `NetworkConfig` of its game."""
    step: int = 0
    """Training step (in PPO: number of moves)."""
    config: dict[str, Any] = field(default_factory=dict)
    """The resolved configuration of the run."""
    notes: dict[str, Any] = field(default_factory=dict)
    """Further entries, of types that JSON supports."""


def save_checkpoint(
    path: Path | str, network: Any, checkpoint: Checkpoint | None = None, state: Mapping[str, Tensor] | None = None
) -> Path:
    """Write a checkpoint; an older one of that name is replaced only when the new one is complete on disk.

    Args:
        path: path of the `.safetensors` file; the JSON is written next to it. Missing folders are created.
        network: the network to save; the JSON contains the version of its `game`.
        checkpoint: further entries of the JSON; the shape is always taken from `network`.
        state: further tensors for resuming, such as the state of an optimiser.

    Returns:
        The path of the `.safetensors` file.

    Raises:
        OSError: if the disk is full or the folder cannot be written; the message names the path. The older pair of
            files is unchanged.
    """
    target = checkpoint_path(path)
    description = checkpoint or Checkpoint(network.config)
    tensors = {f"network.{name}": tensor for name, tensor in network.state_dict().items()}
    tensors |= {f"state.{name}": tensor for name, tensor in (state or {}).items()}
    blob = save_tensors({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
    digest = hashlib.sha256(blob).hexdigest()
    version = get_definition(network.game).version
    metadata = {"format": FORMAT, "environment": version, "sha256": digest, **asdict(description)}
    metadata["network"] = asdict(network.config)
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_files({target: [blob], target.with_suffix(".json"): [json.dumps(metadata, indent=2).encode()]})
    return target


def load_checkpoint(
    path: Path | str, device: torch.device | str = "cpu", game: str = DEFAULT_GAME
) -> tuple[Any, Checkpoint, dict[str, Tensor]]:
    """Load a checkpoint.

    Args:
        path: path of a checkpoint, or the name of a known network; see `find_checkpoint`.
        device: the device of the network.
        game: the game of the network, if `path` is a name without a prefix such as `ninetka/`. If `path` is a
            file or folder, `game` is ignored: the network may be of any game.

    Returns:
        A tuple of the network, an instance of its game's `Network` on `device`, in evaluation mode; the metadata; and
        the further tensors given to `save_checkpoint`, on the CPU.

    Raises:
        ValueError: if a file is missing, truncated, edited, or of another version; the message names file and reason.
    """
    target = find_checkpoint(path, game)
    metadata, module = _read_metadata(target.with_suffix(".json"))
    tensors = _read_tensors(target, str(metadata["sha256"]))
    weights = _select_prefix(tensors, "network.")
    try:
        entries = {
            item.name: _read_entry(metadata, item.name, item.type)
            for item in fields(Checkpoint)
            if item.name != "network"
        }
        checkpoint = Checkpoint(_read_network_config(metadata["network"], module), **entries)
        _check_weights(module.Network, checkpoint.network, weights)
        network = module.Network(checkpoint.network)
        network.load_state_dict(weights)
    except (TypeError, KeyError, ValueError, RuntimeError, ArithmeticError, MemoryError) as error:
        what = f"lacks {error}" if isinstance(error, KeyError) else str(error).partition("\n")[0][:300]
        raise ValueError(
            f"checkpoint {target}: the weights do not fit the network that the JSON describes: {what}"
        ) from None
    return network.to(device).eval(), checkpoint, _select_prefix(tensors, "state.")


def _read_entry(metadata: Mapping[str, Any], name: str, kind: Any) -> Any:
    """Return an entry of the JSON; raise `TypeError` if its type does not match the annotation of its field."""
    wanted, value = int if kind == "int" else dict, metadata[name]
    if type(value) is not wanted:
        raise TypeError(f"{name}={short_repr(value)}: expected {wanted.__name__}")
    return value


def _read_network_config(shape: Any, module: Any) -> Any:
    """Return the `NetworkConfig` of the JSON; raise `TypeError` if a value does not have the type of its default."""
    if not isinstance(shape, dict):
        raise TypeError(f"network={short_repr(shape)}: expected dict")
    config = module.NetworkConfig()
    for name, value in shape.items():
        wanted = type(getattr(config, name, value))
        if type(value) is not wanted:
            raise TypeError(f"network.{name}={short_repr(value)}: expected {wanted.__name__}")
    return module.NetworkConfig(**shape)


def _check_weights(network: Callable[[Any], Any], config: Any, weights: Mapping[str, Tensor]) -> None:
    """Raise `ValueError` unless the weights fit a network of this shape.

    The layers are created on torch's meta device, without memory for their weights, and their number is limited by the
    number of tensors in the file. So a wrong shape cannot exhaust the memory.
    """
    thread, made = threading.get_ident(), itertools.count(1)

    def count(module: Any, name: str, parameter: Any) -> None:
        if threading.get_ident() == thread and parameter is not None and next(made) > len(weights):
            raise ValueError(f"{short_repr(config)} has more than the {len(weights)} tensors that are there")

    hook = register_module_parameter_registration_hook(count)
    try:
        with torch.device("meta"):
            expected = network(config).state_dict()
    finally:
        hook.remove()
    if expected.keys() != weights.keys():
        raise ValueError(f"tensors are missing or too many: {short_repr(sorted(expected.keys() ^ weights.keys()))}")
    for name, like in expected.items():  # the order of the layers is fixed, the order in a file is not
        tensor = weights[name]
        if (tensor.shape, tensor.dtype) != (like.shape, like.dtype):
            found, wanted = (f"{each.dtype} of shape {tuple(each.shape)}" for each in (tensor, like))
            raise ValueError(f"{name} is {found}, not {wanted}")
        if not tensor.isfinite().all():
            raise ValueError(f"{name} holds numbers that are not finite")


def _select_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _read_metadata(path: Path) -> tuple[dict[str, Any], Any]:
    """Return the contents of the JSON, and the module with the network of its game."""
    blob = _read_bytes(path)
    try:
        metadata = json.loads(blob)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"checkpoint {path}: is not a complete JSON document: {error}") from None
    if not isinstance(metadata, dict) or "sha256" not in metadata:
        raise ValueError(f"checkpoint {path}: does not describe a network")
    if metadata.get("format") != FORMAT:
        raise ValueError(
            f"checkpoint {path}: format is {short_repr(metadata.get('format'))}, this version reads {FORMAT}"
        )
    version = metadata.get("environment")
    versions = {get_definition(game).version: game for game in games_with_networks()}
    if not isinstance(version, str) or version not in versions:
        known = ", ".join(map(repr, versions))
        raise ValueError(f"checkpoint {path}: environment is {short_repr(version)}, this version reads {known}")
    return metadata, network_of(versions[version])


def _read_bytes(path: Path) -> bytes:
    """Return the bytes of a file; raise `ValueError` if it is unreadable or not a regular file, like /dev/zero."""
    try:
        if path.exists() and not path.is_file():
            raise ValueError(f"checkpoint {path}: is not a regular file")
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"checkpoint {path}: cannot be read: {error.strerror}") from None


def _read_tensors(path: Path, digest: str) -> dict[str, Tensor]:
    blob = _read_bytes(path)
    if hashlib.sha256(blob).hexdigest() != digest:
        raise ValueError(
            f"checkpoint {path}: its {len(blob)} bytes are not what {path.stem}.json describes (SHA-256 differs): "
            "the file was cut short, edited, or belongs to another checkpoint"
        )
    try:
        return load_tensors(blob)
    except SafetensorError as error:
        raise ValueError(f"checkpoint {path}: is not a safetensors file: {error}") from None
