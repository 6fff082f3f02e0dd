"""What a match comes to: its settings, and the games that were played, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.game import Event
from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_env.core.registry import Variant, load_variant
from ninetka_env.core.verbs import Records
from ninetka_train.judging.schedule import Schedule, make_schedule

NO_ACTION = -1
"""Fills the places after the end of a game in `Results.actions`."""
FAILURE = "failure"
"""The tag of a saved game for what went wrong with the agent that lost it so."""
MOST_LETTERS = 1000
"""Of a name or a failure in saved games."""


def line_of(name: str) -> str:
    """Return the name of an agent as saved games have it: one line of printable characters."""
    return "".join(char if char.isprintable() else "?" for char in name).strip()[:MOST_LETTERS] or "?"


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names that differ, also as saved games have them: the second `random` becomes `random (2)`."""
    unique: dict[str, str] = {}
    for name in names:
        number = 2
        candidate = name
        while line_of(candidate) in unique:
            candidate, number = f"{name} ({number})", number + 1
        unique[line_of(candidate)] = candidate
    return tuple(unique.values())


@dataclass(frozen=True)
class Settings:
    """What was asked for."""

    agents: tuple[str, ...]
    """The agents' names, made unique; agents are known by their place here."""
    game: str
    """The spec of the game, such as `"ninetka:num_players=3"`."""
    num_players: int
    num_games: int
    """Games asked for per lineup; played are whole rotation groups."""
    seed: int | None
    """None if the games come from files and do not share one."""
    batch: int | None
    """None if the games come from files."""
    opening_plies: int = 0
    """Plies drawn at random at the beginning of each rotation group."""
    forfeit: bool = False
    """An agent that fails in a game has lost it; otherwise the match stops there."""

    @property
    def variant(self) -> Variant:
        """The game with its options."""
        return load_variant(self.game)

    def make_schedule(self) -> Schedule:
        """Plan the games of a match with these settings."""
        return make_schedule(len(self.agents), self.num_players, self.num_games)


@dataclass(frozen=True)
class MoveTimes:
    """Thinking time of K agents in the S stages: wall time of `act`, shared out over the games of the call."""

    seconds: npt.NDArray[np.float64]
    """(K, S) in all."""
    moves: npt.NDArray[np.int64]
    """(K, S) decisions taken."""
    slowest: npt.NDArray[np.float64]
    """(K, S) seconds per move in the slowest call."""

    @classmethod
    def new(cls, num_agents: int, num_stages: int) -> MoveTimes:
        """Return one that has counted nothing."""
        shape = (num_agents, num_stages)
        return cls(np.zeros(shape), np.zeros(shape, np.int64), np.zeros(shape))

    def of(self, agents: npt.NDArray[np.int64]) -> MoveTimes:
        """Return those of some agents."""
        return MoveTimes(self.seconds[agents], self.moves[agents], self.slowest[agents])

    def add(self, agent: int, stage: int, seconds: float, moves: int) -> None:
        """Count decisions of one call of `act`, and their share of its time."""
        self.seconds[agent, stage] += seconds
        self.moves[agent, stage] += moves
        self.slowest[agent, stage] = max(self.slowest[agent, stage], seconds / moves)

    def join(self, other: MoveTimes) -> None:
        """Add the decisions that another one counted."""
        self.seconds[:] += other.seconds
        self.moves[:] += other.moves
        np.maximum(self.slowest, other.slowest, out=self.slowest)


class Part(NamedTuple):
    """What came out of some of a match's games: the rows of `Results` that are theirs, and the rest of them."""

    winners: npt.NDArray[np.int64]
    scores: npt.NDArray[Any]
    actions: npt.NDArray[np.int16]
    times: MoveTimes
    events: dict[int, Event]
    failures: dict[int, str]


@dataclass(frozen=True)
class Results:
    """T games, in the order of the schedule; all are over once `play_games` returns them."""

    settings: Settings
    schedule: Schedule
    winners: npt.NDArray[np.int64]
    """(T,) the seat that won, `DRAWN`, or `UNFINISHED` in games still to be played."""
    scores: npt.NDArray[Any]
    """(T, n) scores per seat."""
    starts: Records
    """(G,) the state that each rotation group started from."""
    actions: npt.NDArray[np.int16]
    """(T, most plies) the actions played, then `NO_ACTION`."""
    times: MoveTimes
    events: dict[int, Event] = field(default_factory=dict)
    """By game, what ended it before its rules did."""
    failures: dict[int, str] = field(default_factory=dict)
    """By game, what went wrong with the player that lost it so, a sentence."""

    @property
    def winning_agents(self) -> npt.NDArray[np.int64]:
        """(T,) the agent that won; `DRAWN` and `UNFINISHED` stay as they are."""
        won = self.schedule.seatings[np.arange(len(self.winners)), self.winners.clip(0)]
        return np.where(self.winners >= 0, won, self.winners)

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """(T, K) how much of each game each agent won: all, nothing, or 1 / n for each of its seats in a drawn one."""
        everyone = np.arange(len(self.settings.agents))
        won = (self.winning_agents[:, None] == everyone).astype(np.float64)
        held = (self.schedule.seatings[:, :, None] == everyone).mean(axis=1)
        return np.where((self.winners == DRAWN)[:, None], held, won)

    @property
    def is_over(self) -> npt.NDArray[np.bool_]:
        """(T,) which games are over."""
        return self.winners != UNFINISHED

    def failure_of(self, game: int, text: str) -> str:
        """Return the sentence that says what went wrong in a game with the agent that an event made lose it."""
        agent = self.schedule.seatings[game, self.events[game].seat]
        return f"game {game + 1}: agent {self.settings.agents[agent]!r}: {text}"

    def part(self, games: range) -> Part:
        """Return what came out of these games, the only ones played."""
        rows = slice(games.start, games.stop)
        return Part(self.winners[rows], self.scores[rows], self.actions[rows], self.times, self.events, self.failures)

    def put(self, games: range, part: Part) -> None:
        """Take in what came out of these games elsewhere."""
        rows = slice(games.start, games.stop)
        self.winners[rows], self.scores[rows], self.actions[rows] = part.winners, part.scores, part.actions
        self.times.join(part.times)
        self.events.update(part.events)
        self.failures.update(part.failures)

    def whole_groups(self) -> Results:
        """Return the rotation groups whose games are all over, and the agents in them, as results of their own.

        In a group that is not over, some agents have had a better seat than others. There may be no group.
        """
        groups, over = self.schedule.group_of, self.is_over
        whole = np.bincount(groups[over], minlength=len(self.starts)) == np.bincount(groups, minlength=len(self.starts))
        kept = whole[groups]
        if kept.all():
            return self
        return self._of_games(kept, whole)._of_agents_who_played()

    def _of_games(self, kept: npt.NDArray[np.bool_], whole: npt.NDArray[np.bool_]) -> Results:
        """Return the games of a mask (T,), those of the groups of a mask (G,)."""
        place = dict(zip(np.flatnonzero(kept).tolist(), range(int(kept.sum())), strict=True))
        return replace(
            self,
            schedule=self.schedule.part(kept),
            winners=self.winners[kept],
            scores=self.scores[kept],
            starts=self.starts[whole],
            actions=self.actions[kept],
            events={place[game]: event for game, event in self.events.items() if game in place},
            failures={place[game]: failure for game, failure in self.failures.items() if game in place},
        )

    def _of_agents_who_played(self) -> Results:
        """Return the same games without the agents that hold no seat in any of them."""
        there, seatings = np.unique(self.schedule.seatings, return_inverse=True)
        new = {old: number for number, old in enumerate(there.tolist())}
        schedule = replace(
            self.schedule,
            lineups=[tuple(new[agent] for agent in lineup) for lineup in self.schedule.lineups],
            seatings=seatings.reshape(self.schedule.seatings.shape),
        )
        settings = replace(self.settings, agents=tuple(self.settings.agents[agent] for agent in there))
        return replace(self, settings=settings, schedule=schedule, times=self.times.of(there))
