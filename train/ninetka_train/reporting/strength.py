"""Plot a curve of strength: wins against an opponent by seconds and by simulations per move.

`ninetka curve` calls `draw_curve`. The curve is measured in `ninetka_train.judging.curve`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, PercentFormatter

from ninetka_train.judging.curve import BUDGETS, Curve, CurvePoint
from ninetka_train.reporting.style import (
    HEIGHT,
    NARROW_WIDTH,
    REFERENCE,
    WIDTH,
    add_caption,
    counted,
    legend_columns,
    series,
    wrapped_spec,
)

LABELS = {"seconds": "seconds per move", "simulations": "simulations per move"}


def draw_curve(curve: Curve) -> Figure:
    """Return a figure with one panel for each budget (seconds, simulations) that has points, and 95 % intervals."""
    budgets = [budget for budget in BUDGETS if any(point.budget == budget for point in curve.points)]
    agents = list(dict.fromkeys(point.agent for point in curve.points))
    figure = Figure((WIDTH if len(budgets) > 1 else NARROW_WIDTH, 1.5 * HEIGHT))
    add_caption(figure, curve_caption(curve))
    for axes, budget in zip(figure.subplots(1, len(budgets), squeeze=False)[0], budgets, strict=True):
        _draw_panel(axes, curve, budget)
    for number, spec in enumerate(agents):
        axes.plot([], [], label=wrapped_spec(spec, figure.get_figwidth() - 1.5), **series(number))
    figure.legend(loc="outside lower left", ncols=legend_columns(agents, figure.get_figwidth()))
    return figure


def curve_caption(curve: Curve) -> str:
    """Return the caption: the game, the opponent, the number of games and what the bars are."""
    settings = curve.settings
    return (
        f"{settings.variant.definition.title}, {settings.num_players} players, against {curve.against} "
        f"({curve.opponent_seconds:.2g} s per move); {counted(point.games for point in curve.points)} games per point, "
        f"seats rotated, draws shared, seed {settings.seed}; bars: 95 % Wilson intervals; dotted: expected share"
    )


def _draw_panel(axes: Axes, curve: Curve, budget: str) -> None:
    for number, spec in enumerate(dict.fromkeys(point.agent for point in curve.points)):
        _draw_agent(axes, [point for point in curve.points if (point.agent, point.budget) == (spec, budget)], number)
    axes.axhline(1 / curve.settings.num_players, **REFERENCE)
    axes.set(xscale="log", ylim=(0, 1.02), xlabel=LABELS[budget], ylabel="wins", title=f"Strength by {budget}")
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    amounts = sorted({point.amount for point in curve.points if point.budget == budget})
    axes.set_xticks(amounts[:: math.ceil(len(amounts) / 8)])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda amount, _: f"{amount:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _draw_agent(axes: Axes, points: Sequence[CurvePoint], number: int) -> None:
    """Plot the points of an agent. The caps of its bars are wider for each further agent, as bars may coincide."""
    points = sorted(points, key=lambda point: point.amount)
    amounts, shares = [point.amount for point in points], [point.share for point in points]
    bounds = [(point.share, *point.interval) for point in points]
    lower = [max(0.0, share - low) for share, low, _ in bounds]  # rounding can give a value below 0
    upper = [max(0.0, high - share) for share, _, high in bounds]
    axes.errorbar(amounts, shares, yerr=[lower, upper], capsize=2.5 + 1.5 * number, elinewidth=1.5, **series(number))
