"""The report of a run, which may still be training: tables for a terminal, pictures and a page."""

from __future__ import annotations

import textwrap
from functools import partial
from pathlib import Path

from rich.text import Text

from ninetka_env.core.files import replace_files
from ninetka_train.judging.report import new_table, report_console
from ninetka_train.reporting.run_data import read_run, report_tables, summary
from ninetka_train.reporting.style import picture_pair, picture_paths

PNG, HTML = "report.png", "report.html"
MAX_CELL_WIDTH = 28
"""Maximum columns of a table's cell in the terminal."""


def write_report(folder: Path) -> None:
    """Write `report.png`, `report-dark.png` and `report.html` into the folder of a run: all of them, or none.

    Raise errors as `read_run` does.
    """
    from ninetka_train.reporting.figures import draw_report  # matplotlib is slow to import
    from ninetka_train.reporting.page import write_page

    run = read_run(folder)
    pictures = picture_pair(folder / PNG, partial(draw_report, run))
    replace_files({**pictures, folder / HTML: [write_page(run).encode()]})


def _folded(cell: str) -> str:
    """Return a cell, long agents' specs in lines that end after commas, so that tables fit 80 columns."""
    if len(cell) <= MAX_CELL_WIDTH:
        return cell
    return textwrap.fill(cell.replace(",", ", "), MAX_CELL_WIDTH, break_on_hyphens=False).replace(", ", ",")


def print_run(folder: Path) -> None:
    """Print the tables of a run, and the paths of its report."""
    run, console = read_run(folder), report_console()
    console.print(Text(f"{run.name}: {summary(run)}"))
    for sheet in report_tables(run):
        table = new_table(sheet.title, *sheet.columns, note=sheet.note)
        for row in sheet.rows:
            table.add_row(*(Text(_folded(cell)) for cell in row))
        console.print()
        console.print(table)
    console.print()
    for path in (*picture_paths(folder / PNG), folder / HTML):
        if path.exists():
            console.print(Text(f"{path}"))
