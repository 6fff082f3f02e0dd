"""A study of two-player 9tka with the exact solver: winners after placement, number of winning moves, blunder rates.

`ninetka study --out docs/perfect-play` plays each agent against itself from random neutral stones, solves the
positions, and writes a page of tables (`.md`), a plot (`.png`, `-dark.png`) and the numbers (`.json`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ninetka_agents import make_agent
from ninetka_agents.ninetka.solver.solver import solve_batch
from ninetka_env import __version__
from ninetka_env.core.files import replace_files, with_extension
from ninetka_env.core.options import check_count
from ninetka_env.core.random_streams import check_seed
from ninetka_env.core.registry import get_definition
from ninetka_train.judging.arena import play_games
from ninetka_train.judging.ratings import Interval, clustered_interval, wilson_interval
from ninetka_train.judging.ratings_page import markdown_table
from ninetka_train.ninetka.blunders import Decisions, find_decisions, first_slide_positions
from ninetka_train.reporting.style import (
    HEIGHT,
    INK,
    WIDTH,
    add_caption,
    counted,
    markdown_pair,
    picture_pair,
    series,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLACERS = ("random", "maxn", "mcts:simulations=2000", "net")
"""Agents whose placements are evaluated by solving the first position of the movement phase."""
AGENTS = (
    "random",
    *(f"maxn:depth={depth}" for depth in range(1, 8)),
    *(f"mcts:simulations={count}" for count in (100, 400, 2000, 8000)),
    "net",
    "net:simulations=64",
)
"""Agents whose decisions in the movement phase are evaluated."""
SLIDES = (2, 4, 8, 12, 16, 20)
"""Winning moves are counted in positions with these numbers of slides made."""
FIRST_NODES, NODES = 2_000_000, 50_000
"""Maximum number of solver nodes: for the first position of a movement phase, and for each decision."""


@dataclass(frozen=True)
class Proportion:
    """A count, its total and the 95 % confidence interval of the proportion; the interval is None if the total is 0."""

    count: int
    total: int
    interval: Interval | None

    @classmethod
    def of(cls, count: int, total: int) -> Proportion:
        """Return a proportion of independent cases."""
        return cls(count, total, wilson_interval(count, total) if total else None)

    @classmethod
    def of_clusters(cls, hits: npt.NDArray[np.bool_], clusters: npt.NDArray[np.int64]) -> Proportion:
        """Return a proportion of cases in clusters; see `clustered_interval`."""
        return cls(int(hits.sum()), len(hits), clustered_interval(hits, clusters) if len(hits) else None)

    def __str__(self) -> str:
        """Return the percentage and its interval."""
        if self.interval is None:
            return "-"
        low, high = self.interval
        return f"{100 * self.count / self.total:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


@dataclass(frozen=True)
class StudyResult:
    """Results of `study` by agent: wins of seat 1 after placement, shares of winning moves, and blunders."""

    games: int
    """Games per agent."""
    seed: int
    second_wins: dict[str, Proportion]
    """By agent that placed: how many of the solved first positions of the movement phase seat 1 wins."""
    solved: dict[str, Proportion]
    """By agent that placed: how many of the first positions of the movement phase were solved."""
    winning: dict[str, dict[int, float | None]]
    """By agent and number of slides made: mean share of the legal moves that win. Only positions that the mover can win
    and whose moves are all solved count; None without such positions."""
    complete: dict[str, dict[int, Proportion]]
    """By agent and number of slides made: in how many of the positions that the mover can win all moves are solved."""
    blunders: dict[str, Proportion]
    """By agent: how many of the decisions in positions that the mover can win gave the win away."""
    unsolved: dict[str, Proportion]
    """By agent: how many of the decisions were not solved."""


def study(games: int = 100, seed: int = 0, progress: Callable[[str], None] = lambda what: None) -> StudyResult:
    """Play the games, solve their positions and return the counts.

    Args:
        games: number of games per agent.
        seed: random seed of all games.
        progress: called with the spec of each agent before its games.

    Raises:
        ValueError: if the number of games or the seed is not allowed.
    """
    check_count("games", games)
    check_seed(seed)
    agents = {spec: make_agent(spec) for spec in dict.fromkeys((*PLACERS, *AGENTS))}
    decisions: dict[str, Decisions] = {}
    second, solved = {}, {}
    for spec, agent in agents.items():
        progress(spec)
        results = play_games([agent], 2, games, seed=seed, neutral_placement="random")
        decisions[spec] = find_decisions(results, NODES, moves=spec in PLACERS)
        if spec in PLACERS:
            winners, _ = solve_batch(first_slide_positions(results)[1], FIRST_NODES, moves=False)
            known = int((winners >= 0).sum())
            second[spec] = Proportion.of(int((winners == 1).sum()), known)
            solved[spec] = Proportion.of(known, len(winners))
    return StudyResult(
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
    """Return in how many of some decisions an attribute is true. Each game is a cluster.

    Args:
        decisions: all decisions.
        counted: name of the attribute of `Decisions`.
        of: name of another attribute; only decisions where it is true or above 0 are used.
    """
    rows = getattr(decisions, of) > 0
    return Proportion.of_clusters(getattr(decisions, counted)[rows], decisions.games[rows])


def write_study(found: StudyResult, path: Path) -> None:
    """Write the study to `path` with the suffixes .md, .png, -dark.png and .json: all files, or none if one fails."""
    values = {"environment": get_definition("ninetka").version, "package": __version__, **asdict(found)}
    picture = with_extension(path, ".png")
    replace_files(
        {
            with_extension(path, ".md"): [markdown_page(found, picture).encode()],
            **picture_pair(picture, partial(draw_study, found)),
            with_extension(path, ".json"): [(json.dumps(values, indent=1) + "\n").encode()],
        }
    )


def markdown_page(found: StudyResult, picture: Path) -> str:
    """Return the page as Markdown; `picture` is the path of the light picture, in the same folder."""
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
            f"exact solver (`ninetka_agents.ninetka.solver`) evaluates the movement phase, with {NODES:,} nodes per "
            f"decision and {FIRST_NODES:,} for the first slide. This page is generated by",
            "",
            "```sh",
            f"ninetka study --out docs/perfect-play --games {found.games} --seed {found.seed}",
            "```",
            "",
            markdown_pair("Blunders and winning moves", picture),
            "",
            "## Who wins from the first slide",
            "",
            "How often seat 1, which places second, wins under perfect play after each agent's placements, % [95 %]; "
            "seat 0 makes the first slide.",
            "",
            *markdown_table(("placed by", "seat 1 wins %", "solved %"), first),
            "",
            "## How many moves keep a win",
            "",
            "Mean fraction of legal moves that win, %, in won positions (for the side to move), by the number of "
            "slides made before. Only positions in which every move was solved are counted; brackets give their number "
            "and the number of won positions. Early in the game these are the easier positions.",
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


def draw_study(found: StudyResult) -> Figure:
    """Return a figure with the blunder rates and the share of winning moves by the number of slides made."""
    from matplotlib.figure import Figure  # matplotlib is slow to import

    figure = Figure((WIDTH, 1.7 * HEIGHT))
    add_caption(figure, study_caption(found))
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    known = {spec: share for spec, share in found.blunders.items() if share.interval}
    rates = np.array([100 * share.count / share.total for share in known.values()])
    bounds = 100 * np.array([share.interval for share in known.values()]).T
    left.barh(range(len(known)), rates, color=series(0)["color"], xerr=np.abs(bounds - rates), ecolor=INK, capsize=2)
    left.set_yticks(range(len(known)), list(known))
    left.invert_yaxis()
    left.grid(axis="y", visible=False)
    left.set(xlabel="wins given away per decision, %", title="Blunders in won positions")
    for number, (spec, shares) in enumerate(found.winning.items()):
        points = [(slides, 100 * share) for slides, share in shares.items() if share is not None]
        right.plot([slides for slides, _ in points], [share for _, share in points], label=spec, **series(number))
    right.set_xticks(SLIDES)
    right.set(xlabel="slides made", ylabel="moves that win, %", title="Winning moves in won positions", ylim=(0, 102))
    right.legend(title="played by")
    return figure


def study_caption(found: StudyResult) -> str:
    """Return the caption of the figure: the numbers of games, decisions and positions, and what the bars are."""
    decisions = counted(share.total for share in found.blunders.values())
    positions = counted(
        complete.count
        for spec, shares in found.winning.items()
        for slides, complete in found.complete[spec].items()
        if shares[slides] is not None
    )
    return (
        f"Two-player 9tka, {found.games:,} games per agent against itself, seed {found.seed}. Blunders: {decisions} "
        f"decisions per agent; bars: 95 % intervals, with games as clusters. Winning moves: means over {positions} "
        "solved positions per point, without intervals."
    )
