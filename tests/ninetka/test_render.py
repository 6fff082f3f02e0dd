"""Test pictures: their content and determinism. Text needs no pygame, and pixels need no screen."""

from __future__ import annotations

import colorsys
import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest
from ninetka.positions import ALL_OPTIONS, Options, position_after, random_position, random_positions

from ninetka_env.api.rendering import save_png
from ninetka_env.core.drawing import Window, load_font, load_pygame
from ninetka_env.games.ninetka import picture
from ninetka_env.games.ninetka.describe import last_landing
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import EDGE, SECTION, SQUARE_NEUTRAL, square_index
from ninetka_env.games.ninetka.picture import HEIGHT_IN_SQUARES, STONE_COLOURS, centre, seat_note
from ninetka_env.games.ninetka.render import render_ansi, render_rgb
from ninetka_env.games.ninetka.rules import Phase

pygame = pytest.importorskip("pygame")

SIZE = 480
SHOWN = [
    position_after(options, seed, phase, plies)
    for seed, options in enumerate(ALL_OPTIONS[::5])
    for phase, plies in ((Phase.NEUTRAL, 5), (Phase.PLACEMENT, 20), (Phase.MOVEMENT, 9), (Phase.MOVEMENT, 99))
]


def part(pixels, square, right=0.0, down=0.0, radius=0.06):
    """Return the mean colour of a small patch; its offset from the square's centre and its radius are in squares."""
    x, y = (
        (place + shift) * SIZE / HEIGHT_IN_SQUARES for place, shift in zip(centre(square), (right, down), strict=True)
    )
    reach = radius * SIZE / HEIGHT_IN_SQUARES
    patch = pixels[round(y - reach) : round(y + reach) + 1, round(x - reach) : round(x + reach) + 1]
    return patch.mean(axis=(0, 1))


def nearest(colour):
    """Return the cell code of the stone with the most similar hue."""
    stones = np.array(STONE_COLOURS, float)
    unit = stones / np.linalg.norm(stones, axis=1, keepdims=True)
    return 1 + int(np.argmax(unit @ (colour / np.linalg.norm(colour))))


# The terminal


def cell_in(text, square):
    """Return the three characters of a square in text without colours."""
    row, col = divmod(square, 11)
    line = next(line for line in text.split("\n") if line.startswith(f"{11 - row:3} "))
    return line.ljust(41)[4 + 3 * col + (col + 2) // 3 :][:3]


@pytest.mark.parametrize("game", SHOWN, ids=repr)
def test_text_shows_every_square(game):
    text = render_ansi(game, color=False)
    movable = game.movable().ravel()
    for square, code in enumerate(game.board.ravel().tolist()):
        marks = "●▲■◆✖"
        if game.phase == Phase.MOVEMENT and EDGE[square] and not movable[square]:
            marks = "○△□◇"
        mark = marks[code - 1] if code else "·" if EDGE[square] or SECTION[square] >= 0 else " "
        left, right = "[]" if square == last_landing(game) else "()" if square == game.last_action else "  "
        assert cell_in(text, square) == left + mark + right


def test_text_shows_scores_turn_and_last_move():
    game = position_after(Options(3), 2, Phase.MOVEMENT, 12)
    text = render_ansi(game, color=False)
    for seat, colour in enumerate(("yellow", "blue", "orange")):
        arrow = "▶" if seat == game.to_move else " "
        assert re.search(rf"{arrow} [●▲■] {colour} *{game.scores()[seat]}   {seat_note(game, seat)}\n", text)
    assert "movement phase, ply 57" in text
    assert re.search(r"(yellow|blue|orange): [A-K]\d+ to [B-J]\d+", text)


def test_colours_do_not_change_the_text():
    for game in SHOWN:
        coloured = render_ansi(game)
        assert "\x1b[" in coloured
        plain = "\n".join(line.rstrip() for line in re.sub("\x1b\\[[0-9;]*m", "", coloured).split("\n"))
        assert plain == render_ansi(game, color=False)


def test_notes_show_stones_left_passes_and_the_winner():
    game = Game.new(2)
    assert [seat_note(game, seat) for seat in (0, 1)] == ["places neutral", ""]
    game = random_position(Options(2), 0, 44)
    assert [seat_note(game, seat) for seat in (0, 1)] == ["0 stones left", "1 stone left"]
    passed = next(game for seed in range(50) for game in random_positions(Options(2), seed) if game.passed)
    assert seat_note(passed, passed.passed[0]) == "passed over"
    must_pass = next(
        game
        for seed in range(50)
        for game in random_positions(Options(2, auto_pass=False), seed)
        if game.legal_actions().tolist() == [121]
    )
    assert seat_note(must_pass, must_pass.to_move) == "cannot slide"
    ends = {seat_note(game, game.winner()) for game in (random_position(Options(2), s, 99) for s in range(40))}
    assert ends == {"wins", "wins the tie"}


def test_a_winner_by_resignation_does_not_win_a_tie():
    game = Game.new(3)
    game.resign(2)
    assert [seat_note(game, seat) for seat in range(3)] == ["", "wins", ""]
    assert "9tka  blue wins" in render_ansi(game, color=False)


# Pixels


@pytest.mark.parametrize("size", [100, 333, 720])
def test_picture_has_the_size_asked_for(size):
    pixels = render_rgb(SHOWN[0], size)
    assert (pixels.shape, pixels.dtype) == ((size, 7 * size // 5, 3), np.uint8)
    assert pixels.flags.c_contiguous
    assert pixels.flags.writeable


@pytest.mark.parametrize("size", [99, 4001])
def test_sizes_out_of_range_are_refused(size):
    with pytest.raises(ValueError, match=f"size={size}: expected a height of 100..4000 pixels"):
        render_rgb(SHOWN[0], size)


def test_picture_is_the_same_each_time_and_does_not_change_the_game():
    for game in SHOWN[::5]:
        before = str(game)
        first = render_rgb(game, SIZE)
        for cache in (picture._background, picture._stone_sprite, picture._mark_sprite, load_font):
            cache.cache_clear()
        assert (render_rgb(game, SIZE) == first).all()
        assert str(game) == before


def test_pictures_outlive_pygames_quitting():
    """Closing another window, such as a window of Gymnasium's wrappers, quits pygame."""
    before = render_rgb(SHOWN[0], SIZE)
    load_pygame().quit()
    assert (render_rgb(SHOWN[0], SIZE) == before).all()


@pytest.mark.parametrize("game", SHOWN, ids=repr)
def test_stones_have_their_colours(game):
    pixels = render_rgb(game, SIZE)
    movable = game.movable().ravel()
    for square in np.flatnonzero(game.board).tolist():
        if game.phase < Phase.MOVEMENT or not EDGE[square] or movable[square]:
            assert nearest(part(pixels, square, right=-0.28, down=0.08)) == game.board.flat[square]


def test_colours_match_the_paper():
    hues = [round(colorsys.rgb_to_hsv(*colour)[0] * 360) for colour in STONE_COLOURS]
    yellow, blue, orange, green, red = hues
    assert 40 < yellow < 65
    assert 200 < blue < 250
    assert 15 < orange < 38
    assert 100 < green < 160
    assert red > 340


def test_marks_distinguish_stones_without_colour():
    for one, other in ((1, 2), (1, 3), (2, 3), (3, 4), (2, 4), (4, 5), (1, 5)):
        grey = [picture._stone_sprite(code, 80, False) for code in (one, other)]
        inside = [pygame.surfarray.array3d(stone)[36:76, 36:76].mean(axis=2) for stone in grey]
        shapes = [np.abs(stone - np.median(stone)) > 12 for stone in inside]
        assert (shapes[0] != shapes[1]).mean() > 0.05


def test_blocked_stones_are_dimmed():
    game = position_after(Options(2), 3, Phase.MOVEMENT, 18)
    pixels = render_rgb(game, SIZE)
    movable, edge = game.movable().ravel(), EDGE & (game.board.ravel() == 1)
    bright = [part(pixels, s, -0.28, 0.08).mean() for s in np.flatnonzero(edge & movable)]
    dim = [part(pixels, s, -0.28, 0.08).mean() for s in np.flatnonzero(edge & ~movable)]
    assert bright
    assert dim
    assert min(bright) > max(dim) + 30


def test_conquered_sections_take_their_owners_colour():
    game = next(game for game in SHOWN if set(game.section_owners().tolist()) >= {-1, 0, 1})
    pixels = render_rgb(game, SIZE)
    free = [s for s in range(121) if SECTION[s] >= 0 and not game.board.flat[s]]
    plain = np.array(picture._FELT, float)
    for square in free:
        owner = game.section_owners()[SECTION[square]]
        tint = part(pixels, square, 0.38, 0.38, 0.03) - plain
        if owner < 0:
            assert np.abs(tint).max() < 3
        else:
            towards = np.array(STONE_COLOURS[owner], float) - plain
            assert tint @ towards > 0.95 * np.linalg.norm(tint) * np.linalg.norm(towards) > 0


def test_last_slide_is_traced():
    game = position_after(Options(2), 4, Phase.MOVEMENT, 1)
    assert game.last_action is not None
    forgotten = Game.from_text(str(game))
    change = np.abs(render_rgb(game, SIZE).astype(float) - render_rgb(forgotten, SIZE)).sum(axis=2)
    row, col = divmod(game.last_action, 11)
    inward = ((row == 0) - (row == 10), (col == 0) - (col == 10))
    landing = last_landing(game)
    assert part(change, landing, 0.44, 0) > 60
    path = [game.last_action + k * (11 * inward[0] + inward[1]) for k in range(10)]
    for square in path[1 : path.index(landing)]:
        assert part(change, square, 0.0, 0.0, 0.04) > 60
    assert part(change, game.last_action, 0.38, 0.0, 0.02) > 20
    elsewhere = [s for s in range(121) if s not in path and (EDGE[s] or SECTION[s] >= 0)]
    assert max(part(change, s, radius=0.3) for s in elsewhere) == 0


def test_squares_open_to_neutral_stones_are_dotted():
    pixels = render_rgb(Game.new(2), SIZE)
    for square in np.flatnonzero(SECTION >= 0).tolist():
        dotted = np.abs(part(pixels, square, radius=0.03) - picture._FELT).max() > 20
        assert dotted == (SQUARE_NEUTRAL[square] >= 0)


def test_panel_points_at_the_seat_to_move():
    one = Game.new(2)
    two = Game.new(2)
    two.play(square_index("C9"))
    one_panel, two_panel = (render_rgb(game, SIZE)[:, SIZE:] for game in (one, two))
    changed = np.flatnonzero((one_panel != two_panel).any(axis=(1, 2))) / SIZE * HEIGHT_IN_SQUARES
    assert ((changed > 2.9) & (changed < 4.6)).any()
    assert ((changed > 4.8) & (changed < 6.4)).any()


def test_png_holds_the_picture(tmp_path):
    save_png(SHOWN[-1], tmp_path / "board.png")
    saved = pygame.surfarray.array3d(pygame.image.load(tmp_path / "board.png")).swapaxes(0, 1)
    assert (saved == render_rgb(SHOWN[-1])).all()
    with pytest.raises(FileNotFoundError) as caught:
        save_png(SHOWN[-1], tmp_path / "missing" / "board.png")
    assert caught.value.filename == str(tmp_path / "missing" / "board.png")


# Without a screen, without pygame

PROGRAM = """
import sys
from ninetka_env.games.ninetka.game import Game
from ninetka_env.core.drawing import Window
from ninetka_env.games.ninetka.render import render_ansi, render_rgb
render_ansi(Game.new(2)), Window("9tka")
assert "pygame" not in sys.modules
render_rgb(Game.new(2), 100)
"""


@pytest.mark.slow
def test_pixels_need_no_screen_and_text_no_pygame():
    screen = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
    environment = {name: text for name, text in os.environ.items() if name not in screen}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_missing_pygame_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    window, nothing = Window("9tka"), np.zeros((SIZE, SIZE, 3), np.uint8)
    for draw in (render_rgb, lambda game: window.show(nothing), lambda game: save_png(game, "never.png")):
        with pytest.raises(ImportError, match=r'pip install -e "\.\[render\]"'):
            draw(Game.new(2))


# The window


@pytest.fixture
def no_screen(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    yield
    pygame.display.quit()


def shown():
    return pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)


@pytest.mark.usefixtures("no_screen")
def test_window_shows_the_same_picture():
    window = Window("9tka", fps=1000)
    for game in SHOWN[:3]:
        window.show(render_rgb(game, SIZE))
        assert (shown() == render_rgb(game, SIZE)).all()
    window.close()
    assert not pygame.display.get_init()


@pytest.mark.usefixtures("no_screen")
def test_window_stays_closed_when_its_user_closes_it():
    window = Window("9tka", fps=1000)
    window.show(render_rgb(SHOWN[0], SIZE))
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    window.show(render_rgb(SHOWN[1], SIZE))
    assert window.is_closed
    assert not pygame.display.get_init()
    window.show(render_rgb(SHOWN[2], SIZE))
    window.close()
    assert not pygame.display.get_init()
    again = Window("9tka", fps=1000)
    again.show(render_rgb(SHOWN[0], SIZE))
    assert not again.is_closed


@pytest.mark.usefixtures("no_screen")
def test_window_notices_when_the_display_is_gone():
    window = Window("9tka", fps=1000)
    window.show(render_rgb(SHOWN[0], SIZE))
    pygame.display.quit()
    window.pump()
    assert window.is_closed


@pytest.mark.usefixtures("no_screen")
def test_window_limits_the_frame_rate():
    window = Window("9tka", fps=10)
    window.show(render_rgb(SHOWN[0], SIZE))
    start = time.perf_counter()
    window.show(render_rgb(SHOWN[1], SIZE))
    assert time.perf_counter() - start > 0.05


def test_the_error_without_a_screen_names_an_alternative(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "nonesuch")
    with pytest.raises(RuntimeError, match=r"no window can be opened \(.*\); render_mode='rgb_array' needs none"):
        Window("9tka").show(render_rgb(SHOWN[0], SIZE))
