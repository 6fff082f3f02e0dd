"""Whose games a network learns from before it searches itself: a search with playouts, or another network."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from ninetka_agents.agent import Actions, make_agent
from ninetka_agents.net_agent import NetAgent, quick_evaluate
from ninetka_agents.parts import parts_of
from ninetka_agents.search.mcts import MctsAgent
from ninetka_agents.search.tree import TreeResult
from ninetka_env.core.verbs import Records
from ninetka_train.learning.rollout import roll_seats

PARTS = 1_000_000
"""What a network's policy is told in, as if it were visits."""


class NetworkTeacher:
    """A network without search: its policy in the place of visits, its values in that of results.

    What it knows goes over into another network, such as a smaller one (Hinton, Vinyals and Dean, "Distilling the
    knowledge in a neural network", 2015).
    """

    def __init__(self, network: Any) -> None:
        """Teach what a network says."""
        self._evaluate = quick_evaluate(network)

    def run(self, games: Records, rng: np.random.Generator) -> TreeResult:
        """Tell of (N,) positions; see `ninetka_agents.search.mcts.MctsAgent.run`."""
        log_policy, values = self._evaluate(games)
        roll_seats(values, -games["to_move"], games["num_players"])
        visits = np.rint(PARTS * np.exp(log_policy, dtype=np.float64)).astype(np.int64)
        return TreeResult(log_policy.argmax(1), visits, values)

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        return self.run(games, rng).actions


Teacher: TypeAlias = MctsAgent | NetworkTeacher


def make_teacher(
    game: str,
    spec: str,
    simulations: int,
    exploration: float,
    threads: int = 1,
    device: Any = "cpu",
) -> Teacher:
    """Make the teacher.

    Args:
        game: that it plays, by name.
        spec: what it is: a tree search, without simulations and threads, or `net:` and a checkpoint; empty for the
            strongest tree search that the game has.
        simulations: per move, of a tree search.
        exploration: its constant, unless it is a search by RAVE or the spec tells.
        threads: at most so many.
        device: torch's, or its name: where a network that teaches is asked.

    Raises:
        ValueError: if the spec is neither, or wrong.
    """
    kind, _, text = (spec or parts_of(game).teacher).partition(":")
    options = list(filter(None, text.split(",")))
    told = {option.partition("=")[0] for option in options}
    if kind == "net" and len(options) == 1 and "=" not in text:
        agent = make_agent(spec, game)
        assert isinstance(agent, NetAgent)
        return NetworkTeacher(agent.network.to(device))
    if kind != "mcts" or told & {"simulations", "seconds", "threads"}:
        raise ValueError(
            f"alphazero.teacher={spec!r}: expected mcts and its options without simulations, seconds and threads, or "
            "net:CHECKPOINT"
        )
    if not told & {"rave", "exploration"}:
        options.append(f"exploration={exploration}")
    options += [f"simulations={simulations}", f"threads={threads}"]
    teacher = make_agent(f"{kind}:{','.join(options)}", game)
    assert isinstance(teacher, MctsAgent)
    return teacher
