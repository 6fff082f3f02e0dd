"""Export a trained network as an ONNX file, for programs without torch."""

from __future__ import annotations

import copy
import importlib
import io
import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ninetka_agents.board_network import BoardNetwork
from ninetka_agents.outputs import as_tensors
from ninetka_env.core.batch import new_games
from ninetka_env.core.files import StrPath, replace_file
from ninetka_env.core.registry import load_variant

OUTPUTS = ("logits", "values", "owners", "score")
BOARD_AXES = {
    "planes": {2: "height", 3: "width"},
    "mask": {1: "actions"},
    "logits": {1: "actions"},
    "owners": {1: "targets"},
}
"""Dynamic dimensions, other than the first, of a network that plays on boards of any size."""


def export_onnx(network: Any, path: StrPath) -> None:
    """Write a network of any game to an ONNX file.

    The inputs are the arrays of `network.encode` that the network uses (9tka networks without relations between slots
    do not have those), by name, for any number N of positions and any board that the network can play on. The outputs
    are float32: `logits` (N, A), -1e9 for illegal actions; `values` (N, P), the win probability per relative seat;
    `owners` (N, T, P + 1), the probability of each final owner per target, relative seats and nobody; `score` (N,), if
    the network predicts one. See `ninetka_agents.outputs.Outputs`.

    Raises:
        ImportError: if the package onnx is missing.
        OSError: if the file cannot be written; names the path.
    """
    importlib.import_module("onnx")  # torch imports it only at the end of the export, so check for it first
    examples = network.encode(new_games(load_variant(network.game), np.arange(2, dtype=np.uint64)))
    plain, file = _Plain(copy.deepcopy(network).cpu().eval(), type(examples)), io.BytesIO()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", torch.jit.TracerWarning)  # type: ignore[attr-defined]  # sizes are not constants
        tensors = tuple(as_tensors(examples))
        outputs = OUTPUTS[: len(plain(*tensors))]
        free = BOARD_AXES if isinstance(network, BoardNetwork) else {}
        axes = {name: {0: "positions", **free.get(name, {})} for name in (*examples._fields, *outputs)}
        # The older exporter, because the newer one's (`dynamo=True`) file of 9tka's network crashes ONNX Runtime 1.31.
        torch.onnx.export(
            plain,
            tensors,
            file,  # type: ignore[arg-type]  # file objects are accepted
            input_names=list(examples._fields),
            output_names=list(outputs),
            dynamic_axes=axes,
            opset_version=17,
            dynamo=False,
        )
    replace_file(path, [file.getvalue()])


class _Plain(nn.Module):
    """Wraps a network so that its inputs and outputs are single tensors."""

    def __init__(self, network: Any, kind: type[Any]) -> None:
        super().__init__()
        self.network, self.kind = network, kind

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        outputs = self.network(self.kind(*inputs))
        told = outputs.logits, outputs.values, outputs.owner_logits.softmax(-1)
        return told if outputs.score is None else (*told, outputs.score)
