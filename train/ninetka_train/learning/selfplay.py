"""Self-play in arrays: whole games, searched with random playouts or played by a network, become `Samples`.

A round is cut into tasks. What a task gives is a function of the settings, the network's weights and the numbers of its
games, and of nothing else: every game draws from a stream of its own, and a network is always asked about the games of
one task together, on one thread of torch's. So it does not matter who plays it, when, or beside what.
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
"""Positions that are searched at once: enough for the network's batches, few enough for the memory of their trees."""
POLICY = -1
"""In the place of an action: the network's policy chooses."""
DECIDED_SHARE = 0.1
"""Of the positions of decided games: they must be won, too, but most of them say nothing new."""
QUICKER = 4
"""So many times fewer playouts choose a move in them; with an eighth, or moves by chance, many are given away again."""


class Positions(NamedTuple):
    """N positions that were met in the games of a task, ply by ply."""

    origins: Numbers
    """(N,) int64 the game of each."""
    games: Records
    """(N,) records."""
    drawn: npt.NDArray[np.float64]
    """(N,) float64 random numbers, below `share` to be searched, below `share + value_share` to be kept."""
    streams: Streams
    """(N,) uint64: chance for their searches."""


class Keeping(NamedTuple):
    """Which of N positions are worth keeping."""

    weights: npt.NDArray[np.float64]
    """(N,) float64: factors of the chances `share` and `value_share`."""
    shown: npt.NDArray[np.float64]
    """(N,) float64: the chance that a position is passed to `GameHooks.learned` even if it would not be kept."""


class Learned(NamedTuple):
    """What is to be learned of N positions."""

    outcomes: Floats
    """(N, P + 1) float32 shares of the outcomes: each seat wins; drawn."""
    policy: Floats
    """(N, A) float32, as in `ninetka_train.learning.samples.Samples`."""
    certain: Bools
    """(N,) bool: the outcome is that of perfect play, not how the game happened to end."""
    decisive: Bools
    """(N,) bool: some moves are known to win, and others not to."""


class GameHooks:
    """What a game may add to self-play where it knows moves and results better than its network.

    This class adds nothing. A game derives `Hooks` from it, and `Settings` from `AlphaZeroSettings`; see
    `ninetka_train.parts.selfplay_of`.
    """

    branch_games = 0
    """Games that go on from each of `branches`."""

    def __init__(self, settings: AlphaZeroSettings, evaluate: Evaluate, threads: int) -> None:
        """Set up for a task.

        Args:
            settings: the run's, of the game's own class.
            evaluate: what the network says; see `ninetka_agents.search.gumbel.Evaluate`.
            threads: the most to use; results must not depend on it.
        """

    def act(self, games: Records, drawing: Bools, streams: Streams) -> Actions:
        """Return (N,) int64 actions in games under way, `POLICY` where the policy plays.

        Args:
            games: (N,) records.
            drawing: (N,) bool: the move is to be drawn from the policy.
            streams: (N,) chance of the games; moved on.
        """
        return np.full(len(games), POLICY)

    def keeping(self, games: Records) -> Keeping:
        """Return which of (N,) positions are worth keeping."""
        return Keeping(np.ones(len(games)), np.zeros(len(games)))

    def search(self, positions: Positions, rows: Numbers, policy: Floats, values: Floats) -> Numbers:
        """Search some of the positions `rows`, in place of the Gumbel search; return the rows that are left to it.

        Args:
            positions: N of them.
            rows: (K,) int64 which of them are to be searched.
            policy: (N, A) float32, written: what should be played.
            values: (N, P) float32, written: the chances to win.
        """
        return rows

    def branches(self, positions: Positions) -> Numbers:
        """Return (B,) int64 the numbers of the positions from which `branch_games` more games are played."""
        return np.empty(0, np.int64)

    def learned(self, positions: Positions, winners: Numbers, policy: Floats, families: Numbers) -> Learned:
        """Return what is to be learned of positions, given what search and play found out.

        Args:
            positions: N of them; those of one game stand in the order of play. Their chance is left alone.
            winners: (G,) int64 who won each game.
            policy: (N, A) float32 what the search would play, all 0 without one.
            families: (N,) int64 the same number for positions that a solver meets together: those of games that went on
                from one position, or of one game.
        """
        unknown = np.zeros(len(policy), np.bool_)
        outcomes = outcome_shares(winners[positions.origins], limits_of(positions.games.dtype).players)
        return Learned(outcomes, policy, unknown, unknown)


def tasks_of(config: TrainConfig) -> list[range]:
    """Cut the numbers of a round's games into tasks of equal size, up to one game."""
    count = config.alphazero.games * len(config.variants)
    tasks = -(-count // config.alphazero.task_games)
    return [range(count * task // tasks, count * (task + 1) // tasks) for task in range(tasks)]


def play_task(config: TrainConfig, network: Any, number: int, games: range, threads: int = 1) -> Samples:
    """Play a task of round `number`, counted from 0.

    The same arguments give the same bytes, in any process, for one kind of processor and one version of torch.

    Args:
        config: with `algorithm="alphazero"`.
        network: as it is at the beginning of the round, in evaluation mode.
        number: of the round.
        games: of the round, one of `tasks_of`.
        threads: at most so many threads search; what is found does not depend on it.
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
    """Start games of a round, the variants in turn; return them and their chance."""
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
        games: (G,) records at their start; played to their ends.
        streams: (G,) their chance; moved on.
        teacher: the search.
        quick: plays decided games on.
        settings: `greedy`, `power`, `teacher_mix` and `decided` count here.
        hooks: what the game adds; here `learned` alone.
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
    """Play decided games to their ends by a quick search; return a few of their positions, see `DECIDED_SHARE`."""
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
    """Return (N, A) float32 policies: visits ** power, each row summing to 1."""
    weights = (visits / visits.max(1, keepdims=True)).astype(np.float32) ** np.float32(power)
    return weights / weights.sum(1, keepdims=True)


def _by_visits(found: TreeResult, greedy: float, streams: Streams) -> Actions:
    """Choose what the search would play, with the chance `greedy`, else draw by visits."""
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
    """Play games to their ends by a network's policy alone, all at once, and search some of their positions.

    Games without search cost next to nothing, so few positions of each are enough and almost every position comes with
    a winner of its own: what "playout cap randomization" is after (Wu, "Accelerating self-play learning in Go", 2019),
    driven further. A game draws its moves from the policy up to a random ply, for variety, and plays the most probable
    ones from there, so that the winner says what the position was worth (as in Silver et al., 2016); only positions
    from there on are kept.

    Args:
        games: (G,) records at their start; played to their ends.
        streams: (G,) their chance; moved on.
        search: what the network is asked by.
        settings: `share`, `value_share`, `value_mix` and `decided` count here.
        hooks: what the game adds.
        most_drawn: plies that are drawn, at most.
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
    """Play games on from some of the positions, all moves drawn from the policy; return what is certain in them.

    A few of their positions are kept to learn values from; of the others, those where some moves win and others lose.
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
    """Return the samples that are `valued`, and `others` for their policy alone.

    Those others are kept because there is a move that wins: as values they would teach that the mover wins.
    """
    values = np.where(valued[:, None], samples.values, np.float32(0))
    return rows_of(samples._replace(values=values), valued | others)


def _by_network(
    search: GumbelSearch, hooks: GameHooks, games: Records, streams: Streams, drawing: Bools
) -> tuple[Actions, Floats]:
    """Draw actions from the policy in some games; in the others take the most probable one, or what the hooks play.

    Return them, and (N,) float32 the best seat's chance to win as the network has it, 0 where it was not asked.
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
    """Search the positions `rows`; write what should be played there and the chances to win."""
    for part in portions(hooks.search(positions, rows, policy, values)):
        found = search.run(positions.games[part], GameRandom(positions.streams[part]))
        policy[part], values[part] = found.policy, found.values


def _nothing_found(positions: Positions) -> tuple[Floats, Floats]:
    """Return (N, A) policies and (N, P) values of positions that were not searched, as `_samples` takes them."""
    count, limits = len(positions.games), limits_of(positions.games.dtype)
    return np.zeros((count, limits.actions), np.float32), np.full((count, limits.players), np.nan, np.float32)


def portions(rows: Numbers) -> list[Numbers]:
    """Return rows, `SEARCHED` at a time."""
    return [rows[first : first + SEARCHED] for first in range(0, len(rows), SEARCHED)]


# What both do


def uniform(streams: Streams) -> npt.NDArray[np.float64]:
    """Draw a number from 0 (included) to 1 from each stream, (N,) float64."""
    return np.asarray((_words(streams) >> np.uint64(11)) * 2.0**-53, np.float64)


def _words(streams: Streams) -> Streams:
    """Draw 64 bits from each stream, (N,) uint64: a stream of its own to whoever needs one."""
    words = np.empty(len(streams), np.uint64)
    draw_each(streams, words)
    return words


def _play(games: Records, playing: Numbers, actions: Actions) -> Numbers:
    """Play an action in each game of `playing`; return those that go on."""
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
    """Return what is to be learned of positions, and where that is certain.

    Args:
        games: (G,) finished games.
        positions: met in them.
        policy: (N, A) float32 what the search would play, all 0 without one.
        searched: (N, P) float32 the search's values, nan without one.
        mix: their share in the values to learn, where the winner is not certain.
        hooks: what the game adds.
        families: (N,) int64, see `GameHooks.learned`; None for the games.
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
