"""Rollouts of PPO as arrays, and advantages over each seat's own decisions; `ppo.py` has the training loop.

The games have at most A actions, P players and T' final targets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit
from ninetka_env.core.outcome import DRAWN, UNFINISHED
from ninetka_env.core.random_streams import Streams, draw_below
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import OptionCodes, StateArray, is_over, play, random_action, start
from ninetka_train.learning.advantages import SeatTargets, seat_advantages

Floats = npt.NDArray[np.float32]


class Rollout(NamedTuple):
    """T plies of B games with all data for learning. Seats are absolute."""

    arrays: Any
    """(T * B, ...) the network's inputs for each position, from the view of the seat to move, ordered by ply."""
    actions: npt.NDArray[np.int64]
    """(T, B) int64 the actions played."""
    log_probs: Floats
    """(T, B) float32 log probabilities of the actions."""
    is_learner_ply: npt.NDArray[np.bool_]
    """(T, B) bool: True if the learner moved, False if an opponent from the league moved."""
    movers: npt.NDArray[np.int8]
    """(T, B) int8 the seat that moved."""
    num_players: npt.NDArray[np.int8]
    """(B,) int8 numbers of players."""
    values: Floats
    """(T + 1, B, P) float32 win probability per seat, with draws as shares of wins; last, the positions after ply T."""
    winners: npt.NDArray[np.int8]
    """(T, B) int8 the winner or `DRAWN` if the ply ended the game, else `UNFINISHED`."""
    owners: npt.NDArray[np.int8]
    """(T, B, T') int8 the final targets of `ninetka_env.core.verbs.write_targets` if the ply ended the game."""
    scores: Floats
    """(T, B, P) float32 the final scores if the ply ended the game."""


def options_of_games(variants: Sequence[Variant], games: Iterable[int]) -> OptionCodes:
    """Return the options of games, (G, k) int64; game i is of variant `i % len(variants)`."""
    return np.array([variants[game % len(variants)].codes for game in games], np.int64)


def sample_actions(logits: Floats, uniform: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
    """Draw an action per row of logits; return the actions, (N,) int64, and their log probabilities, (N,) float32.

    Args:
        logits: (N, A) float32, masked where illegal.
        uniform: (N,) float32 uniform random numbers in [0, 1).
    """
    shifted = logits - logits.max(1, keepdims=True)
    sums = np.exp(shifted, dtype=np.float32).cumsum(1)
    # The factor keeps thresholds below the total, so the first larger sum never belongs to an action of weight 0.
    thresholds = uniform[:, None] * sums[:, -1:] * np.float32(1 - 1e-6)
    actions = (sums > thresholds).argmax(1)
    rows = np.arange(len(logits))
    return actions, shifted[rows, actions] - np.log(sums[:, -1])


@jit
def start_games(games: StateArray, options: OptionCodes, streams: Streams, max_plies: int) -> None:
    """Start each game with its row of options, (B, k) int64, and play a random number of random plies.

    This spreads the games of a batch over all phases.
    """
    for index in range(len(games)):
        start(games[index], options[index], streams, index)
        for _ in range(draw_below(streams, index, max_plies)):
            play(games[index], random_action(games[index], streams, index))
            if is_over(games[index]):
                start(games[index], options[index], streams, index)


def own_decision_targets(
    movers: npt.NDArray[np.int8],
    num_players: npt.NDArray[np.int8],
    values: Floats,
    winners: npt.NDArray[np.int8],
    decay: float,
) -> SeatTargets:
    """Return the advantages of the movers, (T, B), and the value targets of all seats, (T, B, P), as win probabilities.

    See `ninetka_train.learning.advantages.seat_advantages`. The only reward is that of a finished game: 1 for the
    winner, or 1 / n for each seat if it is drawn. Targets of seats that are not in play are 0.

    Args:
        movers: (T, B) int8 seats.
        num_players: (B,) int8 numbers of players.
        values: (T + 1, B, P) float32 per seat; the last values estimate the rest of unfinished games.
        winners: (T, B) int8, as in `Rollout`.
        decay: lambda of the advantages.
    """
    seats = np.arange(values.shape[2])
    in_play = seats < num_players[:, None]
    drawn = (winners == DRAWN)[..., None]
    shares = (winners[..., None] == seats) + drawn * (in_play / num_players[:, None])
    own_values = np.take_along_axis(values[:-1], movers[..., None].astype(np.int64), 2)[..., 0]
    return seat_advantages(movers, shares, winners != UNFINISHED, own_values, values[-1] * in_play, gae_lambda=decay)


def ending_plies(winners: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    """Return (T, B) int64: the ply that ended each position's game, or -1 if the game did not end in the rollout."""
    plies, ending = np.full(winners.shape, -1), np.full(winners.shape[1], -1)
    for ply in range(len(winners) - 1, -1, -1):
        ending = np.where(winners[ply] != UNFINISHED, ply, ending)
        plies[ply] = ending
    return plies


@jit
def roll_seats(rows: Floats, first: npt.NDArray[np.int8], num_players: npt.NDArray[np.int8]) -> None:
    """Reorder rows in place from seats to relative seats. With `-first` instead of `first`, reorder them back.

    Args:
        rows: (N, P), one number per seat.
        first: (N,) the seat that becomes relative seat 0.
        num_players: (N,) numbers of players.
    """
    old = np.empty(rows.shape[1], np.float32)
    for index in range(len(rows)):
        players = num_players[index]
        for seat in range(players):
            old[seat] = rows[index, seat]
        for seat in range(players):
            rows[index, seat] = old[(seat + first[index] + players) % players]
