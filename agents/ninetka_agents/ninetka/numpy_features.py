"""The inputs of 9tka's exported networks, computed from observations by numpy alone.

Start reading at `network_inputs`. This file imports only numpy, so a program that runs an exported network without this
package can use a copy of it. `ninetka_agents.ninetka.features` computes the same arrays from states, in compiled code;
`ninetka_agents.ninetka.feature_tables` says what the numbers mean.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

OBSERVATION_SHAPE = (23, 11, 11)
"""The shape of an observation of 9tka."""
NUM_ACTIONS = 122
TURN_ORDERS = ("restart", "continue")
"""The values of the environment's option `turn_order`."""

# The first plane of each group in an observation.
_NEUTRAL, _PHASE, _NUM_PLAYERS, _TO_MOVE, _VIEWER, _MOVABLE = 4, 5, 8, 11, 15, 19

# The board. A slot is an edge square, numbered in the order of squares. A path is the nine inner squares along which
# the stone of a slot slides, in this order.
_ROWS, _COLS = np.divmod(np.arange(121), 11)
_SLOTS = np.flatnonzero((_ROWS % 10 != 0) ^ (_COLS % 10 != 0))
_ROW, _COL = _ROWS[_SLOTS, None], _COLS[_SLOTS, None]
_STEPS = np.arange(1, 10)
_PATHS = np.select(
    [_COL == 0, _COL == 10, _ROW == 0],
    [11 * _ROW + _STEPS, 11 * _ROW + 10 - _STEPS, 11 * _STEPS + _COL],
    11 * (10 - _STEPS) + _COL,
)
"""(36, 9): the path of each slot."""
_PATH_INDEX = np.full((121, 36), -1)
"""(121, 36): the index of a square in the path of a slot; -1 if it is not there."""
_PATH_INDEX[_PATHS, np.arange(36)[:, None]] = np.arange(9)
_SECTION = 3 * ((_ROWS - 1) // 3) + (_COLS - 1) // 3
"""(121,): the section of each inner square."""
_INNER = (_ROWS % 10 != 0) & (_COLS % 10 != 0)
_SECTION_SQUARES = np.array([np.flatnonzero(_INNER & (k == _SECTION)) for k in range(9)])
_SECTION_KIND = np.array([0, 1, 0, 1, 2, 1, 0, 1, 0])
_CROSSED = _SECTION[_PATHS[:, ::3]]
"""(36, 3): the sections along each path."""
_ALONG = np.where(np.isin(_COLS[_SLOTS], (0, 10)), _ROWS[_SLOTS], _COLS[_SLOTS])
_SIDE = np.select([_COL == 0, _COL == 10, _ROW == 0], [0, 1, 2], 3)
_NEIGHBOURS = ((_SIDE == _SIDE.T) & (abs(_ALONG - _ALONG[:, None]) == 1)).astype(np.float32)
"""(36, 36): 1 for slots that are next to each other on a side of the board."""
_OPPOSITE = ((_SIDE ^ 1 == _SIDE.T) & (_ALONG[:, None] == _ALONG)).argmax(1)
"""(36,): the slot at the other end of the path."""


def network_inputs(observation: Array, action_mask: Array, turn_order: str = "restart") -> dict[str, Array]:
    """Return the inputs of an exported network of 9tka by name.

    Args:
        observation: (N, 23, 11, 11), observations of the seats to move, as the environment returns them.
        action_mask: (N, 122), the masks of legal actions.
        turn_order: the environment's option, `"restart"` or `"continue"`.

    Returns:
        int8 arrays: `slots` (N, 36, 69), `sections` (N, 9, 20), `globals` (N, 28), `relations` (N, 36, 5, 36) and
        `action_mask` (N, 122).

    Raises:
        ValueError: if an argument has a wrong shape or value, or the observation is not one of 9tka.
    """
    planes, mask = np.asarray(observation), np.asarray(action_mask)
    _check(planes, mask, turn_order)
    position = _read(planes.reshape(len(planes), 23, 121) != 0)
    slides = _find_slides(position)
    features = {
        "slots": _slot_features(position, slides),
        "sections": _section_features(position, slides),
        "globals": _global_features(position, slides, turn_order == "restart"),
        "relations": _relations(slides),
        "action_mask": mask,
    }
    return {name: np.ascontiguousarray(array, np.int8) for name, array in features.items()}


def _check(planes: Array, mask: Array, turn_order: str) -> None:
    """Raise `ValueError` for arguments that `network_inputs` does not accept."""
    if planes.ndim != 4 or planes.shape[1:] != OBSERVATION_SHAPE:
        raise ValueError(
            f"observation: expected the shape (N, 23, 11, 11), got {planes.shape}; "
            "for one position, give observation[None]"
        )
    if mask.shape != (len(planes), NUM_ACTIONS):
        raise ValueError(f"action_mask: expected the shape ({len(planes)}, {NUM_ACTIONS}), got {mask.shape}")
    if turn_order not in TURN_ORDERS:
        raise ValueError(f"turn_order={turn_order!r}: expected {' or '.join(map(repr, TURN_ORDERS))}")
    for name, first, last in (
        ("phase", _PHASE, _NUM_PLAYERS),
        ("number of players", _NUM_PLAYERS, _TO_MOVE),
        ("seat to move", _TO_MOVE, _VIEWER),
        ("viewer", _VIEWER, _MOVABLE),
    ):
        if ((planes[:, first:last, 0, 0] != 0).sum(1) != 1).any():
            raise ValueError(
                f"observation: planes {first} to {last - 1}, the {name}: expected exactly one filled plane"
            )


class _Position(NamedTuple):
    """What N observations show. Seats are relative to the viewer."""

    phase: Array
    """(N, 3) bool, one-hot: neutral, placement, movement."""
    num_players: Array
    """(N, 3) bool, one-hot: 2, 3, 4."""
    to_move: Array
    """(N, 4) bool, one-hot."""
    viewer: Array
    """(N, 4) bool, one-hot: the viewer's own seat."""
    paths: Array
    """(N, 36, 9) bool: the occupied squares of each path."""
    stones: Array
    """(N, 36, 4) bool: the seat whose stone is on each slot."""
    free: Array
    """(N, 36) bool: empty slots on which a stone may still be placed."""
    neutrals: Array
    """(N, 9): neutral stones in each section."""
    counts: Array
    """(N, 9, 4): stones of each seat in each section."""
    rivals: Array
    """(N, 9, 4): the largest count of any other seat."""
    owner: Array
    """(N, 9, 5) bool, one-hot: the owner of each section, a seat or none."""


def _read(planes: Array) -> _Position:
    """Return what (N, 23, 121) bool planes show."""
    seats, neutral = planes[:, :_NEUTRAL], planes[:, _NEUTRAL]
    occupied = seats.any(1) | neutral
    stones, phase = seats[:, :, _SLOTS].swapaxes(1, 2), planes[:, _PHASE:_NUM_PLAYERS, 0]
    counts = seats[:, :, _SECTION_SQUARES].sum(3).swapaxes(1, 2)
    rivals = np.stack([np.delete(counts, seat, 2).max(2) for seat in range(4)], 2)
    owns = counts > rivals
    return _Position(
        phase,
        planes[:, _NUM_PLAYERS:_TO_MOVE, 0],
        planes[:, _TO_MOVE:_VIEWER, 0],
        planes[:, _VIEWER:_MOVABLE, 0],
        occupied[:, _PATHS],
        stones,
        phase[:, :1] | (phase[:, 1:2] & ~stones.any(2)),
        neutral[:, _SECTION_SQUARES].sum(2),
        counts,
        rivals,
        np.concatenate([owns, ~owns.any(2, keepdims=True)], 2),
    )


class _Slides(NamedTuple):
    """Where the stones on slots would come to rest, and what they would block."""

    movable: Array
    """(N, 36) bool: slots with a stone, or free slots, from which a stone can slide."""
    distance: Array
    """(N, 36): the number of squares that the stone slides, 0 if the slot is not movable."""
    lands_in: Array
    """(N, 36, 9) bool, one-hot: the section where the stone comes to rest; all False if the slot is not movable."""
    blocks: Array
    """(N, 36, 36) bool: whether the stone of the first slot would block the slide of the second."""
    shortens: Array
    """(N, 36, 36) bool: whether the stone of the first slot would shorten the slide of the second."""


def _find_slides(position: _Position) -> _Slides:
    reach = np.logical_and.accumulate(~position.paths, axis=2).sum(2)
    movable = (position.free | position.stones.any(2)) & (reach > 0)
    distance = reach * movable
    square = _PATHS[np.arange(36), distance - 1]  # of no use where the slot is not movable
    place = _PATH_INDEX[square]
    pairs = movable[:, :, None] & movable[:, None] & ~np.eye(36, dtype=np.bool_)
    return _Slides(
        movable,
        distance,
        _one_hot(_SECTION[square], 9) & movable[:, :, None],
        pairs & (place == 0),
        pairs & (place > 0) & (place < distance[:, None]),
    )


def _one_hot(numbers: Array, count: int) -> Array:
    return np.asarray(numbers[..., None] == np.arange(count))


def _any_seat(stones: Array) -> Array:
    """Return (N, 36, 1) bool: whether there is a stone of any seat."""
    return np.asarray(stones.any(2, keepdims=True))


def _product(one: Array, other: Array) -> Array:
    """Return a product of matrices of small integers; floats are exact here, and faster."""
    return np.asarray(one.astype(np.float32) @ other.astype(np.float32))


def _slot_features(position: _Position, slides: _Slides) -> Array:
    """Return (N, 36, 69) features in the order of `features.SLOT_FEATURES`."""
    stones, movable = position.stones, slides.movable[..., None]
    has_stone, free = _any_seat(stones), position.free[..., None]
    occupancy = np.concatenate([free, stones, movable], 2)
    owner, lead = position.owner[:, _CROSSED], (position.counts - position.rivals)[:, _CROSSED, 0]
    crossed = np.stack([owner[..., 0], owner[..., 1:4].any(-1), lead], 3)
    own_and_others = np.concatenate([stones[..., :1], has_stone & ~stones[..., :1]], 2)
    return np.concatenate(
        [
            np.broadcast_to(_one_hot(abs(_ALONG - 5), 5), (len(stones), 36, 5)),  # place
            free,
            stones,  # stone
            movable,
            (free | has_stone) & ~movable,  # blocked
            _landing_features(position, slides) * movable,  # distance to takes
            _product(slides.blocks, stones),  # blocks
            _product(slides.blocks, ~has_stone),  # blocks_free
            _product(slides.shortens, stones),  # shortens
            _product(slides.blocks.swapaxes(1, 2), own_and_others),  # threats
            _product(slides.shortens.swapaxes(1, 2), own_and_others),  # cutters
            occupancy[:, _OPPOSITE],  # opposite
            position.paths.sum(2, keepdims=True),  # line
            _product(_NEIGHBOURS, occupancy),  # neighbours
            crossed.reshape(len(stones), 36, 9),  # crossed
        ],
        2,
    )


def _landing_features(position: _Position, slides: _Slides) -> Array:
    """Return (N, 36, 22) features of the section where each slide ends; without use where a slot is not movable."""
    lands_in, stones = slides.lands_in, position.stones
    counts, rivals, owner = (_product(lands_in, each) for each in (position.counts, position.rivals, position.owner))
    slider = np.where(stones.any(2), stones.argmax(2), 0)[..., None]
    count, rival, owns = (np.take_along_axis(each, slider, 2) for each in (counts, rivals, owner))
    lead = count + 1 - rival
    return np.concatenate(
        [
            np.clip(slides.distance[..., None] - [0, 3, 6], 0, 3),  # distance
            _product(lands_in, _one_hot(_SECTION_KIND, 3)),  # landing_kind
            counts,  # landing_counts
            owner,  # landing_owner
            _one_hot(np.clip(lead[..., 0] + 2, 0, 4), 5),  # lead
            (lead > 0) & (owns == 0),  # conquers
            (lead == 0) & (owner[..., 4:] == 0),  # takes
        ],
        2,
    )


def _section_features(position: _Position, slides: _Slides) -> Array:
    """Return (N, 9, 20) features in the order of `features.SECTION_FEATURES`."""
    counts, aimed = position.counts, slides.lands_in.swapaxes(1, 2)
    return np.concatenate(
        [
            np.broadcast_to(_one_hot(_SECTION_KIND, 3), (len(counts), 9, 3)),  # kind
            counts,
            position.owner,
            counts[..., :1] - position.rivals[..., :1],  # lead
            position.neutrals[..., None],  # neutral
            9 - position.neutrals[..., None] - counts.sum(2, keepdims=True),  # empty
            _product(aimed, position.stones),  # aimed
            _product(aimed, ~_any_seat(position.stones)),  # aimed_free
        ],
        2,
    )


def _global_features(position: _Position, slides: _Slides, restart: bool) -> Array:
    """Return (N, 28) features in the order of `features.GLOBAL_FEATURES`."""
    scores, players = position.owner[..., :4].sum(1), 2 + position.num_players.argmax(1)[:, None]
    seats = (position.viewer.argmax(1)[:, None] + np.arange(4)) % players
    rank = np.where(np.arange(4) < players, 4 * scores + seats, -1)  # the last of tied seats wins
    placed = np.stack([position.neutrals.sum(1), position.stones.sum((1, 2)), position.counts.sum((1, 2))], 1)
    return np.concatenate(
        [
            position.phase,
            position.num_players,
            position.viewer,
            position.to_move,
            scores,
            (position.stones & slides.movable[..., None]).sum(1),  # movable
            _one_hot(rank.argmax(1), 4),  # leader
            placed[position.phase][:, None],  # ply
            np.full((len(scores), 1), restart),  # restart
        ],
        1,
    )


def _relations(slides: _Slides) -> Array:
    """Return (N, 36, 5, 36) relations in the order of `feature_tables.RELATIONS`."""
    blocks, shortens, lands_in = slides.blocks, slides.shortens, slides.lands_in
    same_section = (_product(lands_in, lands_in.swapaxes(1, 2)) > 0) & ~np.eye(36, dtype=np.bool_)
    return np.stack([blocks, shortens, blocks.swapaxes(1, 2), shortens.swapaxes(1, 2), same_section], 2)
