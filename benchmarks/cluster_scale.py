"""Write a page and a figure about self-play on clusters of 1 to 10,000 cores, simulated from measured costs.

    python -m benchmarks.cluster_scale cluster.json docs/cluster

Reads the file that `python -m benchmarks.cluster` wrote; writes docs/cluster.md, docs/cluster.png and
docs/cluster-dark.png. Exits with an error if the simulation does not match the measured rounds.
`benchmarks.cluster_simulation` is the simulation.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from benchmarks.cluster_simulation import (
    CORES,
    MIN_EFFICIENCY,
    NODE_CORES,
    TOLERANCE,
    Costs,
    busy_slowdown,
    efficiency,
    limits,
    max_efficient_cores,
    min_task_factor,
    profile_costs,
    simulated_seconds,
)
from ninetka_env.core.files import replace_files
from ninetka_train.reporting.style import (
    HEIGHT,
    NARROW_WIDTH,
    REFERENCE,
    add_caption,
    counted,
    legend_columns,
    markdown_pair,
    picture_pair,
    series,
)

TABLE_CORES = (1, 2, 4, 10, 32, 256, 1024, 10_000)
"""Numbers of cores in the table of efficiencies."""
GAMES_FACTOR = 64
"""Factor by which the games of a round are multiplied."""
LEARNER_SPEEDUP = 50
"""Speed of the fast learner, as a multiple of one core."""
TARGET_CORES = 256
"""Number of cores for which settings are recommended."""
CALL_KEY = "call_seconds, 1 worker"

PAGE = """# How far clusters scale

Self-play of 9tka on [clusters](guides/cluster.md): measured on one machine ({machine}), and simulated for more cores.
This page is written by

```text
python -m benchmarks.cluster --out cluster.json
python -m benchmarks.cluster_scale cluster.json docs/cluster
```

Efficiency is the fraction of the workers' time that is spent playing games. *Default settings* are those of
`configs/quick.yaml`, in rounds whose games are all played by the network.

{picture}

## In short

- With default settings, efficiency {default_cores}: the learner, on one core, takes {default_learning:.0f} s for the
  games that one core plays in {default_playing:.1f} s, and {default_games} games per round are only {default_tasks}
  tasks. With the settings that trained `gen-4`, a network of 9tka, it {gen_cores}.
- [Settings for {aim} cores](#settings-for-{aim}-cores): many more games per round, small
  tasks, overlapping rounds, and a fast learner.
- Assigning a task takes the driver {call:.1f} ms. A round took {two:.2f} s with two workers, and {threads:.2f} s with
  two threads of one process ({overhead:+.0f} %).

## Measured

On one thread; a gradient step learns from 1,024 positions.

{costs}

Whole rounds of {checked_tasks} tasks, compared with the simulation, which must be right within 15 %; three workers
share {cores} cores. When all cores are busy, a task takes {busy:.2f} times as long as alone, measured with the same
tasks on threads of one process. The simulation uses this factor only in this table; below, all cores are as fast as
one alone.

{checked}

## Simulated

Nodes have {node_cores} cores, the driver's network card 10 Gbit/s.

{curves}

The number of cores up to which efficiency is at least 90 %: with the measured settings, and with overlapping rounds
and a learner that is {faster} times as fast as one core, such as a GPU or
[several devices](guides/cluster.md#a-learner-on-several-devices).

{own}

## What limits efficiency

The number of cores at which each cost alone takes as long as the games of a round; the smallest number is the limit.

{limits}

{moves}

## Settings for {aim} cores

The smallest number of games per round that keeps the efficiency at 90 %, found by doubling the number above, with the
same number of steps per round; `none` means that no number of games is enough.

{aims}
"""


def game_seconds(profile: dict[str, Any], size: str = "usual") -> float:
    """Return the mean seconds per game in tasks of a size, "usual" or "small"."""
    tasks = profile[size]
    return float(sum(tasks["task_seconds"]) / len(tasks["task_seconds"]) / tasks["task_games"])


def simulated_curves(measured: dict[str, Any]) -> dict[str, Costs]:
    """Return the costs of each curve by name.

    The first curve has the default settings; every further curve adds one improvement to the curve before it.
    """
    default = measured["profiles"]["default settings"]
    small = profile_costs(default, measured[CALL_KEY], "small")
    many = replace(small, tasks=GAMES_FACTOR * small.tasks)
    overlap = replace(many, overlap=True)
    return {
        "default settings": profile_costs(default, measured[CALL_KEY]),
        f"tasks of {default['small']['task_games']} games": small,
        f"and {GAMES_FACTOR} times the games a round": many,
        "and rounds that overlap": overlap,
        f"and a learner {LEARNER_SPEEDUP} times as fast": replace(
            overlap, learn_seconds=small.learn_seconds / LEARNER_SPEEDUP
        ),
    }


def _efficient_up_to(cores: int) -> str:
    return f"is at least 90 % on up to {cores} cores" if cores else "is below 90 % even on one core"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def costs_table(profiles: dict[str, Any]) -> str:
    """Return the table of the measured costs of each profile."""
    head = [
        "settings",
        "parameters",
        "weights, MB",
        "games a round",
        "games a task",
        "ms a game",
        "ms a game in tasks of 8",
    ]
    head += ["kB of samples a game", "steps a round", "ms a step"]
    rows = []
    for name, one in profiles.items():
        tasks = one["usual"]
        sizes = [f"{one['parameters']:,}", f"{tasks['weight_bytes'] / 1e6:.2f}", f"{one['games']:,}"]
        times = [f"{tasks['task_games']:.0f}", *(f"{1e3 * game_seconds(one, size):.0f}" for size in ("usual", "small"))]
        learning = [f"{one['steps']}", f"{1e3 * one['step_seconds']:.0f}"]
        rows.append([name, *sizes, *times, f"{tasks['task_bytes'] / tasks['task_games'] / 1e3:.1f}", *learning])
    return table(head, rows)


def checked_table(measured: dict[str, Any]) -> str:
    """Return the table that compares measured rounds with simulated ones."""
    rows = []
    for name, measured_round in measured["rounds"].items():
        simulated = simulated_seconds(measured, measured_round)
        off = f"{100 * (simulated / measured_round['seconds'] - 1):+.0f} %"
        rows.append([name, f"{measured_round['seconds']:.2f}", f"{simulated:.2f}", off])
    return table(["cluster", "measured, s", "simulated, s", "difference"], rows)


def curves_table(curves: dict[str, Costs]) -> str:
    """Return the table of efficiencies by number of cores."""
    rows = [
        [name, f"{max_efficient_cores(one):,}", *(f"{100 * efficiency(one, cores):.0f} %" for cores in TABLE_CORES)]
        for name, one in curves.items()
    ]
    return table(["settings", "90 % up to", *(f"{cores:,}" for cores in TABLE_CORES)], rows)


def profiles_table(measured: dict[str, Any]) -> str:
    """Return the table of efficient numbers of cores by profile: as measured, and with overlap and a fast learner."""
    rows = []
    for name, one in measured["profiles"].items():
        best = replace(profile_costs(one, measured[CALL_KEY], learner_speedup=LEARNER_SPEEDUP), overlap=True)
        rows.append(
            [name, f"{max_efficient_cores(profile_costs(one, measured[CALL_KEY])):,}", f"{max_efficient_cores(best):,}"]
        )
    return table(["settings", "as measured", "overlap, fast learner"], rows)


def limits_table(measured: dict[str, Any]) -> str:
    """Return the table of `limits`, with a row per profile and a column per resource."""
    limits_by_profile = {
        name: limits(profile_costs(one, measured[CALL_KEY])) for name, one in measured["profiles"].items()
    }
    rows = [
        [name, *(f"{cores:,.{int(cores < 10)}f}" for cores in found.values())]
        for name, found in limits_by_profile.items()
    ]
    return table(["settings", *next(iter(limits_by_profile.values()))], rows)


def limits_text(measured: dict[str, Any]) -> str:
    """Return a list of what limits each profile and what a faster learner would change."""
    lines = []
    for name, one in measured["profiles"].items():
        found = limits(profile_costs(one, measured[CALL_KEY]))
        first, second = sorted(found, key=lambda what: found[what])[:2]
        at, then = (f"{what}, at {found[what]:,.{int(found[what] < 10)}f} cores" for what in (first, second))
        learner = f"{found['the learner']:,.{int(found['the learner'] < 10)}f}"
        gpu = (
            f"with a faster learner, such as a GPU, by {then}"
            if first == "the learner"
            else f"a faster learner, such as a GPU, changes nothing below {learner} cores"
        )
        usual, small = (f"{1e3 * game_seconds(one, size):.0f} ms" for size in ("usual", "small"))
        lines += [
            f"- {name}, {one['parameters']:,} parameters: limited by {at}; {gpu}.",
            f"  A game takes {usual} in tasks of {one['usual']['task_games']:.0f}, {small} in tasks of 8.",
        ]
    return "\n".join(lines)


def required_games_table(measured: dict[str, Any]) -> str:
    """Return the table of the minimum number of games per round for `TARGET_CORES` cores, by settings."""
    rows = []
    for name, profile in measured["profiles"].items():
        for learner_speedup, overlap in ((1, False), (1, True), (LEARNER_SPEEDUP, False), (LEARNER_SPEEDUP, True)):
            row = [name, f"{learner_speedup}", "yes" if overlap else "no"]
            for size in ("usual", "small"):
                costs = replace(profile_costs(profile, measured[CALL_KEY], size, learner_speedup), overlap=overlap)
                factor = min_task_factor(costs, TARGET_CORES)
                row.append(f"{factor * costs.tasks * profile[size]['task_games']:,.0f}" if factor else "none")
            rows.append(row)
    return table(["settings", "learner, times one core", "overlap", "in tasks as above", "in tasks of 8"], rows)


def page(measured: dict[str, Any], picture: Path) -> str:
    """Return the page as Markdown; `picture` is the path of the light picture, in the same folder."""
    profiles = measured["profiles"]
    default, costs = profiles["default settings"], profile_costs(profiles["default settings"], measured[CALL_KEY])
    return PAGE.format(
        **{name: measured[name] for name in ("machine", "cores")},
        picture=markdown_pair("Efficiency by cores", picture),
        aim=TARGET_CORES,
        faster=LEARNER_SPEEDUP,
        node_cores=NODE_CORES,
        default_cores=_efficient_up_to(max_efficient_cores(costs)),
        default_games=default["games"],
        default_tasks=costs.tasks,
        default_learning=costs.learn_seconds,
        default_playing=default["games"] * game_seconds(default),
        gen_cores=_efficient_up_to(max_efficient_cores(profile_costs(profiles["gen-4"], measured[CALL_KEY]))),
        call=1e3 * measured[CALL_KEY],
        two=measured["rounds"]["2 workers"]["seconds"],
        overhead=100 * (measured["rounds"]["2 workers"]["seconds"] / measured["threads_seconds"] - 1),
        threads=measured["threads_seconds"],
        checked_tasks=len(measured["checked"]["task_seconds"]),
        busy=busy_slowdown(measured),
        costs=costs_table(profiles),
        checked=checked_table(measured),
        curves=curves_table(simulated_curves(measured)),
        own=profiles_table(measured),
        limits=limits_table(measured),
        moves=limits_text(measured),
        aims=required_games_table(measured),
    )


def draw(curves: dict[str, Costs]) -> Figure:
    """Return a figure of the efficiencies by number of cores."""
    figure = Figure((NARROW_WIDTH, 1.5 * HEIGHT))
    add_caption(figure, caption(curves))
    axes = figure.subplots()
    for number, (name, costs) in enumerate(curves.items()):
        axes.plot(CORES, [efficiency(costs, workers) for workers in CORES], label=name, **series(number))
    axes.axhline(MIN_EFFICIENCY, **REFERENCE)
    axes.set(xscale="log", ylim=(0, 1.05), xlabel="cores", ylabel="time spent playing", title="Efficiency by cores")
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda cores, _: f"{cores:,.0f}"))
    figure.legend(loc="outside lower left", ncols=legend_columns(curves, NARROW_WIDTH))
    return figure


def caption(curves: dict[str, Costs]) -> str:
    """Return the caption of the figure: the number of measured tasks, and that the curves are simulated."""
    tasks = counted(len(costs.task_seconds) for costs in curves.values())
    return (
        f"Simulated rounds with the measured times of n = {tasks} tasks, without intervals; "
        f"dotted: {MIN_EFFICIENCY:.0%}"
    )


def main() -> None:
    """Write the page and the figure, then check the simulation against the measured rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measured", type=Path)
    parser.add_argument("out", type=Path, help="path of the page and the figure without suffix")
    arguments = parser.parse_args()
    measured = json.loads(arguments.measured.read_text(encoding="utf-8"))
    picture = arguments.out.with_suffix(".png")
    replace_files(
        {
            arguments.out.with_suffix(".md"): [page(measured, picture).encode()],
            **picture_pair(picture, partial(draw, simulated_curves(measured))),
        }
    )
    print(f"{checked_table(measured)}\nwrote {arguments.out}.md, .png and -dark.png")
    if any(
        abs(simulated_seconds(measured, one) / one["seconds"] - 1) > TOLERANCE for one in measured["rounds"].values()
    ):
        raise SystemExit(f"the simulation is off by more than {TOLERANCE:.0%}")


if __name__ == "__main__":
    main()
