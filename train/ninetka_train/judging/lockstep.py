"""Play games in lockstep: in each ply, every agent gets all positions in which it is to move in one call."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, Agent, Forfeit, GameRandom, Player
from ninetka_env.core.batch import Endings, begin, codes_of, make_endings, play_all, write_endings, write_stages
from ninetka_env.core.chance import Streams
from ninetka_env.core.game import Event, Game
from ninetka_env.core.options import check_actions
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.record import GameRecord
from ninetka_env.core.registry import Variant
from ninetka_env.core.text import one_line
from ninetka_env.core.verbs import Records
from ninetka_train.judging.results import FAILURE, MOST_LETTERS, NO_ACTION, MoveTimes, Part, Results, Settings
from ninetka_train.judging.schedule import Schedule, draw_openings

NOBODY = -1
"""Index used instead of an agent's in the plies of a random opening."""

Progress = Callable[[float], None]
"""Called during the games with the number of games played so far; running games count in part."""


class AgentError(RuntimeError):
    """Raised if an agent raises an exception, or does not return one legal action per game."""

    results: Results | None = None
    """The finished rotation groups, for `ninetka_train.judging.evaluate.summarise`; None if there are none."""


class OtherStartError(ValueError):
    """Raised if an earlier game does not start as in this match."""


class AnswerError(ValueError):
    """Raised if an agent does not return one legal action per game."""


def check_own(error: BaseException) -> None:
    """Raise `error` again if it is not the agent's failure: an interruption or lack of memory."""
    if isinstance(error, (KeyboardInterrupt, MemoryError)):
        raise error


def failure_text(failure: BaseException) -> str:
    """Return a text about an agent's failure; for a wrong answer, the next lines show the position."""
    try:
        text = str(failure)
    except Exception:  # the `__str__` of an exception of an agent may fail
        text = "its text cannot be read"
    return text if isinstance(failure, AnswerError) else f"{type(failure).__name__}: {text}"


def play_part(agents: Sequence[Agent], settings: Settings, games: range) -> Part:
    """Play some games of a match with these settings; the agents have been warmed up."""
    lockstep = Lockstep(agents, settings)
    lockstep.play_batch(games, lambda done: None)
    return lockstep.results.part(games)


class Lockstep:
    """All games of a match, at first in their start positions; `play_batch` plays some of them to the end."""

    def __init__(self, agents: Sequence[Agent], settings: Settings) -> None:
        """Set up all games of a match with these settings."""
        schedule = settings.make_schedule()
        assert settings.seed is not None
        streams = _group_streams(schedule, settings.seed)
        starts = _start_groups(settings.variant, streams)
        self.agents = agents
        self.openings = draw_openings(settings.variant, starts, streams, settings.opening_plies)[schedule.group_of]
        self.games = starts[schedule.group_of]
        self.streams = streams[schedule.group_of]
        self._variant = settings.variant
        self._players: dict[tuple[int, int], Player] = {}
        self._is_warm = False
        count, definition = len(self.games), self._variant.definition
        self._endings: Endings = make_endings(self._variant.dtype, count, settings.num_players)
        kind = np.int64 if np.issubdtype(definition.score_dtype, np.integer) else np.float64
        scores = np.zeros((count, settings.num_players), kind)
        actions = np.full((count, self._variant.sizes.most_plies), NO_ACTION, np.int16)
        times = MoveTimes.new(len(agents), len(definition.stages))
        winners = np.full(count, UNFINISHED, np.int64)
        self.results = Results(settings, schedule, winners, scores, starts, actions, times)

    def warm_up(self) -> None:
        """Warm up the agents once, before the first batch."""
        if not self._is_warm:
            warm_up(self.agents, self._variant, self.results.starts[:1])
        self._is_warm = True

    def check(self, earlier: Mapping[int, GameRecord]) -> None:
        """Raise `OtherStartError` if an earlier game does not start as in this match."""
        for index, record in earlier.items():
            start = self.results.starts[self.results.schedule.group_of[index]]
            drawn = self.openings[index][self.openings[index] >= 0]
            if record.start().records[0] != start or list(record.actions[: len(drawn)]) != drawn.tolist():
                raise OtherStartError(f"game {index + 1} was played from another start than this match gives it")

    def take(self, games: range, earlier: Mapping[int, GameRecord]) -> None:
        """Insert the earlier games among `games` into the results."""
        results = self.results
        for index in games:
            if record := earlier.get(index):
                results.winners[index] = UNFINISHED
                results.scores[index], results.actions[index] = record.scores, NO_ACTION
                results.actions[index, : len(record.actions)] = record.actions
                results.events.pop(index, None)
                results.failures.pop(index, None)
                if record.event:
                    results.events[index] = record.event
                if record.event and (failure := record.tags.get(FAILURE)):
                    results.failures[index] = results.failure_of(index, failure)
                results.winners[index] = record.winner

    def play_batch(self, games: range, progress: Progress) -> None:
        """Play some games to the end; after an interruption, the finished ones are in the results."""
        batch = np.arange(games.start, games.stop)
        going_on = np.ones(len(batch), np.bool_)
        try:
            with self._sitting_down(batch):
                self._play_on(batch, going_on, progress)
        finally:
            self._conclude(batch[~going_on])

    def _play_on(self, batch: npt.NDArray[np.int64], going_on: npt.NDArray[np.bool_], progress: Progress) -> None:
        """Play one ply of each game at a time; clear `going_on` of finished games."""
        going_on[:], most = self._is_on(batch), self.results.actions.shape[1]
        for ply in range(most):
            if not going_on.any():
                return
            going_on[going_on] = self._play_ply(batch[going_on], ply)
            under_way = int(going_on.sum())
            progress(float(batch[0] + len(batch) - under_way + under_way * (ply + 1) / most))

    def _conclude(self, games: npt.NDArray[np.int64]) -> None:
        """Write scores and winners of finished games into the results."""
        results = self.results
        write_endings(self.games, games, self._endings)
        winners = self._endings.winners[games].copy()
        for place, index in enumerate(games.tolist()):
            if index in results.events:
                winners[place] = self._ended(index).winner()
        results.scores[games] = self._endings.scores[games]
        results.winners[games] = winners  # last, because a winner marks a game as finished and this may be interrupted

    def _is_on(self, games: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which of the games have not been ended by an event."""
        return np.array([index not in self.results.events for index in games.tolist()], np.bool_)

    def _ended(self, index: int) -> Game:
        """Return the final position of a game that was ended by an event."""
        game: Game = self._variant.game_class(self.games[index : index + 1].copy())
        event = self.results.events[index]
        game.forfeit(event.seat, event.kind)
        return game

    def _play_ply(self, active: npt.NDArray[np.int64], ply: int) -> npt.NDArray[np.bool_]:
        """Play one ply in each game of `active`; return which of them continue."""
        movers = self.results.schedule.seatings[active, self.games["to_move"][active]]
        if ply < self.openings.shape[1]:
            drawn = self.openings[active, ply]
            movers[drawn >= 0] = NOBODY
        going_on = np.ones(len(active), np.bool_)
        for agent in np.unique(movers):
            theirs = movers == agent
            games = active[theirs]
            actions = drawn[theirs].astype(np.int64) if agent == NOBODY else self._move(int(agent), games)
            self.results.actions[games, ply], going_on[theirs] = self._play(int(agent), games, actions)
        return going_on & self._is_on(active)

    def _move(self, agent: int, chosen: npt.NDArray[np.int64]) -> Actions:
        """Return an agent's actions in the games `chosen`, or `NO_ACTION` where the game ends; measure the time."""
        positions, streams = self.games[chosen], self.streams[chosen]
        start = time.perf_counter()
        actions = self._ask(agent, chosen, streams)
        self._count_time(agent, positions, time.perf_counter() - start)
        self.streams[chosen] = streams
        return actions

    def _play(
        self, agent: int, chosen: npt.NDArray[np.int64], actions: Actions
    ) -> tuple[Actions, npt.NDArray[np.bool_]]:
        """Check and play an agent's actions; return the played actions, and which games continue."""
        going_on, played = np.zeros(len(chosen), np.bool_), np.full(len(chosen), NO_ACTION, np.int64)
        while True:
            there = np.flatnonzero(self._is_on(chosen))
            over = np.zeros(len(there), np.bool_)
            illegal = play_all(self.games, chosen[there], actions[there], over)
            if illegal < 0:
                break
            index, action = chosen[there[illegal]], int(actions[there[illegal]])
            game: Game = self._variant.game_class(self.games[index : index + 1])
            self._fail(agent, int(index), AnswerError(f"{game.describe_illegal(action)}\n{game}"))
        played[there], going_on[there] = actions[there], ~over
        if self._players:
            for place, ended in zip(there.tolist(), over.tolist(), strict=True):
                self._show(int(chosen[place]), int(actions[place]), ended)
        return played, going_on

    def _ask(self, agent: int, chosen: npt.NDArray[np.int64], streams: Streams) -> Actions:
        """Ask an agent, or its seat agents in these games, for actions; advance the streams."""
        if (agent, int(chosen[0])) in self._players:
            return self._ask_players(agent, chosen, streams)
        before = streams.copy()
        try:
            return self._answers(agent, chosen, streams)
        except BaseException as error:
            check_own(error)
            if len(chosen) == 1:
                self._fail(agent, int(chosen[0]), error)
                return np.full(1, NO_ACTION, np.int64)
            streams[:] = before
            return self._ask_one_by_one(agent, chosen, streams, error)

    def _answers(self, agent: int, chosen: npt.NDArray[np.int64], streams: Streams) -> Actions:
        answer = self.agents[agent].act(self.games[chosen], GameRandom(streams))
        try:
            return check_actions(answer, len(chosen))
        except (TypeError, ValueError) as error:
            raise AnswerError(str(error)) from error

    def _ask_one_by_one(
        self, agent: int, chosen: npt.NDArray[np.int64], streams: Streams, together: BaseException
    ) -> Actions:
        """Ask an agent that failed in a batch about each game alone, to find the games in which it fails."""
        actions = np.full(len(chosen), NO_ACTION, np.int64)
        for place, index in enumerate(chosen.tolist()):
            alone = slice(place, place + 1)
            try:
                actions[alone] = self._answers(agent, chosen[alone], streams[alone])
            except BaseException as error:
                self._fail(agent, index, error)
        if self.results.settings.forfeit:
            return actions
        games = f"games {chosen[0] + 1} to {chosen[-1] + 1}, together but not one by one"
        name = self.results.settings.agents[agent]
        raise AgentError(f"{games}: agent {name!r}: {failure_text(together)}") from together

    def _ask_players(self, agent: int, chosen: npt.NDArray[np.int64], streams: Streams) -> Actions:
        actions = np.full(len(chosen), NO_ACTION, np.int64)
        for place, index in enumerate(chosen.tolist()):
            try:
                answer = self._players[agent, index].act(GameRandom(streams[place : place + 1]))
                actions[place] = check_actions([answer], 1)[0]
            except BaseException as error:
                self._fail(agent, index, error)
        return actions

    def _show(self, index: int, action: int, ended: bool) -> None:
        """Let the seat agents in a game observe an action; a failure after the last action does not lose the game."""
        for agent in range(len(self.agents)):
            if (agent, index) in self._players:
                try:
                    self._players[agent, index].observe(action)
                except BaseException as error:
                    check_own(error)
                    if not (ended and (isinstance(error, Forfeit) or self.results.settings.forfeit)):
                        self._fail(agent, index, error)

    def _fail(self, agent: int, index: int, error: BaseException) -> None:
        """Let an agent that failed lose the game, or raise `AgentError` if games are not forfeited."""
        check_own(error)
        if isinstance(error, Forfeit):
            self._forfeit(index, agent, error)
        elif self.results.settings.forfeit:
            sentence = failure_text(error).partition("\n")[0] if isinstance(error, AnswerError) else failure_text(error)
            self._forfeit(index, agent, Forfeit("left", sentence))
        else:
            name = self.results.settings.agents[agent]
            raise AgentError(f"game {index + 1}: agent {name!r}: {failure_text(error)}") from error

    def _close(self, agent: int, index: int, player: Player) -> None:
        """Close a seat agent; a failure does not lose the game, which is finished."""
        try:
            player.close()
        except BaseException as error:
            check_own(error)
            if not (isinstance(error, Forfeit) or self.results.settings.forfeit):
                self._fail(agent, index, error)

    def _forfeit(self, index: int, agent: int, event: Forfeit) -> None:
        """Let an agent lose a game, if possible in the seat to move, unless an event has already ended the game."""
        results, to_move = self.results, int(self.games["to_move"][index])
        if index in results.events:
            return
        seats = np.flatnonzero(results.schedule.seatings[index] == agent)
        results.events[index] = Event(event.kind, to_move if to_move in seats else int(seats[0]))
        if failure := one_line(str(event), MOST_LETTERS):
            results.failures[index] = results.failure_of(index, failure)

    def _count_time(self, agent: int, positions: Records, seconds: float) -> None:
        stages = np.zeros(len(positions), np.int8)
        write_stages(positions, stages)
        for stage, moves in enumerate(np.bincount(stages)):
            if moves:
                self.results.times.add(agent, stage, seconds * moves / len(positions), int(moves))

    @contextlib.contextmanager
    def _sitting_down(self, batch: npt.NDArray[np.int64]) -> Iterator[None]:
        """Start seat agents in the games of all agents that use them, and close the seat agents afterwards."""
        with contextlib.ExitStack() as stack:
            for agent, one in enumerate(self.agents):
                for index in batch[(self.results.schedule.seatings[batch] == agent).any(axis=1)].tolist():
                    try:
                        player = one.start(self._variant.game_class(self.games[index : index + 1].copy()))
                    except BaseException as error:
                        self._fail(agent, index, error)
                        continue
                    if player is None:
                        break
                    stack.callback(self._close, agent, index, player)
                    self._players[agent, index] = player
            try:
                yield
            finally:
                self._players.clear()


def _group_streams(schedule: Schedule, seed: int) -> Streams:
    """Draw one stream per rotation group; a longer match keeps the streams of a shorter one."""
    groups = schedule.groups_by_lineup.tolist()
    sequences = [np.random.SeedSequence(seed, spawn_key=(lineup,)) for lineup in range(len(groups))]
    return np.concatenate([one.generate_state(count, np.uint64) for one, count in zip(sequences, groups, strict=True)])


def _start_groups(variant: Variant, streams: Streams) -> Records:
    """Return one start state per rotation group; drawing it advances the stream of the group."""
    starts = np.zeros(len(streams), variant.dtype)
    begin(starts, np.arange(len(starts)), codes_of(variant, len(starts)), streams)
    return starts


# Warm-up: the first calls of agents compile code


def warm_up(agents: Sequence[Agent], variant: Variant, start: Records) -> None:
    """Let every agent act in every stage on one game and on two, so that compilation does not count as thinking time.

    Agents that use seat agents act through a seat agent in one game.
    """
    for agent in agents:
        try:
            with contextlib.ExitStack() as stack:
                _play_once(agent, variant.game_class(start.copy()), stack)
        except Forfeit as event:
            if str(event):
                raise AgentError(f"agent {agent.name!r}: {event}") from event
        except BaseException as error:
            check_own(error)
            raise AgentError(f"agent {agent.name!r}, before the first game: {failure_text(error)}") from error


def _play_once(agent: Agent, game: Game, stack: contextlib.ExitStack) -> None:
    """Play a game at random until the agent has acted in every stage."""
    rng, player = np.random.default_rng(0), agent.start(game.copy())
    if player is not None:
        stack.callback(player.close)
    seen: set[int] = set()
    while not game.is_over and len(seen) < len(game.definition().stages):
        if game.stage not in seen:
            seen.add(game.stage)
            _act_once(agent, player, game)
        action = int(rng.choice(game.legal_actions()))
        game.play(action)
        if player is not None:
            player.observe(action)


def _act_once(agent: Agent, player: Player | None, game: Game) -> None:
    if player is not None:
        player.act(GameRandom(np.zeros(1, np.uint64)))
        return
    for count in (1, 2):
        agent.act(np.repeat(game.records, count), GameRandom(np.zeros(count, np.uint64)))
