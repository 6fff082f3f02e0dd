"""Who sits where in a match, and which plies are drawn at random before agents move.

A *lineup* is who sits at the table, a *seating* who holds which seat. The seat decides a lot, so a lineup is played in
*rotation groups*: one game for each of its distinct seatings, all from the same start and with the same random numbers
(a paired design: agents that decide alike cancel out exactly).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Agent
from ninetka_env.core.chance import Streams, draw_each
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import Records

Lineup = tuple[int, ...]
USUAL_PLIES = 4
"""Plies of an opening where there is need for one."""


@dataclass(frozen=True)
class Schedule:
    """Which agent holds which seat in each of T games, and which games belong together.

    A planned match goes lineup by lineup, group by group, seating by seating.
    """

    lineups: list[Lineup]
    """The agents of each lineup, ascending; an agent that fills several seats stands there several times."""
    seatings: npt.NDArray[np.int64]
    """(T, n) the agent in each seat of each game."""
    lineup_of: npt.NDArray[np.int64]
    """(T,) the lineup of each game, its place in `lineups`."""
    group_of: npt.NDArray[np.int64]
    """(T,) the rotation group of each game, numbered from 0 through all lineups."""

    @property
    def rotation(self) -> int:
        """The games of a group: the number of distinct seatings; of the largest group if they differ."""
        return int(np.bincount(self.group_of).max())

    @property
    def first_games(self) -> npt.NDArray[np.int64]:
        """(G,) the first game of each group."""
        return np.unique(self.group_of, return_index=True)[1]

    @cached_property
    def group_in_lineup(self) -> npt.NDArray[np.int64]:
        """(T,) the rotation group of each game, numbered from 0 in each lineup of a planned match."""
        firsts = self.group_of[np.unique(self.lineup_of, return_index=True)[1]]
        return self.group_of - firsts[self.lineup_of]

    @property
    def groups_by_lineup(self) -> npt.NDArray[np.int64]:
        """(L,) how many groups each lineup plays."""
        return np.bincount(self.lineup_of[self.first_games], minlength=len(self.lineups))

    @property
    def games_per_lineup(self) -> int:
        """The games of a lineup; of the one with the most games if they differ."""
        return int(np.bincount(self.lineup_of).max())

    def part(self, games: npt.NDArray[np.bool_]) -> Schedule:
        """Return the schedule of some games, whose mask (T,) takes whole groups; lineups without games are left out."""
        lineups, lineup_of = np.unique(self.lineup_of[games], return_inverse=True)
        group_of = np.unique(self.group_of[games], return_inverse=True)[1]
        return Schedule([self.lineups[number] for number in lineups], self.seatings[games], lineup_of, group_of)


def make_lineups(num_agents: int, num_players: int) -> list[Lineup]:
    """Return who plays whom: every choice of `num_players` agents; if there are fewer, the last one fills up."""
    if num_agents <= num_players:
        return [(*range(num_agents), *[num_agents - 1] * (num_players - num_agents))]
    return list(combinations(range(num_agents), num_players))


def count_lineups(num_agents: int, num_players: int) -> int:
    """Return how many lineups `make_lineups` makes."""
    return 1 if num_agents <= num_players else math.comb(num_agents, num_players)


def make_schedule(num_agents: int, num_players: int, num_games: int) -> Schedule:
    """Plan at least `num_games` games per lineup, in whole rotation groups."""
    lineups = make_lineups(num_agents, num_players)
    seatings = [sorted(set(permutations(lineup))) for lineup in lineups]
    rotation = len(seatings[0])
    groups = math.ceil(num_games / rotation)
    table = np.concatenate([np.tile(np.array(own, np.int64), (groups, 1)) for own in seatings])
    number = np.arange(len(table))
    return Schedule(lineups, table, number // (groups * rotation), number // rotation)


# Random openings: without them, agents that open alike in every game would play few games again and again


def usual_opening_plies(agents: Sequence[Agent], variant: Variant) -> int:
    """Return how many plies are drawn at random by default: `USUAL_PLIES` if there is a lineup of networks alone.

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
