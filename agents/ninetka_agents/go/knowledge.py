"""Heuristics of Go for tree search: heavy playouts and priors; `ninetka_agents.search.knowledge` calls them."""

from __future__ import annotations

import numpy as np

from ninetka_agents.go.board import BOARD, load
from ninetka_agents.go.playout import finish
from ninetka_agents.go.priors import add_all
from ninetka_agents.search.knowledge import Memory, Priors
from ninetka_env.core.chance import Streams
from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import Record, Trace


@jit
def make_memory(game: Record) -> Memory:
    """Return the workspace of a search: a (1,) array with a board for playouts."""
    return np.zeros(1, BOARD)


@jit(counted=False)
def heavy_playout(game: Record, streams: Streams, index: int, trace: Trace, memory: Memory) -> int:
    """Play to the end by `playout.finish`; return the winner."""
    load(memory[0], game, int(np.sqrt(len(game.empty))))
    return finish(memory[0], game, streams, index, trace)


@jit(counted=False)
def add_priors(game: Record, priors: Priors, memory: Memory) -> None:
    """Add the priors of `priors.add_all`."""
    load(memory[0], game, int(np.sqrt(len(game.empty))))
    add_all(memory[0], game, priors)
