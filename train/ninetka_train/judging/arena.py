"""Many games between agents, with every seating of a lineup played equally often.

Who sits where is in `ninetka_train.judging.schedule`, how games are played in `ninetka_train.judging.lockstep`.

    match = make_match(["random", "maxn"], num_players=2, num_games=100)
    results = match.play()
    results.winning_agents  # (T,) index of the agent that won each game
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np

from ninetka_agents.agent import Agent, AgentLike, as_agent, check_plays
from ninetka_env.core.options import check_count, check_memory, shortened
from ninetka_env.core.record import GameRecord
from ninetka_env.core.registry import DEFAULT, Variant, load_variant, with_players
from ninetka_train.judging.lockstep import AgentError, Lockstep, Progress
from ninetka_train.judging.results import Part, Results, Settings, unique_names
from ninetka_train.judging.schedule import count_lineups, usual_opening_plies

BATCH, REMEMBERED_BATCH = 256, 16
"""Games played at once by default; fewer where an agent keeps a tree, or runs a program, for each of them."""

Finished = Callable[[Results, range], object]
"""Called after every batch, with the results so far and the games of the batch; what it returns, if true, ends the
match there. It is also called where a batch is interrupted or an agent fails: then some of its games are not over."""
PlayBatches = Callable[[Settings, Sequence[range]], Iterator[Part]]
"""Plays batches of a match elsewhere, each by `ninetka_train.judging.lockstep.play_part`; yields what came out, in
their order."""


class SoFar:
    """The results of a match after every batch, for whoever stops it; to be given to `Match.play` as `finished`."""

    def __init__(self, then: Finished | None = None) -> None:
        """Call `then` after every batch, too, and end the match where it says so."""
        self.results: Results | None = None
        self._then = then

    def __call__(self, results: Results, games: range) -> object:
        """See `Finished`."""
        self.results = results
        return self._then and self._then(results, games)

    def whole_groups(self) -> Results | None:
        """Return the rotation groups that are over; None if there are none."""
        whole = self.results and self.results.whole_groups()
        return whole if whole and len(whole.winners) else None


@dataclass(frozen=True)
class Match:
    """Agents and settings that have been checked; `make_match` makes one. Each call of `play` plays it from anew."""

    agents: Sequence[Agent]
    settings: Settings

    @property
    def num_games(self) -> int:
        """Games in all: those of every lineup, in whole rotation groups."""
        return len(self.settings.make_schedule().seatings)

    def play(
        self,
        *,
        progress: Progress | None = None,
        finished: Finished | None = None,
        elsewhere: PlayBatches | None = None,
        earlier: Mapping[int, GameRecord] | None = None,
    ) -> Results:
        """Play the games, batch by batch.

        Args:
            progress: called with how many games are over.
            finished: called after every batch of games, for instance to save them. A match of one lineup ends where it
                returns true; whole rotation groups count.
            elsewhere: plays the batches; None for this process.
            earlier: games of this match that were played already, by their place in the schedule; they are not played
                again. A batch of which some games are missing is played whole, so that networks round as they did.

        Raises:
            OtherStartError: if an earlier game does not begin as it does in this match.
            AgentError: naming game and agent, if an agent fails: in every case before the first game, later unless
                such games are forfeited. A player that raises `Forfeit` has lost its game, and the others are played.
        """
        lockstep, earlier = Lockstep(self.agents, self.settings), earlier or {}
        lockstep.check(earlier)
        results = lockstep.results
        batches = self._batches(len(results.winners))
        is_missing = [not all(game in earlier for game in batch) for batch in batches]
        parts = elsewhere(self.settings, list(compress(batches, is_missing))) if elsewhere else None
        for batch, missing in zip(batches, is_missing, strict=True):
            try:
                if missing:
                    _play_batch(lockstep, batch, progress or (lambda done: None), parts)
            except BaseException as error:  # stopping, or an agent that fails, must not lose the games that are over
                lockstep.take(batch, earlier)
                if finished:
                    finished(results, batch)
                if isinstance(error, AgentError) and len((whole := results.whole_groups()).winners):
                    error.results = whole
                raise
            lockstep.take(batch, earlier)
            ends = finished and finished(results, batch)
            if ends and len(results.schedule.lineups) == 1 and batch.stop >= results.schedule.rotation:
                return results.whole_groups()
        return results

    def _batches(self, num_games: int) -> list[range]:
        size = self.settings.batch
        assert size is not None, "a match that is played has a size of batches"
        return [range(first, min(first + size, num_games)) for first in range(0, num_games, size)]


def _play_batch(lockstep: Lockstep, games: range, progress: Progress, parts: Iterator[Part] | None) -> None:
    """Play a batch, or take in what came out of it elsewhere."""
    if parts is None:
        lockstep.warm_up()
        lockstep.play_batch(games, progress)
    else:
        lockstep.results.put(games, next(parts))
        progress(games.stop)


def make_match(
    agents: Sequence[AgentLike | str],
    num_players: int | None = None,
    num_games: int = 100,
    *,
    batch: int | None = None,
    opening_plies: int | None = None,
    check: Callable[[Settings], None] | None = None,
    **options: Any,
) -> Match:
    """Check everything that can be wrong before a game is played, and make the agents that are named.

    With as many agents as seats there is one lineup; with fewer, the last agent fills the seats that remain; with
    more, every choice of `num_players` agents is a lineup.

    The seed decides everything: each game draws from a stream of its own, so neither `batch` nor the number of
    threads changes a result (as long as agents take their chances from `ninetka_agents.agent.game_streams`, and do not
    round differently in batches of another size).

    Args:
        agents: one or more, or their specs; see `ninetka_agents.agent.Agent` and `make_agent`.
        num_players: seats at the table; None for the game's default.
        num_games: games per lineup, rounded up to a whole number of rotation groups.
        batch: games played in lockstep, so the most positions that an agent is asked about in one call, and the most
            players with a memory of their game that are kept at once; None for 256, or 16 if there are such players.
        opening_plies: how many plies each rotation group begins with that are drawn at random, the same for all its
            games; None for `ninetka_train.judging.schedule.usual_opening_plies`.
        check: called with the settings before agents are made, which may take a while; raises `ValueError` if they do
            not suit. They lack what depends on the agents: names that are not specs, and what is None here.
        options: `game`, `seed` and `forfeit` of `make_settings`, and those of the game.

    Raises:
        ValueError: naming the option that is wrong and the values it may have, or the agent that plays another game.
    """
    settings = make_settings(agents, num_players, num_games, batch=batch, opening_plies=opening_plies, **options)
    if check:
        check(settings)
    variant = settings.variant
    seated = [as_agent(one, variant.definition.name) for one in agents]
    for agent in seated:
        check_plays(agent, variant.definition.name)
    if batch is None:
        batch = REMEMBERED_BATCH if any(agent.remembers for agent in seated) else BATCH
    if opening_plies is None:
        opening_plies = usual_opening_plies(seated, variant)
    names = unique_names([agent.name for agent in seated])
    return Match(seated, replace(settings, agents=names, batch=batch, opening_plies=opening_plies))


def make_settings(
    agents: Sequence[AgentLike | str],
    num_players: int | None = None,
    num_games: int = 100,
    *,
    game: str | Variant = DEFAULT,
    seed: int = 0,
    batch: int | None = None,
    opening_plies: int | None = None,
    forfeit: bool = False,
    **options: Any,
) -> Settings:
    """Check and gather what is asked for; no agents are made.

    Args:
        agents: as of `make_match`, as the three that follow.
        num_players: seats at the table.
        num_games: per lineup.
        batch: None if it depends on the agents.
        game: the spec of the game.
        seed: 0 or more.
        opening_plies: None if they depend on the agents.
        forfeit: an agent that raises an exception or answers with an illegal action has lost that game; otherwise the
            match ends in `AgentError`.
        options: of the game, such as `komi=6.5`.

    Raises:
        ValueError: naming the first setting that is wrong and the values it may have.
    """
    if not agents:
        raise ValueError("no agents: expected at least one")
    variant = load_variant(game, **options)
    if num_players is not None:
        variant = with_players(variant, num_players)
    check_count("num_games", num_games)
    if batch is not None:
        check_count("batch", batch)
    check_memory("num_games", num_games, _bytes_per_game(variant) * count_lineups(len(agents), variant.num_players))
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"seed={shortened(seed)}: expected an integer of at least 0")
    if opening_plies is not None:
        check_count("opening_plies", opening_plies, least=0, most=variant.sizes.most_plies)
    names = unique_names([one if isinstance(one, str) else one.name for one in agents])
    return Settings(names, variant.spec, variant.num_players, num_games, seed, batch, opening_plies or 0, forfeit)


def _bytes_per_game(variant: Variant) -> int:
    """Return about how much memory a game takes until its match is over: record, actions, seating, scores, shares."""
    return int(variant.dtype.itemsize + 2 * variant.sizes.most_plies + 32 * variant.num_players)


def play_games(
    agents: Sequence[AgentLike | str],
    num_players: int | None = None,
    num_games: int = 100,
    *,
    progress: Progress | None = None,
    finished: Finished | None = None,
    elsewhere: PlayBatches | None = None,
    earlier: Mapping[int, GameRecord] | None = None,
    **options: Any,
) -> Results:
    """Let agents play each other, seats rotated: `make_match` with its options, and `Match.play`."""
    match = make_match(agents, num_players, num_games, **options)
    return match.play(progress=progress, finished=finished, elsewhere=elsewhere, earlier=earlier)
