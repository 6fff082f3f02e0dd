"""Who wins for certain: what a search asks at its leaves, if the game brings a prover (`Parts.prover`).

A prover is for two players, and tells a winner or nothing; a game without one never knows more than the rules.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from ninetka_agents.parts import find_in_prover
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.verbs import Record, verb

Prover: TypeAlias = Any
"""The memory of a prover, whatever the game makes it."""


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
