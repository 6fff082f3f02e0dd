"""One agent for placing stones, another for sliding them: what each phase is worth."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ninetka_agents.agent import Actions, Agent, GameRandom, make_agent
from ninetka_env.games.ninetka.rules import MOVEMENT, Records


class ByPhase:
    """Plays the neutral and the placement phase as one agent does, the movement phase as another."""

    def __init__(self, placement: Agent | str = "maxn", movement: Agent | str = "maxn") -> None:
        """Join two agents.

        Args:
            placement: who places stones, the neutral ones included; an agent or its spec.
            movement: who slides them.

        Raises:
            ValueError: if a spec is wrong; see `make_agent`.
        """
        self.placement = make_agent(placement) if isinstance(placement, str) else placement
        self.movement = make_agent(movement) if isinstance(movement, str) else movement
        self.name = f"{self.placement.name} places, {self.movement.name} moves"

    def act(self, games: Records, rng: np.random.Generator) -> Actions:
        """Choose actions; see `ninetka_agents.agent.Agent.act`."""
        actions = np.empty(len(games), np.int64)
        moving = games["phase"] == MOVEMENT
        for agent, theirs in ((self.placement, ~moving), (self.movement, moving)):
            if theirs.any():
                actions[theirs] = _ask(agent, games, theirs, rng)
        return actions


def _ask(agent: Agent, games: Records, chosen: npt.NDArray[np.bool_], rng: np.random.Generator) -> Actions:
    """Let an agent act in some of the games, each with the stream that it has in `rng`, if it has one."""
    if not isinstance(rng, GameRandom):
        return agent.act(games[chosen], rng)
    part = GameRandom(rng.streams[chosen])
    actions = agent.act(games[chosen], part)
    rng.streams[chosen] = part.streams
    return actions
