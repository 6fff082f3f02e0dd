"""Completed Q: what every action is worth, tried or not, and the policy that follows.

Equation numbers are those of Danihelka et al., "Policy improvement by planning with Gumbel", ICLR 2022.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ninetka_agents.search.choices import next_choice
from ninetka_agents.search.gumbel_tree import mean, visits_of
from ninetka_env.core.jit import jit
from ninetka_env.core.verbs import Records, Words

Doubles: TypeAlias = npt.NDArray[np.float64]
Scales: TypeAlias = tuple[float, float]
"""c_visit and c_scale of equation 8."""


@jit
def score_choices(tree: Records, index: int, scales: Scales, scores: Doubles) -> int:
    """Write logits + sigma(completed Q) of the mover per legal choice, equations 8 and 10; return the most visits."""
    mover, most = tree[index].mover, 0
    mixed, legal = mixed_value(tree, index, mover), tree[index].legal
    choice = next_choice(legal, -1)
    while choice >= 0:
        child = tree[index].children[choice]
        scores[choice] = mean(tree, child, mover) if child else mixed
        most = max(most, visits_of(tree, index, choice))
        choice = next_choice(legal, choice)
    scale = (scales[0] + most) * scales[1]
    choice = next_choice(legal, -1)
    while choice >= 0:
        scores[choice] = tree[index].logits[choice] + scale * scores[choice]
        choice = next_choice(legal, choice)
    return most


@jit
def mixed_value(tree: Records, index: int, seat: int) -> float:
    """Return v_mix of a seat, equation 33: the network's value and the visited actions' mean by prior, by visits."""
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
def softmax(legal: Words, scores: Doubles) -> None:
    """Turn the scores of the legal choices into probabilities."""
    most, total = -np.inf, 0.0
    choice = next_choice(legal, -1)
    while choice >= 0:
        most = max(most, scores[choice])
        choice = next_choice(legal, choice)
    choice = next_choice(legal, -1)
    while choice >= 0:
        scores[choice] = np.exp(scores[choice] - most) if most > -np.inf else 1.0
        total += scores[choice]
        choice = next_choice(legal, choice)
    choice = next_choice(legal, -1)
    while choice >= 0:
        scores[choice] /= total
        choice = next_choice(legal, choice)
