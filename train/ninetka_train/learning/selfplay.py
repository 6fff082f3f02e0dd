"""AlphaZero's self-play: play games with playouts or with a network, and return their positions as `Samples`.

A round is divided into tasks. The result of a task depends only on the settings, the network's weights and the indices
of its games, because each game has its own random stream, and on a CPU the network evaluates the games of one task as
one batch on one torch thread. A task's result therefore does not depend on which worker runs it, when, or what else
runs at the time. On a GPU it depends by rounding on how the positions of tasks are joined into batches. `alphazero.py`
has the training loop.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, PerGameGenerator
from ninetka_agents.net_agent import network_evaluate
from ninetka_agents.search.gumbel import Evaluate, GumbelOptions, GumbelSearch
from ninetka_agents.search.tree import TreeResult
from ninetka_env.core.batch import make_outcomes, play_all, restart_games, write_outcomes
from ninetka_env.core.random_streams import Streams, draw_each, make_streams
from ninetka_env.core.registry import limits_of
from ninetka_env.core.verbs import StateArray
from ninetka_train.learning.config import AlphaZeroSettings, TrainConfig
from ninetka_train.learning.processes import on_one_torch_thread, uses_bf16
from ninetka_train.learning.rollout import options_of_games, sample_actions
from ninetka_train.learning.samples import Floats, Samples, join, outcome_shares, rows_of
from ninetka_train.learning.teacher import Teacher, make_teacher
from ninetka_train.plugins import selfplay_plugin_of

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

SEARCH_BATCH_SIZE = 512
"""Positions searched at the same time: enough for efficient network batches, few enough for the trees' memory."""
BY_POLICY = -1
"""Value in the result of `GameHooks.act` where the network's policy chooses the action."""
DECIDED_SHARE = 0.1
"""Share of the positions of decided games that are kept. The network must learn to win decided games, but most of their
positions teach it little."""
QUICK_DIVISOR = 4
"""Divisor of the playouts in decided games. With 8 instead of 4, or with random moves, many won games are lost."""


class Positions(NamedTuple):
    """N positions of the games of a task, ordered by ply."""

    game_indices: Ints
    """(N,) int64 the index of each position's game."""
    games: StateArray
    """(N,) states."""
    uniform: npt.NDArray[np.float64]
    """(N,) float64 random numbers. A position is searched if its number is below `share`. It gets a value target if its
    number is below `share + value_share`."""
    streams: Streams
    """(N,) uint64 random streams for the searches of the positions."""


class KeepChances(NamedTuple):
    """Probabilities with which N positions are kept."""

    weights: npt.NDArray[np.float64]
    """(N,) float64: factors of the probabilities `share` and `value_share`."""
    hook_chances: npt.NDArray[np.float64]
    """(N,) float64: the probability that a position is passed to `training_targets` regardless of `weights`."""


class TrainingTargets(NamedTuple):
    """Training targets of N positions."""

    outcomes: Floats
    """(N, P + 1) float32 shares of the outcomes: win of each seat; draw."""
    policy: Floats
    """(N, A) float32, as in `ninetka_train.learning.samples.Samples`."""
    is_certain: Bools
    """(N,) bool: the outcome is the result of perfect play, not of the game that was played."""
    is_decisive: Bools
    """(N,) bool: some moves are known to win, and others are known not to win."""


class GameHooks:
    """Hooks by which a game adds moves, searches and exact results to self-play.

    The methods of this base class add nothing. A game derives `Hooks` from it, and `Settings` from `AlphaZeroSettings`;
    see `ninetka_train.plugins.selfplay_plugin_of`.
    """

    games_per_branch = 0
    """Number of games that are played from each position that `branch_positions` returns."""

    def __init__(self, settings: AlphaZeroSettings, evaluate: Evaluate, threads: int) -> None:
        """Set up for a task.

        Args:
            settings: the run's settings, of the game's `Settings` class.
            evaluate: evaluates positions by the network; see `ninetka_agents.search.gumbel.Evaluate`.
            threads: maximum number of threads; results must not depend on it.
        """

    def act(self, games: StateArray, is_drawn: Bools, streams: Streams) -> Actions:
        """Return (N,) int64 actions for unfinished games, `BY_POLICY` where the network's policy chooses.

        Args:
            games: (N,) states.
            is_drawn: (N,) bool: the move is to be drawn from the policy.
            streams: (N,) random streams of the games; advanced in place.
        """
        return np.full(len(games), BY_POLICY)

    def keep_chances(self, games: StateArray) -> KeepChances:
        """Return the probabilities with which N positions are kept."""
        return KeepChances(np.ones(len(games)), np.zeros(len(games)))

    def search(self, positions: Positions, rows: Ints, policy: Floats, values: Floats) -> Ints:
        """Search some of the positions `rows`; return the remaining rows, for the Gumbel search.

        Args:
            positions: N positions.
            rows: (K,) int64 indices of the positions to search.
            policy: (N, A) float32 policy targets of the searched positions; written.
            values: (N, P) float32 win probabilities of the searched positions; written.
        """
        return rows

    def branch_positions(self, positions: Positions) -> Ints:
        """Return (B,) int64 indices of positions; from each of them, `games_per_branch` more games are played."""
        return np.empty(0, np.int64)

    def training_targets(self, positions: Positions, winners: Ints, policy: Floats, groups: Ints) -> TrainingTargets:
        """Return the training targets of positions.

        Args:
            positions: N positions; those of one game are in the order of play. Their streams must not be advanced.
            winners: (G,) int64 winner of each game.
            policy: (N, A) float32 the search's policy, all 0 without a search.
            groups: (N,) int64 group of each position. A group is the positions of one game, or of all games that were
                played from the same position. A solver should search the positions of a group together.
        """
        unknown = np.zeros(len(policy), np.bool_)
        outcomes = outcome_shares(winners[positions.game_indices], limits_of(positions.games.dtype).players)
        return TrainingTargets(outcomes, policy, unknown, unknown)


def tasks_of(config: TrainConfig) -> list[range]:
    """Divide the indices of a round's games into tasks whose sizes differ by at most one game."""
    count = config.alphazero.games * len(config.variants)
    tasks = -(-count // config.alphazero.task_games)
    return [range(count * task // tasks, count * (task + 1) // tasks) for task in range(tasks)]


def play_task(
    config: TrainConfig,
    network: Any,
    round_number: int,
    games: range,
    threads: int = 1,
    evaluate: Evaluate | None = None,
) -> Samples:
    """Play a task of a round.

    Without `evaluate`, for one type of processor and one version of torch, the same arguments give the same bytes in
    any process.

    Args:
        config: with `algorithm="alphazero"`.
        network: the network with which the round is played, in evaluation mode.
        round_number: index of the round, from 0.
        games: indices of the task's games, an element of `tasks_of(config)`.
        threads: maximum number of threads for the search; results do not depend on it.
        evaluate: evaluates positions with the network; None to evaluate the positions of this task alone.
    """
    return on_one_torch_thread(_play_task, config, network, round_number, games, threads, evaluate)


def _play_task(
    config: TrainConfig, network: Any, round_number: int, games: range, threads: int, evaluate: Evaluate | None
) -> Samples:
    settings, game = config.alphazero, config.definition.name
    starts, streams = _start_games(config, round_number, games)
    evaluate = evaluate or network_evaluate(network, bf16=uses_bf16(config, network.device))
    own = selfplay_plugin_of(game)
    hooks = (own.Hooks if own else GameHooks)(settings, evaluate, threads)
    if round_number < settings.playout_rounds:
        teacher, quick = (
            make_teacher(game, settings.teacher, playouts, settings.exploration, threads, network.device)
            for playouts in (settings.playouts, max(1, settings.playouts // QUICK_DIVISOR))
        )
        return playout_games(starts, streams, teacher, quick, settings, hooks)
    options = GumbelOptions(settings.simulations, settings.considered, playouts=settings.leaf_playouts)
    longest = max(variant.sizes.max_plies for variant in config.variants)
    max_drawn = min(settings.drawn_plies, 3 * longest // 4)
    return network_games(starts, streams, GumbelSearch(evaluate, options, threads), settings, hooks, max_drawn)


def _start_games(config: TrainConfig, round_number: int, games: range) -> tuple[StateArray, Streams]:
    """Start the games of a task, with alternating variants; return their states and random streams."""
    variants, count = config.variants, len(games)
    before = round_number * config.alphazero.games * len(variants) + games.start
    starts, streams = np.zeros(count, variants[0].dtype), make_streams((config.seed << 32) + before, count)
    options = options_of_games(variants, games)
    restart_games(starts, np.arange(count), options, streams)
    return starts, streams


# Rounds with playouts


def playout_games(
    games: StateArray,
    streams: Streams,
    teacher: Teacher,
    quick: Teacher,
    settings: AlphaZeroSettings,
    hooks: GameHooks,
) -> Samples:
    """Play games to their ends by tree search with playouts; return their positions as samples.

    All positions are kept until a game is decided, then a share `DECIDED_SHARE` of them.

    Args:
        games: (G,) initial states; played to their ends in place.
        streams: (G,) random streams of the games; advanced in place.
        teacher: the search, whose results are the targets.
        quick: a faster search, which finishes decided games.
        settings: `greedy`, `power`, `teacher_mix` and `decided` are used.
        hooks: the game's hooks; only `training_targets` is used.
    """
    met, policies, values, playing, decided = [], [], [], np.arange(len(games)), [np.empty(0, np.int64)]

    def note(positions: Positions, found: TreeResult) -> None:
        met.append(positions)
        policies.append(policy_targets(found.visits, settings.power))
        values.append(found.values)

    while len(playing):
        now, own = games[playing], streams[playing]
        found = teacher.run(now, PerGameGenerator(own))
        actions = _choose_by_visits(found, settings.greedy, own)
        streams[playing] = own
        note(Positions(playing, now, np.zeros(len(now)), own), found)
        sure = playing[found.values.max(1) > settings.decided]
        playing = _play_actions(games, playing, actions)
        decided.append(np.intersect1d(playing, sure))
        playing = np.setdiff1d(playing, sure)
    late = _finish_decided_games(games, streams, quick, np.concatenate(decided))
    if len(late.games):
        note(late, teacher.run(late.games, PerGameGenerator(late.streams)))
    policy, searched = np.concatenate(policies), np.concatenate(values)
    samples, _ = _make_samples(games, _join_positions(met), policy, searched, settings.teacher_mix, hooks)
    return samples


def _finish_decided_games(games: StateArray, streams: Streams, quick: Teacher, playing: Ints) -> Positions:
    """Play the games `playing` to their ends by a quick search; return a share `DECIDED_SHARE` of their positions."""
    met = []
    while True:
        now, own = games[playing], streams[playing]
        drawn, words = draw_uniform(own), _draw_words(own)
        kept = drawn < DECIDED_SHARE
        met.append(Positions(playing[kept], now[kept], drawn[kept], words[kept]))
        if not len(playing):
            return _join_positions(met)
        actions = quick.act(now, PerGameGenerator(own))
        streams[playing] = own
        playing = _play_actions(games, playing, actions)


def policy_targets(visits: npt.NDArray[np.integer], power: float) -> Floats:
    """Return (N, A) float32 policies proportional to visits ** power, each row summing to 1."""
    weights = (visits / visits.max(1, keepdims=True)).astype(np.float32) ** np.float32(power)
    return weights / weights.sum(1, keepdims=True)


def _choose_by_visits(found: TreeResult, greedy: float, streams: Streams) -> Actions:
    """Return (N,) actions: the search's action with probability `greedy`, else one drawn in proportion to visits."""
    chosen, drawn = draw_uniform(streams), draw_uniform(streams)
    sums = found.visits.cumsum(1)
    by_visits = (sums > drawn[:, None] * sums[:, -1:]).argmax(1)
    return np.where(chosen < greedy, found.actions, by_visits)


# Rounds with the network


def network_games(
    games: StateArray,
    streams: Streams,
    search: GumbelSearch,
    settings: AlphaZeroSettings,
    hooks: GameHooks,
    max_drawn: int,
) -> Samples:
    """Play games to their ends in parallel by a network's policy, and search some of their positions.

    Games without search are cheap: many games can be played and only a few positions of each are kept. Almost every
    position then has the result of a different game. This extends "playout cap randomization" (Wu, "Accelerating
    self-play learning in Go", 2019). For variety, a game draws its moves from the policy up to a random ply. From there
    it plays the most probable moves, so that the winner is a good estimate of a position's value (as in Silver et al.,
    2016). Only positions after the drawn moves are kept.

    Args:
        games: (G,) initial states; played to their ends in place.
        streams: (G,) random streams of the games; advanced in place.
        search: the Gumbel search with the network.
        settings: `share`, `value_share`, `value_mix` and `decided` are used.
        hooks: the game's hooks.
        max_drawn: maximum number of drawn plies.
    """
    last_drawn = (draw_uniform(streams) * max_drawn).astype(np.int64)
    met, playing, ply = [], np.arange(len(games)), 0
    while len(playing):
        now, own, drawing = games[playing], streams[playing], last_drawn[playing] > ply
        actions, chances = _choose_by_network(search, hooks, now, own, drawing)
        keeping = hooks.keep_chances(now)
        weights = keeping.weights * np.where(chances > settings.decided, DECIDED_SHARE, 1.0)
        drawn, shown = draw_uniform(own) / weights, draw_uniform(own) < keeping.hook_chances
        words = _draw_words(own)
        streams[playing] = own
        kept = ~drawing & ((drawn < settings.share + settings.value_share) | shown)
        met.append(Positions(playing[kept], now[kept], drawn[kept], words[kept]))
        playing, ply = _play_actions(games, playing, actions), ply + 1
    positions = _join_positions(met)
    searched = positions.uniform < settings.share
    policy, values = _empty_results(positions)
    _search(search, hooks, positions, np.flatnonzero(searched), policy, values)
    samples, targets = _make_samples(games, positions, policy, values, settings.value_mix, hooks)
    valued = positions.uniform < settings.share + settings.value_share
    branches = hooks.branch_positions(positions)
    more = [_play_branches(search, settings, hooks, positions, branches)] if len(branches) else []
    return join([_select_kept(samples, valued, targets.is_decisive), *more])


def _play_branches(
    search: GumbelSearch, settings: AlphaZeroSettings, hooks: GameHooks, positions: Positions, branches: Ints
) -> Samples:
    """Play more games from the positions `branches`, with all moves drawn from the policy; return samples of them.

    The samples are a share `DECIDED_SHARE` of the positions with certain outcomes, and all decisive positions. Only the
    former have a value target. See `TrainingTargets.is_certain` and `TrainingTargets.is_decisive`.
    """
    games, seeds = positions.games[np.repeat(branches, hooks.games_per_branch)], positions.streams[branches]
    streams = np.stack([_draw_words(seeds) for _ in range(hooks.games_per_branch)], axis=1).ravel()
    met, playing = [], np.arange(len(games))
    while len(playing):
        now, own = games[playing], streams[playing]
        actions, _ = _choose_by_network(search, hooks, now, own, np.ones(len(now), np.bool_))
        met.append(Positions(playing, now, draw_uniform(own), _draw_words(own)))
        streams[playing] = own
        playing = _play_actions(games, playing, actions)
    found = _join_positions(met)
    policy, values = _empty_results(found)
    groups = found.game_indices // hooks.games_per_branch
    samples, targets = _make_samples(games, found, policy, values, settings.value_mix, hooks, groups)
    return _select_kept(samples, targets.is_certain & (found.uniform < DECIDED_SHARE), targets.is_decisive)


def _select_kept(samples: Samples, has_value: Bools, policy_only: Bools) -> Samples:
    """Return the samples that the masks `has_value` or `policy_only` select.

    Samples outside `has_value` lose their value target. They are kept because a winning move exists, so their outcomes
    would bias the value head towards the mover.
    """
    values = np.where(has_value[:, None], samples.values, np.float32(0))
    return rows_of(samples._replace(values=values), has_value | policy_only)


def _choose_by_network(
    search: GumbelSearch, hooks: GameHooks, games: StateArray, streams: Streams, is_drawn: Bools
) -> tuple[Actions, Floats]:
    """Choose an action for each of N games.

    The hooks choose first. Where they return `BY_POLICY`, the action is drawn from the policy if `is_drawn`, else it is
    the policy's most probable action.

    Returns:
        (N,) int64 actions; (N,) float32 the highest win probability of a seat by the network, 0 where the hooks chose.
    """
    drawn, chances = draw_uniform(streams), np.zeros(len(games), np.float32)
    actions = hooks.act(games, is_drawn, streams)
    asked = actions == BY_POLICY
    if asked.any():
        logits, values = search.evaluate(games[asked])
        by_chance, _ = sample_actions(logits, drawn[asked].astype(np.float32))
        actions[asked] = np.where(is_drawn[asked], by_chance, logits.argmax(1))
        chances[asked] = values.max(1)
    return actions, chances


def _search(
    search: GumbelSearch, hooks: GameHooks, positions: Positions, rows: Ints, policy: Floats, values: Floats
) -> None:
    """Search the positions `rows`; write their policy targets to `policy` and win probabilities to `values`."""
    for part in search_batches(hooks.search(positions, rows, policy, values)):
        found = search.run(positions.games[part], PerGameGenerator(positions.streams[part]))
        policy[part], values[part] = found.policy, found.values


def _empty_results(positions: Positions) -> tuple[Floats, Floats]:
    """Return (N, A) policies of 0 and (N, P) values of nan: the results of positions that are not searched."""
    count, limits = len(positions.games), limits_of(positions.games.dtype)
    return np.zeros((count, limits.actions), np.float32), np.full((count, limits.players), np.nan, np.float32)


def search_batches(rows: Ints) -> list[Ints]:
    """Divide rows into batches of at most `SEARCH_BATCH_SIZE`."""
    return [rows[first : first + SEARCH_BATCH_SIZE] for first in range(0, len(rows), SEARCH_BATCH_SIZE)]


# Both kinds of rounds


def draw_uniform(streams: Streams) -> npt.NDArray[np.float64]:
    """Draw a number in [0, 1) from each stream, (N,) float64."""
    return np.asarray((_draw_words(streams) >> np.uint64(11)) * 2.0**-53, np.float64)


def _draw_words(streams: Streams) -> Streams:
    """Draw 64 bits from each stream, (N,) uint64; they can also seed separate streams."""
    words = np.empty(len(streams), np.uint64)
    draw_each(streams, words)
    return words


def _play_actions(games: StateArray, playing: Ints, actions: Actions) -> Ints:
    """Play `actions` in the games with the indices `playing`; return the indices of the games that continue."""
    finished = np.zeros(len(playing), np.bool_)
    play_all(games, playing, actions, finished)
    return playing[~finished]


def _join_positions(met: list[Positions]) -> Positions:
    return Positions(*(np.concatenate(parts) for parts in zip(*met, strict=True)))


def _make_samples(
    games: StateArray,
    positions: Positions,
    policy: Floats,
    searched: Floats,
    mix: float,
    hooks: GameHooks,
    groups: Ints | None = None,
) -> tuple[Samples, TrainingTargets]:
    """Return the samples of positions, and the targets that the hooks returned.

    Args:
        games: (G,) states of finished games.
        positions: N positions of these games.
        policy: (N, A) float32 the search's policy, all 0 without a search.
        searched: (N, P) float32 the search's values, nan without a search.
        mix: share of the search's values in the value targets of positions whose outcome is not certain.
        hooks: the game's hooks.
        groups: (N,) int64, see `GameHooks.training_targets`; None to group positions by game.
    """
    index, players = positions.game_indices, limits_of(games.dtype).players
    groups = index if groups is None else groups
    endings = make_outcomes(games.dtype, len(games))
    write_outcomes(games, np.arange(len(games)), endings)
    winners = endings.winners.astype(np.int64)
    targets = hooks.training_targets(positions, winners, policy, groups)
    values, mixed = targets.outcomes.copy(), ~targets.is_certain & ~np.isnan(searched[:, 0])
    values[mixed] *= np.float32(1 - mix)
    values[mixed, :players] += np.float32(mix) * searched[mixed]
    scores = endings.scores.astype(np.float32)
    policies = targets.policy.astype(np.float16)
    return Samples(positions.games, policies, values, endings.targets[index], scores[index]), targets
