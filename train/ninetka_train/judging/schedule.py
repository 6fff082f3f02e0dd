"""Schedule of a match: which agent has which seat in each game, and random opening plies.

A *lineup* is the agents of a game, in any order; a *seating* assigns these agents to seats. Because seats differ in
strength, a lineup is played in *rotation groups*: one game for each of its distinct seatings, all from the same start
and with the same random numbers (a paired design: the advantages of seats and starts cancel exactly between
identical agents).
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
from ninetka_env.core.random_streams import Streams, draw_each
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import StateArray

Lineup = tuple[int, ...]
Openings = npt.NDArray[np.int16]
"""(G, plies) int16, the actions at the start of each rotation group; -1 after the end of a shorter opening."""
DEFAULT_OPENING_PLIES = 4
"""Number of plies of a random opening if `default_opening_plies` chooses to have one."""


@dataclass(frozen=True)
class Schedule:
    """The agent of each seat in each of T games, and the rotation groups.

    A new match is ordered by lineup, then group, then seating.
    """

    lineups: list[Lineup]
    """The agents of each lineup, ascending; an agent with several seats is repeated."""
    seatings: npt.NDArray[np.int64]
    """(T, n) the agent in each seat of each game."""
    lineup_of: npt.NDArray[np.int64]
    """(T,) the lineup of each game, an index into `lineups`."""
    group_of: npt.NDArray[np.int64]
    """(T,) the rotation group of each game, numbered from 0 across all lineups."""

    @property
    def rotation(self) -> int:
        """Games per group, which is the number of distinct seatings; the maximum if groups differ."""
        return int(np.bincount(self.group_of).max())

    @property
    def first_games(self) -> npt.NDArray[np.int64]:
        """(G,) the first game of each group."""
        return np.unique(self.group_of, return_index=True)[1]

    @cached_property
    def group_in_lineup(self) -> npt.NDArray[np.int64]:
        """(T,) the rotation group of each game of a new match, numbered from 0 in each lineup."""
        firsts = self.group_of[np.unique(self.lineup_of, return_index=True)[1]]
        return self.group_of - firsts[self.lineup_of]

    @property
    def groups_by_lineup(self) -> npt.NDArray[np.int64]:
        """(L,) number of groups of each lineup."""
        return np.bincount(self.lineup_of[self.first_games], minlength=len(self.lineups))

    @property
    def games_per_lineup(self) -> int:
        """Games per lineup; the maximum if lineups differ."""
        return int(np.bincount(self.lineup_of).max())

    def select(self, games: npt.NDArray[np.bool_]) -> Schedule:
        """Return the schedule of the whole rotation groups in mask `games` (T,); omit lineups without games."""
        lineups, lineup_of = np.unique(self.lineup_of[games], return_inverse=True)
        group_of = np.unique(self.group_of[games], return_inverse=True)[1]
        return Schedule([self.lineups[number] for number in lineups], self.seatings[games], lineup_of, group_of)


def make_lineups(num_agents: int, num_players: int) -> list[Lineup]:
    """Return all combinations of `num_players` agents; with fewer agents, repeat the last one."""
    if num_agents <= num_players:
        return [(*range(num_agents), *[num_agents - 1] * (num_players - num_agents))]
    return list(combinations(range(num_agents), num_players))


def count_lineups(num_agents: int, num_players: int) -> int:
    """Return the number of lineups of `make_lineups`."""
    return 1 if num_agents <= num_players else math.comb(num_agents, num_players)


def make_schedule(num_agents: int, num_players: int, num_games: int) -> Schedule:
    """Return a schedule with at least `num_games` games per lineup, in whole rotation groups."""
    lineups = make_lineups(num_agents, num_players)
    seatings = [sorted(set(permutations(lineup))) for lineup in lineups]
    rotation = len(seatings[0])
    groups = math.ceil(num_games / rotation)
    table = np.concatenate([np.tile(np.array(own, np.int64), (groups, 1)) for own in seatings])
    number = np.arange(len(table))
    return Schedule(lineups, table, number // (groups * rotation), number // rotation)


# Random openings. Without random openings, agents that repeat their openings would play only a few different games.


def default_opening_plies(agents: Sequence[Agent], variant: Variant) -> int:
    """Return the default number of random plies: `DEFAULT_OPENING_PLIES` if some lineup has only networks, otherwise 0.

    Networks that play their most probable action, with or without search, repeat their openings. The default is also 0
    if the start of the game is random.
    """
    num_repeating = sum(agent.repeats_openings for agent in agents)
    is_needed = num_repeating >= min(len(agents), variant.num_players) and not variant.sizes.num_drawn
    return DEFAULT_OPENING_PLIES if is_needed else 0


def draw_openings(variant: Variant, starts: StateArray, streams: Streams, plies: int) -> Openings:
    """Draw random legal actions after each start.

    Args:
        variant: the game with its options.
        starts: (N,) start states.
        streams: (N,) random streams, one per start; advanced unless `plies` is 0.
        plies: number of actions per start.

    Returns:
        (N, plies) int16; -1 from the first ply at which the drawn action would end the game.
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


def check_openings(variant: Variant, starts: StateArray, openings: Openings) -> None:
    """Raise `ValueError` if an opening, played after its start, has an illegal action or ends the game."""
    for group, (start, opening) in enumerate(zip(starts, openings, strict=True)):
        game = variant.game_class(np.array([start], variant.dtype))
        for ply, action in enumerate(opening[opening >= 0].tolist()):
            if action not in game.legal_actions():
                raise ValueError(f"openings, row {group}: {game.describe_illegal(action)} in ply {ply + 1}")
            game.play(action)
            if game.is_over:
                raise ValueError(f"openings, row {group}: ply {ply + 1} ends the game")
