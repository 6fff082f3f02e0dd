"""Plots of a run's report: all panels in one PNG, or each panel as an SVG element for an HTML page.

Start reading at `draw_png` and `draw_svg`. `run_data.py` reads the data, `page.py` makes the page.

In the SVG every colour is a CSS variable, such as `var(--ink)`; `LIGHT` and `DARK` are the values of the variables.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ninetka_train.reporting.run_data import BASELINE, NETWORK, PHASE_AGENTS, RunData, WinShare, summary

LIGHT = {
    "page": "#f5f6f8", "paper": "#ffffff", "ink": "#1f2430", "faint": "#667085", "grid": "#e4e7ec",
    "one": "#c4320a", "two": "#175cd3", "three": "#62708c", "four": "#0e7a6d",
}  # fmt: skip
DARK = {
    "page": "#0f1116", "paper": "#171a21", "ink": "#e8eaf0", "faint": "#98a2b3", "grid": "#2d333f",
    "one": "#ff8a5c", "two": "#84b0ff", "three": "#a9b4c8", "four": "#4fd1c0",
}  # fmt: skip
COLOURS = {"maxn": "one", "greedy": "one", "mcts": "two", "random": "three"}
"""Colours of opponents by the name in their spec; other opponents, and specs with `rave`, get `"four"`."""
WIDTH, HEIGHT = 4.6, 3.1
"""Size of a panel in inches (72 units in SVG); chosen so that text is readable on a phone."""
STYLE: Any = {
    "font.size": 10.5,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "lines.linewidth": 1.9,
    "svg.fonttype": "none",
    "text.color": LIGHT["ink"],
    "axes.labelcolor": LIGHT["faint"],
    "axes.titlecolor": LIGHT["ink"],
    "axes.edgecolor": LIGHT["faint"],
    "axes.facecolor": LIGHT["paper"],
    "figure.facecolor": LIGHT["paper"],
    "xtick.color": LIGHT["faint"],
    "ytick.color": LIGHT["faint"],
    "xtick.labelcolor": LIGHT["ink"],
    "ytick.labelcolor": LIGHT["ink"],
    "grid.color": LIGHT["grid"],
}


@dataclass(frozen=True)
class Panel:
    """One plot."""

    title: str
    alt_text: str
    """Alternative text for screen readers."""
    draw: Callable[[Axes], None]
    caption: str = ""


def strength_panels(run: RunData) -> list[Panel]:
    """Return the plots of the network's strength."""
    found = []
    for variant in run.variants:
        curve = [share for share in run.shares if share.variant == variant]
        final = [share for share in run.benchmark if share.variant == variant]
        about = f"Wins of the network at {variant} over the {run.unit}, against each opponent"
        note = "Wins with 95 % intervals; dashed: expected share."
        draw = partial(_draw_learning_curve, shares=curve, unit=run.unit)
        found.append(Panel(f"{variant}: learning curve", about, draw, note))
        if final:
            found.append(_final_panel(variant, final))
    return found


def _final_panel(variant: str, shares: list[WinShare]) -> Panel:
    about = f"Wins of the network at {variant} in the end, against each opponent"
    note = "Wins with 95 % intervals, seats as ticks below"
    if any(share.agent in PHASE_AGENTS.keys() - {NETWORK} for share in shares):
        about, note = f"{about} and phase by phase", f"{note}; {BASELINE} plays the other phase"
    return Panel(f"{variant}: benchmark", about, partial(_draw_benchmark, shares=shares), f"{note}.")


def learning_panels(run: RunData) -> list[Panel]:
    """Return the plots of the training log."""
    return [
        Panel(
            title := key.replace("_", " "),
            f"{title} over the {run.unit}",
            partial(_draw_series, run=run, key=key),
        )
        for key in _plotted(run)
    ]


def _plotted(run: RunData) -> list[str]:
    """Return the logged numbers to plot: losses, then entropy, agreement and speed."""
    keys = [key for key in (run.log[-1] if len(run.log) > 1 else {}) if all(key in line for line in run.log)]
    others = [key for key in ("entropy", "agreement", "moves_per_second", "games_per_second") if key in keys]
    return [key for key in keys if key.endswith("_loss")] + others


def _draw_learning_curve(axes: Axes, shares: list[WinShare], unit: str) -> None:
    """Plot the wins against each opponent over the training."""
    for opponent in dict.fromkeys(share.opponent for share in shares):
        points = [share for share in shares if share.opponent == opponent]
        trained, colour = [share.trained for share in points], _colour(opponent)
        lows, highs = zip(*(share.interval for share in points), strict=True)
        axes.fill_between(trained, lows, highs, color=colour, alpha=0.14, linewidth=0)
        axes.plot(trained, [share.share for share in points], "o-", color=colour, markersize=3.5, label=opponent)
    axes.axhline(1 / shares[0].players, color=LIGHT["faint"], linewidth=1, linestyle=(0, (4, 3)))
    axes.set_ylim(0, 1.02)
    axes.set_xlim(left=0)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.set_xlabel(unit)
    axes.legend(loc="upper center", bbox_to_anchor=(0.46, -0.22), ncol=3, frameon=False, handlelength=1.3,
                columnspacing=1.2)  # fmt: skip


def _draw_benchmark(axes: Axes, shares: list[WinShare]) -> None:
    """Plot the win shares of the final benchmark with intervals.

    They include the games in which the baseline plays one phase instead of the network.
    """
    shares = [share for share in shares if share.agent in PHASE_AGENTS]
    for row, share in enumerate(shares):
        colour, (low, high) = _colour(share.opponent), share.interval
        axes.plot([low, high], [row, row], color=colour, linewidth=2.4, solid_capstyle="round")
        axes.plot(share.share, row, "o", color=colour, markersize=7)
        for wins, games in share.seats:
            axes.plot(wins / games, row + 0.27, "|", color=colour, markersize=6, markeredgewidth=1.4)
        axes.text(1.04, row, f"{share.share:.0%}", transform=axes.get_yaxis_transform(), va="center")
    axes.axvline(1 / shares[0].players, color=LIGHT["faint"], linewidth=1, linestyle=(0, (4, 3)))
    axes.set_xlim(0, 1.02)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.set_yticks(range(len(shares)), [_label(share) for share in shares])
    axes.set_ylim(len(shares) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("wins")


def _label(share: WinShare) -> str:
    places, moves = PHASE_AGENTS[share.agent]
    if places == moves:
        return share.opponent.replace(":simulations=", ", ")
    return f"{BASELINE}; {'placing' if places != BASELINE else 'moving'} only"


def _draw_series(axes: Axes, run: RunData, key: str) -> None:
    """Plot a logged number over the training, with its running mean if there are many values."""
    trained, values = [run.trained(line) for line in run.log], [float(line[key]) for line in run.log]
    window = math.ceil(len(values) / 40)
    means = [sum(part := values[max(0, i - window + 1) : i + 1]) / len(part) for i in range(len(values))]
    if window > 1:
        axes.plot(trained, values, color=LIGHT["four"], alpha=0.25, linewidth=1)
    axes.plot(trained, means, color=LIGHT["four"])
    axes.set_xlim(left=0)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel(run.unit)


def _colour(opponent: str) -> str:
    return LIGHT["four" if "rave" in opponent else COLOURS.get(opponent.partition(":")[0], "four")]


def draw_png(run: RunData) -> bytes:
    """Return a PNG of all panels."""
    found = strength_panels(run) + learning_panels(run)
    columns = 1 if len(found) < 2 else 2 if len(found) < 5 else 3
    rows = max(1, math.ceil(len(found) / columns))
    with rc_context(STYLE):
        figure = Figure((1.12 * WIDTH * columns, 1.12 * HEIGHT * rows + 0.5), layout="constrained", dpi=144)
        figure.suptitle(
            f"{run.name}: {summary(run)}".replace("; ", "\n"), x=0.01, ha="left", color=LIGHT["faint"], fontsize=10.5
        )
        for place, panel in enumerate(found, 1):
            axes = figure.add_subplot(rows, columns, place, title=panel.title)
            panel.draw(axes)
        return figure_bytes(figure, "png")


def draw_svg(panel: Panel) -> str:
    """Return a panel as an `<svg>` element without a size, for an HTML page."""
    with rc_context({**STYLE, "svg.hashsalt": panel.title}):
        figure = Figure((WIDTH, HEIGHT), layout="constrained")
        panel.draw(figure.add_subplot())
        figure.patch.set_visible(False)
        text = figure_bytes(figure, "svg").decode()
    text = re.sub(r"(?s)^.*?<svg ", "<svg ", text)
    text = re.sub(r"(?s)<metadata>.*?</metadata>", "", text)
    text = re.sub(r'(<svg [^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg [^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r"font: (\w+ )?([\d.]+px) [^;\"]*", r"font-size: \2", text)
    for name, colour in LIGHT.items():
        text = text.replace(colour, f"var(--{name})")
    return text


def figure_bytes(figure: Figure, kind: str) -> bytes:
    """Return a figure as the bytes of a file."""
    file, options = io.BytesIO(), {"metadata": {"Date": None}} if kind == "svg" else {}
    figure.savefig(file, format=kind, **options)  # type: ignore[arg-type]
    return file.getvalue()
