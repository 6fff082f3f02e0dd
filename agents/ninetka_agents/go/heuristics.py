"""Heuristics of Go for tree search: heavy playouts and priors; `ninetka_agents.search.heuristics` calls them."""

from __future__ import annotations

import numpy as np

from ninetka_agents.go.board import BOARD_DTYPE, load
from ninetka_agents.go.playout import finish_playout
from ninetka_agents.go.priors import add_move_priors
from ninetka_agents.search.heuristics import Priors, Scratch
from ninetka_env.core.jit import jit
from ninetka_env.core.random_streams import Streams
from ninetka_env.core.verbs import State, Trace


@jit
def make_scratch(game: State) -> Scratch:
    """Return the scratch memory of a search: a (1,) array with a board for playouts."""
    return np.zeros(1, BOARD_DTYPE)


@jit(refcount=False)
def heavy_playout(game: State, streams: Streams, index: int, trace: Trace, scratch: Scratch) -> int:
    """Play the game to its end with `playout.finish_playout`; return the winning seat or `DRAWN`."""
    load(scratch[0], game, int(np.sqrt(len(game.empty))))
    return finish_playout(scratch[0], game, streams, index, trace)


@jit(refcount=False)
def add_priors(game: State, priors: Priors, scratch: Scratch) -> None:
    """Add the priors of `priors.add_move_priors`."""
    load(scratch[0], game, int(np.sqrt(len(game.empty))))
    add_move_priors(scratch[0], game, priors)
