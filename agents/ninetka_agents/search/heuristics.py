"""Hooks for game-specific heuristics (`GamePlugins.heuristics`) and proofs (`GamePlugins.prover`) in searches.

Heuristics improve playouts, provide priors and limit the actions that are searched. A prover is for two players: at a
leaf, it returns the proven winner, if any. The functions here are the defaults, which use the rules alone.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ninetka_agents.plugins import find_in_heuristics, find_in_prover
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.random_streams import Streams
from ninetka_env.core.verbs import BitSet, State, Trace, traced_playout, verb, winner_of

Scratch: TypeAlias = Any
"""Scratch memory of the heuristics, of any type; its contents do not matter between calls."""
Priors: TypeAlias = npt.NDArray[np.float32]
"""(actions, 2) float32: for each action, its initial virtual visits and the wins among them."""
Prover: TypeAlias = Any
"""A prover, of any type."""


@verb(find=find_in_heuristics)
def make_scratch(game: State) -> Scratch:
    """Make the scratch for a search of games of this dtype."""
    return 0


@verb(find=find_in_heuristics)
def heavy_playout(game: State, streams: Streams, index: int, trace: Trace, scratch: Scratch) -> int:
    """Play `game` by the game's playout policy, append the plies to `trace`, and return the winning seat or `DRAWN`.

    By default, the actions are random. The playout may stop as soon as the winner is clear; `game` is undefined
    afterwards.
    """
    traced_playout(game, streams, index, trace)
    return winner_of(game)


@verb(find=find_in_heuristics)
def add_priors(game: State, priors: Priors, scratch: Scratch) -> None:
    """Add prior visits and wins of the legal actions to `priors`; by default none."""


@verb(find=find_in_heuristics)
def keep_local(game: State, choices: BitSet) -> None:
    """Remove the choices that are far from all stones on the board, by default none; at least one choice remains."""


@verb(find=find_in_prover)
def make_prover(game: State, nodes: int) -> Prover:
    """Make a prover that visits at most `nodes` nodes per proof; with 0, the prover proves nothing."""
    return 0


@verb(find=find_in_prover)
def clear_prover(game: State, prover: Prover) -> None:
    """Clear the stored results of the prover, so that the search of a game does not depend on other games."""


@verb(find=find_in_prover)
def proven_winner(game: State, prover: Prover) -> int:
    """Return the seat that is proven to win, `UNFINISHED` if there is no proof."""
    return UNFINISHED
