"""Many games between agents, in lockstep, with every seating of a lineup played equally often.

A *lineup* is who sits at the table, a *seating* who holds which seat. The seat decides a lot in 9tka, so a lineup is
played in *rotation groups*: one game for each of its distinct seatings, all from the same start and with the same
random numbers (a paired design: agents that decide alike cancel out exactly).

    results = play_games([make_agent("random"), make_agent("maxn")], num_players=2, num_games=100)
    results.winning_agents  # (T,) index of the agent that won each game
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, Agent, GameRandom
from ninetka_env.core.jit import jit, popcount
from ninetka_env.core.chance import Streams
from ninetka_env.games.ninetka.game import Game, begin, check_actions, check_count, check_options, describe_illegal
from ninetka_env.games.ninetka.geometry import NUM_NEUTRALS, NUM_SLOTS
from ninetka_env.games.ninetka.rules import GAME, Phase, Records, is_legal, is_over, play, winner_of

MAX_PLIES = NUM_NEUTRALS + 2 * NUM_SLOTS
"""The longest game: 9 neutral stones, 36 stones set, 36 slides. (Forced passes are played by the rules.)"""
NO_ACTION = 255
"""Fills the places after the end of a game in `Results.actions`."""
DEFAULT_BATCH = 256

Lineup = tuple[int, ...]
Progress = Callable[[float], None]
"""Called as games go on, with the number of games played so far; games under way count in part."""
Finished = Callable[["Results", range], None]
"""Called after every batch, with the results so far and the games in them that have just ended."""


class AgentError(RuntimeError):
    """An agent answered with something other than one legal action per game."""


@dataclass(frozen=True)
class Settings:
    """What was asked for."""

    agents: tuple[str, ...]
    """The agents' names, made unique; agents are known by their place here."""
    num_players: int
    num_games: int
    """Games asked for per lineup; played are `Results.games_per_lineup`."""
    seed: int
    neutral_placement: str
    turn_order: str
    batch: int


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


@dataclass(frozen=True)
class Clock:
    """Thinking time of K agents in the three phases: wall time of `act`, shared out over the games of the call."""

    seconds: npt.NDArray[np.float64]
    """(K, 3) in all."""
    moves: npt.NDArray[np.int64]
    """(K, 3) decisions taken."""
    slowest: npt.NDArray[np.float64]
    """(K, 3) seconds per move in the slowest call."""

    @classmethod
    def new(cls, num_agents: int) -> Clock:
        """Start from zero."""
        shape = (num_agents, len(Phase))
        return cls(np.zeros(shape), np.zeros(shape, np.int64), np.zeros(shape))

    def add(self, agent: int, phase: int, seconds: float, moves: int) -> None:
        """Count one call of `act`."""
        self.seconds[agent, phase] += seconds
        self.moves[agent, phase] += moves
        self.slowest[agent, phase] = max(self.slowest[agent, phase], seconds / moves)


@dataclass(frozen=True)
class Results:
    """T games, in the order of the schedule; all are finished once `play_games` returns them."""

    settings: Settings
    schedule: Schedule
    winners: npt.NDArray[np.int64]
    """(T,) the seat that won, -1 in games still to be played."""
    scores: npt.NDArray[np.int64]
    """(T, n) sections per seat."""
    starts: Records
    """(T // rotation,) records: the position that each rotation group started from."""
    actions: npt.NDArray[np.uint8]
    """(T, 81) the actions played, then `NO_ACTION`."""
    clock: Clock

    @property
    def winning_agents(self) -> npt.NDArray[np.int64]:
        """(T,) the agent that won."""
        return self.schedule.seatings[np.arange(len(self.winners)), self.winners]

    @property
    def games_per_lineup(self) -> int:
        """Games played per lineup: those asked for, rounded up to whole rotation groups."""
        return self.schedule.groups_per_lineup * self.schedule.rotation


def make_lineups(num_agents: int, num_players: int) -> list[Lineup]:
    """Return who plays whom: every choice of `num_players` agents; if there are fewer, the last one fills up."""
    if num_agents <= num_players:
        return [(*range(num_agents), *[num_agents - 1] * (num_players - num_agents))]
    return list(combinations(range(num_agents), num_players))


def make_schedule(num_agents: int, num_players: int, num_games: int) -> Schedule:
    """Plan at least `num_games` games per lineup, in whole rotation groups."""
    lineups = make_lineups(num_agents, num_players)
    seatings = [sorted(set(permutations(lineup))) for lineup in lineups]
    groups = math.ceil(num_games / len(seatings[0]))
    table = np.concatenate([np.tile(np.array(own, np.int64), (groups, 1)) for own in seatings])
    return Schedule(lineups, groups, table)


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Tell agents of the same name apart: the second `random` becomes `random (2)`."""
    unique: list[str] = []
    for name in names:
        number = 2
        candidate = name
        while candidate in unique:
            candidate, number = f"{name} ({number})", number + 1
        unique.append(candidate)
    return tuple(unique)


def play_games(
    agents: Sequence[Agent],
    num_players: int = 2,
    num_games: int = 100,
    *,
    seed: int = 0,
    neutral_placement: str = "players",
    turn_order: str = "restart",
    batch: int = DEFAULT_BATCH,
    progress: Progress | None = None,
    finished: Finished | None = None,
) -> Results:
    """Let agents play each other, seats rotated.

    With as many agents as seats there is one lineup; with fewer, the last agent fills the seats that remain; with
    more, every choice of `num_players` agents is a lineup.

    The seed decides everything: each game draws from a stream of its own, so neither `batch` nor the number of
    threads changes a result (as long as agents take their chances from `ninetka_agents.agent.game_streams`, and do not round
    differently in batches of another size).

    Args:
        agents: one or more; see `ninetka_agents.agent.Agent`.
        num_players: 2, 3 or 4.
        num_games: games per lineup, rounded up to a whole number of rotation groups.
        seed: 0 or more.
        neutral_placement: as in `Game.new`.
        turn_order: as in `Game.new`.
        batch: games played in lockstep, so the most positions that an agent is asked about in one call.
        progress: told how far the games are.
        finished: told of the games that have ended, a batch at a time, for instance to save them.

    Raises:
        ValueError: naming the option that is wrong and the values it may have.
        AgentError: if an agent answers with an illegal action.
    """
    names = unique_names([agent.name for agent in agents])
    settings = Settings(names, num_players, num_games, seed, neutral_placement, turn_order, batch)
    check_settings(settings)
    schedule = make_schedule(len(agents), num_players, num_games)
    streams = _group_streams(schedule, seed)
    starts = _start_groups(settings, streams)
    _warm_up(agents, starts[:1])
    arena = _Arena(agents, settings, schedule, starts, streams)
    for first in range(0, len(schedule.seatings), batch):
        games = range(first, min(first + batch, len(schedule.seatings)))
        arena.play_batch(games, progress or (lambda done: None))
        if finished:
            finished(arena.results, games)
    return arena.results


def check_settings(settings: Settings) -> None:
    """Raise `ValueError` naming the first setting that is wrong and the values it may have."""
    if not settings.agents:
        raise ValueError("no agents: expected at least one")
    check_options(settings.num_players, settings.neutral_placement, settings.turn_order, True)
    check_count("num_games", settings.num_games)
    check_count("batch", settings.batch)
    if isinstance(settings.seed, bool) or not isinstance(settings.seed, (int, np.integer)) or settings.seed < 0:
        raise ValueError(f"seed={settings.seed!r}: expected an integer of at least 0")


class _Arena:
    """The games of a schedule, all at their start; `play_batch` plays some of them to the end."""

    def __init__(
        self, agents: Sequence[Agent], settings: Settings, schedule: Schedule, starts: Records, streams: Streams
    ) -> None:
        self.agents = agents
        self.games = np.repeat(starts, schedule.rotation)
        self.streams = np.repeat(streams, schedule.rotation)
        count = len(self.games)
        winners, scores = np.full(count, -1, np.int64), np.zeros((count, settings.num_players), np.int64)
        actions = np.full((count, MAX_PLIES), NO_ACTION, np.uint8)
        self.results = Results(settings, schedule, winners, scores, starts, actions, Clock.new(len(agents)))

    def play_batch(self, games: range, progress: Progress) -> None:
        """Play some of the games to the end, one ply of each at a time."""
        results, batch = self.results, np.arange(games.start, games.stop)
        active = batch
        for ply in range(MAX_PLIES):
            movers = results.schedule.seatings[active, self.games["to_move"][active]]
            for agent in np.unique(movers):
                chosen = active[movers == agent]
                results.actions[chosen, ply] = self._move(int(agent), chosen)
            active = active[_going_on(self.games, active)]
            under_way = len(active) * (ply + 1) / MAX_PLIES
            progress(float(batch[0] + len(batch) - len(active) + under_way))
            if len(active) == 0:
                break
        _write_outcomes(self.games, batch, results.winners, results.scores)

    def _move(self, agent: int, chosen: npt.NDArray[np.int64]) -> Actions:
        """Ask an agent for its actions in the games `chosen`, all in the same phase, and play them."""
        positions, streams = self.games[chosen], self.streams[chosen]
        phase, name = int(positions["phase"][0]), self.results.settings.agents[agent]
        start = time.perf_counter()
        answer = self.agents[agent].act(positions, GameRandom(streams))
        self.results.clock.add(agent, phase, time.perf_counter() - start, len(chosen))
        self.streams[chosen] = streams
        try:
            actions = check_actions(answer, len(chosen))
        except (TypeError, ValueError) as error:
            raise AgentError(f"agent {name!r}: {error}") from error
        if (illegal := _play_all(self.games, chosen, actions)) >= 0:
            game = Game(self.games[chosen[illegal : illegal + 1]])
            raise AgentError(f"agent {name!r}: {describe_illegal(game, int(actions[illegal]))}\n{game}")
        return actions


def _group_streams(schedule: Schedule, seed: int) -> Streams:
    """Draw one stream per rotation group; those of a lineup do not depend on how many games are played."""
    sequences = [np.random.SeedSequence(seed, spawn_key=(lineup,)) for lineup in range(len(schedule.lineups))]
    return np.concatenate([each.generate_state(schedule.groups_per_lineup, np.uint64) for each in sequences])


def _start_groups(settings: Settings, streams: Streams) -> Records:
    """Set up one start per rotation group; random neutral stones are drawn from, and move on, the group's stream."""
    options = check_options(settings.num_players, settings.neutral_placement, settings.turn_order, True)
    starts = np.zeros(len(streams), GAME)
    for group in range(len(starts)):
        begin(starts, group, *options, streams)
    return starts


def _warm_up(agents: Sequence[Agent], start: Records) -> None:
    """Let every agent act in every phase, on one game and on two, before the clock runs: first calls compile."""
    game, rng, seen = Game(start.copy()), np.random.default_rng(0), set()
    while not game.is_over:
        if game.phase not in seen:
            seen.add(game.phase)
            for agent, count in product(agents, (1, 2)):
                agent.act(np.repeat(game.records, count), GameRandom(np.zeros(count, np.uint64)))
        game.play(int(rng.choice(game.legal_actions())))


@jit
def _play_all(games: Records, chosen: npt.NDArray[np.int64], actions: Actions) -> int:
    """Play one action in each chosen game; if one is illegal, return its place and play none, else -1."""
    for place in range(len(chosen)):
        if not is_legal(games[chosen[place]], actions[place]):
            return place
    for place in range(len(chosen)):
        play(games[chosen[place]], actions[place])
    return -1


@jit
def _going_on(games: Records, chosen: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    going_on = np.empty(len(chosen), np.bool_)
    for place in range(len(chosen)):
        going_on[place] = not is_over(games[chosen[place]])
    return going_on


@jit
def _write_outcomes(
    games: Records,
    chosen: npt.NDArray[np.int64],
    winners: npt.NDArray[np.int64],
    scores: npt.NDArray[np.int64],
) -> None:
    """Write the winning seat and the seats' scores of the finished games `chosen`."""
    for index in chosen:
        winners[index] = winner_of(games[index])
        for seat in range(games[index].num_players):
            scores[index, seat] = popcount(games[index].owned[seat])
