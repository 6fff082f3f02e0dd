"""Play games in lockstep: in each ply, each agent is called once and chooses a move in all games where it is to move.

Start reading at `LockstepGames.play_batch`. `arena.py` makes the matches; `schedule.py` assigns agents to seats.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, Agent, Forfeit, PerGameGenerator, SeatAgent
from ninetka_env.core.batch import (
    GameOutcomes,
    make_outcomes,
    option_codes,
    play_all,
    restart_games,
    write_outcomes,
    write_stages,
)
from ninetka_env.core.game import Event, Game
from ninetka_env.core.options import check_actions
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.random_streams import Streams
from ninetka_env.core.record import GameRecord
from ninetka_env.core.registry import Variant
from ninetka_env.core.text import one_line
from ninetka_env.core.verbs import StateArray
from ninetka_train.judging.results import (
    FAILURE_TAG,
    MAX_TAG_LENGTH,
    NO_ACTION,
    MatchSettings,
    MoveTimes,
    PartialResults,
    Results,
)
from ninetka_train.judging.schedule import Openings, Schedule, check_openings, draw_openings

NO_AGENT = -1
"""Agent index for the plies of a random opening."""

MatchProgress = Callable[[float], None]
"""Called during the games with the number of finished games; running games count in part."""


class AgentError(RuntimeError):
    """Raised if an agent raises an exception, or does not return one legal action per game."""

    results: Results | None = None
    """The finished rotation groups, for `ninetka_train.judging.evaluate.summarise`; None if there are none."""


class StartMismatchError(ValueError):
    """Raised if an earlier game does not start as in this match."""


class AnswerError(ValueError):
    """Raised if an agent does not return one legal action per game."""


def reraise_fatal(error: BaseException) -> None:
    """Raise `error` again if it is an interruption or a lack of memory, which is not the agent's failure."""
    if isinstance(error, (KeyboardInterrupt, MemoryError)):
        raise error


def failure_text(failure: BaseException) -> str:
    """Return a description of an agent's failure. For an illegal action, the later lines show the position."""
    try:
        text = str(failure)
    except Exception:  # `__str__` of an exception class of an agent may fail
        text = "its text cannot be read"
    return text if isinstance(failure, AnswerError) else f"{type(failure).__name__}: {text}"


def play_range(agents: Sequence[Agent], settings: MatchSettings, games: range) -> PartialResults:
    """Play some games of a match, and return their results; the agents must be warmed up."""
    lockstep = LockstepGames(agents, settings)
    lockstep.play_batch(games, lambda done: None)
    return lockstep.results.partial(games)


class LockstepGames:
    """All games of a match, at first in their start positions; `play_batch` plays some of them to the end."""

    def __init__(self, agents: Sequence[Agent], settings: MatchSettings, openings: Openings | None = None) -> None:
        """Create the start positions, random streams and openings of all games.

        Args:
            agents: the agents.
            settings: settings of the match.
            openings: (G, plies) actions at the start of each rotation group; None to draw them.

        Raises:
            ValueError: if an opening has an illegal action or ends its game.
        """
        schedule = settings.make_schedule()
        assert settings.seed is not None
        streams = _group_streams(schedule, settings.seed)
        starts = _group_starts(settings.variant, streams)
        self.agents = agents
        if openings is None:
            openings = draw_openings(settings.variant, starts, streams, settings.opening_plies)
        else:
            check_openings(settings.variant, starts, openings)
        self.openings = openings[schedule.group_of]
        self.games = starts[schedule.group_of]
        self.streams = streams[schedule.group_of]
        self._variant = settings.variant
        self._seat_agents: dict[tuple[int, int], SeatAgent] = {}
        self._is_warm = False
        count, definition = len(self.games), self._variant.definition
        self._endings: GameOutcomes = make_outcomes(self._variant.dtype, count, settings.num_players)
        kind = np.int64 if np.issubdtype(definition.score_dtype, np.integer) else np.float64
        scores = np.zeros((count, settings.num_players), kind)
        actions = np.full((count, self._variant.sizes.max_plies), NO_ACTION, np.int16)
        times = MoveTimes.zeros(len(agents), len(definition.stages))
        winners = np.full(count, UNFINISHED, np.int64)
        self.results = Results(settings, schedule, winners, scores, starts, actions, times)

    def warm_up(self) -> None:
        """Warm up the agents once, before the first batch."""
        if not self._is_warm:
            warm_up(self.agents, self._variant, self.results.starts[:1])
        self._is_warm = True

    def check_earlier(self, earlier: Mapping[int, GameRecord]) -> None:
        """Raise `StartMismatchError` if an earlier game does not start as in this match."""
        for index, record in earlier.items():
            start = self.results.starts[self.results.schedule.group_of[index]]
            drawn = self.openings[index][self.openings[index] >= 0]
            if record.start().records[0] != start or list(record.actions[: len(drawn)]) != drawn.tolist():
                raise StartMismatchError(f"game {index + 1} was played from another start than this match gives it")

    def insert_earlier(self, games: range, earlier: Mapping[int, GameRecord]) -> None:
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
                if record.event and (failure := record.tags.get(FAILURE_TAG)):
                    results.failures[index] = results.failure_sentence(index, failure)
                results.winners[index] = record.winner

    def play_batch(self, games: range, progress: MatchProgress) -> None:
        """Play some games to the end; after an interruption, the results contain the finished games."""
        batch = np.arange(games.start, games.stop)
        is_running = np.ones(len(batch), np.bool_)
        try:
            with self._started_seat_agents(batch):
                self._play_to_end(batch, is_running, progress)
        finally:
            self._record_endings(batch[~is_running])

    def _play_to_end(
        self, batch: npt.NDArray[np.int64], is_running: npt.NDArray[np.bool_], progress: MatchProgress
    ) -> None:
        """Play one ply of each game at a time; clear `is_running` of finished games, and record their endings."""
        is_running[:], most = self._has_no_event(batch), self.results.actions.shape[1]
        for ply in range(most):
            if not is_running.any():
                return
            playing = batch[is_running]
            continues = self._play_ply(playing, ply)
            is_running[is_running] = continues
            self._record_endings(playing[~continues])
            under_way = int(is_running.sum())
            progress(float(batch[0] + len(batch) - under_way + under_way * (ply + 1) / most))

    def _record_endings(self, games: npt.NDArray[np.int64]) -> None:
        """Write scores and winners of finished games into the results."""
        if not len(games):
            return
        results = self.results
        write_outcomes(self.games, games, self._endings)
        winners = self._endings.winners[games].copy()
        for place, index in enumerate(games.tolist()):
            if index in results.events:
                winners[place] = self._game_with_event(index).winner()
        results.scores[games] = self._endings.scores[games]
        results.winners[games] = winners  # last, because a winner marks a game as finished and this may be interrupted

    def _has_no_event(self, games: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return (N,) bool: the games that no event, such as a forfeit, has ended."""
        return np.array([index not in self.results.events for index in games.tolist()], np.bool_)

    def _game_with_event(self, index: int) -> Game:
        """Return the final position of a game that was ended by an event."""
        game: Game = self._variant.game_class(self.games[index : index + 1].copy())
        event = self.results.events[index]
        game.forfeit(event.seat, event.kind)
        return game

    def _play_ply(self, active: npt.NDArray[np.int64], ply: int) -> npt.NDArray[np.bool_]:
        """Play one ply in each game of `active`; return (N,) bool, whether each game continues."""
        movers = self.results.schedule.seatings[active, self.games["to_move"][active]]
        if ply < self.openings.shape[1]:
            drawn = self.openings[active, ply]
            movers[drawn >= 0] = NO_AGENT
        is_running = np.ones(len(active), np.bool_)
        for agent in np.unique(movers):
            is_mover = movers == agent
            games = active[is_mover]
            actions = drawn[is_mover].astype(np.int64) if agent == NO_AGENT else self._choose_actions(int(agent), games)
            self.results.actions[games, ply], is_running[is_mover] = self._play_actions(int(agent), games, actions)
        return is_running & self._has_no_event(active)

    def _choose_actions(self, agent: int, chosen: npt.NDArray[np.int64]) -> Actions:
        """Ask an agent for its actions in the games `chosen`, and record its thinking time.

        An action is `NO_ACTION` where the agent fails.
        """
        positions, streams = self.games[chosen], self.streams[chosen]
        start = time.perf_counter()
        actions = self._ask(agent, chosen, streams)
        self._count_time(agent, positions, time.perf_counter() - start)
        self.streams[chosen] = streams
        return actions

    def _play_actions(
        self, agent: int, chosen: npt.NDArray[np.int64], actions: Actions
    ) -> tuple[Actions, npt.NDArray[np.bool_]]:
        """Play an agent's actions in the games `chosen`. An illegal action is a failure of the agent.

        Returns:
            (N,) the actions, `NO_ACTION` in games that an event has ended; (N,) bool, whether each game continues.
        """
        is_running, played = np.zeros(len(chosen), np.bool_), np.full(len(chosen), NO_ACTION, np.int64)
        while True:
            remaining = np.flatnonzero(self._has_no_event(chosen))
            over = np.zeros(len(remaining), np.bool_)
            illegal = play_all(self.games, chosen[remaining], actions[remaining], over)
            if illegal < 0:
                break
            index, action = chosen[remaining[illegal]], int(actions[remaining[illegal]])
            game: Game = self._variant.game_class(self.games[index : index + 1])
            self._handle_failure(agent, int(index), AnswerError(f"{game.describe_illegal(action)}\n{game}"))
        played[remaining], is_running[remaining] = actions[remaining], ~over
        if self._seat_agents:
            for place, ended in zip(remaining.tolist(), over.tolist(), strict=True):
                self._notify_seat_agents(int(chosen[place]), int(actions[place]), ended)
        return played, is_running

    def _ask(self, agent: int, chosen: npt.NDArray[np.int64], streams: Streams) -> Actions:
        """Return the actions of an agent, or of its seat agents, in the games `chosen`; advance `streams`."""
        if (agent, int(chosen[0])) in self._seat_agents:
            return self._ask_seat_agents(agent, chosen, streams)
        before = streams.copy()
        try:
            return self._answers(agent, chosen, streams)
        except BaseException as error:
            reraise_fatal(error)
            if len(chosen) == 1:
                self._handle_failure(agent, int(chosen[0]), error)
                return np.full(1, NO_ACTION, np.int64)
            streams[:] = before
            return self._ask_one_by_one(agent, chosen, streams, error)

    def _answers(self, agent: int, chosen: npt.NDArray[np.int64], streams: Streams) -> Actions:
        answer = self.agents[agent].act(self.games[chosen], PerGameGenerator(streams))
        try:
            return check_actions(answer, len(chosen))
        except (TypeError, ValueError) as error:
            raise AnswerError(str(error)) from error

    def _ask_one_by_one(
        self, agent: int, chosen: npt.NDArray[np.int64], streams: Streams, together: BaseException
    ) -> Actions:
        """Ask an agent about each game alone, to find the games in which it fails.

        Before this call, the agent failed with the exception `together` when it was asked about all games at once.

        Raises:
            AgentError: if a failure does not lose the game. It names the first game in which the agent fails or, if
                there is none, the failure `together`.
        """
        actions = np.full(len(chosen), NO_ACTION, np.int64)
        for place, index in enumerate(chosen.tolist()):
            alone = slice(place, place + 1)
            try:
                actions[alone] = self._answers(agent, chosen[alone], streams[alone])
            except BaseException as error:
                self._handle_failure(agent, index, error)
        if self.results.settings.forfeit:
            return actions
        games = f"games {chosen[0] + 1} to {chosen[-1] + 1}, together but not one by one"
        name = self.results.settings.agents[agent]
        raise AgentError(f"{games}: agent {name!r}: {failure_text(together)}") from together

    def _ask_seat_agents(self, agent: int, chosen: npt.NDArray[np.int64], streams: Streams) -> Actions:
        actions = np.full(len(chosen), NO_ACTION, np.int64)
        for place, index in enumerate(chosen.tolist()):
            try:
                answer = self._seat_agents[agent, index].act(PerGameGenerator(streams[place : place + 1]))
                actions[place] = check_actions([answer], 1)[0]
            except BaseException as error:
                self._handle_failure(agent, index, error)
        return actions

    def _notify_seat_agents(self, index: int, action: int, ended: bool) -> None:
        """Let the seat agents in a game observe an action; a failure after the last action does not lose the game."""
        for agent in range(len(self.agents)):
            if (agent, index) in self._seat_agents:
                try:
                    self._seat_agents[agent, index].observe(action)
                except BaseException as error:
                    reraise_fatal(error)
                    if not (ended and (isinstance(error, Forfeit) or self.results.settings.forfeit)):
                        self._handle_failure(agent, index, error)

    def _handle_failure(self, agent: int, index: int, error: BaseException) -> None:
        """Let an agent that failed lose the game.

        Raises:
            AgentError: if `error` is not a `Forfeit` and the setting `forfeit` is off.
        """
        reraise_fatal(error)
        if isinstance(error, Forfeit):
            self._forfeit(index, agent, error)
        elif self.results.settings.forfeit:
            sentence = failure_text(error).partition("\n")[0] if isinstance(error, AnswerError) else failure_text(error)
            self._forfeit(index, agent, Forfeit("left", sentence))
        else:
            name = self.results.settings.agents[agent]
            raise AgentError(f"game {index + 1}: agent {name!r}: {failure_text(error)}") from error

    def _close(self, agent: int, index: int, seat_agent: SeatAgent) -> None:
        """Close a seat agent; a failure does not lose the game, which is finished."""
        try:
            seat_agent.close()
        except BaseException as error:
            reraise_fatal(error)
            if not (isinstance(error, Forfeit) or self.results.settings.forfeit):
                self._handle_failure(agent, index, error)

    def _forfeit(self, index: int, agent: int, event: Forfeit) -> None:
        """End a game: `agent` loses it by `event`. Do nothing if an event has already ended the game.

        The losing seat is the seat to move if the agent has it, otherwise the agent's first seat.
        """
        results, to_move = self.results, int(self.games["to_move"][index])
        if index in results.events:
            return
        seats = np.flatnonzero(results.schedule.seatings[index] == agent)
        results.events[index] = Event(event.kind, to_move if to_move in seats else int(seats[0]))
        if failure := one_line(str(event), MAX_TAG_LENGTH):
            results.failures[index] = results.failure_sentence(index, failure)

    def _count_time(self, agent: int, positions: StateArray, seconds: float) -> None:
        stages = np.zeros(len(positions), np.int8)
        write_stages(positions, stages)
        for stage, moves in enumerate(np.bincount(stages)):
            if moves:
                self.results.times.add(agent, stage, seconds * moves / len(positions), int(moves))

    @contextlib.contextmanager
    def _started_seat_agents(self, batch: npt.NDArray[np.int64]) -> Iterator[None]:
        """Start the seat agents of all games in `batch`; return a context manager that closes them at its end."""
        with contextlib.ExitStack() as stack:
            for agent, one in enumerate(self.agents):
                for index in batch[(self.results.schedule.seatings[batch] == agent).any(axis=1)].tolist():
                    try:
                        player = one.start(self._variant.game_class(self.games[index : index + 1].copy()))
                    except BaseException as error:
                        self._handle_failure(agent, index, error)
                        continue
                    if player is None:
                        break
                    stack.callback(self._close, agent, index, player)
                    self._seat_agents[agent, index] = player
            try:
                yield
            finally:
                self._seat_agents.clear()


def _group_streams(schedule: Schedule, seed: int) -> Streams:
    """Return one random stream per rotation group.

    If a match is made longer, the groups that it already had keep their streams.
    """
    groups = schedule.groups_by_lineup.tolist()
    sequences = [np.random.SeedSequence(seed, spawn_key=(lineup,)) for lineup in range(len(groups))]
    return np.concatenate([one.generate_state(count, np.uint64) for one, count in zip(sequences, groups, strict=True)])


def _group_starts(variant: Variant, streams: Streams) -> StateArray:
    """Draw the start state of each rotation group from the group's stream; advance the streams."""
    starts = np.zeros(len(streams), variant.dtype)
    restart_games(starts, np.arange(len(starts)), option_codes(variant, len(starts)), streams)
    return starts


# Warm-up: the first calls of agents compile code


def warm_up(agents: Sequence[Agent], variant: Variant, start: StateArray) -> None:
    """Let every agent act once per stage with one game and with two, so that thinking times include no compilation.

    Agents that use seat agents act through a seat agent in one game.
    """
    for agent in agents:
        try:
            with contextlib.ExitStack() as stack:
                _warm_up_agent(agent, variant.game_class(start.copy()), stack)
        except Forfeit as event:
            if str(event):
                raise AgentError(f"agent {agent.name!r}: {event}") from event
        except BaseException as error:
            reraise_fatal(error)
            raise AgentError(f"agent {agent.name!r}, before the first game: {failure_text(error)}") from error


def _warm_up_agent(agent: Agent, game: Game, stack: contextlib.ExitStack) -> None:
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


def _act_once(agent: Agent, seat_agent: SeatAgent | None, game: Game) -> None:
    if seat_agent is not None:
        seat_agent.act(PerGameGenerator(np.zeros(1, np.uint64)))
        return
    for count in (1, 2):
        agent.act(np.repeat(game.records, count), PerGameGenerator(np.zeros(count, np.uint64)))
