"""Curves of strength by seconds or simulations per move. `ninetka_train.reporting.strength` draws them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from ninetka_agents.agent import Agent
from ninetka_env import __version__
from ninetka_env.core.options import check_choice, short_repr
from ninetka_train.judging.arena import LatestResults, Match, make_match
from ninetka_train.judging.evaluate import Evaluation, summarise
from ninetka_train.judging.lockstep import AgentError, MatchProgress
from ninetka_train.judging.ratings import Interval
from ninetka_train.judging.results import MatchSettings
from ninetka_train.machine import describe_machine

BUDGETS = ("seconds", "simulations")
"""Options of agent specs that limit the effort per move."""


class PlannedPoint(NamedTuple):
    """A planned point of a curve."""

    agent: str
    """Spec without the budget."""
    budget: str
    """One of `BUDGETS`."""
    amount: float


@dataclass(frozen=True)
class CurvePoint:
    """Results of an agent with one budget against the opponent."""

    agent: str
    """Spec without the budget."""
    budget: str
    """One of `BUDGETS`."""
    amount: float
    seconds: float
    """Mean time per move of the agent."""
    games: int
    distinct_games: int
    wins: int
    draws: int
    share: float
    """Share of wins; see `ninetka_train.judging.evaluate.AgentFigures`."""
    interval: Interval
    """95 % Wilson interval of `share`."""


@dataclass(frozen=True)
class Curve:
    """All data of a plot."""

    settings: MatchSettings
    """Settings of the first match; the other matches have another first agent."""
    against: str
    """The opponent, in all other seats."""
    opponent_seconds: float
    """Mean time per move of the opponent."""
    points: list[CurvePoint]


def with_budget(spec: str, budget: str, amount: float) -> str:
    """Add a budget to an agent's spec: `"mcts:rave"` with 0.1 seconds gives `"mcts:rave,seconds=0.1"`."""
    value = f"{amount:g}" if budget == "seconds" else f"{amount:.0f}"
    return f"{spec}{',' if ':' in spec else ':'}{budget}={value}"


def parse_amounts(budget: str, text: str) -> list[float]:
    """Parse a list of amounts such as `"0.01,0.1"`, which may be empty; raise `ValueError` if it is invalid."""
    try:
        amounts = [float(item) if budget == "seconds" else int(item) for item in text.split(",") if text]
    except ValueError:
        amounts = [0]
    if any(not 0 < amount < math.inf for amount in amounts):
        kind = "numbers above 0, such as 0.01,0.1" if budget == "seconds" else "integers above 0, such as 16,64"
        raise ValueError(f"{budget}={short_repr(text)}: expected {kind}")
    return amounts


def plan_points(agents: Sequence[str], amounts: Mapping[str, Sequence[float]]) -> list[PlannedPoint]:
    """Return all points of a curve: each agent with each amount of each budget.

    Args:
        agents: specs without a budget.
        amounts: maps each budget, one of `BUDGETS`, to its amounts.

    Raises:
        ValueError: if there are no points, or an agent's spec already has a budget.
    """
    for spec in agents:
        for budget in BUDGETS:
            if f"{budget}=" in spec:
                raise ValueError(f"agent {short_repr(spec)}: the curve sets {budget}, so the spec must not")
    for budget in amounts:
        check_choice("budget", budget, BUDGETS)
    points = [
        PlannedPoint(spec, budget, float(value))
        for budget, values in amounts.items()
        for spec in agents
        for value in values
    ]
    if not points:
        raise ValueError("no points: expected at least one agent, and --seconds or --simulations")
    return points


def make_matches(plan: Sequence[PlannedPoint], against: str, **options: Any) -> list[Match]:
    """Make a match for each point, between its agent and an opponent in all other seats.

    Args:
        plan: the points.
        against: spec of the opponent, which is created once.
        options: options of `ninetka_train.judging.arena.make_match`.

    Raises:
        ValueError: if an option or a spec is wrong.
    """
    matches: list[Match] = []
    opponent: Agent | str = against
    for point in plan:
        matches.append(make_match([with_budget(*point), opponent], **options))
        opponent = matches[-1].agents[1]
    return matches


def play_points(
    matches: Sequence[Match],
    announce: Callable[[str], None] = lambda what: None,
    progress: MatchProgress = lambda done: None,
) -> Iterator[Evaluation]:
    """Play the match of each point of a curve, and yield its figures.

    After an interruption or the failure of an agent, yield the figures of the finished games, then raise the exception
    again.

    Args:
        matches: matches of `make_matches`.
        announce: called with the name of each agent before its games, and with failures of agents.
        progress: called with the number of finished games of the curve.
    """
    played = 0
    for match in matches:
        announce(match.agents[0].name)
        so_far = LatestResults()

        def show(done: float, begun: int = played) -> None:
            progress(begun + done)

        try:
            results = match.play(progress=show, on_batch_end=so_far)
        except (KeyboardInterrupt, AgentError):
            if (part := so_far.complete_groups()) is not None:
                yield summarise(part)
            raise
        evaluation = summarise(results)
        for failure in evaluation.failures:
            announce(f"lost by a failure: {failure}")
        played += len(results.winners)
        yield evaluation


def make_curve(plan: Sequence[PlannedPoint], against: str, evaluations: Sequence[Evaluation]) -> Curve:
    """Return the curve of the points that were played: the figures of at least one point, in the order of the plan."""
    points = [_curve_point(evaluation, point) for point, evaluation in zip(plan, evaluations, strict=False)]
    times = [time for evaluation in evaluations for time in evaluation.agents[1].times]
    seconds = sum(time.mean_ms * time.moves for time in times) / max(1, sum(time.moves for time in times)) / 1000
    return Curve(evaluations[0].settings, against, seconds, points)


def _curve_point(evaluation: Evaluation, point: PlannedPoint) -> CurvePoint:
    agent = evaluation.agents[0]
    counts = (agent.games, evaluation.distinct_games, agent.wins, agent.draws)
    return CurvePoint(*point, agent.seconds or 0.0, *counts, agent.share, agent.interval)


def curve_dict(curve: Curve) -> dict[str, Any]:
    """Return the curve, with versions and machine, as plain values for JSON."""
    version = curve.settings.variant.definition.version
    return {"environment": version, "package": __version__, "machine": describe_machine(), **asdict(curve)}
