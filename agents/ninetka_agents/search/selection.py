"""Action selection of the Gumbel search: sequential halving at the root, and below it the improved policy.

Start reading at `root_choice` and `interior_choice`. The search is in `gumbel.py`.

Both use completed Q: the mean value of an action that was tried, and a mixed value (equation 33) of all other actions.
At interior nodes, visits follow the improved policy, which results from completed Q. Equation numbers refer to
Danihelka et al., "Policy improvement by planning with Gumbel", ICLR 2022.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ninetka_agents.search.choices import next_choice
from ninetka_agents.search.gumbel_tree import mean, visits_of
from ninetka_env.core.jit import jit
from ninetka_env.core.random_streams import Streams, draw
from ninetka_env.core.verbs import BitSet, StateArray

Doubles: TypeAlias = npt.NDArray[np.float64]

MAX_SCALE = 1e100
"""Limit of the scales of noise and values, so that products do not overflow; larger scales would change nothing."""


class Scales(NamedTuple):
    """The constants of equation 8."""

    visit_offset: float
    """c_visit."""
    value_scale: float
    """c_scale."""


def halving_schedule(considered: int, simulations: int) -> npt.NDArray[np.int32]:
    """Return the schedule of sequential halving at the root (Karnin, Koren and Somekh 2013).

    The schedule is an array (considered + 1, simulations) int32. Row m is for m considered actions; row 0 is not used.
    Entry t is a number of visits. Among the root's actions with exactly this number of visits, simulation t plays the
    action with the highest g + logits + sigma(q). So the m actions with the highest g + logits are visited first, then
    the better half of these actions, and so on, until the best two share the remaining simulations. An eliminated
    action is not played again, because all later entries exceed its number of visits.
    """
    schedule = np.zeros((considered + 1, simulations), np.int32)
    schedule[1] = np.arange(simulations)
    for count in range(2, considered + 1):
        visits, left = [0] * count, count
        entries: list[int] = []
        while len(entries) < simulations:
            for _ in range(max(1, simulations // (math.ceil(math.log2(count)) * left))):
                entries += visits[:left]
                visits[:left] = [visit + 1 for visit in visits[:left]]
            left = max(2, left // 2)
        schedule[count] = entries[:simulations]
    return schedule


def timed_halving(considered: int, start: float, seconds: float) -> Iterator[int]:
    """Yield entries as in row `considered` of `halving_schedule`, until `seconds` after `start`.

    `start` is a time of `time.perf_counter`. Sequential halving divides the budget equally among its phases. Here the
    budget is time: a phase makes rounds until its part of the time is over. The first entry is yielded even if the time
    is already up.
    """
    visits, left, phases = [0] * considered, considered, max(1, math.ceil(math.log2(considered)))
    for phase in range(1, phases + 1):
        while visits[0] == 0 or phase == phases or time.perf_counter() - start < seconds * phase / phases:
            for place in range(left):
                if visits[0] and time.perf_counter() - start >= seconds:
                    return
                yield visits[place]
                visits[place] += 1
        left = max(2, left // 2)


@jit
def gumbel_noise(streams: Streams, index: int) -> float:
    """Draw Gumbel(0) noise from stream `index`."""
    return float(-np.log(-np.log((float(draw(streams, index) >> np.uint64(11)) + 0.5) * 2.0**-53)))


@jit
def root_choice(tree: StateArray, noise: Doubles, scores: Doubles, visits: int) -> int:
    """Return the root's choice with the highest g + logits + sigma(q) among the choices with `visits` visits.

    `noise` contains g and `scores` contains logits + sigma(q). Return -1 if no choice has this number of visits.
    """
    best, highest, legal = -1, -np.inf, tree[0].legal
    choice = next_choice(legal, -1)
    while choice >= 0:
        score = noise[choice] + scores[choice]
        if visits_of(tree, 0, choice) == visits and (best < 0 or score > highest):
            best, highest = choice, score
        choice = next_choice(legal, choice)
    return best


@jit
def interior_choice(tree: StateArray, index: int, scores: Doubles) -> int:
    """Return the choice a with the highest pi'(a) - N(a) / (1 + sum of N), equation 14.

    `scores` are the scores of `score_choices`; they are overwritten with the improved policy pi'.
    """
    legal = tree[index].legal
    softmax(legal, scores)
    best, highest = -1, -np.inf
    weight = 1.0 / tree[index].visits
    choice = next_choice(legal, -1)
    while choice >= 0:
        lag = scores[choice] - visits_of(tree, index, choice) * weight
        if best < 0 or lag > highest:
            best, highest = choice, lag
        choice = next_choice(legal, choice)
    return best


@jit
def score_choices(tree: StateArray, index: int, scales: Scales, scores: Doubles) -> int:
    """Write logits + sigma(completed Q) of each legal choice to `scores`, equations 8 and 10.

    Q is the value for the seat to move at the node. Return the maximum number of visits of a choice.
    """
    mover, max_visits = tree[index].mover, 0
    mixed, legal = mixed_value(tree, index, mover), tree[index].legal
    choice = next_choice(legal, -1)
    while choice >= 0:
        child = tree[index].children[choice]
        scores[choice] = mean(tree, child, mover) if child else mixed
        max_visits = max(max_visits, visits_of(tree, index, choice))
        choice = next_choice(legal, choice)
    scale = (scales.visit_offset + max_visits) * scales.value_scale
    choice = next_choice(legal, -1)
    while choice >= 0:
        scores[choice] = tree[index].logits[choice] + scale * scores[choice]
        choice = next_choice(legal, choice)
    return max_visits


@jit
def mixed_value(tree: StateArray, index: int, seat: int) -> float:
    """Return v_mix of a seat, equation 33, from the node's value and the prior-weighted mean Q of visited actions."""
    weight = average = 0.0
    legal = tree[index].legal
    choice = next_choice(legal, -1)
    while choice >= 0:
        child = tree[index].children[choice]
        if child:
            prior = max(np.exp(tree[index].logits[choice]), 1e-30)
            weight += prior
            average += prior * mean(tree, child, seat)
        choice = next_choice(legal, choice)
    if weight == 0.0:
        return tree[index].values[seat]
    visits = tree[index].visits
    return (tree[index].values[seat] + (visits - 1) * average / weight) / visits


@jit
def softmax(legal: BitSet, scores: Doubles) -> None:
    """Turn the scores of the legal choices into probabilities."""
    maximum, total = -np.inf, 0.0
    choice = next_choice(legal, -1)
    while choice >= 0:
        maximum = max(maximum, scores[choice])
        choice = next_choice(legal, choice)
    choice = next_choice(legal, -1)
    while choice >= 0:
        scores[choice] = np.exp(scores[choice] - maximum) if maximum > -np.inf else 1.0
        total += scores[choice]
        choice = next_choice(legal, choice)
    choice = next_choice(legal, -1)
    while choice >= 0:
        scores[choice] /= total
        choice = next_choice(legal, choice)
