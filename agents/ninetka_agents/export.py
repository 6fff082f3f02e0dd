"""Export a trained network as an ONNX file, for programs without torch.

The command `ninetka export` calls `export_onnx`. `checkpoint.py` saves and loads networks for this package.
"""

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

OUTPUT_NAMES = ("logits", "values", "owners", "score")
DYNAMIC_BOARD_AXES = {
    "planes": {2: "height", 3: "width"},
    "mask": {1: "actions"},
    "logits": {1: "actions"},
    "owners": {1: "targets"},
}
"""For networks that play on boards of any size: the dimensions of each input and output that depend on the board size,
by index, with their names. The first dimension, the number of positions, is dynamic for all networks."""


def export_onnx(network: Any, path: StrPath) -> None:
    """Write a network of any game to an ONNX file.

    The inputs have the names of the arrays of `network.encode`. Arrays that the network does not use are left out: a
    9tka network that is not built with relations between slots has no inputs for them. The number N of positions may
    vary, and so may the board size if the network can play on several sizes.

    The outputs are float32: `logits` (N, A), -1e9 for illegal actions; `values` (N, P), the win probability per
    relative seat; `owners` (N, T, P + 1), the probabilities that each target (section, point or node) is owned at the
    end by each relative seat or, last, by none; `score` (N,), if the network predicts it. See
    `ninetka_agents.outputs.Outputs`.

    Raises:
        ImportError: if the package onnx is missing.
        OSError: if the file cannot be written; the message names the path.
    """
    importlib.import_module("onnx")  # torch imports it only at the end of the export, so check for it first
    examples = network.encode(new_games(load_variant(network.game), np.arange(2, dtype=np.uint64)))
    tensor_network, file = _TensorNetwork(copy.deepcopy(network).cpu().eval(), type(examples)), io.BytesIO()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", torch.jit.TracerWarning)  # type: ignore[attr-defined]  # sizes are dynamic
        tensors = tuple(as_tensors(examples))
        outputs = OUTPUT_NAMES[: len(tensor_network(*tensors))]
        dynamic = DYNAMIC_BOARD_AXES if isinstance(network, BoardNetwork) else {}
        axes = {name: {0: "positions", **dynamic.get(name, {})} for name in (*examples._fields, *outputs)}
        # Use the older exporter: for 9tka's network, the newer one (`dynamo=True`) writes a file that crashes ONNX
        # Runtime 1.31.
        torch.onnx.export(
            tensor_network,
            tensors,
            file,  # type: ignore[arg-type]  # file objects are accepted
            input_names=list(examples._fields),
            output_names=list(outputs),
            dynamic_axes=axes,
            opset_version=17,
            dynamo=False,
        )
    replace_file(path, [file.getvalue()])


class _TensorNetwork(nn.Module):
    """Wraps a network so that its inputs and outputs are single tensors."""

    def __init__(self, network: Any, kind: type[Any]) -> None:
        super().__init__()
        self.network, self.kind = network, kind

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        outputs = self.network(self.kind(*inputs))
        tensors = outputs.logits, outputs.values, outputs.owner_logits.softmax(-1)
        return tensors if outputs.score is None else (*tensors, outputs.score)
