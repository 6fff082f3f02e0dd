"""Who sits where in a match.

A *lineup* is who sits at the table, a *seating* who holds which seat. The seat decides a lot, so a lineup is played in
*rotation groups*: one game for each of its distinct seatings, all from the same start and with the same random numbers
(a paired design: agents that decide alike cancel out exactly).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations

import numpy as np
import numpy.typing as npt

Lineup = tuple[int, ...]


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
