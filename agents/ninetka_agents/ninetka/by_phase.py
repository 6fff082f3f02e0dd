"""One agent for placing stones, another for sliding them: what each phase is worth."""

from __future__ import annotations

from ninetka_agents.agent import Agent, AgentLike, as_agent
from ninetka_agents.switch import Switch, by_stage


class ByPhase(Switch[Agent]):
    """Plays the neutral and the placement phase as one agent does, the movement phase as another."""

    def __init__(self, placement: AgentLike | str = "maxn", movement: AgentLike | str = "maxn") -> None:
        """Join two agents.

        Args:
            placement: who places stones, the neutral ones included; an agent or its spec.
            movement: who slides them.

        Raises:
            ValueError: if a spec is wrong; see `make_agent`.
        """
        self.placement = as_agent(placement)
        self.movement = as_agent(movement)
        super().__init__(by_stage, (self.placement, self.placement, self.movement))
        self.name = f"{self.placement.name} places, {self.movement.name} moves"
