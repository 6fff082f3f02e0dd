"""A slow, simple implementation of 9tka's observation, based on the slow reference.

Written from the table `PLANES` in `ninetka_env/games/ninetka/observation.py`, in its order, without sharing code. Texts
in quotation marks quote that table.
"""

from __future__ import annotations

from ninetka.reference import MOVEMENT, NEUTRAL, NEUTRALS, PLACEMENT, ReferenceGame, Square, is_inner, section_of

Plane = list[list[int]]

NOTHING: frozenset[Square] = frozenset()
EVERYTHING = frozenset((row, col) for row in range(11) for col in range(11))


def planes_of(game: ReferenceGame, viewer: int) -> list[Plane]:
    """Return all 23 planes as seat `viewer` sees them, each 11 rows of 0 and 1."""
    return [[[int((row, col) in marked) for col in range(11)] for row in range(11)] for marked in _marked(game, viewer)]


def _marked(game: ReferenceGame, viewer: int) -> list[set[Square] | frozenset[Square]]:
    """Return the squares that are 1 in each plane. Relative seat r is seat `(viewer + r) % n`."""
    seats = range(game.num_players)
    stones = [_holding(game, (viewer + relative) % game.num_players + 1) for relative in seats]
    owners = game.owners()
    return [
        *stones, *[NOTHING] * (4 - game.num_players),  # 'stones of relative seats 0..3, on the edge or settled'
        _holding(game, NEUTRAL),  # 'neutral stones'
        *_one_hot(game.phase, [NEUTRALS, PLACEMENT, MOVEMENT]),  # 'the phase'
        *_one_hot(game.num_players, [2, 3, 4]),  # 'the number of players'
        *_one_hot((game.to_move - viewer) % game.num_players, [0, 1, 2, 3]),  # 'the relative seat to move'
        *_one_hot(viewer, [0, 1, 2, 3]),  # 'the viewer's own seat'
        {stone for seat in seats for stone in game.movable_stones(seat)},  # 'of all seats, that can still slide'
        {game.landing_square(stone) for stone in game.movable_stones(viewer)},  # 'where they would come to rest'
        _sections({section for section in range(9) if owners[section] == viewer}),  # 'that the viewer owns'
        _sections({section for section in range(9) if owners[section] not in (viewer, -1)}),  # 'another seat owns'
    ]  # fmt: skip


def _holding(game: ReferenceGame, code: int) -> set[Square]:
    return {square for square in EVERYTHING if game.cell(square) == code}


def _one_hot(value: int, values: list[int]) -> list[frozenset[Square]]:
    """Return one plane per element of `values`: filled if the element equals `value`, otherwise empty."""
    return [EVERYTHING if value == candidate else NOTHING for candidate in values]


def _sections(sections: set[int]) -> set[Square]:
    return {square for square in EVERYTHING if is_inner(square) and section_of(square) in sections}
