"""The inputs of the network for Go that are not the same for all games; see `ninetka_agents.board_features`."""

from __future__ import annotations

import math

from ninetka_agents.board_features import Floats, Int8
from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import State
from ninetka_env.games.go.observation import write_standard_planes
from ninetka_env.games.go.rules import SCORINGS, write_legal_mask

NUM_GLOBALS = 2 + len(SCORINGS)
"""Number of global numbers: the lead, the komi, and the scoring, one-hot."""


@jit(refcount=False)
def write_game_inputs(game: State, planes: Int8, globals_: Floats, mask: Int8) -> None:
    """Write the planes `"standard"`, komi and scoring (one-hot), and the legal actions but for resigning.

    The komi is given from the view of the player to move, so it is negative for Black. The planes do not depend on the
    game's option `planes`.
    """
    write_standard_planes(game, int(game.to_move), planes)
    globals_[0] = (-0.5 if game.to_move == 0 else 0.5) * game.komi / math.sqrt(len(game.empty))
    for scoring in range(len(SCORINGS)):
        globals_[1 + scoring] = game.scoring == scoring
    write_legal_mask(game, mask[: len(game.empty) + 1])
