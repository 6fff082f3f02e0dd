"""Inputs of `board_network` on a GPU, and what the inputs of all networks there need; see `encode_on_device`.

The kernels call the compiled functions that compute the inputs on a CPU, so the inputs are the same, bit for bit.
Nothing imports this module before it is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import cuda
from torch import Tensor

from ninetka_agents import board_features
from ninetka_agents.board_features import write_inputs
from ninetka_env.core.registry import limits_of
from ninetka_env.gpu.device import as_array, jit_kernel, launch_per_game
from ninetka_env.gpu.vector import DeviceVectorEnv


@jit_kernel
def write_input_rows(games: Any, nodes: int, planes: Any, globals_: Any, mask: Any) -> None:
    """Write the inputs of positions on a board."""
    index = cuda.grid(1)
    if index < len(games):
        scores = cuda.local.array(2, np.float64)
        write_inputs(games[index], nodes, planes[index], globals_[index], mask[index], scores)


def encode_boards(network: Any, envs: DeviceVectorEnv) -> board_features.Inputs:
    """Return the inputs of a `BoardNetwork`; see `BoardNetwork.encode_on_device`."""
    check_game(network, envs)
    _, height, width = envs.variant.sizes.planes
    planes = new_rows(envs, torch.int8, network.num_planes, height, width)
    globals_ = new_rows(envs, torch.float32, network.num_globals)
    mask = new_rows(envs, torch.int8, limits_of(envs.variant.dtype).actions)
    arrays = as_array(planes.flatten(1)), as_array(globals_), as_array(mask)
    write_rows(write_input_rows, envs, height * width, *arrays)
    return board_features.Inputs(planes, globals_, mask)


def check_game(network: Any, envs: DeviceVectorEnv) -> None:
    """Raise `ValueError` unless the network plays the game of `envs`."""
    if network.game != envs.variant.definition.name:
        raise ValueError(f"the network plays {network.game}, the games are {envs.variant.definition.name}")


def new_rows(envs: DeviceVectorEnv, dtype: torch.dtype, *shape: int) -> Tensor:
    """Return a tensor of zeros with a row of this shape for each game."""
    return torch.zeros((envs.num_envs, *shape), dtype=dtype, device=envs.device)


def write_rows(kernel: Any, envs: DeviceVectorEnv, *arguments: Any) -> None:
    """Launch a kernel whose first argument is the array of states, with a thread per game."""
    games = as_array(envs.state_bytes, envs.variant.dtype)
    launch_per_game(kernel, envs.device, envs.num_envs, games, *arguments)
