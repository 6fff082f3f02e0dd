"""The style of all plots: colours, markers, sizes, captions, and each picture in a light and a dark version.

Start reading at `picture_pair`. A function that draws a plot takes no palette: it uses `series`, `INK` and `FAINT`,
whose colours depend on the matplotlib settings under which `figure_bytes` calls it.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ninetka_env.core.files import StrPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LIGHT = {
    "page": "#f5f6f8", "paper": "#ffffff", "ink": "#1f2430", "faint": "#5d6678", "grid": "#e4e7ec",
    "one": "#1a5fd0", "two": "#d0480c", "three": "#009684", "four": "#8e2977", "five": "#222d3a",
}  # fmt: skip
DARK = {
    "page": "#0f1116", "paper": "#171a21", "ink": "#e8eaf0", "faint": "#98a2b3", "grid": "#2d333f",
    "one": "#6ca6ff", "two": "#ff8a5c", "three": "#65e2b0", "four": "#c475b9", "five": "#dbe3f2",
}  # fmt: skip
"""The palettes. The tests check their contrast, and that series differ for readers with any form of dichromacy."""
SERIES = ("one", "two", "three", "four", "five")
"""Names of the colours of series, in order."""
INK, FAINT, PAPER = (f"C{len(SERIES) + number}" for number in range(3))
"""matplotlib's names of these colours of the palette in use; those of the series are C0, C1, ..."""
MARKERS = ("o", "s", "^", "D", "v")
LINES: tuple[Any, ...] = ("-", (0, (4, 1.2)), (0, (6, 1.2, 1.2, 1.2)), (0, (2, 1)), (0, (8, 2)))
REFERENCE: dict[str, Any] = {"color": FAINT, "linewidth": 1.2, "linestyle": (0, (1, 2))}
"""A reference line, such as the expected share. It is dotted; no series is."""
WIDTH, NARROW_WIDTH = 9.0, 7.0
"""Width of a picture in inches with two panels side by side, and with one. Its text is readable at 700 pixels."""
HEIGHT = 3.0
"""Height of a panel in inches."""
FONT_SIZE, SMALL = 10.5, 9.5
"""Font sizes in points: normal, and for captions."""
CHARACTERS_PER_INCH = 13
"""Number of characters of size `SMALL` per inch, rounded down."""


def series(number: int) -> dict[str, Any]:
    """Return the colour, the marker and the line style of a series as arguments of `Axes.plot`."""
    place = number % len(SERIES)
    return {"color": f"C{place}", "marker": MARKERS[place], "linestyle": LINES[place]}


def counted(numbers: Iterable[int]) -> str:
    """Return numbers as text for a caption: "40", or "24 to 40" if they differ; "0" if there are none."""
    found = list(numbers) or [0]
    low, high = min(found), max(found)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def wrapped(text: str, inches: float) -> str:
    """Return a caption in lines of at most this width. Only words that are longer than a line are divided."""
    return textwrap.fill(text, int(inches * CHARACTERS_PER_INCH), break_on_hyphens=False)


def wrapped_spec(spec: str, inches: float) -> str:
    """Return an agent's spec in lines of at most this width, which end after commas."""
    return wrapped(spec.replace(",", ", "), inches).replace(", ", ",")


def legend_columns(labels: Iterable[str], inches: float) -> int:
    """Return the number of columns of a legend of at most this width."""
    return max(1, int(inches * CHARACTERS_PER_INCH) // (max(map(len, labels)) + 8))


def add_caption(figure: Figure, text: str) -> None:
    """Write the caption of a picture above its panels."""
    lines = wrapped(text, figure.get_figwidth())
    figure.suptitle(lines, x=0.01, ha="left", color=FAINT, fontsize=SMALL)


def add_panel_title(axes: Axes, title: str, caption: str, inches: float) -> None:
    """Write the title of a panel and its caption, in lines of at most this width, above the panel."""
    lines = wrapped(caption, inches)
    axes.set_title(title, pad=7 + 1.25 * SMALL * (lines.count("\n") + 1) * bool(lines))
    axes.annotate(lines, (0, 1), (0, 5), "axes fraction", "offset points", color=FAINT, fontsize=SMALL)


def picture_paths(path: Path) -> tuple[Path, Path]:
    """Return the paths of the light and the dark version of a picture: `x.png` and `x-dark.png`."""
    return path, path.with_name(f"{path.stem}-dark{path.suffix}")


def markdown_pair(alt_text: str, path: Path) -> str:
    """Return Markdown that shows both versions of a picture, each in the site's theme of its kind."""
    light, dark = picture_paths(path)
    return f"![{alt_text}]({light.name}#only-light)\n![{alt_text}]({dark.name}#only-dark)"


def picture_pair(path: Path, draw: Callable[[], Figure]) -> dict[StrPath, list[bytes]]:
    """Return the contents of both versions of a PNG by path, for `ninetka_env.core.files.replace_files`."""
    palettes = zip(picture_paths(path), (LIGHT, DARK), strict=True)
    return {target: [figure_bytes(draw, palette)] for target, palette in palettes}


def figure_bytes(draw: Callable[[], Figure], palette: dict[str, str], kind: str = "png", salt: str = "") -> bytes:
    """Draw a figure and return it as the bytes of a file.

    Args:
        draw: returns the figure; it is called under the settings of `palette`.
        palette: `LIGHT` or `DARK`.
        kind: "png" or "svg".
        salt: makes the identifiers in an SVG different from those of other figures on the same page.
    """
    from matplotlib import rc_context

    file, metadata = io.BytesIO(), {"Date": None} if kind == "svg" else {}
    with rc_context(_settings(palette) | {"svg.hashsalt": salt or "ninetka"}):
        draw().savefig(file, format=kind, metadata=metadata)
    return file.getvalue()


def _settings(palette: dict[str, str]) -> dict[Any, Any]:
    """Return matplotlib's settings for a palette."""
    from matplotlib.rcsetup import cycler

    ink, faint, paper = palette["ink"], palette["faint"], palette["paper"]
    colours = [*(palette[name] for name in SERIES), ink, faint, paper]
    return {
        "axes.axisbelow": True,
        "axes.edgecolor": faint,
        "axes.facecolor": paper,
        "axes.grid": True,
        "axes.labelcolor": faint,
        "axes.prop_cycle": cycler(color=colours),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlecolor": ink,
        "axes.titlelocation": "left",
        "axes.titlesize": FONT_SIZE + 1,
        "axes.titleweight": "bold",
        "figure.constrained_layout.use": True,
        "figure.dpi": 144,
        "figure.facecolor": paper,
        "font.size": FONT_SIZE,
        "grid.color": palette["grid"],
        "hatch.color": faint,
        "hatch.linewidth": 0.5,
        "legend.fontsize": SMALL,
        "legend.frameon": False,
        "legend.handlelength": 3.2,
        "lines.linewidth": 1.9,
        "lines.markersize": 5,
        "savefig.dpi": "figure",
        "savefig.facecolor": "auto",
        "svg.fonttype": "none",
        "text.color": ink,
        "xtick.color": faint,
        "xtick.labelcolor": ink,
        "ytick.color": faint,
        "ytick.labelcolor": ink,
    }
