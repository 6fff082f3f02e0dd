"""Pictures of Go: text, pixels, SVG, and diagrams with captions."""

from __future__ import annotations

import numpy as np
import pytest
from go.go_helpers import from_picture, play_all

from ninetka_env import go_v0
from ninetka_env.api.rendering import render_ansi, render_rgb, render_svg, svg_style
from ninetka_env.core.record import GameRecord
from ninetka_env.games.go.diagram import make_diagram
from ninetka_env.games.go.game import Game
from ninetka_env.games.go.geometry import point_name, star_points
from ninetka_env.games.go.picture import render_diagram
from ninetka_env.games.go.picture import render_rgb as picture

KO = "2 X O . . . . . . .\n1 . X O . . . . . ."


def pixel(pixels, name, size=9, right=0.0):
    """Return a pixel's colour in a picture 720 pixels high: `right` line distances to the right of the point `name`."""
    game_point = Game.new().action_index(name)
    step = 8.5 / (size - 1)
    x, y = 1.25 + step * (game_point % 9 + right), 11 - 1.25 - step * (game_point // 9)
    return pixels[round(y * 720 / 11), round(x * 720 / 11)].astype(int)


def test_text_shows_stones_ko_and_the_last_turn():
    game = play_all(from_picture(KO, to_move=1), "A1")
    lines = render_ansi(game, color=False).split("\n")
    assert lines[-2].startswith("  1 [○] x  ○  ·")
    assert "White  " in "".join(lines)
    assert "took 1" in "".join(lines)
    assert "White at A1" in "".join(lines)
    assert "\x1b" in render_ansi(game)
    assert render_ansi(play_all(Game.new(), "pass pass"), color=False).split("\n")[1].endswith("Go  White wins, W+7")


def test_pixels():
    pixels = render_rgb(play_all(from_picture(KO, to_move=1), "A1"))
    assert (pixels.shape, pixels.dtype) == ((720, 1008, 3), np.uint8)
    assert pixel(pixels, "B2", right=0.2).min() > 180  # white stone
    assert pixel(pixels, "A2", right=0.2).max() < 90  # black stone
    red, _, blue = pixel(pixels, "B1", right=0.2)
    assert blue > red + 50  # ko
    red, _, blue = pixel(pixels, "A1", right=0.2)
    assert red > blue + 100  # the last stone


@pytest.mark.parametrize("size", [2, 3, 5, 7, 9, 19])
def test_stones_do_not_cover_the_names_of_files_and_ranks(size):
    edge = [point for point in range(size**2) if {0, size - 1} & {*divmod(point, size)}]
    pixels = picture(
        play_all(Game.new(size=size, komi=0), " ".join(f"pass {point_name(point, size)}" for point in edge[1:]))
    )
    low, high = round((0.55 - 0.14) * 720 / 11), round((0.55 + 0.14) * 720 / 11)
    board = pixels[low : 720 - low, low : 720 - low].copy()
    board[high - low : low - high, high - low : low - high] = 0  # leaves the frame of names
    assert board[..., 2].max() < 160  # the blue of wood and names; stones are white


def test_ownership_is_drawn():
    game = play_all(Game.new(), "E5")
    plain, owned = picture(game), picture(game, territory=True)
    assert pixel(owned, "A9").max() < 90 < pixel(plain, "A9", right=0.2).max()
    certain = picture(game, ownership=np.full((9, 9), -1))
    assert pixel(certain, "A9").min() > 180
    for wrong in (np.zeros(81), np.full((9, 9), 2), np.full((9, 9), np.nan)):
        with pytest.raises(ValueError, match=r"ownership: expected \(9, 9\) numbers of -1 to 1"):
            picture(game, ownership=wrong)
    with pytest.raises(ValueError, match=r"size=10: expected a height of 100\.\.4000"):
        picture(game, 10)


def test_a_drawing_for_pages():
    game = play_all(Game.new(), "E5 A1")
    svg = render_svg(game)
    assert svg.count('class="stone seat1"') == svg.count('class="stone seat2"') == 1
    assert 'cx="0.5" cy="8.5" r=".22"' in svg
    assert ".seat2{" in svg_style(game)


def test_environments_render():
    for mode in ("ansi", "rgb_array"):
        env = go_v0.env(render_mode=mode)
        env.reset(seed=0)
        env.step(40)
        assert len(env.render())


def test_star_points():
    assert [point_name(point, 9) for point in star_points(9)] == ["C3", "G3", "E5", "C7", "G7"]
    assert [len(star_points(size)) for size in (2, 5, 7, 8, 13, 19)] == [0, 1, 5, 4, 9, 9]


# Diagrams


def record_of(moves, **options):
    game = Game.new(**options)
    return GameRecord.of([game.action_index(name) for name in moves.split()], "go", **options)


def test_turns_on_taken_points_have_captions():
    """Every turn is either on the board or in a caption."""
    moves = "B1 A2 C2 B3 E5 C1 B2 A1 pass H8 B1 pass A1 pass"
    game = Game.new()
    played = []
    for name in moves.split():
        action = game.action_index(name)
        if action in game.legal_actions():
            game.play(action)
            played.append(action)
    while not game.is_over:
        game.play(81)
        played.append(81)
    record = GameRecord.of(played, "go")
    diagram = make_diagram(record)
    shown = {int(number) for number in diagram.numbers.ravel()} - {0}
    captioned = {int(caption.split()[0]) for caption in diagram.captions}
    assert sorted(shown | captioned) == list(range(1, len(played) + 1))
    assert not shown & captioned
    for caption in diagram.captions:
        turn, what, *where = caption.split()
        assert what == "pass" or played[int(turn) - 1] == played[int(where[0]) - 1]


def test_a_ko_in_a_diagram():
    game = "B1 C1 A2 D2 B3 C3 C2 E5 J9 B2 J8 pass C2 pass pass"
    diagram = make_diagram(record_of(game))
    assert "10 pass" not in diagram.captions
    assert diagram.numbers[1, 2] == 7  # C2
    assert diagram.numbers[1, 1] == 10  # B2 takes C2
    assert diagram.captions == ("12 pass", "13 at 7", "14 pass", "15 pass")
    later = make_diagram(record_of(game), 13)
    assert (later.first, later.last, later.captions) == (13, 15, ("14 pass", "15 pass"))
    assert (later.numbers[1, 2], later.cells[1, 2]) == (13, 1)
    assert later.cells[0, 1] == 1
    assert later.numbers[0, 1] == 0
    assert make_diagram(record_of(game), 8, 9).numbers.max() == 9


def test_the_turns_of_a_diagram_are_checked():
    record = record_of("E5 pass pass")
    for first, last in ((0, 1), (2, 1), (1, 4), (4, None)):
        with pytest.raises(ValueError, match="expected 1 <= first <= last <= 3, the turns of the game"):
            make_diagram(record, first, last)
    assert render_diagram(record).shape == (720, 1008, 3)
