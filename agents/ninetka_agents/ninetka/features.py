"""Input features of 9tka's network, computed by compiled code for a batch of states and a viewer's seat.

A position becomes 36 *slot tokens*, 9 *section tokens* and one row of global features, all int8. Seats are relative to
the viewer: relative seat r is seat `(viewer + r) % n`. No feature distinguishes left from right or rows from columns.
So a symmetry of the board only permutes tokens (see `permute`), and a network that shares its weights over tokens needs
no augmentation. The planes that environments return are different; see `ninetka_env/games/ninetka/observation.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ninetka_env.core.batch import as_states
from ninetka_env.core.jit import jit, popcount, readonly_array
from ninetka_env.core.options import short_repr
from ninetka_env.core.verbs import State, StateArray, relative_seat
from ninetka_env.games.ninetka.geometry import (
    ALL_SLOTS,
    COLUMN_LINE,
    ENTRY_SQUARE,
    LANDING_PLACE,
    LINE_SQUARES,
    MAX_PLAYERS,
    NUM_ACTIONS,
    NUM_LINES,
    NUM_SECTIONS,
    NUM_SLOTS,
    ROW_LINE,
    SECTION,
    SLOT_END,
    SLOT_LINE,
    SLOT_SQUARE,
    SQUARE_SLOT,
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


@dataclass(frozen=True)
class Feature:
    """One entry of a feature table: `count` numbers from index `first` on, each divided by `scale` in the network."""

    name: str
    first: int
    count: int
    scale: int
    meaning: str


def _feature_table(*rows: tuple[str, int, int, str]) -> dict[str, Feature]:
    table: dict[str, Feature] = {}
    first = 0
    for name, count, scale, meaning in rows:
        table[name] = Feature(name, first, count, scale, meaning)
        first += count
    return table


SLOT_FEATURES = _feature_table(
    ("place", 5, 1, "distance of the slot from the middle of its side, one-hot"),
    ("free", 1, 1, "the slot is empty, and a stone may still be placed on it"),
    ("stone", 4, 1, "the relative seat whose stone is on the slot, one-hot"),
    ("movable", 1, 1, "the inner square next to the slot is empty, and the slot is free or holds a stone"),
    ("blocked", 1, 1, "the slot is free or holds a stone, and the inner square next to it is occupied"),
    # The features from here on are 0 unless the slot is movable. The *slider* is the stone's seat, or the viewer if the
    # slot is free.
    ("distance", 3, 3, "squares slid within the first, second and third section of the line"),
    ("landing_kind", 3, 1, "the landing section is a corner, side or centre section, one-hot"),
    ("landing_counts", 4, 3, "stones of each relative seat in the landing section"),
    ("landing_owner", 5, 1, "the owner of the landing section: relative seat or none, one-hot"),
    ("lead", 5, 1, "the slider's lead in that section after the slide, -2 or less .. 2 or more, one-hot"),
    ("conquers", 1, 1, "the slide makes the slider owner of the section"),
    ("takes", 1, 1, "the slide ties the section, and its owner loses it"),
    ("blocks", 4, 1, "movable stones of each relative seat that the landed stone would block"),
    ("blocks_free", 1, 1, "free slots whose next square the landed stone would occupy"),
    ("shortens", 4, 2, "movable stones of each relative seat whose slide the landed stone would shorten"),
    # The features from here on do not depend on whether the slot is movable.
    ("threats", 2, 2, "movable stones, the viewer's and others', whose slide would block this movable slot"),
    ("cutters", 2, 3, "movable stones, the viewer's and others', that would shorten the slide from this slot"),
    ("opposite", 6, 1, "the slot at the other end of the line: free, relative seat one-hot, movable"),
    ("line", 1, 9, "occupied places in the line"),
    ("neighbours", 6, 2, "the neighbouring slots of the same side: free, relative seats, movable"),
    ("crossed", 9, 2, "the three sections along the line: owned by the viewer, by another, the viewer's lead there"),
)
"""The features of an edge slot."""

SECTION_FEATURES = _feature_table(
    ("kind", 3, 1, "corner, side or centre section, one-hot"),
    ("counts", 4, 3, "stones of each relative seat"),
    ("owner", 5, 1, "the owner: relative seat or none, one-hot"),
    ("lead", 1, 3, "the viewer's stones minus the largest count of any other seat"),
    ("neutral", 1, 1, "neutral stones in the section"),
    ("empty", 1, 9, "empty squares"),
    ("aimed", 4, 2, "movable stones of each relative seat that would come to rest in the section now"),
    ("aimed_free", 1, 2, "free slots from which a stone would come to rest in the section now"),
)
"""The features of a section."""

GLOBAL_FEATURES = _feature_table(
    ("phase", 3, 1, "neutral, placement, movement, one-hot"),
    ("num_players", 3, 1, "2, 3 or 4, one-hot"),
    ("viewer", 4, 1, "the viewer's own seat, one-hot: the later seat wins ties"),
    ("to_move", 4, 1, "the relative seat to move, one-hot"),
    ("scores", 4, 4, "sections owned by each relative seat"),
    ("movable", 4, 9, "movable stones of each relative seat"),
    ("leader", 4, 1, "the relative seat that would win if the game ended now, one-hot"),
    ("ply", 1, 36, "plies played in this phase"),
    ("restart", 1, 1, "seat 0 opens each phase"),
)
"""The features of the whole position."""


def _width(table: dict[str, Feature]) -> int:
    return sum(feature.count for feature in table.values())


def scales(table: dict[str, Feature]) -> npt.NDArray[np.float32]:
    """Return (F,) float32: the divisors of the features of a table."""
    return np.concatenate([np.full(feature.count, feature.scale, np.float32) for feature in table.values()])


NUM_SLOT_FEATURES = _width(SLOT_FEATURES)
NUM_SECTION_FEATURES = _width(SECTION_FEATURES)
NUM_GLOBAL_FEATURES = _width(GLOBAL_FEATURES)

(_PLACE, _FREE, _STONE, _MOVABLE, _BLOCKED, _DISTANCE, _LANDING_KIND, _LANDING_COUNTS, _LANDING_OWNER, _LEAD, _CONQUERS,
 _TAKES, _BLOCKS, _BLOCKS_FREE, _SHORTENS, _THREATS, _CUTTERS, _OPPOSITE, _LINE, _NEIGHBOURS, _CROSSED,
) = (f.first for f in SLOT_FEATURES.values())  # fmt: skip
_S_KIND, _S_COUNTS, _S_OWNER, _S_LEAD, _S_NEUTRAL, _S_EMPTY, _S_AIMED, _S_AIMED_FREE = (
    f.first for f in SECTION_FEATURES.values()
)
RELATIONS = ("blocks", "shortens", "blocked by", "shortened by", "lands in the same section")
"""Relations of a movable slot A to a movable slot B. The stone of A would come to rest on the square next to B
("blocks") or further along B's slide ("shortens"). "blocked by" and "shortened by" are the reverse. "lands in the same
section": both stones would come to rest in the same section."""
NUM_RELATIONS = len(RELATIONS)
_BLOCKING, _SHORTENING, _BLOCKED_BY, _SHORTENED_BY, _SAME_SECTION = range(NUM_RELATIONS)

_G_PHASE, _G_PLAYERS, _G_VIEWER, _G_TO_MOVE, _G_SCORES, _G_MOVABLE, _G_LEADER, _G_PLY, _G_RESTART = (
    f.first for f in GLOBAL_FEATURES.values()
)

LINE_SLOTS = readonly_array(
    [
        [next(s for s in range(NUM_SLOTS) if (SLOT_LINE[s], SLOT_END[s]) == (n, e)) for e in (0, 1)]
        for n in range(NUM_LINES)
    ],
    np.int64,
)
"""(18, 2) int64: the slots at the start and end of each line."""
OPPOSITE_SLOT = readonly_array([LINE_SLOTS[SLOT_LINE[s], 1 - SLOT_END[s]] for s in range(NUM_SLOTS)], np.int64)
"""(36,) int64: the slot at the other end of each slot's line."""
_ALONG = [int(SLOT_LINE[s]) % 9 for s in range(NUM_SLOTS)]
SIDE_NEIGHBOURS = readonly_array(
    [
        [LINE_SLOTS[line + step, SLOT_END[s]] if 0 <= along + step < 9 else -1 for step in (-1, 1)]
        for s, (line, along) in enumerate(zip(SLOT_LINE.astype(int), _ALONG, strict=True))
    ],
    np.int64,
)
"""(36, 2) int64: the slots next to each slot on its side of the board, -1 if there is none."""
CROSSED_SECTIONS = readonly_array(
    [
        [SECTION[LINE_SQUARES[SLOT_LINE[s], 3 * (2 - i if SLOT_END[s] else i)]] for i in range(3)]
        for s in range(NUM_SLOTS)
    ],
    np.int64,
)
"""(36, 3) int64: the three sections along each slot's line, the nearest first."""
SECTION_KIND = readonly_array([0, 1, 0, 1, 2, 1, 0, 1, 0], np.int64)
"""(9,) int64: 0 corner, 1 side, 2 centre section."""
_PLACE_OF_SLOT = readonly_array([abs(along - 4) for along in _ALONG], np.int64)

SLOT_SYMMETRIES = readonly_array(SQUARE_SLOT[SYMMETRIES[:, SLOT_SQUARE]], np.int64)
"""(8, 36) int64: the image of each slot under each symmetry."""
_CENTRES = [11 * (3 * (k // 3) + 2) + 3 * (k % 3) + 2 for k in range(NUM_SECTIONS)]
SECTION_SYMMETRIES = readonly_array(SECTION[SYMMETRIES[:, _CENTRES]], np.int64)
"""(8, 9) int64: the image of each section under each symmetry."""


class Features(NamedTuple):
    """The features of N positions."""

    slots: Int8
    """(N, 36, NUM_SLOT_FEATURES) int8."""
    sections: Int8
    """(N, 9, NUM_SECTION_FEATURES) int8."""
    globals: Int8
    """(N, NUM_GLOBAL_FEATURES) int8."""
    relations: Int8
    """(N, 36, 5, 36) int8: 1 if a relation (see `RELATIONS`) holds; axes: position, slot, relation, other slot."""
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
    games = as_states(games)
    if games.dtype != STATE_DTYPE:
        raise ValueError("games: expected states of 9tka")
    count, seats = len(games), games["to_move"].astype(np.int8)
    if viewers is not None:
        seats = _check_viewers(games, viewers)
    features = Features(
        np.zeros((count, NUM_SLOTS, NUM_SLOT_FEATURES), np.int8),
        np.zeros((count, NUM_SECTIONS, NUM_SECTION_FEATURES), np.int8),
        np.zeros((count, NUM_GLOBAL_FEATURES), np.int8),
        np.zeros((count, NUM_SLOTS, NUM_RELATIONS, NUM_SLOTS), np.int8),
        np.zeros((count, NUM_ACTIONS), np.int8),
    )
    _write(games, seats, *features)
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
    games: StateArray, viewers: Int8, slots: Int8, sections: Int8, globals_: Int8, relations: Int8, mask: Int8
) -> None:
    landing = np.empty(NUM_SLOTS, np.int64)
    for index in range(len(games)):
        game, viewer = games[index], viewers[index]
        _find_landings(game, landing)
        for section in range(NUM_SECTIONS):
            _write_section(game, viewer, section, sections[index, section])
        for slot in range(NUM_SLOTS):
            _write_occupancy(game, viewer, slot, landing, slots[index, slot])
            _write_surroundings(game, viewer, slot, landing, sections[index], slots[index, slot])
        for slot in range(NUM_SLOTS):
            if landing[slot] >= 0:
                _write_slide(game, viewer, slot, landing, slots[index], sections[index], relations[index])
        _relate_landings(landing, relations[index])
        _write_globals(game, viewer, globals_[index])
        write_legal_mask(game, mask[index])


@jit
def _is_free(game: State, slot: int) -> bool:
    """Return whether a stone may still be placed on the slot."""
    return game.phase == NEUTRAL or (game.phase == PLACEMENT and (game.open >> slot) & 1 == 1)


@jit
def _find_landings(game: State, landing: npt.NDArray[np.int64]) -> None:
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


@jit
def _rival_count(game: State, seat: int, section: int) -> int:
    """Return the largest number of stones that any seat other than `seat` has in a section."""
    largest = 0
    for other in range(game.num_players):
        if other != seat:
            largest = max(largest, game.counts[other, section])
    return largest


@jit
def _owner(game: State, viewer: int, section: int) -> int:
    """Return the relative seat that owns a section, or 4 if no seat does."""
    for seat in range(game.num_players):
        if (game.owned[seat] >> section) & 1:
            return relative_seat(seat, viewer, game.num_players)
    return MAX_PLAYERS


@jit
def _write_section(game: State, viewer: int, section: int, row: Int8) -> None:
    row[_S_KIND + SECTION_KIND[section]] = 1
    stones = 0
    for seat in range(game.num_players):
        row[_S_COUNTS + relative_seat(seat, viewer, game.num_players)] = game.counts[seat, section]
        stones += game.counts[seat, section]
    row[_S_OWNER + _owner(game, viewer, section)] = 1
    row[_S_LEAD] = game.counts[viewer, section] - _rival_count(game, viewer, section)
    occupied = 0
    for line in range(3):
        occupied += popcount((game.lines[3 * (section // 3) + line] >> 3 * (section % 3)) & 7)
    row[_S_NEUTRAL] = occupied - stones
    row[_S_EMPTY] = 9 - occupied


@jit
def _write_occupancy(game: State, viewer: int, slot: int, landing: npt.NDArray[np.int64], row: Int8) -> None:
    """Write the features of a slot's place, its stone, and whether the stone can slide."""
    row[_PLACE + _PLACE_OF_SLOT[slot]] = 1
    cell = game.board[SLOT_SQUARE[slot]]
    free = _is_free(game, slot)
    row[_FREE] = free
    if cell:
        row[_STONE + relative_seat(cell - 1, viewer, game.num_players)] = 1
    row[_MOVABLE] = landing[slot] >= 0
    row[_BLOCKED] = (free or cell) and landing[slot] < 0


@jit
def _add_occupancy(game: State, viewer: int, other: int, landing: npt.NDArray[np.int64], row: Int8, first: int) -> None:
    """Add the features of another slot to `row`: free, relative seat, movable."""
    cell = game.board[SLOT_SQUARE[other]]
    row[first] += _is_free(game, other)
    if cell:
        row[first + 1 + relative_seat(cell - 1, viewer, game.num_players)] += 1
    row[first + 5] += landing[other] >= 0


@jit
def _write_surroundings(
    game: State, viewer: int, slot: int, landing: npt.NDArray[np.int64], sections: Int8, row: Int8
) -> None:
    """Write the features of the opposite slot, the neighbouring slots and the sections along the line."""
    _add_occupancy(game, viewer, OPPOSITE_SLOT[slot], landing, row, _OPPOSITE)
    row[_LINE] = popcount(game.lines[SLOT_LINE[slot]])
    for side in range(2):
        if SIDE_NEIGHBOURS[slot, side] >= 0:
            _add_occupancy(game, viewer, SIDE_NEIGHBOURS[slot, side], landing, row, _NEIGHBOURS)
    for i in range(3):
        section = sections[CROSSED_SECTIONS[slot, i]]
        row[_CROSSED + 3 * i] = section[_S_OWNER]
        row[_CROSSED + 3 * i + 1] = 1 - section[_S_OWNER] - section[_S_OWNER + MAX_PLAYERS]
        row[_CROSSED + 3 * i + 2] = section[_S_LEAD]


@jit
def _write_slide(
    game: State, viewer: int, slot: int, landing: npt.NDArray[np.int64], rows: Int8, sections: Int8, relations: Int8
) -> None:
    """Write where a slide of the slot's stone (the viewer's, if the slot is free) would end, and its effects."""
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
    if cell:
        sections[section, _S_AIMED + relative_seat(slider, viewer, game.num_players)] += 1
    else:
        sections[section, _S_AIMED_FREE] += 1
    _write_effects(game, viewer, slot, landing, rows, relations)


@jit
def _write_effects(
    game: State, viewer: int, slot: int, landing: npt.NDArray[np.int64], rows: Int8, relations: Int8
) -> None:
    """Write the effects of the slide on other slots: it blocks them or shortens their slides."""
    square = landing[slot]
    own = game.board[SLOT_SQUARE[slot]] == viewer + 1
    is_stone = game.board[SLOT_SQUARE[slot]] != 0
    for line in (ROW_LINE[square], COLUMN_LINE[square]):
        for end in range(2):
            other = LINE_SLOTS[line, end]
            if other == slot or landing[other] < 0:
                continue
            cell = game.board[SLOT_SQUARE[other]]
            if ENTRY_SQUARE[other] == square:
                relations[slot, _BLOCKING, other] = relations[other, _BLOCKED_BY, slot] = 1
                if is_stone:
                    rows[other, _THREATS + (0 if own else 1)] += 1
                if cell:
                    rows[slot, _BLOCKS + relative_seat(cell - 1, viewer, game.num_players)] += 1
                else:
                    rows[slot, _BLOCKS_FREE] += 1
            elif _is_between(square, ENTRY_SQUARE[other], landing[other]):
                relations[slot, _SHORTENING, other] = relations[other, _SHORTENED_BY, slot] = 1
                if is_stone:
                    rows[other, _CUTTERS + (0 if own else 1)] += 1
                if cell:
                    rows[slot, _SHORTENS + relative_seat(cell - 1, viewer, game.num_players)] += 1


@jit
def _relate_landings(landing: npt.NDArray[np.int64], relations: Int8) -> None:
    """Set the relation between slots whose stones would come to rest in the same section."""
    for slot in range(NUM_SLOTS):
        for other in range(slot):
            if landing[slot] >= 0 and landing[other] >= 0 and SECTION[landing[slot]] == SECTION[landing[other]]:
                relations[slot, _SAME_SECTION, other] = relations[other, _SAME_SECTION, slot] = 1


@jit
def _is_between(square: int, entry: int, landing: int) -> bool:
    """Return whether a square lies between two squares of the same line, ends included."""
    return min(entry, landing) <= square <= max(entry, landing)


@jit
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
