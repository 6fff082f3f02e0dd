"""The inputs of the network for Kropki that are not the same for all games; see `ninetka_agents.board_features`."""

from __future__ import annotations

from ninetka_agents.board_features import Floats, Int8
from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import State
from ninetka_env.games.kropki.observation import write_observation
from ninetka_env.games.kropki.rules import DECLARED, num_actions, write_legal_mask

NUM_GLOBALS = 2
"""Number of global numbers: the lead, and whether regions are declared."""


@jit(refcount=False)
def write_game_inputs(game: State, planes: Int8, globals_: Floats, mask: Int8) -> None:
    """Write the observation, whether regions are declared, and the legal actions."""
    write_observation(game, int(game.to_move), planes)
    globals_[0] = game.territory == DECLARED
    write_legal_mask(game, mask[: num_actions(game)])
