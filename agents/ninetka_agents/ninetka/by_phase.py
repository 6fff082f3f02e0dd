"""An agent that places stones with one agent and slides them with another, to measure agents phase by phase.

The spec of the agent is `phases`. `ninetka_train.ninetka.blunders` uses this agent; the general class `Switch` is in
`ninetka_agents.switch`.
"""

from __future__ import annotations

from ninetka_agents.agent import Agent, AgentLike, as_agent
from ninetka_agents.switch import Switch, by_stage


class ByPhase(Switch[Agent]):
    """Plays the neutral and placement phases with one agent and the movement phase with another."""

    def __init__(self, placement: AgentLike | str = "maxn", movement: AgentLike | str = "maxn") -> None:
        """Combine two agents.

        Args:
            placement: the agent, or its spec, that places stones, including the neutral ones.
            movement: the agent, or its spec, that slides stones.

        Raises:
            ValueError: if a spec is invalid; see `make_agent`.
        """
        self.placement = as_agent(placement)
        self.movement = as_agent(movement)
        super().__init__(by_stage, (self.placement, self.placement, self.movement))
        self.name = f"{self.placement.name} places, {self.movement.name} moves"
