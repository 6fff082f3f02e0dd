"""Start, step and score many games at once in compiled code. A batch is a state array with one element per game."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.chance import Streams
from ninetka_env.core.jit import jit
from ninetka_env.core.outcome import UNFINISHED, write_rewards
from ninetka_env.core.registry import Variant, definition_of, limits_of, own_dtype
from ninetka_env.core.verbs import (
    Codes,
    Record,
    Records,
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


class Endings(NamedTuple):
    """Outcomes of N games."""

    winners: npt.NDArray[np.int8]
    """(N,) int8: the winning seat, `DRAWN`, or `UNFINISHED` where the game continues."""
    scores: npt.NDArray[np.generic]
    """(N, n), of the game's `score_dtype`."""
    rewards: npt.NDArray[np.float32]
    """(N, n) float32."""
    targets: npt.NDArray[np.int8]
    """(N, T) int8: see `ninetka_env.core.verbs.write_targets`; -1 where the game continues."""


def as_records(games: Any) -> Records:
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
    definition_of(games.dtype)  # raises if the dtype belongs to no game
    if type(games) is np.ndarray and games.flags.carray and games.dtype.isalignedstruct:
        return games
    return np.require(games.view(own_dtype(games.dtype), np.ndarray), requirements=["C", "A", "W"])


def make_endings(dtype: np.dtype[Any], count: int, num_players: int = 0) -> Endings:
    """Return an `Endings` with arrays for `count` games of this dtype; `num_players=0` means the game's maximum."""
    limits = limits_of(dtype)
    shape = (count, num_players or limits.players)
    return Endings(
        np.full(count, UNFINISHED, np.int8),
        np.zeros(shape, definition_of(dtype).score_dtype),
        np.zeros(shape, np.float32),
        np.full((count, limits.targets), -1, np.int8),
    )


def bytes_per_game(variant: Variant) -> int:
    """Return the approximate memory of one game in a batch, with its observation and mask, in bytes."""
    return int(variant.dtype.itemsize + np.prod(variant.sizes.planes) + variant.num_actions)


def codes_of(variant: Variant, count: int) -> Codes:
    """Return the encoded options of `count` games of a variant, (count, k) int64."""
    return np.tile(np.array(variant.codes, np.int64), (count, 1))


def new_games(variant: Variant, streams: Streams) -> Records:
    """Return one new game per stream, (len(streams),); a random start draws from the streams."""
    games = np.zeros(len(streams), variant.dtype)
    begin(games, np.arange(len(games)), codes_of(variant, len(games)), streams)
    return games


@jit
def begin(games: Records, which: Indices, options: Codes, streams: Streams) -> None:
    """Restart the games with the indices `which`, each with its row of `options`, (N, k) int64, and its stream."""
    for index in which:
        start(games[index], options[index], streams, index)


@jit
def first_illegal(games: Records, actions: Indices) -> int:
    """Return the index of the first game whose action is illegal, -1 if all are legal."""
    for index in range(len(games)):
        if not is_legal(games[index], actions[index]):
            return index
    return -1


@jit
def play_all(games: Records, which: Indices, actions: Indices, over: npt.NDArray[np.bool_]) -> int:
    """Play one action in each game of `which` and write to `over`, (len(which),), whether the game has ended.

    If an action is illegal, return its position in `actions` and change nothing. Otherwise return -1.
    """
    for place in range(len(which)):
        if not is_legal(games[which[place]], actions[place]):
            return place
    for place in range(len(which)):
        play(games[which[place]], actions[place])
        over[place] = is_over(games[which[place]])
    return -1


@jit
def first_without_turn(games: Records) -> int:
    """Return the index of the first game that has ended or is not valid (such as all zeros), -1 if there is none."""
    for index in range(len(games)):
        game = games[index]
        if not 0 <= game.to_move < game.num_players or is_over(game):
            return index
    return -1


@jit
def write_over(games: Records, which: Indices, over: npt.NDArray[np.bool_]) -> None:
    """Write to `over`, (len(which),), whether each of the games `which` has ended."""
    for place in range(len(which)):
        over[place] = is_over(games[which[place]])


@jit
def write_ending(game: Record, index: int, reward: int, endings: Endings) -> None:
    """Write the outcome of a finished game into row `index`; `reward` is an index into `outcome.REWARDS`."""
    endings.winners[index] = winner_of(game)
    write_scores(game, endings.scores[index])
    write_rewards(game, reward, endings.rewards[index])
    write_targets(game, endings.targets[index])


@jit
def write_endings(games: Records, which: Indices, endings: Endings) -> None:
    """Write the outcomes of the finished games `which` into their rows."""
    for index in which:
        write_ending(games[index], index, 0, endings)


@jit
def advance(games: Records, actions: Indices, options: Codes, streams: Streams, endings: Endings) -> None:
    """Play one legal action per game; where a game ends, write its outcome and start the next game in its place."""
    endings.winners[:] = UNFINISHED
    endings.targets[:] = -1
    for index in range(len(games)):
        game = games[index]
        play(game, actions[index])
        if is_over(game):
            write_ending(game, index, 0, endings)
            start(game, options[index], streams, index)


@jit
def write_stages(games: Records, stages: npt.NDArray[np.int8]) -> None:
    """Write the stage of each game, (N,) int8."""
    for index in range(len(games)):
        stages[index] = stage(games[index])
