"""Training samples: positions and their targets. Seats are absolute.

`relative_seats`, `relative_values` and `relative_scores` convert targets to seats relative to the mover.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.files import replace_file
from ninetka_env.core.verbs import StateArray
from ninetka_env.core.verbs import relative_seats as seats_from

Floats = npt.NDArray[np.float32]


class Samples(NamedTuple):
    """N positions with their targets, of a game with at most A actions, P players and T final targets."""

    games: StateArray
    """(N,) states, none of them finished."""
    policy: npt.NDArray[np.float16]
    """(N, A) float16: the search's policy, summing to 1; without a search, 1 for each move that is known to win; all 0
    where nothing is known."""
    values: Floats
    """(N, P + 1) float32 shares of the outcomes, summing to 1: win of each seat; draw. All 0 where there is only a
    policy target."""
    owners: npt.NDArray[np.int8]
    """(N, T) int8: the final targets of `ninetka_env.core.verbs.write_targets`: seats, -1 for no owner."""
    scores: Floats
    """(N, P) float32: the final scores, 0 for seats that are not in play."""


def join(parts: Iterable[Samples]) -> Samples:
    """Return the concatenation of samples."""
    return Samples(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def outcome_shares(winners: npt.NDArray[np.integer], players: int) -> Floats:
    """Return one-hot outcomes, (N, players + 1) float32. Winners are seats, or `DRAWN` (-1) for the last column."""
    return np.eye(players + 1, dtype=np.float32)[winners.astype(np.int64)]  # index -1 is the last row


def draw(window: Sequence[Samples], count: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw indices of positions in the window, (count,) int64. Each round with positions has the same probability.

    Raises:
        ValueError: if there are no positions.
    """
    sizes = np.array([len(samples.games) for samples in window])
    filled = np.flatnonzero(sizes)
    if not len(filled):
        raise ValueError("no position was searched in these games: alphazero.games or alphazero.share is too small")
    rounds = filled[rng.integers(0, len(filled), count)]
    return (sizes.cumsum() - sizes)[rounds] + rng.integers(0, sizes[rounds])


def take(window: Sequence[Samples], chosen: npt.NDArray[np.int64]) -> Samples:
    """Return the positions with the given indices in the window."""
    ends = np.cumsum([len(samples.games) for samples in window])
    numbers = np.searchsorted(ends, chosen, side="right")
    parts = []
    for number in np.unique(numbers):
        rows = chosen[numbers == number] - (ends[number] - len(window[number].games))
        parts.append(rows_of(window[number], rows))
    return join(parts)


def rows_of(samples: Samples, rows: npt.NDArray[Any]) -> Samples:
    """Return the positions selected by indices or a boolean mask."""
    arrays: Any = (array[rows] for array in samples)
    return Samples(*arrays)


def relative_seats(samples: Samples) -> npt.NDArray[np.int64]:
    """Return (N, T) int64: the final owners as relative seats 0 .. P - 1, P for no owner."""
    movers, players = (turn[:, None] for turn in _movers_and_players(samples))
    return np.where(samples.owners < 0, samples.scores.shape[1], seats_from(samples.owners, movers, players))


def relative_values(samples: Samples) -> Floats:
    """Return (N, P + 1) float32: the outcomes' shares per relative seat, 0 for seats not in play; draws last."""
    turned = _by_relative_seat(samples.values[:, :-1], *_movers_and_players(samples), np.float32(0))
    return np.hstack([turned, samples.values[:, -1:]])


def relative_scores(samples: Samples) -> Floats:
    """Return (N,) float32: the final score of the seat to move minus the best of the others."""
    turned = _by_relative_seat(samples.scores, *_movers_and_players(samples), np.float32(-np.inf))
    return turned[:, 0] - turned[:, 1:].max(1)


def _movers_and_players(samples: Samples) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the seats to move and the numbers of players, (N,) each."""
    return samples.games["to_move"], samples.games["num_players"]


def _by_relative_seat(rows: Floats, movers: npt.NDArray[Any], players: npt.NDArray[Any], absent: np.float32) -> Floats:
    """Convert (N, P) numbers per seat to numbers per relative seat, `absent` for seats that are not in play."""
    seats, count = np.arange(rows.shape[1]), players[:, None]
    turned = np.take_along_axis(rows, seats_from(seats, -movers[:, None].astype(np.int64), count), 1)
    return np.where(seats < count, turned, absent)


def write_samples(path: Path, samples: Samples) -> None:
    """Write samples to a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **samples._asdict())
    replace_file(path, [buffer.getvalue()])


def read_samples(path: Path, dtype: np.dtype[np.void]) -> Samples:
    """Read samples from a file; `dtype` is the dtype of the states.

    Raises:
        ValueError: if the file is missing or damaged; the message names the file.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            samples = Samples(*(arrays[name] for name in Samples._fields))
            return samples._replace(games=samples.games.astype(dtype))  # files do not store the alignment of a dtype
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, TypeError) as error:
        raise ValueError(f"{path}: cannot be read: {error}") from None
