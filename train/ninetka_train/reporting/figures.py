"""Plots of a run's report: all panels in one figure, or each panel as an SVG element for an HTML page.

Start reading at `draw_report` and `draw_svg`. `run_data.py` reads the data, `page.py` makes the page, `style.py` has
the colours.

In the SVG every colour is a CSS variable, such as `var(--ink)`; the palettes are the values of the variables.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ninetka_train.reporting.run_data import BASELINE, NETWORK, PHASE_AGENTS, RunData, WinShare, summary
from ninetka_train.reporting.style import (
    HEIGHT,
    LIGHT,
    NARROW_WIDTH,
    PAPER,
    REFERENCE,
    SMALL,
    WIDTH,
    add_caption,
    add_panel_title,
    counted,
    figure_bytes,
    legend_columns,
    series,
    wrapped_spec,
)

PANEL_WIDTH = WIDTH / 2
"""Width of a panel in inches."""


@dataclass(frozen=True)
class Panel:
    """One plot."""

    title: str
    alt_text: str
    """Alternative text for screen readers."""
    draw: Callable[[Axes], None]
    caption: str
    """What is drawn, and from how many games."""


def strength_panels(run: RunData) -> list[Panel]:
    """Return the plots of the network's strength."""
    found = []
    opponents = dict.fromkeys(share.opponent for share in (*run.shares, *run.benchmark))
    numbers = {name: at for at, name in enumerate(opponents)}
    for variant in run.variants:
        curve = [share for share in run.shares if share.variant == variant]
        final = [share for share in run.benchmark if share.variant == variant and share.agent in PHASE_AGENTS]
        about = f"Wins of the network at {variant} over the {run.unit}, against each opponent"
        games = counted(share.games for share in curve)
        note = f"Wins in {games} games per point; areas: 95 % Wilson intervals; dotted: expected share."
        draw = partial(_draw_learning_curve, shares=curve, unit=run.unit, numbers=numbers)
        found.append(Panel(f"{variant}: learning curve", about, draw, note))
        if final:
            found.append(_final_panel(variant, final, numbers))
    return found


def _final_panel(variant: str, shares: list[WinShare], numbers: dict[str, int]) -> Panel:
    """Return the plot of the final benchmark, also of the games in which the baseline plays one phase."""
    about = f"Wins of the network at {variant} in the end, against each opponent"
    games = counted(share.games for share in shares)
    note = f"Wins in {games} games per row; bars: 95 % Wilson intervals; ticks: seats; dotted: expected share"
    if any(share.agent != NETWORK for share in shares):
        about, note = f"{about} and phase by phase", f"{note}; {BASELINE} plays the other phase"
    return Panel(f"{variant}: benchmark", about, partial(_draw_benchmark, shares=shares, numbers=numbers), f"{note}.")


def learning_panels(run: RunData) -> list[Panel]:
    """Return the plots of the training log."""
    window = _window(run)
    means = f"; thick: mean of {window}" if window > 1 else ""
    return [
        Panel(
            title := key.replace("_", " "),
            f"{title} over the {run.unit}",
            partial(_draw_log, run=run, key=key),
            f"n = {len(run.log):,} {'rollouts' if run.config['algorithm'] == 'ppo' else 'rounds'}{means}.",
        )
        for key in _plotted(run)
    ]


def _plotted(run: RunData) -> list[str]:
    """Return the logged numbers to plot: losses, then entropy, agreement and speed."""
    keys = [key for key in (run.log[-1] if len(run.log) > 1 else {}) if all(key in line for line in run.log)]
    others = [key for key in ("entropy", "agreement", "moves_per_second", "games_per_second") if key in keys]
    return [key for key in keys if key.endswith("_loss")] + others


def _draw_learning_curve(axes: Axes, shares: list[WinShare], unit: str, numbers: dict[str, int]) -> None:
    """Plot the wins against each opponent over the training."""
    opponents = list(dict.fromkeys(share.opponent for share in shares))
    for opponent in opponents:
        points = [share for share in shares if share.opponent == opponent]
        trained, style = [share.trained for share in points], series(numbers[opponent])
        lows, highs = zip(*(share.interval for share in points), strict=True)
        axes.fill_between(trained, lows, highs, color=style["color"], alpha=0.14, linewidth=0)
        axes.plot(trained, [share.share for share in points], label=wrapped_spec(opponent, PANEL_WIDTH - 1.5), **style)
    axes.axhline(1 / shares[0].players, **REFERENCE)
    axes.set_ylim(0, 1.02)
    axes.set_xlim(left=0)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.set_xlabel(unit)
    columns = legend_columns(opponents, PANEL_WIDTH)
    axes.legend(loc="upper left", bbox_to_anchor=(-0.1, -0.2), ncols=columns, columnspacing=1.2)


def _draw_benchmark(axes: Axes, shares: list[WinShare], numbers: dict[str, int]) -> None:
    """Plot the win shares of the final benchmark with intervals."""
    background = {"facecolor": PAPER, "edgecolor": "none", "pad": 1}
    for row, share in enumerate(shares):
        style, (low, high) = series(numbers[share.opponent]), share.interval
        colour, marker = style["color"], style["marker"]
        axes.plot([low, high], [row, row], color=colour, linewidth=2.4, solid_capstyle="round")
        axes.plot(share.share, row, marker, color=colour, markersize=7)
        for wins, games in share.seats:
            axes.plot(wins / games, row + 0.27, "|", color=colour, markersize=6, markeredgewidth=1.4)
        axes.text(1.04, row, f"{share.share:.0%}", transform=axes.get_yaxis_transform(), va="center")
        axes.annotate(_label(share), (0, row), (0, 5), textcoords="offset points", fontsize=SMALL, bbox=background)
    axes.axvline(1 / shares[0].players, **REFERENCE)
    axes.set_xlim(0, 1.02)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.set_yticks([])
    axes.set_ylim(len(shares) - 0.5, -0.65)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("wins")


def _label(share: WinShare) -> str:
    """Return the label of a row, which is above its bar."""
    places, moves = PHASE_AGENTS[share.agent]
    if places == moves:
        return wrapped_spec(share.opponent, PANEL_WIDTH - 1)
    return f"{BASELINE}; {'placing' if places != BASELINE else 'moving'} only"


def _window(run: RunData) -> int:
    """Return the number of values of the log whose mean is drawn."""
    return math.ceil(len(run.log) / 40)


def _draw_log(axes: Axes, run: RunData, key: str) -> None:
    """Plot a logged number over the training, with its running mean if there are many values."""
    trained, values = [run.trained(line) for line in run.log], [float(line[key]) for line in run.log]
    window, colour = _window(run), series(0)["color"]
    means = [sum(part := values[max(0, i - window + 1) : i + 1]) / len(part) for i in range(len(values))]
    if window > 1:
        axes.plot(trained, values, color=colour, alpha=0.25, linewidth=1)
    axes.plot(trained, means, color=colour)
    axes.set_xlim(left=0)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel(run.unit)


def draw_report(run: RunData) -> Figure:
    """Return a figure of all panels."""
    found = strength_panels(run) + learning_panels(run)
    columns = 1 if len(found) < 2 else 2
    rows, width = max(1, math.ceil(len(found) / columns)), WIDTH if columns == 2 else NARROW_WIDTH
    figure = Figure((width, 1.1 * HEIGHT * rows + 0.6))
    add_caption(figure, f"{run.name}: {summary(run)}")
    for place, panel in enumerate(found, 1):
        axes = figure.add_subplot(rows, columns, place)
        panel.draw(axes)
        add_panel_title(axes, panel.title, panel.caption, PANEL_WIDTH - 0.6)
    return figure


def _draw_panel(panel: Panel) -> Figure:
    """Return a figure of one panel, without its title and its caption, on a transparent page."""
    figure = Figure((PANEL_WIDTH, HEIGHT))
    panel.draw(figure.add_subplot())
    figure.patch.set_visible(False)
    return figure


def draw_svg(panel: Panel) -> str:
    """Return a panel as an `<svg>` element without a size, for an HTML page."""
    text = figure_bytes(partial(_draw_panel, panel), LIGHT, "svg", salt=panel.title).decode()
    text = re.sub(r"(?s)^.*?<svg ", "<svg ", text)
    text = re.sub(r"(?s)<metadata>.*?</metadata>", "", text)
    text = re.sub(r'(<svg [^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg [^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r"font: (\w+ )?([\d.]+px) [^;\"]*", r"font-size: \2", text)
    for name, colour in LIGHT.items():
        text = text.replace(colour, f"var(--{name})")
    return text
