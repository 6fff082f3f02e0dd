"""Hooks for game-specific heuristics (`Parts.knowledge`) and proofs (`Parts.prover`) in searches.

Heuristics provide better playouts, priors and candidates. Provers are for two players: called at a leaf, they return
the certain winner or nothing. Without them, a search uses the rules alone.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ninetka_agents.parts import find_in_knowledge, find_in_prover
from ninetka_env.core.chance import Streams
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.verbs import Record, Trace, Words, traced_playout, verb, winner_of

Memory: TypeAlias = Any
"""Scratch of the heuristics, of any type; it carries no information from one call to the next."""
Priors: TypeAlias = npt.NDArray[np.float32]
"""(actions, 2) float32: for each action, its initial virtual visits and the wins among them."""
Prover: TypeAlias = Any
"""A prover, of any type."""


@verb(find=find_in_knowledge)
def make_memory(game: Record) -> Memory:
    """Make the scratch for a search of games of this dtype."""
    return 0


@verb(find=find_in_knowledge)
def heavy_playout(game: Record, streams: Streams, index: int, trace: Trace, memory: Memory) -> int:
    """Play `game` out by a good policy, record the turns in `trace`, and return the winning seat or `DRAWN`.

    The playout may stop as soon as the winner is clear; `game` is undefined afterwards.
    """
    traced_playout(game, streams, index, trace)
    return winner_of(game)


@verb(find=find_in_knowledge)
def add_priors(game: Record, priors: Priors, memory: Memory) -> None:
    """Add prior visits and wins of the legal actions to `priors`."""


@verb(find=find_in_knowledge)
def keep_local(game: Record, choices: Words) -> None:
    """Remove the choices that are far from everything on the board; at least one choice remains."""


@verb(find=find_in_prover)
def make_prover(game: Record, nodes: int) -> Prover:
    """Make a prover that visits at most `nodes` nodes per proof; with 0, it proves nothing."""
    return 0


@verb(find=find_in_prover)
def clear_prover(game: Record, prover: Prover) -> None:
    """Clear the prover's results of other games, so that games do not depend on each other."""


@verb(find=find_in_prover)
def proven_winner(game: Record, prover: Prover) -> int:
    """Return the seat that wins for certain, `UNFINISHED` if it is not known."""
    return UNFINISHED
