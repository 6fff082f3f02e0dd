"""Start, step and score many games at once in compiled code. A batch is a state array with one element per game.

`ninetka_env.api.vector` is the environment for users.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import jit
from ninetka_env.core.outcome import UNFINISHED, write_rewards
from ninetka_env.core.random_streams import Streams
from ninetka_env.core.registry import Variant, canonical_dtype, definition_of, limits_of
from ninetka_env.core.verbs import (
    OptionCodes,
    State,
    StateArray,
    is_consistent,
    is_legal,
    is_over,
    play,
    stage,
    start,
    winner_of,
    write_scores,
    write_targets,
)

Indices = npt.NDArray[np.int64]


class GameOutcomes(NamedTuple):
    """Outcomes of N games with n seats, one game per row."""

    winners: npt.NDArray[np.int8]
    """(N,) int8: the winning seat, `DRAWN`, or `UNFINISHED` where the game continues."""
    scores: npt.NDArray[np.generic]
    """(N, n): the score of each seat; the dtype is `Definition.score_dtype`."""
    rewards: npt.NDArray[np.float32]
    """(N, n) float32: the reward of each seat."""
    targets: npt.NDArray[np.int8]
    """(N, T) int8: see `ninetka_env.core.verbs.write_targets`; -1 where the game continues."""


def as_states(games: Any) -> StateArray:
    """Return games in the form that compiled code expects: contiguous, aligned, writeable, of the game's own dtype.

    An array of that form is returned unchanged, any other as a view or a copy.

    Args:
        games: (N,) states of one game.

    Raises:
        ValueError: if `games` is not an (N,) array, or its dtype belongs to no game.
    """
    if not isinstance(games, np.ndarray) or games.ndim != 1:
        got = f"shape {games.shape}" if isinstance(games, np.ndarray) else type(games).__name__
        raise ValueError(f"games: expected a state array of shape (N,), got {got}; for one game use games[i : i + 1]")
    try:
        definition_of(games.dtype)
    except ValueError:
        if games.dtype.isnative:
            raise
        return as_states(games.astype(games.dtype.newbyteorder("=")))  # from a processor with another byte order
    if type(games) is np.ndarray and games.flags.carray and games.dtype.isalignedstruct:
        return games
    return np.require(games.view(canonical_dtype(games.dtype), np.ndarray), requirements=["C", "A", "W"])


def make_outcomes(dtype: np.dtype[Any], count: int, num_players: int = 0) -> GameOutcomes:
    """Return a `GameOutcomes` for `count` unfinished games of a state dtype.

    The number of seats n is `num_players`. If it is 0, n is the maximum number of players of a game with this dtype.
    """
    limits = limits_of(dtype)
    shape = (count, num_players or limits.players)
    return GameOutcomes(
        np.full(count, UNFINISHED, np.int8),
        np.zeros(shape, definition_of(dtype).score_dtype),
        np.zeros(shape, np.float32),
        np.full((count, limits.targets), -1, np.int8),
    )


def bytes_per_game(variant: Variant) -> int:
    """Return the approximate memory of one game in a batch, with its observation and mask, in bytes."""
    return int(variant.dtype.itemsize + np.prod(variant.sizes.planes) + variant.num_actions)


def option_codes(variant: Variant, count: int) -> OptionCodes:
    """Return the encoded options of `count` games of a variant, (count, k) int64."""
    return np.tile(np.array(variant.codes, np.int64), (count, 1))


def new_games(variant: Variant, streams: Streams) -> StateArray:
    """Return one new game per random stream, (len(streams),) states; game i draws a random start from stream i."""
    games = np.zeros(len(streams), variant.dtype)
    restart_games(games, np.arange(len(games)), option_codes(variant, len(games)), streams)
    return games


@jit
def restart_games(games: StateArray, indices: Indices, options: OptionCodes, streams: Streams) -> None:
    """Restart the games at `indices`; game i uses row i of `options`, (N, k) int64, and random stream i."""
    for index in indices:
        start(games[index], options[index], streams, index)


@jit
def play_all(games: StateArray, indices: Indices, actions: Indices, finished: npt.NDArray[np.bool_]) -> int:
    """Play `actions[k]` in game `indices[k]` for each k, and write to `finished[k]` whether that game has ended.

    If an action is illegal, return its position in `actions` and change nothing. Otherwise return -1.
    """
    for place in range(len(indices)):
        if not is_legal(games[indices[place]], actions[place]):
            return place
    for place in range(len(indices)):
        play(games[indices[place]], actions[place])
        finished[place] = is_over(games[indices[place]])
    return -1


@jit
def first_unplayable(games: StateArray) -> int:
    """Return the index of the first game that has ended or is not valid (such as all zeros), -1 if there is none."""
    for index in range(len(games)):
        game = games[index]
        if not 0 <= game.to_move < game.num_players or is_over(game):
            return index
    return -1


@jit
def first_inconsistent(games: StateArray, scratch: StateArray) -> int:
    """Return the index of the first game whose fields do not agree with each other, -1 if there is none.

    See `ninetka_env.core.verbs.is_consistent` for the conditions and for `scratch`.
    """
    for index in range(len(games)):
        if not is_consistent(games[index], scratch):
            return index
    return -1


@jit
def write_outcome(game: State, index: int, reward: int, outcomes: GameOutcomes) -> None:
    """Write the outcome of a finished game to row `index` of `outcomes`; `reward` is an index into `REWARDS`."""
    outcomes.winners[index] = winner_of(game)
    write_scores(game, outcomes.scores[index])
    write_rewards(game, reward, outcomes.rewards[index])
    write_targets(game, outcomes.targets[index])


@jit
def write_outcomes(games: StateArray, indices: Indices, outcomes: GameOutcomes) -> None:
    """Write the outcomes of the finished games at `indices` to their rows of `outcomes`, with the reward `"win"`."""
    for index in indices:
        write_outcome(games[index], index, 0, outcomes)


@jit(inline=True, refcount=False)
def play_and_restart(
    game: State, index: int, action: int, reward: int, options: OptionCodes, streams: Streams,
    terminated: npt.NDArray[np.bool_], outcomes: GameOutcomes,
) -> None:  # fmt: skip
    """Play a legal action in a game; if it ends, write its outcome to row `index` and start the next game.

    `terminated[index]` is set to whether the game ended. The rewards of the row are 0 unless it did.
    """
    play(game, action)
    if terminated[index]:
        for seat in range(outcomes.rewards.shape[1]):
            outcomes.rewards[index, seat] = 0.0
    terminated[index] = is_over(game)
    if terminated[index]:
        write_outcome(game, index, reward, outcomes)
        start(game, options, streams, index)


@jit
def step_with_autoreset(
    games: StateArray, actions: Indices, options: OptionCodes, streams: Streams, outcomes: GameOutcomes
) -> None:
    """Play one legal action per game; if a game ends, write its outcome and start the next game in the same row.

    In the other rows, `outcomes.winners` is set to `UNFINISHED` and `outcomes.targets` to -1.
    """
    outcomes.winners[:] = UNFINISHED
    outcomes.targets[:] = -1
    for index in range(len(games)):
        game = games[index]
        play(game, actions[index])
        if is_over(game):
            write_outcome(game, index, 0, outcomes)
            start(game, options[index], streams, index)


@jit
def write_stages(games: StateArray, stages: npt.NDArray[np.int8]) -> None:
    """Write the stage of each game, (N,) int8."""
    for index in range(len(games)):
        stages[index] = stage(games[index])
