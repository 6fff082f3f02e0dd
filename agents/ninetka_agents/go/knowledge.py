"""What searches ask of Go's own knowledge; see `ninetka_agents.search.knowledge`."""

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
    """Make a board for playouts."""
    return np.zeros(1, BOARD)


@jit(counted=False)
def heavy_playout(game: Record, streams: Streams, index: int, trace: Trace, memory: Memory) -> int:
    """Play on by `playout.finish`."""
    load(memory[0], game, int(np.sqrt(len(game.empty))))
    return finish(memory[0], game, streams, index, trace)


@jit(counted=False)
def add_priors(game: Record, priors: Priors, memory: Memory) -> None:
    """Add what `priors.add_all` says."""
    load(memory[0], game, int(np.sqrt(len(game.empty))))
    add_all(memory[0], game, priors)
