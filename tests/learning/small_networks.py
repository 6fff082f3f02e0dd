"""Minimal networks for Go and Kropki, for tests of code that is independent of the game.

`use_small_networks(monkeypatch)` gives these networks to Go and Kropki until the end of a test.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from ninetka_agents import plugins
from ninetka_agents.outputs import MASKED, Outputs
from ninetka_env.core.jit import jit
from ninetka_env.core.registry import get_definition, limits_of
from ninetka_env.core.verbs import StateArray, num_actions, write_legal_mask, write_observation
from ninetka_train.learning import config

NUM_POINTS = {"go:size=5": 25, "kropki:width=6,height=6": 36}
"""The variants that the networks support, and the numbers of points of their boards."""
NUM_PLANES = {"go": 16, "kropki": 14}


class Arrays(NamedTuple):
    planes: Any
    mask: Any


@dataclass(frozen=True)
class NetworkConfig:
    width: int = 8
    blocks: int = 1

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f"width={self.width}: expected at least 1")


@jit
def write_arrays(games: StateArray, planes: Any, mask: Any) -> None:
    for index in range(len(games)):
        write_observation(games[index], games[index].to_move, planes[index])
        write_legal_mask(games[index], mask[index, : num_actions(games[index])])


class Network(nn.Module):
    """Two layers over all planes. `apply_symmetries` changes nothing, but `symmetry_calls` counts its calls."""

    game: ClassVar[str]
    points: ClassVar[int]
    bf16: ClassVar[bool] = False
    num_symmetries: ClassVar[int] = 8
    symmetry_calls: ClassVar[int] = 0

    def __init__(self, shape: NetworkConfig | None = None) -> None:
        super().__init__()
        self.config = shape = shape or NetworkConfig()
        self.limits = limits_of(next(iter(get_definition(self.game).dtypes))) if self.game == "kropki" else None
        self.limits = self.limits or limits_of(get_definition("go").variant(size=5).dtype)
        self.hidden = nn.Linear(NUM_PLANES[self.game] * self.points, shape.width)
        players = self.limits.players
        self.heads = nn.ModuleList(
            nn.Linear(shape.width, size)
            for size in (self.limits.actions, players + 1, self.limits.targets * (players + 1), 1)
        )

    @property
    def device(self) -> torch.device:
        return self.hidden.weight.device

    def encode(self, games: StateArray) -> Arrays:
        planes = np.zeros((len(games), NUM_PLANES[self.game] * self.points), np.int8)
        mask = np.zeros((len(games), self.limits.actions), np.int8)
        write_arrays(games, planes, mask)
        return Arrays(planes, mask)

    def forward(self, inputs: Arrays) -> Outputs:
        hidden = self.hidden(inputs.planes.float()).relu()
        policy, value, owners, score = (head(hidden).float() for head in self.heads)
        owners = owners.view(len(owners), self.limits.targets, -1)
        return Outputs(policy.masked_fill(inputs.mask == 0, MASKED), value, owners, score[:, 0])

    def apply_symmetries(self, arrays: Arrays, policy: Any, owners: Any, indices: Any) -> tuple[Arrays, Any, Any]:
        type(self).symmetry_calls += 1
        return arrays, policy, owners


def use_small_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give Go and Kropki these networks, and a weak benchmark opponent."""
    config.config_class.cache_clear()
    for spec, points in NUM_POINTS.items():
        game = spec.partition(":")[0]
        module = ModuleType(f"small_network_{game}")
        module.Network = type("Network", (Network,), {"game": game, "points": points})
        module.NetworkConfig = NetworkConfig
        monkeypatch.setitem(sys.modules, module.__name__, module)
        own = replace(plugins.plugins_of(game), network=module.__name__, evaluation_opponents=("random",))
        monkeypatch.setitem(plugins._PLUGINS, game, own)
