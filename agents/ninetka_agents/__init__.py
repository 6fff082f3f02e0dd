"""Who plays: a position in, an action out."""

from ninetka_agents.agent import Agent, make_agent

__all__ = ["Agent", "make_agent"]
