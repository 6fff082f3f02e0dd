"""The tables of the input features of 9tka's network, and the geometry that the features use.

`ninetka_agents.ninetka.features` computes the features. Slots are numbered as in
`ninetka_env.games.ninetka.geometry`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ninetka_env.core.jit import readonly_array
from ninetka_env.games.ninetka.geometry import (
    LINE_SQUARES,
    NUM_LINES,
    NUM_SECTIONS,
    NUM_SLOTS,
    SECTION,
    SLOT_END,
    SLOT_LINE,
    SLOT_SQUARE,
    SQUARE_SLOT,
    SYMMETRIES,
)


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

RELATIONS = ("blocks", "shortens", "blocked by", "shortened by", "lands in the same section")
"""Relations of a movable slot A to a movable slot B. The stone of A would come to rest on the square next to B
("blocks") or further along B's slide ("shortens"). "blocked by" and "shortened by" are the reverse. "lands in the same
section": both stones would come to rest in the same section."""
NUM_RELATIONS = len(RELATIONS)


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
SLOT_PLACE = readonly_array([abs(along - 4) for along in _ALONG], np.int64)
"""(36,) int64: the distance of each slot from the middle of its side."""

SLOT_SYMMETRIES = readonly_array(SQUARE_SLOT[SYMMETRIES[:, SLOT_SQUARE]], np.int64)
"""(8, 36) int64: the image of each slot under each symmetry."""
_CENTRES = [11 * (3 * (k // 3) + 2) + 3 * (k % 3) + 2 for k in range(NUM_SECTIONS)]
SECTION_SYMMETRIES = readonly_array(SECTION[SYMMETRIES[:, _CENTRES]], np.int64)
"""(8, 9) int64: the image of each section under each symmetry."""
