"""What each phase of 9tka is worth: an agent's placement with MaxN's movement, and the reverse."""

from __future__ import annotations

from ninetka_agents.agent import Agent, make_agent
from ninetka_agents.ninetka.by_phase import ByPhase


def pairs(agent: Agent) -> list[tuple[Agent, Agent]]:
    """Return the agent with either phase left to MaxN, each against MaxN."""
    maxn = make_agent("maxn")
    return [(ByPhase(agent, maxn), maxn), (ByPhase(maxn, agent), maxn)]
