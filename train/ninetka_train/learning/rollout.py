"""PPO's self-play in arrays: a rollout of many games, and the targets that each seat's own decisions get from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents.ninetka.features import Features
from ninetka_env.core.chance import Streams, draw_below
from ninetka_env.core.jit import jit
from ninetka_env.core.outcome import UNFINISHED
from ninetka_env.core.verbs import Codes, Records, is_over, play, random_action, start
from ninetka_env.games.ninetka.geometry import MAX_PLAYERS


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
    """(T + 1, B, 4) float32 the network's chance to win per seat, draws shared, after the last ply too."""
    winners: npt.NDArray[np.int8]
    """(T, B) int8 the winner, or `DRAWN`, if that ply ended the game, else `UNFINISHED`."""
    owners: npt.NDArray[np.int8]
    """(T, B, 9) int8 the final owners if that ply ended the game, else -1."""


@jit
def start_games(games: Records, options: Codes, streams: Streams, most_plies: int) -> None:
    """Start each game with its row of options, (B, k) int64, and play a random number of random plies.

    So the games of a batch are spread over all phases from the first ply on.
    """
    for index in range(len(games)):
        start(games[index], options[index], streams, index)
        for _ in range(draw_below(streams, index, most_plies)):
            play(games[index], random_action(games[index], streams, index))
            if is_over(games[index]):
                start(games[index], options[index], streams, index)


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
    passed over). With V the seat's own component of the value, r the return (1 for the winner, else 0; drawn, 1 / n)
    and t' the seat's next decision,

        A(t) = V(t') - V(t) + decay * A(t')      or, if the game ends before it moves again,      A(t) = r - V(t)

    (Schulman et al., "High-dimensional continuous control using generalized advantage estimation", ICLR 2016, with
    gamma = 1). The target of a seat's value at any ply is V + A at its own next decision, that ply included, or r.

    Args:
        movers: (T, B) int8 seats.
        num_players: (B,) int8.
        values: (T + 1, B, 4) float32 per seat; the last ones stand for what comes after the rollout.
        winners: (T, B) int8, as in `Rollout`.
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
            winner = winners[ply, index]
            if winner != UNFINISHED:
                for seat in range(num_players[index]):
                    won = 1.0 if winner == seat else 0.0
                    next_value[seat] = 1.0 / num_players[index] if winner < 0 else won
                    next_advantage[seat] = 0.0
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
            if winners[ply, index] != UNFINISHED:
                ending = ply
            if ending >= 0:
                targets[ply, index] = owners[ending, index]
    return targets


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
