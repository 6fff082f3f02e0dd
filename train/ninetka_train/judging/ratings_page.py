"""Write and read the Markdown pages of ratings, such as docs/ratings/ninetka.md."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from ninetka_train.judging.evaluate import Evaluation
from ninetka_train.judging.report import heading_lines, strongest_first
from ninetka_train.judging.texts import elo_text, share_text
from ninetka_train.machine import describe_machine

_PACKAGE = Path(__file__).resolve().parents[1]
_INSTALLED, _CHECKOUT = _PACKAGE / "ratings", _PACKAGE.parents[1] / "docs" / "ratings"
RATINGS = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT
"""Folder of the pages of this package's games: in the installed package, or in the checkout it is imported from."""


def ratings_page(evaluation: Evaluation, path: str, named: Sequence[str] = ()) -> str:
    """Return the ratings as a Markdown page, strongest agent first.

    Args:
        evaluation: figures of the pool.
        path: path of the page, which is part of the command that the page quotes.
        named: specs of the agents in that command; empty for the default pool.
    """
    settings = evaluation.settings
    asked = {"game": settings.game, "games": settings.num_games, "seed": settings.seed}
    asked |= {"opening-plies": settings.opening_plies, "anchor": evaluation.anchor, "markdown": path}
    options = [item for key, value in asked.items() if value is not None for item in (f"--{key}", str(value))]
    title = settings.variant.definition.title
    rows = [
        (
            agent.name,
            elo_text(agent.elo, agent.elo_interval),
            share_text(agent.share, agent.interval),
            str(agent.games),
            _seconds(agent.seconds),
        )
        for agent in strongest_first(evaluation.agents)
    ]
    zero = f"`{evaluation.anchor}` is 0" if evaluation.anchor else "the mean of the pool is 0"
    return "\n".join(
        [
            f"# Ratings: {title}, {settings.num_players} players",
            "",
            f"Round robin with rotated seats; {zero}. Intervals are 95 %: cluster-robust by rotation for ratings, "
            "Wilson's for win rates; a draw counts as 1 / n of a win for each of n seats. A rating has no "
            "interval if games do not bound it: if two agents did not both win games against each other, directly or "
            "through other agents. Games were played in batches: s/move is the time of a batch / its moves. "
            f"Written on {describe_machine()} by `{shlex.join(['ninetka', 'rate', *named, *options])}`.",
            "",
            *markdown_table(("agent", "Elo [95 %]", "wins % [95 %]", "games", "s/move"), rows),
            "",
            *(f"{line}  " for line in heading_lines(evaluation)),
            "",
        ]
    )


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.3g}"


def read_ratings(game: str) -> dict[str, str]:
    """Return the ratings and intervals on the page of a game, by agent; networks without search by their names.

    A game without a page has none.
    """
    path = RATINGS / f"{game}.md"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", text, re.MULTILINE)
    return {agent.removeprefix("net:"): rating.strip() for agent, rating in rows}


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, is_code: bool = True) -> list[str]:
    """Return the lines of a Markdown table; with `is_code`, the first column, with specs, is formatted as code."""
    first = "`{}`" if is_code else "{}"
    lines = [columns, ["---"] * len(columns), *([first.format(row[0]), *row[1:]] for row in rows)]
    return ["| " + " | ".join(line) + " |" for line in lines]
