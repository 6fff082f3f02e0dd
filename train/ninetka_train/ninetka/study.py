"""What perfect play says about two-player 9tka: who wins after whose placement, how rare winning moves are, who errs.

    ninetka study docs/perfect-play

plays agents against themselves from random neutral stones, solves what it can, and writes a page of tables
(`.md`), a picture (`.png`) and the figures (`.json`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ninetka_agents import make_agent
from ninetka_agents.ninetka.solver.solver import solve_batch
from ninetka_env.core.files import replace_files, with_ending
from ninetka_env.core.registry import get_definition
from ninetka_train.judging.arena import play_games
from ninetka_train.judging.ratings import Interval, clustered_interval, wilson
from ninetka_train.judging.report import markdown_table
from ninetka_train.machine import package_version
from ninetka_train.ninetka.blunders import Decisions, find_decisions, first_slides

PLACERS = ("random", "maxn", "mcts:simulations=2000", "net")
"""Whose placements are solved from the first slide."""
AGENTS = (
    "random",
    *(f"maxn:depth={depth}" for depth in range(1, 8)),
    *(f"mcts:simulations={count}" for count in (100, 400, 2000, 8000)),
    "net",
    "net:simulations=64",
)
"""Whose movement decisions are judged."""
SLIDES = (2, 4, 8, 12, 16, 20)
"""Slides made, where winning moves are counted."""
FIRST_NODES, NODES = 2_000_000, 50_000
"""Nodes per position that the solver may visit: at the first slide, at any decision."""


@dataclass(frozen=True)
class Proportion:
    """A count of a total, with the 95 % interval of its share; None if there is no total."""

    count: int
    total: int
    interval: Interval | None

    @classmethod
    def of(cls, count: int, total: int) -> Proportion:
        """Make a share of independent cases."""
        return cls(count, total, wilson(count, total) if total else None)

    @classmethod
    def among(cls, hits: npt.NDArray[np.bool_], clusters: npt.NDArray[np.int64]) -> Proportion:
        """Make a share of cases in clusters; see `clustered_interval`."""
        return cls(int(hits.sum()), len(hits), clustered_interval(hits, clusters) if len(hits) else None)

    def __str__(self) -> str:
        """Write it in percent."""
        if self.interval is None:
            return "-"
        low, high = self.interval
        return f"{100 * self.count / self.total:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


@dataclass(frozen=True)
class Study:
    """Everything that the page shows."""

    games: int
    """Games per agent."""
    seed: int
    second_wins: dict[str, Proportion]
    """By placer: first slides that seat 1 wins, of those solved."""
    solved: dict[str, Proportion]
    """By placer: first slides that were solved."""
    winning: dict[str, dict[int, float | None]]
    """By placer and slides made: mean share of the moves that win, in won positions whose moves are all solved."""
    complete: dict[str, dict[int, Proportion]]
    """By placer and slides made: won positions whose moves are all solved."""
    blunders: dict[str, Proportion]
    """By agent: won decisions that gave the win away."""
    unsolved: dict[str, Proportion]
    """By agent: decisions that were not solved."""


def study(games: int = 100, seed: int = 0, progress: Callable[[str], None] = lambda what: None) -> Study:
    """Play, solve and count.

    Args:
        games: per agent.
        seed: decides every game.
        progress: told what comes next.
    """
    decisions: dict[str, Decisions] = {}
    second, solved = {}, {}
    for spec in dict.fromkeys((*PLACERS, *AGENTS)):
        progress(spec)
        results = play_games([make_agent(spec)], 2, games, seed=seed, neutral_placement="random")
        decisions[spec] = find_decisions(results, NODES, moves=spec in PLACERS)
        if spec in PLACERS:
            winners, _ = solve_batch(first_slides(results), FIRST_NODES, moves=False)
            known = int((winners >= 0).sum())
            second[spec] = Proportion.of(int((winners == 1).sum()), known)
            solved[spec] = Proportion.of(known, len(winners))
    return Study(
        games=games,
        seed=seed,
        second_wins=second,
        solved=solved,
        winning={spec: {slides: _winning_moves(decisions[spec], slides) for slides in SLIDES} for spec in PLACERS},
        complete={spec: {slides: _complete(decisions[spec], slides) for slides in SLIDES} for spec in PLACERS},
        blunders={spec: _share(decisions[spec], "blunders", "won") for spec in AGENTS},
        unsolved={spec: _share(decisions[spec], "unknown", "legal") for spec in AGENTS},
    )


def _winning_moves(decisions: Decisions, slides: int) -> float | None:
    chosen = decisions.won & decisions.complete & (decisions.slides == slides)
    return float((decisions.winning / decisions.legal)[chosen].mean()) if chosen.any() else None


def _complete(decisions: Decisions, slides: int) -> Proportion:
    chosen = decisions.complete[decisions.won & (decisions.slides == slides)]
    return Proportion.of(int(chosen.sum()), len(chosen))


def _share(decisions: Decisions, counted: str, of: str) -> Proportion:
    """Count decisions, those of one game together."""
    rows = getattr(decisions, of) > 0
    return Proportion.among(getattr(decisions, counted)[rows], decisions.games[rows])


def write_study(found: Study, path: Path) -> None:
    """Write `path` with the endings .md, .png and .json, all or none."""
    values = {"environment": get_definition("ninetka").version, "package": package_version(), **asdict(found)}
    contents = {
        with_ending(path, ".md"): page(found, with_ending(path, ".png").name).encode(),
        with_ending(path, ".png"): picture(found),
        with_ending(path, ".json"): (json.dumps(values, indent=1) + "\n").encode(),
    }
    replace_files({target: [content] for target, content in contents.items()})


def page(found: Study, picture_name: str) -> str:
    """Return the page as Markdown."""
    first = [(spec, str(found.second_wins[spec]), _percent(found.solved[spec])) for spec in PLACERS]
    winning = [
        (spec, *(_winning_cell(found.winning[spec][slides], found.complete[spec][slides]) for slides in SLIDES))
        for spec in PLACERS
    ]
    blunders = [
        (spec, str(share.total), str(share), _percent(found.unsolved[spec])) for spec, share in found.blunders.items()
    ]
    return "\n".join(
        [
            "# What perfect play says about two-player 9tka",
            "",
            f"Each agent plays itself in {found.games} games, from random neutral stones (seed {found.seed}); the "
            f"exact solver (`ninetka_agents.ninetka.solver`) judges the movement phase, with {NODES:,} nodes a "
            f"decision and {FIRST_NODES:,} at the first slide. This page is written by",
            "",
            "```sh",
            f"ninetka study docs/perfect-play --games {found.games} --seed {found.seed}",
            "```",
            "",
            f"![Blunders and winning moves]({picture_name})",
            "",
            "## Who wins from the first slide",
            "",
            "How often seat 1, the second to place, wins under perfect play after each agent's placements, % [95 %]; "
            "seat 0 makes the first slide.",
            "",
            *markdown_table(("placed by", "seat 1 wins %", "solved %"), first),
            "",
            "## How many moves keep a win",
            "",
            "Mean fraction of legal moves that win, %, in won positions (for the side to move), by the number of "
            "slides made before. Only positions in which every move could be solved count; brackets give their number "
            "and the number of won positions. Early in the game these are the easier ones.",
            "",
            *markdown_table(("played by", *map(str, SLIDES)), winning),
            "",
            "## Who gives wins away",
            "",
            "Blunder rate: the percentage of decisions in won positions that gave the win away. The intervals account "
            "for correlated decisions within a game.",
            "",
            *markdown_table(("agent", "won decisions", "blunders % [95 %]", "unsolved %"), blunders),
            "",
        ]
    )


def _winning_cell(share: float | None, complete: Proportion) -> str:
    return "-" if share is None else f"{100 * share:.0f} ({complete.count} of {complete.total})"


def _percent(share: Proportion) -> str:
    return f"{100 * share.count / share.total:.1f}"


def picture(found: Study) -> bytes:
    """Return a PNG: blunder rates with intervals, and how the share of winning moves grows."""
    import io

    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    known = {spec: share for spec, share in found.blunders.items() if share.interval}
    rates = np.array([100 * share.count / share.total for share in known.values()])
    bounds = 100 * np.array([share.interval for share in known.values()]).T
    places = np.arange(len(known))
    left.barh(places, rates, color="#4878a8", xerr=np.abs(bounds - rates), ecolor="#333333", capsize=2)
    left.set_yticks(places, list(known))
    left.invert_yaxis()
    left.set(xlabel="wins given away per decision in a won position, %", title="Blunders")
    for spec, shares in found.winning.items():
        points = [(slides, 100 * share) for slides, share in shares.items() if share is not None]
        right.plot(*zip(*points, strict=True), marker="o", label=spec)
    right.set(xlabel="slides made", ylabel="moves that win, %", title="Winning moves in won positions", ylim=(0, 102))
    right.legend(title="played by", frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()
