"""The inputs of the network for Go; the network itself is in `ninetka_agents.board_network`."""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ninetka_agents.board_features import Inputs, make_inputs
from ninetka_agents.board_network import BoardNetwork, NetworkConfig, observation_inputs
from ninetka_agents.go.inputs import NUM_GLOBALS
from ninetka_agents.outputs import ArrayInfo, ArrayPart, encoding_threads
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.go.observation import PLANE_COUNTS, STANDARD
from ninetka_env.games.go.rules import PLANE_SETS, SCORINGS
from ninetka_env.games.go.scoring import AREA, TERRITORY

__all__ = ["Network", "NetworkConfig"]

_STANDARD = PLANE_SETS.index("standard")
_BLACK = next(planes.first for planes in STANDARD if planes.name == "black")
_OPTION = ("positions_or_1",)
_EXPORT_INPUTS = observation_inputs(
    tuple(ArrayPart(*planes) for planes in STANDARD), "the viewer is the seat to move"
) | {
    "komi": ArrayInfo("float32", _OPTION, "the game's option komi: points added to White's score"),
    "scoring": ArrayInfo(
        "int64",
        _OPTION,
        "the game's option scoring: " + ", ".join(f"{code} {name!r}" for code, name in enumerate(SCORINGS)),
    ),
    "prisoners": ArrayInfo(
        "float32",
        _OPTION,
        "stones that the seat to move has captured minus stones that its opponent has captured; not used if scoring "
        f"is {AREA}",
    ),
}
_EXPORT_OPTIONS = {"planes": repr(PLANE_SETS[_STANDARD])}


class Network(BoardNetwork):
    """A network that reads the planes `"standard"`, the lead, the komi and the scoring. It never resigns."""

    game = "go"
    num_planes = PLANE_COUNTS[_STANDARD]
    num_globals = NUM_GLOBALS
    action_layers = 1
    other_actions = 2  # pass and resign
    export_inputs = _EXPORT_INPUTS
    export_options = _EXPORT_OPTIONS

    def encode(self, games: StateArray) -> Inputs:
        """Return the network inputs of (B,) states; see `ninetka_agents.go.inputs`."""
        side = math.isqrt(games.dtype["empty"].shape[0])
        return make_inputs(games, (self.num_planes, side, side), encoding_threads())

    def from_export(self, observation: Tensor, action_mask: Tensor, *more: Tensor) -> Inputs:
        """Return the inputs of `forward` for what the environment returns, with the planes `"standard"`.

        Args:
            observation: (B, 16, size, size) int8.
            action_mask: (B, A) int8; A is the number of points plus 1, or plus 2 if resigning is an action.
            more: `komi` float32, `scoring` int64 and `prisoners` float32, each (B,), or (1,) for all positions.
        """
        komi, scoring, prisoners = more
        points, side = observation.shape[2] * observation.shape[3], observation.shape[2]
        lead = _area_lead(observation[:, :2].float(), scoring, prisoners)
        signed_komi = komi[:, None] * (1 - 2 * observation[:, _BLACK, 0, :1].float())
        counting = (scoring[:, None] == torch.arange(len(SCORINGS))).float() + torch.zeros_like(lead)
        mask = torch.cat([action_mask[:, : points + 1], torch.zeros_like(action_mask[:, :1])], 1)
        return Inputs(observation, torch.cat([(lead + signed_komi) / side, signed_komi / side, counting], 1), mask)


def _area_lead(stones: Tensor, scoring: Tensor, prisoners: Tensor) -> Tensor:
    """Return (B, 1) float32: own points minus the opponent's, without komi; see `ninetka_env.games.go.scoring`.

    Args:
        stones: (B, 2, size, size) float32, own and the opponent's stones.
        scoring: (B,) or (1,) indices in `SCORINGS`.
        prisoners: (B,) or (1,) captured stones, own minus the opponent's.
    """
    own, other = _compiled_reach()(stones).flatten(2).unbind(1)
    area = (own - other).sum(1)
    difference = (stones[:, 0] - stones[:, 1]).sum((1, 2))
    beyond = torch.where(scoring == AREA, 0.0, prisoners - torch.where(scoring == TERRITORY, 1.0, 0.0) * difference)
    return (area + beyond)[:, None]


def _reach(stones: Tensor) -> Tensor:
    """Return `stones`, (B, 2, size, size), spread over empty points from neighbour to neighbour until nothing changes.

    A point that both colours reach cancels out in a difference of areas.
    """
    empty = 1 - stones.sum(1, keepdim=True)
    reached, changed = stones, True
    while changed:
        around = torch.maximum(
            functional.max_pool2d(reached, [3, 1], [1, 1], [1, 0]),
            functional.max_pool2d(reached, [1, 3], [1, 1], [0, 1]),
        )
        grown = torch.maximum(stones, around * empty)
        changed = bool((grown != reached).any())
        reached = grown
    return reached


@functools.cache
def _compiled_reach() -> Any:
    """Return `_reach` compiled by TorchScript, so that its loop becomes a loop in exported networks."""
    return torch.jit.script(_reach)
