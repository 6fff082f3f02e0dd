"""Analysis of 9tka's movement phase by perfect play: each ply of a finished two-player game, or a single position.

Start reading at `analyze`. The solver is `ninetka_agents.ninetka.solver`.

The commands `ninetka analyze` and `ninetka solve` print the results.

    analysis = analyze(find_record("games.txt", 1))
    print(*analysis_text(analysis), sep="; ")
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ninetka_agents.ninetka.exact_maxn import solve_max_n
from ninetka_agents.ninetka.force import can_force_win
from ninetka_agents.ninetka.solver.solver import LOST, UNKNOWN, WON, Budget, solve, solve_batch, value_for
from ninetka_env.api.records import GameRecord
from ninetka_env.games.ninetka.game import Game
from ninetka_env.games.ninetka.geometry import action_name
from ninetka_env.games.ninetka.rules import Phase
from ninetka_env.games.ninetka.text import SEATS
from ninetka_train.reporting.style import HEIGHT, INK, WIDTH, add_caption, series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OUTCOMES = {WON: "won", UNKNOWN: "unknown", LOST: "lost"}


@dataclass(frozen=True)
class PlyAnalysis:
    """One ply of the movement phase, from the point of view of the seat that played it."""

    ply: int
    """`Game.ply` before the slide."""
    seat: int
    action: int
    move: str
    """The name of the action."""
    before: str
    """The value of the position under perfect play for this seat: won, lost or unknown."""
    after: str
    """The value after the slide, for the same seat."""
    legal: int
    """Number of legal actions."""
    winning: list[str]
    """Names of the actions known to win."""
    unknown_moves: int
    """Number of legal actions whose value is unknown."""
    mistake: bool
    """Whether the slide gave a won position away."""


@dataclass(frozen=True)
class Analysis:
    """A game's movement phase, ply by ply."""

    winner: int
    """The seat that won the game."""
    nodes: int
    """The solver's node limit per position."""
    plies: list[PlyAnalysis]
    first_mistake: int | None
    """`ply` of the first known mistake, or None."""
    unknown: int
    """Number of plies whose position before the slide was not solved within the limit."""


def analyze(record: GameRecord, nodes: int = 2_000_000, threads: int = 0) -> Analysis:
    """Solve every position of a game's movement phase.

    Args:
        record: the game record of a two-player game.
        nodes: maximum number of solver nodes per position, to find the values of the position and of all its moves.
        threads: maximum number of threads; 0 for one per core.

    Raises:
        ValueError: if the record is of another game, has more players, is invalid, or ended before its movement phase.
    """
    if record.variant.definition.name != "ninetka":
        raise ValueError(f"only games of 9tka can be analyzed; this one is of {record.variant.definition.title}")
    if record.num_players != 2:
        raise ValueError(f"only two-player games can be analyzed; this one has {record.num_players} players")
    games = [game for game in record.replay() if game.stage == Phase.MOVEMENT]
    if not games:
        raise ValueError("the game ended before its movement phase: there is nothing to analyze")
    winners, values = solve_batch(np.concatenate([game.records for game in games]), nodes, threads)
    plies = []
    for place, action in enumerate(record.actions[len(record.actions) - len(games) + 1 :]):
        game, value = games[place], int(values[place, action])
        before = value_for(int(winners[place]), game.to_move)
        plies.append(
            PlyAnalysis(
                ply=game.ply,
                seat=game.to_move,
                action=action,
                move=action_name(action),
                before=OUTCOMES[before],
                after=OUTCOMES[value],
                legal=len(game.legal_actions()),
                winning=[action_name(int(other)) for other in np.flatnonzero(values[place] == WON)],
                unknown_moves=int((values[place, game.legal_actions()] == UNKNOWN).sum()),
                mistake=before == WON and value == LOST,
            )
        )
    first = next((ply.ply for ply in plies if ply.mistake), None)
    return Analysis(record.winner, nodes, plies, first, sum(ply.before == OUTCOMES[UNKNOWN] for ply in plies))


def analysis_text(analysis: Analysis) -> Iterator[str]:
    """Yield the analysis as lines of text."""
    yield "ply  seat    move  before   after    winning moves"
    for ply in analysis.plies:
        winning = f"{_winning_count(ply)} of {ply.legal}" + (f": {' '.join(ply.winning)}" if ply.mistake else "")
        mark = "  <- mistake" if ply.mistake else ""
        yield f"{ply.ply:3}  {SEATS[ply.seat]:7} {ply.move:5} {ply.before:8} {ply.after:8} {winning}{mark}"
    if analysis.first_mistake is None:
        yield "no mistake is known" if analysis.unknown else "no mistake"
    else:
        mistakes = [sum(ply.mistake for ply in analysis.plies if ply.seat == seat) for seat in (0, 1)]
        counted = ", ".join(f"{SEATS[seat]} {count}" for seat, count in enumerate(mistakes))
        yield f"first mistake at ply {analysis.first_mistake}; mistakes: {counted}"
    if analysis.unknown:
        yield f"{analysis.unknown} positions were not solved within {analysis.nodes} nodes"


def _winning_count(ply: PlyAnalysis) -> str:
    """Return how many moves win, as a range if some are unknown."""
    known = len(ply.winning)
    return f"{known} to {known + ply.unknown_moves}" if ply.unknown_moves else str(known)


def analysis_dict(analysis: Analysis) -> dict[str, Any]:
    """Return the analysis as plain values for JSON; the keys are the fields of `Analysis`."""
    return dataclasses.asdict(analysis)


def draw_analysis(analysis: Analysis) -> Figure:
    """Return a figure of the seat that is winning at each ply, the share of moves that win, and the mistakes."""
    from matplotlib.figure import Figure  # matplotlib is slow to import
    from matplotlib.ticker import MaxNLocator

    figure = Figure((WIDTH, 1.3 * HEIGHT))
    add_caption(figure, analysis_caption(analysis))
    axes = figure.subplots()
    _draw_winning_seats(axes, analysis)
    for seat, name in enumerate(SEATS[:2]):
        own = [ply for ply in analysis.plies if ply.seat == seat and not ply.unknown_moves]
        shares = [100 * len(ply.winning) / ply.legal for ply in own]
        axes.plot([ply.ply for ply in own], shares, label=f"seat {seat} ({name}) to move", **seat_series(seat))
    wrong = [(ply.ply, 100 * len(ply.winning) / ply.legal) for ply in analysis.plies if ply.mistake]
    axes.plot([x for x, _ in wrong], [y for _, y in wrong], "x", color=INK, ms=11, mew=2, label="gives the win away")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel="ply", ylabel="moves that win, %", ylim=(-5, 105), title="Moves that win, by ply")
    axes.grid(axis="x", visible=False)
    figure.legend(loc="outside lower left", ncols=3)
    return figure


def seat_series(seat: int) -> dict[str, Any]:
    """Return the style of a seat's curve: orange for yellow, which would be too pale on white, and blue for blue."""
    return series(1 - seat)


def analysis_caption(analysis: Analysis) -> str:
    """Return the caption of the figure: the number of decisions, and what the background is."""
    left_out = sum(ply.unknown_moves > 0 for ply in analysis.plies)
    return (
        f"Perfect play in n = {len(analysis.plies)} decisions, of which {analysis.unknown} were not solved within "
        f"{analysis.nodes:,} nodes; exact values, so without intervals. The curves leave out {left_out} decisions with "
        "moves of unknown value. Background: the seat that is winning, plain for seat 0, hatched for seat 1, and none "
        "if not solved."
    )


def _draw_winning_seats(axes: Axes, analysis: Analysis) -> None:
    for ply in analysis.plies:
        if ply.before != OUTCOMES[UNKNOWN]:
            seat = ply.seat if ply.before == OUTCOMES[WON] else 1 - ply.seat
            colour = seat_series(seat)["color"]
            axes.axvspan(
                ply.ply - 0.5,
                ply.ply + 0.5,
                facecolor=(colour, 0.16),
                edgecolor=(colour, 0.5),
                linewidth=0,
                hatch="///" * seat,
            )


def solution_text(game: Game, nodes: int = 10_000_000) -> Iterator[str]:
    """Yield the solution of a position as lines of text.

    Two-player positions are solved exactly (`ninetka_agents.ninetka.solver`). With three or four players, the text
    gives the result of max^n, in which every seat plays for its own win, and says which seats can force a win against
    all others together.

    Args:
        game: a position of the movement phase.
        nodes: maximum number of positions that each search may visit.

    Raises:
        ValueError: if the movement phase has not started.
    """
    if game.num_players == 2:
        yield from _two_players(game, nodes)
    else:
        yield from _max_n(game, nodes)


def _two_players(game: Game, nodes: int) -> Iterator[str]:
    found = solve(game, Budget(nodes=nodes), margin=True)
    if found.winner < 0:
        yield f"not solved within {nodes} nodes"
        return
    margin = "" if found.margin is None else f", {abs(found.margin)} sections ahead if both maximise their lead"
    yield f"{SEATS[found.winner]} wins{margin}"
    if not game.is_over and found.winner == game.to_move:
        yield f"winning moves: {_names(game, found.winning_moves().tolist())}"
    yield f"{found.nodes} nodes, {found.seconds:.2f} s"


def _max_n(game: Game, nodes: int) -> Iterator[str]:
    found = solve_max_n(game, nodes)
    if found.winner < 0:
        yield f"max^n: not solved within {nodes} nodes"
    else:
        yield f"max^n: {SEATS[found.winner]} wins"
        moves = [action for action in game.legal_actions().tolist() if found.winners[action] == game.to_move]
        if moves:
            yield f"moves after which {SEATS[game.to_move]} wins: {_names(game, moves)}"
    for seat in range(game.num_players):
        forced = can_force_win(game, seat, nodes)
        answer = "unknown" if forced is None else "yes" if forced else "no"
        yield f"{SEATS[seat]} wins against all others together: {answer}"


def _names(game: Game, actions: list[int]) -> str:
    return " ".join(map(game.action_name, actions)) or "none known"
