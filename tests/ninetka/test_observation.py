"""Test the observation, plane by plane, against a slow implementation of the table of planes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st
from ninetka.positions import Options, any_options, observe, random_position, random_positions, seeds
from ninetka.reference import NEUTRAL, SQUARES, ReferenceGame, Square, is_inner, section_of
from scale import Scaled

from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka.observation import NUM_PLANES, PLANES, SHAPE, write_fast_planes

Tensor = npt.NDArray[np.int8]


# The slow implementation: each function returns the squares that are 1 in plane `place` of a row of `PLANES`


def stones(game: ReferenceGame, viewer: int, place: int) -> Iterable[Square]:
    seat = (viewer + place) % game.num_players
    return [sq for sq in SQUARES if game.cell(sq) == seat + 1 and place < game.num_players]


def neutral(game: ReferenceGame, viewer: int, place: int) -> Iterable[Square]:
    return [sq for sq in SQUARES if game.cell(sq) == NEUTRAL]


def phase(game: ReferenceGame, viewer: int, place: int) -> Iterable[Square]:
    return SQUARES if game.phase == place else []


def num_players(game: ReferenceGame, viewer: int, place: int) -> Iterable[Square]:
    return SQUARES if game.num_players == 2 + place else []


def to_move(game: ReferenceGame, viewer: int, place: int) -> Iterable[Square]:
    return SQUARES if (game.to_move - viewer) % game.num_players == place else []


def viewers_seat(game: ReferenceGame, viewer: int, place: int) -> Iterable[Square]:
    return SQUARES if viewer == place else []


def movable(game: ReferenceGame, viewer: int, place: int) -> Iterable[Square]:
    return [stone for seat in range(game.num_players) for stone in game.movable_stones(seat)]


def landing(game: ReferenceGame, viewer: int, place: int) -> Iterable[Square]:
    return [game.landing_square(stone) for stone in game.movable_stones(viewer)]


def owned(game: ReferenceGame, viewer: int, place: int) -> Iterable[Square]:
    owners = game.owners()
    return [sq for sq in SQUARES if is_inner(sq) and owners[section_of(sq)] == viewer]


def lost(game: ReferenceGame, viewer: int, place: int) -> Iterable[Square]:
    owners = game.owners()
    return [sq for sq in SQUARES if is_inner(sq) and owners[section_of(sq)] not in (-1, viewer)]


SLOW: dict[str, Callable[[ReferenceGame, int, int], Iterable[Square]]] = {
    "stones": stones,
    "neutral": neutral,
    "phase": phase,
    "num_players": num_players,
    "to_move": to_move,
    "viewer": viewers_seat,
    "movable": movable,
    "landing": landing,
    "owned": owned,
    "lost": lost,
}


def slow_observation(game: ReferenceGame, viewer: int) -> Tensor:
    drawn = np.zeros(SHAPE, np.int8)
    for planes in PLANES:
        for place in range(planes.number):
            for row, col in SLOW[planes.name](game, viewer, place):
                drawn[planes.first + place, row, col] = 1
    return drawn


def test_every_plane_for_every_viewer_at_every_ply(options: Options, scaled: Scaled) -> None:
    for seed in range(scaled(2)):
        for game in random_positions(options, seed):
            reference = options.reference_of(game)
            for viewer in range(game.num_players):
                assert_equal(observe(game, viewer), slow_observation(reference, viewer))


def assert_equal(drawn: Tensor, expected: Tensor) -> None:
    wrong = [planes.name for planes in PLANES if (of(drawn, planes.name) != of(expected, planes.name)).any()]
    assert not wrong


def of(drawn: Tensor, name: str) -> Tensor:
    """Return the planes of an observation that the entry `name` of `PLANES` describes."""
    first, number = next((planes.first, planes.number) for planes in PLANES if planes.name == name)
    return drawn[first : first + number]


def test_the_table_of_planes_has_no_gap() -> None:
    numbers = [planes.first + place for planes in PLANES for place in range(planes.number)]
    assert numbers == list(range(NUM_PLANES))
    assert SHAPE == (NUM_PLANES, 11, 11)
    assert [planes.name for planes in PLANES[:2]] == ["stones", "neutral"]  # planes 0..4 are public API
    assert all(planes.meaning for planes in PLANES)


@given(any_options, seeds, st.integers(0, 84))
def test_another_viewer_sees_the_seats_rotated_and_the_rest_unchanged(options: Options, seed: int, plies: int) -> None:
    game = random_position(options, seed, plies)
    n, first = game.num_players, observe(game, 0)
    for viewer in range(n):
        seen = observe(game, viewer)
        for name in ("stones", "to_move"):
            assert (of(seen, name)[:n] == np.roll(of(first, name)[:n], -viewer, axis=0)).all()
            assert not of(seen, name)[n:].any()
        for name in ("neutral", "phase", "num_players", "movable"):
            assert (of(seen, name) == of(first, name)).all()
        assert ((of(seen, "owned") | of(seen, "lost")) == (of(first, "owned") | of(first, "lost"))).all()
        assert of(seen, "viewer").all(axis=(1, 2)).tolist() == [seat == viewer for seat in range(4)]


@jit
def _redraw(games: StateArray, planes: Tensor) -> None:
    write_fast_planes(games[0], games[0].to_move, planes)


def test_within_a_phase_the_fast_planes_keep_the_seat_to_move_up_to_date(options: Options, scaled: Scaled) -> None:
    for seed in range(scaled(5)):
        phase, planes = -1, np.zeros(SHAPE, np.int8)
        for game in random_positions(options, seed):
            expected = observe(game, game.to_move)
            if game.phase == phase:
                _redraw(game.records, planes.reshape(-1))
                assert_equal(planes, expected)
            phase, planes = game.phase, expected


def test_no_plane_is_always_empty() -> None:
    seen = [
        observe(game, viewer)
        for num_players in (2, 3, 4)
        for game in random_positions(Options(num_players), seed=0)
        for viewer in range(num_players)
    ]
    assert np.any(seen, axis=(0, 2, 3)).all()
