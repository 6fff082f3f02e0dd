"""Compare Gumbel search with a slow reference: the formulas of the paper, with one Python object per position.

The paper is Danihelka, Guez, Schrittwieser and Silver, "Policy improvement by planning with Gumbel", ICLR 2022. The
reference knows the rules through the games' public methods only and shares no code with the search.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from ninetka_agents.conformance import evaluate_uniformly
from ninetka_agents.search.gumbel import GumbelOptions, GumbelSearch
from ninetka_env.core.registry import load_variant
from ninetka_env.core.verbs import StateArray

C_VISIT, C_SCALE = 50.0, 1.0
"""The constants of equation 8."""


def evaluate(states: StateArray) -> tuple[np.ndarray, np.ndarray]:
    """Return log probabilities and values by relative seat that depend on nothing but a state's bytes."""
    logits, values = evaluate_uniformly(states)
    for row in range(len(states)):
        seed = int.from_bytes(hashlib.sha256(states[row : row + 1].tobytes()).digest()[:8], "little")
        rng, legal = np.random.default_rng(seed), np.flatnonzero(logits[row])
        if len(legal) > 1:
            logits[row, legal] = np.log(rng.dirichlet(np.ones(len(legal))) + 1e-6)
        players = int(states["num_players"][row])
        values[row, :players] = rng.dirichlet(np.ones(players))
    return logits, values


@dataclass
class Node:
    """A position in the reference's tree."""

    game: Any
    value: np.ndarray = field(init=False)
    """(P,) win probability by absolute seat."""
    logits: dict[int, float] = field(default_factory=dict)
    children: dict[int, Node] = field(default_factory=dict)
    visits: int = 0
    total: np.ndarray = field(init=False)
    """(P,) sum of the values of all visits."""

    def __post_init__(self) -> None:
        players = self.game.num_players
        self.total = np.zeros(players)
        if self.game.is_over:
            winner = self.game.winner()
            self.value = np.full(players, 1 / players) if winner < 0 else np.eye(players)[winner]
        else:
            logits, values = (array[0].astype(float) for array in evaluate(self.game.records))
            self.logits = {int(action): logits[action] for action in self.game.legal_actions()}
            self.value = np.roll(values[:players], self.game.to_move)

    def after(self, action: int) -> Node:
        game = self.game.copy()
        game.play(action)
        return Node(game)

    def mean(self) -> np.ndarray:
        return self.total / self.visits

    def counts(self) -> dict[int, int]:
        return {action: self.children[action].visits if action in self.children else 0 for action in self.logits}

    def mixed_value(self) -> np.ndarray:
        """Return v_mix, equation 33, for each seat."""
        visits = sum(self.counts().values())
        if not visits:
            return self.value
        weights = {action: math.exp(self.logits[action]) for action in self.children}
        mean = sum(weight * self.children[action].mean() for action, weight in weights.items()) / sum(weights.values())
        return (self.value + visits * mean) / (1 + visits)

    def completed(self) -> dict[int, np.ndarray]:
        """Return the completed Q-values of each seat, equation 10."""
        return {a: self.children[a].mean() if a in self.children else self.mixed_value() for a in self.logits}

    def scores(self) -> dict[int, float]:
        """Return logits + sigma(completed Q) for the seat to move, equation 8."""
        scale = (C_VISIT + max(self.counts().values())) * C_SCALE
        return {action: self.logits[action] + scale * q[self.game.to_move] for action, q in self.completed().items()}

    def improved_policy(self) -> dict[int, float]:
        """Return pi', equation 11."""
        scores = self.scores()
        highest = max(scores.values())
        powers = {action: math.exp(score - highest) for action, score in scores.items()}
        return {action: power / sum(powers.values()) for action, power in powers.items()}

    def interior_action(self) -> int:
        """Return the action of equation 14."""
        counts, policy = self.counts(), self.improved_policy()
        return max(policy, key=lambda action: policy[action] - counts[action] / (1 + sum(counts.values())))


def simulate(node: Node, action: int | None = None) -> np.ndarray:
    """Visit the node, then a child if the node has been visited before; return the values of the position reached."""
    if node.visits == 0 or node.game.is_over:
        found = node.value
    else:
        action = node.interior_action() if action is None else action
        if action not in node.children:
            node.children[action] = node.after(action)
        found = simulate(node.children[action])
    node.visits += 1
    node.total = node.total + found
    return found


def wanted_visits(considered: int, simulations: int) -> list[int]:
    """Return how often the action of each simulation has been visited before, by sequential halving.

    Each phase has the same number of simulations and visits the better half of the actions of the phase before.
    """
    phases, found, done, left = max(1, math.ceil(math.log2(considered))), [], 0, considered
    while len(found) < simulations:
        for _ in range(max(1, simulations // (phases * left))):
            found += [done] * left
            done += 1
        left = max(2, left // 2) if considered > 1 else 1
    return found[:simulations]


def reference_search(game: Any, considered: int, simulations: int) -> Node:
    """Search without noise."""
    root = Node(game)
    simulate(root)
    for visits in wanted_visits(min(considered, len(root.logits)), simulations):
        counts, scores = root.counts(), root.scores()
        simulate(root, max((action for action in counts if counts[action] == visits), key=scores.__getitem__))
    return root


def start_position(spec: str, seed: int, plies: int) -> Any:
    variant = load_variant(spec)
    rng, game = np.random.default_rng(seed), variant.game_class.start(variant, seed=seed)
    for _ in range(plies):
        action = int(rng.choice(game.legal_actions()))
        after = game.copy()
        after.play(action)
        if after.is_over:
            break
        game = after
    return game


POSITIONS = [
    *((f"ninetka:num_players={players}", plies) for players in (2, 3, 4) for plies in (0, 4, 25, 40, 54)),
    *(("go:size=5", plies) for plies in (0, 12, 30)),
    *(("kropki:width=5,height=5,territory=declared", plies) for plies in (0, 12, 20)),
    *(("kropki:width=5,height=5,territory=immediate", plies) for plies in (6, 20)),
]


@pytest.mark.parametrize(("spec", "plies"), POSITIONS)
@pytest.mark.parametrize(("considered", "simulations"), [(1, 6), (4, 16), (16, 64)])
def test_the_search_follows_the_papers_formulas(spec, plies, considered, simulations):
    game = start_position(spec, plies, plies)
    options = GumbelOptions(simulations, considered, gumbel_scale=0, playouts=0)
    assert (options.visit_offset, options.value_scale) == (C_VISIT, C_SCALE)
    result = GumbelSearch(evaluate, options).run(game.records, np.random.default_rng(0))
    root = reference_search(game, considered, simulations)
    counts, policy = root.counts(), root.improved_policy()
    assert {action: int(result.visits[0, action]) for action in counts} == counts
    np.testing.assert_allclose([result.policy[0, action] for action in policy], [*policy.values()], atol=1e-5)
    values = sum(policy[action] * q for action, q in root.completed().items())
    np.testing.assert_allclose(result.values[0, : game.num_players], values, atol=1e-5)
    best = max((action for action in counts if counts[action] == max(counts.values())), key=root.scores().__getitem__)
    assert result.actions[0] == best
