"""How often an agent errs in the stored positions of `exact_positions.py`.

    score = score_positions(make_agent("maxn"), load_positions(2))
    score.rate, score.interval  # the mean of the stages' shares of errors, and its 95 % interval

Start reading at `score_positions`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Agent, AgentLike, PerGameGenerator, as_agent, check_agent_game
from ninetka_agents.ninetka.solver.solver import LOST, WON
from ninetka_env.core.options import check_actions, check_count
from ninetka_env.core.random_streams import Streams, make_streams
from ninetka_env.core.verbs import StateArray
from ninetka_env.games.ninetka.geometry import NUM_ACTIONS
from ninetka_train.judging.lockstep import AgentError, failure_text, reraise_fatal
from ninetka_train.judging.ratings import Interval, interval_of_sums
from ninetka_train.ninetka.exact_positions import STAGES, PositionSet

BATCH = 256
"""Default number of positions in a call of the agent."""


@dataclass(frozen=True)
class StageScore:
    """The errors of an agent in the positions of one stage."""

    stage: tuple[int, int]
    """First and last number of slides or stones; see `exact_positions.STAGES`."""
    positions: int
    errors: int

    @property
    def rate(self) -> float:
        """Share of the positions with an error."""
        return self.errors / self.positions


@dataclass(frozen=True)
class PositionScore:
    """The errors of an agent in a set of positions."""

    agent: str
    stages: tuple[StageScore, ...]
    """Stages that have positions."""
    rate: float
    """The mean of the stages' rates, each with the same weight."""
    interval: Interval
    """95 % interval of `rate`: Wilson's for the effective number of positions, with the positions of a game as one
    cluster; see `ninetka_train.judging.ratings.interval_of_sums`."""
    wins: int
    """Positions in which the seat to move can force a win: with two players all."""
    wins_given_away: int
    """Errors in these positions."""


def score_positions(agent: AgentLike | str, positions: PositionSet, seed: int = 0, batch: int = BATCH) -> PositionScore:
    """Let an agent choose an action in every position and count its errors.

    An error is an action of a lower value than another one: with two players an action that gives the win away; with
    more, one that gives a sure win away, or one after which another seat is sure to win although this was avoidable.

    Args:
        agent: an agent of 9tka or its spec.
        positions: the positions.
        seed: determines the agent's random numbers.
        batch: number of positions in a call of the agent; networks round differently in other batches.

    Raises:
        ValueError: if the agent's spec is wrong.
        AgentError: if the agent fails or returns an illegal action.
    """
    player, streams = as_agent(agent, "ninetka"), make_streams(seed, len(positions))
    check_agent_game(player, "ninetka")
    parts = [slice(first, first + batch) for first in range(0, len(positions), check_count("batch", batch))]
    actions = np.concatenate([_choose(player, positions.states[part], streams[part]) for part in parts])
    rows, legal = np.arange(len(positions)), positions.legal
    is_action = (actions >= 0) & (actions < NUM_ACTIONS)
    for row in np.flatnonzero(~is_action | ~legal[rows, np.where(is_action, actions, 0)]):
        text = positions.game(int(row)).describe_illegal(int(actions[row]))
        raise AgentError(f"position {positions.ids[row]}: agent {player.name!r}: {text}")
    best = np.where(legal, positions.values, LOST).max(1)
    return _summarise(player.name, positions, positions.values[rows, actions] < best, best == WON)


def _choose(player: Agent, states: StateArray, streams: Streams) -> npt.NDArray[np.int64]:
    """Return the actions of an agent in positions."""
    try:
        return check_actions(player.act(states.copy(), PerGameGenerator(streams.copy())), len(states))
    except BaseException as error:
        reraise_fatal(error)
        raise AgentError(f"positions: agent {player.name!r}: {failure_text(error)}") from error


def _summarise(
    name: str, positions: PositionSet, errors: npt.NDArray[np.bool_], can_win: npt.NDArray[np.bool_]
) -> PositionScore:
    stage_of, bounds = positions.stages, STAGES[int(positions.states["num_players"][0])]
    counts, wrong = np.bincount(stage_of), np.bincount(stage_of, errors)
    stages = tuple(StageScore(bounds[stage], int(counts[stage]), int(wrong[stage])) for stage in np.flatnonzero(counts))
    rate = sum(stage.rate for stage in stages) / len(stages)
    rates = wrong / np.maximum(counts, 1)
    deviations = (errors - rates[stage_of]) / (counts[stage_of] * len(stages))
    clusters = np.unique(positions.sources, return_inverse=True)[1]
    interval = interval_of_sums(rate, len(positions), np.bincount(clusters, deviations))
    return PositionScore(name, stages, rate, interval, int(can_win.sum()), int((errors & can_win).sum()))
