"""Tests of pictures of all games: the headline and the themes."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from ninetka_env.api.rendering import render_rgb
from ninetka_env.core.drawing import DARK, LIGHT, Canvas
from ninetka_env.core.registry import get_definition
from ninetka_env.games.kropki import picture as kropki_picture

GAMES = ["ninetka", "go", "kropki"]
BOARD = {"ninetka": (slice(30, 690), slice(30, 690)), "go": (slice(30, 690), slice(30, 690)),
         "kropki": (slice(15, 705), slice(15, 690))}  # fmt: skip
"""Rows and columns of a picture that show only the board."""


@pytest.mark.parametrize("name", GAMES)
def test_the_headline_is_on_the_picture(name, monkeypatch):
    pytest.importorskip("pygame")
    env = importlib.import_module(f"ninetka_env.{name}_v0").raw_env(render_mode="rgb_array")
    env.reset(seed=0)
    drawn = env.render()
    monkeypatch.setattr(f"ninetka_env.games.{name}.picture.headline", lambda game: "")
    assert np.any(drawn != env.render())


# Themes


def positions(name):
    """Return a position early in a game, one in its middle, and its end."""
    game, rng, found = get_definition(name).game_class.new(), np.random.default_rng(2), []
    for ply in range(60):
        if ply in (4, 50):
            found.append(game.copy())
        game.play(int(rng.choice(game.legal_actions())))
    game.forfeit(game.to_move, "resigned")
    return [*found, game]


@pytest.mark.parametrize("name", GAMES)
def test_a_dark_picture_differs_only_around_the_board(name):
    pytest.importorskip("pygame")
    page = {"kropki": kropki_picture._LIGHT}.get(name, LIGHT).page
    for game in positions(name):
        light, dark = render_rgb(game), render_rgb(game, "dark")
        assert light.shape == dark.shape
        assert (light[BOARD[name]] == dark[BOARD[name]]).all()
        corner = np.s_[-3:, -3:]
        assert (light[corner] == page).all()
        assert (dark[corner] == DARK.page).all()


@pytest.mark.parametrize("name", GAMES)
def test_environments_draw_light_pictures(name):
    pytest.importorskip("pygame")
    env = importlib.import_module(f"ninetka_env.{name}_v0").raw_env(render_mode="rgb_array")
    env.reset(seed=0)
    assert (env.render() == render_rgb(env.game, "light")).all()
    assert (env.render() != render_rgb(env.game, "dark")).any()


def luminance(colour):
    """Return the relative luminance of an RGB colour, as the Web Content Accessibility Guidelines define it."""
    share = np.asarray(colour, float) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_is_readable(name, theme, monkeypatch):
    pytest.importorskip("pygame")
    drawn, is_sheet = [], name == "kropki"
    canvas = kropki_picture._Sheet if is_sheet else Canvas
    write = canvas.text

    def text(self, words, x, y, height, colour, align=0.0):
        scale = 1 if is_sheet else self.cell
        place = round(min(x * scale, self.surface.get_width() - 1)), round(y * scale)
        if place[0] > self.surface.get_height() and words:  # next to the board
            drawn.append((words, colour, tuple(self.surface.get_at(place))[:3]))
        write(self, words, x, y, height, colour, align)

    monkeypatch.setattr(canvas, "text", text)
    for game in positions(name):
        render_rgb(game, theme)
    main = {"dark": DARK, "light": kropki_picture._LIGHT if is_sheet else LIGHT}[theme].text
    found = [one for one in drawn if theme == "dark" or one[1] == main]
    assert len(found) > 12
    assert {words: contrast(*colours) for words, *colours in found if contrast(*colours) < 4.5} == {}


def test_unknown_themes_and_games_without_a_dark_picture_are_refused(monkeypatch):
    pytest.importorskip("pygame")
    game = get_definition("go").game_class.new()
    for name in GAMES:
        drawing = importlib.import_module(f"ninetka_env.games.{name}.render")
        with pytest.raises(ValueError, match=r"theme='grey': expected one of 'light', 'dark'"):
            drawing.render_rgb(get_definition(name).game_class.new(), theme="grey")
    with pytest.raises(ValueError, match=r"theme=None: expected one of 'light', 'dark'"):
        render_rgb(game, None)
    monkeypatch.setattr("ninetka_env.games.go.render.render_rgb", lambda game: np.zeros((9, 9, 3), np.uint8))
    assert render_rgb(game).shape == (9, 9, 3)
    with pytest.raises(ValueError, match="Go has no dark pictures: use theme='light'"):
        render_rgb(game, "dark")
