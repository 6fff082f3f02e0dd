"""Random openings: without them, agents that open alike in every game would play few games again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Agent
from ninetka_env.core.chance import Streams, draw_each
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import Records

USUAL_PLIES = 4
"""Plies of an opening where there is need for one."""


def usual_opening_plies(agents: Sequence[Agent], variant: Variant) -> int:
    """Return how many plies are drawn at random unless told: `USUAL_PLIES` if there is a lineup of networks alone.

    Networks open alike in every game: those that play their most probable action, with or without search. It is 0 where
    chance draws the start anyway.
    """
    alike = sum(agent.opens_alike for agent in agents)
    is_needed = alike >= min(len(agents), variant.num_players) and not variant.sizes.drawn
    return USUAL_PLIES if is_needed else 0


def draw_openings(variant: Variant, starts: Records, streams: Streams, plies: int) -> npt.NDArray[np.int16]:
    """Draw random legal actions to follow each start, each from its stream, which moves on if there are any.

    Returns:
        (N, plies) int16; an opening ends early, in -1, where the game would end with the action drawn.
    """
    openings = np.full((len(starts), plies), -1, np.int16)
    if plies:
        seeds = np.empty(len(starts), np.uint64)
        draw_each(streams, seeds)
        for start, seed, opening in zip(starts, seeds, openings, strict=True):
            _draw_opening(variant, start, np.random.default_rng(int(seed)), opening)
    return openings


def _draw_opening(variant: Variant, start: Any, rng: np.random.Generator, opening: npt.NDArray[np.int16]) -> None:
    game = variant.game_class(np.array([start], variant.dtype))
    for ply in range(len(opening)):
        action = int(rng.choice(game.legal_actions()))
        game.play(action)
        if game.is_over:
            return
        opening[ply] = action
