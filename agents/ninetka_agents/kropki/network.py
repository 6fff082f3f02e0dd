"""The inputs of the network for Kropki; the network itself is in `ninetka_agents.board_network`."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ninetka_agents.board_features import Inputs, Int8, Ints, make_inputs
from ninetka_agents.board_network import BoardNetwork, NetworkConfig, observation_inputs
from ninetka_agents.kropki.inputs import NUM_GLOBALS
from ninetka_agents.outputs import ArrayPart, encoding_threads
from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.kropki.observation import NUM_PLANES, PLANES

__all__ = ["Network", "NetworkConfig"]

_PLANE = {plane.name: index for index, plane in enumerate(PLANES)}
_OPPOSING, _OPPOSING_INERT, _OWN_REGION, _DRAWABLE = (
    _PLANE[name] for name in ("opposing", "opposing_inert", "own_region", "drawable")
)
_OWN_INERT, _OPPOSING_REGION = _PLANE["own_inert"], _PLANE["opposing_region"]


class Network(BoardNetwork):
    """A board network whose inputs are the planes, the lead, and whether regions are declared."""

    game = "kropki"
    num_planes = NUM_PLANES
    num_globals = NUM_GLOBALS
    action_layers = 2  # placing on a node, drawing the core that the node names
    other_actions = 1  # ending the turn
    export_inputs = observation_inputs(
        tuple(ArrayPart(plane.name, index, 1, plane.meaning) for index, plane in enumerate(PLANES)),
        "the opposing seat is its opponent",
    )

    def encode(self, games: StateArray) -> Inputs:
        """Return the network's inputs for (B,) states on boards of one size, from the view of the seats to move.

        Raises:
            ValueError: if the boards have different sizes.
        """
        width, height = int(games["width"][0]), int(games["height"][0])
        if (games["width"] != width).any() or (games["height"] != height).any():
            sizes = sorted({*zip(games["width"].tolist(), games["height"].tolist(), strict=True)})
            found = ", ".join(f"{width} x {height}" for width, height in sizes[:3])
            raise ValueError(f"a batch of boards of several sizes, {found}: expected one size")
        return make_inputs(games, (self.num_planes, height, width), encoding_threads())

    def from_export(self, observation: Tensor, action_mask: Tensor, *more: Tensor) -> Inputs:
        """Return the inputs of `forward` for what the environment returns; see `BoardNetwork.from_export`.

        The planes determine the lead, and the number of actions whether regions are declared: 2N + 1, otherwise N.
        """
        planes, nodes = observation.flatten(2).float(), observation.shape[2] * observation.shape[3]
        won = (planes[:, _OWN_REGION] * planes[:, _OPPOSING_INERT]).sum(1, keepdim=True)
        lost = (planes[:, _OPPOSING_REGION] * planes[:, _OWN_INERT]).sum(1, keepdim=True)
        none = torch.zeros_like(observation[:, 0]).flatten(1)
        declared = torch.cat([torch.ones_like(action_mask), none], 1)[:, nodes : nodes + 1]
        mask = torch.cat([action_mask, none, none], 1)[:, : 2 * nodes + 1]
        return Inputs(observation, torch.cat([(won - lost) / nodes**0.5, declared.float()], 1), mask)

    def _transform_actions(self, inputs: Inputs, places: Ints, rows: Ints, actions: Ints) -> Ints:
        """Return the actions on the transformed board.

        A drawing action is numbered by one node of its core. A symmetry may change which node this is: see
        `_first_point`.
        """
        turned, nodes = super()._transform_actions(inputs, places, rows, actions), places.shape[1]
        drawings = np.flatnonzero((actions >= nodes) & (actions < 2 * nodes))
        planes, width = inputs.planes.reshape(len(places), self.num_planes, nodes), inputs.planes.shape[3]
        for which in drawings:
            row = rows[which]
            turned[which] = nodes + _first_point(planes[row], width, actions[which] - nodes, places[row])
        return turned


@jit
def _first_point(planes: Int8, width: int, node: int, places: Ints) -> int:
    """Return the node that names a core on the transformed board.

    This is the lowest node of the core's opposing points outside own regions.

    Args:
        planes: the planes of the original board.
        width: the width of the original board.
        node: any node of the core on the original board.
        places: for each node, its image on the transformed board.
    """
    waiting, core = [node], planes[_DRAWABLE].copy()
    core[node] = 0
    lowest = len(places)
    while waiting:
        here = waiting.pop()
        is_candidate = planes[_OPPOSING, here] or (planes[_OPPOSING_INERT, here] and not planes[_OWN_REGION, here])
        if is_candidate and places[here] < lowest:
            lowest = places[here]
        for step in (-width, -1, 1, width):  # enclosed nodes are never on the edge
            if core[here + step]:
                core[here + step] = 0
                waiting.append(here + step)
    return lowest
