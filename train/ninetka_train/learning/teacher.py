"""Teachers, which play the first rounds of AlphaZero: a tree search with playouts, or another network.

Start reading at `make_teacher`. `selfplay.py` plays the games.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from ninetka_agents.agent import Actions, make_agent
from ninetka_agents.net_agent import NetAgent, fast_evaluate
from ninetka_agents.plugins import plugins_of
from ninetka_agents.search.mcts import MctsAgent
from ninetka_agents.search.tree import TreeResult
from ninetka_env.core.verbs import StateArray
from ninetka_train.learning.rollout import roll_seats

POLICY_UNITS = 1_000_000
"""Total number of visits by which `NetworkTeacher` represents a network's policy."""


class NetworkTeacher:
    """A network without search that returns its policy as visits and its values as the values of a search.

    It is used to train another network, for example a smaller one (Hinton, Vinyals and Dean, "Distilling the knowledge
    in a neural network", 2015).
    """

    def __init__(self, network: Any) -> None:
        """Use a network as the teacher."""
        self._evaluate = fast_evaluate(network)

    def run(self, games: StateArray, rng: np.random.Generator) -> TreeResult:
        """Evaluate (N,) positions; see `ninetka_agents.search.mcts.MctsAgent.run`."""
        log_policy, values = self._evaluate(games)
        roll_seats(values, -games["to_move"], games["num_players"])
        visits = np.rint(POLICY_UNITS * np.exp(log_policy, dtype=np.float64)).astype(np.int64)
        return TreeResult(log_policy.argmax(1), visits, values)

    def act(self, games: StateArray, rng: np.random.Generator) -> Actions:
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
        game: name of the game.
        spec: spec of a tree search without simulations and threads, or `net:` and a checkpoint; empty for the game's
            strongest tree search.
        simulations: simulations per move of a tree search.
        exploration: exploration constant of a tree search, unless it uses RAVE or the spec has its own.
        threads: maximum number of threads.
        device: torch device, or its name, for a network.

    Raises:
        ValueError: if the spec has another form or a wrong option.
    """
    teacher = make_agent(teacher_spec(game, spec, simulations, exploration, threads), game)
    if isinstance(teacher, NetAgent):
        return NetworkTeacher(teacher.network.to(device))
    assert isinstance(teacher, MctsAgent)
    return teacher


def teacher_spec(game: str, spec: str, simulations: int, exploration: float, threads: int = 0) -> str:
    """Return the spec of the agent that plays like the teacher; see `make_teacher`."""
    kind, _, text = (spec or plugins_of(game).teacher).partition(":")
    options = list(filter(None, text.split(",")))
    given = {option.partition("=")[0] for option in options}
    if kind == "net" and len(options) == 1 and "=" not in text:
        return spec
    if kind != "mcts" or given & {"simulations", "seconds", "threads"}:
        raise ValueError(
            f"alphazero.teacher={spec!r}: expected mcts and its options without simulations, seconds and threads, or "
            "net:CHECKPOINT"
        )
    if not given & {"rave", "exploration"}:
        options.append(f"exploration={exploration}")
    options += [f"simulations={simulations}"] + ([f"threads={threads}"] if threads else [])
    return f"{kind}:{','.join(options)}"
