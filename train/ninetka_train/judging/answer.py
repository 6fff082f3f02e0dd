"""The answer of a match in one sentence, such as `net beats maxn: 99.0 % [94.6, 99.8], +764 Elo`.

Start reading at `answer`. `report.py` has the tables.
"""

from __future__ import annotations

from ninetka_train.judging.evaluate import AgentFigures, Evaluation
from ninetka_train.judging.ratings import Interval
from ninetka_train.judging.texts import elo_text, share_text

_NUMBERS = {2: "two", 3: "three"}


def answer(evaluation: Evaluation) -> str:
    """Return who is stronger, or that the games do not show it, with intervals."""
    agents = evaluation.agents
    if len(agents) == 1:
        return _against_itself(evaluation, agents[0])
    if len(agents) > 2:
        best = max(agents, key=lambda agent: agent.elo or 0)
        rating = f"{elo_text(best.elo, best.elo_interval, ' Elo')} ({evaluation.anchor or 'mean'} 0)"
        return f"{best.name} has the highest rating of {len(agents)} agents: {rating}"
    return _two_agents(evaluation, *agents)


def _against_itself(evaluation: Evaluation, agent: AgentFigures) -> str:
    shares = ", ".join(f"seat {number} wins {share_text(seat.share, seat.interval, ' %')}"
                       for number, seat in enumerate(agent.seats) if seat.games)  # fmt: skip
    return f"{agent.name} plays itself: {shares}"


def _two_agents(evaluation: Evaluation, first: AgentFigures, second: AgentFigures) -> str:
    """Return the result of the first of two agents, or of the second if that is the stronger one."""
    is_first = first.share >= first.even
    better, other = (first, second) if is_first else (second, first)
    elo, elo_interval = _elo_difference(evaluation, better, other)
    # the games of a rotation group are not independent, which only the interval of the rating considers
    is_shown = better.interval[0] > better.even and (elo_interval is None or elo_interval[0] > 0)
    figures = [share_text(better.share, better.interval, " %"), elo_text(elo, elo_interval, " Elo")]
    seats = evaluation.settings.num_players
    if seats > 2:  # the last agent fills the remaining seats
        others = _NUMBERS.get(seats - 1, str(seats - 1))
        figures.append(f"one {first.name} against {others} {second.name}; {100 * better.even:.1f} % is expected")
    found = ", ".join(figures)
    if is_shown:
        return f"{better.name} beats {other.name}: {found}"
    return f"no difference is shown between {better.name} and {other.name}: {better.name} wins {found}"


def _elo_difference(evaluation: Evaluation, first: AgentFigures, second: AgentFigures) -> tuple[float, Interval | None]:
    """Return how much higher the first of two agents is rated, and the interval.

    With the mean at 0, an agent's rating is half the difference. With an anchor, the other agent's rating is the
    difference.
    """
    difference = (first.elo or 0) - (second.elo or 0)
    bounds = second.elo_interval if evaluation.anchor == first.name else first.elo_interval
    if bounds is None:
        return difference, None
    low, high = bounds
    if evaluation.anchor is None:
        return difference, (2 * low, 2 * high)
    return difference, (-high, -low) if evaluation.anchor == first.name else (low, high)
