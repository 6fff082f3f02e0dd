"""Observations of Go: two sets of planes, and the compiled functions that write them.

Start reading at `STANDARD`, the table of planes, and `write_observation`. The network of Go reads these planes, too:
see `ninetka_agents.go.network`.

Planes are size x size int8 arrays of 0 and 1, rank 1 first: index `[plane, rank - 1, file]`. The viewer is the seat
that observes; "own" stones are the viewer's, "other" stones the opponent's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.bits import WORD_BITS, Words, clear_bits, clear_words, fill_bits, get_bit, or_bits, set_bit
from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import State
from ninetka_env.games.go.geometry import NEIGHBOURS, i64, table_offset
from ninetka_env.games.go.repetition import has_superko, violates_superko
from ninetka_env.games.go.rules import is_over, is_suicide
from ninetka_env.games.go.scoring import points_of
from ninetka_env.games.go.scratch import Bytes, scratch


class PlaneGroup(NamedTuple):
    """A row in the table of planes: the planes `first .. first + number - 1` and their meaning."""

    name: str
    first: int
    number: int
    meaning: str


STANDARD = (
    PlaneGroup("stones", 0, 2, "own stones, the opponent's stones"),
    PlaneGroup("own_liberties", 2, 3, "own chains with 1, 2, 3 or more liberties"),
    PlaneGroup("other_liberties", 5, 3, "the opponent's chains with 1, 2, 3 or more liberties"),
    PlaneGroup("ko", 8, 1, "points that only the ko rule forbids to the viewer, if the viewer is to move"),
    PlaneGroup("last", 9, 2, "the points of the last turn and of the turn before; none for a pass"),
    PlaneGroup("passed", 11, 1, "the last turn was a pass (filled plane)"),
    PlaneGroup("black", 12, 1, "the viewer is Black (filled plane)"),
    PlaneGroup("to_move", 13, 1, "the viewer is to move, and the game is not over (filled plane)"),
    PlaneGroup("late", 14, 1, "at most 16 plies are left before the limit (filled plane)"),
    PlaneGroup("ahead", 15, 1, "the viewer has the higher score, komi included (filled plane)"),
)
"""The table of the planes `"standard"`, in order."""

ALPHAZERO = (
    PlaneGroup("own", 0, 8, "own stones now, and 1 to 7 turns ago"),
    PlaneGroup("other", 8, 8, "the opponent's stones now, and 1 to 7 turns ago"),
    PlaneGroup("black_to_move", 16, 1, "Black is to move (filled plane)"),
)
"""The table of the planes `"alphazero"`. The planes are from D. Silver et al., "Mastering the game of Go without human
knowledge", Nature 550, 2017, with the size of the board. Boards before the first turn are empty."""

PLANE_COUNTS = tuple(table[-1].first + table[-1].number for table in (STANDARD, ALPHAZERO))
"""The number of planes in each set of `rules.PLANE_SETS`."""

LATE_PLIES = 16  # the plane "late" is filled if at most this many plies are left

# np.int64, because numba would compile a called function again for each plain int constant.
_STONES, _OWN, _OTHER, _KO, _LAST, _PASSED, _BLACK, _TO_MOVE, _LATE, _AHEAD = (
    np.int64(planes.first) for planes in STANDARD
)
_HISTORY, _BLACK_TO_MOVE = 7, np.int64(ALPHAZERO[-1].first)

Tensor = npt.NDArray[np.int8]


@jit(refcount=False)
def write_observation(game: State, viewer: int, planes: Tensor) -> None:
    """Write the planes of the game's option `planes`, as seen by seat `viewer`, into `planes`, (C * points,) int8."""
    if game.planes:
        _write_alphazero(game, viewer, planes)
    else:
        write_standard_planes(game, viewer, planes)


@jit(refcount=False)
def _write_alphazero(game: State, viewer: int, planes: Tensor) -> None:
    for seat in range(2):
        colour, first = seat + 1, (_HISTORY + 1) * (seat != viewer)
        _write_stones(game, colour, planes, first)
        for ago in range(_HISTORY):
            _write_earlier_stones(game, colour, ago, planes, first + 1 + ago)
    _fill(game, planes, _BLACK_TO_MOVE, game.to_move == 0)


@jit(refcount=False)
def write_standard_planes(game: State, viewer: int, planes: Tensor) -> None:
    """Write the planes `"standard"` as seen by seat `viewer` into `planes`, (16 * points,) int8."""
    own, on = viewer + 1, not is_over(game)
    _write_stones(game, own, planes, _STONES)
    _write_stones(game, 3 - own, planes, _STONES + 1)
    _write_liberties(game, own, planes)
    for plane in range(_KO, _LAST + 2):
        _fill(game, planes, plane, False)
    if on and viewer == game.to_move:
        _write_ko(game, planes)
    _write_last(game, planes)
    filled = _filled_planes(game, viewer)
    for plane in range(_PASSED, _AHEAD + 1):
        _fill(game, planes, plane, filled >> plane & 1)


@jit(refcount=False)
def _filled_planes(game: State, viewer: int) -> int:
    """Return the bit set of those planes `"standard"` from `"passed"` to `"ahead"` that are filled."""
    is_to_move = not is_over(game) and viewer == game.to_move
    is_late = game.max_plies - game.plies <= LATE_PLIES
    filled = int(game.passes > 0) << _PASSED | int(viewer == 0) << _BLACK | int(is_to_move) << _TO_MOVE
    return int(filled | int(is_late) << _LATE | int(_is_ahead(game, viewer)) << _AHEAD)


@jit(refcount=False)
def _write_stones(game: State, colour: int, planes: Tensor, plane: int) -> None:
    """Mark the stones of a colour. The loop is vectorised because it compares int8 with int8."""
    points, cell = len(game.empty), np.int8(colour)
    target = planes[plane * points : (plane + 1) * points]
    for point in range(points):
        target[point] = game.board[point] == cell


@jit(refcount=False)
def _write_earlier_stones(game: State, colour: int, ago: int, planes: Tensor, plane: int) -> None:
    """Mark the stones of a colour `ago + 1` turns ago."""
    points, mask, cell = len(game.empty), np.uint16(3 << 2 * ago), np.uint16(colour << 2 * ago)
    target = planes[plane * points : (plane + 1) * points]
    for point in range(points):
        target[point] = np.uint16(game.board_history[point] & mask) == cell


@jit(refcount=False)
def _fill(game: State, planes: Tensor, plane: int, value: bool) -> None:
    points, number = len(game.empty), np.int8(value)
    target = planes[plane * points : (plane + 1) * points]
    for point in range(points):
        target[point] = number


@jit(refcount=False)
def _write_liberties(game: State, own: int, planes: Tensor) -> None:
    """Mark the stones of each chain in the plane of its number of liberties."""
    points, counts, kinds = len(game.empty), scratch(), scratch()
    _count_liberties(game, counts)
    for point in range(points):
        kinds[point] = counts[game.chain[point]] | game.board[point] << 2
    for count in range(1, 4):
        _write_kind(points, kinds, own << 2 | count, planes, _OWN + count - 1)
        _write_kind(points, kinds, (3 - own) << 2 | count, planes, _OTHER + count - 1)


@jit(refcount=False)
def _count_liberties(game: State, counts: Bytes) -> None:
    """Write the number of liberties of each chain, at most 3, at the index of its head.

    The loop is branch-free, because random data would defeat branch prediction. Each of the four directions has its own
    counters, because repeated additions to the same counter are slower. Bytes suffice: k connected stones have at most
    2 k + 2 liberties.
    """
    points = len(game.empty)
    first, below, left, right, above = table_offset(points), scratch(), scratch(), scratch(), scratch()
    for point in range(points + 1):
        below[point] = left[point] = right[point] = above[point] = 0
    for place in range(game.num_empty):
        row = first + i64(game.empty[place])
        a, b = game.chain[NEIGHBOURS[row, 0]], game.chain[NEIGHBOURS[row, 1]]
        c, d = game.chain[NEIGHBOURS[row, 2]], game.chain[NEIGHBOURS[row, 3]]
        below[a] += 1
        left[b] += b != a
        right[c] += (c != a) & (c != b)
        above[d] += (d != a) & (d != b) & (d != c)
    for point in range(points):
        counts[point] = min(below[point] + left[point] + right[point] + above[point], 3)
    counts[points] = 0


@jit(inline=True, refcount=False)
def _write_kind(points: int, kinds: Bytes, kind: int, planes: Tensor, plane: int) -> None:
    """Mark the points where `kinds` is `kind`. Inlined, because the loop is vectorised only for a known board size."""
    target, wanted = planes[plane * points : (plane + 1) * points], np.uint8(kind)
    for point in range(points):
        target[point] = kinds[point] == wanted


@jit(refcount=False)
def _write_ko(game: State, planes: Tensor) -> None:
    points = len(game.empty)
    if game.ko_point >= 0:
        planes[_KO * points + game.ko_point] = 1
    if has_superko(game):
        for place in range(game.num_empty):
            point = i64(game.empty[place])
            if _only_superko_forbids(game, point):
                planes[_KO * points + point] = 1


@jit(refcount=False)
def _only_superko_forbids(game: State, point: int) -> bool:
    """Return whether a stone at an empty point would be legal without superko, and is not with it."""
    return not is_suicide(game, point) and violates_superko(game, point)


@jit(refcount=False)
def _write_last(game: State, planes: Tensor) -> None:
    points = len(game.empty)
    if game.last >= 0:
        planes[_LAST * points + game.last] = 1
    if game.before_last >= 0:
        planes[(_LAST + 1) * points + game.before_last] = 1


@jit(refcount=False)
def _is_ahead(game: State, viewer: int) -> bool:
    """Return whether the viewer has more points, komi included. Resignations are ignored."""
    black, white = points_of(game)
    lead = 2 * black - 2 * white - game.komi
    return lead > 0 if viewer == 0 else lead < 0


# Bits


@jit(refcount=False)
def write_observation_bits(game: State, viewer: int, words: Words) -> None:
    """Write the numbers of `write_observation` as bits, (ceil(C * points / 32),) uint32."""
    own = i64(viewer) + 1
    clear_words(words)
    if game.planes:
        for ago in range(_HISTORY + 1):
            _write_stone_bits(game, own, ago, words)
        _fill_bits(game, words, _BLACK_TO_MOVE, game.to_move == 0)
        return
    on = not is_over(game)
    _write_liberty_bits(game, own, words)
    if on and viewer == game.to_move:
        _write_ko_bits(game, words)
    if game.last >= 0:
        _set_bit(game, words, _LAST, game.last)
    if game.before_last >= 0:
        _set_bit(game, words, _LAST + 1, game.before_last)
    filled = _filled_planes(game, viewer)
    for plane in range(_PASSED, _AHEAD + 1):
        _fill_bits(game, words, plane, filled >> plane & 1)


@jit(refcount=False)
def _set_bit(game: State, words: Words, plane: int, point: int) -> None:
    """Mark a point in a plane."""
    set_bit(words, plane * len(game.empty) + int(point))


@jit(refcount=False)
def _fill_bits(game: State, words: Words, plane: int, value: bool) -> None:
    """Fill a plane if `value` is True."""
    if value:
        fill_bits(words, plane * len(game.empty), len(game.empty))


@jit(refcount=False)
def _write_stone_bits(game: State, own: int, ago: int, words: Words) -> None:
    """Write the planes `"alphazero"` of the stones `ago` turns ago."""
    points = len(game.empty)
    for first in range(0, points, WORD_BITS):
        own_stones, other_stones = 0, 0
        for k in range(min(WORD_BITS, points - first)):
            codes = int(game.board_history[first + k]) << 2 | int(game.board[first + k])
            code = codes >> 2 * ago & 3
            own_stones |= int(code == own) << k
            other_stones |= int(code == 3 - own) << k
        or_bits(words, ago * points + first, own_stones)
        or_bits(words, (_HISTORY + 1 + ago) * points + first, other_stones)


@jit(refcount=False)
def _write_liberty_bits(game: State, own: int, words: Words) -> None:
    """Write the stones of both seats, and the stones of each chain in the plane of its number of liberties.

    The counters of liberties are in the planes of the ko and the last turns, which are empty again afterwards.
    """
    points = len(game.empty)
    first, counters = table_offset(points), _KO * points
    for place in range(game.num_empty):
        row = first + i64(game.empty[place])
        a, b = i64(game.chain[NEIGHBOURS[row, 0]]), i64(game.chain[NEIGHBOURS[row, 1]])
        c, d = i64(game.chain[NEIGHBOURS[row, 2]]), i64(game.chain[NEIGHBOURS[row, 3]])
        _add_liberty(words, counters, points, a, True)
        _add_liberty(words, counters, points, b, b != a)
        _add_liberty(words, counters, points, c, c != a and c != b)
        _add_liberty(words, counters, points, d, d != a and d != b and d != c)
    for point in range(points):
        if game.board[point]:
            is_own, liberties = game.board[point] == own, -1
            for number in range(3):
                liberties += get_bit(words, counters + number * points + i64(game.chain[point]))
            _set_bit(game, words, _STONES if is_own else _STONES + 1, point)
            _set_bit(game, words, (_OWN if is_own else _OTHER) + liberties, point)
    clear_bits(words, counters, 3 * points)


@jit(refcount=False)
def _add_liberty(words: Words, counters: int, points: int, head: int, is_new: bool) -> None:
    """Add 1 to the counter of a chain, up to 3: the number of ones at the index of its head in three planes."""
    if head < points and is_new:
        place = counters + head
        set_bit(words, place + (get_bit(words, place) + get_bit(words, place + points)) * points)


@jit(refcount=False)
def _write_ko_bits(game: State, words: Words) -> None:
    if game.ko_point >= 0:
        _set_bit(game, words, _KO, game.ko_point)
    if has_superko(game):
        for place in range(game.num_empty):
            point = i64(game.empty[place])
            if _only_superko_forbids(game, point):
                _set_bit(game, words, _KO, point)
