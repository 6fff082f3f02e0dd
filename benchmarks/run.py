"""Run the benchmarks, each in its own process, and print one table (`ninetka speed`).

Each benchmark is a module of this package that prints its rows with functions of `benchmarks.measure`.
"""

from __future__ import annotations

import ast
import json
import math
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Row
from ninetka_env.core.text import did_you_mean
from ninetka_train.machine import describe_machine

BENCHMARKS = ("vector", "aec", "go", "kropki", "search", "solver", "networks", "train", "startup", "web")
SLOW_BENCHMARKS = ("architecture", "ppo", "sb3", "values")
"""Benchmarks that run only if named."""
ROOT = Path(__file__).resolve().parent.parent


def main(argv: Sequence[str]) -> int:
    """Run the benchmarks named in `argv`, or all except the slow ones if it is empty; return the exit status."""
    known = BENCHMARKS + SLOW_BENCHMARKS
    if "--help" in argv:
        for title, names in {"Benchmarks": BENCHMARKS, "Slow benchmarks": SLOW_BENCHMARKS}.items():
            print(f"\n{title}:", *map(described, names), sep="\n")
        return 0
    if unknown := [name for name in argv if name not in known]:
        hint = did_you_mean(unknown[0], known)
        print(f"error: unknown benchmark {unknown[0]!r}: known are {', '.join(known)}{hint}", file=sys.stderr)
        return 2
    table = Table()
    for heading in ("what", "ours", "reach", "peer's", "ratio", "peer, or note"):
        table.add_column(heading, justify="right" if heading in ("ours", "reach", "peer's", "ratio") else "left")
    for name in argv or BENCHMARKS:
        for row in measure(name):
            table.add_row(*cells(row))
            print(f"{row.what}: {format_number(row.ours)} {row.unit}", file=sys.stderr)
    write_table(table, Console())
    return 0


def described(name: str) -> str:
    """Return the name of a benchmark with the first line of its docstring, in lines of up to 80 characters."""
    source = (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")
    about = (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
    return textwrap.fill(f"{name:<13} {about}", 80, initial_indent="  ", subsequent_indent=16 * " ")


def write_table(table: Table, console: Console) -> None:
    """Print the machine and the table; in Markdown, with each row on one line, if `console` is not a terminal."""
    console.width = max(150, console.width)
    if not console.is_terminal:
        table.box, console.width = box.MARKDOWN, 1000
    console.print(f"ninetka on {describe_machine()}\n", table, sep="", highlight=False)


def measure(name: str) -> Iterator[Row]:
    """Run one benchmark and yield its rows as it prints them."""
    command = [sys.executable, "-m", f"benchmarks.{name}"]
    # In its own process group the benchmark does not receive Ctrl-C; this process kills it instead.
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, process_group=0) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                yield Row(**json.loads(line))
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise SystemExit(f"error: benchmark {name!r} ended with status {process.returncode}")


def cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a row as text."""
    note = ", ".join(filter(None, (row.peer_name, row.note)))
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}" if row.ratio < 10 else f"{row.ratio:.0f}"
    target = "" if row.target is None else ("at most " if row.lower_is_better else "") + format_number(row.target)
    peer = "" if row.peer is None else format_number(row.peer)
    return row.what, f"{format_number(row.ours)} {row.unit}", target, peer, ratio, note


def format_number(number: float) -> str:
    """Format a number with three significant digits; NaN, which means not measured, becomes a dash."""
    if math.isnan(number):
        return "-"
    for size, letter in ((1e6, " M"), (1e4, " k")):
        if number >= size:
            return f"{number / (1e6 if letter == ' M' else 1e3):.3g}{letter}"
    return f"{number:.3g}" if number < 1000 else f"{number:.0f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
