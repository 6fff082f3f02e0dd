"""Rollouts of PPO as arrays; `batch.py` has what is learned from them, and `ppo.py` the training loop.

The games have at most A actions, P players and T' final targets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit
from ninetka_env.core.random_streams import Streams, draw_below
from ninetka_env.core.registry import Variant
from ninetka_env.core.verbs import OptionCodes, StateArray, is_over, play, random_action, start
from ninetka_train.learning.advantages import Array

Floats = npt.NDArray[np.float32]


class Rollout(NamedTuple):
    """T plies of B games with all data for learning: arrays, or tensors on a GPU. Seats are absolute."""

    arrays: Any
    """(T * B, ...) the network's inputs for each position, from the view of the seat to move, ordered by ply."""
    actions: Array
    """(T, B) int64 the actions played."""
    log_probs: Array
    """(T, B) float32 log probabilities of the actions."""
    is_learner_ply: Array
    """(T, B) bool: True if the learner moved, False if an opponent from the league moved."""
    movers: Array
    """(T, B) int8 the seat that moved."""
    num_players: Array
    """(B,) int8 numbers of players."""
    values: Array
    """(T + 1, B, P) float32 win probability per seat, with draws as shares of wins; last, the positions after ply T."""
    winners: Array
    """(T, B) int8 the winner or `DRAWN` if the ply ended the game, else `UNFINISHED`."""
    owners: Array
    """(T, B, T') int8 the final targets of `ninetka_env.core.verbs.write_targets` if the ply ended the game."""
    scores: Array
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
