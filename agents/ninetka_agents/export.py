"""Export trained networks as ONNX files, for programs without torch and without this package.

The command `ninetka export` calls `export_checkpoint`. `checkpoint.py` saves and loads networks for this package.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import io
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ninetka_agents.board_network import BoardNetwork
from ninetka_agents.checkpoint import find_checkpoint, load_checkpoint
from ninetka_agents.outputs import ArrayInfo
from ninetka_env.api.observing import observe
from ninetka_env.core.batch import new_games
from ninetka_env.core.files import StrPath, replace_file
from ninetka_env.core.registry import get_definition, load_variant

OUTPUT_MEANINGS = {
    "logits": "policy logits of the environment's actions, -1e9 for illegal actions; softmax gives probabilities",
    "values": "the probability that each relative seat wins, draws shared; 0 for seats that are not in play",
    "owners": "the probabilities that each relative seat or, last, no seat owns each section, point or node at the end",
    "score": "the expected final lead of relative seat 0, in points",
}
"""The outputs of an exported network, in order; not every network predicts a score."""
OUTPUT_NAMES = tuple(OUTPUT_MEANINGS)
SEATS = "Seats are relative to the seat to move: relative seat r is seat (to_move + r) % n of n players."


def export_checkpoint(name: Path | str, path: StrPath) -> None:
    """Write the network of a checkpoint to an ONNX file; see `export_onnx`.

    Args:
        name: path of a checkpoint or name of a network; see `ninetka_agents.checkpoint.find_checkpoint`.
        path: path of the ONNX file.

    Raises:
        ValueError: if the checkpoint cannot be used; the message names file and reason.
        ImportError, OSError: see `export_onnx`.
    """
    source = find_checkpoint(name)
    network, checkpoint, _ = load_checkpoint(source)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    export_onnx(network, path, {"checkpoint": source.stem, "step": str(checkpoint.step), "sha256": digest})


def export_onnx(network: Any, path: StrPath, notes: Mapping[str, str] | None = None) -> None:
    """Write a network of any game to an ONNX file.

    Networks of Go and Kropki take the environment's `observation` and `action_mask`, for boards of any size; Go's take
    `komi`, `scoring` and `prisoners` as well. Networks of 9tka take the arrays that
    `ninetka_agents.ninetka.numpy_features` computes from observation and mask. Networks of other games take the arrays
    of `network.encode`. Inputs that a network does not use are left out. The number N of positions may vary.

    The outputs are float32: `logits` (N, A), -1e9 for illegal actions; `values` (N, P), the win probability per
    relative seat; `owners` (N, T, P + 1), the probabilities that each target (section, point or node) is owned at the
    end by each relative seat or, last, by none; `score` (N,), if the network predicts it. They are those of
    `ninetka_agents.outputs.Evaluation`, with exactly the actions of the mask and the points of the board.

    The file's metadata, text by key, describes the game, the options that the network serves, inputs and outputs.

    Args:
        network: a network of any game; see `ninetka_agents.outputs`.
        path: path of the ONNX file.
        notes: further metadata.

    Raises:
        ImportError: if the package onnx is missing.
        OSError: if the file cannot be written; the message names the path.
    """
    importlib.import_module("onnx")  # torch imports it only at the end of the export, so check for it first
    inputs, examples = _inputs_of(network)
    tensor_network, file = _TensorNetwork(copy.deepcopy(network).cpu().eval(), examples), io.BytesIO()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", torch.jit.TracerWarning)  # type: ignore[attr-defined]  # sizes are dynamic
        tensors = tuple(map(torch.from_numpy, examples))
        outputs = _outputs_of(tensor_network(*tensors), isinstance(network, BoardNetwork))
        # Use the older exporter: for 9tka's network, the newer one (`dynamo=True`) writes a file that crashes ONNX
        # Runtime 1.31.
        torch.onnx.export(
            tensor_network,
            tensors,
            file,  # type: ignore[arg-type]  # file objects are accepted
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes={name: _dynamic_axes(info) for name, info in {**inputs, **outputs}.items()},
            opset_version=17,
            dynamo=False,
        )
    replace_file(path, [_with_metadata(file.getvalue(), network, inputs, outputs, notes or {})])


def _inputs_of(network: Any) -> tuple[dict[str, ArrayInfo], tuple[Any, ...]]:
    """Return the inputs of the exported network by name, and an example of each, numpy arrays for two positions."""
    variant = load_variant(network.game)
    games = new_games(variant, np.arange(2, dtype=np.uint64))
    if isinstance(network, BoardNetwork):
        options = [np.zeros(len(games), info.dtype) for info in list(network.export_inputs.values())[2:]]
        return network.export_inputs, (*observe(games, variant), *options)
    if described := getattr(network, "export_inputs", None):
        return described, tuple(np.zeros([len(games), *info.shape[1:]], info.dtype) for info in described.values())
    examples = network.encode(games)
    return {name: _undescribed(array) for name, array in examples._asdict().items()}, examples


def _undescribed(array: Any) -> ArrayInfo:
    return ArrayInfo(str(array.dtype), ("positions", *array.shape[1:]), "an array of the network's method encode")


def _outputs_of(tensors: tuple[Tensor, ...], any_size: bool) -> dict[str, ArrayInfo]:
    """Return the outputs of the exported network by name; with `any_size`, A and T depend on the size of the board."""
    found = {}
    for (name, meaning), tensor in zip(OUTPUT_MEANINGS.items(), tensors, strict=False):
        shape: tuple[int | str, ...] = ("positions", *tensor.shape[1:])
        if any_size and name in ("logits", "owners"):
            shape = ("positions", "actions" if name == "logits" else "nodes", *tensor.shape[2:])
        found[name] = ArrayInfo("float32", shape, meaning)
    return found


def _dynamic_axes(info: ArrayInfo) -> dict[int, str]:
    return {axis: name for axis, name in enumerate(info.shape) if isinstance(name, str)}


def _with_metadata(
    model: bytes,
    network: Any,
    inputs: Mapping[str, ArrayInfo],
    outputs: Mapping[str, ArrayInfo],
    notes: Mapping[str, str],
) -> bytes:
    """Return an ONNX model with a description of the network as metadata, text by key."""
    onnx = importlib.import_module("onnx")
    definition, loaded = get_definition(network.game), onnx.load_from_string(model)
    used = {each.name for each in loaded.graph.input}
    options = {option.name: option.allowed for option in definition.options} | getattr(network, "export_options", {})
    description = {
        "game": network.game,
        "environment": definition.version,
        "options": _json(options),
        "seats": SEATS,
        "inputs": _json({name: _as_json(info) for name, info in inputs.items() if name in used}),
        "outputs": _json({name: _as_json(info) for name, info in outputs.items()}),
        "network": repr(network.config),
        **notes,
    }
    onnx.helper.set_model_props(loaded, description)
    for output in loaded.graph.output:  # torch does not know the lengths of some dimensions
        for dimension, size in zip(output.type.tensor_type.shape.dim, outputs[output.name].shape, strict=True):
            if isinstance(size, int):
                dimension.dim_value = size
    return bytes(loaded.SerializeToString())


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _as_json(info: ArrayInfo) -> dict[str, Any]:
    return info._asdict() | {"parts": [part._asdict() for part in info.parts]}


class _TensorNetwork(nn.Module):
    """Wraps a network so that its inputs and outputs are single tensors."""

    def __init__(self, network: Any, examples: tuple[Any, ...]) -> None:
        super().__init__()
        self.network, self.kind = network, type(examples)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        from_export = getattr(self.network, "from_export", None)
        outputs = self.network(from_export(*inputs) if from_export else self.kind(*inputs))
        logits = outputs.logits
        if isinstance(self.network, BoardNetwork):
            logits = logits[:, : inputs[1].shape[1]]  # the actions of the mask
        tensors = logits, outputs.values, outputs.owner_logits.softmax(-1)
        return tensors if outputs.score is None else (*tensors, outputs.score)
