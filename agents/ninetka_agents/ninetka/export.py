"""A trained network as an ONNX file, for programs without torch."""

from __future__ import annotations

import copy
import importlib
import io
import warnings

import numpy as np
import torch
from torch import Tensor, nn

from ninetka_agents.ninetka.features import make_features
from ninetka_agents.ninetka.network import Inputs, Network, as_inputs
from ninetka_env.core.files import StrPath, replace_file
from ninetka_env.games.ninetka.game import Game

INPUTS = list(Inputs._fields)
OUTPUTS = ["logits", "values", "owners"]


def export_onnx(network: Network, path: StrPath) -> None:
    """Write a network into an ONNX file.

    Its inputs are the int8 arrays of `ninetka_agents.ninetka.features.Features` by their names, for any number N of
    positions. Its outputs are float32: `logits` (N, 122), -1e9 where illegal; `values` (N, 4), the chance to win per
    relative seat; `owners` (N, 9, 5), the chance of each section's final owner: relative seats 0..3, nobody.

    Raises:
        ValueError: if the network plays another game.
        ImportError: if the package onnx is missing.
        OSError: if the path cannot be written, naming it.
    """
    if network.game != Network.game:
        raise ValueError(f"only networks of {Network.game} are exported; this one plays {network.game}")
    importlib.import_module("onnx")  # torch needs it only at the very end
    examples = tuple(as_inputs(make_features(np.repeat(Game.new(2).records, 2))))
    plain, file = _Plain(copy.deepcopy(network).cpu().eval()), io.BytesIO()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        # The older exporter: what the newer one (`dynamo=True`) makes of this network crashes ONNX Runtime 1.31.
        torch.onnx.export(
            plain,
            examples,
            file,  # type: ignore[arg-type]  # a file will do
            input_names=INPUTS,
            output_names=OUTPUTS,
            dynamic_axes={name: {0: "positions"} for name in INPUTS + OUTPUTS},
            opset_version=17,
            dynamo=False,
        )
    replace_file(path, [file.getvalue()])


class _Plain(nn.Module):
    """The network with one tensor per input and output."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        outputs = self.network(Inputs(*inputs))
        return outputs.logits, outputs.values, outputs.owner_logits.softmax(-1)
