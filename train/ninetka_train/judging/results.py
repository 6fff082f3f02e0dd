"""Settings of a match, and its games as arrays; `evaluate.py` computes figures from these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.game import Event
from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_env.core.registry import Variant, load_variant
from ninetka_env.core.verbs import StateArray
from ninetka_train.judging.schedule import Schedule, make_schedule

NO_ACTION = -1
"""Fill value after the end of a game in `Results.actions`."""
FAILURE_TAG = "failure"
"""Tag of a saved game that an agent lost by a failure; its text describes the failure."""
MAX_TAG_LENGTH = 1000
"""Maximum length of a name or a failure in saved games."""


def saved_name(name: str) -> str:
    """Return an agent's name as it is written in saved games.

    Unprintable characters become `?`, long names are truncated, and an empty name becomes `?`.
    """
    return "".join(char if char.isprintable() else "?" for char in name).strip()[:MAX_TAG_LENGTH] or "?"


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Make names unique, also after `saved_name`: the second `random` becomes `random (2)`."""
    unique: dict[str, str] = {}
    for name in names:
        number = 2
        candidate = name
        while saved_name(candidate) in unique:
            candidate, number = f"{name} ({number})", number + 1
        unique[saved_name(candidate)] = candidate
    return tuple(unique.values())


@dataclass(frozen=True)
class MatchSettings:
    """Settings of a match."""

    agents: tuple[str, ...]
    """Unique names of the agents; an agent's index in other arrays is its index here."""
    game: str
    """The spec of the game, such as `"ninetka:num_players=3"`."""
    num_players: int
    num_games: int
    """Requested games per lineup; they are rounded up to whole rotation groups."""
    seed: int | None
    """Random seed of the match; None if the games come from files and have different seeds."""
    batch: int | None
    """Maximum number of games played in lockstep; None if it depends on the agents or the games come from files."""
    opening_plies: int = 0
    """Number of random plies at the start of each rotation group."""
    forfeit: bool = False
    """Whether an agent that fails loses the game; otherwise the match stops."""

    @property
    def variant(self) -> Variant:
        """The game with its options."""
        return load_variant(self.game)

    def __getstate__(self) -> dict[str, Any]:
        """Add the variant to a pickle, so that a process which does not know the game imports its module."""
        return {**self.__dict__, "_variant": self.variant}

    def make_schedule(self) -> Schedule:
        """Return the schedule of a match with these settings."""
        return make_schedule(len(self.agents), self.num_players, self.num_games)


@dataclass(frozen=True)
class MoveTimes:
    """Thinking time of K agents in S stages: wall time of `act`, divided equally among the games of a call."""

    seconds: npt.NDArray[np.float64]
    """(K, S) total seconds."""
    moves: npt.NDArray[np.int64]
    """(K, S) number of moves."""
    slowest: npt.NDArray[np.float64]
    """(K, S) seconds per move in the slowest call."""

    @classmethod
    def zeros(cls, num_agents: int, num_stages: int) -> MoveTimes:
        """Return times of zero."""
        shape = (num_agents, num_stages)
        return cls(np.zeros(shape), np.zeros(shape, np.int64), np.zeros(shape))

    def select(self, agents: npt.NDArray[np.int64]) -> MoveTimes:
        """Return the times of some agents."""
        return MoveTimes(self.seconds[agents], self.moves[agents], self.slowest[agents])

    def add(self, agent: int, stage: int, seconds: float, moves: int) -> None:
        """Add moves of one call of `act`, and their share of its time."""
        self.seconds[agent, stage] += seconds
        self.moves[agent, stage] += moves
        self.slowest[agent, stage] = max(self.slowest[agent, stage], seconds / moves)

    def merge(self, other: MoveTimes) -> None:
        """Add other times to these."""
        self.seconds[:] += other.seconds
        self.moves[:] += other.moves
        np.maximum(self.slowest, other.slowest, out=self.slowest)


class PartialResults(NamedTuple):
    """Results of N games of a match. The fields are those of `Results`, with N rows instead of T."""

    winners: npt.NDArray[np.int64]
    scores: npt.NDArray[Any]
    actions: npt.NDArray[np.int16]
    times: MoveTimes
    events: dict[int, Event]
    failures: dict[int, str]


@dataclass(frozen=True)
class Results:
    """Results of T games, in the order of the schedule; after `play_games` all are finished."""

    settings: MatchSettings
    schedule: Schedule
    winners: npt.NDArray[np.int64]
    """(T,) the seat that won, `DRAWN`, or `UNFINISHED` if the game is not finished."""
    scores: npt.NDArray[Any]
    """(T, n) scores per seat."""
    starts: StateArray
    """(G,) start state of each rotation group."""
    actions: npt.NDArray[np.int16]
    """(T, maximum plies) the actions, padded with `NO_ACTION`."""
    times: MoveTimes
    events: dict[int, Event] = field(default_factory=dict)
    """Maps the index of a game to the event that ended the game early."""
    failures: dict[int, str] = field(default_factory=dict)
    """Maps the index of a game that an agent lost by a failure to a sentence about the failure."""

    @property
    def winning_agents(self) -> npt.NDArray[np.int64]:
        """(T,) index of the agent that won; `DRAWN` and `UNFINISHED` are passed through."""
        won = self.schedule.seatings[np.arange(len(self.winners)), self.winners.clip(0)]
        return np.where(self.winners >= 0, won, self.winners)

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """(T, K) share of each game that each agent won: 1, 0, or in a drawn game 1 / n for each of its seats."""
        everyone = np.arange(len(self.settings.agents))
        won = (self.winning_agents[:, None] == everyone).astype(np.float64)
        held = (self.schedule.seatings[:, :, None] == everyone).mean(axis=1)
        return np.where((self.winners == DRAWN)[:, None], held, won)

    @property
    def is_over(self) -> npt.NDArray[np.bool_]:
        """(T,) bool, which games are finished."""
        return self.winners != UNFINISHED

    def failure_sentence(self, game: int, text: str) -> str:
        """Return `text`, which describes a failure, preceded by the game's number and the agent that lost the game."""
        agent = self.schedule.seatings[game, self.events[game].seat]
        return f"game {game + 1}: agent {self.settings.agents[agent]!r}: {text}"

    def partial(self, games: range) -> PartialResults:
        """Return the results of the given games.

        These must be the only games played so far: `times` is the total of all games and cannot be divided.
        """
        rows = slice(games.start, games.stop)
        return PartialResults(
            self.winners[rows], self.scores[rows], self.actions[rows], self.times, self.events, self.failures
        )

    def insert(self, games: range, part: PartialResults) -> None:
        """Insert results of games that were played in another process."""
        rows = slice(games.start, games.stop)
        self.winners[rows], self.scores[rows], self.actions[rows] = part.winners, part.scores, part.actions
        self.times.merge(part.times)
        self.events.update(part.events)
        self.failures.update(part.failures)

    def complete_groups(self) -> Results:
        """Return the results of the finished rotation groups; there may be none. Omit agents without games.

        Unfinished groups are omitted, because in their finished games some agents may have had better seats.
        """
        groups, over = self.schedule.group_of, self.is_over
        whole = np.bincount(groups[over], minlength=len(self.starts)) == np.bincount(groups, minlength=len(self.starts))
        kept = whole[groups]
        if kept.all():
            return self
        return self._select_games(kept, whole)._without_absent_agents()

    def _select_games(self, kept: npt.NDArray[np.bool_], whole: npt.NDArray[np.bool_]) -> Results:
        """Return the results of the groups in mask `whole` (G,); mask `kept` (T,) selects the same games."""
        place = dict(zip(np.flatnonzero(kept).tolist(), range(int(kept.sum())), strict=True))
        return replace(
            self,
            schedule=self.schedule.select(kept),
            winners=self.winners[kept],
            scores=self.scores[kept],
            starts=self.starts[whole],
            actions=self.actions[kept],
            events={place[game]: event for game, event in self.events.items() if game in place},
            failures={place[game]: failure for game, failure in self.failures.items() if game in place},
        )

    def _without_absent_agents(self) -> Results:
        """Return the same games without the agents that have no seat in any game."""
        there, seatings = np.unique(self.schedule.seatings, return_inverse=True)
        new = {old: number for number, old in enumerate(there.tolist())}
        schedule = replace(
            self.schedule,
            lineups=[tuple(new[agent] for agent in lineup) for lineup in self.schedule.lineups],
            seatings=seatings.reshape(self.schedule.seatings.shape),
        )
        settings = replace(self.settings, agents=tuple(self.settings.agents[agent] for agent in there))
        return replace(self, settings=settings, schedule=schedule, times=self.times.select(there))
