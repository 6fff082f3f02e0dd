"""Self-play in arrays: positions and what became of them go from workers to learners, nothing else.

Two sources: `Rollouts` steps many games at once with a policy (for PPO), `search_games` plays whole games with the
compiled tree search (for imitation). Both hand over records and targets by seat; `relative_targets` turns the latter
to the mover's eyes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agents.features import Features
from agents.mcts import NODE, grow, most_visited
from agents.random_agent import random_action
from ninetka_env._jit import jit
from ninetka_env._threads import Control, claim, run_shared
from ninetka_env.chance import Streams, draw_below, make_streams
from ninetka_env.game import begin
from ninetka_env.geometry import MAX_PLAYERS, NUM_ACTIONS, NUM_SECTIONS
from ninetka_env.rules import GAME, Record, Records, bit_action, is_over, must_pass, play, winner_of

MAX_PLIES = 81
"""The longest game with forced passes played by the rules."""


class Samples(NamedTuple):
    """N positions with a policy to learn and how their games ended."""

    games: Records
    """(N,) records, none of them over."""
    visits: npt.NDArray[np.uint16]
    """(N, 122) uint16: how often the search visited each action."""
    winners: npt.NDArray[np.int8]
    """(N,) int8: the seat that won in the end."""
    owners: npt.NDArray[np.int8]
    """(N, 9) int8: the seat that owned each section in the end, -1 for nobody."""


def search_games(
    num_games: int,
    num_players: int,
    simulations: int,
    seed: int,
    exploration: float = 0.7,
    greedy: float = 0.75,
    threads: int = 1,
) -> Samples:
    """Play whole games by tree search with random playouts, and keep every position.

    Args:
        num_games: how many.
        num_players: 2, 3 or 4.
        simulations: playouts per move, at most 65535.
        seed: decides everything; threads do not matter.
        exploration: as in `agents.mcts.MctsAgent`.
        greedy: chance that a move is the most visited one; otherwise it is drawn by visits.
        threads: at most this many play at once, 1 or more.
    """
    games = np.zeros((num_games, MAX_PLIES), GAME)
    visits = np.zeros((num_games, MAX_PLIES, NUM_ACTIONS), np.uint16)
    winners, owners = np.zeros(num_games, np.int8), np.full((num_games, NUM_SECTIONS), -1, np.int8)
    lengths = np.zeros(num_games, np.int64)
    streams = make_streams(seed, num_games)
    arguments = (num_players, simulations, exploration, greedy, streams, games, visits, winners, owners, lengths)
    run_shared(_play_searching, threads, *arguments)
    kept = np.arange(MAX_PLIES) < lengths[:, None]
    return Samples(games[kept], visits[kept], np.repeat(winners, lengths), np.repeat(owners, lengths, axis=0))


def relative_seats(seats: npt.NDArray[np.int8], games: Records) -> npt.NDArray[np.int64]:
    """Turn seats to the mover's eyes: (N,) or (N, K) seats, -1 for nobody, to relative seats 0..3, 4 for nobody."""
    shape = (len(games),) + (1,) * (seats.ndim - 1)
    movers, players = (games[name].astype(np.int64).reshape(shape) for name in ("to_move", "num_players"))
    return np.where(seats < 0, MAX_PLAYERS, (seats - movers) % players)


class Rollout(NamedTuple):
    """T plies of B games, with all that learning from them needs. Seats are absolute unless said otherwise."""

    features: Features
    """(T * B, ...) of each position, as the seat to move saw it; ply by ply."""
    actions: npt.NDArray[np.int64]
    """(T, B) int64 what was played."""
    log_probs: npt.NDArray[np.float32]
    """(T, B) float32 log probability of it."""
    learned: npt.NDArray[np.bool_]
    """(T, B) bool: the learner moved, not an opponent from the league."""
    movers: npt.NDArray[np.int8]
    """(T, B) int8 seat that moved."""
    num_players: npt.NDArray[np.int8]
    """(B,) int8."""
    values: npt.NDArray[np.float32]
    """(T + 1, B, 4) float32 the network's chance to win per seat, after the last ply too."""
    winners: npt.NDArray[np.int8]
    """(T, B) int8 the winner if that ply ended the game, else -1."""
    owners: npt.NDArray[np.int8]
    """(T, B, 9) int8 the final owners if that ply ended the game, else -1."""


@jit
def start_games(games: Records, streams: Streams) -> None:
    """Start each game for the number of players that its record names, and play a random number of random plies.

    So the games of a batch are spread over all phases from the first ply on.
    """
    for index in range(len(games)):
        begin(games, index, games[index].num_players, 0, 0, 1, streams)
        for _ in range(draw_below(streams, index, MAX_PLIES)):
            play(games[index], random_action(games[index], streams, index))
            if is_over(games[index]):
                begin(games, index, games[index].num_players, 0, 0, 1, streams)


@jit
def advance(
    games: Records, actions: npt.NDArray[np.int64], streams: Streams, winners: npt.NDArray[np.int8],
    owners: npt.NDArray[np.int8],
) -> None:  # fmt: skip
    """Play one legal action per game; where one ends, note winner and owners and start the next.

    Args:
        games: (B,) records.
        actions: (B,) int64.
        streams: (B,) uint64.
        winners: (B,) int8, written: the winner, or -1 if the game goes on.
        owners: (B, 9) int8, written: the final owners, -1 for nobody or if the game goes on.
    """
    winners[:] = -1
    owners[:] = -1
    for index in range(len(games)):
        game = games[index]
        play(game, actions[index])
        if is_over(game):
            winners[index] = winner_of(game)
            _write_owners(game, owners[index])
            begin(games, index, game.num_players, 0, 0, 1, streams)


@jit
def own_decision_targets(
    movers: npt.NDArray[np.int8],
    num_players: npt.NDArray[np.int8],
    values: npt.NDArray[np.float32],
    winners: npt.NDArray[np.int8],
    decay: float,
    advantages: npt.NDArray[np.float32],
    targets: npt.NDArray[np.float32],
) -> None:
    """Compute advantages and value targets, each seat's over its own successive decisions.

    A seat's trajectory is the plies at which it moved, however many others moved between them (none, if the others were
    passed over). With V the seat's own component of the value, r the return (1 for the winner, else 0) and t' the
    seat's next decision,

        A(t) = V(t') - V(t) + decay * A(t')      or, if the game ends before it moves again,      A(t) = r - V(t)

    (Schulman et al., "High-dimensional continuous control using generalized advantage estimation", ICLR 2016, with
    gamma = 1). The target of a seat's value at any ply is V + A at its own next decision, that ply included, or r.

    Args:
        movers: (T, B) int8 seats.
        num_players: (B,) int8.
        values: (T + 1, B, 4) float32 per seat; the last ones stand for what comes after the rollout.
        winners: (T, B) int8, the winner if that ply ended the game, else -1.
        decay: lambda.
        advantages: (T, B) float32, written: the mover's.
        targets: (T, B, 4) float32, written: per seat, 0 for seats that are not in play.
    """
    plies, batch = movers.shape
    next_value, next_advantage = np.zeros(MAX_PLAYERS), np.zeros(MAX_PLAYERS)
    for index in range(batch):
        for seat in range(num_players[index]):
            next_value[seat], next_advantage[seat] = values[plies, index, seat], 0.0
        for ply in range(plies - 1, -1, -1):
            if winners[ply, index] >= 0:
                for seat in range(num_players[index]):
                    next_value[seat], next_advantage[seat] = 1.0 if winners[ply, index] == seat else 0.0, 0.0
            mover = movers[ply, index]
            value = values[ply, index, mover]
            advantage = next_value[mover] - value + decay * next_advantage[mover]
            next_value[mover], next_advantage[mover] = value, advantage
            advantages[ply, index] = advantage
            for seat in range(num_players[index]):
                targets[ply, index, seat] = next_value[seat] + next_advantage[seat]


@jit
def owner_targets(winners: npt.NDArray[np.int8], owners: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Return (T, B, 9) int8: who will own each section, -1 nobody, -2 unknown because the game did not end.

    Args:
        winners: (T, B) int8, as in `Rollout`.
        owners: (T, B, 9) int8, as in `Rollout`.
    """
    targets = np.full(owners.shape, np.int8(-2))
    for index in range(winners.shape[1]):
        ending = -1
        for ply in range(winners.shape[0] - 1, -1, -1):
            if winners[ply, index] >= 0:
                ending = ply
            if ending >= 0:
                targets[ply, index] = owners[ending, index]
    return targets


@jit
def _write_owners(game: Record, owners: npt.NDArray[np.int8]) -> None:
    """Write the owner of each section, -1 for nobody."""
    for section in range(NUM_SECTIONS):
        owners[section] = -1
        for seat in range(game.num_players):
            if (game.owned[seat] >> section) & 1:
                owners[section] = seat


@jit
def roll_seats(rows: npt.NDArray[np.float32], first: npt.NDArray[np.int8], num_players: npt.NDArray[np.int8]) -> None:
    """Turn (N, 4) rows in place from seats to relative seats, or back with `first` negated.

    Args:
        rows: one number per seat.
        first: (N,) the seat that becomes relative seat 0.
        num_players: (N,).
    """
    old = np.empty(MAX_PLAYERS, np.float32)
    for index in range(len(rows)):
        players = num_players[index]
        for seat in range(players):
            old[seat] = rows[index, seat]
        for seat in range(players):
            rows[index, seat] = old[(seat + first[index] + players) % players]


@jit
def _play_searching(
    control: Control,
    num_players: int,
    simulations: int,
    exploration: float,
    greedy: float,
    streams: Streams,
    games: Records,
    visits: npt.NDArray[np.uint16],
    winners: npt.NDArray[np.int8],
    owners: npt.NDArray[np.int8],
    lengths: npt.NDArray[np.int64],
) -> None:
    """Play the games that this thread claims."""
    nodes, scratch, now = np.zeros(simulations + 1, NODE), np.zeros(1, GAME), np.zeros(1, GAME)
    while True:
        index, stop = claim(control, 0, len(games), 1)
        if index == stop:
            return
        begin(now, 0, num_players, 0, 0, 1, streams)
        game, ply = now[0], 0
        while not is_over(game):
            grow(game, streams, index, exploration, nodes, scratch)
            games[index, ply] = game
            _write_visits(now, nodes, visits[index, ply])
            if draw_below(streams, index, 1 << 20) < greedy * (1 << 20):
                action = most_visited(game, nodes)
            else:
                action = draw_by_weight(streams, index, visits[index, ply])
            play(game, action)
            ply += 1
        lengths[index], winners[index] = ply, winner_of(game)
        _write_owners(game, owners[index])


@jit
def _write_visits(games: Records, nodes: Records, visits: npt.NDArray[np.uint16]) -> None:
    """Write how often the actions of game 0 were visited."""
    if must_pass(games[0]):
        visits[NUM_ACTIONS - 1] = 1
        return
    child = nodes[0].child
    while child:
        visits[bit_action(games[0], nodes[child].bit)] = nodes[child].visits
        child = nodes[child].sibling


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
