"""Many games between agents, in lockstep, with every seating of a lineup played equally often.

Who sits where is in `ninetka_train.judging.schedule`.

    results = play_games([make_agent("random"), make_agent("maxn")], num_players=2, num_games=100)
    results.winning_agents  # (T,) index of the agent that won each game
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, Agent, Forfeit, GameRandom, Player, check_plays, make_agent
from ninetka_env.core.batch import Endings, begin, codes_of, make_endings, play_all, write_endings, write_stages
from ninetka_env.core.chance import Streams
from ninetka_env.core.game import Event, Game
from ninetka_env.core.options import check_actions, check_count, check_memory, shortened
from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_env.core.registry import DEFAULT, Variant, load_variant, with_players
from ninetka_env.core.verbs import Records
from ninetka_train.judging.openings import draw_openings, usual_opening_plies
from ninetka_train.judging.players import AgentError, sit_down, warm_up
from ninetka_train.judging.schedule import Schedule, count_lineups, make_schedule

NO_ACTION = -1
"""Fills the places after the end of a game in `Results.actions`."""
BATCH, REMEMBERED_BATCH = 256, 16
"""Games played at once unless told; fewer where an agent keeps a tree, or runs a program, for each of them."""
NOBODY = -1
"""Moves where the opening is drawn."""

Progress = Callable[[float], None]
"""Called as games go on, with the number of games played so far; games under way count in part."""
Finished = Callable[["Results", range], object]
"""Called after every batch, with the results so far and the games in them that have just ended; what it returns, if
true, ends the match there."""
PlayBatches = Callable[["Settings", Sequence[range]], Iterator["Part"]]
"""Plays batches of a match elsewhere, each by `play_part`; yields what came out, in their order."""


@dataclass(frozen=True)
class Settings:
    """What was asked for."""

    agents: tuple[str, ...]
    """The agents' names, made unique; agents are known by their place here."""
    game: str
    """The spec of the game, such as `"ninetka:num_players=3"`."""
    num_players: int
    num_games: int
    """Games asked for per lineup; played are `Results.games_per_lineup`."""
    seed: int
    batch: int
    opening_plies: int = 0
    """Plies drawn at random at the beginning of each rotation group."""

    @property
    def variant(self) -> Variant:
        """The game with its options."""
        return load_variant(self.game)


@dataclass(frozen=True)
class Clock:
    """Thinking time of K agents in the S stages: wall time of `act`, shared out over the games of the call."""

    seconds: npt.NDArray[np.float64]
    """(K, S) in all."""
    moves: npt.NDArray[np.int64]
    """(K, S) decisions taken."""
    slowest: npt.NDArray[np.float64]
    """(K, S) seconds per move in the slowest call."""

    @classmethod
    def new(cls, num_agents: int, num_stages: int) -> Clock:
        """Start from zero."""
        shape = (num_agents, num_stages)
        return cls(np.zeros(shape), np.zeros(shape, np.int64), np.zeros(shape))

    def add(self, agent: int, stage: int, seconds: float, moves: int) -> None:
        """Count decisions of one call of `act`, and their share of its time."""
        self.seconds[agent, stage] += seconds
        self.moves[agent, stage] += moves
        self.slowest[agent, stage] = max(self.slowest[agent, stage], seconds / moves)

    def join(self, other: Clock) -> None:
        """Count another clock's decisions, too."""
        self.seconds[:] += other.seconds
        self.moves[:] += other.moves
        np.maximum(self.slowest, other.slowest, out=self.slowest)


class Part(NamedTuple):
    """What came out of some of a match's games: the rows of `Results` that are theirs, and all else that it tells."""

    winners: npt.NDArray[np.int64]
    scores: npt.NDArray[Any]
    actions: npt.NDArray[np.int16]
    clock: Clock
    events: dict[int, Event]
    failures: dict[int, str]


@dataclass(frozen=True)
class Results:
    """T games, in the order of the schedule; all are finished once `play_games` returns them."""

    settings: Settings
    schedule: Schedule
    winners: npt.NDArray[np.int64]
    """(T,) the seat that won, `DRAWN`, or `UNFINISHED` in games still to be played."""
    scores: npt.NDArray[Any]
    """(T, n) scores per seat."""
    starts: Records
    """(T // rotation,) records: the position that each rotation group started from."""
    actions: npt.NDArray[np.int16]
    """(T, most plies) the actions played, then `NO_ACTION`."""
    clock: Clock
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
    def games_per_lineup(self) -> int:
        """Games played per lineup: those asked for, rounded up to whole rotation groups."""
        return self.schedule.groups_per_lineup * self.schedule.rotation

    def part(self, games: range) -> Part:
        """Return what came out of these games, the only ones played."""
        rows = slice(games.start, games.stop)
        return Part(self.winners[rows], self.scores[rows], self.actions[rows], self.clock, self.events, self.failures)

    def put(self, games: range, part: Part) -> None:
        """Take in what came out of these games elsewhere."""
        rows = slice(games.start, games.stop)
        self.winners[rows], self.scores[rows], self.actions[rows] = part.winners, part.scores, part.actions
        self.clock.join(part.clock)
        self.events.update(part.events)
        self.failures.update(part.failures)

    def first(self, games: int) -> Results:
        """Return the whole rotation groups among the first games of the first lineup."""
        groups, schedule = games // self.schedule.rotation, self.schedule
        end = groups * schedule.rotation
        return replace(
            self,
            schedule=Schedule(schedule.lineups[:1], groups, schedule.seatings[:end]),
            winners=self.winners[:end],
            scores=self.scores[:end],
            starts=self.starts[:groups],
            actions=self.actions[:end],
            events={game: event for game, event in self.events.items() if game < end},
            failures={game: failure for game, failure in self.failures.items() if game < end},
        )


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
    agents: Sequence[Agent | str],
    num_players: int | None = None,
    num_games: int = 100,
    *,
    game: str | Variant = DEFAULT,
    seed: int = 0,
    batch: int | None = None,
    opening_plies: int | None = None,
    progress: Progress | None = None,
    finished: Finished | None = None,
    elsewhere: PlayBatches | None = None,
    **options: Any,
) -> Results:
    """Let agents play each other, seats rotated.

    With as many agents as seats there is one lineup; with fewer, the last agent fills the seats that remain; with
    more, every choice of `num_players` agents is a lineup.

    The seed decides everything: each game draws from a stream of its own, so neither `batch` nor the number of
    threads changes a result (as long as agents take their chances from `ninetka_agents.agent.game_streams`, and do not
    round differently in batches of another size).

    Args:
        agents: one or more, or their specs; see `ninetka_agents.agent.Agent` and `make_agent`.
        num_players: seats at the table; None for what the game says.
        num_games: games per lineup, rounded up to a whole number of rotation groups.
        game: the spec of the game.
        seed: 0 or more.
        batch: games played in lockstep, so the most positions that an agent is asked about in one call, and the most
            players with a memory of their game that are kept at once; None for 256, or 16 if there are such players.
        opening_plies: how many plies each rotation group begins with that are drawn at random, the same for all its
            games; None for what `ninetka_train.judging.openings.usual_opening_plies` says.
        progress: told how far the games are.
        finished: told of the games that have ended, a batch at a time, for instance to save them. A match of one lineup
            ends where it returns true; whole rotation groups count.
        elsewhere: who plays the batches; None for this process.
        options: of the game, such as `neutral_placement="random"`.

    Raises:
        ValueError: naming the option that is wrong and the values it may have, or the agent that plays another game.
        AgentError: if an agent answers with an illegal action, or has a player that fails before the first game. Later
            its game is lost to the player, and all others are played.
    """
    options |= {"game": game, "seed": seed, "batch": batch, "opening_plies": opening_plies}
    name = load_variant(game).definition.name
    seated = [make_agent(one, name) if isinstance(one, str) else one for one in agents]
    settings = make_settings(seated, num_players, num_games, **options)
    for agent in seated:
        check_plays(agent, name)
    arena, told = _Arena(seated, settings), progress or (lambda done: None)
    results, schedule = arena.results, arena.results.schedule
    firsts = range(0, len(schedule.seatings), settings.batch)
    batches = [range(first, min(first + settings.batch, len(schedule.seatings))) for first in firsts]
    parts = elsewhere(settings, batches) if elsewhere else None
    if parts is None:
        warm_up(seated, settings.variant, results.starts[:1])
    for games in batches:
        if parts is None:
            arena.play_batch(games, told)
        else:
            results.put(games, next(parts))
            told(games.stop)
        is_whole = len(schedule.lineups) == 1 and games.stop >= schedule.rotation
        if finished and finished(results, games) and is_whole:
            return results.first(games.stop)
    return results


def play_part(agents: Sequence[Agent], settings: Settings, games: range) -> Part:
    """Play some of the games that `play_games` plans for these settings, by agents that have been warmed up."""
    arena = _Arena(agents, settings)
    arena.play_batch(games, lambda done: None)
    return arena.results.part(games)


def make_settings(
    agents: Sequence[Agent | str],
    num_players: int | None = None,
    num_games: int = 100,
    *,
    game: str | Variant = DEFAULT,
    seed: int = 0,
    batch: int | None = None,
    opening_plies: int | None = None,
    **options: Any,
) -> Settings:
    """Check and gather what is asked for; the arguments are those of `play_games`, agents or their names.

    Raises:
        ValueError: naming the first setting that is wrong and the values it may have.
    """
    if not agents:
        raise ValueError("no agents: expected at least one")
    variant = load_variant(game, **options)
    if num_players is not None:
        variant = with_players(variant, num_players)
    check_count("num_games", num_games)
    if batch is None:
        batch = REMEMBERED_BATCH if any(hasattr(agent, "start") for agent in agents) else BATCH
    check_count("batch", batch)
    check_memory("num_games", num_games, _bytes_per_game(variant) * count_lineups(len(agents), variant.num_players))
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"seed={shortened(seed)}: expected an integer of at least 0")
    if opening_plies is None:
        opening_plies = usual_opening_plies(agents, variant)
    check_count("opening_plies", opening_plies, least=0, most=variant.sizes.most_plies)
    names = unique_names([one if isinstance(one, str) else one.name for one in agents])
    return Settings(names, variant.spec, variant.num_players, num_games, seed, batch, opening_plies)


def _bytes_per_game(variant: Variant) -> int:
    """Return about how much memory a game takes until its match is over: record, actions, seating, scores, shares."""
    return int(variant.dtype.itemsize + 2 * variant.sizes.most_plies + 32 * variant.num_players)


class _Arena:
    """The games of a schedule, all at their start; `play_batch` plays some of them to the end."""

    def __init__(self, agents: Sequence[Agent], settings: Settings) -> None:
        schedule = make_schedule(len(agents), settings.num_players, settings.num_games)
        streams = _group_streams(schedule, settings.seed)
        starts = _start_groups(settings.variant, streams)
        self.agents = agents
        openings = draw_openings(settings.variant, starts, streams, settings.opening_plies)
        self.openings = np.repeat(openings, schedule.rotation, axis=0)
        self.games = np.repeat(starts, schedule.rotation)
        self.streams = np.repeat(streams, schedule.rotation)
        self._variant = settings.variant
        self._players: dict[tuple[int, int], Player] = {}
        count, definition = len(self.games), self._variant.definition
        self._endings: Endings = make_endings(self._variant.dtype, count, settings.num_players)
        kind = np.int64 if np.issubdtype(definition.score_dtype, np.integer) else np.float64
        scores = np.zeros((count, settings.num_players), kind)
        actions = np.full((count, self._variant.sizes.most_plies), NO_ACTION, np.int16)
        clock = Clock.new(len(agents), len(definition.stages))
        winners = np.full(count, UNFINISHED, np.int64)
        self.results = Results(settings, schedule, winners, scores, starts, actions, clock)

    def play_batch(self, games: range, progress: Progress) -> None:
        """Play some of the games to the end, one ply of each at a time."""
        results, batch = self.results, np.arange(games.start, games.stop)
        with self._sitting_down(batch):
            active, most = batch[self._is_on(batch)], results.actions.shape[1]
            for ply in range(most):
                going_on = self._play_ply(active, ply)
                active = active[going_on]
                under_way = len(active) * (ply + 1) / most
                progress(float(batch[0] + len(batch) - len(active) + under_way))
                if len(active) == 0:
                    break
        write_endings(self.games, batch, self._endings)
        results.winners[batch], results.scores[batch] = self._endings.winners[batch], self._endings.scores[batch]
        for index in results.events.keys() & set(batch.tolist()):
            results.winners[index] = self._ended(index).winner()

    def _is_on(self, games: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Tell which of the games no event has ended."""
        return np.array([index not in self.results.events for index in games.tolist()], np.bool_)

    def _ended(self, index: int) -> Game:
        """Return the position of a game that an event has ended."""
        game: Game = self._variant.game_class(self.games[index : index + 1].copy())
        event = self.results.events[index]
        game.forfeit(event.seat, event.kind)
        return game

    def _play_ply(self, active: npt.NDArray[np.int64], ply: int) -> npt.NDArray[np.bool_]:
        """Play one ply in each game of `active`; tell which of them go on."""
        movers = self.results.schedule.seatings[active, self.games["to_move"][active]]
        if ply < self.openings.shape[1]:
            drawn = self.openings[active, ply]
            movers[drawn >= 0] = NOBODY
        going_on = np.ones(len(active), np.bool_)
        for agent in np.unique(movers):
            theirs = movers == agent
            if agent == NOBODY:  # an opening ends no game
                self.results.actions[active[theirs], ply], _ = self._play(NOBODY, active[theirs], drawn[theirs])
            else:
                self.results.actions[active[theirs], ply], going_on[theirs] = self._move(int(agent), active[theirs])
        return going_on & self._is_on(active)

    def _move(self, agent: int, chosen: npt.NDArray[np.int64]) -> tuple[Actions, npt.NDArray[np.bool_]]:
        """Ask an agent for its actions in the games `chosen` and play them; return them, and which games go on.

        Where a player ends its game instead the action is `NO_ACTION`.
        """
        positions, streams = self.games[chosen], self.streams[chosen]
        start = time.perf_counter()
        answer = self._ask(agent, chosen, positions, GameRandom(streams))
        self._count_time(agent, positions, time.perf_counter() - start)
        self.streams[chosen] = streams
        answered = self._is_on(chosen)
        actions, over = np.full(len(chosen), NO_ACTION, np.int64), np.ones(len(chosen), np.bool_)
        if answered.any():
            actions[answered], over[answered] = self._play(agent, chosen[answered], answer)
        return actions, ~over

    def _play(
        self, agent: int, chosen: npt.NDArray[np.int64], answer: npt.ArrayLike
    ) -> tuple[Actions, npt.NDArray[np.bool_]]:
        """Check and play what an agent answered; return the actions, and which games they ended."""
        over, name = np.zeros(len(chosen), np.bool_), self.results.settings.agents[agent]
        try:
            actions = check_actions(answer, len(chosen))
        except (TypeError, ValueError) as error:
            raise AgentError(f"agent {name!r}: {error}") from error
        if (illegal := play_all(self.games, chosen, actions, over)) >= 0:
            game: Game = self._variant.game_class(self.games[chosen[illegal : illegal + 1]])
            raise AgentError(f"agent {name!r}: {game.describe_illegal(int(actions[illegal]))}\n{game}")
        if self._players:
            for index, action, ended in zip(chosen.tolist(), actions.tolist(), over.tolist(), strict=True):
                self._tell(index, action, ended)
        return actions, over

    def _ask(self, agent: int, chosen: npt.NDArray[np.int64], positions: Records, rng: GameRandom) -> npt.ArrayLike:
        """Ask an agent, or its players in these games where they have a memory: those that end theirs do not answer."""
        if (agent, int(chosen[0])) not in self._players:
            return self.agents[agent].act(positions, rng)
        answers: list[Any] = []
        for place, index in enumerate(chosen.tolist()):
            try:
                answers.append(self._players[agent, index].act(GameRandom(rng.streams[place : place + 1])))
            except Forfeit as event:
                self._forfeit(index, agent, event)
        return answers

    def _tell(self, index: int, action: int, ended: bool) -> None:
        """Tell the players in a game of an action; one that fails at the last action of a game has not lost it."""
        for agent in range(len(self.agents)):
            if (agent, index) in self._players:
                try:
                    self._players[agent, index].observe(action)
                except Forfeit as event:
                    if not ended:
                        self._forfeit(index, agent, event)

    def _forfeit(self, index: int, agent: int, event: Forfeit) -> None:
        """End a game to the loss of an agent, in the seat to move if that is its own; unless it has ended so before."""
        results, to_move = self.results, int(self.games["to_move"][index])
        if index in results.events:
            return
        seats = np.flatnonzero(results.schedule.seatings[index] == agent)
        results.events[index] = Event(event.kind, to_move if to_move in seats else int(seats[0]))
        if failure := str(event):
            results.failures[index] = f"game {index + 1}: agent {results.settings.agents[agent]!r}: {failure}"

    def _count_time(self, agent: int, positions: Records, seconds: float) -> None:
        stages = np.zeros(len(positions), np.int8)
        write_stages(positions, stages)
        for stage, moves in enumerate(np.bincount(stages)):
            if moves:
                self.results.clock.add(agent, stage, seconds * moves / len(positions), int(moves))

    @contextlib.contextmanager
    def _sitting_down(self, batch: npt.NDArray[np.int64]) -> Iterator[None]:
        """Have agents that remember games start one in each where they hold a seat, and close it afterwards."""
        with contextlib.ExitStack() as stack:
            for agent, one in enumerate(self.agents):
                for index in batch[(self.results.schedule.seatings[batch] == agent).any(axis=1)].tolist():
                    try:
                        player = sit_down(one, self._variant.game_class(self.games[index : index + 1]), stack)
                    except Forfeit as event:
                        self._forfeit(index, agent, event)
                        continue
                    if player is None:
                        break
                    self._players[agent, index] = player
            try:
                yield
            finally:
                self._players.clear()


def _group_streams(schedule: Schedule, seed: int) -> Streams:
    """Draw one stream per rotation group; those of a lineup do not depend on how many games are played."""
    sequences = [np.random.SeedSequence(seed, spawn_key=(lineup,)) for lineup in range(len(schedule.lineups))]
    return np.concatenate([each.generate_state(schedule.groups_per_lineup, np.uint64) for each in sequences])


def _start_groups(variant: Variant, streams: Streams) -> Records:
    """Set up one start per rotation group; what is drawn at the start moves the group's stream on."""
    starts = np.zeros(len(streams), variant.dtype)
    begin(starts, np.arange(len(starts)), codes_of(variant, len(starts)), streams)
    return starts
