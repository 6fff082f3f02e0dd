"""The inputs of the network for Go; the network itself is in `ninetka_agents.board_network`."""

from __future__ import annotations

import math

import numpy as np

from ninetka_agents.board_features import Inputs, make_inputs
from ninetka_agents.board_network import BoardNetwork, NetworkConfig
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.go.observation import PLANE_COUNTS
from ninetka_env.games.go.rules import PLANE_SETS, SCORINGS

__all__ = ["Network", "NetworkConfig"]

_STANDARD = PLANE_SETS.index("standard")


class Network(BoardNetwork):
    """A network that reads the planes `"standard"`, the lead, the komi and the scoring. It never resigns."""

    game = "go"
    num_planes = PLANE_COUNTS[_STANDARD]
    num_globals = 2 + len(SCORINGS)
    action_layers = 1
    other_actions = 2  # pass and resign

    def encode(self, games: StateArray) -> Inputs:
        """Return the network inputs of (B,) states.

        The komi is given from the view of the player to move, so it is negative for Black.
        """
        games = games.copy()
        games["planes"] = _STANDARD  # also for games whose observations have other planes
        points = games.dtype["empty"].shape[0]
        side = math.isqrt(points)
        komi = np.where(games["to_move"] == 0, -0.5, 0.5) * games["komi"] / side
        counting = games["scoring"][:, None] == np.arange(len(SCORINGS))
        more = np.column_stack([komi, counting]).astype(np.float32)
        inputs = make_inputs(games, (self.num_planes, side, side), more)
        inputs.mask[:, points + 1] = 0
        return inputs
