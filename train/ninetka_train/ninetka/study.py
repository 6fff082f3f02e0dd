"""What perfect play says about two-player 9tka: who wins after whose placement, how rare winning moves are, who errs.

    ninetka study docs/perfect-play

plays agents against themselves from random neutral stones, solves what it can, and writes a page of tables
(`.md`), a picture (`.png`) and the figures (`.json`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ninetka_agents import make_agent
from ninetka_agents.ninetka.solver.solver import solve_batch
from ninetka_env.core.files import replace_files, with_ending
from ninetka_env.core.registry import get_definition
from ninetka_train import package_version
from ninetka_train.judging.arena import Results, play_games
from ninetka_train.judging.intervals import Interval, clustered_interval, wilson
from ninetka_train.judging.report import markdown_table
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
ORDERS = ("restart", "continue")
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
    """Games per agent and turn order."""
    seed: int
    second_wins: dict[str, dict[str, Proportion]]
    """By placer and turn order: first slides that seat 1 wins, of those solved."""
    solved: dict[str, dict[str, Proportion]]
    """By placer and turn order: first slides that were solved."""
    winning: dict[str, dict[int, float | None]]
    """By placer and slides made: mean share of the moves that win, in won positions whose moves are all solved."""
    complete: dict[str, dict[int, Proportion]]
    """By placer and slides made: won positions whose moves are all solved."""
    blunders: dict[str, Proportion]
    """By agent: won decisions that gave the win away; both turn orders."""
    unsolved: dict[str, Proportion]
    """By agent: decisions that were not solved."""


def study(games: int = 50, seed: int = 0, progress: Callable[[str], None] = lambda what: None) -> Study:
    """Play, solve and count.

    Args:
        games: per agent and turn order.
        seed: decides every game.
        progress: told what comes next.
    """
    decisions: dict[str, list[Decisions]] = {}
    second, solved = {}, {}
    for spec in dict.fromkeys((*PLACERS, *AGENTS)):
        progress(spec)
        played = {order: _play(spec, games, seed, order) for order in ORDERS}
        decisions[spec] = [find_decisions(results, NODES, moves=spec in PLACERS) for results in played.values()]
        if spec in PLACERS:
            second[spec], solved[spec] = _first_slides(played)
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


def _play(spec: str, games: int, seed: int, order: str) -> Results:
    """Let an agent play itself."""
    return play_games([make_agent(spec)], 2, games, seed=seed, neutral_placement="random", turn_order=order)


def _first_slides(played: dict[str, Results]) -> tuple[dict[str, Proportion], dict[str, Proportion]]:
    """Solve the first slides of games, by turn order: how many seat 1 wins, and how many could be solved."""
    second, solved = {}, {}
    for order, results in played.items():
        winners, _ = solve_batch(first_slides(results), FIRST_NODES, moves=False)
        known = int((winners >= 0).sum())
        second[order], solved[order] = (
            Proportion.of(int((winners == 1).sum()), known),
            Proportion.of(known, len(winners)),
        )
    return second, solved


def _winning_moves(parts: Sequence[Decisions], slides: int) -> float | None:
    chosen = [part.won & part.complete & (part.slides == slides) for part in parts]
    shares = np.concatenate([(part.winning / part.legal)[rows] for part, rows in zip(parts, chosen, strict=True)])
    return float(shares.mean()) if len(shares) else None


def _complete(parts: Sequence[Decisions], slides: int) -> Proportion:
    chosen = np.concatenate([part.complete[part.won & (part.slides == slides)] for part in parts])
    return Proportion.of(int(chosen.sum()), len(chosen))


def _share(parts: Sequence[Decisions], counted: str, of: str) -> Proportion:
    """Count decisions; games of the same number start from the same stones under either turn order."""
    rows = [getattr(part, of) > 0 for part in parts]
    hits, games = (
        np.concatenate([getattr(part, name)[chosen] for part, chosen in zip(parts, rows, strict=True)])
        for name in (counted, "games")
    )
    return Proportion.among(hits, games)


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
    first = [
        (spec, *(str(found.second_wins[spec][order]) for order in ORDERS), _least(found.solved[spec]))
        for spec in PLACERS
    ]
    winning = [
        (spec, *(_winning_cell(found.winning[spec][slides], found.complete[spec][slides]) for slides in SLIDES))
        for spec in PLACERS
    ]
    blunders = [
        (spec, str(share.total), str(share), f"{100 * found.unsolved[spec].count / found.unsolved[spec].total:.1f}")
        for spec, share in found.blunders.items()
    ]
    return "\n".join(
        [
            "# What perfect play says about two-player 9tka",
            "",
            f"Each agent plays itself in {found.games} games per turn order, from random neutral stones (seed "
            f"{found.seed}); the exact solver (`ninetka_agents.ninetka.solver`) judges the movement phase, "
            f"with {NODES:,} nodes a "
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
            "Share of placements that seat 1, the second to place, wins under perfect play, % [95 %]. With `restart` "
            "seat 0 opens the movement phase, with `continue` the turns simply go on.",
            "",
            *markdown_table(("placed by", *ORDERS, "solved %, at least"), first),
            "",
            "## How many moves keep a win",
            "",
            "Mean share of the legal moves that win, in positions that the mover wins, by slides made before, %; in "
            "brackets, in how many of these positions every move could be solved: only they count, and early on they "
            "are the easier ones.",
            "",
            *markdown_table(("played by", *map(str, SLIDES)), winning),
            "",
            "## Who gives wins away",
            "",
            "Decisions in won positions that gave the win away; both turn orders. The intervals allow for decisions "
            "of one game that hang together.",
            "",
            *markdown_table(("agent", "won decisions", "blunders % [95 %]", "unsolved %"), blunders),
            "",
        ]
    )


def _winning_cell(share: float | None, complete: Proportion) -> str:
    return "-" if share is None else f"{100 * share:.0f} ({complete.count} of {complete.total})"


def _least(solved: dict[str, Proportion]) -> str:
    return f"{100 * min(share.count / share.total for share in solved.values()):.0f}"


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
