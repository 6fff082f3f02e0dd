"""Tests of pictures and animations of all games: the headline, themes, GIF files, and the command that writes them."""

from __future__ import annotations

import importlib
import sys
from itertools import pairwise

import numpy as np
import pytest
from typer.testing import CliRunner

from ninetka_env.api.animation import LAST_MS, PLY_MS, save_gif
from ninetka_env.api.record_files import write_records
from ninetka_env.api.rendering import render_rgb, save_png
from ninetka_env.core.drawing import DARK, LIGHT, Canvas
from ninetka_env.core.record import GameRecord
from ninetka_env.core.registry import get_definition, load_variant
from ninetka_env.games.kropki import picture as kropki_picture
from ninetka_train.cli import app

GAMES = ["ninetka", "go", "kropki"]
BOARD = {"ninetka": (slice(30, 690), slice(30, 690)), "go": (slice(30, 690), slice(30, 690)),
         "kropki": (slice(15, 705), slice(15, 690))}  # fmt: skip
"""Rows and columns of a picture that show only the board."""
NEAR = 40
"""The maximum difference of a colour from the nearest one of the palette."""


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


# Animations


def short_record(spec="go:size=5", plies=5):
    """Return a game of a few plies, which ends when a player resigns."""
    variant = load_variant(spec)
    game = variant.game_class.start(variant, 0)
    actions = game.legal_actions()[:plies].tolist()
    for action in actions:
        game.play(action)
    game.forfeit(game.to_move, "resigned")
    return GameRecord.of(actions, variant, event=game.event)


def read_gif(path):
    """Return the number of times that a GIF is shown (0: without end), and its frames and durations."""
    pillow = pytest.importorskip("PIL.Image")
    with pillow.open(path) as image:
        frames, durations = [], []
        for number in range(image.n_frames):
            image.seek(number)
            frames.append(np.asarray(image.convert("RGB")).astype(int))
            durations.append(image.info["duration"])
        return image.info["loop"], frames, durations


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_animation_has_a_frame_for_each_position(theme, tmp_path):
    pygame = pytest.importorskip("pygame")
    record, file = short_record(plies=3), tmp_path / "game.gif"
    save_gif(record, file, theme=theme, height=720)
    loop, frames, durations = read_gif(file)
    assert loop == 0
    assert len(frames) == len(record.actions) + 1
    assert durations == [PLY_MS] * len(record.actions) + [LAST_MS]
    for frame, game in zip(frames, record.replay(), strict=True):
        save_png(game, tmp_path / "board.png", theme)
        wanted = pygame.surfarray.array3d(pygame.image.load(tmp_path / "board.png")).swapaxes(0, 1)
        assert np.abs(frame - wanted).max() <= NEAR
        assert np.abs(frame - wanted).mean() < 3


def test_frames_share_their_colours(tmp_path):
    """Pixels of the board that no stone changes do not flicker."""
    pytest.importorskip("pygame")
    save_gif(short_record(), tmp_path / "game.gif", height=200)
    frames = read_gif(tmp_path / "game.gif")[1]
    assert {frame.shape for frame in frames} == {(200, 280, 3)}
    for before, after in pairwise(frames):
        assert (before == after)[:150, :190].all()  # the stones are on the lowest rank
        assert (before != after).any()


def test_small_pictures_are_not_enlarged(tmp_path, monkeypatch):
    pytest.importorskip("PIL")

    def tiny(game, theme):
        return np.full((9, 7, 3), 40 * game.ply, np.uint8)

    monkeypatch.setattr("ninetka_env.api.animation.render_rgb", tiny)
    save_gif(short_record(), tmp_path / "game.gif")
    assert {frame.shape for frame in read_gif(tmp_path / "game.gif")[1]} == {(9, 7, 3)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"height": 99}, r"height=99: expected an integer of at least 100"),
        ({"height": 4001}, r"height=4001: expected an integer of at least 100 and at most 4000"),
        ({"theme": "grey"}, r"theme='grey': expected one of 'light', 'dark'"),
    ],
)
def test_a_failure_leaves_an_existing_file_unchanged(options, message, tmp_path):
    pytest.importorskip("pygame")
    pytest.importorskip("PIL")
    file = tmp_path / "game.gif"
    file.write_bytes(b"before")
    with pytest.raises(ValueError, match=message):
        save_gif(short_record(), file, **options)
    assert file.read_bytes() == b"before"


def test_a_failure_while_writing_leaves_an_existing_file_unchanged(tmp_path, monkeypatch):
    pytest.importorskip("pygame")
    pytest.importorskip("PIL")
    file = tmp_path / "game.gif"
    file.write_bytes(b"before")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        save_gif(short_record(plies=1), file, height=100)
    assert caught.value.filename == str(file)
    assert [file] == list(tmp_path.iterdir())
    assert file.read_bytes() == b"before"


@pytest.mark.parametrize(("package", "name"), [("PIL", "animations need Pillow"), ("pygame", "pictures need pygame")])
def test_a_missing_package_names_the_extra(package, name, tmp_path, monkeypatch):
    for module in (package, f"{package}.Image"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"^{name}: pip install .*\[render\]"):
        save_gif(short_record(), tmp_path / "game.gif")
    assert not list(tmp_path.iterdir())


# The command


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a file of one game."""
    monkeypatch.chdir(tmp_path)
    write_records("games.txt", [short_record(plies=2)])
    return tmp_path


def replay(*arguments):
    return CliRunner().invoke(app, ["replay", "games.txt", *arguments], prog_name="ninetka")


def test_the_command_writes_light_and_dark_pictures(folder):
    pytest.importorskip("pygame")
    pytest.importorskip("PIL")
    for options, name in ([], "light"), (["--dark"], "dark"):
        for kind in ("gif", "png"):
            file = f"{name}.{kind}"
            done = replay(f"--{kind}", file, *options)
            assert (done.exit_code, done.output) == (0, f"wrote {file}\n")
    assert (folder / "dark.png").read_bytes() != (folder / "light.png").read_bytes()
    light, dark = (read_gif(folder / f"{name}.gif")[1][0] for name in ("light", "dark"))
    assert light.shape == dark.shape == (480, 672, 3)
    assert light[-1, -1].min() > 200
    assert dark[-1, -1].max() < 50


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--gif", "game.png"], "--gif game.png: expected a name that ends in .gif"),
        (["--gif", "game.gif", "--ply", "0"], "--gif shows the whole game: it cannot be combined with --ply or --png"),
        (["--gif", "a.gif", "--png", "a.png"], "--gif shows the whole game: it cannot be combined with --ply or --png"),
        (["--dark"], "--dark changes pictures and animations: it needs --png FILE or --gif FILE"),
        (["--gif", "none/game.gif"], "none/game.gif: cannot write: there is no folder none"),
    ],
)
def test_the_command_reports_invalid_arguments_before_it_draws(arguments, message, folder, monkeypatch):
    monkeypatch.setattr("ninetka_env.api.animation.save_gif", None)
    done = replay(*arguments)
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"error: {message}\n")
    assert [file.name for file in folder.iterdir()] == ["games.txt"]
