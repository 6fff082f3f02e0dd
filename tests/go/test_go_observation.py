"""The planes of Go, against the slow reference."""

from __future__ import annotations

import numpy as np
import pytest
from go.go_helpers import choose, from_picture, observe, play_all, play_in_lock_step
from numba import config

from ninetka_env.games.go.game import Game
from ninetka_env.games.go.geometry import symmetries
from ninetka_env.games.go.observation import ALPHAZERO, PLANE_COUNTS, STANDARD
from ninetka_env.games.go.rules import PLANE_SETS

BOARDS = [(size, ko) for size in (2, 4, 6) for ko in ("simple", "positional")]
if not config.DISABLE_JIT:  # few, because the functions are compiled for each dtype
    BOARDS = [(3, "simple"), (9, "simple"), (9, "positional")]


@pytest.mark.parametrize("planes", PLANE_SETS)
@pytest.mark.parametrize(("size", "ko"), BOARDS)
def test_lock_step_with_the_planes_of_the_reference(size, ko, planes):
    options = {"size": size, "komi": 1.5, "ko": ko, "planes": planes, "max_plies": min(2 * size * size, 70)}

    def check(game, reference):
        for viewer in range(2):
            assert observe(game, viewer).tolist() == reference.planes(planes, viewer)

    play_in_lock_step(options, size, check, every=1 + size // 3)


def test_the_tables_of_planes_have_no_gaps():
    for table, count in zip((STANDARD, ALPHAZERO), PLANE_COUNTS, strict=True):
        firsts = [planes.first for planes in table]
        assert firsts == np.cumsum([0, *(planes.number for planes in table)])[:-1].tolist()
        assert count == sum(planes.number for planes in table)
    assert PLANE_COUNTS == (16, 17)


def test_liberties_ko_and_the_last_placements():
    game = play_all(from_picture("3 . . . . . . . . .\n2 X O . . . . . . .\n1 . X O . . . . . .", to_move=1), "A1")
    black = observe(game, 0)
    assert black[8].nonzero()[0].size == black[8, 0, 1] == 1
    assert not observe(game, 1)[8].any()
    assert black[9, 0, 0] == 1
    assert not black[10].any()
    assert black[2, 1, 0] == 1  # a black stone with one liberty, A3
    assert black[5, 0, 0] == 1  # the white stone in the ko


def test_filled_planes():
    game = Game.new(max_plies=18)
    assert [observe(game, seat)[11:, 0, 0].tolist() for seat in range(2)] == [[0, 1, 1, 0, 0], [0, 0, 0, 0, 1]]
    play_all(game, "E5 pass")
    assert [observe(game, seat)[11:, 0, 0].tolist() for seat in range(2)] == [[1, 1, 1, 1, 1], [1, 0, 0, 1, 0]]
    play_all(game, "pass")
    assert [observe(game, seat)[13, 0, 0] for seat in range(2)] == [0, 0]


@pytest.mark.parametrize("planes", PLANE_SETS)
def test_symmetries_permute_the_planes(planes):
    rng = np.random.default_rng(0)
    for k in range(8):
        game, image = Game.new(planes=planes), Game.new(planes=planes)
        while not game.is_over and game.ply < 100:
            action = choose(game, rng)
            game.play(action)
            image.play(int(symmetries(9)[k][action]) if action < 81 else action)
        for viewer in range(2):
            turned = observe(image, viewer).reshape(-1, 81)[:, symmetries(9)[k]]
            assert (turned == observe(game, viewer).reshape(-1, 81)).all()
