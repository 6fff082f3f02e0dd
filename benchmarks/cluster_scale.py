"""Write a page and a figure on how self-play scales on clusters of 1 to 10,000 cores, simulated from measured costs.

    python -m benchmarks.cluster_scale cluster.json docs/cluster

Reads the file that `python -m benchmarks.cluster` wrote; writes docs/cluster.md and docs/cluster.png. Exits with an
error if the simulation does not match the measured rounds. `benchmarks.cluster_simulation` is the simulation.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.cluster_simulation import (
    CORES,
    HELD,
    NODE_CORES,
    WITHIN,
    Costs,
    busy_slowdown,
    efficiency,
    foretold_seconds,
    held_up_to,
    least_games,
    limits,
    round_of,
)

TOLD = (1, 2, 4, 10, 32, 256, 1024, 10_000)
"""Numbers of cores in the table of efficiencies."""
MANY = 64
"""Factor by which the games of a round are multiplied."""
FASTER = 50
"""Speed of the fast learner, as a multiple of one core."""
AIM = 256
"""Number of cores for which settings are recommended."""
CALL = "call_seconds, 1 worker"

PAGE = """# How far clusters scale

Self-play of 9tka on [clusters](guides/cluster.md): measured on one machine ({machine}), and simulated for more cores.
This page is written by

```text
python -m benchmarks.cluster --out cluster.json
python -m benchmarks.cluster_scale cluster.json docs/cluster
```

Efficiency is the fraction of the workers' time that is spent playing games. *Default settings* are those of
`configs/quick.yaml`, in rounds whose games are all played by the network.

![Efficiency by cores]({picture})

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
    """Return the mean seconds per game in tasks of a size."""
    tasks = profile[size]
    return float(sum(tasks["task_seconds"]) / len(tasks["task_seconds"]) / tasks["task_games"])


def curves_of(told: dict[str, Any]) -> dict[str, Costs]:
    """Return the costs to draw, by name: default settings, then one more change after another that moves the limit."""
    default = told["profiles"]["default settings"]
    small = round_of(default, told[CALL], "small")
    many = replace(small, tasks=MANY * small.tasks)
    overlap = replace(many, overlap=True)
    return {
        "default settings": round_of(default, told[CALL]),
        f"tasks of {default['small']['task_games']} games": small,
        f"and {MANY} times the games a round": many,
        "and rounds that overlap": overlap,
        f"and a learner {FASTER} times as fast": replace(overlap, learn_seconds=small.learn_seconds / FASTER),
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


def checked_table(told: dict[str, Any]) -> str:
    """Return the table that compares measured rounds with simulated ones."""
    rows = []
    for name, one in told["rounds"].items():
        foretold = foretold_seconds(told, one)
        off = f"{100 * (foretold / one['seconds'] - 1):+.0f} %"
        rows.append([name, f"{one['seconds']:.2f}", f"{foretold:.2f}", off])
    return table(["cluster", "measured, s", "simulated, s", "difference"], rows)


def curves_table(curves: dict[str, Costs]) -> str:
    """Return the table of efficiencies by number of cores."""
    rows = [
        [name, f"{held_up_to(one):,}", *(f"{100 * efficiency(one, cores):.0f} %" for cores in TOLD)]
        for name, one in curves.items()
    ]
    return table(["settings", "90 % up to", *(f"{cores:,}" for cores in TOLD)], rows)


def own_table(told: dict[str, Any]) -> str:
    """Return the table of how many cores each profile keeps busy, unchanged and with overlap and a fast learner."""
    rows = []
    for name, one in told["profiles"].items():
        best = replace(round_of(one, told[CALL], learner=FASTER), overlap=True)
        rows.append([name, f"{held_up_to(round_of(one, told[CALL])):,}", f"{held_up_to(best):,}"])
    return table(["settings", "as measured", "overlap, fast learner"], rows)


def limits_table(told: dict[str, Any]) -> str:
    """Return the table of the limits of each profile."""
    walls = {name: limits(round_of(one, told[CALL])) for name, one in told["profiles"].items()}
    rows = [[name, *(f"{cores:,.{int(cores < 10)}f}" for cores in found.values())] for name, found in walls.items()]
    return table(["settings", *next(iter(walls.values()))], rows)


def moves(told: dict[str, Any]) -> str:
    """Return a list of what limits each profile and what a faster learner would change."""
    lines = []
    for name, one in told["profiles"].items():
        found = limits(round_of(one, told[CALL]))
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


def aims_table(told: dict[str, Any]) -> str:
    """Return the table of the fewest games per round that keep `AIM` cores busy, by settings."""
    rows = []
    for name, profile in told["profiles"].items():
        for faster, overlap in ((1, False), (1, True), (FASTER, False), (FASTER, True)):
            row = [name, f"{faster}", "yes" if overlap else "no"]
            for size in ("usual", "small"):
                costs = replace(round_of(profile, told[CALL], size, faster), overlap=overlap)
                times = least_games(costs, AIM)
                row.append(f"{times * costs.tasks * profile[size]['task_games']:,.0f}" if times else "none")
            rows.append(row)
    return table(["settings", "learner, times one core", "overlap", "in tasks as above", "in tasks of 8"], rows)


def page(told: dict[str, Any], picture: str) -> str:
    """Return the page as Markdown."""
    profiles = told["profiles"]
    default, costs = profiles["default settings"], round_of(profiles["default settings"], told[CALL])
    return PAGE.format(
        **{name: told[name] for name in ("machine", "cores")},
        picture=picture,
        aim=AIM,
        faster=FASTER,
        node_cores=NODE_CORES,
        default_cores=_efficient_up_to(held_up_to(costs)),
        default_games=default["games"],
        default_tasks=costs.tasks,
        default_learning=costs.learn_seconds,
        default_playing=default["games"] * game_seconds(default),
        gen_cores=_efficient_up_to(held_up_to(round_of(profiles["gen-4"], told[CALL]))),
        call=1e3 * told[CALL],
        two=told["rounds"]["2 workers"]["seconds"],
        overhead=100 * (told["rounds"]["2 workers"]["seconds"] / told["threads_seconds"] - 1),
        threads=told["threads_seconds"],
        checked_tasks=len(told["checked"]["task_seconds"]),
        busy=busy_slowdown(told),
        costs=costs_table(profiles),
        checked=checked_table(told),
        curves=curves_table(curves_of(told)),
        own=own_table(told),
        limits=limits_table(told),
        moves=moves(told),
        aims=aims_table(told),
    )


def draw(curves: dict[str, Costs], path: Path) -> None:
    """Draw the efficiencies by number of cores."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, costs in curves.items():
        axes.plot(CORES, [efficiency(costs, workers) for workers in CORES], "o-", markersize=3.5, label=name)
    axes.axhline(HELD, color="#667085", linewidth=1, linestyle=(0, (4, 3)))
    axes.set(xscale="log", ylim=(0, 1.05), xlabel="cores", ylabel="share of the cores' time spent playing")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Write the page and the figure, then check the simulation against the measured rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measured", type=Path)
    parser.add_argument("out", type=Path, help="without suffix")
    arguments = parser.parse_args()
    told = json.loads(arguments.measured.read_text(encoding="utf-8"))
    picture = arguments.out.with_suffix(".png")
    draw(curves_of(told), picture)
    arguments.out.with_suffix(".md").write_text(page(told, picture.name), encoding="utf-8")
    print(f"{checked_table(told)}\nwrote {arguments.out}.md and .png")
    if any(abs(foretold_seconds(told, one) / one["seconds"] - 1) > WITHIN for one in told["rounds"].values()):
        raise SystemExit(f"the simulation is off by more than {WITHIN:.0%}")


if __name__ == "__main__":
    main()
