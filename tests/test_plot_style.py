"""Test the style of all plots: colours for every kind of colour vision, captions, readable text, pairs of files."""

from __future__ import annotations

import re
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("torch")  # the report of a run reads its settings

from matplotlib import image, rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from benchmarks import cluster_scale
from benchmarks.cluster_simulation import Costs
from ninetka_env.core.files import replace_files
from ninetka_train.judging.curve import Curve, CurvePoint
from ninetka_train.judging.results import MatchSettings
from ninetka_train.ninetka.analyze import Analysis, PlyAnalysis, draw_analysis
from ninetka_train.ninetka.study import SLIDES, Proportion, StudyResult, draw_study
from ninetka_train.reporting import style
from ninetka_train.reporting.figures import draw_report
from ninetka_train.reporting.run_data import RunData
from ninetka_train.reporting.strength import draw_curve

ROOT = Path(__file__).parents[1]
PALETTES = pytest.mark.parametrize("palette", [style.LIGHT, style.DARK], ids=["light", "dark"])
LONG_SPEC = "mcts:simulations=2000,rave,playouts=heavy,exploration=0.4,threads=1"

# Colours

MIN_DISTANCE = 20
"""The minimum distance of two series in CIE Lab units; 2.3 is a just noticeable difference."""
VISIONS = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
"""Matrices for linear RGB of Machado, Oliveira and Fernandes (2009), severity 1."""
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.119192, 0.9503041]]
)


def linear(colour):
    """Return a colour such as "#ff0000" as linear RGB."""
    value = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """Return a linear RGB colour as CIE Lab, white point D65."""
    ratio = TO_XYZ @ rgb / (TO_XYZ @ np.ones(3))
    x, y, z = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one, other):
    """Return the contrast ratio of WCAG 2."""
    low, high = sorted(float(TO_XYZ[1] @ linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


@PALETTES
@pytest.mark.parametrize("vision", VISIONS)
def test_series_differ_with_every_colour_vision(palette, vision):
    seen = [lab(np.clip(VISIONS[vision] @ linear(palette[name]), 0, 1)) for name in style.SERIES]
    assert min(np.linalg.norm(one - other) for one, other in combinations(seen, 2)) >= MIN_DISTANCE


@PALETTES
def test_lines_and_text_contrast_with_the_page(palette):
    for background in ("paper", "page"):
        assert all(contrast(palette[name], palette[background]) >= 3 for name in style.SERIES)
        assert all(contrast(palette[name], palette[background]) >= 4.5 for name in ("ink", "faint"))


def test_both_palettes_name_the_same_colours_and_each_colour_once():
    assert style.LIGHT.keys() == style.DARK.keys()
    assert len({*style.LIGHT.values(), *style.DARK.values()}) == 2 * len(style.LIGHT)  # an SVG's colours are replaced


def test_colour_is_never_the_only_difference_of_series():
    found = [style.series(number) for number in range(len(style.SERIES))]
    for key in ("color", "marker", "linestyle"):
        assert len({one[key] for one in found}) == len(found)
        assert style.REFERENCE.get(key) not in [one[key] for one in found]


def test_no_other_module_that_draws_plots_has_colours():
    modules = [file for folder in ("train", "benchmarks") for file in (ROOT / folder).rglob("*.py")]
    drawing = {file.name: text for file in modules if "matplotlib" in (text := file.read_text(encoding="utf-8"))}
    assert {"figures.py", "strength.py", "study.py", "analyze.py", "cluster_scale.py", "style.py"} <= drawing.keys()
    assert [name for name, text in drawing.items() if re.search(r"#[0-9a-fA-F]{6}\b", text)] == ["style.py"]
    assert [name for name, text in drawing.items() if "savefig(" in text] == ["style.py"]


# Pictures


def curve():
    """Return a curve of two agents with long specs, by seconds and by simulations."""
    settings = MatchSettings((LONG_SPEC, "random"), "go:komi=0.5,size=5", 2, 40, 1, None)
    points = [
        CurvePoint(spec, budget, amount, 0.1, games, games, 8, 0, 8 / games, (0.1, 0.5))
        for spec in (LONG_SPEC, f"{LONG_SPEC},reuse")
        for budget in ("seconds", "simulations")
        for amount, games in ((1, 40), (10, 24))
    ]
    return Curve(settings, f"{LONG_SPEC},reuse", 0.01, points)


def perfect_play():
    """Return a study of one agent."""
    agent, share = "mcts:simulations=2000", Proportion(30, 1234, (0.01, 0.04))
    by_slides = dict.fromkeys(SLIDES, Proportion(17, 40, (0.3, 0.5)))
    winning = {agent: dict.fromkeys(SLIDES, 0.5)}
    one = {agent: share}
    return StudyResult(64, 3, one, one, winning, {agent: by_slides}, one, one)


def analysis():
    """Return an analysis of twelve plies."""
    plies = [
        PlyAnalysis(
            ply,
            ply % 2,
            0,
            "a1",
            *(("won", "lost") if ply == 21 else ("unknown", "won")),
            8,
            ["a1"],
            3 * (ply == 23),
            ply == 21,
        )
        for ply in range(20, 32)
    ]
    return Analysis(0, 1000, plies, 21, 11)


def run():
    """Return a run of 2 players with a learning curve and a benchmark, against an opponent with a long spec."""
    config = {"algorithm": "ppo", "players": [2], "ppo": {"moves": 900}}
    log = [{"policy_loss": 1 / n, "progress": n / 9, "seconds": 60.0 * n} for n in range(1, 10)]
    about = {"players": 2, "games": 40, "evaluation_seconds": 1.5}
    points = [(n, name) for n in (1, 5) for name in ("random", "maxn", LONG_SPEC)]
    measured = [
        {**about, "progress": n / 9, "seconds": 60.0 * n, "opponent": name, "wins": 4 * n} for n, name in points
    ]
    seats = [{"wins": 90, "draws": 0, "games": 100}] * 2
    net = {"name": "net", "share": 0.9, "games": 200, "seats": seats}
    evaluations = [{"agents": [net, {"name": name}], "settings": {"num_players": 2}} for name in ("maxn", LONG_SPEC)]
    return RunData("a run", config, log, measured, evaluations, [])


def costs():
    """Return the costs of five simulated clusters."""
    return {f"tasks of {8 * n} games": Costs((0.4, 0.5), n, 1e5, 5e5, 0.003, 0.002, 0.01, 7.0) for n in range(1, 6)}


PICTURES = {
    "report": (partial(draw_report, run()), ["Wins in 40 to 200 games per point", "Wins in 200 games per row",
                                             "n = 9 rollouts", "95 % Wilson intervals"]),
    "curve": (partial(draw_curve, curve()), ["24 to 40 games per point", "95 % Wilson intervals"]),
    "study": (partial(draw_study, perfect_play()), ["64 games per agent", "1,234 decisions", "17 solved positions",
                                                    "95 % intervals"]),
    "analysis": (partial(draw_analysis, analysis()), ["n = 12 decisions", "11 were not solved", "without intervals"]),
    "cluster": (partial(cluster_scale.draw, costs()), ["n = 2 tasks", "without intervals"]),
}  # fmt: skip


def drawn_texts(figure):
    """Render a figure and return the texts that are drawn."""
    FigureCanvasAgg(figure).draw()
    hidden = [label for axes in figure.axes for label in labels_outside(axes)]
    texts = figure.findobj(Text)
    return [text for text in texts if text.get_visible() and text.get_text().strip() and text not in hidden]


def labels_outside(axes):
    """Return the labels of ticks outside the limits of the axes, which are not drawn."""
    return [
        label
        for axis in (axes.xaxis, axes.yaxis)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
        if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
        for label in (tick.label1, tick.label2)
    ]


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_have_a_caption_and_text_that_is_readable_and_not_cut(name):
    draw, wanted = PICTURES[name]
    with rc_context(style._settings(style.LIGHT)):
        figure = draw()
        texts = drawn_texts(figure)
    shown = " ".join(" ".join(text.get_text().split()) for text in texts)
    assert [text for text in wanted if text not in shown] == []
    width, height = figure.canvas.get_width_height()
    boxes = [text.get_window_extent() for text in texts]
    for text, box in zip(texts, boxes, strict=True):
        assert min(box.x0, box.y0) >= -1, text
        assert box.x1 <= width + 1, text
        assert box.y1 <= height + 1, text
        assert text.get_fontsize() * 700 / (72 * figure.get_figwidth()) >= 10, text  # pixels on a page of 700
    pairs = combinations(zip(texts, boxes, strict=True), 2)
    assert [(one, other) for (one, first), (other, second) in pairs if overlap(first, second)] == []


def overlap(one, other):
    """Return whether two boxes have a common area of more than two pixels in both directions."""
    widths = [min(one.x1, other.x1) - max(one.x0, other.x0), min(one.y1, other.y1) - max(one.y0, other.y0)]
    return min(widths) > 2


def test_pictures_come_in_a_light_and_a_dark_version(tmp_path):
    light, dark = style.picture_paths(tmp_path / "strength.5.png")
    assert dark.name == "strength.5-dark.png"
    contents = style.picture_pair(light, PICTURES["cluster"][0])
    assert list(contents) == [light, dark]
    replace_files(contents)
    for path, palette in ((light, style.LIGHT), (dark, style.DARK)):
        pixels = (255 * image.imread(path)[..., :3]).round().astype(int)
        drawn = {"#{:02x}{:02x}{:02x}".format(*pixel) for pixel in np.unique(pixels.reshape(-1, 3), axis=0)}
        assert "#{:02x}{:02x}{:02x}".format(*pixels[-1, -1]) == palette["paper"]
        assert {palette[name] for name in style.SERIES} <= drawn


def test_markdown_shows_each_version_in_its_theme():
    text = style.markdown_pair("Wins", Path("docs/strength.png"))
    assert text.split("\n") == ["![Wins](strength.png#only-light)", "![Wins](strength-dark.png#only-dark)"]


def test_numbers_of_captions():
    assert [style.counted(numbers) for numbers in ([], [40, 40], [4000, 24])] == ["0", "40", "24 to 4,000"]


def test_pages_show_both_versions_of_each_picture():
    for page in (ROOT / "docs").rglob("*.md"):
        shown = re.findall(r"\]\(([^)\s]*\.(?:png|webp))#only-(light|dark)\)", page.read_text(encoding="utf-8"))
        light, dark = ([page.parent / name for name, theme in shown if theme == kind] for kind in ("light", "dark"))
        assert [style.picture_paths(path)[1] for path in light] == dark
        assert all(path.is_file() for path in light + dark)
