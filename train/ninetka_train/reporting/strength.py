"""Plot a curve of strength: wins against an opponent by seconds and by simulations per move.

`ninetka curve` calls `draw_curve`. The curve is measured in `ninetka_train.judging.curve`.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, PercentFormatter

from ninetka_train.judging.curve import BUDGETS, Curve, CurvePoint
from ninetka_train.reporting.figures import HEIGHT, LIGHT, STYLE, WIDTH, figure_bytes

COLOURS = ("two", "one", "four", "three")
LABELS = {"seconds": "seconds per move", "simulations": "simulations per move"}
TITLE_WIDTH = 72
"""Characters per line of the title, per panel."""


def draw_curve(curve: Curve) -> bytes:
    """Return a PNG with one panel for each budget (seconds, simulations) that has points, and 95 % intervals."""
    budgets = [budget for budget in BUDGETS if any(point.budget == budget for point in curve.points)]
    with rc_context(STYLE):
        figure = Figure((1.2 * WIDTH * len(budgets) + 0.4, 1.25 * HEIGHT + 0.6), layout="constrained", dpi=144)
        title = textwrap.fill(_title(curve), TITLE_WIDTH * len(budgets))
        figure.suptitle(title, x=0.01, ha="left", color=LIGHT["faint"], fontsize=10.5)
        for axes, budget in zip(figure.subplots(1, len(budgets), squeeze=False)[0], budgets, strict=True):
            _draw_panel(axes, curve, budget)
        return figure_bytes(figure, "png")


def _title(curve: Curve) -> str:
    settings, games = curve.settings, [point.games for point in curve.points]
    counted = f"{min(games)}" if min(games) == max(games) else f"{min(games)} to {max(games)}"
    return (
        f"{settings.variant.definition.title}, {settings.num_players} players, against {curve.against} "
        f"({curve.opponent_seconds:.2g} s per move); {counted} games per point, seats rotated, draws shared, seed "
        f"{settings.seed}; 95 % intervals; dashed: expected share"
    )


def _draw_panel(axes: Axes, curve: Curve, budget: str) -> None:
    for number, spec in enumerate(dict.fromkeys(point.agent for point in curve.points)):
        points = [point for point in curve.points if (point.agent, point.budget) == (spec, budget)]
        _draw_agent(axes, spec, points, LIGHT[COLOURS[number % len(COLOURS)]])
    axes.axhline(1 / curve.settings.num_players, color=LIGHT["faint"], linewidth=1, linestyle=(0, (4, 3)))
    axes.set(xscale="log", ylim=(0, 1.02), xlabel=LABELS[budget], ylabel="wins", title=f"Strength by {budget}")
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    amounts = sorted({point.amount for point in curve.points if point.budget == budget})
    axes.set_xticks(amounts[:: math.ceil(len(amounts) / 8)])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda amount, _: f"{amount:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.legend(loc="best", frameon=False)


def _draw_agent(axes: Axes, spec: str, points: Sequence[CurvePoint], colour: str) -> None:
    points = sorted(points, key=lambda point: point.amount)
    amounts, shares = [point.amount for point in points], [point.share for point in points]
    bounds = [(point.share, *point.interval) for point in points]
    lower = [max(0.0, share - low) for share, low, _ in bounds]  # rounding can give a value below 0
    upper = [max(0.0, high - share) for share, _, high in bounds]
    axes.errorbar(amounts, shares, yerr=[lower, upper], fmt="o-", color=colour, markersize=4.5, capsize=2.5, label=spec)
