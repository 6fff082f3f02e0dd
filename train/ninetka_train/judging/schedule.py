"""Who sits where in a match.

A *lineup* is who sits at the table, a *seating* who holds which seat. The seat decides a lot, so a lineup is played in
*rotation groups*: one game for each of its distinct seatings, all from the same start and with the same random numbers
(a paired design: agents that decide alike cancel out exactly).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
import numpy.typing as npt

Lineup = tuple[int, ...]


@dataclass(frozen=True)
class Schedule:
    """Which agent holds which seat in each of T games: lineup by lineup, group by group, seating by seating."""

    lineups: list[Lineup]
    """The agents of each lineup, ascending; an agent that fills several seats stands there several times."""
    groups_per_lineup: int
    seatings: npt.NDArray[np.int64]
    """(T, n) the agent in each seat of each game."""

    @property
    def rotation(self) -> int:
        """The games of a group: the number of distinct seatings, the same for every lineup."""
        return len(self.seatings) // (len(self.lineups) * self.groups_per_lineup)


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
    groups = math.ceil(num_games / len(seatings[0]))
    table = np.concatenate([np.tile(np.array(own, np.int64), (groups, 1)) for own in seatings])
    return Schedule(lineups, groups, table)
