"""Test the pictures of Kropki, in pixels and as text."""

from __future__ import annotations

import numpy as np
import pytest

from ninetka_env import kropki_v0
from ninetka_env.games.kropki.game import Game
from ninetka_env.games.kropki.picture import INKS
from ninetka_env.games.kropki.render import render_ansi, render_rgb


def captured() -> Game:
    """Return a position in which White may draw a region around a region of Black."""
    rows = "...O..../..OXXO../.OXO.XO./..OXX.../...OO.../........"
    game = Game.from_board([[".XO".index(sign) for sign in row] for row in rows.split("/")])
    for name in ("H6", "*D4", "E6", "H1", "F3"):
        game.play(game.action_index(name))
    return game


def count(pixels: np.ndarray, colour: tuple[int, int, int]) -> int:
    return int((pixels == colour).all(axis=2).sum())


@pytest.mark.parametrize("sides", [(3, 3), (10, 10), (39, 32), (39, 3), (3, 32)], ids=str)
def test_every_size_has_a_picture(sides: tuple[int, int]) -> None:
    game = Game.new(*sides)
    empty = render_rgb(game, 300)
    assert (empty.shape[0], empty.shape[2], empty.dtype) == (300, 3, np.uint8)
    game.play(0)
    assert count(render_rgb(game, 300), INKS[0]) > count(empty, INKS[0])
    for line in render_ansi(game, color=False).split("\n"):
        assert len(line) < 112


def test_a_region_is_hatched_and_its_chain_drawn() -> None:
    game = captured()
    before = render_rgb(game)
    assert count(before, (245, 200, 80)) > 1000  # the marks of what may be drawn
    game.play(game.action_index("*D4"))
    after = render_rgb(game)
    assert count(after, (245, 200, 80)) == 0
    assert count(after, INKS[1]) > count(before, INKS[1])
    middle = after[300:316, 320:500].reshape(-1, 3)  # between D4 and E4
    assert len(np.unique(middle, axis=0)) > 2


def test_the_step_of_a_chain_between_two_regions_is_drawn() -> None:
    board = [[".XO".index(sign) for sign in row] for row in (".X..", "XOX.", ".XOX", "..X.")]
    pixels = render_rgb(Game.from_board(board, np.diag((0, 1, 1, 0))), 520)  # squares of 100 pixels
    assert tuple(pixels[260, 260]) == INKS[0]  # from C3 to B2, with a region on either side
    assert tuple(pixels[360, 160]) != INKS[0]  # nothing is drawn from B2 to A1


def test_the_text_of_a_picture() -> None:
    game = captured()
    assert render_ansi(game, color=False).split("\n") == [
        "     A B C D E F G H  Kropki 8 x 6, declared",
        "  6  · · · ○ ○ · · ●  ply 19: white may draw",
        "  5  · · ○ ● ● ○ · ·",
        "  4  · ○ ● o / ● ○ ·  ● black 1",
        "  3  · · ○ ● ●[○]· ·  ○ white 0",
        "  2  · · · ○ ○ · · ·",
        "  1  · · · · · · · ●  *D5",
        "                      end",
    ]
    game.play(game.action_index("*D4"))
    assert "○ x o \\ x ○ ·  ● black 0" not in render_ansi(game, color=False)
    assert "· ○ x @ \\ x ○ ·  ● black 0" in render_ansi(game, color=False)


def test_colours_do_not_change_the_text() -> None:
    import re

    for game in (captured(), Game.new(39, 32)):
        assert re.sub("\x1b\\[[0-9;]*m", "", render_ansi(game)).split() == render_ansi(game, color=False).split()


def test_wrong_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="size=50"):
        render_rgb(Game.new(), 50)


def test_the_environment_renders() -> None:
    env = kropki_v0.raw_env(render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().shape[0] == 720
    env.close()
