"""Input features of 9tka's network, computed by compiled code for a batch of states and a viewer's seat.

A position becomes 36 *slot tokens*, 9 *section tokens* and one row of global features, all int8. Seats are relative to
the viewer: relative seat r is seat `(viewer + r) % n`. No feature distinguishes left from right or rows from columns.
So a symmetry of the board only permutes tokens (see `permute`), and a network that shares its weights over tokens needs
no augmentation. The planes that environments return are different; see `ninetka_env/games/ninetka/observation.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_agents.ninetka.feature_tables import (
    CROSSED_SECTIONS,
    GLOBAL_FEATURES,
    LINE_SLOTS,
    NUM_GLOBAL_FEATURES,
    NUM_RELATIONS,
    NUM_SECTION_FEATURES,
    NUM_SLOT_FEATURES,
    OPPOSITE_SLOT,
    RELATIONS,
    SECTION_FEATURES,
    SECTION_KIND,
    SECTION_SYMMETRIES,
    SIDE_NEIGHBOURS,
    SLOT_FEATURES,
    SLOT_PLACE,
    SLOT_SYMMETRIES,
    Feature,
)
from ninetka_env.core.batch import as_states
from ninetka_env.core.jit import jit, popcount
from ninetka_env.core.options import short_repr
from ninetka_env.core.threads import Control, claim, run_shared
from ninetka_env.core.verbs import State, StateArray, relative_seat
from ninetka_env.games.ninetka.geometry import (
    ALL_SLOTS,
    COLUMN_LINE,
    ENTRY_SQUARE,
    LANDING_PLACE,
    LINE_SQUARES,
    MAX_PLAYERS,
    NUM_ACTIONS,
    NUM_SECTIONS,
    NUM_SLOTS,
    ROW_LINE,
    SECTION,
    SLOT_END,
    SLOT_LINE,
    SLOT_SQUARE,
    SYMMETRIES,
)
from ninetka_env.games.ninetka.rules import (
    NEUTRAL,
    PLACEMENT,
    STATE_DTYPE,
    movable_slots,
    plies,
    winner_of,
    write_legal_mask,
)

Int8 = npt.NDArray[np.int8]
Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

POSITIONS_PER_CLAIM = 16
"""Number of positions that a thread claims at a time."""
MIN_POSITIONS_PER_THREAD = 64
"""Minimum number of positions per thread; with fewer, starting another thread takes longer than it saves."""


SCRATCH_WORDS = (4 + NUM_RELATIONS) * NUM_SLOTS
"""The size of the scratch of `write_features`."""


def _firsts(table: dict[str, Feature]) -> list[int]:
    return [feature.first for feature in table.values()]


(_PLACE, _FREE, _STONE, _MOVABLE, _BLOCKED, _DISTANCE, _LANDING_KIND, _LANDING_COUNTS, _LANDING_OWNER, _LEAD, _CONQUERS,
 _TAKES, _BLOCKS, _BLOCKS_FREE, _SHORTENS, _THREATS, _CUTTERS, _OPPOSITE, _LINE, _NEIGHBOURS, _CROSSED,
) = _firsts(SLOT_FEATURES)  # fmt: skip
_S_KIND, _S_COUNTS, _S_OWNER, _S_LEAD, _S_NEUTRAL, _S_EMPTY, _S_AIMED, _S_AIMED_FREE = _firsts(SECTION_FEATURES)
_G_PHASE, _G_PLAYERS, _G_VIEWER, _G_TO_MOVE, _G_SCORES, _G_MOVABLE, _G_LEADER, _G_PLY, _G_RESTART = _firsts(
    GLOBAL_FEATURES
)
_BLOCKING, _SHORTENING, _BLOCKED_BY, _SHORTENED_BY, _SAME_SECTION = range(len(RELATIONS))


class Features(NamedTuple):
    """The features of N positions."""

    slots: Int8
    """(N, 36, NUM_SLOT_FEATURES) int8."""
    sections: Int8
    """(N, 9, NUM_SECTION_FEATURES) int8."""
    globals: Int8
    """(N, NUM_GLOBAL_FEATURES) int8."""
    relations: npt.NDArray[Any]
    """(N, 36, 5, 36) int8: 1 if a relation (see `RELATIONS`) holds; axes: position, slot, relation, other slot. Packed
    relations are (N, 810) uint8, eight numbers per byte: `numpy.packbits` with `bitorder="little"` returns them."""
    mask: Int8
    """(N, 122) int8: the legal actions of the seat to move."""


def make_features(games: StateArray, viewers: npt.NDArray[np.int8] | None = None) -> Features:
    """Return the features of (N,) states.

    Args:
        games: states of dtype `ninetka_env.games.ninetka.rules.STATE_DTYPE`.
        viewers: (N,) the seat from which each state is seen; by default the seat to move.

    Raises:
        ValueError: if `games` or `viewers` have a wrong type or shape, or a viewer is not a seat of its game.
    """
    features = make_packed_features(games, viewers)
    bits = np.unpackbits(features.relations, axis=1, bitorder="little").view(np.int8)
    return features._replace(relations=bits.reshape(len(bits), NUM_SLOTS, NUM_RELATIONS, NUM_SLOTS))


def make_packed_features(games: StateArray, viewers: npt.NDArray[np.int8] | None = None, threads: int = 1) -> Features:
    """Return the features of (N,) states with packed relations; otherwise like `make_features`.

    Args:
        games: states of dtype `ninetka_env.games.ninetka.rules.STATE_DTYPE`.
        viewers: (N,) the seat from which each state is seen; by default the seat to move.
        threads: maximum number of threads; the features do not depend on it.
    """
    games = as_states(games)
    if games.dtype != STATE_DTYPE:
        raise ValueError("games: expected states of 9tka")
    count, seats = len(games), games["to_move"].astype(np.int8)
    if viewers is not None:
        seats = _check_viewers(games, viewers)
    features = Features(
        np.empty((count, NUM_SLOTS, NUM_SLOT_FEATURES), np.int8),
        np.empty((count, NUM_SECTIONS, NUM_SECTION_FEATURES), np.int8),
        np.empty((count, NUM_GLOBAL_FEATURES), np.int8),
        np.empty((count, NUM_SLOTS * NUM_RELATIONS * NUM_SLOTS // 8), np.uint8),
        np.empty((count, NUM_ACTIONS), np.int8),
    )
    run_shared(_write, min(threads, count // MIN_POSITIONS_PER_THREAD), games, seats, *features)
    return features


def _check_viewers(games: StateArray, viewers: npt.NDArray[np.int8]) -> Int8:
    """Return viewers as contiguous int8; raise `ValueError` unless there is a valid seat for each game."""
    seats = np.asarray(viewers)
    if (
        seats.shape != games.shape
        or seats.dtype.kind not in "iu"
        or ((seats < 0) | (seats >= games["num_players"])).any()
    ):
        raise ValueError(f"viewers: expected a seat for each of {len(games)} games, got {short_repr(viewers)}")
    return np.ascontiguousarray(seats, np.int8)


def permute(features: Features, symmetry: int) -> Features:
    """Return the features after a symmetry of the board (see `ninetka_env.games.ninetka.geometry`)."""
    slots, sections = np.empty_like(features.slots), np.empty_like(features.sections)
    order = SLOT_SYMMETRIES[symmetry].argsort()
    relations = features.relations[:, order][..., order]
    mask = np.zeros_like(features.mask)
    slots[:, SLOT_SYMMETRIES[symmetry]] = features.slots
    sections[:, SECTION_SYMMETRIES[symmetry]] = features.sections
    mask[:, SYMMETRIES[symmetry]] = features.mask[:, :-1]
    mask[:, -1] = features.mask[:, -1]
    return Features(slots, sections, features.globals, relations, mask)


@jit
def _write(
    control: Control,
    games: StateArray,
    viewers: Int8,
    slots: Int8,
    sections: Int8,
    globals_: Int8,
    relations: Bytes,
    mask: Int8,
) -> None:
    """Claim positions and write their features, until none is left."""
    scratch = np.empty(SCRATCH_WORDS, np.int64)
    while True:
        first, stop = claim(control, 0, len(games), POSITIONS_PER_CLAIM)
        if first == stop:
            return
        for index in range(first, stop):
            features = slots[index], sections[index], globals_[index], relations[index], mask[index]
            write_features(games[index], viewers[index], features, scratch)


@jit(inline=True)
def write_features(game: State, viewer: int, features: Any, scratch: Ints) -> None:
    """Write the features of a position; for compiled code on a CPU or GPU.

    Args:
        game: the state.
        viewer: the seat from which it is seen.
        features: a row of each array of `Features`, with packed relations; they are overwritten.
        scratch: (SCRATCH_WORDS,) int64, may be overwritten.
    """
    slots, sections, globals_, relations, mask = features
    landing, content = scratch[:NUM_SLOTS], scratch[NUM_SLOTS : 2 * NUM_SLOTS]
    occupancy, crossed = scratch[2 * NUM_SLOTS : 3 * NUM_SLOTS], scratch[3 * NUM_SLOTS : 4 * NUM_SLOTS]
    related = scratch[4 * NUM_SLOTS :]  # kernels for GPUs cannot reshape arrays
    slots[:], sections[:], globals_[:], related[:] = 0, 0, 0, 0
    _find_landings(game, landing)
    _find_contents(game, viewer, content)
    _find_occupancies(landing, content, occupancy)
    for section in range(NUM_SECTIONS):
        _write_section(game, viewer, section, sections[section], crossed)
    for slot in range(NUM_SLOTS):
        _write_surroundings(game, slot, occupancy, crossed, slots[slot])
    for slot in range(NUM_SLOTS):
        if landing[slot] >= 0:
            _write_slide(game, viewer, slot, landing, content, slots, sections)
            _write_effects(slot, landing, content, slots, related)
    _relate_landings(landing, crossed, related)
    _pack_relations(related, relations)
    _write_globals(game, viewer, globals_)
    write_legal_mask(game, mask)


@jit(refcount=False)
def _find_landings(game: State, landing: Ints) -> None:
    """Write, per slot, the square where its stone, or a stone placed on it, would land; -1 if it cannot slide."""
    can_slide = movable_slots(game)
    if game.phase == NEUTRAL:
        can_slide = ALL_SLOTS
    elif game.phase == PLACEMENT:
        can_slide |= game.open
    for slot in range(NUM_SLOTS):
        line = SLOT_LINE[slot]
        place = LANDING_PLACE[SLOT_END[slot], game.lines[line]]
        landing[slot] = LINE_SQUARES[line, place] if (can_slide >> slot) & 1 and place >= 0 else -1


@jit(refcount=False)
def _find_contents(game: State, viewer: int, content: Ints) -> None:
    """Write, per slot, 1 + the relative seat of its stone; 0 if a stone may still be placed on it; else -1."""
    for slot in range(NUM_SLOTS):
        cell = game.board[SLOT_SQUARE[slot]]
        if cell:
            content[slot] = 1 + relative_seat(cell - 1, viewer, game.num_players)
        else:
            is_free = game.phase == NEUTRAL or (game.phase == PLACEMENT and (game.open >> slot) & 1 == 1)
            content[slot] = 0 if is_free else -1


@jit(refcount=False)
def _find_occupancies(landing: Ints, content: Ints, occupancy: Ints) -> None:
    """Write, per slot, its features from `free` to `blocked` as the bytes of a word."""
    for slot in range(NUM_SLOTS):
        can_slide, is_used = int(landing[slot] >= 0), int(content[slot] >= 0)
        occupancy[slot] = is_used << 8 * max(content[slot], 0) | can_slide << 40 | (is_used & ~can_slide) << 48


@jit(inline=True, refcount=False)
def _rival_count(game: State, seat: int, section: int) -> int:
    """Return the largest number of stones that any seat other than `seat` has in a section."""
    largest = 0
    for other in range(game.num_players):
        if other != seat:
            largest = max(largest, game.counts[other, section])
    return largest


@jit(refcount=False)
def _owner(game: State, viewer: int, section: int) -> int:
    """Return the relative seat that owns a section, or 4 if no seat does."""
    owner = MAX_PLAYERS
    for seat in range(game.num_players):
        if (game.owned[seat] >> section) & 1:
            owner = relative_seat(seat, viewer, game.num_players)
    return owner


@jit(refcount=False)
def _write_section(game: State, viewer: int, section: int, row: Int8, crossed: Ints) -> None:
    row[_S_KIND + SECTION_KIND[section]] = 1
    stones = 0
    for seat in range(game.num_players):
        row[_S_COUNTS + relative_seat(seat, viewer, game.num_players)] = game.counts[seat, section]
        stones += game.counts[seat, section]
    owner, lead = _owner(game, viewer, section), game.counts[viewer, section] - _rival_count(game, viewer, section)
    row[_S_OWNER + owner] = 1
    row[_S_LEAD] = lead
    crossed[section] = int(owner == 0) | int(0 < owner < MAX_PLAYERS) << 8 | (int(lead) & 255) << 16
    occupied = 0
    for line in range(3):
        occupied += popcount((game.lines[3 * (section // 3) + line] >> 3 * (section % 3)) & 7)
    row[_S_NEUTRAL] = occupied - stones
    row[_S_EMPTY] = 9 - occupied


@jit(inline=True, refcount=False)
def _write_surroundings(game: State, slot: int, occupancy: Ints, crossed: Ints, row: Int8) -> None:
    """Write the features of a slot, the opposite slot, the neighbouring slots and the sections along the line."""
    row[_PLACE + SLOT_PLACE[slot]] = 1
    _write_bytes(occupancy[slot], 7, row, _FREE)
    _write_bytes(occupancy[OPPOSITE_SLOT[slot]], 6, row, _OPPOSITE)
    row[_LINE] = popcount(game.lines[SLOT_LINE[slot]])
    neighbours = 0
    for side in range(2):
        if SIDE_NEIGHBOURS[slot, side] >= 0:
            neighbours += occupancy[SIDE_NEIGHBOURS[slot, side]]
    _write_bytes(neighbours, 6, row, _NEIGHBOURS)
    for i in range(3):
        _write_bytes(crossed[CROSSED_SECTIONS[slot, i]], 3, row, _CROSSED + 3 * i)


@jit(refcount=False)
def _write_bytes(word: int, count: int, row: Int8, first: int) -> None:
    """Write the lowest `count` bytes of a word, as signed numbers, the lowest first."""
    for place in range(count):
        row[first + place] = ((word >> 8 * place & 255) ^ 128) - 128


@jit(inline=True, refcount=False)
def _write_slide(
    game: State,
    viewer: int,
    slot: int,
    landing: Ints,
    content: Ints,
    rows: Int8,
    sections: Int8,
) -> None:
    """Write where a slide of the slot's stone (the viewer's, if the slot is free) would end."""
    row, square, cell = rows[slot], landing[slot], game.board[SLOT_SQUARE[slot]]
    section, slider = SECTION[square], cell - 1 if cell else viewer
    place = COLUMN_LINE[square] - 9 if SLOT_LINE[slot] < 9 else ROW_LINE[square]
    distance = 9 - place if SLOT_END[slot] else place + 1
    for i in range(3):
        row[_DISTANCE + i] = min(max(distance - 3 * i, 0), 3)
    row[_LANDING_KIND + SECTION_KIND[section]] = 1
    for i in range(MAX_PLAYERS):
        row[_LANDING_COUNTS + i] = sections[section, _S_COUNTS + i]
    for i in range(MAX_PLAYERS + 1):
        row[_LANDING_OWNER + i] = sections[section, _S_OWNER + i]
    lead = game.counts[slider, section] + 1 - _rival_count(game, slider, section)
    row[_LEAD + min(max(lead + 2, 0), 4)] = 1
    owns = (game.owned[slider] >> section) & 1
    row[_CONQUERS] = lead > 0 and not owns
    row[_TAKES] = lead == 0 and sections[section, _S_OWNER + MAX_PLAYERS] == 0
    if content[slot]:
        sections[section, _S_AIMED + content[slot] - 1] += 1
    else:
        sections[section, _S_AIMED_FREE] += 1


@jit(inline=True, refcount=False)
def _write_effects(
    slot: int,
    landing: Ints,
    content: Ints,
    rows: Int8,
    related: Ints,
) -> None:
    """Write the effects of the slot's slide on other slots: it blocks them or shortens their slides."""
    square, is_other = landing[slot], content[slot] != 1
    for line in (ROW_LINE[square], COLUMN_LINE[square]):
        for end in range(2):
            other = LINE_SLOTS[line, end]
            if other == slot or landing[other] < 0:
                continue
            if ENTRY_SQUARE[other] == square:
                related[slot * NUM_RELATIONS + _BLOCKING] |= 1 << other
                related[other * NUM_RELATIONS + _BLOCKED_BY] |= 1 << slot
                if content[slot]:
                    rows[other, _THREATS + is_other] += 1
                if content[other]:
                    rows[slot, _BLOCKS + content[other] - 1] += 1
                else:
                    rows[slot, _BLOCKS_FREE] += 1
            elif _is_between(square, ENTRY_SQUARE[other], landing[other]):
                related[slot * NUM_RELATIONS + _SHORTENING] |= 1 << other
                related[other * NUM_RELATIONS + _SHORTENED_BY] |= 1 << slot
                if content[slot]:
                    rows[other, _CUTTERS + is_other] += 1
                if content[other]:
                    rows[slot, _SHORTENS + content[other] - 1] += 1


@jit(refcount=False)
def _relate_landings(landing: Ints, same_section: Ints, related: Ints) -> None:
    """Set the relation between slots whose stones would come to rest in the same section."""
    same_section[:] = 0
    for slot in range(NUM_SLOTS):
        if landing[slot] >= 0:
            same_section[SECTION[landing[slot]]] |= 1 << slot
    for slot in range(NUM_SLOTS):
        if landing[slot] >= 0:
            related[slot * NUM_RELATIONS + _SAME_SECTION] = same_section[SECTION[landing[slot]]] & ~(1 << slot)


@jit(refcount=False)
def _pack_relations(rows: Ints, packed: Bytes) -> None:
    """Write rows of 36 bits, (180,), one after the other: two rows are nine bytes."""
    for pair in range(len(rows) // 2):
        low, high, place = rows[2 * pair], rows[2 * pair + 1], 9 * pair
        low |= high << NUM_SLOTS
        for byte in range(8):
            packed[place + byte] = low >> 8 * byte & 255
        packed[place + 8] = high >> 28


@jit(refcount=False)
def _is_between(square: int, entry: int, landing: int) -> bool:
    """Return whether a square lies between two squares of the same line, ends included."""
    return min(entry, landing) <= square <= max(entry, landing)


@jit(refcount=False)
def _write_globals(game: State, viewer: int, row: Int8) -> None:
    row[_G_PHASE + game.phase] = 1
    row[_G_PLAYERS + game.num_players - 2] = 1
    row[_G_VIEWER + viewer] = 1
    row[_G_TO_MOVE + relative_seat(game.to_move, viewer, game.num_players)] = 1
    for seat in range(game.num_players):
        relative = relative_seat(seat, viewer, game.num_players)
        row[_G_SCORES + relative] = popcount(game.owned[seat])
        row[_G_MOVABLE + relative] = popcount(game.movable[seat])
    row[_G_LEADER + relative_seat(winner_of(game), viewer, game.num_players)] = 1
    done = plies(game)
    row[_G_PLY] = done if game.phase == NEUTRAL else done - 9 if game.phase == PLACEMENT else done - 45
    row[_G_RESTART] = game.turn_order == 0
