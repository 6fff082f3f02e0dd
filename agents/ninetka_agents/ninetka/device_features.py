"""Features of 9tka's network on a GPU; see `ninetka_agents.ninetka.network.Network.encode_on_device`.

The kernel calls the compiled functions of `ninetka_agents.ninetka.features`, so the features are the same, bit for bit.
Nothing imports this module before it is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import cuda
from torch import Tensor

from ninetka_agents.device_inputs import check_game, new_rows, write_rows
from ninetka_agents.ninetka.feature_tables import (
    NUM_GLOBAL_FEATURES,
    NUM_RELATIONS,
    NUM_SECTION_FEATURES,
    NUM_SLOT_FEATURES,
)
from ninetka_agents.ninetka.features import SCRATCH_WORDS, write_features
from ninetka_env.games.ninetka.geometry import NUM_ACTIONS, NUM_SECTIONS, NUM_SLOTS
from ninetka_env.gpu.device import as_array, jit_kernel
from ninetka_env.gpu.vector import DeviceVectorEnv


@jit_kernel
def write_feature_rows(games: Any, slots: Any, sections: Any, globals_: Any, relations: Any, mask: Any) -> None:
    """Write the features of positions, with packed relations."""
    index = cuda.grid(1)
    if index < len(games):
        scratch = cuda.local.array(SCRATCH_WORDS, np.int64)
        features = slots[index], sections[index], globals_[index], relations[index], mask[index]
        write_features(games[index], games[index].to_move, features, scratch)


def encode_games(network: Any, envs: DeviceVectorEnv) -> tuple[Tensor, ...]:
    """Return the inputs of the network of 9tka, in order; see `Network.encode_on_device`."""
    check_game(network, envs)
    inputs = (
        new_rows(envs, torch.int8, NUM_SLOTS, NUM_SLOT_FEATURES),
        new_rows(envs, torch.int8, NUM_SECTIONS, NUM_SECTION_FEATURES),
        new_rows(envs, torch.int8, NUM_GLOBAL_FEATURES),
        new_rows(envs, torch.uint8, NUM_SLOTS * NUM_RELATIONS * NUM_SLOTS // 8),
        new_rows(envs, torch.int8, NUM_ACTIONS),
    )
    write_rows(write_feature_rows, envs, *map(as_array, inputs))
    return inputs
