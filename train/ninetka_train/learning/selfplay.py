"""AlphaZero's self-play: play games with playouts or with a network, and return their positions as `Samples`.

A round is divided into tasks. The result of a task depends only on the settings, the network's weights and the indices
of its games, because each game has its own random stream, and the network evaluates the games of one task as one batch
on one torch thread. A task's result therefore does not depend on which worker runs it, when, or what else runs at the
time. `alphazero.py` has the training loop.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, GameRandom
from ninetka_agents.net_agent import network_evaluate
from ninetka_agents.search.gumbel import Evaluate, GumbelSearch, SearchOptions
from ninetka_agents.search.tree import TreeResult
from ninetka_env.core.batch import begin, make_endings, play_all, write_endings
from ninetka_env.core.chance import Streams, draw_each, make_streams
from ninetka_env.core.registry import limits_of
from ninetka_env.core.verbs import Records
from ninetka_train.learning.config import AlphaZeroSettings, TrainConfig
from ninetka_train.learning.processes import on_one_torch_thread, uses_bf16
from ninetka_train.learning.rollout import codes_for, sample
from ninetka_train.learning.samples import Floats, Samples, join, outcome_shares, rows_of
from ninetka_train.learning.teacher import Teacher, make_teacher
from ninetka_train.parts import selfplay_of

Bools = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]

SEARCHED = 512
"""Positions searched at the same time: enough for efficient network batches, few enough for the trees' memory."""
POLICY = -1
"""Returned by `GameHooks.act` in place of an action where the network's policy chooses the action."""
DECIDED_SHARE = 0.1
"""Share of positions of decided games that are kept: these games must be won too, but most add nothing new."""
QUICKER = 4
"""Divisor of the playouts in decided games. With a divisor of 8, or random moves, many wins are lost again."""


class Positions(NamedTuple):
    """N positions of the games of a task, ordered by ply."""

    origins: Numbers
    """(N,) int64 the index of each position's game."""
    games: Records
    """(N,) states."""
    drawn: npt.NDArray[np.float64]
    """(N,) float64 random numbers: below `share` a position is searched, below `share + value_share` it is kept."""
    streams: Streams
    """(N,) uint64 random streams for the searches of the positions."""


class Keeping(NamedTuple):
    """How likely N positions are kept."""

    weights: npt.NDArray[np.float64]
    """(N,) float64: factors of the probabilities `share` and `value_share`."""
    shown: npt.NDArray[np.float64]
    """(N,) float64: the probability that a position is passed to `GameHooks.learned` even if it would not be kept."""


class Learned(NamedTuple):
    """Training targets of N positions."""

    outcomes: Floats
    """(N, P + 1) float32 shares of the outcomes: win of each seat; draw."""
    policy: Floats
    """(N, A) float32, as in `ninetka_train.learning.samples.Samples`."""
    certain: Bools
    """(N,) bool: the outcome is that of perfect play, not the result of the game that was played."""
    decisive: Bools
    """(N,) bool: some moves are known to win, and others are known not to win."""


class GameHooks:
    """Hooks by which a game adds moves, searches and exact results to self-play.

    The methods of this base class add nothing. A game derives `Hooks` from it, and `Settings` from `AlphaZeroSettings`;
    see `ninetka_train.parts.selfplay_of`.
    """

    branch_games = 0
    """Number of games that are played from each position that `branches` returns."""

    def __init__(self, settings: AlphaZeroSettings, evaluate: Evaluate, threads: int) -> None:
        """Set up for a task.

        Args:
            settings: the run's settings, of the game's `Settings` class.
            evaluate: evaluates positions by the network; see `ninetka_agents.search.gumbel.Evaluate`.
            threads: maximum number of threads; results must not depend on it.
        """

    def act(self, games: Records, drawing: Bools, streams: Streams) -> Actions:
        """Return (N,) int64 actions for unfinished games, `POLICY` where the network's policy chooses.

        Args:
            games: (N,) states.
            drawing: (N,) bool: the move is to be drawn from the policy.
            streams: (N,) random streams of the games; advanced in place.
        """
        return np.full(len(games), POLICY)

    def keeping(self, games: Records) -> Keeping:
        """Return how likely each of (N,) positions is kept."""
        return Keeping(np.ones(len(games)), np.zeros(len(games)))

    def search(self, positions: Positions, rows: Numbers, policy: Floats, values: Floats) -> Numbers:
        """Search some of the positions `rows`; return the remaining rows, for the Gumbel search.

        Args:
            positions: N positions.
            rows: (K,) int64 indices of the positions to search.
            policy: (N, A) float32 policy targets of the searched positions; written.
            values: (N, P) float32 win probabilities of the searched positions; written.
        """
        return rows

    def branches(self, positions: Positions) -> Numbers:
        """Return the indices of positions from each of which `branch_games` more games are played, (B,) int64."""
        return np.empty(0, np.int64)

    def learned(self, positions: Positions, winners: Numbers, policy: Floats, families: Numbers) -> Learned:
        """Return the training targets of positions.

        Args:
            positions: N positions; those of one game are in the order of play. Their streams must not be advanced.
            winners: (G,) int64 winner of each game.
            policy: (N, A) float32 the search's policy, all 0 without a search.
            families: (N,) int64, equal for positions that share an origin (positions of one game, or of all games that
                were played from one position), which a solver should search together.
        """
        unknown = np.zeros(len(policy), np.bool_)
        outcomes = outcome_shares(winners[positions.origins], limits_of(positions.games.dtype).players)
        return Learned(outcomes, policy, unknown, unknown)


def tasks_of(config: TrainConfig) -> list[range]:
    """Divide the indices of a round's games into tasks whose sizes differ by at most one game."""
    count = config.alphazero.games * len(config.variants)
    tasks = -(-count // config.alphazero.task_games)
    return [range(count * task // tasks, count * (task + 1) // tasks) for task in range(tasks)]


def play_task(config: TrainConfig, network: Any, number: int, games: range, threads: int = 1) -> Samples:
    """Play a task of a round.

    For one type of processor and one version of torch, the same arguments give the same bytes in any process.

    Args:
        config: with `algorithm="alphazero"`.
        network: the network with which the round is played, in evaluation mode.
        number: index of the round, from 0.
        games: indices of the task's games, one of `tasks_of`.
        threads: maximum number of threads for the search; results do not depend on it.
    """
    return on_one_torch_thread(_play_task, config, network, number, games, threads)


def _play_task(config: TrainConfig, network: Any, number: int, games: range, threads: int) -> Samples:
    settings, game = config.alphazero, config.definition.name
    starts, streams = _starts(config, number, games)
    evaluate = network_evaluate(network, bf16=uses_bf16(config, network.device))
    own = selfplay_of(game)
    hooks = (own.Hooks if own else GameHooks)(settings, evaluate, threads)
    if number < settings.playout_rounds:
        teacher, quick = (
            make_teacher(game, settings.teacher, playouts, settings.exploration, threads, network.device)
            for playouts in (settings.playouts, max(1, settings.playouts // QUICKER))
        )
        return playout_games(starts, streams, teacher, quick, settings, hooks)
    options = SearchOptions(settings.simulations, settings.considered, playouts=settings.leaf_playouts)
    longest = max(variant.sizes.most_plies for variant in config.variants)
    most_drawn = min(settings.drawn_plies, 3 * longest // 4)
    return network_games(starts, streams, GumbelSearch(evaluate, options, threads), settings, hooks, most_drawn)


def _starts(config: TrainConfig, number: int, games: range) -> tuple[Records, Streams]:
    """Start games of a round, with alternating variants; return their states and random streams."""
    variants, count = config.variants, len(games)
    before = number * config.alphazero.games * len(variants) + games.start
    starts, streams = np.zeros(count, variants[0].dtype), make_streams((config.seed << 32) + before, count)
    options = codes_for(variants, games)
    begin(starts, np.arange(count), options, streams)
    return starts, streams


# Rounds with playouts


def playout_games(
    games: Records,
    streams: Streams,
    teacher: Teacher,
    quick: Teacher,
    settings: AlphaZeroSettings,
    hooks: GameHooks,
) -> Samples:
    """Play games to their ends by tree search with playouts, and keep every position until a game is decided.

    Args:
        games: (G,) initial states; played to their ends in place.
        streams: (G,) random streams of the games; advanced in place.
        teacher: the search.
        quick: the quick search that finishes decided games.
        settings: `greedy`, `power`, `teacher_mix` and `decided` are used.
        hooks: the game's hooks; only `learned` is used.
    """
    met, policies, values, playing, decided = [], [], [], np.arange(len(games)), [np.empty(0, np.int64)]

    def note(positions: Positions, found: TreeResult) -> None:
        met.append(positions)
        policies.append(policy_targets(found.visits, settings.power))
        values.append(found.values)

    while len(playing):
        now, own = games[playing], streams[playing]
        found = teacher.run(now, GameRandom(own))
        actions = _by_visits(found, settings.greedy, own)
        streams[playing] = own
        note(Positions(playing, now, np.zeros(len(now)), own), found)
        sure = playing[found.values.max(1) > settings.decided]
        playing = _play(games, playing, actions)
        decided.append(np.intersect1d(playing, sure))
        playing = np.setdiff1d(playing, sure)
    late = _play_on(games, streams, quick, np.concatenate(decided))
    if len(late.games):
        note(late, teacher.run(late.games, GameRandom(late.streams)))
    policy, searched = np.concatenate(policies), np.concatenate(values)
    samples, _ = _samples(games, _joined(met), policy, searched, settings.teacher_mix, hooks)
    return samples


def _play_on(games: Records, streams: Streams, quick: Teacher, playing: Numbers) -> Positions:
    """Play decided games to their ends by a quick search; return a share `DECIDED_SHARE` of their positions."""
    met = []
    while True:
        now, own = games[playing], streams[playing]
        drawn, words = uniform(own), _words(own)
        kept = drawn < DECIDED_SHARE
        met.append(Positions(playing[kept], now[kept], drawn[kept], words[kept]))
        if not len(playing):
            return _joined(met)
        actions = quick.act(now, GameRandom(own))
        streams[playing] = own
        playing = _play(games, playing, actions)


def policy_targets(visits: npt.NDArray[np.integer], power: float) -> Floats:
    """Return (N, A) float32 policies proportional to visits ** power, each row summing to 1."""
    weights = (visits / visits.max(1, keepdims=True)).astype(np.float32) ** np.float32(power)
    return weights / weights.sum(1, keepdims=True)


def _by_visits(found: TreeResult, greedy: float, streams: Streams) -> Actions:
    """Return the search's action with probability `greedy`, else an action drawn by visits."""
    chosen, drawn = uniform(streams), uniform(streams)
    sums = found.visits.cumsum(1)
    by_visits = (sums > drawn[:, None] * sums[:, -1:]).argmax(1)
    return np.where(chosen < greedy, found.actions, by_visits)


# Rounds with the network


def network_games(
    games: Records,
    streams: Streams,
    search: GumbelSearch,
    settings: AlphaZeroSettings,
    hooks: GameHooks,
    most_drawn: int,
) -> Samples:
    """Play games to their ends in parallel by a network's policy, and search some of their positions.

    Games without search are cheap, so a few positions per game are enough, and almost every position has the result of
    a different game. This extends "playout cap randomization" (Wu, "Accelerating self-play learning in Go", 2019).
    For variety, a game draws its moves from the policy up to a random ply. From there it plays the most probable moves,
    so that the winner is a good estimate of a position's value (as in Silver et al., 2016). Only positions after the
    drawn moves are kept.

    Args:
        games: (G,) initial states; played to their ends in place.
        streams: (G,) random streams of the games; advanced in place.
        search: the Gumbel search with the network.
        settings: `share`, `value_share`, `value_mix` and `decided` are used.
        hooks: the game's hooks.
        most_drawn: maximum number of drawn plies.
    """
    last_drawn = (uniform(streams) * most_drawn).astype(np.int64)
    met, playing, ply = [], np.arange(len(games)), 0
    while len(playing):
        now, own, drawing = games[playing], streams[playing], last_drawn[playing] > ply
        actions, chances = _by_network(search, hooks, now, own, drawing)
        keeping = hooks.keeping(now)
        weights = keeping.weights * np.where(chances > settings.decided, DECIDED_SHARE, 1.0)
        drawn, shown = uniform(own) / weights, uniform(own) < keeping.shown
        words = _words(own)
        streams[playing] = own
        kept = ~drawing & ((drawn < settings.share + settings.value_share) | shown)
        met.append(Positions(playing[kept], now[kept], drawn[kept], words[kept]))
        playing, ply = _play(games, playing, actions), ply + 1
    positions = _joined(met)
    searched = positions.drawn < settings.share
    policy, values = _nothing_found(positions)
    _search(search, hooks, positions, np.flatnonzero(searched), policy, values)
    samples, learned = _samples(games, positions, policy, values, settings.value_mix, hooks)
    valued = positions.drawn < settings.share + settings.value_share
    branches = hooks.branches(positions)
    more = [_branch_games(search, settings, hooks, positions, branches)] if len(branches) else []
    return join([_kept(samples, valued, learned.decisive), *more])


def _branch_games(
    search: GumbelSearch, settings: AlphaZeroSettings, hooks: GameHooks, positions: Positions, branches: Numbers
) -> Samples:
    """Play more games from the positions `branches`, with all moves drawn from the policy; return their samples.

    A share `DECIDED_SHARE` of the positions with certain outcomes is kept with values. Decisive positions are kept for
    their policy.
    """
    games, seeds = positions.games[np.repeat(branches, hooks.branch_games)], positions.streams[branches]
    streams = np.stack([_words(seeds) for _ in range(hooks.branch_games)], axis=1).ravel()
    met, playing = [], np.arange(len(games))
    while len(playing):
        now, own = games[playing], streams[playing]
        actions, _ = _by_network(search, hooks, now, own, np.ones(len(now), np.bool_))
        met.append(Positions(playing, now, uniform(own), _words(own)))
        streams[playing] = own
        playing = _play(games, playing, actions)
    found = _joined(met)
    policy, values = _nothing_found(found)
    families = found.origins // hooks.branch_games
    samples, learned = _samples(games, found, policy, values, settings.value_mix, hooks, families)
    return _kept(samples, learned.certain & (found.drawn < DECIDED_SHARE), learned.decisive)


def _kept(samples: Samples, valued: Bools, others: Bools) -> Samples:
    """Return the samples of the mask `valued`, and those of `others` with a policy target only.

    The others were selected because a winning move exists, so their outcome would bias the value head towards the
    mover.
    """
    values = np.where(valued[:, None], samples.values, np.float32(0))
    return rows_of(samples._replace(values=values), valued | others)


def _by_network(
    search: GumbelSearch, hooks: GameHooks, games: Records, streams: Streams, drawing: Bools
) -> tuple[Actions, Floats]:
    """Choose actions: the hooks' actions, else drawn from the policy where `drawing`, else the most probable ones.

    Return the actions, and (N,) float32 the network's highest win probability of any seat, 0 where the hooks chose.
    """
    drawn, chances = uniform(streams), np.zeros(len(games), np.float32)
    actions = hooks.act(games, drawing, streams)
    asked = actions == POLICY
    if asked.any():
        logits, values = search.evaluate(games[asked])
        by_chance, _ = sample(logits, drawn[asked].astype(np.float32))
        actions[asked] = np.where(drawing[asked], by_chance, logits.argmax(1))
        chances[asked] = values.max(1)
    return actions, chances


def _search(
    search: GumbelSearch, hooks: GameHooks, positions: Positions, rows: Numbers, policy: Floats, values: Floats
) -> None:
    """Search the positions `rows`; write their policy targets and win probabilities."""
    for part in portions(hooks.search(positions, rows, policy, values)):
        found = search.run(positions.games[part], GameRandom(positions.streams[part]))
        policy[part], values[part] = found.policy, found.values


def _nothing_found(positions: Positions) -> tuple[Floats, Floats]:
    """Return (N, A) policies of 0 and (N, P) values of nan, which `_samples` takes for positions without a search."""
    count, limits = len(positions.games), limits_of(positions.games.dtype)
    return np.zeros((count, limits.actions), np.float32), np.full((count, limits.players), np.nan, np.float32)


def portions(rows: Numbers) -> list[Numbers]:
    """Divide rows into batches of at most `SEARCHED`."""
    return [rows[first : first + SEARCHED] for first in range(0, len(rows), SEARCHED)]


# Both kinds of rounds


def uniform(streams: Streams) -> npt.NDArray[np.float64]:
    """Draw a number in [0, 1) from each stream, (N,) float64."""
    return np.asarray((_words(streams) >> np.uint64(11)) * 2.0**-53, np.float64)


def _words(streams: Streams) -> Streams:
    """Draw 64 bits from each stream, (N,) uint64; they can also seed separate streams."""
    words = np.empty(len(streams), np.uint64)
    draw_each(streams, words)
    return words


def _play(games: Records, playing: Numbers, actions: Actions) -> Numbers:
    """Play an action in each game of the indices `playing`; return the indices of unfinished games."""
    over = np.zeros(len(playing), np.bool_)
    play_all(games, playing, actions, over)
    return playing[~over]


def _joined(met: list[Positions]) -> Positions:
    return Positions(*(np.concatenate(parts) for parts in zip(*met, strict=True)))


def _samples(
    games: Records,
    positions: Positions,
    policy: Floats,
    searched: Floats,
    mix: float,
    hooks: GameHooks,
    families: Numbers | None = None,
) -> tuple[Samples, Learned]:
    """Return the samples of positions, and the targets that the hooks returned.

    Args:
        games: (G,) states of finished games.
        positions: N positions of these games.
        policy: (N, A) float32 the search's policy, all 0 without a search.
        searched: (N, P) float32 the search's values, nan without a search.
        mix: share of the search's values in the value targets, where the outcome is not certain.
        hooks: the game's hooks.
        families: (N,) int64, see `GameHooks.learned`; None to group positions by game.
    """
    index, players = positions.origins, limits_of(games.dtype).players
    families = index if families is None else families
    endings = make_endings(games.dtype, len(games))
    write_endings(games, np.arange(len(games)), endings)
    winners = endings.winners.astype(np.int64)
    learned = hooks.learned(positions, winners, policy, families)
    values, mixed = learned.outcomes.copy(), ~learned.certain & ~np.isnan(searched[:, 0])
    values[mixed] *= np.float32(1 - mix)
    values[mixed, :players] += np.float32(mix) * searched[mixed]
    scores = endings.scores.astype(np.float32)
    policies = learned.policy.astype(np.float16)
    return Samples(positions.games, policies, values, endings.targets[index], scores[index]), learned
