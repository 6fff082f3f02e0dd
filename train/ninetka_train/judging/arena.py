"""Play matches between agents. Every seating of a lineup is played equally often.

See `ninetka_train.judging.schedule` for seatings, and `ninetka_train.judging.lockstep` for how games are played.

    match = make_match(["random", "maxn"], num_players=2, num_games=100)
    results = match.play()
    results.winning_agents  # (T,) index of the agent that won each game
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Agent, AgentLike, as_agent, check_agent, check_agent_game
from ninetka_env.core.options import check_count, check_memory, short_repr
from ninetka_env.core.record import GameRecord
from ninetka_env.core.registry import DEFAULT_GAME, Variant, load_variant, with_players
from ninetka_train.judging.lockstep import AgentError, LockstepGames, MatchProgress
from ninetka_train.judging.results import MatchSettings, PartialResults, Results, unique_names
from ninetka_train.judging.schedule import Openings, count_lineups, default_opening_plies

DEFAULT_BATCH, SEAT_AGENT_BATCH = 256, 16
"""Default number of games played at once: without and with seat agents (`ninetka_agents.agent.SeatAgent`).

A seat agent needs a tree or a process for each game.
"""

BatchCallback = Callable[[Results, range], object]
"""Called after every batch with the results so far and the games of the batch; a true return value ends the match.
Also called when a batch is interrupted or an agent fails; then some games of the batch are not finished."""
PlayBatches = Callable[[MatchSettings, Sequence[range]], Iterator[PartialResults]]
"""Plays batches of a match in other processes with `ninetka_train.judging.lockstep.play_range`; yields their results
in order."""


class LatestResults:
    """Stores the latest results of a match, for use after an interruption.

    Pass it to `Match.play` as `on_batch_end`.
    """

    def __init__(self, callback: BatchCallback | None = None) -> None:
        """Also call `callback` after every batch, and end the match if it returns true."""
        self.results: Results | None = None
        self._callback = callback

    def __call__(self, results: Results, games: range) -> object:
        """Store the results, and return the result of the callback; see `BatchCallback`."""
        self.results = results
        return self._callback and self._callback(results, games)

    def complete_groups(self) -> Results | None:
        """Return the results of the finished rotation groups; None if there are none."""
        whole = self.results and self.results.complete_groups()
        return whole if whole and len(whole.winners) else None


@dataclass(frozen=True)
class Match:
    """Checked agents and settings, created by `make_match`. Each call of `play` plays all games again."""

    agents: Sequence[Agent]
    settings: MatchSettings
    openings: Openings | None = None
    """(G, plies) int16, the actions at the start of each rotation group; None to draw them from the seed."""

    @property
    def num_games(self) -> int:
        """Total number of games, in whole rotation groups of every lineup."""
        return len(self.settings.make_schedule().seatings)

    def play(
        self,
        *,
        progress: MatchProgress | None = None,
        on_start: Callable[[Results], object] | None = None,
        on_batch_end: BatchCallback | None = None,
        play_batches: PlayBatches | None = None,
        earlier: Mapping[int, GameRecord] | None = None,
    ) -> Results:
        """Play the games, batch by batch.

        Args:
            progress: called with the number of finished games.
            on_start: called before the first batch with the results, whose arrays are filled whenever games end.
            on_batch_end: called after every batch, for instance to save games. If it returns true, a match of one
                lineup ends, and its complete rotation groups are returned.
            play_batches: plays the batches; None to play them in this process.
            earlier: games of this match that were already played, by their index in the schedule. A batch of only such
                games is not played again. A batch with missing games is played as a whole, because the rounding of
                networks depends on the size of a batch.

        Raises:
            StartMismatchError: if an earlier game does not start as in this match.
            ValueError: if an opening has an illegal action or ends its game, or if the match has openings and
                `play_batches` is given.
            AgentError: if an agent fails before the first game, or if it fails later and `forfeit` is off; the message
                names the game and the agent. A seat agent that raises `Forfeit` only loses its game.
        """
        if self.openings is not None and play_batches:
            raise ValueError("openings: other processes draw their own: leave out openings or play_batches")
        lockstep, earlier = LockstepGames(self.agents, self.settings, self.openings), earlier or {}
        lockstep.check_earlier(earlier)
        results = lockstep.results
        if on_start:
            on_start(results)
        batches = self._batches(len(results.winners))
        is_missing = [not all(game in earlier for game in batch) for batch in batches]
        parts = play_batches(self.settings, list(compress(batches, is_missing))) if play_batches else None
        for batch, missing in zip(batches, is_missing, strict=True):
            try:
                if missing:
                    _play_batch(lockstep, batch, progress or (lambda done: None), parts)
            except BaseException as error:  # an interruption or a failing agent must not lose the finished games
                lockstep.insert_earlier(batch, earlier)
                if on_batch_end:
                    on_batch_end(results, batch)
                if isinstance(error, AgentError) and len((whole := results.complete_groups()).winners):
                    error.results = whole
                raise
            lockstep.insert_earlier(batch, earlier)
            ends = on_batch_end and on_batch_end(results, batch)
            if ends and len(results.schedule.lineups) == 1 and batch.stop >= results.schedule.rotation:
                return results.complete_groups()
        return results

    def _batches(self, num_games: int) -> list[range]:
        size = self.settings.batch
        assert size is not None, "a match that is played has a size of batches"
        return [range(first, min(first + size, num_games)) for first in range(0, num_games, size)]


def _play_batch(
    lockstep: LockstepGames, games: range, progress: MatchProgress, parts: Iterator[PartialResults] | None
) -> None:
    """Play a batch, or insert the results of a batch that was played in another process."""
    if parts is None:
        lockstep.warm_up()
        lockstep.play_batch(games, progress)
    else:
        lockstep.results.insert(games, next(parts))
        progress(games.stop)


def make_match(
    agents: Sequence[AgentLike | str],
    num_players: int | None = None,
    num_games: int = 100,
    *,
    batch: int | None = None,
    opening_plies: int | None = None,
    openings: npt.ArrayLike | None = None,
    check: Callable[[MatchSettings], None] | None = None,
    **options: Any,
) -> Match:
    """Check all settings, and create the agents that are given as specs.

    With as many agents as seats there is one lineup. With fewer, the last agent fills the remaining seats. With more,
    every combination of `num_players` agents is a lineup.

    The seed determines all games. Each game has its own random stream, so results do not depend on `batch` or on the
    number of threads, if agents draw random numbers from `ninetka_agents.agent.game_streams` and do not round
    differently in batches of another size.

    Args:
        agents: one or more agents or specs; see `ninetka_agents.agent.Agent` and `make_agent`.
        num_players: number of players; None for the game's default.
        num_games: games per lineup, rounded up to a whole number of rotation groups.
        batch: games played in lockstep: the maximum number of positions in one call of an agent, and of simultaneous
            games with seat agents. None for 256, or 16 if an agent has seat agents.
        opening_plies: number of random plies at the start of each rotation group, the same in all its games; None for
            `ninetka_train.judging.schedule.default_opening_plies`.
        openings: (G, plies) integers, the actions at the start of each of the match's G rotation groups, instead of
            random ones; -1 after the end of a shorter opening.
        check: called with the settings before the agents are created, because creating them may be slow; raises
            `ValueError` if the settings are not suitable. In these settings, `batch` and `opening_plies` may be None,
            and the name of an agent that was given as a spec is the spec.
        options: `game`, `seed` and `forfeit` of `make_settings`, and the options of the game.

    Raises:
        ValueError: if an option is wrong, or if an agent plays another game only; the message names the
            allowed values.
    """
    settings = make_settings(agents, num_players, num_games, batch=batch, opening_plies=opening_plies, **options)
    if check:
        check(settings)
    variant = settings.variant
    seated = [as_agent(one, variant.definition.name) for one in agents]
    for agent in seated:
        check_agent_game(agent, variant.definition.name)
    if batch is None:
        batch = SEAT_AGENT_BATCH if any(agent.has_seat_agents for agent in seated) else DEFAULT_BATCH
    chosen = None if openings is None else _check_shape(openings, settings, opening_plies)
    if chosen is not None:
        opening_plies = chosen.shape[1]
    elif opening_plies is None:
        opening_plies = default_opening_plies(seated, variant)
    names = unique_names([agent.name for agent in seated])
    return Match(seated, replace(settings, agents=names, batch=batch, opening_plies=opening_plies), chosen)


def _check_shape(openings: npt.ArrayLike, settings: MatchSettings, opening_plies: int | None) -> Openings:
    """Return given openings as an array; raise `ValueError` unless they are integers, one row for each group."""
    if opening_plies is not None:
        raise ValueError(f"opening_plies={opening_plies} with openings: expected one of them")
    groups = len(settings.make_schedule().first_games)
    try:
        chosen = np.asarray(openings)
    except ValueError:
        raise ValueError(f"openings: rows of different lengths: expected integers ({groups}, plies)") from None
    if chosen.ndim != 2 or len(chosen) != groups or chosen.dtype.kind not in "iu":
        raise ValueError(f"openings: {chosen.dtype} {chosen.shape}: expected integers ({groups}, plies)")
    if not np.isin(chosen, np.arange(-1, settings.variant.sizes.num_actions)).all():
        raise ValueError(f"openings: expected actions below {settings.variant.sizes.num_actions}, or -1 after the last")
    if ((chosen[:, :-1] < 0) & (chosen[:, 1:] >= 0)).any():
        raise ValueError("openings: expected -1 only after the last action of an opening")
    return chosen.astype(np.int16)


def make_settings(
    agents: Sequence[AgentLike | str],
    num_players: int | None = None,
    num_games: int = 100,
    *,
    game: str | Variant = DEFAULT_GAME,
    seed: int = 0,
    batch: int | None = None,
    opening_plies: int | None = None,
    forfeit: bool = False,
    **options: Any,
) -> MatchSettings:
    """Check the settings of a match, without creating agents.

    Args:
        agents: agents or specs, as in `make_match`.
        num_players: number of players; None for the game's default.
        num_games: games per lineup.
        batch: games played in lockstep; None if it depends on the agents.
        game: spec of the game.
        seed: integer of at least 0.
        opening_plies: random plies at the start of each rotation group; None if they depend on the agents.
        forfeit: whether an agent that raises an exception or returns an illegal action loses the game; otherwise the
            match ends with `AgentError`.
        options: options of the game, such as `komi=6.5`.

    Raises:
        ValueError: if a setting is wrong; the message names the first such setting and the allowed values.
    """
    _check_agents(agents)
    variant = load_variant(game, **options)
    if num_players is not None:
        variant = with_players(variant, num_players)
    check_count("num_games", num_games)
    if batch is not None:
        check_count("batch", batch)
    check_memory("num_games", num_games, _bytes_per_game(variant) * count_lineups(len(agents), variant.num_players))
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"seed={short_repr(seed)}: expected an integer of at least 0")
    if opening_plies is not None:
        check_count("opening_plies", opening_plies, minimum=0, maximum=variant.sizes.max_plies)
    names = unique_names([one if isinstance(one, str) else one.name for one in agents])
    return MatchSettings(names, variant.spec, variant.num_players, num_games, seed, batch, opening_plies or 0, forfeit)


def _check_agents(agents: Any) -> None:
    """Raise `ValueError` unless `agents` are one or more agents or specs; the specs are not parsed."""
    if isinstance(agents, str) or not isinstance(agents, Collection):
        raise ValueError(f"agents={short_repr(agents)}: expected a list of agents or specs, such as ['random', 'maxn']")
    if not agents:
        raise ValueError("no agents: expected at least one")
    for one in agents:
        if not isinstance(one, str):
            check_agent(one)


def _bytes_per_game(variant: Variant) -> int:
    """Return the approximate memory of a game during a match: state, actions, seating, scores, shares."""
    return int(variant.dtype.itemsize + 2 * variant.sizes.max_plies + 32 * variant.num_players)


def play_games(
    agents: Sequence[AgentLike | str],
    num_players: int | None = None,
    num_games: int = 100,
    *,
    progress: MatchProgress | None = None,
    on_batch_end: BatchCallback | None = None,
    play_batches: PlayBatches | None = None,
    earlier: Mapping[int, GameRecord] | None = None,
    **options: Any,
) -> Results:
    """Let agents play each other with rotated seats: `make_match` with its options, then `Match.play`."""
    match = make_match(agents, num_players, num_games, **options)
    return match.play(progress=progress, on_batch_end=on_batch_end, play_batches=play_batches, earlier=earlier)
