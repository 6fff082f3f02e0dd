"""What a game's own modules can tell a search: about good play (`Parts.knowledge`) and who wins (`Parts.prover`).

The first brings better playouts, priors and candidates. The second is for two players and is asked at leaves who wins
for certain; it returns a winner or nothing. A game without them is searched by the rules alone.
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
"""Room that the functions below work in, whatever the game makes it; nothing of a position outlives a call."""
Priors: TypeAlias = npt.NDArray[np.float32]
"""(actions, 2) float32: for each action, how many virtual visits it begins with, and the wins among them."""
Prover: TypeAlias = Any
"""The memory of a prover, whatever the game makes it."""


@verb(find=find_in_knowledge)
def make_memory(game: Record) -> Memory:
    """Make the room that a search over games of this type needs."""
    return 0


@verb(find=find_in_knowledge)
def heavy_playout(game: Record, streams: Streams, index: int, trace: Trace, memory: Memory) -> int:
    """Play on from `game` by a good policy, note each turn in `trace` and return the seat that wins, or `DRAWN`.

    It may stop as soon as the winner is clear; what it leaves of `game` is undefined.
    """
    traced_playout(game, streams, index, trace)
    return winner_of(game)


@verb(find=find_in_knowledge)
def add_priors(game: Record, priors: Priors, memory: Memory) -> None:
    """Add what is known of the legal actions, before any is tried, to `priors`."""


@verb(find=find_in_knowledge)
def keep_local(game: Record, choices: Words) -> None:
    """Take those choices out that are far from all that has been played; at least one of them stays."""


@verb(find=find_in_prover)
def make_prover(game: Record, nodes: int) -> Prover:
    """Make a prover that visits at most `nodes` nodes per question; with 0 it never knows."""
    return 0


@verb(find=find_in_prover)
def clear_prover(game: Record, prover: Prover) -> None:
    """Let the prover forget what it found out in another game, so that one does not depend on another."""


@verb(find=find_in_prover)
def proven_winner(game: Record, prover: Prover) -> int:
    """Return the seat that wins for certain, `UNFINISHED` where that is not known."""
    return UNFINISHED
