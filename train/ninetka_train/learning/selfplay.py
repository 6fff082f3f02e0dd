"""AlphaZero's self-play in arrays: positions and what became of them go from workers to learners, nothing else.

Whole games searched with random playouts or with a network become `Samples`. Seats are absolute there; `relative_seats`
and `relative_values` turn them to the mover's eyes.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, Agent
from ninetka_agents.ninetka.solver.solver import solvable
from ninetka_agents.search.guided import GuidedSearch
from ninetka_agents.search.gumbel import GumbelSearch
from ninetka_agents.search.prover import make_prover
from ninetka_agents.search.tree import most_visited, node_dtype, write_visits
from ninetka_agents.search.uct import EXPLORATION, search_tree
from ninetka_env.core.batch import Endings, begin, play_all, write_ending, write_endings
from ninetka_env.core.chance import Streams, draw_below, make_streams
from ninetka_env.core.files import replace_file
from ninetka_env.core.jit import jit
from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_env.core.registry import get_definition
from ninetka_env.core.seats import relative_seats as seats_from
from ninetka_env.core.threads import Control, claim, run_shared
from ninetka_env.core.verbs import Codes, Records, is_over, play, start
from ninetka_env.games.ninetka.definition import MOST_PLIES
from ninetka_env.games.ninetka.geometry import MAX_PLAYERS, NUM_ACTIONS, NUM_SECTIONS
from ninetka_env.games.ninetka.rules import GAME, MOVEMENT
from ninetka_train.ninetka.exact_targets import find_known, next_known, only_winning

MAX_DRAWN = 60
"""Plies that `network_games` draws at most; nearly all games last longer."""
SEARCHED = 512
"""Positions that it searches at once: enough for the network's batches, few enough for the memory of their trees."""


class Samples(NamedTuple):
    """N positions with a policy to learn and how their games ended. Seats are absolute."""

    games: Records
    """(N,) records, none of them over."""
    policy: npt.NDArray[np.float16]
    """(N, 122) float16: what the search would play, summing to 1; without a search, 1 for each move that wins for sure;
    all 0 where nothing is known."""
    values: npt.NDArray[np.float32]
    """(N, 5) float32 shares of the outcomes, summing to 1: each seat wins; drawn."""
    owners: npt.NDArray[np.int8]
    """(N, 9) int8: the seat that owned each section in the end, -1 for nobody."""


def playout_games(
    players: npt.NDArray[np.int64],
    seed: int,
    simulations: int,
    exploration: float = EXPLORATION,
    greedy: float = 0.75,
    power: float = 1.0,
    exact_nodes: int = 0,
    threads: int = 1,
) -> Samples:
    """Play whole games by tree search with random playouts, and keep every position.

    Args:
        players: (G,) number of players per game.
        seed: decides everything; threads do not matter.
        simulations: playouts per move, at most 65535.
        exploration: as in `ninetka_agents.search.mcts.MctsAgent`.
        greedy: chance that a move is the most visited one; otherwise it is drawn by visits.
        power: the policy to learn is visits ** power.
        exact_nodes: of the solver per position; see `ninetka_train.ninetka.exact_targets`.
        threads: at most this many play at once, 1 or more.

    Returns:
        Positions whose values are 1 for the winner.
    """
    count = len(players)
    games = np.zeros((count, MOST_PLIES), GAME)
    visits = np.zeros((count, MOST_PLIES, NUM_ACTIONS), np.uint16)
    endings, like = _no_endings(count), np.empty(0, node_dtype(GAME))
    lengths = np.zeros(count, np.int64)
    search = (codes_for(players), like, simulations, exploration, greedy, make_streams(seed, count))
    run_shared(_play_searching, threads, *search, games, visits, endings, lengths)
    kept = np.arange(MOST_PLIES) < lengths[:, None]
    index = np.repeat(np.arange(count), lengths)
    known = find_known(games[kept], exact_nodes, threads)
    policy = only_winning(policy_targets(visits[kept], power), known)
    values = _won(next_known(known.winners, index, endings.winners))
    return Samples(games[kept], policy.astype(np.float16), values, endings.targets[index])


def policy_targets(visits: npt.NDArray[np.integer], power: float) -> npt.NDArray[np.float32]:
    """Return (N, 122) float32 policies: visits ** power, each row summing to 1."""
    weights = (visits / visits.max(1, keepdims=True)).astype(np.float32) ** np.float32(power)
    return weights / weights.sum(1, keepdims=True)


class Slides(NamedTuple):
    """How slides are played and searched where that is not left to the network and its Gumbel search."""

    agent: Agent
    """Plays them."""
    search: GuidedSearch
    """Finds out what to learn."""
    share: float = 1.0
    """Chance that a position of the movement phase is kept, if it would be; there are more of them, and they say less
    that is new."""


def network_games(
    search: GumbelSearch,
    players: npt.NDArray[np.int64],
    seed: int,
    share: float = 0.1,
    value_share: float = 0.0,
    value_mix: float = 0.0,
    exact_nodes: int = 0,
    exact_share: float = 0.0,
    slides: Slides | None = None,
) -> Samples:
    """Play whole games by a network's policy alone, all at once, and search some of their positions.

    Games without search cost next to nothing, so few positions of each are enough and almost every position comes with
    a winner of its own: what "playout cap randomization" is after (Wu, "Accelerating self-play learning in Go", 2019),
    driven further. A game draws its moves from the policy up to a random ply, for variety, and plays the most probable
    ones from there, so that the winner says what the position was worth (as in Silver et al., 2016); only positions
    from there on are kept.

    A policy slides badly, and who wins by bad slides says little about the stones that were placed. With `slides`, a
    tree search slides from the random ply on instead. Where the solver says who wins, the policy may slide: with
    `exact_share` it does, in two-player games, and meets the positions that its own mistakes lead to.

    Args:
        search: the search; games are played by the policy of its network.
        players: (G,) number of players per game.
        seed: decides everything.
        share: chance that a position after the random ply is searched.
        value_share: chance that one is kept without search, to learn how its game ended, and all that the solver knows.
        value_mix: share of the search's own values in the values to learn; the rest is who won.
        exact_nodes: of the solver per position; see `ninetka_train.ninetka.exact_targets`.
        exact_share: chance that a slide of a two-player game is shown to the solver, and kept if a win is known.
        slides: who plays and searches those; None leaves them to the policy and to `search`.
    """
    games, rng = np.zeros(len(players), GAME), np.random.default_rng(seed)
    everywhere, endings = np.arange(len(games)), _no_endings(len(games))
    begin(games, everywhere, codes_for(players), make_streams(seed, len(players)))
    index, positions, drawn = _play_out(search, slides, games, rng, share + value_share, exact_share)
    write_endings(games, everywhere, endings)
    known = find_known(positions, exact_nodes, search.threads)
    values, guessed = _won(next_known(known.winners, index, endings.winners)), known.winners < 0
    searched = drawn < share
    policy = np.zeros((len(positions), NUM_ACTIONS), np.float32)
    policy[searched], found = _search(search, slides, positions[searched], rng)
    values[searched & guessed] *= np.float32(1 - value_mix)
    values[searched & guessed, :MAX_PLAYERS] += np.float32(value_mix) * found[guessed[searched]]
    policy = only_winning(policy, known)
    kept = (drawn < share + value_share) | policy.any(1)
    return Samples(positions[kept], policy[kept].astype(np.float16), values[kept], endings.targets[index[kept]])


def _play_out(
    search: GumbelSearch,
    slides: Slides | None,
    games: Records,
    rng: np.random.Generator,
    share: float,
    exact_share: float,
) -> tuple[npt.NDArray[np.int64], Records, npt.NDArray[np.float64]]:
    """Play games to the end; find positions to keep or to show to the solver.

    Returns:
        The numbers of their games, themselves, and the random numbers that they drew: below `share` to be kept.
    """
    last_drawn = rng.integers(0, MAX_DRAWN, len(games))
    kept, playing, ply = [], np.arange(len(games)), 0
    while len(playing):
        now, drawing = games[playing], last_drawn[playing] > ply
        moving = ~drawing & (now["phase"] == MOVEMENT)
        known = moving & solvable(now) & (exact_share > 0)
        sliding = moving & ~known & (slides is not None)
        draw = np.where(drawing, np.inf, rng.random(len(now)))
        actions = np.empty(len(now), np.int64)
        if slides and sliding.any():
            draw[sliding] /= slides.share
            actions[sliding] = slides.agent.act(now[sliding], rng)
        actions[~sliding] = _by_policy(search, now[~sliding], drawing[~sliding], rng)
        keep = (draw < share) | (known & (rng.random(len(now)) < exact_share))
        kept.append((playing[keep], now[keep], draw[keep]))
        over = np.zeros(len(playing), np.bool_)
        play_all(games, playing, actions, over)
        playing, ply = playing[~over], ply + 1
    index, positions, draws = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    return index, positions, draws


def _by_policy(
    search: GumbelSearch, games: Records, drawing: npt.NDArray[np.bool_], rng: np.random.Generator
) -> Actions:
    """Draw actions from the network's policy in some games, take the most probable one in the others."""
    logits = search.evaluate(games)[0]
    logits[drawing] += rng.gumbel(size=(int(drawing.sum()), NUM_ACTIONS)).astype(np.float32)
    return logits.argmax(1)


def _search(
    search: GumbelSearch, slides: Slides | None, games: Records, rng: np.random.Generator
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return the improved policies and the values of positions."""
    policy, values = np.empty((len(games), NUM_ACTIONS), np.float32), np.empty((len(games), MAX_PLAYERS), np.float32)
    sliding = (games["phase"] == MOVEMENT) & (slides is not None)
    for rows in _portions(np.flatnonzero(~sliding)):
        found = search.run(games[rows], rng)
        policy[rows], values[rows] = found.policy, found.values
    if slides:
        for rows in _portions(np.flatnonzero(sliding)):
            guided = slides.search.run(games[rows], rng)
            policy[rows], values[rows] = policy_targets(guided.visits, 1.0), guided.values
    return policy, values


def _portions(rows: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """Return rows, `SEARCHED` at a time."""
    return [rows[first : first + SEARCHED] for first in range(0, len(rows), SEARCHED)]


def relative_seats(samples: Samples) -> npt.NDArray[np.int64]:
    """Return (N, 9) int64: the final owners as relative seats 0..3, 4 for nobody."""
    movers, players = (samples.games[name].astype(np.int64)[:, None] for name in ("to_move", "num_players"))
    return np.where(samples.owners < 0, MAX_PLAYERS, seats_from(samples.owners, movers, players))


def relative_values(samples: Samples) -> npt.NDArray[np.float32]:
    """Return (N, 5) float32: the outcomes' shares per relative seat, 0 for seats that are not in play; drawn last."""
    movers, players = (samples.games[name].astype(np.int64)[:, None] for name in ("to_move", "num_players"))
    seats = np.arange(MAX_PLAYERS)
    values = np.take_along_axis(samples.values, seats_from(seats, -movers, players), 1)
    return np.hstack([np.where(seats < players, values, np.float32(0)), samples.values[:, MAX_PLAYERS:]])


def write_samples(path: Path, samples: Samples) -> None:
    """Write samples to a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **samples._asdict())
    replace_file(path, [buffer.getvalue()])


def read_samples(path: Path) -> Samples:
    """Read samples back.

    Raises:
        ValueError: naming the file, if it is missing or damaged.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            samples = Samples(**{name: arrays[name] for name in Samples._fields})
            values = samples.values  # files of before have no draws
            values = np.pad(values, ((0, 0), (0, MAX_PLAYERS + 1 - values.shape[1])))
            # and all files forget how a dtype is aligned
            return samples._replace(games=samples.games.astype(GAME), values=values)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: cannot be read: {error}") from None


def codes_for(players: npt.NDArray[np.int64]) -> Codes:
    """Return the options of games for those numbers of players, (G, k) int64."""
    variants = {number: get_definition("ninetka").variant(num_players=number) for number in set(players.tolist())}
    return np.array([variants[number].codes for number in players.tolist()], np.int64)


def _no_endings(count: int) -> Endings:
    """Return room for how so many games end."""
    scores, rewards = np.zeros((count, MAX_PLAYERS), np.int8), np.zeros((count, MAX_PLAYERS), np.float32)
    return Endings(np.full(count, UNFINISHED, np.int8), scores, rewards, np.full((count, NUM_SECTIONS), -1, np.int8))


def _won(winners: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """Return (N, 5) float32: 1 for the outcome."""
    return np.eye(MAX_PLAYERS + 1, dtype=np.float32)[np.where(winners == DRAWN, MAX_PLAYERS, winners)]


@jit
def _play_searching(
    control: Control,
    options: Codes,
    like: Records,
    simulations: int,
    exploration: float,
    greedy: float,
    streams: Streams,
    games: Records,
    visits: npt.NDArray[np.uint16],
    endings: Endings,
    lengths: npt.NDArray[np.int64],
) -> None:
    """Play the games that this thread claims; `like` has the type of the nodes."""
    nodes, now = np.zeros(simulations + 1, like.dtype), np.zeros(2, games.dtype)
    scratch, prover = now[1:], make_prover(now[0], 0)
    while True:
        index, stop = claim(control, 0, len(games), 1)
        if index == stop:
            return
        start(now[0], options[index], streams, index)
        game, ply = now[0], 0
        while not is_over(game):
            search_tree(game, streams, index, exploration, nodes, scratch, prover)
            games[index, ply] = game
            write_visits(game, nodes, visits[index, ply])
            if draw_below(streams, index, 1 << 20) < greedy * (1 << 20):
                action = most_visited(game, nodes)
            else:
                action = draw_by_weight(streams, index, visits[index, ply])
            play(game, action)
            ply += 1
        lengths[index] = ply
        write_ending(game, index, 0, endings)


@jit
def draw_by_weight(streams: Streams, index: int, weights: npt.NDArray[np.uint16]) -> int:
    """Draw an index in proportion to whole-number weights from stream `index`."""
    total = 0
    for weight in weights:
        total += weight
    rest = draw_below(streams, index, total)
    for place in range(len(weights)):
        rest -= weights[place]
        if rest < 0:
            return place
    return 0
